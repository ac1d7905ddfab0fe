"""The guardian: a small process that is the parent of a computer's MCP servers, and ends them when the computer dies.

    python -I -S guardian_process.py DESCRIPTOR

The descriptor is a local socket to the computer. For each server the computer sends a packet with five descriptors: its
stdin, stdout and stderr, a control socket, and a file with the request. The guardian forks a *keeper* for it, which
starts the server and is the parent of every process that the server leaves behind, also of daemons
(PR_SET_CHILD_SUBREAPER). So a keeper knows exactly which processes belong to its server, whatever their environment or
session. It ends them with SIGTERM, a grace, and SIGKILL when the server has ended, when the computer says so, and when
the computer has died: then its end of the control socket is closed. What a killed keeper leaves falls to the guardian.

The keeper writes lines: `pid N` or `error ERRNO WHERE` at the start, `exit STATUS` when the server has ended, `gone`
when nothing of it is left, or `left N` when N processes cannot be ended. It reads single letters: `T` ends the server
with the grace, `K` without.

This module imports little of the standard library and nothing of the package: its memory is kept per computer, and its
start is part of the first server's. The computer's side is `guardian`.
"""

import ctypes
import errno
import gc
import marshal
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress

__all__ = ["Ending", "Seen", "below", "processes"]

_PDEATHSIG, _CHILD_SUBREAPER = 1, 36
#: For the kernel to end what was killed. Processes of another user, or in a call to a dead disk, do not end.
_KILL_SECONDS = 10.0
#: How often to look again at processes that are ending: no signal tells of those that are no children of ours.
_LOOK_SECONDS = 0.05
#: For what a killed keeper leaves. Nobody knows its own grace any more.
_GRACE = 2.0
#: How many looks in a row must find nobody. A look takes a while, and may miss one who is made meanwhile by another who
#: ends meanwhile.
_EMPTY_LOOKS = 3


class Seen:
    """A process as /proc shows it."""

    __slots__ = ("parent", "session", "started", "state")

    def __init__(self, stat: bytes) -> None:
        fields = stat.rpartition(b") ")[2].split()
        self.state = fields[0]
        self.parent = int(fields[1])
        self.session = int(fields[3])
        self.started = int(fields[19])

    @property
    def lives(self) -> bool:
        return self.state not in b"ZX"


def processes() -> dict[int, Seen]:
    """All processes that can be seen, also those that have ended and were not reaped."""
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with suppress(OSError, IndexError), open(f"/proc/{entry}/stat", "rb", buffering=0) as file:
                found[int(entry)] = Seen(file.read())  # if it has not ended meanwhile
    return found


def below(root: int, seen: dict[int, Seen]) -> set[int]:
    """Every process that descends from this one."""
    children: dict[int, list[int]] = {}
    for pid, each in seen.items():
        children.setdefault(each.parent, []).append(pid)
    found: set[int] = set()
    level = [root]
    while level:
        level = [child for pid in level for child in children.get(pid, ()) if child not in found]
        found.update(level)
    return found


class Ending:
    """How processes are ended: SIGTERM once for each, a grace, then SIGKILL until they are gone.

    Call `strike` with those that live, again after each `pause`, and when one has ended.
    """

    def __init__(self, grace: float) -> None:
        now = time.monotonic()
        self.kills_at = now + grace
        self.gives_up_at = self.kills_at + _KILL_SECONDS
        self._spares_until = now + grace / 2
        self._told: set[int] = set()
        self._empty_looks = 0

    def hurry(self) -> None:
        now = time.monotonic()
        self.kills_at, self.gives_up_at = now, now + _KILL_SECONDS

    @property
    def gives_up(self) -> bool:
        return time.monotonic() >= self.gives_up_at

    @property
    def pause(self) -> float:
        """When to look again. At first SIGKILL races with processes that make others."""
        races = 0 <= time.monotonic() - self.kills_at < 1
        return 0.002 if races or self._empty_looks else _LOOK_SECONDS

    def strike(self, first: set[int], others: set[int]) -> bool:
        """Returns whether nobody is left. `others` are spared for half of the grace, or until there are no more
        `first`: those may end them in order.
        """
        self._empty_looks = 0 if first or others else self._empty_looks + 1
        self._signal(first, others)
        return self._empty_looks >= _EMPTY_LOOKS

    def _signal(self, first: set[int], others: set[int]) -> None:
        now = time.monotonic()
        if now >= self.kills_at:
            for pid in first | others:
                _kill(pid, signal.SIGKILL)
            return
        targets = first if first and now < self._spares_until else first | others
        for pid in targets - self._told:
            self._told.add(pid)
            _kill(pid, signal.SIGTERM)


