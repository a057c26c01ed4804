"""Pages of the web: which addresses may be asked, how they are fetched, and their text. Knows no door."""
