"""Text to models to call forms and back; it runs nothing."""
