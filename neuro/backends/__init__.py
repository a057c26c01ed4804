"""Model providers behind one interface (base.py); select.py chooses one. None knows tools, forms or the
loop."""
