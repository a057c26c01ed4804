"""Model providers behind one interface (base.py); select.py chooses. None knows tools, forms or the loop."""
