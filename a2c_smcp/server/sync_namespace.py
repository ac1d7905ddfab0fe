"""Our namespace for a threaded python-socketio server (Flask, Django, werkzeug), on what that library documents.

It has no decisions and no locks of its own: the switchboard runs on an event loop in one thread, and the threads of the
library hand it what comes. A thread that brings a request waits for its answer.
"""

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import socketio

from a2c_smcp.server.auth import Credentials, SyncAuthenticationProvider
from a2c_smcp.server.boundary import Observer
from a2c_smcp.server.limits import Limits
from a2c_smcp.server.mounted import MountedLine, connection_refused, newcomer_of, served
from a2c_smcp.server.offices import Grant
from a2c_smcp.server.port import NotLetInError
from a2c_smcp.server.registry import Registry
from a2c_smcp.server.switchboard import Switchboard
from a2c_smcp.smcp import SMCP_NAMESPACE

if TYPE_CHECKING:
    from a2c_smcp.record.writer import RecordWriter

__all__ = ["SyncSMCPNamespace"]

logger = logging.getLogger(__name__)

#: What `a2c server` limits and this server cannot, because the web server and the library are somebody else's.
_WITHOUT: Final = (
    "the threaded server has no limits for half-open connections, slow headers and requests that nobody reads: its web "
    "server must end those; a2c server has such limits, see docs/limits.md"
)
#: Seconds after which a new session is looked at: the library reports no end of a connection while it lets it in.
_LOOK: Final = 1.0


class _InThreads:
    """Asks a provider that blocks."""

    def __init__(self, auth: SyncAuthenticationProvider) -> None:
        self._auth = auth

    async def authenticate(self, credentials: Credentials) -> Grant:
        return await asyncio.to_thread(self._auth.authenticate, credentials)


class SyncSMCPNamespace(socketio.Namespace):  # type: ignore[misc]  # has no types
    """The server role on a threaded `socketio.Server`: `sio.register_namespace(SyncSMCPNamespace(auth))`.

    Create the server with `socketio.Server(async_mode="threading", **sync_server_options(...))` for the protocol's
    message size, and serve it with a WSGI server that has threads. Every request that waits has a thread. Several
    processes cannot share offices: that needs `a2c server`. Speed and bounds are the library's, see `docs/limits.md`.
    """

    def __init__(
        self,
        auth: SyncAuthenticationProvider,
        *,
        limits: Limits | None = None,
        observer: Observer | None = None,
        namespace: str = SMCP_NAMESPACE,
    ) -> None:
        super().__init__(namespace)
        self.switchboard = Switchboard(_InThreads(auth), limits=limits, observer=observer, namespace=namespace)
        self._lines: dict[str, _SyncLine] = {}
        self._starting = threading.Lock()
        logger.warning(_WITHOUT)

    @cached_property
    def _loop(self) -> asyncio.AbstractEventLoop:
        loop = asyncio.new_event_loop()
        # It ends with the process, as the library's own threads do.
        threading.Thread(target=loop.run_forever, name="a2c-offices", daemon=True).start()
        return loop

    def trigger_event(self, event: Any, sid: str, *args: Any) -> Any:
        """Called by python-socketio."""
        # A client can send events with these two names, too. An environment of its own is not that of its connection.
        if event == "connect" and args and args[0] is self.server.get_environ(sid, self.namespace):
            return self._connect(sid, *args)
        line = self._lines.get(sid)
        if line is None:
            return None
        if event == "disconnect":
            # The library may say so in the thread of the loop, which must not wait for itself.
            self._loop.call_soon_threadsafe(self._ended, line, str(args[0]) if args else "")
            self.server.disconnect(sid, self.namespace)  # does nothing if it is ending already
            return None
        replied: Future[Any] = Future()
        self._loop.call_soon_threadsafe(self._serve, line, event, args, replied)
        # The switchboard answers everything: it has a deadline for each request, and the end of a line ends its own.
        return replied.result()

    def _serve(self, line: "_SyncLine", event: Any, args: tuple[Any, ...], replied: "Future[Any]") -> None:
        def reply(value: Any) -> None:
            if not replied.done():
                replied.set_result(value)

        if self._lines.get(line.sid) is line:
            served(self.switchboard, line, event, args, reply)
        else:
            reply(None)

    def _connect(self, sid: str, environ: dict[str, Any], auth: Any = None) -> None:
        with self._starting:
            loop = self._loop
        try:
            asyncio.run_coroutine_threadsafe(self._let_in(sid, environ, auth), loop).result()
        except NotLetInError as error:
            raise connection_refused(error) from None

    async def _let_in(self, sid: str, environ: dict[str, Any], auth: Any) -> None:
        newcomer = newcomer_of(environ)
        line = _SyncLine(self, sid, newcomer.address)
        try:
            await self.switchboard.connect(line, newcomer, auth)
        except NotLetInError:
            line.ended()
            raise
        self._lines[sid] = line
        self._loop.call_later(_LOOK, self._look, line)

    def _look(self, line: "_SyncLine") -> None:
        if line.is_open and self.server.get_environ(line.sid, self.namespace) is None:
            self._ended(line, "transport close")

    def _ended(self, line: "_SyncLine", reason: str) -> None:
        if self._lines.pop(line.sid, None) is not None:
            self.switchboard.disconnected(line, line.reason or reason)
            line.ended()

    def _in_loop(self, work: Callable[..., None], *args: Any) -> None:
        """Do this in the thread of the switchboard."""
        self._loop.call_soon_threadsafe(work, *args)

    # --- what operators and the process ask

    @property
    def registry(self) -> Registry:
        """Who is in which office."""
        return self.switchboard.registry

    @property
    def limits(self) -> Limits:
        """What it obeys. `change_limits` changes it."""
        return self.switchboard.limits

    @property
    def pending_relays(self) -> int:
        """How many requests of agents wait for the answer of a computer."""
        return self.switchboard.pending_relays

    def record_into(self, record: "RecordWriter") -> None:
        """Record from now on who comes, joins, leaves and calls. The caller closes the record."""
        self.switchboard.record_into(record)

    def change_limits(self, limits: Limits) -> None:
        """Obey these limits from now on. Those of connections are python-socketio's."""
        with self._starting:
            self._in_loop(self.switchboard.change_limits, limits)


class _SyncLine(MountedLine):
    """Emits in the thread of the switchboard: the library's queues take packets of any thread, and do not wait."""

    def __init__(self, namespace: SyncSMCPNamespace, sid: str, address: str) -> None:
        super().__init__(sid, address, namespace.switchboard.admission)
        self._namespace = namespace

    def emit(self, event: str, args: tuple[Any, ...], on_ack: Callable[..., None] | None = None) -> None:
        in_loop = self._namespace._in_loop
        callback = None if on_ack is None else lambda *said: in_loop(on_ack, *said)
        try:
            self._namespace.emit(event, args, to=self.sid, callback=callback)
        except Exception:
            # The library may raise anything. The next message is sent all the same.
            logger.exception("python-socketio failed to send to %s", self.sid)

    def resolve(self, reply: Callable[[Any], None], value: Any) -> None:
        reply(value)

    def end(self) -> None:
        # It waits until the queue is written.
        server = self._namespace.server
        server.start_background_task(server.disconnect, self.sid, self._namespace.namespace)
