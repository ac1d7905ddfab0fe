"""The progress of a running call, made safe before anybody sees it. Pure: no sockets, no clock."""

import logging
import math
from collections.abc import Callable
from typing import Final, Protocol, TypeAlias

from a2c_smcp.smcp import MAX_PROGRESS_MESSAGE, WAITING_FOR_PERSON
from a2c_smcp.utils.text import cut, well_formed

__all__ = ["PROGRESS_SECONDS", "CallProgress", "OnProgress", "OngoingCall"]

logger = logging.getLogger(__name__)

#: Seconds between two reports of a call. That is nine reports in a second; the last report does not wait, and may be
#: the tenth.
PROGRESS_SECONDS: Final = 1 / 8.9

#: Called with `(progress, total, message)` in the event loop. It must not block.
OnProgress: TypeAlias = Callable[[float, float | None, str | None], None]


class OngoingCall(Protocol):
    """What a session with an MCP server must know of a call that is made through it."""

    @property
    def tool_ends(self) -> float:
        """When the tool is out of time, by the clock of the event loop."""

    @property
    def may_start(self) -> Callable[[], bool] | None:
        """Says, when the call has its turn, whether what was decided about it still holds. Raises if it must fail."""


class CallProgress:
    """The progress of one call, on its way from the MCP server to `on_progress`.

    An MCP server may report anything. What is passed on never decreases, has finite numbers, no secrets, and a message
    of bounded length. `redact` takes secrets out of a text.
    """

    def __init__(self, on_progress: OnProgress, redact: Callable[[str], str]) -> None:
        self._on_progress = on_progress
        self._redact = redact
        self._progress = 0.0
        self._total: float | None = None
        self._has_ended = False

    def report(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Pass a report on. A report after the result is dropped, and so is one whose progress is not finite."""
        if self._has_ended or not math.isfinite(progress):
            return
        # After `input_required` the tool is asked again, and its progress may begin at 0 again.
        self._progress = max(self._progress, progress)
        self._total = total if total is not None and math.isfinite(total) else None
        try:
            self._on_progress(self._progress, self._total, None if message is None else self._shown(message))
        except Exception:
            # A boundary: the listener is not ours. The call goes on.
            logger.exception("a listener failed to take the progress of a call")

    def waiting(self) -> None:
        """Report that the call waits for the person at the computer."""
        self.status(WAITING_FOR_PERSON)

    def status(self, message: str) -> None:
        """Report how the call stands, in words: its progress is as before."""
        self.report(self._progress, self._total, message)

    def end(self) -> None:
        """The call has its result. Report nothing more."""
        self._has_ended = True

    def _shown(self, message: str) -> str:
        return cut(well_formed(self._redact(message)), MAX_PROGRESS_MESSAGE - 1)
