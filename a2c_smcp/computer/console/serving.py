"""Runs a console beside a Computer: its socket, its web server, its links, and a stop in bounded time."""

import asyncio
import socket
import ssl
from dataclasses import replace
from pathlib import Path
from typing import Final

import anyio
from anyio.abc import TaskStatus

from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.console.address import ConsoleAddress
from a2c_smcp.computer.console.app import ConsoleApp
from a2c_smcp.computer.console.entrance import Advice, Door
from a2c_smcp.computer.console.memory import ConsoleMemory
from a2c_smcp.computer.home import ComputerHome
from a2c_smcp.computer.watching.events import CallProgressed, EventStream
from a2c_smcp.web.connection_places import ConnectionPlaces
from a2c_smcp.web.http_surface import STRANGERS, SurfaceConfig
from a2c_smcp.web.uvicorn_server import GracefulServer, listen

__all__ = ["Console", "ConsoleError"]

#: How long a stop waits for requests that are being answered.
_CLOSE_SECONDS: Final = 2


class ConsoleError(RuntimeError):
    """A console cannot be opened. The message says why and what to do."""


class Console:
    """The console of one Computer. Start `run` in a task group; then `link` gives a link for a browser.

    A host that others reach needs `cert`, or this raises `ConsoleError`. `key` may be in the file of `cert`. `memory`
    keeps the port and the remembered browsers between runs; the caller closes it. `advice` says how a person without a
    link gets one. `home` is what a page may change. Without it, a server that is added stays only until the computer
    stops, and no office can be joined.
    """

    def __init__(
        self,
        computer: Computer,
        address: ConsoleAddress,
        *,
        cert: Path | None = None,
        key: Path | None = None,
        memory: ConsoleMemory | None = None,
        advice: Advice = Advice.PROGRAM,
        home: ComputerHome | None = None,
    ) -> None:
        if cert is None and not address.is_local:
            raise ConsoleError(f"the console on {address.host} needs TLS: give --console-cert, or leave out the host")
        self._computer = computer
        self._address = address
        self._cert, self._key = cert, key
        self._memory = memory
        self._advice = advice
        self.notice: str | None = None
        """What to tell the person after `listen`, if anything."""
        self._home = home
        self._listener: socket.socket | None = None
        self._app: ConsoleApp | None = None

    @property
    def is_local(self) -> bool:
        """Whether only this machine reaches it."""
        return self._address.is_local

    def listen(self) -> None:
        """Take the port, before `run` does so. Raises `ConsoleError` if the port or the certificate cannot be used."""
        if self._cert is not None:
            try:
                ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self._cert, self._key)
            except (OSError, ssl.SSLError) as error:
                raise ConsoleError(f"the console's certificate cannot be used: {error}") from None
        try:
            self._listener = self._listen_as_before() or listen(self._address.host, self._address.port)
        except OSError as error:
            raise ConsoleError(f"the console cannot listen on {self._address.netloc}: {error}") from None
        if self.notice is None:
            self._remember_port(self._listener.getsockname()[1])

    def _listen_as_before(self) -> socket.socket | None:
        """Listen on the port of the last run, if any port will do: the keys of browsers belong to it."""
        if self._memory is None or self._address.port or self._memory.found.host != self._address.host:
            return None
        port = self._memory.found.port
        try:
            return listen(self._address.host, port)
        except OSError as error:
            self.notice = (
                f"the console has a new port, because {port} cannot be used ({error.strerror}): "
                "remembered browsers have to be let in again"
            )
            return None

    def _remember_port(self, port: int) -> None:
        if self._memory is None:
            return
        try:
            self._memory.keep(replace(self._memory.found, host=self._address.host, port=port))
        except OSError as error:
            self.notice = f"the console's port is not remembered: {error.strerror}"

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled. It has started when the page can be opened. Raises like `listen`."""
        if self._listener is None:
            self.listen()
        assert self._listener is not None
        tls = self._cert is not None
        with self._listener as listener:
            address = ConsoleAddress(self._address.host, listener.getsockname()[1])
            base = f"{'https' if tls else 'http'}://{address.netloc}:{address.port}"
            door = Door(base, address.host, address.port, address.is_local, self._advice)
            origins = address.origins(tls=tls)
            app = self._app = ConsoleApp(self._computer, origins, door, self._memory, home=self._home)
            ready = anyio.Event()
            server = GracefulServer(self._config(app), ready=ready.set, ending=app.api.end_streams, signals=False)
            # Not in the task group: a cancelled server would cut its connections instead of closing them.
            serving = asyncio.create_task(server.serve([listener]), name="console")
            try:
                async with self._progress_wanted(), anyio.create_task_group() as app.api.calls.tasks:
                    await ready.wait()
                    task_status.started()
                    await asyncio.wait({serving})
            finally:
                self._app = self._listener = None
                server.should_exit = True
                with anyio.CancelScope(shield=True):
                    await asyncio.wait({serving})
            serving.result()

    def _progress_wanted(self) -> EventStream:
        """A stream that makes calls ask for progress even while no page is open: a page that is opened later can show
        it. Nobody reads the stream, so it keeps one event at most.
        """
        return self._computer.events(1, kinds={CallProgressed})

    def link(self) -> str:
        """A link that works once."""
        if self._app is None:
            raise ConsoleError("the console is not running")
        return self._app.entrance.new_link()

    def _config(self, app: ConsoleApp) -> SurfaceConfig:
        return SurfaceConfig(
            app,
            # 128 for pages with a session: there are 16 sessions, and a browser opens six connections for each.
            places=ConnectionPlaces(STRANGERS, 128),
            lifespan="off",
            timeout_graceful_shutdown=_CLOSE_SECONDS,
            ssl_certfile=self._cert,
            ssl_keyfile=self._key,
        )
