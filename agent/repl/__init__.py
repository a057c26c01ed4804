"""The REPL: the interactive prompt of quoth."""
