"""Event loops for commands. They end when they are told to, without waiting for threads that look up names.

A name server that does not answer can hold a lookup for half a minute, and a lookup cannot be cancelled. asyncio waits
for the thread of the lookup when the loop closes, uvloop when the process ends.
"""

import asyncio
import socket
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

__all__ = ["command_loop", "fast_command_loop"]

if TYPE_CHECKING:
    _Loop = asyncio.AbstractEventLoop
else:
    _Loop = object


class _Lookups(_Loop):
    """Replaces the loop's `getaddrinfo`, which all libraries use to look up names."""

    async def getaddrinfo(self, host: Any, port: Any, **hints: Any) -> Any:
        found: asyncio.Future[Any] = self.create_future()

        def tell(result: Any) -> None:
            if found.done():
                return  # the caller no longer waits for it
            if isinstance(result, Exception):
                found.set_exception(result)
            else:
                found.set_result(result)

        def look_up() -> None:
            result: Any
            try:
                result = socket.getaddrinfo(host, port, **hints)
            except Exception as error:  # any error belongs to the caller
                result = error
            with suppress(RuntimeError):  # the loop is closed
                self.call_soon_threadsafe(tell, result)

        threading.Thread(target=look_up, name="a2c name lookup", daemon=True).start()
        return await found


def command_loop() -> asyncio.AbstractEventLoop:
    """The standard library's loop."""
    if sys.platform == "win32":
        return _with_lookups(asyncio.ProactorEventLoop)
    return _with_lookups(asyncio.SelectorEventLoop)


def fast_command_loop() -> asyncio.AbstractEventLoop:
    """uvloop's loop, if it is installed."""
    try:
        import uvloop
    except ImportError:
        return command_loop()
    return _with_lookups(uvloop.Loop)


def _with_lookups(base: Any) -> asyncio.AbstractEventLoop:
    loop: asyncio.AbstractEventLoop = type("CommandLoop", (_Lookups, base), {})()
    return loop
