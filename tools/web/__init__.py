"""Web pages: which addresses may be requested, how they are fetched, and their text."""
