"""Which windows and documents of MCP servers agents see, and which server is asked for each of them."""
