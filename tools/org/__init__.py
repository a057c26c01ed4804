"""Parses and edits Org files, byte for byte; must not know plans."""
