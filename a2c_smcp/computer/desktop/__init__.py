"""The Desktop: the windows of all MCP servers as one view."""

from a2c_smcp.computer.desktop.organize import listed_windows, organize_desktop, windows_to_read

__all__ = ["listed_windows", "organize_desktop", "windows_to_read"]
