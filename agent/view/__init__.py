"""The pages of ``quoth serve`` at /view."""
