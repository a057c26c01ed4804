"""One run of the loop: its parts, its budget, its sub-agents, its record."""
