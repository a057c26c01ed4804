"""Reads the calls in a model's reply; it runs nothing."""
