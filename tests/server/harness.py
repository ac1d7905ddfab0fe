"""Real servers on 127.0.0.1:0 and raw Socket.IO peers, in both colours behind one async face."""

import asyncio
import contextlib
import functools
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import anyio
import anyio.to_thread
import socketio
import uvicorn
from werkzeug.serving import make_server

from a2c_smcp.packet_text import encode_event
from a2c_smcp.packets import SMCPPacket
from a2c_smcp.server import (
    Limits,
    OpenAuthentication,
    SMCPNamespace,
    SyncSMCPNamespace,
    server_options,
    sync_server_options,
)
from a2c_smcp.server.app import create_app
from a2c_smcp.server.auth import AuthenticationProvider, SyncAuthenticationProvider
from a2c_smcp.server.cluster.options import ClusterOptions
from a2c_smcp.server.limits import AddressLimit
from a2c_smcp.server.uvicorn_parts import GuardedConfig
from a2c_smcp.smcp import EVENTS, SMCP_NAMESPACE, Kind

NOTIFICATIONS = [event.name for event in EVENTS.values() if event.kind is Kind.NOTIFICATION]
DEADLINE = 60.0


@dataclass(frozen=True)
class Running:
    url: str
    namespace: Any
    """Its switchboard."""
    sio: Any
    is_mounted: bool = False
    """Whether it is a server of python-socketio, with its bounds: of a POST it takes 16 packets."""

    def url_for(self, number: int) -> str:
        """Where the client of this number in a test connects."""
        return self.url


@dataclass(frozen=True)
class Two(Running):
    """Two processes of one system. The first client of a test, its agent as a rule, is at one; the others are at the
    other.
    """

    other: Running = field(kw_only=True)

    def url_for(self, number: int) -> str:
        return self.other.url if number else self.url

    async def agree(self) -> None:
        """Wait until both know what one of them knows: the other hears of a join a moment later."""
        registries = [namespace.registry for namespace in self.namespace.both]
        latest = max(registry.revision for registry in registries)
        await eventually(lambda: all(registry.revision >= latest for registry in registries))


class BothNamespaces:
    """What the tests look at of the namespaces of two processes."""

    def __init__(self, *namespaces: Any) -> None:
        self._namespaces = namespaces

    @property
    def both(self) -> tuple[Any, ...]:
        return self._namespaces

    @property
    def pending_relays(self) -> int:
        return sum(namespace.pending_relays for namespace in self._namespaces)


class QuietServer(uvicorn.Server):
    """In a thread no signal can be caught, and none needs to be."""

    def install_signal_handlers(self) -> None:
        pass


@contextlib.contextmanager
def async_server(
    auth: AuthenticationProvider, limits: Limits | None = None, port: int = 0, **options: Any
) -> Iterator[Running]:
    app = create_app(auth, limits=limits, **options)
    # A client that stood still for a while must not meet a connection that is just being closed.
    with serving(GuardedConfig(app, timeout_graceful_shutdown=1, timeout_keep_alive=60), port) as url:
        yield Running(url, app.switchboard, app.engine)


@contextlib.contextmanager
def two_servers(
    limits: Limits | None,
    nats_url: str,
    prefix: str,
    auth: Callable[[], AuthenticationProvider] = OpenAuthentication,
    **options: Any,
) -> Iterator[Two]:
    """Two servers that share their offices over NATS. They are in one process here, and know nothing of that."""
    cluster = ClusterOptions((nats_url,), prefix=prefix, keys=(b"the key that these servers share",))
    with (
        async_server(auth(), limits, cluster=cluster, **options) as one,
        async_server(auth(), limits, cluster=cluster, **options) as other,
    ):
        deadline = time.monotonic() + DEADLINE
        while any(len(running.namespace.registry.processes) < 2 for running in (one, other)):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        yield Two(one.url, BothNamespaces(one.namespace, other.namespace), one.sio, other=other)


@contextlib.contextmanager
def serving(config: uvicorn.Config, port: int = 0) -> Iterator[str]:
    listener = socket.create_server(("127.0.0.1", port), backlog=256)
    server = QuietServer(config)
    thread = threading.Thread(target=server.run, args=([listener],), name="uvicorn")
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(DEADLINE)
        assert not thread.is_alive()