def _kill(pid: int, number: int) -> None:
    with suppress(OSError):  # it has ended, or is another user's
        os.kill(pid, number)


# --- what both have: children, and a wait for them


class _Parent:
    """Waits for its children and for one socket."""

    def __init__(self, channel: socket.socket) -> None:
        self.channel = channel
        self.has_children = False
        self.hears = True
        """Whether the computer still holds the other end of the channel."""
        self._woken, wakes = os.pipe()
        for fd in (self._woken, wakes):
            os.set_blocking(fd, False)
        signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
        self._poll = select.poll()
        self._poll.register(self._woken, select.POLLIN)
        self._poll.register(channel, select.POLLIN)

    def wait(self, seconds: float | None) -> bool:
        """Wait for a child's end, or for the computer. Returns whether there is something on the channel."""
        ready = [fd for fd, _ in self._poll.poll(None if seconds is None else seconds * 1000)]
        if self._woken in ready:
            with suppress(BlockingIOError):
                while os.read(self._woken, 4096):
                    pass
        return self.hears and self.channel.fileno() in ready

    def hang_up(self) -> None:
        self.hears = False
        self._poll.unregister(self.channel)

    def reap(self) -> dict[int, int]:
        """The exit statuses of the children that have ended."""
        ended: dict[int, int] = {}
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                pid = -1
            self.has_children = pid >= 0
            if pid <= 0:
                return ended
            ended[pid] = os.waitstatus_to_exitcode(status)


# --- the guardian


class _ParentOfKeepers(_Parent):
    def __init__(self, channel: socket.socket) -> None:
        super().__init__(channel)
        self._keepers: set[int] = set()
        self._left: set[int] = set()
        """Processes that keepers left on purpose, or could not end."""
        self._ending: Ending | None = None

    def run(self) -> Callable[[], None] | None:
        """Returns in a keeper what it has to do, and `None` in the guardian when all has ended."""
        while self.hears or self._keepers or self._ending:
            if self.wait(None if self._ending is None else self._ending.pause):
                descriptors = self._receive()
                if len(descriptors) == 5:
                    if (pid := _fork()) == 0:
                        self.channel.close()
                        return lambda: _keep(*descriptors)
                    if pid > 0:
                        self._keepers.add(pid)
                for fd in descriptors:
                    os.close(fd)
            self._look(self.reap())
        return None

    def _receive(self) -> list[int]:
        try:
            packet, descriptors, _, _ = socket.recv_fds(self.channel, 1, 5)
        except ConnectionError:
            packet, descriptors = b"", []
        if not packet:
            self.hang_up()
            for pid in self._keepers:
                _kill(pid, signal.SIGCONT)  # a hostile server may have stopped its own
        for fd in descriptors:
            os.set_inheritable(fd, False)  # Python 3.11 ignores the flags of `recv_fds`
        return descriptors

    def _look(self, ended: dict[int, int]) -> None:
        died = [status for pid, status in ended.items() if pid in self._keepers and status != 0]
        self._keepers -= ended.keys()
        if died and self._ending is None:
            self._ending = Ending(_GRACE)
        elif ended and self._ending is None:
            seen = processes()
            self._left = {pid for pid, each in seen.items() if each.parent == os.getpid()} - self._keepers
        if self._ending is not None:
            self._end_orphans(self._ending)

    def _end_orphans(self, ending: Ending) -> None:
        seen = processes()
        spared = self._keepers | self._left
        roots = {pid for pid, each in seen.items() if each.parent == os.getpid()} - spared
        orphans = roots.union(*(below(root, seen) for root in roots))
        orphans = {pid for pid in orphans if seen[pid].lives}
        if ending.strike(set(), orphans) or ending.gives_up:
            self._left |= orphans
            self._ending = None


# --- a keeper


