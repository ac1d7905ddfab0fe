"""What of ours serves HTTP beside the office's server: the console, a server on the kit, and `a2c mcp --http`.

Each is a process of its own, with a session that asks it something honest, over a new connection each time.
"""

import http.client
import json
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from tests.attack.processes import A2C, DEADLINE, Started, started

__all__ = ["Surface", "bridge", "console_surface", "kit", "unharmed"]

TOKEN = "s3cret"
_QUIET_SECONDS = 1.5
_INITIALIZE = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "honest", "version": "1"}}
_MCP = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


@dataclass(frozen=True)
class Surface:
    """A running surface, and the request of its honest session."""

    name: str
    process: Started
    url: str
    method: str
    path: str
    headers: dict[str, str]
    body: str | None = None

    @property
    def port(self) -> int:
        port = urlsplit(self.url).port
        assert port is not None
        return port

    @property
    def log(self) -> str:
        return self.process.log.read_text(errors="replace")

    @property
    def descriptors(self) -> int:
        """How many files and connections its process has open. Linux only."""
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def open_files(self, suffix: str) -> int:
        """How many files with this suffix its process has open. Linux only."""
        found = 0
        for descriptor in Path(f"/proc/{self.process.pid}/fd").iterdir():
            with suppress(OSError):  # it was closed meanwhile
                found += descriptor.readlink().suffix == suffix
        return found

    def at_rest(self) -> int:
        """How many descriptors it has when nothing comes or goes for a second and a half."""
        deadline = time.monotonic() + DEADLINE
        still, since = self.descriptors, time.monotonic()
        while time.monotonic() - since < _QUIET_SECONDS:
            assert time.monotonic() < deadline, f"{self.name}: its descriptors change all the time"
            time.sleep(0.05)
            if (now := self.descriptors) != still:
                still, since = now, time.monotonic()
        return still

    def settles(self, descriptors: int) -> bool:
        """Wait until it has no more open than so many."""
        deadline = time.monotonic() + DEADLINE
        while self.descriptors > descriptors and time.monotonic() < deadline:
            time.sleep(0.1)
        return self.descriptors <= descriptors

    @property
    def memory(self) -> int:
        """What its process has in memory, in MiB. Linux only."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        assert found
        return int(found[1]) // 1024

    def ask(self) -> int:
        """The status that the session hears."""
        return _asked(self.port, self.method, self.path, self.headers, self.body)[0]

    def refused(self, host: str) -> bytes:
        """A request of somebody who is none of its visitors."""
        return f"{self.method} {self.path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\n\r\n".encode()


def _asked(
    port: int, method: str, path: str, headers: dict[str, str], body: str | None
) -> tuple[int, http.client.HTTPMessage, bytes]:
    web = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE)
    try:
        web.request(method, path, body, headers)
        answer = web.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        web.close()


def console_surface(computer: Started) -> Surface:
    """The console of a computer that was started with one."""
    link = urlsplit(computer.says(r"http://127\.0\.0\.1:\d+/#link=\S+")[0])
    assert link.port is not None
    url = f"{link.scheme}://{link.netloc}"
    headers = {"origin": url, "content-type": "application/json"}
    body = json.dumps({"token": link.fragment.removeprefix("link=")})
    status, _, content = _asked(link.port, "POST", "/api/session", headers, body)
    assert status == 200, content
    session = {**headers, "x-a2c-session": json.loads(content)["key"]}
    surface = Surface("console", computer, url, "GET", "/api/devices", session)
    # Some of its descriptors come after it answers: three of the watch over the config files (inotify, epoll, eventfd),
    # and one of the record, because SQLite keeps that of the first reader for the next one: to close it would end the
    # writer's lock.
    deadline = time.monotonic() + DEADLINE
    while surface.open_files(".sqlite") < 2:
        assert time.monotonic() < deadline
        assert _asked(link.port, "GET", "/api/history", session, None)[0] == 200
    return surface


@contextmanager
def kit(folder: Path) -> Iterator[Surface]:
    """A server on the kit."""
    command = [sys.executable, "-m", "tests.mcp_server.fakes.shop", "http", TOKEN]
    with started(command, folder / "kit.log") as process:
        yield _mcp_surface("kit", process, process.says(r"(http://\S+)/mcp")[1])


@contextmanager
def bridge(folder: Path, url: str, office: str, *options: str) -> Iterator[Surface]:
    """`a2c mcp --http` for an office."""
    place = ["--url", url, "--office", office, "--name", "bridge", "--http", "0", "--http-token", TOKEN]
    runtime = folder / "r"
    runtime.mkdir(mode=0o700)
    command = ["env", f"XDG_RUNTIME_DIR={runtime}", f"XDG_STATE_HOME={runtime}", A2C, "mcp", *place, *options]
    with started(command, folder / "bridge.log") as process:
        yield _mcp_surface("bridge", process, process.says(r"ready on (http://\S+)/mcp")[1])


def _mcp_surface(name: str, process: Started, url: str) -> Surface:
    headers = {**_MCP, "authorization": f"Bearer {TOKEN}"}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": _INITIALIZE})
    status, found, content = _asked(urlsplit(url).port or 0, "POST", "/mcp", headers, body)
    assert status == 200, content
    session = {**headers, "mcp-session-id": found["mcp-session-id"]}
    ping = json.dumps({"jsonrpc": "2.0", "id": 2, "method": "ping"})
    return Surface(name, process, url, "POST", "/mcp", session, ping)


@dataclass
class Session:
    """Asks a surface again and again while something goes on, and counts how it fared."""

    surface: Surface
    calls: int = 0
    slowest: float = 0.0
    failures: list[str] = field(default_factory=list)

    @contextmanager
    def asking(self, pause: float = 0.02) -> Iterator[None]:
        """Ask all the time inside the block, and at least once."""
        stop = threading.Event()
        self.calls, self.slowest, self.failures = 0, 0.0, []

        def ask() -> None:
            while True:
                self._ask()
                if stop.wait(pause):
                    return

        asking = threading.Thread(target=ask)
        asking.start()
        try:
            yield
        finally:
            stop.set()
            asking.join()

    def _ask(self) -> None:
        began = time.monotonic()
        try:
            status: object = self.surface.ask()
        except (OSError, http.client.HTTPException) as error:
            status = repr(error)
        self.calls += 1
        self.slowest = max(self.slowest, time.monotonic() - began)
        if status != 200:
            self.failures.append(f"{self.surface.name}: {status}")


def unharmed(
    surfaces: list[Surface], attack: Callable[[], object], then: Callable[[], object] | None = None, times: float = 25.0
) -> None:
    """Run the attack, and what comes after it, and assert that no session was refused during the attack, nor had to
    wait long. Quiet is measured before and after, because a shared machine is quiet in different ways.
    """
    sessions = [Session(each) for each in surfaces]

    def watched(what: Callable[[], object]) -> list[float]:
        with ExitStack() as asking:
            for session in sessions:
                asking.enter_context(session.asking())
            what()
        assert [failure for session in sessions for failure in session.failures] == []
        return [session.slowest for session in sessions]

    before = watched(lambda: time.sleep(_QUIET_SECONDS))
    during = watched(attack)
    if then is not None:
        then()
    after = watched(lambda: time.sleep(_QUIET_SECONDS))
    for session, one, slowest, two in zip(sessions, before, during, after, strict=True):
        # Six workers share two cores: a short quiet says little about how long a process may have to wait for one.
        quiet = max(one, two, 0.04)
        assert slowest <= times * quiet, f"{session.surface.name}: {slowest:.3f} s against {quiet:.3f} s in quiet"
