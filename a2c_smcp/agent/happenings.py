"""The events of the office that wait for an agent's handlers. Bounded, however slow a handler is. No sockets."""

import asyncio
import logging
from collections import deque
from collections.abc import Hashable
from typing import Any, Final, NamedTuple

from a2c_smcp.agent.types import Change
from a2c_smcp.utils.repeats import Repeats

__all__ = ["Happenings"]

logger = logging.getLogger(__name__)

_MEMBERSHIP: Final = frozenset({"enter_office", "leave_office"})


class _Happening(NamedTuple):
    name: str
    data: Any
    about: str | None
    """The computer that the event is about."""


class Happenings:
    """A queue of events, in order.

    When a computer repeats an announcement while the first one still waits, the repeat is left out, unless the computer
    or the connection came or went in between. When too many events wait, the oldest is lost.
    """

    def __init__(self, most: int = 10_000) -> None:
        self._most = most
        self._queue: deque[_Happening] = deque()
        self._repeats: Repeats[_Happening] = Repeats()
        self._some = asyncio.Event()
        self._losing = False

    def __len__(self) -> int:
        return len(self._queue)

    def put(self, name: str, data: Any) -> None:
        happened = _Happening(name, data, _computer_of(data))
        if (saying := _repeatable(happened)) is not None:
            if self._repeats.find(happened.about, saying) is not None:
                return
            self._repeats.add(happened.about, saying, happened)
        elif name in _MEMBERSHIP:
            self._repeats.bar(happened.about)
        elif name == "connection":
            self._repeats = Repeats()
        if len(self._queue) >= self._most:
            self._lose_oldest()
        self._queue.append(happened)
        self._some.set()

    async def get(self) -> tuple[str, Any]:
        while not self._queue:
            self._losing = False
            self._some.clear()
            await self._some.wait()
        happened = self._pop()
        return happened.name, happened.data

    def _lose_oldest(self) -> None:
        self._pop()
        if not self._losing:
            self._losing = True
            logger.warning("over %d events wait for the handlers of the agent; the oldest are lost", self._most)

    def _pop(self) -> _Happening:
        happened = self._queue.popleft()
        if (saying := _repeatable(happened)) is not None:
            self._repeats.remove(happened.about, saying, happened)
        return happened


def _computer_of(data: Any) -> str | None:
    if isinstance(data, Change):
        return data.computer
    return data.get("computer") if isinstance(data, dict) else None


def _repeatable(happened: _Happening) -> Hashable | None:
    """The key by which a repeat is recognized; `None` if every repeat counts."""
    if isinstance(happened.data, Change):
        return happened.data
    if happened.name == "resource_updated":
        return happened.name, happened.data.get("uri")
    return happened.name if happened.name.startswith("update_") else None
