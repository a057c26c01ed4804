"""The REPL."""
