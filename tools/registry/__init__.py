"""Defines tools and their parameters, and keeps the table of tools."""
