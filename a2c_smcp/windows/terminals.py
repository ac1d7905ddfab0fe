"""The terminals of a server, and the tools that open them, type, wait, read and close."""

import shlex
import time
from pathlib import Path
from typing import Annotated, Final

import anyio
from pydantic import Field

from a2c_smcp.errors import BadRequestError, NotFoundError
from a2c_smcp.mcp_server.server import ContextServer
from a2c_smcp.mcp_server.tools import ToolCall
from a2c_smcp.windows.annotations import TERMINAL_TOOLS
from a2c_smcp.windows.emulator import Size
from a2c_smcp.windows.terminal import OpenTerminal, TerminalSetup
from a2c_smcp.windows.terminal_state import describe_exit_code
from a2c_smcp.windows.waiting import Awaited

__all__ = ["MOST_TERMINALS", "Terminals"]

MOST_TERMINALS: Final = 16
_LONGEST_WAIT: Final = 3600.0
#: Seconds between two reports of a wait.
_REPORT_APART: Final = 1.0

NameArgument = Annotated[str, Field(description="The terminal's name, as its window shows it.")]


class Terminals:
    """All terminals of one server. Close them with `close_all` when it stops."""

    def __init__(self, server: ContextServer, setup: TerminalSetup) -> None:
        self._server = server
        self._setup = setup
        self._terminals: dict[str, OpenTerminal] = {}
        #: Names of terminals that are being opened.
        self._opening: set[str] = set()
        for name, annotations in TERMINAL_TOOLS.items():
            server.tool(annotations=annotations)(getattr(self, name))

    async def close_all(self) -> None:
        """End every program, all at the same time."""
        terminals, self._terminals = list(self._terminals.values()), {}
        async with anyio.create_task_group() as closing:
            for terminal in terminals:
                closing.start_soon(terminal.close)

    # --- tools

    async def terminal_open(
        self,
        command: Annotated[str, Field(description="What to run, as typed into a shell; empty: a shell.")] = "",
        name: Annotated[str, Field(description="A short name for the window; empty: made from the command.")] = "",
        folder: Annotated[str, Field(description="Where it starts, below the folder that the person named.")] = "",
        columns: int = 100,
        rows: int = 30,
    ) -> str:
        """Open a terminal that stays open and is shown as a window. Its screen is in that window all the time: there is
        no need to ask for it again.
        """
        shown = self._free_name(name or _name_of(self._setup.mask(command)))
        size = _size(columns, rows)
        start = self._folder(folder)
        self._opening.add(shown)
        try:
            terminal = await OpenTerminal.open(shown, command, size, self._setup, self._server.windows, start)
        except OSError as error:
            raise BadRequestError(f"the terminal could not be opened: {error.strerror or error}") from None
        finally:
            self._opening.discard(shown)
        self._terminals[shown] = terminal
        await self._happening(terminal, 0.5)
        return f"Opened the terminal {shown}. It {terminal.describe()}.\n\n{terminal.screen_text()}"

    async def terminal_type(
        self,
        name: NameArgument,
        text: Annotated[str, Field(description="Typed as it is; a new line is the key Enter.")] = "",
        keys: Annotated[
            list[str] | None,
            Field(description='Pressed after the text, such as ["enter"], ["ctrl-c"], ["up", "enter"].'),
        ] = None,
        paste: Annotated[bool, Field(description="Paste the text at once, as from a clipboard.")] = False,
    ) -> str:
        """Type text and press keys in a terminal. Text alone does not run anything: end it with a new line, or with the
        key enter.
        """
        terminal = self._find(name)
        if terminal.exit_code is not None:
            raise BadRequestError(f"the program of {name} has ended ({describe_exit_code(terminal.exit_code)})")
        if not terminal.type(text, keys or (), paste=paste):
            raise BadRequestError(f"{name} has not read what was typed before: wait, or press ctrl-c")
        await self._happening(terminal, 0.5)
        return f"Typed. {name} {terminal.describe()}.\n\n{terminal.screen_text()}"

    async def terminal_wait(
        self,
        name: NameArgument,
        call: ToolCall,
        until: Annotated[
            list[str] | None,
            Field(description="Wait until a line of the screen, other than what was typed, holds one; * is any text."),
        ] = None,
        silence: Annotated[
            float | None, Field(description="Wait until nothing was printed for so many seconds.")
        ] = None,
        for_input: Annotated[
            bool, Field(description="Wait until the program waits for input, or the shell is idle.")
        ] = False,
        timeout: Annotated[float, Field(description="Seconds to wait at most.", gt=0, le=_LONGEST_WAIT)] = 30.0,
    ) -> str:
        """Wait for something to happen in a terminal: a text, silence, a question, or the end of its program, which
        always ends the wait. Returns what came, and the screen.
        """
        terminal = self._find(name)
        awaited = Awaited(until or (), silence, for_input)
        begun = reported = time.monotonic()
        while True:
            now = time.monotonic()
            ended = None if terminal.exit_code is None else describe_exit_code(terminal.exit_code)
            came = awaited.reached(
                terminal.lines(), now - terminal.last_output, terminal.state(), ended, terminal.typed
            )
            if came is None and now - begun >= timeout:
                came = f"{timeout:g} s have passed; {name} {terminal.describe()}"
            if came is not None:
                return f"{came}\n\n{terminal.screen_text()}"
            if now - reported >= _REPORT_APART:
                reported = now
                await call.progress(now - begun, timeout, terminal.describe())
            pause = min(_pause(terminal, silence, now), begun + timeout - now, _REPORT_APART)
            await self._happening(terminal, pause)

    async def terminal_read(
        self,
        name: NameArgument,
        lines: Annotated[int, Field(description="How many of the last lines.", ge=1, le=10_000)] = 200,
    ) -> str:
        """Read what has left the screen. The screen itself is in the terminal's window."""
        return self._find(name).history(lines)

    async def terminal_resize(self, name: NameArgument, columns: int, rows: int) -> str:
        """Give a terminal another size."""
        terminal = self._find(name)
        terminal.resize(_size(columns, rows))
        await self._happening(terminal, 0.5)
        return terminal.screen_text()

    async def terminal_close(self, name: NameArgument) -> str:
        """Close a terminal: its program and everything that it started are ended."""
        terminal = self._find(name)
        del self._terminals[name]
        await terminal.close()
        return f"Closed the terminal {name}."

    # --- names, folders and sizes

    async def _happening(self, terminal: OpenTerminal, seconds: float) -> None:
        """Wait until something happens, or so many seconds have passed. Raises `NotFoundError` if it was closed."""
        await terminal.happening(seconds)
        if self._terminals.get(terminal.name) is not terminal:
            raise NotFoundError(f"the terminal {terminal.name} was closed meanwhile")

    def _find(self, name: str) -> OpenTerminal:
        if (terminal := self._terminals.get(name)) is None:
            known = ", ".join(self._terminals) or "none; open one with terminal_open"
            raise NotFoundError(f"there is no terminal {name!r}; there are: {known}")
        return terminal

    def _free_name(self, wanted: str) -> str:
        """The name, or one like it that is free."""
        taken = self._terminals.keys() | self._opening
        if len(taken) >= MOST_TERMINALS:
            raise BadRequestError(
                f"{MOST_TERMINALS} terminals are open: close one first ({', '.join(self._terminals)})"
            )
        clean = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in wanted).strip("-.")[:40]
        clean = clean or "terminal"
        names = (clean, *(f"{clean}-{number}" for number in range(2, MOST_TERMINALS + 2)))
        return next(name for name in names if name not in taken)

    def _folder(self, below: str) -> Path:
        root = self._setup.folder.resolve()
        folder = (root / below).resolve()
        if not folder.is_relative_to(root):
            raise BadRequestError(f"a terminal starts in {root} or below it, not in {folder}")
        if not folder.is_dir():
            raise BadRequestError(f"there is no folder {folder}")
        return folder


def _pause(terminal: OpenTerminal, silence: float | None, now: float) -> float:
    """Seconds until the silence may be long enough."""
    return _REPORT_APART if silence is None else max(0.01, terminal.last_output + silence - now)


def _size(columns: int, rows: int) -> Size:
    try:
        return Size(columns, rows)
    except ValueError as error:
        raise BadRequestError(str(error)) from None


def _name_of(command: str) -> str:
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    return " ".join(Path(word).name for word in words[:2]) or "shell"
