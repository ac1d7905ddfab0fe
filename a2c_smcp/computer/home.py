"""What a person changes about a computer that runs: its config files, and the office that it is in.

Types only. A command hands them to its console, which knows neither commands nor connections.
"""

from dataclasses import dataclass, field
from typing import Protocol

from a2c_smcp.computer.config.writer import ConfigWriter

__all__ = ["ComputerHome", "OfficeDoor"]


class OfficeDoor(Protocol):
    """How a computer gets into an office, and out of it."""

    @property
    def url(self) -> str:
        """The server that was meant last, without secrets."""

    async def join(self, url: str, office: str, api_key: str | None) -> None:
        """Connect and join, in the place of the office before. Without a key, a server that was meant before is sent
        the key that it had then; another server gets none. Raises the refusal.
        """

    async def leave(self) -> None:
        """Leave the office, and the server."""


@dataclass(frozen=True, slots=True)
class ComputerHome:
    """The config files that a page may change, and its way to offices."""

    config: ConfigWriter = field(default_factory=lambda: ConfigWriter((), None))
    offices: OfficeDoor | None = None
    """`None` if the program that runs the computer connects it itself."""
