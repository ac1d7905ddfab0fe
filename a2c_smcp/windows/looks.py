"""Windows of files, commands and panes of tmux, which somebody has to look at again and again."""

import logging
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import anyio

from a2c_smcp.errors import BadRequestError
from a2c_smcp.mcp_server.server import ContextServer
from a2c_smcp.mcp_server.windows import Window, Windows
from a2c_smcp.utils.text import cut
from a2c_smcp.windows.annotations import ACTS
from a2c_smcp.windows.clock import clock
from a2c_smcp.windows.followed_file import FileTail
from a2c_smcp.windows.keys import text_bytes
from a2c_smcp.windows.live_window import UPDATES_APART
from a2c_smcp.windows.masking import SecretMask
from a2c_smcp.windows.noise import errors_of, folded, without_colours
from a2c_smcp.windows.recent import MarkedLines
from a2c_smcp.windows.tmux import Pane, TmuxError, list_panes, pane_rows, send_text
from a2c_smcp.windows.watched_command import WatchedCommand
from a2c_smcp.windows.window_texts import DEFAULT_BUDGET, window_text

__all__ = ["LookOptions", "follow_files", "watch_commands", "watch_tmux"]

logger = logging.getLogger(__name__)

_QUIET_PRIORITY: Final = 30
_FAILED_PRIORITY: Final = 65
_TMUX_APART: Final = 1.0
#: Characters of an error that is shown above the others.
_LONGEST_ERROR: Final = 300


@dataclass(frozen=True, slots=True)
class LookOptions:
    """How these windows show what they show."""

    mask: SecretMask = field(default_factory=SecretMask)
    budget: int = DEFAULT_BUDGET
    errors_first: bool = False


class _LookedAt:
    """One window with lines that are replaced as a whole."""

    def __init__(self, windows: Windows, path: tuple[str, ...], title: str, options: LookOptions) -> None:
        self._windows = windows
        self._path = path
        self._title = cut(options.mask(title), 120)
        self._options = options
        self._head: Callable[[], list[str]] = list
        self._marks = MarkedLines()

    def show(
        self,
        head: Callable[[], list[str]],
        lines: Sequence[str],
        priority: int = _QUIET_PRIORITY,
        columns: int | None = None,
    ) -> None:
        """Show these lines. `head` is asked when somebody reads the window. Lines that fill all `columns` go on in the
        next one.
        """
        plain = [without_colours(line) for line in lines]
        masked = self._options.mask.rows(plain, columns or sys.maxsize)
        self._marks = self._marks.update(folded(masked), time.monotonic())
        self._head = head
        self._windows[self._path] = Window(self._text, priority, title=self._title)

    def close(self) -> None:
        if self._path in self._windows:
            del self._windows[self._path]

    def _text(self) -> str:
        body = self._marks.marked(time.monotonic())
        head = [self._options.mask(line) for line in self._head()]
        if self._options.errors_first and (found := errors_of(body)):
            head = [*head, "errors:", *(cut(line, _LONGEST_ERROR) for line in found)]
        return window_text(head, body, self._options.budget)


# --- files


async def follow_files(server: ContextServer, files: Sequence[Path], options: LookOptions) -> None:
    """Show the ends of files until this is cancelled. A file that is missing may come later."""
    names = _unlike([path.name for path in files])
    tails = [
        (FileTail(path), _LookedAt(server.windows, ("files", name), f"{name}: {path}", options))
        for name, path in zip(names, files, strict=True)
    ]
    while True:
        for tail, window in tails:
            if await anyio.to_thread.run_sync(tail.look):
                window.show(lambda tail=tail: _file_head(tail), tail.lines)  # type: ignore[misc]
        await anyio.sleep(UPDATES_APART)


def _file_head(tail: FileTail) -> list[str]:
    if tail.problem is not None:
        return [f"file {tail.path}: {tail.problem}"]
    return [f"file {tail.path}: its last {len(tail.lines)} lines; written at {clock(tail.modified)}"]


