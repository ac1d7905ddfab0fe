"""Contestants as processes: every role its own. Start one, ask it, read what it costs, stop it."""

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
BENCH = ROOT / "bench"
INTEROP = ROOT / ".venv-interop" / "bin" / "python"
PEERS = ROOT / "tests" / "interop" / "peers"
A2C = str(Path(sys.executable).parent / "a2c")
CONTESTANTS = ("ours", "existing")
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_START_SECONDS = 120


def cpu_seconds(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


class Process:
    """A process that has said it is ready. What it says later is kept out of the way."""

    def __init__(self, command: Sequence[str], ready: str, env: Mapping[str, str] | None = None) -> None:
        self._popen = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env
        )
        self.pid = self._popen.pid
        lines = []
        with self._deadline(_START_SECONDS):
            for line in self._popen.stdout or ():
                lines.append(line)
                if match := re.search(ready, line):
                    self.said = match[match.lastindex or 0]
                    return
        self.stop()
        raise SystemExit(f"{' '.join(command)} did not start:\n{''.join(lines[-20:])}")

    @contextmanager
    def _deadline(self, seconds: float) -> Iterator[None]:
        watchdog = threading.Timer(seconds, self._popen.kill)
        watchdog.start()
        try:
            yield
        finally:
            watchdog.cancel()

    def ask(self, op: str, seconds: float = 300, **arguments: Any) -> dict[str, Any]:
        """Have a driver do something, and return its figures."""
        assert self._popen.stdin
        assert self._popen.stdout
        self._popen.stdin.write(json.dumps({"op": op, **arguments}) + "\n")
        self._popen.stdin.flush()
        with self._deadline(seconds):
            for line in self._popen.stdout:
                if line.startswith("RESULT "):
                    figures: dict[str, Any] = json.loads(line.removeprefix("RESULT "))
                    return figures
        raise SystemExit(f"the driver ended while it did {op}")

    def drain(self) -> None:
        """Nobody reads on: what it still says must not fill the pipe."""
        assert self._popen.stdout
        threading.Thread(target=self._popen.stdout.read, daemon=True).start()

    def cpu_seconds(self) -> float:
        """User and system time of the process so far."""
        return cpu_seconds(self.pid)

    def rss_bytes(self) -> int:
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * _PAGE

    def stop(self) -> None:
        self._popen.terminate()
        try:
            self._popen.communicate(timeout=10)
        except (subprocess.TimeoutExpired, ValueError):
            self._popen.kill()
            self._popen.wait()


@contextmanager
def running(command: Sequence[str], ready: str, env: Mapping[str, str] | None = None) -> Iterator[Process]:
    process = Process(command, ready, env)
    try:
        yield process
    finally:
        process.stop()


@contextmanager
def server(contestant: str, *arguments: str) -> Iterator[Process]:
    """A server of the contestant, on a port the system picks; `said` is its URL."""
    if contestant == "existing" and not INTEROP.exists():
        raise SystemExit("the existing implementation is missing: run `make bench`, which sets up .venv-interop")
    commands = {
        "ours": [A2C, "server", "--port", "0", "--log-level", "error", *arguments],
        "existing": [str(INTEROP), "-I", str(PEERS / "server.py"), "async"],
    }
    with running(commands[contestant], r"(http://127\.0\.0\.1:\d+)") as process:
        process.drain()
        yield process


@dataclass(frozen=True)
class Stack:
    """All three roles of one contestant."""

    server: Process
    computer: Process
    agent: Process

    @property
    def roles(self) -> dict[str, Process]:
        return {"server": self.server, "computer": self.computer, "agent": self.agent}


@contextmanager
def stack(contestant: str, servers: Mapping[str, Sequence[str]]) -> Iterator[Stack]:
    """A server, a computer that hosts these MCP servers (a command each), and an agent that waits for work."""
    with server(contestant) as host, clients(contestant, servers, host.said, host.said) as (member, agent):
        yield Stack(host, member, agent)


@contextmanager
def clients(
    contestant: str, servers: Mapping[str, Sequence[str]], computer_url: str, agent_url: str
) -> Iterator[tuple[Process, Process]]:
    """A computer that hosts these MCP servers at one server, and an agent at one that may be another."""
    place = ("bench-office", "bench-computer")
    python = sys.executable if contestant == "ours" else str(INTEROP)
    driver = [python, str(BENCH / "drivers" / f"{contestant}.py"), agent_url, *place]
    with computer(contestant, computer_url, *place, servers) as member, running(driver, "READY") as agent:
        yield member, agent


@contextmanager
def computer(
    contestant: str, url: str, office: str, name: str, servers: Mapping[str, Sequence[str]]
) -> Iterator[Process]:
    """A computer in an office, which hosts these MCP servers."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "servers.json"
        config.write_text(json.dumps([_config(name, command) for name, command in servers.items()]))
        place = (url, office, name)
        commands = {
            "ours": [
                *(A2C, "computer", "run", "--headless", "--yes", "--config", str(config)),
                *("--url", url, "--office", office, "--name", name),
            ],
            "existing": [str(INTEROP), "-I", str(BENCH / "drivers" / "existing_computer.py"), *place, str(config)],
        }
        with running(commands[contestant], r"READY|is in office") as process:
            process.drain()
            yield process


def _config(name: str, command: Sequence[str]) -> dict[str, Any]:
    return {
        "name": name,
        "type": "stdio",
        "default_tool_meta": {"auto_apply": True},
        "server_parameters": {"command": command[0], "args": list(command[1:])},
    }
