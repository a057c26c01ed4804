"""The terminal: printing for a person, and asking one."""
