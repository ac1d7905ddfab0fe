"""Gives the memory of forgotten calls back to the system. The C library keeps it otherwise: 26 MB after large calls."""

import asyncio
import ctypes
from functools import cache
from typing import Any, Final

from a2c_smcp.utils.system import IS_UNIX

__all__ = ["FreedMemory"]

#: How many forgotten bytes are worth the work, which takes some milliseconds.
_WORTH: Final = 4 * 1024 * 1024
#: For how long no call may have ended: what is given back while large calls come has to be fetched again for each.
_QUIET_SECONDS: Final = 0.5


@cache
def _trim() -> Any:
    """glibc's `malloc_trim`; `None` on other systems."""
    return getattr(ctypes.CDLL(None), "malloc_trim", None) if IS_UNIX else None


class FreedMemory:
    """`forgot` after each call; when there is a pause, memory goes back to the system."""

    def __init__(self) -> None:
        self._bytes = 0
        self._last = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def forgot(self, size: int, now: float) -> None:
        """A call has ended, and so many bytes of earlier calls were forgotten. `now` is the loop's time."""
        self._bytes += size
        self._last = now
        if self._bytes >= _WORTH and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_QUIET_SECONDS, self._look)

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        left = self._last + _QUIET_SECONDS - loop.time()
        if left > 0:
            self._timer = loop.call_later(left, self._look)
            return
        self._timer, self._bytes = None, 0
        if (trim := _trim()) is not None:
            trim(0)
