"""The Computer: many MCP servers under one roof. Names are imported when they are used: MCP takes a second."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from a2c_smcp.computer.computer import Computer
    from a2c_smcp.computer.config.files import load_config_files
    from a2c_smcp.computer.socketio.client import SMCPComputerClient
    from a2c_smcp.link.interface import LinkOptions
    from a2c_smcp.results import text_of

__all__ = ["Computer", "LinkOptions", "SMCPComputerClient", "load_config_files", "text_of"]

_ROOMS = {
    "Computer": "a2c_smcp.computer.computer",
    "LinkOptions": "a2c_smcp.link.interface",
    "SMCPComputerClient": "a2c_smcp.computer.socketio.client",
    "load_config_files": "a2c_smcp.computer.config.files",
    "text_of": "a2c_smcp.results",
}


def __getattr__(name: str) -> Any:
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_ROOMS[name]), name)
