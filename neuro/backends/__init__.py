"""Model providers behind one interface (base.py); select.py chooses one. No backend knows tools, forms or the
loop."""
