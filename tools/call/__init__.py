"""One call and what travels with it."""
