"""Event loops that share one virtual clock. Each loop is a process with one core: what it computes takes its own time.

A loop's turn is run for real, and the CPU time that it took is added to that loop's clock. Between turns nothing
passes. So ten seconds of waiting cost nothing here, and 2 s of computing delay that process by 2 s and no other one.
"""

import asyncio
import heapq
import itertools
import time
from asyncio import events
from collections.abc import Callable, Coroutine
from typing import Any

__all__ = ["ProcessLoop", "World"]


class _NothingToRead:
    """A selector of a loop without sockets."""

    def select(self, timeout: float | None) -> list[Any]:
        return []

    def get_map(self) -> dict[Any, Any]:
        return {}


class ProcessLoop(asyncio.BaseEventLoop):
    """The event loop of one simulated process. It uses asyncio's own scheduling, and knows no sockets or threads."""

    def __init__(self, world: "World") -> None:
        super().__init__()
        self._selector = _NothingToRead()
        self._world = world
        self.clock = world.now
        self.busy = 0.0
        """CPU seconds that it has used."""
        self.longest_turn = 0.0
        self.is_alive = True

    def time(self) -> float:
        return self.clock

    def _process_events(self, event_list: list[Any]) -> None:
        pass

    def _write_to_self(self) -> None:
        pass

    @property
    def next_turn(self) -> float | None:
        """When it has something to do."""
        if not self.is_alive:
            return None
        if self._ready:  # type: ignore[attr-defined]
            return self.clock
        scheduled = self._scheduled  # type: ignore[attr-defined]
        while scheduled and scheduled[0]._cancelled:
            handle = heapq.heappop(scheduled)
            handle._scheduled = False
            self._timer_cancelled_count = max(0, self._timer_cancelled_count - 1)  # type: ignore[has-type]
        return max(self.clock, scheduled[0]._when) if scheduled else None

    def turn(self, at: float) -> None:
        """Run what is due, and let the clock go on by what it took."""
        self.clock = started = max(self.clock, at)
        self._world.current = self
        events._set_running_loop(self)
        began = time.thread_time()
        try:
            self._run_once()  # type: ignore[attr-defined]
        finally:
            events._set_running_loop(None)
            self.spend(time.thread_time() - began)
            self.longest_turn = max(self.longest_turn, self.clock - started)

    def spend(self, seconds: float) -> None:
        """Let this process compute for so long."""
        self.clock += seconds
        self.busy += seconds


class World:
    """All loops, and what is on its way between them. Runs whatever is due first."""

    def __init__(self) -> None:
        self.now = 0.0
        self.current: ProcessLoop | None = None
        self.loops: list[ProcessLoop] = []
        self._letters: list[tuple[float, int, Callable[[float], None]]] = []
        self._numbers = itertools.count()

    def clock(self) -> float:
        """The time of the process that runs now."""
        return self.current.clock if self.current is not None else self.now

    def new_loop(self) -> ProcessLoop:
        loop = ProcessLoop(self)
        self.loops.append(loop)
        return loop

    def at(self, when: float, act: Callable[[float], None]) -> None:
        """Have something happen outside of all processes."""
        heapq.heappush(self._letters, (when, next(self._numbers), act))

    def start(self, loop: ProcessLoop, work: Coroutine[Any, Any, Any], after: float = 0.0) -> None:
        """Begin a task of a process, some seconds from now."""

        def begin(at: float) -> None:
            loop.clock = max(loop.clock, at)
            loop.create_task(work)

        self.at(self.now + after, begin)

    def run_until(self, condition: Callable[[], bool], most: float) -> float:
        """Go on until something is true, and return when that was. Raises `TimeoutError` after `most` seconds.

        It looks every 10 ms, because the condition may be expensive.
        """
        deadline = self.now + most
        while not condition():
            look = self.now + 0.01
            while self._step(min(look, deadline)):
                pass
            self.now = max(self.now, look)
            if self.now >= deadline:
                raise TimeoutError(f"not reached within {most:g} s of virtual time")
        return self.now

    def _step(self, until: float) -> bool:
        """Do what is due first, if it is due before this moment."""
        loop, at = None, until
        for each in self.loops:
            turn = each.next_turn
            if turn is not None and turn < at:
                loop, at = each, turn
        if self._letters and self._letters[0][0] < until and self._letters[0][0] <= at:
            when, _, act = heapq.heappop(self._letters)
            self.now, self.current = max(self.now, when), None
            act(when)
            return True
        if loop is None:
            return False
        self.now = max(self.now, at)
        loop.turn(at)
        return True