class _ParentOfServer(_Parent):
    """Keeps one server. `keeps` says that processes with sessions of their own are left when the server ends."""

    def __init__(self, channel: socket.socket, leader: int, grace: float, keeps: bool) -> None:
        super().__init__(channel)
        self._leader = leader
        self._grace = grace
        self._keeps = keeps
        self._has_exited = False
        self._ending: Ending | None = None

    def run(self) -> None:
        while True:
            status = self.reap().get(self._leader)
            if status is not None:
                self._has_exited = True
                _tell(self.channel, b"exit %d\n" % status)
                self._end()
            if self._ending is not None and self._strike(self._ending):
                return
            if self.wait(None if self._ending is None else self._ending.pause):
                self._obey(_receive(self.channel))

    def _obey(self, letters: bytes) -> None:
        if not letters:
            self.hang_up()
        self._end()
        if b"K" in letters and self._ending is not None:
            self._ending.hurry()

    def _end(self) -> None:
        if self._ending is None:
            self._ending = Ending(self._grace)

    def _strike(self, ending: Ending) -> bool:
        """End who is there. Returns whether this is over."""
        seen = processes()
        living = {pid for pid in below(os.getpid(), seen) if seen[pid].lives}
        of_session = {pid for pid in living if seen[pid].session == self._leader or pid == self._leader}
        # The server alone: a SIGTERM for its children would break up what it ends in order, such as a browser.
        first = set() if self._has_exited else living & {self._leader}
        others = (of_session if self._keeps else living) - first
        is_over = ending.strike(first, others)
        if self._has_exited and (is_over if self._keeps else not self.has_children):
            _tell(self.channel, b"gone\n")
            return True
        if ending.gives_up:
            _tell(self.channel, b"left %d\n" % len(first | others))
        return ending.gives_up


def _keep(stdin: int, stdout: int, stderr: int, control: int, request: int) -> None:
    with open(request, "rb") as file:
        *command, grace, keeps = marshal.load(file)
    channel = socket.socket(fileno=control)
    streams = (stdin, stdout, stderr)
    _prctl(_CHILD_SUBREAPER, 1)  # before there is a process that could leave one
    problems, problem = os.pipe()
    keeper = os.getpid()
    if (leader := _fork()) == 0:
        try:
            _become(keeper, streams, problem, *command)
        finally:
            os._exit(255)
    for fd in (*streams, problem):
        os.close(fd)
    with open(problems, "rb") as file:
        failure = b"%d start" % errno.EAGAIN if leader < 0 else file.read()
    if failure:
        _tell(channel, b"error " + failure + b"\n")
        return
    _tell(channel, b"pid %d\n" % leader)
    _ParentOfServer(channel, leader, grace, keeps).run()


def _become(
    keeper: int,
    streams: tuple[int, int, int],
    problem: int,
    paths: list[bytes],
    arguments: list[bytes],
    environment: dict[bytes, bytes],
    cwd: bytes | None,
) -> None:
    """Run the first of the paths that can be run, in this process. If none can, write why."""
    os.setsid()
    _prctl(_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != keeper:  # it died before the signal was armed
        return
    for number, fd in enumerate(streams):
        os.dup2(fd, number)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them
        signal.signal(number, signal.SIG_DFL)
    try:
        if cwd is not None:
            os.chdir(cwd)
    except OSError as error:
        os.write(problem, b"%d cwd" % (error.errno or 0))
        return
    last = telling = 0
    for path in paths:
        try:
            os.execve(path, arguments, environment)
        except OSError as error:
            last = error.errno or 0
            if last not in (errno.ENOENT, errno.ENOTDIR):
                telling = telling or last
    os.write(problem, b"%d command" % (telling or last))


# --- small helpers


def _fork() -> int:
    """`os.fork`, or -1 if there may be no more processes."""
    try:
        return os.fork()
    except OSError:
        return -1


def _receive(channel: socket.socket) -> bytes:
    try:
        return channel.recv(16)
    except OSError:
        return b""


def _tell(channel: socket.socket, line: bytes) -> None:
    with suppress(OSError):  # the computer has died
        channel.sendall(line)


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _heed_only_the_channel() -> None:
    """Signals from a terminal or a service manager also reach the computer, which ends its servers in order. What is
    handled here has its default again in the servers, and what was ignored at the start stays ignored in them.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
        if number == signal.SIGCHLD or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


def main() -> None:
    descriptor = int(sys.argv[1])
    os.set_inheritable(descriptor, False)
    _heed_only_the_channel()
    _prctl(_CHILD_SUBREAPER, 1)
    gc.disable()  # nothing here has cycles; a collection would make each keeper copy what it shares
    if (work := _ParentOfKeepers(socket.socket(fileno=descriptor)).run()) is not None:
        work()
    os._exit(0)  # there is nothing that the interpreter's end would have to do


if __name__ == "__main__":
    main()
