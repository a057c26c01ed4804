"""Reads, rewrites, checks and compiles programs; it does not run them."""
