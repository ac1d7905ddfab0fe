"""A uvicorn server that says when it is ready and when it is about to end, and that exits with 0.

uvicorn documents none of the methods that this overrides, `startup`, `shutdown` and `capture_signals`, nor
`handle_exit`; `test_uvicorn_server.py` names them. What we use of its protocols is in `a2c_smcp.web.guarded_http`.
"""

import asyncio
import contextlib
import errno
import signal
import socket
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import uvicorn

from a2c_smcp.web.guarded_http import BoundedConfig, create_server_within

__all__ = ["GracefulServer", "listen"]


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens, or `OSError`. Port 0 means that the system picks one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise OSError(errno.EADDRINUSE, f"another program uses port {port} of {host}") from None
        raise


class GracefulServer(uvicorn.Server):
    """Calls `ready` when it serves requests, and `ending` after a signal, before connections are closed. A second
    signal calls `hurry`, a third one ends at once. SIGHUP calls `hang_up`, if it is given.

    With `signals=False` the command that it is a part of handles signals: set `should_exit` to end it.
    """

    def __init__(
        self,
        config: BoundedConfig,
        *,
        ready: Callable[[], None],
        ending: Callable[[], Awaitable[None]],
        hurry: Callable[[], None] = lambda: None,
        hang_up: Callable[[], None] | None = None,
        signals: bool = True,
    ) -> None:
        super().__init__(config)
        self._handshake_seconds = config.bounds.header_timeout
        self._ready = ready
        self._ending = ending
        self._hurry = hurry
        self._hurried = False
        self._hang_up = hang_up
        self._signals = (signal.SIGINT, signal.SIGTERM) if signals else ()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        # The loop may belong to somebody else, so only the handshakes of this server are limited.
        loop: Any = asyncio.get_running_loop()
        before = loop.create_server
        loop.create_server = create_server_within(loop, self._handshake_seconds)
        try:
            await super().startup(sockets)
        finally:
            loop.create_server = before
        self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._ending()
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        # uvicorn's own method raises the signal again after its shutdown, so that a clean exit has status -15.
        before = {each: signal.signal(each, self.handle_exit) for each in self._signals}
        if self._hang_up is not None and hasattr(signal, "SIGHUP"):  # Windows has none
            before[signal.SIGHUP] = signal.signal(signal.SIGHUP, self._on_hang_up)
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)

    def handle_exit(self, sig: int, frame: Any) -> None:
        if self.should_exit and not self._hurried:
            self._hurried = True
            self._hurry()
        else:
            super().handle_exit(sig, frame)

    def _on_hang_up(self, sig: int, frame: Any) -> None:
        assert self._hang_up is not None
        self._hang_up()
