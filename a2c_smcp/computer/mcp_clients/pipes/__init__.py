"""MCP over the pipes of a process."""
