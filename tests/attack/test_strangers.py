"""What somebody can do who has no key, or one and ill intentions: each beside an honest pair that must not notice."""

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from tests.attack.harness import Pair, Target, honest_pair, target
from tests.server.raw import (
    BINARY,
    PING,
    connect,
    frame,
    frame_header,
    is_closed,
    joined,
    raw_websocket,
    receive_until,
    send_text,
)

KEY = "secret"
AUTH = json.dumps({"token": KEY})
MANY = 15_000


@pytest.fixture(scope="module", params=["async"])
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Target, Pair]]:
    """A keyed server and an honest pair, for all attacks on that kind of server."""
    with (
        target(tmp_path_factory.mktemp("strangers"), request.param, api_key=KEY) as server,
        honest_pair(server) as pair,
    ):
        yield server, pair


#: For the rules of offices. Connections of a threaded server are python-socketio's, with its bounds.
BOTH = pytest.mark.parametrize("scene", ["async", "threaded"], indirect=True)


def in_background(*attacks: Callable[[], object]) -> None:
    """All of these at the same time, to their end."""
    threads = [threading.Thread(target=attack) for attack in attacks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def send_as_far_as_it_goes(sock: socket.socket, data: bytes) -> None:
    with contextlib.suppress(OSError):  # the server has closed the connection meanwhile
        sock.sendall(data)


# --- D1: large messages


def test_a_large_message_of_somebody_without_a_key_is_noticed_by_nobody(scene: tuple[Target, Pair]) -> None:
    server, pair = scene
    large = frame(b"40/smcp," + b"[" + b"[]," * 4_000_000 + b"0]")

    def attack() -> None:
        with raw_websocket(server.url) as sock:
            send_as_far_as_it_goes(sock, large)
            assert is_closed(sock)

    pair.unharmed_by(lambda: in_background(*[attack] * 6))
    assert server.process.alive


def test_half_a_large_message_closes_its_connection_at_once(tmp_path: Path) -> None:
    with target(tmp_path, api_key=KEY) as server:
        for _ in range(10):
            with raw_websocket(server.url) as sock:
                receive_until(sock, b'"sid"')
                sock.sendall(frame_header(14_000_000) + b"40/smcp,[")
                assert is_closed(sock)
        server.process.says("more than 16384 bytes")


def test_a_large_post_of_somebody_without_a_key_is_noticed_by_nobody(scene: tuple[Target, Pair]) -> None:
    server, pair = scene

    def attack() -> None:
        with connect(server.url) as opening, connect(server.url) as sock:
            opening.sendall(b"GET /socket.io/?EIO=4&transport=polling HTTP/1.1\r\nHost: localhost\r\n\r\n")
            sid = receive_until(opening, b"}").split(b'"sid":"')[1].split(b'"')[0]
            body = b"40/smcp," + b"[" + b"[]," * 4_000_000 + b"0]"
            head = b"POST /socket.io/?EIO=4&transport=polling&sid=%b HTTP/1.1\r\nHost: localhost\r\n" % sid
            send_as_far_as_it_goes(sock, head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            with contextlib.suppress(OSError):
                assert b" 200 " not in sock.recv(1000)

    pair.unharmed_by(lambda: in_background(*[attack] * 4))


# --- D2: many small things


def test_a_flood_of_frames_of_somebody_without_a_key_is_noticed_by_nobody(scene: tuple[Target, Pair]) -> None:
    server, pair = scene
    before = len(server.log)

    def attack() -> None:
        with raw_websocket(server.url) as sock:
            send_as_far_as_it_goes(sock, frame(b"x", BINARY) * MANY)
            assert is_closed(sock)

    pair.unharmed_by(lambda: in_background(*[attack] * 4))
    log = server.log[before:]
    assert "Traceback" not in log
    assert len(log) < 20_000


def test_a_flood_of_packets_of_somebody_without_a_key_is_noticed_by_nobody(scene: tuple[Target, Pair]) -> None:
    server, pair = scene
    before = len(server.log)

    def attack(packet: bytes) -> None:
        with raw_websocket(server.url) as sock:
            reading = threading.Thread(target=is_closed, args=(sock,))
            reading.start()
            send_as_far_as_it_goes(sock, frame(packet) * MANY)
            time.sleep(1)
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            reading.join()

    packets = [b'40/smcp,{"token":"guess"}', b'42/smcp,["x",{}]', b"3", b"40/nowhere,"]
    pair.unharmed_by(lambda: in_background(*[partial(attack, packet) for packet in packets]))
    assert len(server.log) - before < 100_000


def test_a_flood_of_pings_is_noticed_by_nobody(scene: tuple[Target, Pair]) -> None:
    server, pair = scene

    def attack() -> None:
        with raw_websocket(server.url) as sock:
            sock.settimeout(2)
            send_as_far_as_it_goes(sock, frame(b"x" * 100, PING) * MANY)

    pair.unharmed_by(lambda: in_background(*[attack] * 2))


def test_a_flood_of_unknown_events_of_a_member_is_noticed_by_nobody_and_each_is_answered(
    scene: tuple[Target, Pair],
) -> None:
    server, pair = scene
    before = len(server.log)
    flood = b"".join(frame(b'42/smcp,%d["client:dance",{}]' % n) for n in range(MANY))

    def attack() -> None:
        with joined(server.url, AUTH) as sock:
            sending = threading.Thread(target=sock.sendall, args=(flood,))
            sending.start()
            answers = 0
            rest = b""
            while answers < MANY:
                chunk = sock.recv(1 << 20)
                assert chunk
                answers += (rest[-10:] + chunk).count(b"43/smcp,") - rest[-10:].count(b"43/smcp,")
                rest = chunk
            sending.join()

    pair.unharmed_by(attack)
    server.process.says("more lines about", after=before)
    assert len(server.log) - before < 200_000


def test_a_flood_of_requests_in_one_go_is_noticed_by_nobody(scene: tuple[Target, Pair]) -> None:
    server, pair = scene
    flood = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" * 5_000

    def attack() -> None:
        with connect(server.url) as sock:
            reading = threading.Thread(target=is_closed, args=(sock,))
            reading.start()
            send_as_far_as_it_goes(sock, flood)
            sock.shutdown(socket.SHUT_WR)
            reading.join()

    pair.unharmed_by(lambda: in_background(*[attack] * 2))


# --- D4: the log


def test_frames_that_make_no_sense_are_a_few_lines_and_a_count(scene: tuple[Target, Pair]) -> None:
    server, pair = scene
    before = len(server.log)

    bad = ["x", "9", "42/smcp,{", "4x", "44/smcp,[]", "42/smcp,[", "451-/other,[]"]

    def attack() -> None:
        with joined(server.url, AUTH) as sock:
            send_as_far_as_it_goes(sock, b"".join(frame(text.encode()) for text in bad) * 2 + frame(b"x", BINARY))
            assert is_closed(sock)

    pair.unharmed_by(lambda: in_background(*[attack] * 30))
    server.process.says("more lines about 127.0.0.1 were left out", after=before)
    log = server.log[before:]
    assert "does not decode" in log
    assert "Traceback" not in log
    assert len(log.splitlines()) < 300


# --- D12: connections that say nothing


def test_half_a_header_is_not_waited_for(scene: tuple[Target, Pair]) -> None:
    server, pair = scene
    with ExitStack() as held:

        def attack() -> None:
            socks = [held.enter_context(connect(server.url, 60)) for _ in range(300)]
            for sock in socks:
                sock.sendall(b"GET /socket.io/?EIO=4&transport=polling HTTP/1.1\r\nHost: loc")
            assert all(is_closed(sock) for sock in socks)

        pair.unharmed_by(attack, is_long=True)


def test_one_address_cannot_take_all_connections(tmp_path: Path) -> None:
    options = ("--connections-per-address", "20", "--forwarded-allow-ips", "10.0.0.1")
    with (
        target(tmp_path, "async", *options, api_key=KEY) as server,
        honest_pair(server) as pair,
        ExitStack() as held,
    ):

        def attack() -> None:
            socks = [held.enter_context(connect(server.url, 5)) for _ in range(300)]
            refused = 0
            for sock in socks:
                sock.settimeout(0.2 if refused >= 280 else 5)
                with contextlib.suppress(TimeoutError, ConnectionError):
                    refused += b"429" in sock.recv(100)
            assert refused >= 280

        pair.unharmed_by(attack)
        server.process.says("too many of them")


# --- D5 and D14: who is not who it seems


def test_a_page_that_resolves_its_own_name_to_loopback_gets_nothing(tmp_path: Path) -> None:
    with target(tmp_path) as server:
        host = f"evil.example:{server.port}"
        for path in ("/metrics", "/socket.io/?EIO=4&transport=polling", "/socket.io/?EIO=4&transport=websocket"):
            for headers in (
                f"Host: {host}",
                f"Host: {host}\r\nOrigin: http://{host}",
                "Host: localhost\r\nOrigin: null",
            ):
                with connect(server.url) as sock:
                    upgrade = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                    upgrade += "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
                    more = upgrade if "websocket" in path else ""
                    sock.sendall(f"GET {path} HTTP/1.1\r\n{headers}\r\n{more}\r\n".encode())
                    assert sock.recv(100).startswith(b"HTTP/1.1 403")
    with target(tmp_path, "async", "--allowed-host", "office.example") as server, connect(server.url) as sock:
        sock.sendall(b"GET /metrics HTTP/1.1\r\nHost: office.example\r\n\r\n")
        assert sock.recv(100).startswith(b"HTTP/1.1 200")


@BOTH
@pytest.mark.parametrize("name", ["hon\u200best", "\u202etsenoh", "honest\u2060"], ids=ascii)
def test_nobody_passes_for_the_honest_computer(scene: tuple[Target, Pair], name: str) -> None:
    server, _ = scene
    with joined(server.url, AUTH) as sock:
        request = {"role": "computer", "name": name, "office_id": "honest"}
        send_text(sock, "42/smcp,1" + json.dumps(["server:join_office", request]))
        receive_until(sock, b'43/smcp,1[false,"400')
