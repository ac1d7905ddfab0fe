"""The Computer: many MCP servers under one roof."""
