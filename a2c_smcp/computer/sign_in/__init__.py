"""Signing in to remote MCP servers with OAuth: tokens, their storage, and the way to new ones."""
