"""Which resources of MCP servers are shown, and which server answers for one."""
