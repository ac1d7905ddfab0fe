"""The person's own tmux panes, to read; and to type into, where the person said so. It talks to the `tmux` command."""

import asyncio
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from a2c_smcp.utils.children import kill_group, start_group
from a2c_smcp.utils.text import on_one_line

__all__ = ["Pane", "TmuxError", "as_argument", "list_panes", "pane_rows", "send_text"]

_SECONDS: Final = 10.0
_FIELDS: Final = (
    "pane_id",
    "session_name",
    "window_index",
    "pane_index",
    "pane_width",
    "pane_dead",
    # The last one: a program's name may hold anything.
    "pane_current_command",
)
#: A character that tmux does not let into names of sessions.
_BETWEEN: Final = "\t"


class TmuxError(Exception):
    """tmux is missing, or said no."""


@dataclass(frozen=True, slots=True)
class Pane:
    """One pane of tmux."""

    pane_id: str
    place: str
    """Session, window and pane, such as `work:1.0`."""
    command: str
    columns: int


async def list_panes(session: str | None) -> list[Pane]:
    """The panes of one session, or of all. Raises `TmuxError`."""
    form = _BETWEEN.join(f"#{{{name}}}" for name in _FIELDS)
    target = ["-s", "-t", f"={session}"] if session else ["-a"]
    panes = []
    for line in (await _tmux("list-panes", *target, "-F", form)).rstrip("\n").split("\n"):
        fields = line.split(_BETWEEN, len(_FIELDS) - 1)
        if len(fields) != len(_FIELDS) or not fields[4].isdecimal():
            raise TmuxError(f"it describes a pane in a way that is not understood: {on_one_line(line)}")
        pane_id, name, window, pane, width, dead, command = fields
        if dead != "1":
            panes.append(Pane(pane_id, f"{name}:{window}.{pane}", command, int(width)))
    return panes


async def pane_rows(pane: Pane) -> list[str]:
    """What the pane shows."""
    return (await _tmux("capture-pane", "-p", "-t", pane.pane_id)).rstrip("\n").split("\n")


async def send_text(pane_id: str, text: str, keys: Sequence[str]) -> None:
    """Type into a pane. `keys` are tmux's own names of keys."""
    if text:
        await _tmux("send-keys", "-t", pane_id, "-l", "--", as_argument(text))
    if keys:
        await _tmux("send-keys", "-t", pane_id, "--", *map(as_argument, keys))


def as_argument(word: str) -> str:
    """The word as tmux reads it. A `;` at the end of an argument would end the command: what follows would be another
    one, such as `run-shell`.
    """
    return f"{word[:-1]}\\;" if word.endswith(";") else word


async def _tmux(*arguments: str) -> str:
    try:
        # Without -u it replaces letters, and our tabs, in a locale without UTF-8.
        process = await start_group("tmux", "-u", *arguments, stdin=DEVNULL, stdout=PIPE, stderr=PIPE)
    except FileNotFoundError:
        raise TmuxError("tmux is not installed") from None
    try:
        async with asyncio.timeout(_SECONDS):
            output, errors = await process.communicate()
    except TimeoutError:
        raise TmuxError(f"tmux did not answer within {_SECONDS:g} s") from None
    finally:
        await kill_group(process)
    if process.returncode:
        raise TmuxError(errors.decode(errors="replace").strip() or f"tmux ended with {process.returncode}")
    return output.decode(errors="replace")
