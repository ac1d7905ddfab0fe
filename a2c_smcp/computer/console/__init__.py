"""The console: a page in the browser for the person at the computer. Imported only when it is opened."""

from a2c_smcp.computer.console.address import ConsoleAddress
from a2c_smcp.computer.console.entrance import Advice
from a2c_smcp.computer.console.memory import ConsoleMemory, NoMemoryError
from a2c_smcp.computer.console.serving import Console, ConsoleError

__all__ = ["Advice", "Console", "ConsoleAddress", "ConsoleError", "ConsoleMemory", "NoMemoryError"]
