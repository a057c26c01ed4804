"""Pages of the web: which addresses may be asked, how they are fetched, and what text they hold. Knows no door."""
