"""Reads Lisp text into Hy models and call forms, and prints both; it runs nothing."""
