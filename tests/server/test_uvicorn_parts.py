"""What we rely on in uvicorn beyond its documentation, each thing by a test on a real server."""

import gc
import socket
import ssl
import threading
import time
import tracemalloc
import weakref
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

import anyio.to_thread
import pytest

from a2c_smcp.server import APIKeyAuthentication, Limits, OpenAuthentication
from a2c_smcp.server.app import create_app
from a2c_smcp.server.guarded_websocket import GuardedWebSocket
from a2c_smcp.server.offices import MAX_OFFICE_ID
from a2c_smcp.server.uvicorn_parts import GuardedConfig
from a2c_smcp.utils.loop_turns import DEPARTURE_SECONDS, SHARED_SECONDS, SharedTurns
from tests.certificates import self_signed
from tests.server.conftest import MakePeer
from tests.server.harness import Running, async_server, counts_nobody, eventually, serving
from tests.server.raw import (
    PING,
    connect,
    frame,
    frame_header,
    is_closed,
    joined,
    raw_websocket,
    receive_until,
    upgrade,
)

KEYED = APIKeyAuthentication(["right"])


@contextmanager
def trusting_nobody(limits: Limits) -> Iterator[Running]:
    app = create_app(KEYED, limits=limits)
    # What is held open is not to be closed for idleness while the test is held up.
    config = GuardedConfig(app, forwarded_allow_ips="10.0.0.1", timeout_graceful_shutdown=1, timeout_keep_alive=60)
    with serving(config) as url:
        yield Running(url, app.namespace, app.engine)


async def test_text_that_is_not_utf_8_is_one_line_and_closes_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    def blocking(url: str) -> None:
        with raw_websocket(url) as sock:
            receive_until(sock, b'"sid"')
            sock.sendall(frame(b"4\xff"))
            assert is_closed(sock)

    with async_server(KEYED) as server:
        await anyio.to_thread.run_sync(blocking, server.url)
    assert "UTF-8" in caplog.text
    assert "Traceback" not in caplog.text


# --- the memory of a connection


async def test_a_connection_takes_little_memory_and_leaves_nothing_to_the_collector() -> None:
    def open_some(url: str, count: int, kept: ExitStack) -> None:
        for _ in range(count):
            kept.enter_context(joined(url))

    def connections() -> "weakref.WeakSet[GuardedWebSocket]":
        return weakref.WeakSet(each for each in gc.get_objects() if isinstance(each, GuardedWebSocket))

    gc.collect()
    of_other_tests = connections()
    with async_server(OpenAuthentication()) as server, ExitStack() as kept:
        await anyio.to_thread.run_sync(open_some, server.url, 5, kept)  # what is built once is built
        gc.collect()
        tracemalloc.start()
        try:
            before, _ = tracemalloc.get_traced_memory()
            await anyio.to_thread.run_sync(open_some, server.url, 40, kept)
            gc.collect()
            after, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert (after - before) / 40 < 30_000  # 24,500 with Python 3.11
        ours = connections() - of_other_tests
        assert len(ours) == 45
        gc.disable()
        try:
            kept.close()
            await eventually(lambda: not ours)
        finally:
            gc.enable()


# --- the size of a message


class CountedTurns(SharedTurns):
    def __init__(self) -> None:
        super().__init__()
        self.owed: list[float] = []

    def owe(self, seconds: float) -> None:
        self.owed[-1] += seconds
        super().owe(seconds)

    def _turn(self) -> None:
        self.owed.append(0.0)
        super()._turn()


async def test_websockets_that_are_lost_at_one_moment_end_a_few_in_each_turn_of_the_loop() -> None:
    def lose_all(url: str) -> None:
        with ExitStack() as opened:
            sockets = [opened.enter_context(joined(url)) for _ in range(150)]
            for each in sockets:
                each.shutdown(socket.SHUT_RDWR)

    turns = CountedTurns()
    with async_server(OpenAuthentication()) as server:
        server.namespace.admission.departures = turns
        await anyio.to_thread.run_sync(lose_all, server.url)
        await eventually(lambda: not server.namespace._clients)
    assert sum(turns.owed) == pytest.approx(150 * DEPARTURE_SECONDS)
    assert max(turns.owed) <= SHARED_SECONDS + DEPARTURE_SECONDS


