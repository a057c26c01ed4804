"""The catalogue of tools in Redis, signed, and the table that is rebuilt from it. Sends no call."""
