"""What follows from a decision of the server, as values. A shell performs them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from a2c_smcp.smcp import EVENTS

__all__ = ["Broadcast", "RoomChange"]


@dataclass(frozen=True, slots=True)
class RoomChange:
    """The session enters the room of an office, or leaves it. The office's notifications go to its room."""

    sid: str
    office_id: str
    enters: bool


@dataclass(frozen=True, slots=True)
class Broadcast:
    """Tell everyone in the office except the session that it is about."""

    office_id: str
    event: str
    data: Mapping[str, Any]
    skip_sid: str
    collapses: bool = False
    """Whether a repeat may be left out while its reader has not seen the first one yet."""

    @property
    def agent_only(self) -> bool:
        """Whether only the agent of the office is told."""
        return EVENTS[self.event].agent_only
