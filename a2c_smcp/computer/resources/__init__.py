"""Which windows and documents of MCP servers agents see, and which server answers for one."""
