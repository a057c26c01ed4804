"""quoth as a server for other programs: chat completions, and its tools for MCP clients."""
