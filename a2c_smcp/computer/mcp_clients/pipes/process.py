"""The process of an MCP server. Knows processes and their pipes, nothing of what is said over them.

On Linux a Computer starts its servers through a guardian (`guardian`), which ends all that they leave. `Process` is for
other systems, and for connections without a Computer. It leads a process group and a session of its own, and the whole
group ends with it. If the event loop is dropped, the group is killed when the `Process` is collected. If this program
is killed, the server sees EOF and, on Linux, gets a SIGTERM. What starts a session of its own is out of reach.
"""

# The standard library imports this when an executor is first used. If another thread imported it in the middle of our
# fork, the hooks of the fork would release a lock that they never took.
import concurrent.futures.thread  # noqa: F401
import ctypes
import logging
import math
import os
import re
import signal
import subprocess
import sys
import weakref
from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Final

import anyio

from a2c_smcp.computer.mcp_clients.model import StdioParameters

__all__ = [
    "INHERITED",
    "Process",
    "ServerProcess",
    "StdioTimings",
    "describe_exit",
    "environment_of",
    "withheld_advice",
]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StdioTimings:
    """How long each step of the shutdown may take, in seconds."""

    flush: float = 0.5
    """For the messages that were accepted to reach the server."""
    eof: float = 0.5
    """For the server to exit by itself when its stdin closes: a clean exit is better than a signal."""
    terminate: float = 2.0
    """Between SIGTERM and SIGKILL."""
    kill: float = 2.0
    """For the kernel to end what was killed."""
    drain: float = 0.5
    """For the output that a dead server left in its pipes. A child of the server may keep them open."""


class ServerProcess(ABC):
    """A process with pipes. `stop` ends it and what it started. Made in the event loop's thread."""

    def __init__(self, pid: int, stdin: IO[bytes], stdout: IO[bytes], stderr: IO[bytes]) -> None:
        self.pid = pid
        self.stdin = _roomy(_non_blocking(stdin))
        self.stdout = _roomy(_non_blocking(stdout))
        self.stderr = _non_blocking(stderr)
        self.exit_code: int | None = None
        """Negative for a signal; `None` while it runs, and if nobody knows it."""

    @property
    def exit_reason(self) -> str | None:
        """How it ended, in words; `None` while it runs."""
        return None if self.exit_code is None else describe_exit(self.exit_code)

    @property
    def has_unread(self) -> bool:
        """Whether the child has not read everything yet. `False` on a system that cannot tell."""
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

    @abstractmethod
    async def wait(self) -> None:
        """Wait until the server itself has exited, even if a process that it started keeps its pipes open."""

    @abstractmethod
    async def stop(self, timings: StdioTimings) -> None:
        """Wait for its exit, then SIGTERM, wait, SIGKILL. Needs no other task, because other tasks may be cancelled."""

    @abstractmethod
    def destroy(self) -> None:
        """Kill the processes that are left, and close the pipes. Needs no event loop. After `stop` no process is
        left.
        """

    def close_pipes(self) -> None:
        for pipe in (self.stdin, self.stdout, self.stderr):
            pipe.close()


