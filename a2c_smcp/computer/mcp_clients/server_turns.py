"""Whose turn it is: one operation at a time on each MCP server, and starts together in config order.

Knows names of servers; nothing of connections or configs.
"""

import asyncio
import itertools
import weakref
from collections.abc import AsyncIterator, Iterable, KeysView
from contextlib import asynccontextmanager

import anyio

from a2c_smcp.errors import ServerNotActiveError
from a2c_smcp.types import SERVER_NAME

__all__ = ["ServerTurns"]


class ServerTurns:
    """`async with turns.take(name)` around every operation on a server."""

    def __init__(self) -> None:
        self._locks: weakref.WeakValueDictionary[SERVER_NAME, asyncio.Lock] = weakref.WeakValueDictionary()
        #: The starts of each server: the first one is under way, the others wait for their turn.
        self._starts: dict[SERVER_NAME, list[anyio.CancelScope]] = {}
        #: The servers that start together, in config order. The event of each is set when nobody needs to wait for it.
        self._together: dict[SERVER_NAME, asyncio.Event] = {}
        self._deadline = 0.0

    @property
    def starting(self) -> KeysView[SERVER_NAME]:
        """The servers whose start is under way, or waits for its turn."""
        return self._starts.keys()

    @asynccontextmanager
    async def take(self, name: SERVER_NAME, *, is_start: bool = False) -> AsyncIterator[None]:
        """Wait for the turn of an operation. An operation that is not a start ends the starts before it: they raise
        `ServerNotActiveError`.
        """
        lock = self._locks.setdefault(name, asyncio.Lock())
        if not is_start:
            for start in self._starts.get(name, ()):
                start.cancel()
            async with lock:
                yield
            return
        with anyio.CancelScope() as scope:
            starts = self._starts.setdefault(name, [])
            starts.append(scope)
            try:
                async with lock:
                    yield
            finally:
                starts.remove(scope)
                if not starts:
                    del self._starts[name]
        if scope.cancelled_caught:
            raise ServerNotActiveError(name)

    def interrupt(self, name: SERVER_NAME) -> None:
        """End the start of a server that is under way, if there is one. That start raises `ServerNotActiveError`."""
        if name in self._starts:
            self._starts[name][0].cancel()

    # --- starting together

    def begin(self, names: Iterable[SERVER_NAME], seconds: float) -> None:
        """These servers start together. Each of them waits at most `seconds` for the servers before it."""
        self._together = {name: asyncio.Event() for name in names}
        self._deadline = anyio.current_time() + seconds

    def end(self) -> None:
        for name in self._together:
            self.settle(name)
        self._together = {}

    async def ended(self) -> None:
        """Wait until all servers that start together have settled."""
        for settled in tuple(self._together.values()):
            await settled.wait()

    async def after_these(self) -> None:
        """Wait before another operation until the servers that start together have settled, or until the deadline of
        `begin`.
        """
        with anyio.CancelScope(deadline=self._deadline):
            await self.ended()

    def settle(self, name: SERVER_NAME) -> None:
        """A server runs, has failed, or waits for a person. The other servers need not wait for it any more."""
        if name in self._together:
            self._together[name].set()

    async def wait_for_earlier(self, name: SERVER_NAME) -> None:
        """Wait until the servers before this one in the config have settled, or until the deadline of `begin`."""
        if name in self._together:
            earlier = list(itertools.takewhile(lambda other: other != name, self._together))
            with anyio.CancelScope(deadline=self._deadline):
                for other in earlier:
                    await self._together[other].wait()
