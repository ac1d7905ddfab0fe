"""`a2c` run to its end, in a process that is forked from one which has imported the libraries already.

Most of the CPU time of a short command goes into importing other people's libraries. Here that happens once in each
worker. Our own modules are imported by each command, which has arguments, an environment, files and an interpreter's
end of its own. What a terminal, a signal or a pipe does to a command is tested with one that is started by its name. So
is a variable that a library reads when it is imported, as aiohttp reads SSL_CERT_FILE.

    forked.py SOCKET    the process that is forked, until its stdin is closed
"""

import atexit
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO, Any

__all__ = ["A2C", "Commands", "commands", "shared"]

A2C = str(Path(sys.executable).with_name("a2c"))
_LIBRARIES = ("typer", "rich.console", "pydantic", "socketio", "aiohttp", "uvloop", "uvicorn", "mcp")
_START_SECONDS = 60


class Commands:
    """Runs `a2c` as often as it is told to."""

    def __init__(self, address: str) -> None:
        self.address = address

    def run(
        self, words: Sequence[str], *, env: Mapping[str, str], stdin: bytes = b"", timeout: float = 60
    ) -> "subprocess.CompletedProcess[bytes]":
        """Its status, and what it wrote. Raises `TimeoutError` after these seconds, and the command is killed."""
        with (
            socket.socket(socket.AF_UNIX) as connection,
            tempfile.TemporaryFile() as given,
            tempfile.TemporaryFile() as stdout,
            tempfile.TemporaryFile() as stderr,
        ):
            given.write(stdin)
            given.seek(0)
            connection.settimeout(timeout)
            connection.connect(self.address)
            socket.send_fds(connection, [b"\n"], [file.fileno() for file in (given, stdout, stderr)])
            request = {"words": list(words), "env": dict(env), "cwd": os.getcwd()}
            connection.sendall(json.dumps(request).encode() + b"\n")
            with connection.makefile("rb") as answers:
                status = _status(answers)
            return subprocess.CompletedProcess(["a2c", *words], status, _content(stdout), _content(stderr))

    def run_text(self, *words: str, env: Mapping[str, str], timeout: float = 60) -> "subprocess.CompletedProcess[str]":
        """The same, and what it wrote is text."""
        done = self.run(words, env=env, timeout=timeout)
        return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def _status(answers: IO[bytes]) -> int:
    pid = int(answers.readline())
    try:
        return int(answers.readline())
    except TimeoutError:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        raise


def _content(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()


@contextmanager
def commands() -> Iterator[Commands]:
    # Not pytest's own directory: the path of a socket has 103 bytes at most.
    with tempfile.TemporaryDirectory(prefix="a2c-forked-") as folder:
        address = f"{folder}/socket"
        # A file, not a module: the name of a command in its help is that of the module, if there is one.
        command = [sys.executable, "-P", __file__, address]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdin is not None and process.stdout is not None
            readable, _, _ = select.select([process.stdout], [], [], _START_SECONDS)
            assert readable and process.stdout.readline() == b"ready\n"
            try:
                yield Commands(address)
            finally:
                process.stdin.close()
                process.wait(_START_SECONDS)


@cache
def shared() -> Commands:
    """The same process for all tests of a worker. It is started at the first use, and ends with the worker."""
    started = ExitStack()
    atexit.register(started.close)
    return started.enter_context(commands())


# --- the process that is forked


def main(address: str) -> None:
    for name in _LIBRARIES:
        importlib.import_module(name)
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that report
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        print("ready", flush=True)
        while True:
            readable, _, _ = select.select([listener, sys.stdin], [], [])
            if sys.stdin in readable:
                return
            connection, _ = listener.accept()
            if os.fork() == 0:
                break
            connection.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _run(connection)


def _run(connection: socket.socket) -> None:
    """Run one command in a process of its own, and report its status."""
    _, files, _, _ = socket.recv_fds(connection, 1, 3)
    with connection.makefile("rb") as lines:
        request: dict[str, Any] = json.loads(lines.readline())
    pid = os.fork()
    if pid == 0:
        connection.close()
        _become_the_command(files, **request)
    for file in files:
        os.close(file)
    connection.sendall(b"%d\n" % pid)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with suppress(BrokenPipeError):
        connection.sendall(b"%d\n" % status)
    os._exit(0)


def _become_the_command(files: list[int], words: list[str], env: dict[str, str], cwd: str) -> None:
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = [A2C, *words]
    from a2c_office import a2c

    sys.exit(a2c())  # type: ignore[func-returns-value]  # as the installed script does


if __name__ == "__main__":
    main(sys.argv[1])
