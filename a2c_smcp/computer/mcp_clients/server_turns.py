"""Who may work on which MCP server now: one operation on a server at a time, and starts together in config order.

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
        #: The servers that start together, in config order, and whether each of them is still to be waited for.
        self._together: dict[SERVER_NAME, asyncio.Event] = {}
        self._deadline = 0.0

    @property
    def starting(self) -> KeysView[SERVER_NAME]:
        """The servers that are being started now, or when their turn comes."""
        return self._starts.keys()

    @asynccontextmanager
    async def take(self, name: SERVER_NAME, *, is_start: bool = False) -> AsyncIterator[None]:
        """One operation on a server at a time; one that stops it ends the starts that it would have to wait for, which
        raise `ServerNotActiveError`.
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
        """End the start of a server that is under way, if there is one: it raises `ServerNotActiveError`."""
        if name in self._starts:
            self._starts[name][0].cancel()

    # --- starting together

    def begin(self, names: Iterable[SERVER_NAME], seconds: float) -> None:
        """These start together from now on; a later one waits so long at most for those before it."""
        self._together = {name: asyncio.Event() for name in names}
        self._deadline = anyio.current_time() + seconds

    def end(self) -> None:
        for name in self._together:
            self.settle(name)
        self._together = {}

    async def ended(self) -> None:
        """Wait until each server that starts together with others has settled."""
        for settled in tuple(self._together.values()):
            await settled.wait()

    async def after_these(self) -> None:
        """Wait for them before an operation that comes later, no longer than those that start together wait."""
        with anyio.CancelScope(deadline=self._deadline):
            await self.ended()

    def settle(self, name: SERVER_NAME) -> None:
        """A server that may start together with others runs, never will, or waits for a person: go on without it."""
        if name in self._together:
            self._together[name].set()

    async def wait_for_earlier(self, name: SERVER_NAME) -> None:
        """Wait for those before this one in the config, as long as is reasonable."""
        if name in self._together:
            earlier = list(itertools.takewhile(lambda other: other != name, self._together))
            with anyio.CancelScope(deadline=self._deadline):
                for other in earlier:
                    await self._together[other].wait()
