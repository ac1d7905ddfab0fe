"""A web server of ours that is not the office's: what is half sent, not read or only held costs nobody anything."""

import asyncio
import logging
import socket
import ssl
import threading
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from a2c_smcp.web.connection_places import ConnectionPlaces, vouch
from a2c_smcp.web.guarded_http import HttpBounds
from a2c_smcp.web.http_surface import STRANGERS, SurfaceConfig, SurfaceHTTP
from a2c_smcp.web.uvicorn_server import GracefulServer
from tests.certificates import self_signed
from tests.server.harness import DEADLINE, eventually
from tests.server.raw import connect, is_closed, receive_until

#: More than the buffers of both ends take.
LARGE = b"x" * 2**22
SHORT = HttpBounds(header_timeout=0.5, stall_timeout=0.5)
LONG = HttpBounds(header_timeout=DEADLINE)


class App:
    """Answers by its path; `/known` has shown a key, `/wait` waits for `go`, and `/gone` until nobody waits for it.
    `/early` is answered before its body has come.
    """

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.waiting = 0
        self.gone = 0
        self.headers: dict[bytes, bytes] = {}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.headers = dict(scope["headers"])
        if scope["path"] in ("/known", "/stranger"):
            vouch(scope, scope["path"] == "/known")
        while scope["path"] != "/early" and (await receive()).get("more_body"):
            pass
        if scope["path"] == "/wait":
            self.waiting += 1
            await self.go.wait()
        if scope["path"] == "/gone":
            self.waiting += 1
            while (await receive())["type"] != "http.disconnect":
                pass
            self.gone += 1
        body = LARGE if scope["path"] == "/large" else b"fine"
        size = str(len(body)).encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", size)]})
        await send({"type": "http.response.body", "body": body})


class Surface:
    def __init__(self, url: str, app: App, places: ConnectionPlaces) -> None:
        self.url = url
        self.app = app
        self.places = places

    async def empty(self) -> None:
        await eventually(lambda: self.places.taken == 0)

    async def only_stranger(self) -> SurfaceHTTP:
        await eventually(lambda: self.places.taken == 1)
        [holder] = self.places._strangers
        assert isinstance(holder, SurfaceHTTP)
        return holder


@asynccontextmanager
async def surface(
    bounds: HttpBounds, places: ConnectionPlaces | None = None, send_buffer: int | None = None, **options: Any
) -> AsyncIterator[Surface]:
    app, ready = App(), asyncio.Event()

    async def ending() -> None:
        app.go.set()

    listener = socket.create_server(("127.0.0.1", 0))
    if send_buffer is not None:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)  # which accepted ones inherit
    options = {"lifespan": "off", "timeout_graceful_shutdown": 1, "timeout_keep_alive": 60, **options}
    config = SurfaceConfig(app, bounds=bounds, places=places, **options)
    server = GracefulServer(config, ready=ready.set, ending=ending, signals=False)
    task = asyncio.create_task(server.serve([listener]))
    with anyio.fail_after(DEADLINE):
        await ready.wait()
    try:
        yield Surface(f"http://127.0.0.1:{listener.getsockname()[1]}", app, config.places)
    finally:
        server.should_exit = True
        with anyio.fail_after(DEADLINE):
            await task


def request(path: str = "/", more: str = "") -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{more}\r\n".encode()


def ask(sock: socket.socket, path: str = "/") -> None:
    sock.sendall(request(path))
    assert b" 200 " in receive_until(sock, b"fine")


def answered(sock: socket.socket, count: int) -> None:
    """Wait for so many answers at least."""
    data = b""
    while data.count(b"fine") < count:
        chunk = sock.recv(2**16)
        assert chunk
        data += chunk


# --- deadlines


@pytest.mark.parametrize(
    "says",
    [
        b"",
        b"GET / HTTP/1.1\r\nHost: loc",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n4",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nx",
        request("/known") + b"GET /hea",
    ],
    ids=["nothing", "half a header", "half a body", "half a chunk", "half a second request"],
)
async def test_what_is_only_half_sent_is_closed_in_time_however_slowly_it_drips(says: bytes) -> None:
    def blocking(url: str) -> None:
        with connect(url) as sock:
            sock.sendall(says)
            stop = threading.Event()

            def drip() -> None:
                while says and not stop.wait(0.1):
                    try:
                        sock.sendall(b"x")
                    except OSError:
                        return

            dripping = threading.Thread(target=drip)
            dripping.start()
            try:
                assert is_closed(sock)
            finally:
                stop.set()
                dripping.join()

    async with surface(SHORT) as it:
        await anyio.to_thread.run_sync(blocking, it.url)
        await it.empty()


