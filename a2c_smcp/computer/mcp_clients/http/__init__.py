"""How much an MCP server may send over HTTP, and why a server cannot be reached."""
