"""The shells with real sockets: npm's client, python-socketio's, and peers that no library would be."""

import asyncio
import json
import re
import shutil
import socket
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
import socketio

from a2c_smcp.engine.bounds import EngineBounds
from a2c_smcp.engine.connection import EngineConnection
from a2c_smcp.engine.events import BadPacket, Said, SessionEnded
from tests.engine.echo import SocketEcho, config
from tests.server.harness import eventually, serving
from tests.server.raw import (
    BINARY,
    PING,
    connect,
    frame,
    frame_header,
    is_closed,
    raw_websocket,
    receive_until,
    send_text,
    upgrade,
)

ROOT = Path(__file__).parents[2]
PACKAGES = ROOT / ".node-socketio" / "node_modules"
BOUNDS = EngineBounds(max_message=1_000_000, first_messages=1000, ping_interval=30, ping_timeout=30, connect_timeout=20)


class Watched(SocketEcho):
    """Remembers what became of its connections."""

    def __init__(self) -> None:
        self.connections: list[EngineConnection] = []
        self.noted: list[str] = []
        self.gone: list[str] = []
        self.heard = 0

    def opened(self, connection: EngineConnection) -> None:
        self.connections.append(connection)

    def said(self, connection: EngineConnection, event: Said) -> None:
        self.heard += 1
        super().said(connection, event)

    def noticed(self, connection: EngineConnection, event: BadPacket | SessionEnded) -> None:
        self.noted.append(event.why)

    def left(self, connection: EngineConnection, namespace: str, reason: str) -> None:
        self.gone.append(f"{namespace} {reason}")


@contextmanager
def watched(bounds: EngineBounds = BOUNDS, **options: Any) -> Iterator[tuple[str, Watched]]:
    application = Watched()
    options = {"timeout_graceful_shutdown": 1, **options}
    with serving(config(application, "socket.io", bounds, **options)) as url:
        yield url, application


