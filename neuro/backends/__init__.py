"""Models behind one interface (base.py); choose.py picks one. No backend knows tools, forms or the loop."""
