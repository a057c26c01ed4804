"""Runs a session again; the transcript replaces model and tools."""
