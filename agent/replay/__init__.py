"""Runs a session again, with the transcript in place of model and tools."""