@contextlib.contextmanager
def mounted_server(auth: AuthenticationProvider, limits: Limits | None = None, **options: Any) -> Iterator[Running]:
    """Our namespace in an asyncio server of somebody else."""
    limits = limits or Limits()
    namespace = SMCPNamespace(auth, limits=limits)
    sio = socketio.AsyncServer(**server_options(limits.max_message, **options))
    sio.register_namespace(namespace)
    config = uvicorn.Config(
        socketio.ASGIApp(sio),
        log_config=None,
        lifespan="off",
        ws="websockets-sansio",
        timeout_graceful_shutdown=1,
        timeout_keep_alive=60,
    )
    with serving(config) as url:
        yield Running(url, namespace.switchboard, sio, is_mounted=True)


@contextlib.contextmanager
def sync_server(auth: SyncAuthenticationProvider, limits: Limits | None = None, **options: Any) -> Iterator[Running]:
    limits = limits or Limits()
    namespace = SyncSMCPNamespace(auth, limits=limits)
    sio = socketio.Server(async_mode="threading", **sync_server_options(limits.max_message, **options))
    sio.register_namespace(namespace)
    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    web = make_server("127.0.0.1", 0, socketio.WSGIApp(sio), threaded=True)
    thread = threading.Thread(target=web.serve_forever, name="werkzeug")
    thread.start()
    try:
        yield Running(f"http://127.0.0.1:{web.server_port}", namespace.switchboard, sio, is_mounted=True)
    finally:
        web.shutdown()
        thread.join(DEADLINE)
        web.server_close()
        sio.shutdown()


class Peer(Protocol):
    """A raw client of either colour."""

    received: list[tuple[str, Any]]

    async def connect(self, url: str, **options: Any) -> None: ...
    async def call(self, event: str, *args: Any, timeout: float = DEADLINE) -> Any: ...
    async def emit(self, event: str, *args: Any) -> None: ...
    async def disconnect(self) -> None: ...
    async def drop(self) -> None: ...
    def answer(self, event: str, handler: Callable[[Any], Any]) -> None: ...
    @property
    def connected(self) -> bool: ...


def unwrap(args: tuple[Any, ...]) -> Any:
    return args[0] if len(args) == 1 else (args or None)


class AsyncPeer:
    def __init__(self, **options: Any) -> None:
        self.received: list[tuple[str, Any]] = []
        options = {"serializer": SMCPPacket, "reconnection": False} | options
        self.sio = socketio.AsyncClient(websocket_extra_options={"max_msg_size": 0}, **options)
        for name in NOTIFICATIONS:
            self.sio.on(name, self._recorder(name), namespace=SMCP_NAMESPACE)

    def _recorder(self, name: str) -> Any:
        async def record(data: Any = None) -> None:
            self.received.append((name, data))

        return record

    def answer(self, event: str, handler: Callable[[Any], Any]) -> None:
        async def respond(data: Any) -> Any:
            result = handler(data)
            return await result if asyncio.iscoroutine(result) else result

        self.sio.on(event, respond, namespace=SMCP_NAMESPACE)

    async def connect(self, url: str, **options: Any) -> None:
        await self.sio.connect(url, namespaces=[SMCP_NAMESPACE], wait_timeout=DEADLINE, **options)

    async def call(self, event: str, *args: Any, timeout: float = DEADLINE) -> Any:
        answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def take(*reply: Any) -> None:
            if not answered.done():  # whoever asked may have given up
                answered.set_result(unwrap(reply))

        await self.sio.emit(event, args, namespace=SMCP_NAMESPACE, callback=take)
        with anyio.fail_after(timeout):
            return await answered

    async def emit(self, event: str, *args: Any) -> None:
        await self.sio.emit(event, args, namespace=SMCP_NAMESPACE)

    async def disconnect(self) -> None:
        await self.sio.disconnect()
        await self.sio.shutdown()
        if (http := self.sio.eio.http) is not None:
            await http.close()

    async def drop(self) -> None:
        """Break the transport, as a cut cable does; no word to the server."""
        if self.sio.eio.current_transport == "websocket":
            await self.sio.eio.ws.close()
        else:
            await self.sio.eio.http.close()

    @property
    def connected(self) -> bool:
        return SMCP_NAMESPACE in self.sio.namespaces and self.sio.eio.state == "connected"


