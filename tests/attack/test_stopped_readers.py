"""A terminal or a log that nobody reads: it holds up no call, no answer and no end.

Who does not read is the person themselves (Ctrl-S), or the program that keeps the log. Output that waits in the kernel
fills the rest: without a thread for it, the next word would stop the process.
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pexpect

from tests.attack.harness import ECHO, HERE, Pair, target
from tests.attack.processes import A2C, DEADLINE, Started, started

PATIENCE = 1.0
"""After so long a reader that reads nothing has stopped."""


def until(done: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + DEADLINE
    while not done():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def config(folder: Path) -> str:
    echo = {
        "name": "echo",
        "type": "stdio",
        "default_tool_meta": {"auto_apply": True},
        "server_parameters": {"command": sys.executable, "args": ["-I", "-S", ECHO]},
    }
    file = folder / "config.json"
    file.write_text(json.dumps([echo]))
    return str(file)


@contextmanager
def agent(url: str, folder: Path) -> Iterator[Started]:
    """One that calls `pc` in the office `o`."""
    with started([sys.executable, str(HERE / "honest_agent.py"), url, "o", "pc"], folder / "agent.log") as process:
        yield process


# --- the prompt


class Person:
    """Somebody who types at a prompt, and reads when they like."""

    def __init__(self, folder: Path, url: str) -> None:
        clean = {key: value for key, value in os.environ.items() if not key.startswith("A2C_")}
        env = {**clean, "XDG_STATE_HOME": str(folder), "TERM": "xterm"}
        command = ["computer", "run", "--yes", "--name", "pc", "--office", "o", "--url", url, "--config"]
        self._folder = folder
        self._typed = 0
        self.terminal = pexpect.spawn(
            A2C, [*command, config(folder)], env=env, encoding="utf-8", timeout=DEADLINE, dimensions=(50, 100)
        )
        self.terminal.delaybeforesend = None
        self.terminal.expect_exact("in office o as pc")

    def types(self, times: int) -> None:
        """Commands with long answers, until all of them were taken: the history has them."""
        for _ in range(times):
            self.terminal.send("help\rstatus\r")
            self._typed += 2
            until(lambda: self._taken() >= self._typed, "the prompt takes no commands")

    def _taken(self) -> int:
        return sum(len(re.findall(r"(?m)^\+", file.read_text())) for file in self._folder.rglob("history"))

    def stops_reading(self) -> None:
        self.types(16)
        time.sleep(PATIENCE)
        self.types(6)

    def reads_on(self) -> None:
        self.terminal.expect(r"! \d+ lines are not shown: the terminal was stopped")
        self.terminal.expect_exact("a2c>")

    @property
    def memory(self) -> int:
        """What the computer has, in KiB."""
        status = Path(f"/proc/{self.terminal.pid}/status").read_text()
        return int(re.findall(r"VmRSS:\s+(\d+) kB", status)[0])

    def leaves(self) -> None:
        self.terminal.close(force=True)


def test_a_prompt_that_nobody_reads_holds_up_no_call_and_no_end(tmp_path: Path) -> None:
    with target(tmp_path) as server:
        person = Person(tmp_path, server.url)
        try:
            with agent(server.url, tmp_path) as honest:
                honest.says("READY")
                memory: list[int] = []

                def attack() -> None:
                    for _ in range(3):
                        person.stops_reading()
                        person.reads_on()
                        memory.append(person.memory)

                Pair(honest, honest).unharmed_by(attack)
                assert memory[2] - memory[1] < 2048, memory
                person.stops_reading()
                person.terminal.kill(signal.SIGTERM)
                until(lambda: not person.terminal.isalive(), "it does not end")
                assert person.terminal.exitstatus == 0
        finally:
            person.leaves()


# --- the log


class Unread:
    """A process whose log goes into a pipe that is full from the time that it is told to be."""

    def __init__(self, command: Sequence[str]) -> None:
        self._read, self._write = os.pipe()
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=self._write)

    def says(self, pattern: str) -> str:
        said = ""
        while not (match := re.search(pattern, said)):
            said += os.read(self._read, 65536).decode()
        return match[1]

    def fill(self) -> None:
        os.set_blocking(self._write, False)
        try:
            while True:
                os.write(self._write, b"." * 4096)
        except BlockingIOError:
            pass
        finally:
            os.set_blocking(self._write, True)

    def ends(self) -> int:
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(DEADLINE)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._read)
        os.close(self._write)


@contextmanager
def unread(command: Sequence[str]) -> Iterator[Unread]:
    process = Unread(command)
    try:
        yield process
    finally:
        process.close()


def test_logs_that_nobody_reads_hold_up_no_call_and_no_end(tmp_path: Path) -> None:
    place = ["--office", "o", "--name", "pc", "--config", config(tmp_path)]
    with unread([A2C, "server", "--port", "0"]) as server:
        url = server.says(r"ready on (http://[\d.]+:\d+)\s")
        address = ("127.0.0.1", int(url.rpartition(":")[2]))
        server.fill()
        with unread([A2C, "computer", "run", "--headless", "--url", url, *place]) as computer:
            computer.fill()
            with agent(url, tmp_path) as honest:
                honest.says("READY")

                def attack() -> None:
                    for _ in range(20):  # each is a line in the server's log
                        with socket.create_connection(address) as stranger:
                            stranger.sendall(b"NONSENSE\r\n\r\n")
                            stranger.recv(1000)

                Pair(honest, honest).unharmed_by(attack)
            assert computer.ends() == 0
        assert server.ends() in (0, -signal.SIGTERM)
