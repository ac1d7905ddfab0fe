"""A program on a pseudo terminal: started, typed to, read, and ended together with everything that it started."""

import asyncio
import fcntl
import os
import pty
import signal
import struct
import termios
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import anyio

from a2c_smcp.utils.children import let_go, start_group
from a2c_smcp.windows.emulator import Size
from a2c_smcp.windows.terminal_state import Foreground

__all__ = ["PtyProcess"]

_READ_SIZE: Final = 65536
#: How much may wait for a program that does not read.
_MOST_UNREAD: Final = 256 * 1024
#: Seconds between the polite signals and the last one. A computer gives a server 2.5 s in all.
_PATIENCE: Final = 1.0
#: Marks whatever a terminal has started, also what has left its session.
_MARK: Final = "A2C_TERMINAL"
_CTRL_C: Final = b"\x03"
#: A shell opens the terminal by its name. It leads a new session, so this becomes the session's controlling terminal,
#: on which Ctrl-C and job control depend. No code of ours runs between fork and exec.
_TAKE_THE_TERMINAL: Final = 'exec "$@" <>"$0" 1>&0 2>&0'
_SANDBOX: Final = "bwrap"
_SHELLS: Final = frozenset({"ash", "bash", "dash", "fish", "ksh", "mksh", "sh", "tcsh", "zsh"})


class PtyProcess:
    """One program with a terminal. `on_output` gets what it prints, `on_end` its exit code, after the last output."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        terminal: int,
        end_of_program: int,
        mark: str,
        on_output: Callable[[bytes], None],
        on_end: Callable[[int], None],
    ) -> None:
        self._process = process
        self._mark = mark.encode()
        self._terminal = terminal
        #: Open until the program has ended: a terminal that nobody has open counts as closed, and the program opens it
        #: a moment after its start.
        self._end_of_program = end_of_program
        self._name = os.ttyname(end_of_program)
        self._on_output = on_output
        self._on_end = on_end
        self._unwritten = bytearray()
        self._is_open = True
        #: Once nobody is left in the session, the system may give its number to others.
        self._is_gone = False
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(terminal, self._read)
        self._watch = asyncio.create_task(self._wait())

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        *,
        size: Size,
        folder: Path,
        environment: Mapping[str, str],
        on_output: Callable[[bytes], None],
        on_end: Callable[[int], None],
    ) -> "PtyProcess":
        """Start a program. Raises `OSError` if that cannot be done. A command that does not exist ends with 127."""
        mark = uuid.uuid4().hex
        terminal, end_of_program = pty.openpty()
        try:
            os.set_blocking(terminal, False)
            _set_size(terminal, size)
            process = await start_group(
                "/bin/sh",
                "-c",
                _TAKE_THE_TERMINAL,
                os.ttyname(end_of_program),
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
                cwd=folder,
                # A terminal may run a server with terminals.
                env={**environment, _MARK: f"{environment.get(_MARK, '')}{mark}"},
            )
        except BaseException:
            os.close(terminal)
            os.close(end_of_program)
            raise
        return cls(process, terminal, end_of_program, mark, on_output, on_end)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def has_unread(self) -> bool:
        """Whether something waits until the program reads."""
        if self._unwritten:
            return True
        with suppress(OSError):
            return self._is_open and bool(_number(self._end_of_program, termios.FIONREAD))
        return False

    def write(self, typed: bytes) -> bool:
        """Type something. Returns whether there was room for it: a program may not read for a long time. Ctrl-C does
        not wait for that: it drops what is unread, as in every terminal.
        """
        if _CTRL_C in typed and self.has_unread and self._interrupt():
            typed = typed.rpartition(_CTRL_C)[2]
        if not self._is_open or len(self._unwritten) + len(typed) > _MOST_UNREAD:
            return False
        was_empty = not self._unwritten
        self._unwritten += typed
        if was_empty:
            self._write_some()
            if self._unwritten:
                self._loop.add_writer(self._terminal, self._write_some)
        return True

    def _interrupt(self) -> bool:
        """Do what the terminal does for Ctrl-C. Returns `False` if the program wants to have the key itself."""
        try:
            attributes = termios.tcgetattr(self._terminal)
            if not attributes[3] & termios.ISIG or attributes[6][termios.VINTR] != _CTRL_C:
                self._unwritten.clear()
                return False
            self._unwritten.clear()
            termios.tcflush(self._end_of_program, termios.TCIFLUSH)
            os.killpg(os.tcgetpgrp(self._terminal), signal.SIGINT)
        except (OSError, termios.error):
            return False
        return True

    def resize(self, size: Size) -> None:
        """Tell the program that its terminal has another size."""
        if self._is_open:
            _set_size(self._terminal, size)

    def foreground(self) -> Foreground | None:
        """What is known of the program that has the terminal; `None` if the system does not tell."""
        if not self._is_open:
            return None
        try:
            group = os.tcgetpgrp(self._terminal)
            local = termios.tcgetattr(self._terminal)[3]
        except (OSError, termios.error):
            return None
        by_line = bool(local & termios.ICANON)
        everybody = _descendants(self.pid)
        members = [pid for pid in everybody if _group_of(pid) == group]
        reader = next((pid for pid in members if _reads_terminal(pid, self._name, by_key=not by_line)), None)
        return Foreground(
            reads=reader is not None,
            is_idle_shell=reader is not None
            and reader == next((pid for pid in everybody if _program_of(pid) != _SANDBOX), None)
            and _is_prompting_shell(reader),
            echoes=bool(local & termios.ECHO),
            by_line=by_line,
        )

    async def stop(self) -> None:
        """End the program and everything that it started: politely first. A cancellation does not stop this."""
        with anyio.CancelScope(shield=True):
            for signals in ((signal.SIGHUP, signal.SIGCONT, signal.SIGTERM), (signal.SIGKILL,)):
                with anyio.move_on_after(_PATIENCE):
                    for name in signals:
                        _signal_all(self._living(), name)
                    while self._living():  # noqa: ASYNC110 - nobody tells when a process of others ends
                        await anyio.sleep(0.02)
            with anyio.move_on_after(_PATIENCE):
                await asyncio.wait({self._watch})
            let_go(self._process)
            self._close()

    def _living(self) -> list[int]:
        """The processes of the session that run, and those that bear its mark. A job in the background is no child of a
        program that has ended, and a program may begin a session of its own.
        """
        session = None if self._is_gone else self.pid
        return [pid for pid in _members(session, self._mark) if pid < 0 or _is_alive(pid)]

    # --- what the loop calls

    def _read(self) -> None:
        with suppress(BlockingIOError):
            self._on_output(os.read(self._terminal, _READ_SIZE))

    def _write_some(self) -> None:
        with suppress(BlockingIOError):
            del self._unwritten[: os.write(self._terminal, self._unwritten)]
        if not self._unwritten:
            self._loop.remove_writer(self._terminal)

    async def _wait(self) -> None:
        code = await self._process.wait()
        # What was printed last is still in the terminal. A job in the background may print for ever.
        with suppress(BlockingIOError):
            for _ in range(1000):
                self._on_output(os.read(self._terminal, _READ_SIZE))
        self._close()
        self._is_gone = not _members(self.pid, None)
        self._on_end(code)

    def _close(self) -> None:
        if self._is_open:
            self._is_open = False
            self._loop.remove_reader(self._terminal)
            self._loop.remove_writer(self._terminal)
            os.close(self._terminal)
            os.close(self._end_of_program)


def _set_size(terminal: int, size: Size) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", size.rows, size.columns, 0, 0))


def _number(file: int, question: int) -> int:
    """The answer of a file to a question for a number."""
    [answer] = struct.unpack("i", fcntl.ioctl(file, question, bytes(4)))
    return int(answer)


# --- processes, as Linux shows them. Elsewhere /proc is missing, and less is known.


def _stat(pid: int) -> list[str] | None:
    """Fields of `/proc/PID/stat` after the name, which may hold blanks: state, parent, group, session, …"""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def _group_of(pid: int) -> int | None:
    fields = _stat(pid)
    return None if fields is None else int(fields[2])


def _is_alive(pid: int) -> bool:
    fields = _stat(pid)
    return fields is not None and fields[0] != "Z"


def _members(session: int | None, mark: bytes | None) -> list[int]:
    """Every process of the session, or with the mark. Without /proc it is the leader's group alone."""
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        pids = []
    if not pids:
        try:
            os.killpg(session or 0, 0)
        except OSError:
            return []
        return [-session] if session else []
    return [pid for pid in pids if _is_of(pid, session) or _has_mark(pid, mark)]


