"""Model providers behind one interface (base.py); select.py chooses one."""
