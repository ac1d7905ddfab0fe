"""The command at a real terminal, as a program at the other end sees it: keys in, `@a2c` lines out."""

import fcntl
import io
import json
import os
import re
import sys
import termios
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pexpect

from tests.computer.fakes.processes import ended

SMCP_COMPUTER = str(Path(sys.executable).with_name("smcp-computer"))
PROMPT = "a2c> "
DEADLINE = 30.0
_LINE = re.compile(r"@a2c (\{[^\r\n]*\})\r\n")
#: What is written between two characters when keys arrive one by one, and each is drawn on its own.
_DRAWING = r"(?:\x1b\[[\d;?]*[A-Za-z])*"

Line = dict[str, Any]


class Console:
    """One run of `smcp-computer run`, or of another command for the same. What it said is kept in `seen`."""

    def __init__(
        self,
        state: Path,
        *arguments: str,
        wide: bool = False,
        command: tuple[str, ...] = (SMCP_COMPUTER,),
        **environment: str,
    ) -> None:
        self._seen = io.StringIO()
        environ = {**os.environ, "XDG_STATE_HOME": str(state), **environment}
        self.process = pexpect.spawn(
            command[0],
            [*command[1:], "run", *arguments],
            env=environ,
            encoding="utf-8",
            timeout=DEADLINE,
            dimensions=(24, 300 if wide else 80),
        )
        self.process.logfile_read = self._seen
        # Typing is not waited for: the terminal keeps it.
        self.process.delaybeforesend = None

    @property
    def seen(self) -> str:
        return self._seen.getvalue()

    def prompted(self) -> None:
        self.says(PROMPT)

    def says(self, text: str) -> None:
        self.shows(_DRAWING.join(map(re.escape, text)))

    def shows(self, pattern: str) -> None:
        """The same for what may look in several ways."""
        self._expect(re.compile(pattern))

    def _expect(self, pattern: re.Pattern[str]) -> Any:
        try:
            self.process.expect(pattern)
        except pexpect.TIMEOUT:
            raise AssertionError(f"{pattern.pattern!r} was not said in {DEADLINE} s; {self._state()}") from None
        return self.process.match

    def _state(self) -> str:
        """What tells keys that were lost from keys that nobody reads."""
        process = Path(f"/proc/{self.process.pid}")
        waits = (process / "wchan").read_text()
        with (process / "fd" / "0").open("rb", buffering=0) as terminal:
            unread = int.from_bytes(fcntl.ioctl(terminal, termios.FIONREAD, bytes(4)), sys.byteorder)
            mode = termios.tcgetattr(terminal)[:4]
        times = (process / "stat").read_text().rpartition(")")[2].split()
        return f"state {times[0]}, waits in {waits}, {unread} keys unread, terminal {mode}, seen: {self.seen[-3000:]!r}"

    def keys(self, keys: str) -> None:
        self.process.send(keys)

    def line(self, kind: str, matches: Callable[[Line], bool] = lambda _: True) -> Line:
        """The next line of this type that matches; others are passed over."""
        while True:
            found: Line = json.loads(self._expect(_LINE)[1])
            assert next(iter(found)) == "type"
            if found["type"] == kind and matches(found):
                return found

    def lines(self, *kinds: str) -> dict[str, Line]:
        """The next line of each of these types, in whatever order they come."""
        found: dict[str, Line] = {}
        while found.keys() != set(kinds):
            line: Line = json.loads(self._expect(_LINE)[1])
            if line["type"] in kinds:
                found.setdefault(line["type"], line)
        return found

    def enter(self, command: str, kind: str, matches: Callable[[Line], bool] = lambda _: True) -> Line:
        """Enter a command and return the line that answers it."""
        self.keys(command + "\r")
        return self.line(kind, matches)

    def until(
        self,
        done: Callable[[Line], bool],
        command: str,
        kind: str,
        matches: Callable[[Line], bool] = lambda _: True,
    ) -> Line:
        """Enter a command again and again, until the line that answers it is as it should be."""
        deadline = time.monotonic() + DEADLINE
        while not done(line := self.enter(command, kind, matches)):
            assert time.monotonic() < deadline, line
        return line

    def call(self, tool: str, values: str = "") -> Line:
        result = self.enter(f"tools call {tool} {values}", "tool_call_result")
        assert result["tool"] == tool
        return result

    def text(self, tool: str, values: str = "") -> str:
        """What a tool said."""
        return str(self.call(tool, values)["result"]["content"][0]["text"])

    def pid(self, tool: str) -> int:
        """The process behind a `stats` tool."""
        return int(json.loads(self.text(tool))["pid"])

    def ended(self) -> int:
        """Wait for the end, and return the exit status."""
        self.process.expect(pexpect.EOF)
        self.process.wait()
        assert self.process.signalstatus is None, self.seen[-2000:]
        return int(self.process.exitstatus)


def left_over(pids: Iterable[int]) -> list[int]:
    """Those of these processes that do not end."""
    return [pid for pid in pids if not ended(pid)]


@contextmanager
def console(state: Path, *arguments: str, **more: Any) -> Iterator[Console]:
    it = Console(state, *arguments, **more)
    try:
        yield it
    finally:
        try:
            it.process.close(force=True)
        except pexpect.ExceptionPexpect:
            # It is killed, and pexpect waited a tenth of a second for its end, which a busy machine may exceed.
            it.process.wait()