def _is_of(pid: int, session: int | None) -> bool:
    fields = _stat(pid)
    return fields is not None and int(fields[3]) == session


def _has_mark(pid: int, mark: bytes | None) -> bool:
    with suppress(OSError):
        return mark is not None and mark in Path(f"/proc/{pid}/environ").read_bytes()
    return False


def _descendants(pid: int) -> list[int]:
    found = [pid]
    for each in found:
        with suppress(OSError):
            found += [int(child) for child in Path(f"/proc/{each}/task/{each}/children").read_text().split()]
        if len(found) > 500:
            break
    return found


def _program_of(pid: int) -> str:
    with suppress(OSError):
        return os.path.basename(os.readlink(f"/proc/{pid}/exe"))
    return ""


def _is_prompting_shell(pid: int) -> bool:
    """Whether the process is a shell that reads commands from its terminal, and not from a file or an argument."""
    if _program_of(pid) not in _SHELLS:
        return False
    with suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[1:-1]
        return all(word[:1] in (b"-", b"+") and word != b"-c" for word in words)
    return False


def _reads_terminal(pid: int, terminal: str, *, by_key: bool) -> bool:
    """Whether the process sleeps until something is typed. It sleeps in a read of the terminal, or, if it reads key by
    key, in a wait for one of several files.
    """
    try:
        sleeps_in = Path(f"/proc/{pid}/wchan").read_text()
        call = Path(f"/proc/{pid}/syscall").read_text().split()
    except OSError:
        return False
    if by_key and any(name in sleeps_in for name in ("poll_schedule_timeout", "do_select", "ep_poll", "do_poll")):
        return True
    if not any(name in sleeps_in for name in ("wait_woken", "n_tty_read")) or len(call) < 2:
        return False
    with suppress(OSError, ValueError):
        return os.readlink(f"/proc/{pid}/fd/{int(call[1], 16)}") in (terminal, "/dev/tty")
    return False


def _signal_all(pids: Sequence[int], name: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(-pid, name) if pid < 0 else os.kill(pid, name)
