"""A session run once more, answered by its transcript."""
