"""What an MCP server that is reached over HTTP may send, and why one cannot be reached."""
