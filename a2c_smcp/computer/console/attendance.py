"""Whether somebody at a browser can decide: while a page follows, and ten seconds longer, so that a page may be loaded
again.
"""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from a2c_smcp.computer.decisions.store import DecisionStore

__all__ = ["BROWSER", "BrowserAttendance"]

#: The name of a browser that can answer, for the person at the terminal.
BROWSER: Final = "browser"


class BrowserAttendance:
    """Attends the store of decisions while there are pages."""

    def __init__(self, decisions: DecisionStore) -> None:
        self._decisions = decisions
        self._pages = 0
        self._stay = ExitStack()
        self._going: asyncio.TimerHandle | None = None
        self._there = False

    @contextmanager
    def page(self) -> Iterator[None]:
        """While inside, a page follows."""
        self._pages += 1
        self._stay_on()
        if not self._there:
            self._there = True
            self._stay.enter_context(self._decisions.attend(BROWSER))
        try:
            yield
        finally:
            self._pages -= 1
            if not self._pages:
                self._going = asyncio.get_running_loop().call_later(10.0, self.leave)

    def leave(self) -> None:
        """End the attendance: nobody can decide in a browser any more."""
        self._stay_on()
        self._there = False
        self._stay.close()

    def _stay_on(self) -> None:
        if self._going is not None:
            self._going.cancel()
            self._going = None
