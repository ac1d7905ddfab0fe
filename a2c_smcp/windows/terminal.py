"""One terminal: a program, its screen, its state, and the window that shows them."""

import asyncio
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from a2c_smcp.errors import BadRequestError
from a2c_smcp.mcp_server.windows import Window, Windows
from a2c_smcp.utils.pace import Pace
from a2c_smcp.utils.text import cut
from a2c_smcp.windows.clock import clock
from a2c_smcp.windows.emulator import Emulator, GhosttyEmulator, Screen, Size
from a2c_smcp.windows.keys import key_bytes, text_bytes
from a2c_smcp.windows.live_window import LiveWindow
from a2c_smcp.windows.masking import SecretMask, joined_rows
from a2c_smcp.windows.pty_process import PtyProcess
from a2c_smcp.windows.recent import MarkedLines
from a2c_smcp.windows.terminal_state import ShownPriority, TerminalState, describe_exit_code, state_of
from a2c_smcp.windows.window_texts import DEFAULT_BUDGET, window_text

__all__ = ["OpenTerminal", "TerminalSetup"]

#: Seconds between two looks at what a silent program does.
_LOOK_AGAIN: Final = 1.0
_MOST_TYPED: Final = 64 * 1024
_TYPED_LINES: Final = 50


@dataclass(frozen=True, slots=True)
class TerminalSetup:
    """What all terminals of a server share."""

    folder: Path
    """Where programs start."""
    environment: Mapping[str, str]
    mask: SecretMask = field(default_factory=SecretMask)
    budget: int = DEFAULT_BUDGET
    """Characters that a window shows at most."""
    wrapper: Sequence[str] = ()
    """A command that runs the program, such as a sandbox."""


