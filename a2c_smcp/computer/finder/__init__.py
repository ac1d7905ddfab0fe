"""The Finder: the documents of all MCP servers as one catalogue."""

from a2c_smcp.computer.finder.organize import organize_finder

__all__ = ["organize_finder"]
