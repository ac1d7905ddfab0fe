"""A process that uses the seat, as its holder knows it: the pipe to it, and what it waits for."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field

from a2c_smcp.agent.seat.pipe import SeatPipe
from a2c_smcp.relay.errands import Errand, ErrandTable

__all__ = ["PassedRequest", "Sharer"]


@dataclass(slots=True, eq=False)
class PassedRequest:
    """A request that is being passed on."""

    task: asyncio.Task[None]
    call: dict[str, str] | None
    """The `agent` and the `req_id` of a tool call."""


@dataclass(slots=True, eq=False)
class Sharer:
    """A process that uses this seat."""

    pipe: SeatPipe
    errands: ErrandTable[int, PassedRequest] = field(default_factory=ErrandTable)
    calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Its tool calls that run, by `agent` and `req_id`."""

    def begin(self, number: int, task: "asyncio.Task[None]", call: dict[str, str] | None) -> None:
        """Note a request that is being passed on."""
        self.errands.take(Errand(number, PassedRequest(task, call)))
        if call is not None:
            key = call["agent"], call["req_id"]
            self.calls[key] += 1
            task.add_done_callback(lambda _: self._end(key))

    def _end(self, key: tuple[str, str]) -> None:
        self.calls[key] -= 1
        if not self.calls[key]:
            del self.calls[key]