class Process(ServerProcess):
    """A child that leads a process group. `stop` ends the whole group."""

    def __init__(self, parameters: StdioParameters) -> None:
        # Not asyncio's own subprocess: its `wait` waits for the pipes too, which a grandchild may hold.
        self._popen = subprocess.Popen(
            [parameters.command, *parameters.args],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment_of(parameters),
            cwd=parameters.cwd,
            start_new_session=True,
            preexec_fn=_die_with_parent(),
        )
        self._over = False
        self._last_resort = weakref.finalize(self, _kill_group, self._popen.pid, os.getpid())
        stdin, stdout, stderr = self._popen.stdin, self._popen.stdout, self._popen.stderr
        assert stdin is not None
        assert stdout is not None
        assert stderr is not None
        super().__init__(self._popen.pid, stdin, stdout, stderr)

    async def wait(self) -> None:
        if sys.platform == "linux":
            with suppress(OSError):  # an old kernel has no pidfd
                pidfd = os.pidfd_open(self.pid)
                try:
                    await anyio.wait_readable(pidfd)
                finally:
                    os.close(pidfd)
        # On other systems, look now and then. In most cases EOF on stdout comes first.
        await self._until(self._has_exited, math.inf, every=0.5)

    async def stop(self, timings: StdioTimings) -> None:
        if not await self._until(self._has_exited, timings.eof):
            self._signal(signal.SIGTERM)
        if not await self._until(self._group_is_gone, timings.terminate):
            self._signal(signal.SIGKILL)
            # Wait for the leader only: the others are dead, or zombies that the init process has not reaped yet.
            if not await self._until(self._has_exited, timings.kill):
                logger.warning("MCP server %d survived SIGKILL", self.pid)

    def destroy(self) -> None:
        if not self._over:
            self._signal(signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):
                self._popen.wait(1)
            self._over = True
        self._last_resort.detach()
        self.close_pipes()

    async def _until(self, condition: Callable[[], bool], timeout: float, every: float = 0.01) -> bool:
        deadline = anyio.current_time() + timeout
        while not condition():
            if anyio.current_time() >= deadline:
                return False
            await anyio.sleep(every)
        return True

    def _has_exited(self) -> bool:
        if self.exit_code is None and self._popen.poll() is not None:
            self.exit_code = self._popen.returncode
            self._signal(signal.SIGTERM)  # at once, to all processes that it left behind
        return self.exit_code is not None

    def _group_is_gone(self) -> bool:
        # Look only once the leader is reaped: a zombie still counts as a member of the group.
        if self._has_exited() and not self._over:
            with suppress(ChildProcessError):
                os.waitpid(-self.pid, os.WNOHANG)  # in a container we may be the init process, which reaps orphans
            try:
                os.killpg(self.pid, 0)
            except ProcessLookupError:
                self._over = True  # from now on another process may get this number
            except OSError:
                pass
        return self._over

    def _signal(self, number: signal.Signals) -> None:
        if not self._over:
            with suppress(OSError):
                os.killpg(self.pid, number)


#: The variables of this program that every server gets: those that mcp's own client gives it.
INHERITED: Final = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER")


def environment_of(parameters: StdioParameters) -> dict[str, str]:
    """The variables of a server: a few of this program's, and those of its config."""
    inherited = {key: value for key in INHERITED if (value := os.environ.get(key)) is not None}
    # Old shells keep functions in variables, and run what follows them.
    return {key: value for key, value in inherited.items() if not value.startswith("()")} | (parameters.env or {})


#: Without these a program behind a company's proxy reaches nothing.
_OF_THE_NETWORK: Final = (
    *("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "https_proxy", "http_proxy", "all_proxy"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE"),
)


#: How programs say that they reach nothing, or trust nobody.
_UNREACHED: Final = re.compile(
    r"E?NOTFOUND|ECONN|ETIMEDOUT|EAI_AGAIN|EHOSTUNREACH|getaddrinfo|resolve|unreachable|timed? ?out|prox|certificate|"
    r"_CERT|\b(?:SSL|TLS|network|fetch|connection|connect)\b",
    re.IGNORECASE,
)


def withheld_advice(reason: str, parameters: StdioParameters, environ: Mapping[str, str]) -> str:
    """What to do if a server failed because it lacks the proxy or the authorities of this computer; empty if its reason
    does not sound so, or if it lacks none.
    """
    if not _UNREACHED.search(reason):
        return ""
    given = environment_of(parameters)
    missing = [name for name in _OF_THE_NETWORK if environ.get(name) and name not in given]
    if not missing:
        return ""
    env = ", ".join(f'"{name}": "${{env:{name}}}"' for name in missing)
    return f'; it does not get {", ".join(missing)} of this computer. If it needs them: "env": {{{env}}}'


def _non_blocking(pipe: IO[bytes]) -> IO[bytes]:
    os.set_blocking(pipe.fileno(), False)
    return pipe


def _roomy(pipe: IO[bytes]) -> IO[bytes]:
    """The pipe with a larger buffer: with 64 KiB both ends wake up for every piece of a large message."""
    if sys.platform == "linux":
        import fcntl  # there is none on Windows, where this module is only imported

        with suppress(OSError):  # the limit of the user's pipes is reached
            fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, 256 * 1024)
    return pipe


def _kill_group(pid: int, owner: int) -> None:
    # A fork of this process has the finalizer, too, and must not kill.
    if os.getpid() == owner:
        with suppress(OSError):
            os.killpg(pid, signal.SIGKILL)


def _die_with_parent() -> Callable[[], None] | None:
    """The child calls this between fork and exec. It then gets SIGTERM when the thread that made it ends.

    Python code that runs after a fork must do little: here one system call, looked up before, and one comparison.
    `PyDLL` keeps the interpreter's lock: after the fork no other thread waits for it.
    """
    if sys.platform != "linux":
        return None
    prctl = ctypes.PyDLL(None).prctl
    parent = os.getpid()

    def arm() -> None:
        prctl(1, int(signal.SIGTERM), 0, 0, 0)  # PR_SET_PDEATHSIG
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
