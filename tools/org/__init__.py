"""Parses and edits Org files and keeps every other byte."""
