"""Reads, rewrites, checks and compiles programs; runs none."""
