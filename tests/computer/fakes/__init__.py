"""MCP servers for the tests: one that misbehaves on demand, one that speaks HTTP."""
