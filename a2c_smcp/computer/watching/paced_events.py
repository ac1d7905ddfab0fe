"""Publishes changes at a pace that agents can follow. The first `AnnouncedEvent` of a kind is published at once,
then one in 100 ms.

`Pace` decides when; this module has the timers. All other events are published at once.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from a2c_smcp.computer.watching.events import AnnouncedEvent, ComputerEvent
from a2c_smcp.utils.pace import Pace

__all__ = ["ANNOUNCE_SECONDS", "PacedEvents"]

#: The shortest time between two changes of one kind.
ANNOUNCE_SECONDS: Final = 0.1


class PacedEvents:
    """Call it with every event, from the event loop, and `flush` in the end. `publish` gets the events; the last change
    of each kind is never lost.
    """

    def __init__(self, publish: Callable[[ComputerEvent], None]) -> None:
        self._publish = publish
        self._paces: dict[type, Pace] = {}
        self._waiting: dict[type, tuple[asyncio.TimerHandle, AnnouncedEvent]] = {}

    @property
    def is_waiting(self) -> bool:
        """Whether a change was not published yet."""
        return bool(self._waiting)

    def __call__(self, event: ComputerEvent) -> None:
        if not isinstance(event, AnnouncedEvent):
            self._publish(event)
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._publish(event)  # no event loop runs yet
            return
        kind, now = type(event), loop.time()
        pace = self._paces[kind] = self._paces.get(kind, Pace(ANNOUNCE_SECONDS)).change(now)
        assert pace.due is not None
        if kind in self._waiting:
            return
        if pace.due <= now:
            self._send(event)
        else:
            self._waiting[kind] = (loop.call_at(pace.due, self._send, event), event)

    def flush(self) -> None:
        """Publish the changes that still wait. The next change of each kind is published at once."""
        for timer, event in tuple(self._waiting.values()):
            timer.cancel()
            self._publish(event)
        self._waiting.clear()
        self._paces.clear()

    def _send(self, event: AnnouncedEvent) -> None:
        kind = type(event)
        self._waiting.pop(kind, None)
        self._paces[kind] = self._paces[kind].sent(asyncio.get_running_loop().time())
        self._publish(event)
