"""Calls delegated to workers over Redis: the side of the caller, and of the worker. Knows no models."""
