"""Org files, kept byte for byte. Knows nothing of plans."""
