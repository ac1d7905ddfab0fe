"""A Computer's place in an office."""

from a2c_smcp.computer.socketio.client import SMCPComputerClient

__all__ = ["SMCPComputerClient"]
