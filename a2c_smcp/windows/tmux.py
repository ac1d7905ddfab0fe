"""The person's own tmux panes, to read; and to type into, where the person said so. It talks to the `tmux` command.

A program that a host starts often has another `TMUX_TMPDIR` than the person's shell. Then the server of tmux is looked
for among the sockets of this user.
"""

import asyncio
import os
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
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


#: How tmux says that there is no server at its socket.
_NO_SERVER: Final = ("no server running on ", "error connecting to ")
#: Where Linux lists local sockets. Other systems have no such list.
_SOCKETS: Final = Path("/proc/net/unix")


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
    socket: str | None = None
    """The socket of its tmux server; `None` for the one that the `tmux` command takes by itself."""


async def list_panes(session: str | None) -> list[Pane]:
    """The panes of one session, or of all. Raises `TmuxError`."""
    try:
        return await _list_panes(session, None)
    except TmuxError as error:
        others = _sockets_of_this_user() if str(error).startswith(_NO_SERVER) else []
        if len(others) > 1:
            advice = "set TMUX_TMPDIR to the folder above tmux-… of one of them"
            raise TmuxError(f"{error}. tmux runs at {', '.join(others)}: {advice}") from None
        if not others:
            raise
        return await _list_panes(session, others[0])


def _sockets_of_this_user() -> list[str]:
    """Where servers of tmux listen that belong to this user. Paths that others could have made do not count."""
    try:
        lines = _SOCKETS.read_text(errors="replace").splitlines()
    except OSError:
        return []
    paths = {line.split(maxsplit=7)[-1] for line in lines if f"/tmux-{os.getuid()}/" in line}
    return sorted(path for path in paths if _is_of_this_user(Path(path)))


def _is_of_this_user(path: Path) -> bool:
    try:
        return path.is_socket() and {path.stat().st_uid, path.parent.stat().st_uid} == {os.getuid()}
    except OSError:
        return False


async def _list_panes(session: str | None, socket: str | None) -> list[Pane]:
    form = _BETWEEN.join(f"#{{{name}}}" for name in _FIELDS)
    target = ["-s", "-t", f"={session}"] if session else ["-a"]
    panes = []
    for line in (await _tmux(socket, "list-panes", *target, "-F", form)).rstrip("\n").split("\n"):
        fields = line.split(_BETWEEN, len(_FIELDS) - 1)
        if len(fields) != len(_FIELDS) or not fields[4].isdecimal():
            raise TmuxError(f"it describes a pane in a way that is not understood: {on_one_line(line)}")
        pane_id, name, window, pane, width, dead, command = fields
        if dead != "1":
            panes.append(Pane(pane_id, f"{name}:{window}.{pane}", command, int(width), socket))
    return panes


async def pane_rows(pane: Pane) -> list[str]:
    """What the pane shows."""
    return (await _tmux(pane.socket, "capture-pane", "-p", "-t", pane.pane_id)).rstrip("\n").split("\n")


async def send_text(pane: Pane, text: str, keys: Sequence[str]) -> None:
    """Type into a pane. `keys` are tmux's own names of keys."""
    if text:
        await _tmux(pane.socket, "send-keys", "-t", pane.pane_id, "-l", "--", as_argument(text))
    if keys:
        await _tmux(pane.socket, "send-keys", "-t", pane.pane_id, "--", *map(as_argument, keys))


def as_argument(word: str) -> str:
    """The word as tmux reads it. A `;` at the end of an argument would end the command: what follows would be another
    one, such as `run-shell`.
    """
    return f"{word[:-1]}\\;" if word.endswith(";") else word


async def _tmux(socket: str | None, *arguments: str) -> str:
    at = [] if socket is None else ["-S", socket]
    try:
        # Without -u it replaces letters, and our tabs, in a locale without UTF-8.
        process = await start_group("tmux", "-u", *at, *arguments, stdin=DEVNULL, stdout=PIPE, stderr=PIPE)
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
