"""MCP servers as the Computer sees them: their configs, their tools, their connections."""
