"""Our namespace for a python-socketio server that somebody has already, on what that library documents.

`a2c server` and `create_app` do not use it: they have connections of their own, which are faster and bounded.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, Final

import socketio

from a2c_smcp.server.auth import AuthenticationProvider
from a2c_smcp.server.boundary import Observer
from a2c_smcp.server.clients import Client
from a2c_smcp.server.limits import Limits
from a2c_smcp.server.mounted import MountedLine, connection_refused, newcomer_of, served
from a2c_smcp.server.offices import Grant
from a2c_smcp.server.port import KICKED, NotLetInError
from a2c_smcp.server.registry import Registry
from a2c_smcp.server.switchboard import Switchboard
from a2c_smcp.smcp import SMCP_NAMESPACE

if TYPE_CHECKING:
    from a2c_smcp.record.writer import RecordWriter

__all__ = ["SMCPNamespace"]

logger = logging.getLogger(__name__)

#: Seconds after which a new session is looked at: the library reports no end of a connection while it lets it in.
_LOOK: Final = 1.0


class SMCPNamespace(socketio.AsyncNamespace):  # type: ignore[misc]  # has no types
    """The server role on a `socketio.AsyncServer`: `sio.register_namespace(SMCPNamespace(auth))`.

    Create the server with `socketio.AsyncServer(**server_options(...))` for the protocol's message size. Before the
    process stops, await `drain`. The offices are as in `a2c server`. Speed and bounds are the library's, see
    `docs/limits.md`; `create_app` has ours.
    """

    def __init__(
        self,
        auth: AuthenticationProvider,
        *,
        limits: Limits | None = None,
        registry: Registry | None = None,
        observer: Observer | None = None,
        namespace: str = SMCP_NAMESPACE,
    ) -> None:
        super().__init__(namespace)
        self.switchboard = Switchboard(auth, limits=limits, registry=registry, observer=observer, namespace=namespace)
        self._lines: dict[str, _AsyncLine] = {}

    async def trigger_event(self, event: Any, sid: str, *args: Any) -> Any:
        """Called by python-socketio."""
        # A client can send events with these two names, too. An environment of its own is not that of its connection.
        if event == "connect" and args and args[0] is self.server.get_environ(sid, self.namespace):
            return await self._connect(sid, *args)
        line = self._lines.get(sid)
        if line is None:
            return None
        if event == "disconnect":
            self._ended(line, str(args[0]) if args else "")
            await self.server.disconnect(sid, self.namespace)  # does nothing if it is ending already
            return None
        reply: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        served(self.switchboard, line, event, args, lambda value: None if reply.done() else reply.set_result(value))
        return await reply

    async def _connect(self, sid: str, environ: dict[str, Any], auth: Any = None) -> None:
        newcomer = newcomer_of(environ)
        line = _AsyncLine(self, sid, newcomer.address)
        try:
            await self.switchboard.connect(line, newcomer, auth)
        except NotLetInError as error:
            line.ended()
            raise connection_refused(error) from None
        self._lines[sid] = line
        asyncio.get_running_loop().call_later(_LOOK, self._look, line)

    def _look(self, line: "_AsyncLine") -> None:
        if line.is_open and self.server.get_environ(line.sid, self.namespace) is None:
            self._ended(line, "transport close")

    def _ended(self, line: "_AsyncLine", reason: str) -> None:
        if self._lines.pop(line.sid, None) is not None:
            self.switchboard.disconnected(line, line.reason or reason)
            line.ended()

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

    @property
    def sessions(self) -> int:
        """How many clients are connected."""
        return self.switchboard.sessions

    @property
    def clients(self) -> Collection[Client]:
        """The sessions of this process."""
        return self.switchboard.clients

    def record_into(self, record: "RecordWriter") -> None:
        """Record from now on who comes, joins, leaves and calls. The caller closes the record."""
        self.switchboard.record_into(record)

    def change_limits(self, limits: Limits) -> None:
        """Obey these limits from now on. Those of connections are python-socketio's."""
        self.switchboard.change_limits(limits)

    async def kick(self, sid: str, reason: str = KICKED) -> bool:
        """End the connection of a session. Returns whether it was here."""
        return self.switchboard.kick(sid, reason)

    async def check_grants(self, current: Callable[[Grant], Grant | None]) -> int:
        """Apply what the keys of all sessions allow now; `current` gives `None` for a key that is not accepted any
        more. Ends the sessions that are not allowed any more where they are, and returns how many.
        """
        return await self.switchboard.check_grants(current)

    async def move_clients(self, seconds: float, announce: float) -> None:
        """Tell all clients to connect to another process, within `announce` seconds, and wait until they have gone,
        for this long at most. Meanwhile everything is served as before.
        """
        await self.switchboard.move_clients(seconds, announce)

    async def drain(self, seconds: float) -> None:
        """Refuse new requests from now on, and wait until the running ones are answered, for this long at most."""
        await self.switchboard.drain(seconds)


class _AsyncLine(MountedLine):
    """Has a task while something waits to be sent: the library's `emit` must be awaited."""

    def __init__(self, namespace: SMCPNamespace, sid: str, address: str) -> None:
        super().__init__(sid, address, namespace.switchboard.admission)
        self._namespace = namespace
        self._steps: deque[tuple[Callable[..., Any], tuple[Any, ...]]] = deque()
        self._pump: asyncio.Task[None] | None = None

    def emit(self, event: str, args: tuple[Any, ...], on_ack: Callable[..., None] | None = None) -> None:
        self._add(self._emit, event, args, on_ack)

    async def _emit(self, event: str, args: tuple[Any, ...], on_ack: Callable[..., None] | None) -> None:
        await self._namespace.emit(event, args, to=self.sid, callback=on_ack)

    def resolve(self, reply: Callable[[Any], None], value: Any) -> None:
        self._add(self._resolve, reply, value)

    async def _resolve(self, reply: Callable[[Any], None], value: Any) -> None:
        reply(value)
        for _ in range(3):  # until the library has sent the answer
            await asyncio.sleep(0)

    def end(self) -> None:
        self._add(self._namespace.server.disconnect, self.sid, self._namespace.namespace)

    def _add(self, step: Callable[..., Any], *args: Any) -> None:
        self._steps.append((step, args))
        if self._pump is None:
            self._pump = asyncio.create_task(self._run())

    async def _run(self) -> None:
        while self._steps:
            step, args = self._steps.popleft()
            try:
                await step(*args)
            except Exception:
                # The library may raise anything. The next message is sent all the same.
                logger.exception("python-socketio failed to send to %s", self.sid)
        self._pump = None
