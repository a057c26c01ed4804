"""quoth as a server for other programs: its tools for clients of the Model Context Protocol."""
