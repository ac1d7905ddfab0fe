"""The one timer of a tool call: how long a person may take to confirm it, and how long the tool may run.

It ends the call's task when time is up, and so does whoever cancels the call: `why` tells these apart. Knows neither
decisions nor tools.
"""

import asyncio
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, TypeAlias

import anyio

__all__ = ["EndedEarly", "TimeLimits"]

#: Why a call is ended early: it is out of time, its agent cancelled it, or somebody at the computer did.
EndedEarly: TypeAlias = Literal["timed_out", "by_agent", "here"]


class TimeLimits:
    """Limits the call that the current task runs. `timeout` and `approval_timeout` are seconds. `start` it, and `stop`
    it when the call has ended.

    With an `approval_timeout` the `timeout` counts from the moment when the tool starts. Without one it also covers the
    wait for a person. A `timeout` of `None` means no limit.
    """

    # One object and one timer for a call: a cancel scope would take a tenth of the time of a small call.
    __slots__ = (
        "_cancels",
        "_loop",
        "_runs",
        "_timeout",
        "_timer",
        "approval_timeout",
        "began",
        "task",
        "tool_ends",
        "why",
    )

    def __init__(self, timeout: float | None, approval_timeout: float | None = None) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.task = task
        self._cancels = task.cancelling()
        self._loop = loop = task.get_loop()
        self.began = loop.time()
        self._timeout = math.inf if timeout is None else timeout
        self.approval_timeout = approval_timeout
        self.tool_ends = self.began + self._timeout + (approval_timeout or 0)
        """When the tool is out of time at the latest, by the clock of the event loop."""
        self.why: EndedEarly | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._runs = True

    @property
    def ends(self) -> float:
        """When the timer ends the call."""
        return math.inf if self._timer is None else self._timer.when()

    def start(self) -> None:
        """The call begins."""
        if self.approval_timeout is None and self._timeout != math.inf:
            self._timer = self._loop.call_at(self.tool_ends, self.cancel, "timed_out")

    def cancel(self, why: EndedEarly = "here") -> None:
        """End the call, unless it has ended. Only the first reason counts."""
        if self._runs and self.why is None:
            self.why = why
            self.task.cancel()

    def stop(self) -> EndedEarly | None:
        """The call has ended. Returns why it was ended early; `None` if it was not, or if the task itself is cancelled:
        then the caller must pass that on. Safe to call twice.
        """
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._runs = False
        if self.why is None:
            return None
        why, self.why = self.why, None
        return why if self.task.uncancel() <= self._cancels else None

    @contextmanager
    def asking(self) -> Iterator[float]:
        """The time while a person is asked. Gives the moment when the question expires."""
        # Without a limit of its own the question ends a moment before the call's deadline. If it ended later, the call
        # would fail with a timeout of the tool.
        ends = self.ends
        expires = min(ends, anyio.current_effective_deadline()) - 0.1
        if self.approval_timeout is not None:
            expires = min(expires, self.began + self.approval_timeout)
        # A busy event loop may wake after both times. Then the call must still not fail with a timeout of the tool.
        self._set(math.inf)
        try:
            yield expires
        finally:
            self._set(ends)

    def start_tool(self) -> float:
        """The tool starts now. Returns when it is out of time. Without an `approval_timeout` that is not new."""
        if self.approval_timeout is not None:
            self.tool_ends = self._loop.time() + self._timeout
            self._set(self.tool_ends)
        return self.tool_ends

    def _set(self, ends: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        ticks = self._runs and ends != math.inf
        self._timer = self._loop.call_at(ends, self.cancel, "timed_out") if ticks else None
