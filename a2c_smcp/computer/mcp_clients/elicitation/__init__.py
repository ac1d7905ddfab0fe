"""Questions of MCP servers to the person at the computer."""
