"""A window whose content changes often: told of at a pace, whatever the content does."""

import asyncio
from collections.abc import Callable
from typing import Final

from a2c_smcp.mcp_server.windows import Window, WindowPath, Windows
from a2c_smcp.utils.pace import Pace

__all__ = ["UPDATES_APART", "LiveWindow"]

#: Seconds between two updates of one window: an agent cannot follow more.
UPDATES_APART: Final = 0.5


class LiveWindow:
    """One window of the server. `touch` says that something has changed; `refresh` looks, and returns the window to
    show, or `None` if it is as before. It is called at once, then every half second at most, and always after the last
    change.
    """

    def __init__(self, windows: Windows, path: WindowPath, refresh: Callable[[], Window | None]) -> None:
        self._windows = windows
        self._path = path
        self._refresh = refresh
        self._pace = Pace(UPDATES_APART)
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._is_closed = False

    def touch(self, after: float = 0.0) -> None:
        """Look whether there is something new, now or in so many seconds, as the pace allows."""
        if self._is_closed:
            return
        due = (self._pace.change(self._loop.time() + after)).due
        assert due is not None
        if self._timer is not None:
            if self._timer.when() <= due:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(due, self._show)

    def show_now(self) -> None:
        """Look at once: somebody wants to see what there is."""
        if not self._is_closed:
            self._show()

    def close(self) -> None:
        """Take the window away."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._path in self._windows:
            del self._windows[self._path]

    def _show(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._pace = self._pace.sent(self._loop.time())
        if (window := self._refresh()) is not None:
            self._windows[self._path] = window
