"""Dry runs: find the calls that a program may run, and run only the calls that read."""
