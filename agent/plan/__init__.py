"""A flight plan as data: read, built, checked."""
