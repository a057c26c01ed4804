"""A reply's text to calls; it runs nothing."""
