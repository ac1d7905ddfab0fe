"""The deadlines of one tool call: how long a person may take to confirm it, and how long the tool may run.

Knows neither decisions nor tools.
"""

import asyncio
import math
from collections.abc import Iterator
from contextlib import contextmanager

import anyio

__all__ = ["TimeLimits"]


class TimeLimits:
    """A call runs under `scope`, which ends it when it is out of time. `timeout` and `approval_timeout` are seconds.

    With an `approval_timeout` the `timeout` counts from the moment when the tool starts. Without one it also covers the
    wait for a person. A `timeout` of `None` means no limit.
    """

    def __init__(self, timeout: float | None, approval_timeout: float | None = None) -> None:
        self.began = _now()
        self._timeout = math.inf if timeout is None else timeout
        self._approval_timeout = approval_timeout
        self.tool_ends = self.began + self._timeout + (approval_timeout or 0)
        """When the tool is out of time at the latest, by the clock of the event loop."""
        self.scope = anyio.CancelScope(deadline=self.tool_ends if approval_timeout is None else math.inf)

    @contextmanager
    def asking(self) -> Iterator[float]:
        """The time while a person is asked. Gives the moment when the question expires."""
        # Without a limit of its own the question ends a moment before the call's deadline. If it ended later, the call
        # would fail with a timeout of the tool.
        expires = anyio.current_effective_deadline() - 0.1
        if self._approval_timeout is not None:
            expires = min(expires, self.began + self._approval_timeout)
        # A busy event loop may wake after both times. Then the call must still not fail with a timeout of the tool.
        deadline, self.scope.deadline = self.scope.deadline, math.inf
        try:
            yield expires
        finally:
            self.scope.deadline = deadline

    def start_tool(self) -> float:
        """The tool starts now. Returns when it is out of time."""
        if self._approval_timeout is not None:
            self.scope.deadline = self.tool_ends = _now() + self._timeout
        return self.tool_ends


def _now() -> float:
    return asyncio.get_running_loop().time()
