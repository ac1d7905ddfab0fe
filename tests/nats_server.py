"""Real NATS servers on loopback, alone or three together: from the PATH, else from the development dependency."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["NatsServer", "free_ports", "nats_binary", "running_cluster", "running_nats"]

_DEADLINE = 60.0
#: For the attempts to form a cluster, in seconds.
_PATIENCE = (20.0, 20.0, 40.0)


def nats_binary() -> str:
    """The `nats-server` to run."""
    found = shutil.which("nats-server") or shutil.which("nats-server", path=str(Path(sys.executable).parent))
    assert found is not None, "no nats-server: install the development dependencies"
    return found


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on. They are reserved together, so that they differ."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in sockets]


@dataclass
class NatsServer:
    """One NATS server with JetStream in a folder of its own. It keeps its ports and its folder over a restart."""

    folder: Path
    name: str = "n0"
    port: int = 0
    monitor_port: int = 0
    arguments: Sequence[str] = ()
    jetstream: bool = True
    popen: "subprocess.Popen[bytes] | None" = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not self.port:
            self.port, self.monitor_port = free_ports(2)

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self.popen is not None
        return self.popen.pid

    def launch(self) -> None:
        """Start the process; `wait_until_ready` waits for it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        jetstream = ("--jetstream", "--store_dir", str(self.folder / "store")) if self.jetstream else ()
        with (self.folder / "log").open("ab") as log:
            self.popen = subprocess.Popen(
                [
                    *(nats_binary(), "--name", self.name, "--addr", "127.0.0.1", "--port", str(self.port)),
                    *("--http_port", str(self.monitor_port), *jetstream, *self.arguments),
                ],
                stdout=log,
                stderr=log,
            )

    def wait_until_ready(self, seconds: float = _DEADLINE) -> None:
        """Wait until JetStream is there; with several servers: until they have a leader."""
        deadline = time.monotonic() + seconds
        while not self._is_ready():
            assert self.popen is not None
            log = (self.folder / "log").read_text(errors="replace")
            assert self.popen.poll() is None, log
            assert time.monotonic() < deadline, log
            time.sleep(0.02)

    def _is_ready(self) -> bool:
        url = f"http://127.0.0.1:{self.monitor_port}/healthz"
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5) as reply:
            return bool(reply.status == 200)
        return False

    def start(self) -> None:
        self.launch()
        self.wait_until_ready()

    def send(self, number: int) -> None:
        os.kill(self.pid, number)

    def end(self, number: int = signal.SIGTERM) -> None:
        """End the process and wait for it. Does nothing when it is not running."""
        if self.popen is None:
            return
        self.popen.send_signal(signal.SIGCONT)
        self.popen.send_signal(number)
        try:
            self.popen.wait(_DEADLINE)
        finally:
            self.popen.kill()
            self.popen.wait()
            self.popen = None

    def kill(self) -> None:
        self.end(signal.SIGKILL)

    def restart(self) -> None:
        self.end()
        self.start()


@contextlib.contextmanager
def running_nats(folder: Path, arguments: Sequence[str] = (), *, jetstream: bool = True) -> Iterator[NatsServer]:
    """One server, for a test that does something to it."""
    server = NatsServer(folder, arguments=arguments, jetstream=jetstream)
    try:
        server.start()
        yield server
    finally:
        server.kill()


@contextlib.contextmanager
def running_cluster(folder: Path, count: int = 3) -> Iterator[list[NatsServer]]:
    """Servers that form one cluster."""
    servers = _formed_cluster(folder, count)
    try:
        yield servers
    finally:
        for server in servers:
            server.kill()


def _formed_cluster(folder: Path, count: int) -> list[NatsServer]:
    """Servers that have a leader. Once, three that began together had found none after a minute: then with others."""
    for attempt, seconds in enumerate(_PATIENCE, 1):
        servers = _cluster(folder / f"attempt{attempt}", count)
        try:
            for server in servers:
                server.launch()
            for server in servers:
                server.wait_until_ready(seconds)
        except BaseException as error:
            for server in servers:
                server.kill()
            if not isinstance(error, AssertionError) or attempt == len(_PATIENCE):
                raise
        else:
            return servers
    raise AssertionError("no attempt")


def _cluster(folder: Path, count: int) -> list[NatsServer]:
    routes = free_ports(count)
    return [
        NatsServer(
            folder / f"n{index}",
            f"n{index}",
            arguments=(
                *("--cluster_name", "test", "--cluster", f"nats://127.0.0.1:{routes[index]}"),
                *("--routes", ",".join(f"nats://127.0.0.1:{port}" for port in routes)),
            ),
        )
        for index in range(count)
    ]