@pytest.mark.parametrize(
    "asks",
    [
        request("/large", "Connection: close\r\n"),
        request("/large"),
        request("/large") * 3,
        request("/known") + request("/large"),
    ],
    ids=["and is to be closed", "and stays", "of several", "of somebody known"],
)
async def test_an_answer_that_is_not_read_is_not_waited_for(asks: bytes) -> None:
    async with surface(SHORT, send_buffer=4096) as it:
        with connect(it.url) as sock:
            sock.sendall(asks)
            await eventually(lambda: it.places.taken == 1)
            await it.empty()


@pytest.mark.parametrize("known", [False, True])
async def test_who_asks_again_instead_of_reading_is_not_waited_for_either(known: bool) -> None:
    async with surface(SHORT, send_buffer=4096) as it:
        with connect(it.url) as sock:
            sock.sendall(request("/large"))
            holder = await it.only_stranger()
            await eventually(lambda: holder.flow.write_paused)
            holder.vouch(known)
            sock.sendall(request())
            await it.empty()


async def test_who_is_answered_before_all_was_sent_is_not_waited_for_after_that() -> None:
    def blocking(url: str) -> None:
        with connect(url) as sock:
            sock.sendall(b"POST /early HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n")
            receive_until(sock, b"fine")
            sock.sendall(b"ab")
            assert is_closed(sock)

    async with surface(SHORT) as it:
        await anyio.to_thread.run_sync(blocking, it.url)
        await it.empty()


async def test_an_answer_that_is_read_slowly_comes_whole() -> None:
    seconds = 2.0

    def blocking(url: str) -> None:
        with connect(url) as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**16)
            sock.sendall(request("/large", "Connection: close\r\n"))
            left = len(receive_until(sock, b"\r\n\r\n").partition(b"\r\n\r\n")[2]) - len(LARGE)
            waited = threading.Event()
            while left < 0:
                if left > -len(LARGE) // 2:
                    waited.wait(1.2 * seconds / 32)  # for half of it longer than one deadline in all
                chunk = sock.recv(2**16, socket.MSG_WAITALL)
                assert chunk, f"cut {-left} bytes before its end"
                left += len(chunk)

    async with surface(HttpBounds(header_timeout=seconds), send_buffer=4096) as it:
        await anyio.to_thread.run_sync(blocking, it.url)


async def test_a_handshake_that_does_not_come_is_not_waited_for_in_a_loop_of_others(tmp_path: Path) -> None:
    certificate = self_signed(tmp_path, "localhost")
    tls: dict[str, Any] = {"ssl_certfile": certificate.cert, "ssl_keyfile": certificate.key}

    def late(url: str) -> None:
        with connect(url) as silent, connect(url) as half:
            half.sendall(b"\x16\x03\x01\x02")
            assert is_closed(silent)
            assert is_closed(half)

    def in_time(url: str) -> None:
        trusting = ssl.create_default_context(cafile=certificate.cert)
        with trusting.wrap_socket(connect(url), server_hostname="localhost") as sock:
            ask(sock)

    create_server = asyncio.get_running_loop().create_server
    async with surface(SHORT, **tls) as it:
        await anyio.to_thread.run_sync(late, it.url)
    async with surface(LONG, **tls) as it:
        await anyio.to_thread.run_sync(in_time, it.url)
    assert asyncio.get_running_loop().create_server == create_server


@pytest.mark.parametrize("leaves", [True, False])
async def test_every_request_hears_that_nobody_waits_for_it_any_more(leaves: bool) -> None:
    """uvicorn tells the latest request of a connection; one that was being answered before it went on for ever."""
    async with surface(LONG) as it:
        with connect(it.url) as sock:
            sock.sendall(request("/gone"))
            await eventually(lambda: it.app.waiting == 1)
            sock.sendall(request() if leaves else b"nonsense\r\n\r\n")
            if not leaves:
                await eventually(lambda: it.app.gone == 1)
        await eventually(lambda: it.app.gone == 1)
        await it.empty()


async def test_who_asks_faster_than_is_answered_is_read_no_further() -> None:
    """uvicorn reads on after each answer: of 40 bytes that were answered came up to 256 KiB that had to be kept."""
    most = 2**18  # what a loop reads at once

    def ask_without_end(sock: socket.socket) -> None:
        with suppress(OSError):  # until it is closed
            while True:
                sock.sendall(request() * 5000)

    async with surface(LONG) as it:
        with connect(it.url) as sock:
            asking = threading.Thread(target=ask_without_end, args=(sock,))
            asking.start()
            try:
                holder = await it.only_stranger()
                await anyio.to_thread.run_sync(answered, sock, 500)
                assert sum(map(len, holder._arrived)) <= most
            finally:
                sock.shutdown(socket.SHUT_RDWR)
                await anyio.to_thread.run_sync(asking.join, DEADLINE)
        await it.empty()


async def test_requests_of_a_stranger_that_come_in_one_go_are_taken_one_at_a_time() -> None:
    async with surface(LONG) as it:
        with connect(it.url) as sock:
            sock.sendall(request("/wait") + request() * 30)
            holder = await it.only_stranger()
            await eventually(lambda: it.app.waiting == 1 and holder.pipeline)
            assert len(holder.pipeline) == 1
            it.app.go.set()
            await anyio.to_thread.run_sync(answered, sock, 31)


