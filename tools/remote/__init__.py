"""Calls delegated to workers over Redis: the caller's side and the worker's side."""
