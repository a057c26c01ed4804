"""Runs programs in a sandbox, suspends and resumes them."""
