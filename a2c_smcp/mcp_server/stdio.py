"""A `ContextServer` over stdin and stdout, which ends when the client closes them or a signal says stop."""

import asyncio
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, cast

import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from a2c_smcp.mcp_server.stdio_pipes import are_pipes, piped

__all__ = ["serve"]


async def serve(server: "Server[Any]") -> None:
    """Serve the client at the other end of stdin and stdout. SIGINT and SIGTERM stop it; a second one kills it."""
    options = server.create_initialization_options()
    with anyio.CancelScope() as scope, _stopping(scope):
        if are_pipes():
            async with piped() as (incoming, outgoing):
                await server.run(incoming, outgoing, options)
            return
        with _stdin() as lines:
            # mcp only iterates over the lines of the file.
            stdin = cast("anyio.AsyncFile[str]", lines)
            async with stdio_server(stdin=stdin) as (first, second):
                await server.run(first, second, options)


class _Lines:
    """The lines of a pipe, read by a thread of its own. The exit of the process does not wait for that thread.

    mcp reads stdin in a thread that must return before the server can end. It returns only when a line or the end
    arrives, so Ctrl-C in a terminal would do nothing.
    """

    def __init__(self, pipe: BinaryIO) -> None:
        self._pipe = pipe
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[bytes] = asyncio.Queue(1)
        threading.Thread(target=self._read, name="stdin", daemon=True).start()

    def __aiter__(self) -> "_Lines":
        return self

    async def __anext__(self) -> str:
        if not (line := await self._queue.get()):
            raise StopAsyncIteration
        return line.decode("utf-8", "replace")

    def _read(self) -> None:
        # When the loop has ended, nobody needs the lines.
        with suppress(RuntimeError, asyncio.CancelledError):
            while True:
                try:
                    line = self._pipe.readline()
                except OSError:
                    line = b""
                asyncio.run_coroutine_threadsafe(self._queue.put(line), self._loop).result()
                if not line:
                    return


@contextmanager
def _stdin() -> Iterator[_Lines]:
    """The lines of stdin. Meanwhile tools and their child processes see an empty stdin."""
    private = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    try:
        # Never closed by us: the thread may still read from it when the process ends.
        yield _Lines(os.fdopen(private, "rb", closefd=False))
    finally:
        os.dup2(private, 0)


@contextmanager
def _stopping(scope: anyio.CancelScope) -> Iterator[None]:
    """Cancel the scope at the first signal. Only the main thread gets signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()

    def stop(signum: int, frame: object) -> None:
        signal.signal(signum, signal.SIG_DFL)
        loop.call_soon_threadsafe(scope.cancel)

    before = {each: signal.signal(each, stop) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
