"""The computer's side of the guardian (`guardian_process`): starts MCP servers through it, and hears of their ends.

The pipes of a server are plain pipes between it and the computer. The guardian is on the way of no message: it has
passed their other ends on, and waits.
"""

import asyncio
import errno
import logging
import marshal
import os
import socket
import subprocess
import sys
import weakref
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from typing import IO, Final

import anyio

from a2c_smcp.computer.mcp_clients.model import StdioParameters
from a2c_smcp.computer.mcp_clients.pipes import guardian_process
from a2c_smcp.computer.mcp_clients.pipes.leftovers import MARK, Owner, end_left_over, end_marked
from a2c_smcp.computer.mcp_clients.pipes.process import ServerProcess, StdioTimings, describe_exit, environment_of
from a2c_smcp.utils.system import HAS_GUARDIANS

__all__ = ["GuardedProcess", "Guardian"]

logger = logging.getLogger(__name__)

#: How long the guardian may take to start a server's process.
_START_SECONDS: Final = 20.0
#: How long it may take to end itself when nothing is left to guard.
_END_SECONDS: Final = 5.0

#: Guardians that may still run. Those of a loop that was closed too early are asked for their status later.
_unreaped: set["subprocess.Popen[bytes]"] = set()
#: The sockets that say with their end that this process has died. A fork of it must not keep them open.
_sockets: "weakref.WeakSet[socket.socket]" = weakref.WeakSet()


def _close_in_fork() -> None:
    for each in list(_sockets):
        each.close()


if HAS_GUARDIANS:
    os.register_at_fork(after_in_child=_close_in_fork)


class _KilledError(Exception):
    """The guardian does not answer any more."""


class Guardian:
    """Starts the servers of the computer of this name. Its process starts with the first of them, and again after it
    was killed. Close it with `aclose` when they have ended.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lives = 0
        self._process: _GuardianProcess | None = None
        self._sweep: asyncio.Future[None] | None = None

    @property
    def pid(self) -> int | None:
        """The process, if it was started."""
        return None if self._process is None else self._process.popen.pid

    async def swept(self) -> None:
        """Wait until what a dead run of this computer left is ended. It is looked for once."""
        if self._sweep is None:
            self._sweep = asyncio.ensure_future(asyncio.to_thread(_sweep, self._name))
        await asyncio.shield(self._sweep)

    async def spawn(self, parameters: StdioParameters, timings: StdioTimings, *, keeps: bool) -> "GuardedProcess":
        """Start a server. With `keeps`, processes of it that have sessions of their own may outlive it.

        Raises `OSError` if the command cannot be run, and `ValueError` if its parameters are impossible. If this is
        cancelled, the process is ended.
        """
        guardian = self._running()  # it starts during the search
        await self.swept()
        self._lives += 1
        mark = None if keeps else Owner.here(self._name).mark(self._lives)
        request = _request(parameters, mark, timings.terminate, keeps)
        for _ in range(2):
            try:
                return await guardian.spawn(request, parameters, mark)
            except _KilledError:
                guardian.close()
                guardian = self._running()
        raise OSError(errno.ECHILD, "the guardian of the MCP servers was killed while it started this one")

    def _running(self) -> "_GuardianProcess":
        """The process, or a new one. Servers that an old one has started go on running."""
        if self._process is None or self._process.is_over:
            self._process = _GuardianProcess()
        return self._process

    async def aclose(self) -> None:
        """End the guardian, which ends what is left of the servers. It may be used again."""
        process, self._process = self._process, None
        if process is not None:
            await process.aclose()


def _sweep(name: str) -> None:
    try:
        if count := end_left_over(Owner.here(name)):
            logger.warning("%d processes were ended that an earlier run of this computer had left", count)
    except Exception:
        # A boundary: whatever /proc shows, the servers start.
        logger.exception("it is not known what an earlier run of this computer has left")


class _GuardianProcess:
    """One process of the guardian. It ends when this is closed or collected, or when this program ends."""

    def __init__(self) -> None:
        _unreaped.difference_update([each for each in _unreaped if each.poll() is not None])
        self._channel, theirs = _socket_pair(socket.SOCK_SEQPACKET)
        with theirs:
            program = [sys.executable, "-I", "-S", guardian_process.__file__, str(theirs.fileno())]
            nowhere = subprocess.DEVNULL
            self.popen = subprocess.Popen(
                program,
                stdin=nowhere,
                stdout=nowhere,
                stderr=nowhere,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        self.close = weakref.finalize(self, self._channel.close)
        self._ended = asyncio.Event()
        _reap(self.popen, self._channel, self._ended)

    @property
    def is_over(self) -> bool:
        """Whether it was closed, or has ended by itself."""
        return self._ended.is_set() or not self.close.alive

    async def aclose(self) -> None:
        self.close()
        with anyio.move_on_after(_END_SECONDS, shield=True):
            await self._ended.wait()

    async def spawn(self, request: bytes, parameters: StdioParameters, mark: str | None) -> "GuardedProcess":
        with ExitStack() as theirs, ExitStack() as ours:
            given, pipes = [], []
            for mode in ("wb", "rb", "rb"):
                near, far = os.pipe() if mode == "rb" else reversed(os.pipe())
                pipes.append(ours.enter_context(open(near, mode, buffering=0)))  # noqa: ASYNC230 - it does not block
                theirs.callback(os.close, far)
                given.append(far)
            control, far_control = _socket_pair(socket.SOCK_STREAM)
            ours.enter_context(control)
            theirs.enter_context(far_control)
            spec = theirs.enter_context(open(os.memfd_create("request"), "wb"))  # noqa: ASYNC230
            spec.write(request)
            spec.seek(0)
            try:
                with anyio.fail_after(_START_SECONDS):
                    await self._send([*given, far_control.fileno(), spec.fileno()])
                    theirs.close()
                    said, rest = await _first_line(control)
            except (ConnectionError, TimeoutError):
                raise _KilledError from None
            kind, number, *where = said.split()
            if kind == "error":
                file = {"cwd": parameters.cwd, "command": parameters.command}.get(where[0])
                raise OSError(int(number), os.strerror(int(number)), *([file] if file else []))
            ours.pop_all()
            return GuardedProcess(int(number), control, pipes, mark, rest)

    async def _send(self, descriptors: list[int]) -> None:
        while True:
            try:
                socket.send_fds(self._channel, [b"s"], descriptors)
            except BlockingIOError:
                await anyio.wait_writable(self._channel)
            else:
                return


def _reap(popen: "subprocess.Popen[bytes]", channel: socket.socket, ended: asyncio.Event) -> None:
    """Take the status when a guardian has ended: otherwise the system would keep its number. This holds nothing of a
    computer, which may have been dropped.
    """
    loop, pidfd = asyncio.get_running_loop(), os.pidfd_open(popen.pid)
    close = weakref.finalize(loop, os.close, pidfd)
    _unreaped.add(popen)

    def on_end() -> None:
        asyncio.get_running_loop().remove_reader(pidfd)
        close()
        status = popen.wait()
        _unreaped.discard(popen)
        if channel.fileno() >= 0:  # the computer has not closed it
            text = "the guardian of the MCP servers has ended (%s); a new one starts with the next server"
            logger.warning(text, describe_exit(status))
        ended.set()

    loop.add_reader(pidfd, on_end)


def _socket_pair(kind: socket.SocketKind) -> tuple[socket.socket, socket.socket]:
    """Our end, which does not block, and the other."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, kind)
    ours.setblocking(False)
    _sockets.add(ours)
    return ours, theirs


