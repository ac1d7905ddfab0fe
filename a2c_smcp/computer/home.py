"""What a person may change about a running computer: its config files, and its office. Types only.

A command hands them to its console, which knows neither commands nor connections.
"""

from dataclasses import dataclass, field
from typing import Protocol

from a2c_smcp.computer.config.writer import ConfigWriter

__all__ = ["ComputerHome", "OfficeDoor"]


class OfficeDoor(Protocol):
    """How a computer gets into an office, and out of it."""

    @property
    def url(self) -> str:
        """The last server's URL, without secrets."""

    async def join(self, url: str, office: str, api_key: str | None) -> None:
        """Connect to a server and join an office there, instead of the one before. Raises the refusal.

        Without an `api_key`, a known server gets the key that it had before, and another server gets none.
        """

    async def leave(self) -> None:
        """Leave the office, and disconnect."""


@dataclass(frozen=True, slots=True)
class ComputerHome:
    """The config files that a page may change, and its way to offices."""

    config: ConfigWriter = field(default_factory=lambda: ConfigWriter((), None))
    offices: OfficeDoor | None = None
    """`None` if the program connects the computer itself."""
