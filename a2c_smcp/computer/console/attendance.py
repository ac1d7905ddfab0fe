"""Whether a browser is there to decide: while a page has its stream, and some seconds longer, so that a page that is
loaded again has not been away.
"""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from a2c_smcp.computer.decisions.store import DecisionStore

__all__ = ["BROWSER", "BrowserAttendance"]

#: Who answers, as people read it at the terminal.
BROWSER: Final = "browser"
_GRACE_SECONDS: Final = 10.0


class BrowserAttendance:
    """Attends the store of decisions as long as there are pages."""

    def __init__(self, decisions: DecisionStore) -> None:
        self._decisions = decisions
        self._pages = 0
        self._stay = ExitStack()
        self._going: asyncio.TimerHandle | None = None
        self._there = False

    @contextmanager
    def page(self) -> Iterator[None]:
        """A page is there while inside."""
        self._pages += 1
        if self._going is not None:
            self._going.cancel()
            self._going = None
        if not self._there:
            self._there = True
            self._stay.enter_context(self._decisions.attend(BROWSER))
        try:
            yield
        finally:
            self._pages -= 1
            if not self._pages:
                self._going = asyncio.get_running_loop().call_later(_GRACE_SECONDS, self.leave)

    def leave(self) -> None:
        """Nobody is there any more."""
        if self._going is not None:
            self._going.cancel()
            self._going = None
        self._there = False
        self._stay.close()
