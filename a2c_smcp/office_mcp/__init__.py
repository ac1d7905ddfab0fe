"""The office as an MCP server. Names are imported when they are used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from a2c_smcp.office_mcp.agent import OfficeAgent
    from a2c_smcp.office_mcp.server import office_server

__all__ = ["OfficeAgent", "office_server"]

_ROOMS = {"OfficeAgent": "a2c_smcp.office_mcp.agent", "office_server": "a2c_smcp.office_mcp.server"}


def __getattr__(name: str) -> Any:
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_ROOMS[name]), name)