class SyncPeer:
    def __init__(self, **options: Any) -> None:
        self.received: list[tuple[str, Any]] = []
        options = {"serializer": SMCPPacket, "reconnection": False} | options
        self.sio = socketio.Client(**options)
        for name in NOTIFICATIONS:
            self.sio.on(name, self._recorder(name), namespace=SMCP_NAMESPACE)

    def _recorder(self, name: str) -> Any:
        return lambda data=None: self.received.append((name, data))

    def answer(self, event: str, handler: Callable[[Any], Any]) -> None:
        def respond(data: Any) -> Any:
            result = handler(data)
            if asyncio.iscoroutine(result):

                async def run() -> Any:
                    return await result

                return anyio.run(run)
            return result

        self.sio.on(event, respond, namespace=SMCP_NAMESPACE)

    async def connect(self, url: str, **options: Any) -> None:
        await anyio.to_thread.run_sync(
            lambda: self.sio.connect(url, namespaces=[SMCP_NAMESPACE], wait_timeout=DEADLINE, **options)
        )

    async def call(self, event: str, *args: Any, timeout: float = DEADLINE) -> Any:
        def blocking() -> Any:
            answered = threading.Event()
            replies: list[Any] = []

            def on_reply(*reply: Any) -> None:
                replies.append(unwrap(reply))
                answered.set()

            self.sio.emit(event, args, namespace=SMCP_NAMESPACE, callback=on_reply)
            if not answered.wait(timeout):
                raise TimeoutError
            return replies[0]

        return await anyio.to_thread.run_sync(blocking)

    async def emit(self, event: str, *args: Any) -> None:
        await anyio.to_thread.run_sync(lambda: self.sio.emit(event, args, namespace=SMCP_NAMESPACE))

    async def disconnect(self) -> None:
        if (ws := self.sio.eio.ws) is not None:
            # A threaded server ends the connection before it answers the close frame; the client waits 3 s for that.
            ws.close = functools.partial(ws.close, timeout=0)
        await anyio.to_thread.run_sync(self.sio.disconnect)
        await anyio.to_thread.run_sync(self.sio.shutdown)

    async def drop(self) -> None:
        if self.sio.eio.current_transport == "websocket":
            await anyio.to_thread.run_sync(self.sio.eio.ws.shutdown)
        else:
            self.sio.eio.http.close()

    @property
    def connected(self) -> bool:
        return SMCP_NAMESPACE in self.sio.namespaces and self.sio.eio.state == "connected"


async def eventually(condition: Callable[[], Any], seconds: float = DEADLINE) -> Any:
    """Wait until something is true, under a deadline."""
    with anyio.fail_after(seconds):
        while not (value := condition()):  # noqa: ASYNC110 - the condition may change in another thread or process
            await anyio.sleep(0.005)
    return value


def say(server: Running, sid: str, event: str, data: Any) -> None:
    """Let a server of ours tell one of its clients something."""
    line = server.namespace._clients[sid].line
    line._connection._loop.call_soon_threadsafe(line.send, encode_event(SMCP_NAMESPACE, event, data))


def counts_nobody(addresses: AddressLimit) -> bool:
    """Whether no connection has a place."""
    return not addresses._joined and not addresses._knocked


def heard(peer: Peer, event: str) -> list[Any]:
    return [data for name, data in list(peer.received) if name == event]


__all__ = [
    "DEADLINE",
    "AsyncPeer",
    "Peer",
    "Running",
    "SMCPNamespace",
    "SyncPeer",
    "Two",
    "async_server",
    "counts_nobody",
    "eventually",
    "heard",
    "mounted_server",
    "say",
    "serving",
    "sync_server",
    "two_servers",
]
