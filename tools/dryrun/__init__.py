"""Dry runs: finds which calls a program may make, and makes only calls that read."""