@pytest.fixture(params=["direct", "asgi"])
def server(request: pytest.FixtureRequest) -> Iterator[tuple[str, Watched]]:
    """Websockets that are taken over, and such that come as messages of ASGI."""
    options: dict[str, Any] = {} if request.param == "direct" else {"ws": "websockets-sansio"}
    with watched(**options) as running:
        yield running


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm's client needs npm")
@pytest.mark.parametrize("transports", ["websocket", "polling", "polling,websocket"])
async def test_the_client_from_npm_connects_asks_and_comes_back(server: tuple[str, Watched], transports: str) -> None:
    node = shutil.which("node")
    assert node
    assert (PACKAGES.parent / ".ready").exists(), ".node-socketio is missing: run `make test`, which sets it up"
    command = [node, str(Path(__file__).with_name("peer.cjs")), str(PACKAGES), server[0], transports]
    with anyio.fail_after(100):
        done = await anyio.run_process(command, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert json.loads(done.stdout) == {
        "auth": {"token": "123"},
        "transport": transports.rpartition(",")[2],
        "back": [1, "ü", {"3": [True]}],
        "ack": [1, "2"],
        "many": True,
        "large": True,
        "custom": {"token": "123"},
        "same": True,
        "nowhere": "Invalid namespace",
        "left": "io server disconnect",
        "lost": "transport close" if transports != "polling" else "transport error",
        "again": True,
        "after": "after",
    }


@pytest.mark.parametrize("transports", [["websocket"], ["polling"], ["polling", "websocket"]], ids="-".join)
async def test_python_socketios_client_connects_and_asks(server: tuple[str, Watched], transports: list[str]) -> None:
    client = socketio.AsyncClient(reconnection=False)
    said: list[Any] = []
    client.on("message-back", lambda *args: said.append(args))
    await client.connect(server[0], transports=transports, namespaces=["/"], auth={"token": "1"})
    assert await client.call("message-with-ack", ("a", 1), timeout=20) == ("a", 1)
    await asyncio.gather(*(client.emit("message", number) for number in range(100)))
    await eventually(lambda: len(said) == 100)
    assert [number for (number,) in said] == list(range(100))
    await client.disconnect()
    await client.shutdown()
    await eventually(lambda: server[1].gone)
    assert server[1].gone in (["/ client disconnect"], ["/ transport close"])


# --- peers that no library would be


def entered(url: str, held: ExitStack) -> socket.socket:
    sock = held.enter_context(raw_websocket(url))
    send_text(sock, "40")
    receive_until(sock, b'42["auth"')
    return sock


async def test_nine_packets_that_do_not_decode_are_forgiven_and_ten_are_not(server: tuple[str, Watched]) -> None:
    url, application = server

    def blocking() -> None:
        with ExitStack() as held:
            sock = entered(url, held)
            sock.sendall(frame(b"x") * 4 + frame(b"42{}") * 4 + frame(b"\0", BINARY))
            send_text(sock, '427["message-with-ack",7]')
            receive_until(sock, b"437[7]")
            send_text(sock, "4")
            assert is_closed(sock)

    await anyio.to_thread.run_sync(blocking)
    await eventually(lambda: application.gone == ["/ transport error"])
    assert len(application.noted) == 10


async def test_a_message_that_is_too_large_is_refused_by_its_header_and_after_the_key_it_is_not() -> None:
    def blocking(url: str, application: Watched) -> None:
        with ExitStack() as held:
            stranger = held.enter_context(raw_websocket(url))
            receive_until(stranger, b'"sid"')
            stranger.sendall(frame_header(1001))
            assert is_closed(stranger)
            member = entered(url, held)
            text = b'421["message-with-ack","%b"]' % (b"x" * 900_000)
            member.sendall(frame(text[:400_000]).replace(b"\x81", b"\x01", 1) + frame(text[400_000:], 0))
            receive_until(member, b"431[", b'x"]')
            member.sendall(frame_header(1_000_001))
            assert is_closed(member)

    with watched() as (url, application):
        await anyio.to_thread.run_sync(blocking, url, application)
        await eventually(lambda: application.gone == ["/ message too large"])
        assert all(re.search("more than (1000|1000000) bytes", why) for why in application.noted)


async def test_what_comes_while_a_client_is_let_in_waits_and_is_taken_in_order() -> None:
    class Slow(Watched):
        async def knock(
            self, connection: EngineConnection, namespace: str, data: Mapping[str, Any] | None
        ) -> Mapping[str, Any]:
            await asyncio.sleep(0.3)
            return await super().knock(connection, namespace, data)

    def blocking(url: str) -> None:
        with raw_websocket(url) as sock:
            sock.sendall(frame(b"40") + b"".join(frame(b'42%d["message-with-ack",1]' % n) for n in range(100)))
            got = receive_until(sock, b"4399[1]")
            assert got.index(b"40{") < got.index(b'42["auth"') < got.index(b"430[1]") < got.index(b"4350[1]")

    with serving(config(Slow(), "socket.io", BOUNDS, timeout_graceful_shutdown=1)) as url:
        await anyio.to_thread.run_sync(blocking, url)


async def test_pings_are_answered_and_a_peer_that_does_not_read_is_cut_off(server: tuple[str, Watched]) -> None:
    url, application = server

    def blocking() -> None:
        with ExitStack() as held:
            sock = entered(url, held)
            sock.sendall(frame(b"hello", PING) + frame(b'421["message-with-ack",1]'))
            receive_until(sock, b"hello", b"431[1]")
            (connection,) = application.connections
            connection.session.queue.most_bytes = 3_000_000
            sock.settimeout(5)
            large = frame(b'42["message","%b"]' % (b"x" * 100_000))
            # Nobody reads the answers, and after some time nobody takes the questions.
            with pytest.raises(OSError):
                sock.sendall(large * 5000)

    await anyio.to_thread.run_sync(blocking)
    await eventually(lambda: application.gone == ["/ fell behind"])


async def test_a_flood_of_one_peer_is_taken_in_turns_with_others() -> None:
    def blocking(url: str) -> None:
        with ExitStack() as held:
            flooding, other = entered(url, held), entered(url, held)
            flooding.sendall(frame(b'42["nothing"]') * 50_000)
            send_text(other, '421["message-with-ack",1]')
            receive_until(other, b"431[1]")
            assert application.heard < 40_000, "the other one waited for the end of the flood"

    with watched() as (url, application):
        await anyio.to_thread.run_sync(blocking, url)


async def test_one_session_moves_to_one_websocket(server: tuple[str, Watched]) -> None:
    def blocking(url: str) -> None:
        with ExitStack() as held:
            sid = ask(url, "GET", "").split('"sid":"')[1].split('"')[0]
            socks = [held.enter_context(connect(url)) for _ in range(2)]
            for sock in socks:
                upgrade(sock, query=f"&sid={sid}")
                sock.sendall(frame(b"2probe"))
                receive_until(sock, b"3probe")
            assert ask(url, "POST", sid, "40") == "ok"
            assert ask(url, "GET", sid).startswith("40{")
            socks[0].sendall(frame(b"5") + frame(b'421["message-with-ack",1]'))
            receive_until(socks[0], b"431[1]")
            socks[1].sendall(frame(b"5"))
            assert is_closed(socks[1])
            socks[0].sendall(frame(b'422["message-with-ack",2]'))
            receive_until(socks[0], b"432[2]")

    await anyio.to_thread.run_sync(blocking, server[0])


def ask(url: str, method: str, sid: str, body: str = "") -> str:
    """One request of a client that polls."""
    address = f"{url}/socket.io/?EIO=4&transport=polling" + (f"&sid={sid}" if sid else "")
    request = urllib.request.Request(address, data=body.encode() or None, method=method)
    with urllib.request.urlopen(request, timeout=20) as reply:
        return str(reply.read().decode())


async def test_a_session_that_is_lost_leaves_nothing(server: tuple[str, Watched]) -> None:
    url, application = server

    def blocking() -> None:
        for _ in range(5):
            with ExitStack() as held:
                entered(url, held)

    await anyio.to_thread.run_sync(blocking)
    await eventually(lambda: application.gone == ["/ transport close"] * 5)
    assert all(each._timer is None and each._forget.__name__ == "_nothing" for each in application.connections)
