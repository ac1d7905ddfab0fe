"""What a running call reports of its progress, before anybody sees it. Pure: no sockets, no clock."""

import logging
import math
from collections.abc import Callable
from typing import Final, TypeAlias

from a2c_smcp.smcp import MAX_PROGRESS_MESSAGE
from a2c_smcp.utils.text import cut, well_formed

__all__ = ["PROGRESS_SECONDS", "WAITING", "CallProgress", "OnProgress"]

logger = logging.getLogger(__name__)

#: How far apart the reports of a call leave, in seconds: nine in a second, and the last report, which does not wait, is
#: the tenth.
PROGRESS_SECONDS: Final = 1 / 8.9
#: What a call reports while it waits for an answer of the person at the computer.
WAITING: Final = "waiting for the person at the computer"

#: Called with `(progress, total, message)` in the event loop. It must not block.
OnProgress: TypeAlias = Callable[[float, float | None, str | None], None]


class CallProgress:
    """The progress of one call, on its way to whoever wants to hear of it.

    An MCP server may report anything; what is passed on never decreases, has finite numbers, no secrets and a message
    of bounded length. `redact` takes the secrets out of a text.
    """

    def __init__(self, on_progress: OnProgress, redact: Callable[[str], str]) -> None:
        self._on_progress = on_progress
        self._redact = redact
        self._progress = 0.0
        self._total: float | None = None
        self._has_ended = False

    def report(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Pass a report on. One whose progress is no number is dropped, and so is one that comes too late."""
        if self._has_ended or not math.isfinite(progress):
            return
        # Each round of an exchange with `input_required` is a new request, whose progress may begin at 0 again.
        self._progress = max(self._progress, progress)
        self._total = total if total is not None and math.isfinite(total) else None
        try:
            self._on_progress(self._progress, self._total, None if message is None else self._shown(message))
        except Exception:
            # A boundary: the listener is not ours, and the call goes on.
            logger.exception("a listener failed to take the progress of a call")

    async def take(self, progress: float, total: float | None, message: str | None) -> None:
        """`report` as mcp's client calls it."""
        self.report(progress, total, message)

    def waiting(self) -> None:
        """Report that the call waits for the person at the computer."""
        self.report(self._progress, self._total, WAITING)

    def end(self) -> None:
        """The call has a result: nothing is reported after it."""
        self._has_ended = True

    def _shown(self, message: str) -> str:
        return cut(well_formed(self._redact(message)), MAX_PROGRESS_MESSAGE - 1)
