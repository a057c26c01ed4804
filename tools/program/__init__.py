"""A program read, rewritten, checked and compiled; none is run here."""
