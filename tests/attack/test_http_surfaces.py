"""Strangers at the console, at a server on the kit and at `a2c mcp --http`: none of their sessions may notice."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from tests.attack.harness import Pair, honest_pair, target
from tests.attack.processes import DEADLINE
from tests.attack.surfaces import Surface, bridge, console_surface, kit, unharmed
from tests.server.raw import connect, is_closed

#: Connections that are held at each surface: more than strangers may have, and a few for each way of holding one.
HELD = 150
#: Connections of each of four strangers; every third sends ten requests.
FLOOD = 60
SURFACES = ("console", "kit", "bridge")


class Scene:
    """All surfaces, and the honest pair whose computer has the console."""

    def __init__(self, pair: Pair, surfaces: list[Surface]) -> None:
        self.pair = pair
        self.surfaces = {each.name: each for each in surfaces}


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("surfaces")
    with (
        target(folder) as server,
        bridge(folder, server.url, "elsewhere") as office,
        kit(folder) as shop,
        honest_pair(server, "honest", None, "--console", "0") as pair,
    ):
        yield Scene(pair, [console_surface(pair.computer), shop, office])


def all_at_once(*attacks: Callable[[], object]) -> None:
    """All of these at the same time, to their end. Raises what one of them raises."""
    with ThreadPoolExecutor(len(attacks)) as pool:
        for attack in [pool.submit(each) for each in attacks]:
            attack.result()


class Holding:
    """Holds connections to a surface in every way: says nothing, half a head, half a body, a drop now and then, and
    reads no answer.
    """

    def __init__(self, surface: Surface) -> None:
        here = f"localhost:{surface.port}"
        self._ways = [
            b"",
            b"GET / HTTP/1.1\r\nHost: loc",
            f"POST {surface.path} HTTP/1.1\r\nHost: {here}\r\nContent-Length: 10\r\n\r\n4".encode(),
            b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Drop: ",
            f"GET /js/texts-en.js HTTP/1.1\r\nHost: {here}\r\n\r\n".encode() * 8,
        ]
        self._url = surface.url
        self._socks: list[socket.socket] = []

    def begin(self) -> None:
        for number in range(HELD):
            sock = connect(self._url, DEADLINE)
            self._socks.append(sock)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            with suppress(OSError):  # it has been sent away already
                sock.sendall(self._ways[number % 5])

    def end(self) -> None:
        """Wait until it is closed, whatever was sent. What is not read needs no more than to be closed at our end."""
        stop = threading.Event()

        def drip() -> None:
            while not stop.wait(0.5):
                for sock in self._socks[3::5]:
                    with suppress(OSError):
                        sock.sendall(b"x")

        dripping = threading.Thread(target=drip)
        dripping.start()
        try:
            assert all(is_closed(sock) for number, sock in enumerate(self._socks) if number % 5 != 4)
        finally:
            stop.set()
            dripping.join()
            for sock in self._socks:
                sock.close()


def test_connections_that_are_only_held_keep_nobody_out_and_are_closed(scene: Scene) -> None:
    surfaces = list(scene.surfaces.values())
    before = [surface.at_rest() for surface in surfaces]
    holding = [Holding(surface) for surface in surfaces]

    def attack() -> None:
        all_at_once(*[each.begin for each in holding])
        time.sleep(1)  # and while they are held

    def then() -> None:
        all_at_once(*[each.end for each in holding])

    scene.pair.unharmed_by(lambda: unharmed(surfaces, attack, then), is_long=True)
    for surface, descriptors in zip(surfaces, before, strict=True):
        assert surface.process.alive
        assert surface.settles(descriptors)


def test_a_page_that_asks_for_the_head_of_a_stream_holds_nothing(scene: Scene) -> None:
    """Nothing is written to it. With half a request behind it, nothing is read either, and nobody would see that the
    page has gone: each would be a connection and a stream for ever.
    """
    console = scene.surfaces["console"]
    fields = "".join(f"{name}: {value}\r\n" for name, value in console.headers.items())
    feed = f"HEAD /api/feed HTTP/1.1\r\nHost: 127.0.0.1:{console.port}\r\n{fields}\r\n"
    behind = "POST /api/answer HTTP/1.1\r\nHost: x\r\nContent-Length: 30\r\n\r\nabc"
    before = console.at_rest()

    def attack() -> None:
        for _ in range(40):  # more than the streams that a computer has for its pages
            with connect(console.url, DEADLINE) as sock, suppress(OSError):
                sock.sendall((feed + behind).encode())
                said = b""
                while not said.endswith(b"\r\n\r\n"):  # all of it: what is left unread would end the connection hard
                    said += sock.recv(1)
                assert said.startswith(b"HTTP/1.1 200")

    scene.pair.unharmed_by(attack, times=50)
    assert console.settles(before)
    with connect(console.url, DEADLINE) as sock:
        sock.sendall(feed.replace("HEAD", "GET").encode())
        assert sock.recv(12) == b"HTTP/1.1 200", "pages are let in"


@pytest.mark.parametrize("name", SURFACES)
def test_a_flood_of_refused_requests_is_a_few_lines_and_noticed_by_nobody(scene: Scene, name: str) -> None:
    surface = scene.surfaces[name]
    said = len(surface.log)
    hosts = [surface.refused("evil.example") * 10, b"nonsense\r\n\r\n", surface.refused("x" * 1000)]

    def attack() -> None:
        for number in range(FLOOD):
            with connect(surface.url, DEADLINE) as sock, suppress(OSError):
                sock.sendall(hosts[number % len(hosts)])
                sock.shutdown(socket.SHUT_WR)
                assert is_closed(sock)

    attack()
    unharmed([surface], lambda: all_at_once(*[attack] * 4))
    before = surface.memory
    all_at_once(*[attack] * 4)
    assert surface.memory - before < 20
    surface.process.says("more lines about refused requests were left out", after=said)
    log = surface.log[said:]
    assert "Traceback" not in log
    assert len(log) < 20_000
