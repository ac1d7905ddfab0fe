"""What a decision of the server asks for, as values. A shell performs them; nothing here does."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

__all__ = ["Broadcast", "EnterRoom", "LeaveRoom", "RoomChange", "room_of"]


def room_of(office_id: str) -> str:
    """The Socket.IO room of an office; the prefix keeps an office from being named like a session."""
    return f"office:{office_id}"


@dataclass(frozen=True, slots=True)
class EnterRoom:
    """From now on the session gets the notifications of the office."""

    sid: str
    office_id: str


@dataclass(frozen=True, slots=True)
class LeaveRoom:
    """From now on the session does not get the notifications of the office."""

    sid: str
    office_id: str


RoomChange: TypeAlias = EnterRoom | LeaveRoom


@dataclass(frozen=True, slots=True)
class Broadcast:
    """Tell everyone in the office but the one it is about."""

    office_id: str
    event: str
    data: Mapping[str, Any]
    skip_sid: str
    collapses: bool = False
    """Whether a repeat adds nothing for a reader who has not seen the first one yet."""
