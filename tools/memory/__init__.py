"""An agent's memory: blocks with an ACL in SQLite or PostgreSQL, and the search over them."""
