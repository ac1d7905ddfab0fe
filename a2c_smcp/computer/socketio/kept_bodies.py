"""Keeps the contents of a resource while an agent reads them in parts, so that all parts are of one reading."""

import asyncio
from typing import Final

from a2c_smcp.computer.asker import Asker
from a2c_smcp.computer.resources.parts import ResourceBody
from a2c_smcp.utils.bounded import BoundedDict

__all__ = ["BODY_SECONDS", "KeptBodies"]

#: How long contents are kept after they were read.
BODY_SECONDS: Final = 60.0
#: How many contents are kept, however short they are: an agent may ask for a part of anything.
_MOST_BODIES: Final = 256


class KeptBodies:
    """The last contents that did not fit into one message, `heaviest` bytes of them in all."""

    def __init__(self, heaviest: int, seconds: float = BODY_SECONDS) -> None:
        self._bodies: BoundedDict[tuple[Asker, str, str], ResourceBody] = BoundedDict(
            _MOST_BODIES, heaviest=heaviest, weigh=lambda it: it.size
        )
        self._unread: set[tuple[Asker, str, str]] = set()
        """Those of which no part was read yet."""
        self._seconds = seconds
        self._timer: asyncio.TimerHandle | None = None

    def get(self, caller: Asker, uri: str, *, begins: bool) -> ResourceBody | None:
        """The contents that were kept for this agent. A series of parts that begins gets only contents that no other
        series has read.
        """
        key = (caller, caller.own_id, uri)
        if begins and key not in self._unread:
            return None
        self._unread.discard(key)
        return self._bodies.get(key)

    def put(self, caller: Asker, uri: str, body: ResourceBody, *, is_read: bool) -> None:
        """Keep contents for a minute. `is_read` says that a part of them is sent now."""
        loop, key = asyncio.get_running_loop(), (caller, caller.own_id, uri)
        self._bodies.put(key, body, loop.time())
        self._unread = {each for each in self._unread | (set() if is_read else {key}) if each in self._bodies}
        if self._timer is None:
            self._timer = loop.call_later(self._seconds, self._forget)

    def clear(self) -> None:
        self._bodies.clear()
        self._unread.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _forget(self) -> None:
        loop = asyncio.get_running_loop()
        self._bodies.forget_before(loop.time() - self._seconds + 0.5)
        # Looks again soon enough: contents that were put meanwhile are kept for one and a half minutes at most.
        self._timer = loop.call_later(self._seconds / 2, self._forget) if len(self._bodies) else None
