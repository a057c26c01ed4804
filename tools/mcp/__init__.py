"""Tools of MCP servers behind the door: their configuration, connections, entries, pins and results."""