@pytest.mark.parametrize("opcode", [1, 2])
async def test_before_a_key_was_shown_a_large_message_is_refused_on_its_header(
    opcode: int, caplog: pytest.LogCaptureFixture
) -> None:
    def blocking(url: str) -> None:
        with raw_websocket(url) as sock:
            receive_until(sock, b'"sid"')
            sock.sendall(frame_header(16 * 1024 + 1, opcode))  # and not a byte of the message
            assert is_closed(sock)

    with async_server(KEYED) as server:
        await anyio.to_thread.run_sync(blocking, server.url)
        await eventually(lambda: "more than 16384 bytes" in caplog.text)


async def test_a_client_that_refuses_a_large_message_is_not_said_to_have_sent_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def blocking(url: str) -> None:
        with raw_websocket(url) as sock:
            receive_until(sock, b'"sid"')
            sock.sendall(b"\x88\x82" + bytes(4) + (1009).to_bytes(2, "big"))
            assert is_closed(sock)

    with async_server(KEYED) as server:
        await anyio.to_thread.run_sync(blocking, server.url)
        await eventually(lambda: "it cannot receive a message as large" in caplog.text)
    assert "more than" not in caplog.text


async def test_messages_in_many_parts_are_added_up() -> None:
    def blocking(url: str) -> None:
        with raw_websocket(url) as sock:
            receive_until(sock, b'"sid"')
            part = bytes([0x80 | 126]) + (4096).to_bytes(2, "big") + bytes(4) + b"x" * 4096
            sock.sendall(b"\x01" + part)
            for _ in range(4):
                sock.sendall(b"\x00" + part)
            assert is_closed(sock)

    with async_server(KEYED) as server:
        await anyio.to_thread.run_sync(blocking, server.url)


async def test_after_a_key_was_shown_messages_may_be_large(make_peer: MakePeer) -> None:
    with async_server(KEYED, Limits(max_message=1_000_000)) as server:
        for transport in ("websocket", "polling"):
            peer = await make_peer(server, "async", transport, auth={"token": "right"})
            reply = await peer.call("client:dance", {"padding": "x" * 900_000})
            assert reply["error"]["code"] == 400
            assert peer.connected


async def test_a_polling_client_that_moves_to_a_websocket_may_send_large_messages_there(make_peer: MakePeer) -> None:
    from tests.server.harness import AsyncPeer

    with async_server(KEYED) as server:
        peer = AsyncPeer()
        await peer.connect(server.url, transports=["polling", "websocket"], auth={"token": "right"})
        try:
            assert peer.sio.transport() == "websocket"
            assert (await peer.call("client:dance", {"padding": "x" * 900_000}))["error"]["code"] == 400
        finally:
            await peer.disconnect()


