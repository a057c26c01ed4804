"""Runs, suspends and resumes programs in a sandbox."""
