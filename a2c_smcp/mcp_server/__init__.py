"""MCP servers with windows and documents, made easy."""