# --- places


async def test_who_asks_is_answered_however_many_connections_are_held() -> None:
    def blocking(url: str) -> None:
        with ExitStack() as held:
            page = held.enter_context(connect(url))
            ask(page, "/known")
            idle = [held.enter_context(connect(url)) for _ in range(STRANGERS + 20)]
            for sock in idle[::2]:
                with suppress(OSError):  # it may have been sent away already
                    sock.sendall(b"GET / HT")
            for _ in range(3):
                with connect(url) as sock:
                    ask(sock)
            ask(page, "/known")
            # Those that have said nothing; what the others sent may have waited to be read at that moment.
            assert all(is_closed(sock) for sock in idle[1:20:2])

    async with surface(LONG) as it:
        await anyio.to_thread.run_sync(blocking, it.url)
        await it.empty()


async def test_who_asks_much_and_reads_nothing_is_sent_away_for_a_new_one() -> None:
    def blocking(url: str) -> None:
        with connect(url) as sock:
            ask(sock)

    async with surface(LONG, ConnectionPlaces(1), send_buffer=4096) as it:
        with connect(it.url) as sock:
            sock.sendall(request("/large") * 200)  # more than is taken apart at once
            holder = await it.only_stranger()
            await eventually(lambda: holder.flow.write_paused)
            assert holder._arrived
            await anyio.to_thread.run_sync(blocking, it.url)
            await it.empty()


async def test_who_asks_again_before_it_is_answered_is_sent_away_for_a_new_one() -> None:
    def blocking(url: str) -> None:
        with connect(url) as sock:
            ask(sock)

    async with surface(LONG, ConnectionPlaces(1)) as it:
        with connect(it.url) as sock:
            sock.sendall(request("/wait") + request() * 30)
            holder = await it.only_stranger()
            await eventually(lambda: it.app.waiting == 1 and holder.pipeline)
            await anyio.to_thread.run_sync(blocking, it.url)
            await it.empty()


async def test_who_is_being_answered_stays_and_a_new_one_hears_503(caplog: pytest.LogCaptureFixture) -> None:
    def hold(url: str, held: ExitStack) -> socket.socket:
        sock = held.enter_context(connect(url))
        sock.sendall(request("/wait"))
        return sock

    async def held_one(it: Surface, held: ExitStack) -> socket.socket:
        """On a busy machine the request may come too late to be read, and the connection is closed for a newer one."""
        before = it.app.waiting
        while True:
            sock = await anyio.to_thread.run_sync(hold, it.url, held)
            with anyio.move_on_after(2):
                await eventually(lambda: it.app.waiting > before)
                return sock

    def refused(url: str) -> None:
        for _ in range(30):
            with connect(url) as sock:
                assert b" 503 " in sock.recv(1000)
                assert is_closed(sock)

    with ExitStack() as held, caplog.at_level(logging.WARNING):
        async with surface(LONG, ConnectionPlaces(1)) as it:
            socks = [await held_one(it, held) for _ in range(4)]
            await anyio.to_thread.run_sync(refused, it.url)
            it.app.go.set()
            for sock in socks:
                assert b"fine" in await anyio.to_thread.run_sync(receive_until, sock, b"fine")
    assert caplog.text.count("there are 4 others") in range(1, 30)


async def test_who_is_not_known_any_more_can_be_sent_away() -> None:
    def blocking(url: str) -> None:
        with connect(url) as page:
            ask(page, "/known")
            with connect(url) as sock:
                ask(sock)
            ask(page, "/stranger")
            with connect(url) as sock:
                ask(sock)
                assert is_closed(page)

    async with surface(LONG, ConnectionPlaces(1)) as it:
        await anyio.to_thread.run_sync(blocking, it.url)


# --- the log


async def test_blanks_around_the_value_of_a_header_do_not_belong_to_it() -> None:
    async with surface(LONG) as web:
        async with await anyio.connect_tcp("127.0.0.1", int(web.url.rpartition(":")[2])) as stream:
            await stream.send(request(more="Mcp-Name: \t  a tool \t \r\n"))
            assert b" 200 " in await stream.receive()
        assert web.app.headers[b"mcp-name"] == b"a tool"


async def test_nonsense_is_a_few_lines(caplog: pytest.LogCaptureFixture) -> None:
    upgrade = request("/", "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n")

    def blocking(url: str) -> None:
        for says in [b"nonsense\r\n\r\n", upgrade] * 100:
            with connect(url) as sock:
                sock.sendall(says)
                sock.shutdown(socket.SHUT_WR)
                assert is_closed(sock)

    async with surface(LONG) as it:
        await anyio.to_thread.run_sync(blocking, it.url)
    said = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert 0 < len(said) < 100
