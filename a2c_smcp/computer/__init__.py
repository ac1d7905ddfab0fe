"""The Computer: many MCP servers in one place. Names are imported when they are used, because MCP takes a second."""

from typing import TYPE_CHECKING

from a2c_smcp.utils.lazy_names import lazy_names

if TYPE_CHECKING:
    from a2c_smcp.computer.computer import Computer
    from a2c_smcp.computer.config.files import load_config_files
    from a2c_smcp.computer.socketio.client import SMCPComputerClient
    from a2c_smcp.link.interface import LinkOptions
    from a2c_smcp.results import text_of

__all__ = ["Computer", "LinkOptions", "SMCPComputerClient", "load_config_files", "text_of"]

__getattr__ = lazy_names(
    __name__,
    {
        "Computer": "computer.computer",
        "LinkOptions": "link.interface",
        "SMCPComputerClient": "computer.socketio.client",
        "load_config_files": "computer.config.files",
        "text_of": "results",
    },
)
