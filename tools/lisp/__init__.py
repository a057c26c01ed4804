"""Reads Lisp text into Hy models and call forms, and prints both. Nothing is run here."""
