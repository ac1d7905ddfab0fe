"""What a model sees of an office: names and schemas of tools, a search, windows and documents, failures in words.

Two rooms build on it: `agent/llm/` speaks to the APIs of models, `office_mcp/` speaks to MCP hosts.
"""
