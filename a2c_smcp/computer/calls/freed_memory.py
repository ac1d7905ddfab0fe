"""Gives the memory of forgotten calls back to the system. The C library would keep it: 26 MB after large calls."""

import asyncio
import ctypes
from functools import cache
from typing import Any

from a2c_smcp.utils.system import IS_UNIX

__all__ = ["FreedMemory"]


@cache
def _trim() -> Any:
    """glibc's `malloc_trim`; `None` on other systems."""
    return getattr(ctypes.CDLL(None), "malloc_trim", None) if IS_UNIX else None


class FreedMemory:
    """Call `forgot` after each call. When no call has ended for `quiet` seconds, memory goes back to the system.

    It does not go back while large calls come, because each of them would have to fetch it again. Less than `worth`
    bytes are not worth the work, which takes some milliseconds.
    """

    def __init__(self, *, quiet: float = 0.5, worth: int = 4 * 2**20) -> None:
        self._quiet = quiet
        self._worth = worth
        self._bytes = 0
        self._last = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def forgot(self, size: int, now: float) -> None:
        """A call has ended, and `size` bytes of earlier calls were forgotten. `now` is the loop's time."""
        self._bytes += size
        self._last = now
        if self._bytes >= self._worth and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._quiet, self._look)

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        left = self._last + self._quiet - loop.time()
        if left > 0:
            self._timer = loop.call_later(left, self._look)
            return
        self._timer, self._bytes = None, 0
        if (trim := _trim()) is not None:
            trim(0)
