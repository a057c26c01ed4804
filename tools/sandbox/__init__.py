"""A program run, suspended and resumed."""
