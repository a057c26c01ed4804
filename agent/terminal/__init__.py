"""A person at a terminal: what is shown and what is asked."""
