"""A terminal emulator behind a small interface. This is the only module that knows pyghostty, which is young: its
version is pinned in `constraints.txt`. Another emulator would be a second class here. None is: of those that were tried
`pyte` has no alternate screen, and `pyavt` would be needed only where pyghostty has no wheel.
"""

from dataclasses import dataclass
from typing import Any, Final, Protocol

__all__ = ["Emulator", "GhosttyEmulator", "Screen", "Size"]

#: Modes of a terminal that change what is typed: cursor keys as an application wants them, and pasted text in brackets.
_APPLICATION_CURSOR_KEYS: Final = 1
_BRACKETED_PASTE: Final = 2004
_ALTERNATE_SCREENS: Final = (47, 1047, 1049)
#: Bytes that the terminal answers to questions of a program. More than this in one go is an attack.
_MOST_REPLIES: Final = 4096


@dataclass(frozen=True, slots=True)
class Size:
    """Columns and rows of a terminal."""

    columns: int = 100
    rows: int = 30

    def __post_init__(self) -> None:
        if not 20 <= self.columns <= 400 or not 5 <= self.rows <= 200:
            raise ValueError(f"a terminal has 20 to 400 columns and 5 to 200 rows, not {self.columns} and {self.rows}")


@dataclass(frozen=True, slots=True)
class Screen:
    """What a person would see: the rows without colours, and where the cursor stands."""

    rows: tuple[str, ...]
    size: Size
    cursor: tuple[int, int] | None
    """Column and row, from 0; `None` if the program hides it."""
    is_alternate: bool = False
    """Whether a program such as vim or less has the whole screen."""


class Emulator(Protocol):
    """Turns the output of a program into a screen."""

    def feed(self, output: bytes) -> bytes:
        """Take output of the program. Returns what the terminal answers to questions of the program."""
        ...

    def screen(self) -> Screen: ...

    def history(self, most: int) -> list[str]:
        """The last `most` lines, those that have left the screen among them. Wrapped lines are one line."""
        ...

    def resize(self, size: Size) -> None: ...

    @property
    def title(self) -> str:
        """What the program says that the window is called."""
        ...

    @property
    def application_keys(self) -> bool:
        """Whether cursor keys are to be sent as full-screen programs want them."""
        ...

    @property
    def brackets_pastes(self) -> bool:
        """Whether the program wants to know which text was pasted."""
        ...

    def close(self) -> None: ...


class GhosttyEmulator:
    """Ghostty's terminal core."""

    def __init__(self, size: Size, *, scrollback: int = 10_000) -> None:
        from pyghostty import Terminal

        self._size = size
        self._terminal: Any = Terminal(size.columns, size.rows, scrollback=scrollback)
        self._replies = bytearray()
        self._terminal.on_reply(self._replies.extend)

    def feed(self, output: bytes) -> bytes:
        self._terminal.feed(output)
        replies = bytes(self._replies[:_MOST_REPLIES])
        self._replies.clear()
        return replies

    def screen(self) -> Screen:
        rows = self._terminal.text().split("\n")
        cursor = self._terminal.cursor if self._terminal.get("cursor_visible", "bool") else None
        return Screen(tuple(rows), self._size, cursor, any(self._terminal.mode(mode) for mode in _ALTERNATE_SCREENS))

    def history(self, most: int) -> list[str]:
        lines: list[str] = self._terminal.contents().split("\n")
        return lines[-most:]

    def resize(self, size: Size) -> None:
        self._terminal.resize(size.columns, size.rows)
        self._size = size

    @property
    def title(self) -> str:
        from pyghostty import ffi

        title = self._terminal.get("title", "GhosttyString")
        return bytes(ffi.buffer(title.ptr, title.len)).decode(errors="replace") if title.len else ""

    @property
    def application_keys(self) -> bool:
        return bool(self._terminal.mode(_APPLICATION_CURSOR_KEYS))

    @property
    def brackets_pastes(self) -> bool:
        return bool(self._terminal.mode(_BRACKETED_PASTE))

    def close(self) -> None:
        self._terminal.close()