# --- commands


async def watch_commands(server: ContextServer, commands: Sequence[WatchedCommand], options: LookOptions) -> None:
    """Run commands again and again, and show what they print, until this is cancelled."""
    names = _unlike([" ".join(options.mask(command.command).split()[:2]) for command in commands])
    async with anyio.create_task_group() as running:
        for name, command in zip(names, commands, strict=True):
            window = _LookedAt(server.windows, ("commands", name), command.command, options)
            running.start_soon(_watch_command, command, window)


async def _watch_command(command: WatchedCommand, window: _LookedAt) -> None:
    while True:
        begun = time.monotonic()
        if await command.run():
            changed = time.time()
            failed = command.problem is not None or command.exit_code != 0
            window.show(
                lambda changed=changed: _command_head(command, changed),  # type: ignore[misc]
                command.lines,
                _FAILED_PRIORITY if failed else _QUIET_PRIORITY,
            )
        await anyio.sleep(max(0.1, command.every - (time.monotonic() - begun)))


def _command_head(command: WatchedCommand, changed: float) -> list[str]:
    how = command.problem or f"exit code {command.exit_code}"
    return [f"command {command.command}: {how}; every {command.every:g} s; changed at {clock(changed)}"]


# --- tmux


async def watch_tmux(server: ContextServer, session: str | None, options: LookOptions, *, may_type: bool) -> None:
    """Show the panes of tmux until this is cancelled. `may_type` adds the tool that types into them."""
    panes: dict[str, tuple[Pane, _LookedAt, list[str]]] = {}
    if may_type:
        _offer_typing(server, panes)
    said: str | None = None
    while True:
        try:
            await _look_at_panes(server, session, options, panes)
            said = None
        except TmuxError as error:
            for _, window, _ in panes.values():
                window.close()
            panes.clear()
            if str(error) != said:
                said = str(error)
                logger.warning("tmux panes are not shown: %s", error)
        await anyio.sleep(_TMUX_APART)


async def _look_at_panes(
    server: ContextServer,
    session: str | None,
    options: LookOptions,
    panes: dict[str, tuple[Pane, _LookedAt, list[str]]],
) -> None:
    found = {pane.pane_id: pane for pane in await list_panes(session)}
    for gone in panes.keys() - found.keys():
        panes.pop(gone)[1].close()
    for pane_id, pane in found.items():
        rows = await pane_rows(pane)
        known = panes.get(pane_id)
        if known is not None and known[2] == rows and known[0] == pane:
            continue
        window = known[1] if known else _LookedAt(server.windows, ("tmux", pane_id.lstrip("%")), pane.place, options)
        panes[pane_id] = (pane, window, rows)
        head = f"tmux pane {pane.pane_id}, {pane.place}: {pane.command}"
        window.show(lambda head=head: [head], rows, columns=pane.columns)  # type: ignore[misc]


def _offer_typing(server: ContextServer, panes: dict[str, tuple[Pane, _LookedAt, list[str]]]) -> None:
    @server.tool(annotations=ACTS)
    async def tmux_type(pane: str, text: str = "", keys: list[str] | None = None) -> str:
        """Type into a tmux pane of the person's, such as %3. Keys have tmux's names: Enter, C-c, Up."""
        if pane not in panes:
            raise BadRequestError(f"there is no pane {pane!r}; there are: {', '.join(panes) or 'none'}")
        for typed in (text, *(keys or ())):
            text_bytes(typed)
        try:
            await send_text(panes[pane][0], text, keys or [])
        except TmuxError as error:
            raise BadRequestError(f"tmux said: {error}") from None
        return "Typed."


def _unlike(names: Sequence[str]) -> list[str]:
    """Names for windows, one for each, without a `/`."""
    result: list[str] = []
    for name in names:
        clean = name.replace("/", "-") or "unnamed"
        number = 1
        while (candidate := clean if number == 1 else f"{clean}-{number}") in result:
            number += 1
        result.append(candidate)
    return result