class OpenTerminal:
    """A program on a terminal that is a window. Make it with `open`, and always `close` it."""

    def __init__(self, name: str, command: str, size: Size, setup: TerminalSetup, windows: Windows) -> None:
        self.name = name
        self.command = command
        self._setup = setup
        self._emulator: Emulator = GhosttyEmulator(size)
        self._process: PtyProcess | None = None
        self._since = time.time()
        self.exit_code: int | None = None
        self._ended_at = 0.0
        self.last_output = time.monotonic()
        self.typed: deque[str] = deque(maxlen=_TYPED_LINES)
        """The last lines that were typed. The screen shows them, although no program printed them."""
        self._marks = MarkedLines()
        self._priority = ShownPriority(TerminalState.RUNNING.value, Pace(3.0))
        #: What the window showed last beside its rows: the head and the priority.
        self._face: tuple[list[str], int] | None = None
        self._window = LiveWindow(windows, ("terminals", name), self._refresh)
        #: Set, and replaced, whenever something has happened: callers of `happening` wait for it.
        self._happening = asyncio.Event()

    @classmethod
    async def open(
        cls, name: str, command: str, size: Size, setup: TerminalSetup, windows: Windows, folder: Path
    ) -> "OpenTerminal":
        """Run the command in the person's shell, or only the shell if it is empty. Raises `OSError` if that cannot be
        done.
        """
        shell = setup.environment.get("SHELL") or "/bin/sh"
        arguments = [shell, "-c", command] if command.strip() else [shell]
        terminal = cls(name, command.strip() or shell, size, setup, windows)
        try:
            terminal._process = await PtyProcess.start(
                [*setup.wrapper, *arguments],
                size=size,
                folder=folder,
                environment=setup.environment,
                on_output=terminal._take_output,
                on_end=terminal._end,
            )
        except BaseException:
            terminal._emulator.close()
            raise
        terminal._window.show_now()
        return terminal

    # --- what tools do

    def screen(self) -> Screen:
        return self._emulator.screen()

    def lines(self) -> list[str]:
        """The lines of the screen, with secrets masked. A line that goes on in the next row is one."""
        screen = self.screen()
        return joined_rows(self._rows(screen), screen.size.columns).split("\n")

    def screen_text(self) -> str:
        """The screen as it is now, with secrets masked."""
        return "\n".join(self._rows(self.screen())).rstrip("\n")

    def history(self, most: int) -> str:
        """The last lines, also those that have left the screen, with secrets masked."""
        return self._setup.mask("\n".join(self._emulator.history(most)))

    def state(self) -> TerminalState:
        """What the program is doing now."""
        foreground = None if self._process is None else self._process.foreground()
        return state_of(self.exit_code, foreground)

    def describe(self) -> str:
        """The state in words."""
        state = self.state()
        if self.exit_code is None:
            return state.words
        return f"{state.words} ({describe_exit_code(self.exit_code)}) at {clock(self._ended_at)}"

    def type(self, text: str, keys: Sequence[str] = (), *, paste: bool = False) -> bool:
        """Type a text, and press keys. Returns whether there was room for it. Raises `BadRequestError` for what cannot
        be typed.
        """
        typed = text_bytes(text, pasted=paste and self._emulator.brackets_pastes)
        typed += key_bytes(keys, application_keys=self._emulator.application_keys)
        if not typed:
            raise BadRequestError("nothing to type: give text, or keys")
        if len(typed) > _MOST_TYPED:
            raise BadRequestError(f"the text has {len(typed)} bytes; at most {_MOST_TYPED} can be typed at once")
        if self._process is None or self.exit_code is not None or not self._process.write(typed):
            return False
        self.typed.extend(line for line in text.splitlines() if line.strip())
        return True

    def resize(self, size: Size) -> None:
        self._emulator.resize(size)
        if self._process is not None:
            self._process.resize(size)
        self._window.touch()

    async def happening(self, seconds: float) -> None:
        """Wait until something is printed, the program ends, or so many seconds have passed."""
        try:
            await asyncio.wait_for(self._happening.wait(), max(0.0, seconds))
        except TimeoutError:
            return

    async def close(self) -> None:
        """End the program and take the window away."""
        if self._process is not None:
            await self._process.stop()
        self._window.close()
        self._emulator.close()

    # --- what happens

    def _take_output(self, output: bytes) -> None:
        replies = self._emulator.feed(output)
        # A program that does not read gets no answers: they would stand before what an agent types.
        if replies and self._process is not None and not self._process.has_unread:
            self._process.write(replies)
        self._tell()

    def _end(self, code: int) -> None:
        self.exit_code = code
        self._ended_at = time.time()
        self._tell()

    def _tell(self) -> None:
        self.last_output = time.monotonic()
        happening, self._happening = self._happening, asyncio.Event()
        happening.set()
        self._window.touch()

    # --- the window

    def _refresh(self) -> Window | None:
        now = time.monotonic()
        screen = self.screen()
        self._priority = self._priority.follow(self.state(), now)
        if self.exit_code is None:
            # What a program does can change without a word of it: it begins to wait for input.
            self._window.touch(_LOOK_AGAIN)
        elif self._priority.pace.due is not None:
            self._window.touch(self._priority.pace.due - now)
        marks = self._marks.update(self._rows(screen), now)
        face = (self._head(screen), self._priority.shown)
        if marks is self._marks and face == self._face:
            return None
        self._marks, self._face = marks, face
        title = cut(f"{self.name}: {self._setup.mask(self.command)}", 120)
        return Window(self._text, self._priority.shown, title=title)

    def _text(self) -> str:
        """What a reader sees. Reading changes nothing: the next reader sees the same marks."""
        now = time.monotonic()
        screen = self.screen()
        body = self._marks.update(self._rows(screen), now).marked(now)
        return window_text(self._head(screen), body, self._setup.budget)

    def _rows(self, screen: Screen) -> list[str]:
        return self._setup.mask.rows(screen.rows, screen.size.columns)

    def _head(self, screen: Screen) -> list[str]:
        title = self._setup.mask(self._emulator.title)
        head = [
            f"terminal {self.name}: {cut(self._setup.mask(self.command), 200)}",
            f"It {self.describe()}. It was opened at {clock(self._since)}.",
        ]
        if title and title != self.command:
            head.append(f"title: {cut(title, 120)}")
        if screen.is_alternate:
            head.append("A program has the whole screen.")
        if screen.cursor is not None and self.exit_code is None:
            column, row = screen.cursor
            head.append(f"The cursor is in row {row + 1}, column {column + 1}; + marks rows of the last seconds.")
        return head