async def _first_line(control: socket.socket) -> tuple[str, bytes]:
    said = b""
    while b"\n" not in said:
        await anyio.wait_readable(control)
        if not (chunk := control.recv(256)):
            raise ConnectionError
        said += chunk
    line, _, rest = said.partition(b"\n")
    return line.decode(), rest


def _request(parameters: StdioParameters, mark: str | None, grace: float, keeps: bool) -> bytes:
    """What a keeper needs to start a server. Raises `ValueError` if no process can have such parameters."""
    environment = environment_of(parameters) | ({} if mark is None else {MARK: mark})
    command = os.fsencode(parameters.command)
    folders = [b""] if os.path.dirname(command) else map(os.fsencode, os.get_exec_path(environment))
    arguments = [command, *map(os.fsencode, parameters.args)]
    variables = {os.fsencode(key): os.fsencode(value) for key, value in environment.items()}
    if any(b"=" in key for key in variables):
        raise ValueError("illegal environment variable name")
    cwd = None if parameters.cwd is None else os.fsencode(parameters.cwd)
    if any(b"\0" in text for text in (*arguments, *variables.keys(), *variables.values(), cwd or b"")):
        raise ValueError("embedded null byte")
    if cwd is None:
        with suppress(FileNotFoundError):  # it was deleted: the guardian has one
            cwd = os.getcwdb()
    paths = [os.path.join(folder, command) for folder in folders]
    return marshal.dumps((paths, arguments, variables, cwd, grace, keeps))


class GuardedProcess(ServerProcess):
    """A server that the guardian has started. A keeper is its parent, and ends it with all that it has started."""

    def __init__(
        self, pid: int, control: socket.socket, pipes: Sequence[IO[bytes]], mark: str | None, said: bytes
    ) -> None:
        super().__init__(pid, *pipes)
        self._control = control
        self._mark = mark
        self._said = b""
        self._exited, self._over = asyncio.Event(), asyncio.Event()
        self._is_lost = False
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(control.fileno(), self._hear)
        self._take(said)

    @property
    def exit_reason(self) -> str | None:
        return "its guardian was killed" if self.exit_code is None and self._is_lost else super().exit_reason

    async def wait(self) -> None:
        await self._exited.wait()

    async def stop(self, timings: StdioTimings) -> None:
        with anyio.move_on_after(timings.eof):
            await self._exited.wait()
        self._tell(b"T")
        with anyio.move_on_after(timings.terminate + timings.kill) as scope:
            await self._over.wait()
        if scope.cancelled_caught:
            logger.warning("the guardian did not end MCP server %d in time", self.pid)
        if (self._is_lost or scope.cancelled_caught) and self._mark is not None:
            await asyncio.to_thread(end_marked, self._mark)

    def destroy(self) -> None:
        if not self._over.is_set():
            self._tell(b"K")
            self._end()
        self._control.close()
        self.close_pipes()

    def _tell(self, letter: bytes) -> None:
        if not self._over.is_set():
            with suppress(OSError):  # then it has ended, and we shall hear it
                self._control.send(letter)

    def _end(self) -> None:
        self._loop.remove_reader(self._control.fileno())
        self._exited.set()
        self._over.set()

    def _hear(self) -> None:
        try:
            said = self._control.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            said = b""
        if said:
            self._take(said)
        else:
            self._is_lost = not self._over.is_set()
            self._end()

    def _take(self, said: bytes) -> None:
        *lines, self._said = (self._said + said).split(b"\n")
        for line in lines:
            match line.decode().split():
                case ["exit", status]:
                    self.exit_code = int(status)
                    self._exited.set()
                case ["left", count]:
                    logger.warning("%s processes of MCP server %d survived SIGKILL", count, self.pid)
                    self._end()
                case ["gone"]:
                    self._end()