async def test_a_post_before_a_key_was_shown_is_refused_by_its_length_and_while_it_is_read(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def session(url: str) -> str:
        with connect(url) as sock:
            sock.sendall(b"GET /socket.io/?EIO=4&transport=polling HTTP/1.1\r\nHost: localhost\r\n\r\n")
            return receive_until(sock, b"}").split(b'"sid":"')[1].split(b'"')[0].decode()

    def post(url: str, *more: bytes) -> bytes:
        with connect(url) as sock:
            path = f"/socket.io/?EIO=4&transport=polling&sid={session(url)}"
            sock.sendall(f"POST {path} HTTP/1.1\r\nHost: localhost\r\n".encode() + more[0])
            for part in more[1:]:
                sock.sendall(part)
            return sock.recv(1000).split(b"\r\n")[0]

    def blocking(url: str) -> None:
        assert b" 200 " in post(url, b"Content-Length: 1\r\n\r\n", b"6")
        assert b" 413 " in post(url, b"Content-Length: 16385\r\n\r\n")  # and not a byte of it
        assert b" 400 " in post(url, b"Content-Length: 99999999999999999999\r\n\r\n")
        endless = b"1000\r\n" + b"x" * 4096 + b"\r\n"
        assert b" 413 " in post(url, b"Transfer-Encoding: chunked\r\n\r\n", *[endless] * 5)
        assert b" 200 " in post(url, b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n6\r\n0\r\n\r\n")

    with async_server(KEYED) as server:
        await anyio.to_thread.run_sync(blocking, server.url)
    assert "more than 16384 bytes" in caplog.text


# --- pieces


async def test_a_burst_of_messages_arrives_whole_and_in_order(open_async_server: Running) -> None:
    def blocking() -> None:
        with joined(open_async_server.url) as sock:
            burst = b"".join(
                frame(f'42/smcp,{n}["client:dance",{{}}]'.encode()) + frame(b"", PING) for n in range(1, 501)
            )
            threading.Thread(target=sock.sendall, args=(burst,)).start()
            data = receive_until(sock, b"43/smcp,500[")
            found = [data.find(b"43/smcp,%d[" % n) for n in range(1, 501)]
            assert found == sorted(found) and found[0] >= 0

    await anyio.to_thread.run_sync(blocking)


async def test_pings_are_answered_and_a_peer_that_does_not_read_costs_no_memory(open_async_server: Running) -> None:
    def blocking() -> None:
        with raw_websocket(open_async_server.url) as sock:
            receive_until(sock, b'"sid"')
            sock.sendall(frame(b"hello", PING))
            assert b"\x8a\x05hello" in receive_until(sock, b"hello")
        with raw_websocket(open_async_server.url) as sock:
            flood = frame(b"x" * 125, PING) * 8000
            sock.settimeout(0.5)
            with suppress(TimeoutError):
                for _ in range(20):
                    sock.sendall(flood)
            port = sock.getsockname()[1]
            (protocol,) = (
                each
                for each in gc.get_objects()
                if isinstance(each, GuardedWebSocket) and not each.transport.is_closing()
                if each.transport.get_extra_info("peername")[1] == port
            )
            assert protocol.transport.get_write_buffer_size() < 1_000_000

    await anyio.to_thread.run_sync(blocking)


async def test_requests_that_come_before_the_answer_to_earlier_ones_are_answered_in_order(
    open_async_server: Running,
) -> None:
    def blocking() -> None:
        with connect(open_async_server.url) as sock:
            paths = ["/healthz", "/readyz", "/nothing"] * 100
            requests = [f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() for path in paths]
            requests[-1] = requests[-1].replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
            threading.Thread(target=sock.sendall, args=(b"".join(requests),)).start()
            data = b""
            while chunk := sock.recv(65536):
                data += chunk
            bodies = [part.split(b"\r\n\r\n")[1][:2] for part in data.split(b"HTTP/1.1 ")[1:]]
            assert bodies == [b"ok", b"re", b"no"] * 100

    await anyio.to_thread.run_sync(blocking)


# --- deadlines and counts


@pytest.mark.parametrize(
    "says",
    [
        b"",
        b"GET /healthz HTTP/1.1\r\nHost: loc",
        b"POST /socket.io/?EIO=4&transport=polling HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n4",
        b"POST /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n4",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /hea",
    ],
    ids=["nothing", "half a header", "half a body", "a body nobody reads", "half a second request"],
)
async def test_what_is_only_half_sent_is_closed_in_time_however_slowly_it_drips(says: bytes) -> None:
    def blocking(url: str) -> None:
        with connect(url) as sock:
            sock.sendall(says)
            stop = threading.Event()

            def drip() -> None:
                while not stop.wait(0.1):
                    try:
                        sock.sendall(b"x")
                    except OSError:
                        return

            dripping = threading.Thread(target=drip)
            if says:
                dripping.start()
            try:
                assert is_closed(sock)
            finally:
                stop.set()
                if says:
                    dripping.join()

    with async_server(KEYED, Limits(header_timeout=0.5)) as server:
        await anyio.to_thread.run_sync(blocking, server.url)


@pytest.mark.parametrize(
    ("begin", "more"),
    [
        (b"GET /", b"x"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nx: ", b"x"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n", b"x: y\r\n"),
        (b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n", b"x: y\r\n"),
        (b"", b"\r\n"),
    ],
    ids=["path", "header", "headers", "trailer", "blank"],
)
async def test_headers_without_an_end_are_refused_however_fast_they_come(begin: bytes, more: bytes) -> None:
    def blocking(url: str) -> None:
        with connect(url) as sock:
            sock.sendall(begin)
            with pytest.raises((BrokenPipeError, ConnectionResetError)):
                sock.sendall(more * 8_000_000)

    def in_one_go(url: str) -> None:
        with connect(url) as sock:
            sock.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nx: " + b"x" * 40_000 + b"\r\n\r\n")
            assert b" 200 " in sock.recv(1000)

    with async_server(KEYED) as server:
        await anyio.to_thread.run_sync(blocking, server.url)
        await anyio.to_thread.run_sync(in_one_go, server.url)


@pytest.mark.parametrize(
    ("url", "headers", "status"),
    [
        ("/healthz?" + "%41" * 1000, "", b" 414 "),
        ("/" + "%41" * 1000, "", b" 414 "),
        ("/healthz?" + "&".join(["%41=%42"] * 33), "", b" 400 "),
        ("/healthz", "a:b\r\n" * 101, b" 431 "),
        ("/healthz?" + "&".join(["%41=%42"] * 32), "a:b\r\n" * 90, b" 200 "),
    ],
    ids=["query", "path", "fields", "headers", "enough"],
)
@pytest.mark.parametrize("upgrades", [False, True])
async def test_a_head_that_would_take_long_to_look_at_is_refused(
    open_async_server: Running, url: str, headers: str, status: bytes, upgrades: bool
) -> None:
    """40 connections without a key made turns of the loop of seconds, with queries of 56 KB."""

    def blocking() -> None:
        more = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n" if upgrades else ""
        with connect(open_async_server.url) as sock:
            sock.sendall(f"GET {url} HTTP/1.1\r\nHost: localhost\r\n{more}{headers}\r\n".encode() * 2)
            answer = sock.recv(1000).split(b"\r\n")[0]
            assert status in answer or (upgrades and status == b" 200 " and b" 4" in answer)
            if status != b" 200 ":
                assert is_closed(sock)

    await anyio.to_thread.run_sync(blocking)


async def test_an_office_id_of_any_allowed_length_fits_into_the_url(open_async_server: Running) -> None:
    office = quote("\U0001f3e2" * MAX_OFFICE_ID)

    def blocking() -> None:
        with connect(open_async_server.url) as sock:
            upgrade(sock, query=f"&t=Pq1x2y3z&office={office}")
            receive_until(sock, b'"sid"')

    await anyio.to_thread.run_sync(blocking)


@pytest.mark.parametrize("loop", ["auto", "asyncio"])
async def test_a_handshake_that_does_not_come_is_not_waited_for(tmp_path: Path, loop: str) -> None:
    certificate = self_signed(tmp_path, "localhost")
    trusting = ssl.create_default_context(cafile=certificate.cert)

    def config(seconds: float) -> GuardedConfig:
        return GuardedConfig(
            create_app(KEYED, limits=Limits(header_timeout=seconds)),
            ssl_certfile=certificate.cert,
            ssl_keyfile=certificate.key,
            loop=loop,
            timeout_graceful_shutdown=1,
        )

    def late(url: str) -> None:
        with connect(url) as silent, connect(url) as half:
            half.sendall(b"\x16\x03\x01\x02")
            assert is_closed(silent)
            assert is_closed(half)

    def in_time(url: str) -> None:
        with trusting.wrap_socket(connect(url), server_hostname="localhost") as sock:
            sock.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert b" 200 " in sock.recv(1000)

    with serving(config(0.5)) as url:
        await anyio.to_thread.run_sync(late, url)
    with serving(config(20)) as url:  # half a second may pass on a busy machine
        await anyio.to_thread.run_sync(in_time, url)


async def test_a_long_poll_and_an_open_websocket_outlive_the_deadline(make_peer: MakePeer) -> None:
    # Time enough for the headers of a client that is held up; and no ping ends the poll before the deadline.
    with async_server(OpenAuthentication(), Limits(header_timeout=4), ping_interval=30) as server:
        peers = [await make_peer(server, "async", transport) for transport in ("websocket", "polling")]
        await anyio.sleep(5.5)
        for peer in peers:
            assert (await peer.call("client:dance", {}))["error"]["code"] == 400


async def test_connections_count_from_their_first_byte() -> None:
    def blocking(url: str) -> None:
        with ExitStack() as held:
            socks = [held.enter_context(connect(url)) for _ in range(3)]
            for sock in socks:
                sock.sendall(b"GET / HT")
            time.sleep(0.2)  # so that they have arrived; were they counted late, the next would be let in
            with connect(url) as sock:
                assert b" 429 " in sock.recv(1000)

    def is_let_in(url: str) -> None:
        with connect(url) as sock:
            sock.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert b" 200 " in sock.recv(1000)

    with trusting_nobody(Limits(connections_per_address=3, header_timeout=60)) as server:
        await anyio.to_thread.run_sync(blocking, server.url)
        await eventually(lambda: counts_nobody(server.namespace.admission.addresses))
        await anyio.to_thread.run_sync(is_let_in, server.url)


@pytest.mark.parametrize("transport", ["websocket", "polling"])
async def test_as_many_clients_as_the_limit_says_join_and_the_next_hears_429(
    make_peer: MakePeer, transport: str
) -> None:
    with trusting_nobody(Limits(connections_per_address=4)) as server:
        peers = [await make_peer(server, "async", transport, auth={"token": "right"}) for _ in range(4)]
        with pytest.raises(Exception, match="failed to connect") as refused:
            await make_peer(server, "async", "websocket", auth={"token": "right"})
        assert "namespaces" in str(refused.value)
        for peer in peers:
            assert (await peer.call("client:dance", {}))["error"]["code"] == 400


async def test_a_blocking_client_that_moves_to_a_websocket_counts_once() -> None:
    def blocking(url: str) -> None:
        with ExitStack() as held:
            # It polls over one connection, and opens another for the websocket.
            polled, sid = polling_session(url, held)
            sock = held.enter_context(connect(url))
            upgrade(sock, query=f"&sid={sid}")
            sock.sendall(frame(b"2probe"))
            receive_until(sock, b"3probe")
            sock.sendall(frame(b"5"))
            sock.sendall(frame(b'40/smcp,{"token":"right"}'))
            receive_until(sock, b"40/smcp")
            assert polled.fileno() >= 0

    with trusting_nobody(Limits(connections_per_address=1)) as server:
        await anyio.to_thread.run_sync(blocking, server.url)
        await eventually(lambda: counts_nobody(server.namespace.admission.addresses))


async def test_one_session_moves_to_one_websocket() -> None:
    def blocking(server: Running) -> None:
        with ExitStack() as held:
            _, sid = polling_session(server.url, held)
            socks = [held.enter_context(connect(server.url)) for _ in range(2)]
            for sock in socks:
                upgrade(sock, query=f"&sid={sid}")
                sock.sendall(frame(b"2probe"))
                receive_until(sock, b"3probe")
            socks[0].sendall(frame(b"5") + frame(b'40/smcp,{"token":"right"}'))
            receive_until(socks[0], b"40/smcp")
            socks[1].sendall(frame(b"5"))
            assert is_closed(socks[1])
            socks[0].sendall(frame(b'42/smcp,7["client:dance",{}]'))
            receive_until(socks[0], b"43/smcp,7")

    with async_server(KEYED) as server:
        await anyio.to_thread.run_sync(blocking, server)


async def test_a_connection_counts_again_when_its_session_has_ended() -> None:
    def blocking(url: str) -> None:
        with ExitStack() as held:
            for _ in range(3):
                sock, sid = polling_session(url, held)
                sock.sendall(
                    f"POST /socket.io/?EIO=4&transport=polling&sid={sid} HTTP/1.1\r\nHost: localhost\r\n"
                    "Content-Length: 1\r\n\r\n1".encode()
                )
                receive_until(sock, b"\r\n\r\n")
            with connect(url) as sock:
                assert b" 429 " in sock.recv(1000)

    with trusting_nobody(Limits(connections_per_address=3, header_timeout=60)) as server:
        await anyio.to_thread.run_sync(blocking, server.url)
        await eventually(lambda: counts_nobody(server.namespace.admission.addresses))


def polling_session(url: str, held: ExitStack) -> tuple[socket.socket, str]:
    """A session that polls, and the connection it was opened over."""
    sock = held.enter_context(connect(url))
    sock.sendall(b"GET /socket.io/?EIO=4&transport=polling HTTP/1.1\r\nHost: localhost\r\n\r\n")
    return sock, receive_until(sock, b"}").split(b'"sid":"')[1].split(b'"')[0].decode()


async def test_a_trusted_proxys_clients_are_counted_one_by_one(make_peer: MakePeer) -> None:
    with async_server(OpenAuthentication(), Limits(connections_per_address=2)) as server:
        for client in ("10.0.0.1", "10.0.0.2", "10.0.0.3"):
            for _ in range(2):
                await make_peer(server, headers={"X-Forwarded-For": client})
        for client in ("10.0.0.1", "10.0.0.3"):
            with pytest.raises(Exception, match="namespaces failed to connect"):
                await make_peer(server, headers={"X-Forwarded-For": client})
        await anyio.to_thread.run_sync(hold_many, server.url)


def hold_many(url: str) -> None:
    """A proxy itself may have as many connections as it likes."""
    with ExitStack() as held:
        for _ in range(20):
            sock = held.enter_context(connect(url))
            sock.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert b" 200 " in sock.recv(1000)


async def test_one_request_of_a_proxy_gives_no_trust_to_the_next() -> None:
    """A connection of a proxy carries requests of many clients, one after another."""

    def ask(sock: socket.socket, method: str, query: str, body: bytes = b"") -> bytes:
        head = f"{method} /socket.io/?EIO=4&transport=polling{query} HTTP/1.1\r\nHost: localhost\r\n"
        sock.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        lines, _, answer = receive_until(sock, b"\r\n\r\n").partition(b"\r\n\r\n")
        length = int(lines.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        while len(answer) < length:
            answer += sock.recv(65536)
        return answer

    def blocking(url: str, closed: bool) -> None:
        with connect(url) as sock:
            sid = ask(sock, "GET", "").split(b'"sid":"')[1].split(b'"')[0].decode()
            ask(sock, "POST", f"&sid={sid}", b'40/smcp,{"token":"right"}')
            assert b"40/smcp" in ask(sock, "GET", f"&sid={sid}")
            ask(sock, "POST", f"&sid={sid}", b'42/smcp,1["client:dance",{}]')
            assert b"400" in ask(sock, "GET", f"&sid={sid}")
            upgrade(sock)
            receive_until(sock, b'"sid"')
            sock.sendall(frame_header(100_000))
            sock.settimeout(20 if closed else 1)
            assert is_closed(sock) is closed

    with async_server(KEYED) as server:
        await anyio.to_thread.run_sync(blocking, server.url, True)
    with trusting_nobody(Limits()) as server:
        await anyio.to_thread.run_sync(blocking, server.url, False)
