"""A child process that is never left behind. Knows processes and their pipes, nothing of what is said over them.

It leads a session and process group of its own; whatever it leaves behind in that group ends with it. If the event loop
is dropped, the group is killed when the process object is collected; and if this process is killed, the child sees EOF
and, on Linux, gets a SIGTERM. A descendant that starts a session of its own is out of reach.
"""

# Imported by the standard library when an executor is first used: in another thread that may be in the middle of our
# fork, whose hooks would then release a lock that they never took.
import concurrent.futures.thread  # noqa: F401
import ctypes
import logging
import math
import os
import signal
import subprocess
import sys
import weakref
from array import array
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Final

import anyio
from mcp.client.stdio import get_default_environment

from a2c_smcp.computer.mcp_clients.model import StdioParameters

__all__ = ["Process", "StdioTimings", "describe_exit"]

logger = logging.getLogger(__name__)

_PR_SET_PDEATHSIG: Final = 1


@dataclass(frozen=True, slots=True)
class StdioTimings:
    """How long each step of the shutdown may take, in seconds."""

    flush: float = 0.5
    """For messages that were accepted to reach the server."""
    eof: float = 0.5
    """For the server to leave by itself when its stdin closes; a clean exit beats a signal."""
    terminate: float = 2.0
    """The grace between SIGTERM and SIGKILL."""
    kill: float = 2.0
    """For the kernel to end what was killed."""
    drain: float = 0.5
    """For output that a dead server left in its pipes; a child of its own may hold them open."""


class Process:
    """A child that leads a process group, and how the whole group is ended. Spawned from the event loop's thread."""

    def __init__(self, parameters: StdioParameters) -> None:
        # Not asyncio's own subprocess: its `wait` waits for the pipes too, which a grandchild may hold.
        self._popen = subprocess.Popen(
            [parameters.command, *parameters.args],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=get_default_environment() | (parameters.env or {}),
            cwd=parameters.cwd,
            start_new_session=True,
            preexec_fn=_die_with_parent(),
        )
        self.pid = self._popen.pid
        self._over = False
        self._last_resort = weakref.finalize(self, _kill_group, self.pid, os.getpid())
        self.stdin = _roomy(_non_blocking(self._popen.stdin))
        self.stdout = _roomy(_non_blocking(self._popen.stdout))
        self.stderr = _non_blocking(self._popen.stderr)

    @property
    def exit_code(self) -> int | None:
        return self._popen.returncode

    @property
    def has_unread(self) -> bool:
        """Whether something that was written to it waits in the pipe; where the system cannot tell, nothing does."""
        if sys.platform != "linux" or self.stdin.closed:
            return False
        import fcntl
        import termios

        waiting = array("i", [0])
        try:
            fcntl.ioctl(self.stdin.fileno(), termios.FIONREAD, waiting)
        except OSError:
            return False
        return waiting[0] > 0

    async def wait(self) -> None:
        """Wait until the server itself has exited, even if a process that it started still holds its pipes."""
        if sys.platform == "linux":
            with suppress(OSError):  # a kernel that has none
                pidfd = os.pidfd_open(self.pid)
                try:
                    await anyio.wait_readable(pidfd)
                finally:
                    os.close(pidfd)
        # On other systems ask now and then: mostly EOF on stdout tells first.
        await self._until(self._has_exited, math.inf, every=0.5)

    async def stop(self, timings: StdioTimings) -> None:
        """Let it leave, then SIGTERM, grace, SIGKILL. It does not rely on any other task, as those may be cancelled."""
        if not await self._until(self._has_exited, timings.eof):
            self._signal(signal.SIGTERM)
        if not await self._until(self._group_is_gone, timings.terminate):
            self._signal(signal.SIGKILL)
            # Only for itself: the others are dead by now, or zombies that an init process has yet to reap.
            if not await self._until(self._has_exited, timings.kill):
                logger.warning("MCP server %d survived SIGKILL", self.pid)

    def destroy(self) -> None:
        """Kill what is left, without an event loop, as it may be gone. After `stop` nothing is. Closes the pipes."""
        if not self._over:
            self._signal(signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):
                self._popen.wait(1)
            self._over = True
        self._last_resort.detach()
        for pipe in (self.stdin, self.stdout, self.stderr):
            pipe.close()

    async def _until(self, condition: Callable[[], bool], timeout: float, every: float = 0.01) -> bool:
        deadline = anyio.current_time() + timeout
        while not condition():
            if anyio.current_time() >= deadline:
                return False
            await anyio.sleep(every)
        return True

    def _has_exited(self) -> bool:
        if self.exit_code is None and self._popen.poll() is not None:
            self._signal(signal.SIGTERM)  # at once, to whatever it left behind
        return self.exit_code is not None

    def _group_is_gone(self) -> bool:
        # Asked only once the leader is reaped: a zombie counts as a member.
        if self._has_exited() and not self._over:
            with suppress(ChildProcessError):
                os.waitpid(-self.pid, os.WNOHANG)  # in a container we may be the init process that orphans fall to
            try:
                os.killpg(self.pid, 0)
            except ProcessLookupError:
                self._over = True  # another process may get its number from now on
            except OSError:
                pass
        return self._over

    def _signal(self, number: signal.Signals) -> None:
        if not self._over:
            with suppress(OSError):
                os.killpg(self.pid, number)


def _non_blocking(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    os.set_blocking(pipe.fileno(), False)
    return pipe


def _roomy(pipe: IO[bytes]) -> IO[bytes]:
    """A pipe that takes a message of some size at once: with 64 KiB both ends wake for every piece of it."""
    if sys.platform == "linux":
        import fcntl  # there is none on Windows, where this module is only imported

        with suppress(OSError):  # the user's pipes have all the memory that they may have
            fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, 256 * 1024)
    return pipe


def _kill_group(pid: int, owner: int) -> None:
    # A fork of ours inherits the finalizer, but not the right to use it.
    if os.getpid() == owner:
        with suppress(OSError):
            os.killpg(pid, signal.SIGKILL)


def _die_with_parent() -> Callable[[], None] | None:
    """What the child does between fork and exec so that it gets SIGTERM when the thread that spawned it ends.

    Runs Python code after a fork, so it does next to nothing: one system call that was looked up before, and one
    comparison. `PyDLL` keeps the interpreter's lock: after the fork no other thread waits for it.
    """
    if sys.platform != "linux":
        return None
    prctl = ctypes.PyDLL(None).prctl
    parent = os.getpid()

    def arm() -> None:
        prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
        if os.getppid() != parent:  # it died before the signal was armed
            os._exit(1)

    return arm


def describe_exit(code: int) -> str:
    """An exit code in words: `exit code 3`, `killed by SIGKILL`."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"
