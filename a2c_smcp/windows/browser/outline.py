"""What a tab shows, as text for a window. Pure: the walker in the page has made the lines."""

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar
from urllib.parse import urlsplit

from a2c_smcp.errors import BadRequestError

__all__ = ["Outline", "References", "WalkerLimits", "checked_address", "file_name", "parse_reference"]

_REFERENCE: Final = re.compile(r"\[?e(\d{1,12})\]?")
#: More references than one look at one document can give.
_MOST_REFERENCES: Final = 100_000
#: How many looks are remembered of one tab.
_MOST_LOOKS: Final = 1000
#: Bytes of a file's name: file systems take 255, and a number may be added.
_LONGEST_NAME: Final = 200
Place = TypeVar("Place")

_SCHEMES: Final = ("http", "https")
#: A name without a scheme, such as `example.com/path`.
_BARE: Final = re.compile(r"[\w-]+(?:\.[\w-]+)+(?::\d+)?(?:/\S*)?")


@dataclass(frozen=True, slots=True)
class WalkerLimits:
    """When the walker stops."""

    characters: int = 20_000
    nodes: int = 40_000
    milliseconds: int = 40

    def options(self, first: int = 1, *, markdown: bool = False) -> dict[str, Any]:
        """What the walker is asked for. New references begin with `first`."""
        return {
            "first": first,
            "budget": self.characters,
            "nodes": self.nodes,
            "milliseconds": self.milliseconds,
            "markdown": markdown,
        }


@dataclass(frozen=True, slots=True)
class Outline:
    """The lines of a page and its frames."""

    title: str
    lines: tuple[str, ...]
    scrolled: str = ""
    """How far it is scrolled, in words."""

    @classmethod
    def of(cls, answers: Sequence[tuple[str, Any]]) -> "Outline":
        """The outline of what the walker answered, for the main frame first.

        A page can answer anything: what has a wrong form is left out.
        """
        main = _mapping(answers[0][1]) if answers else {}
        lines = _text(main.get("text")).split("\n")
        # First, because the end of a long page is cut.
        if focus := _text(main.get("focus")):
            lines = ["further down, with the focus:", *focus.split("\n"), "from the top of the page:", *lines]
        for place, answer in answers[1:]:
            if inner := _text(_mapping(answer).get("text")).strip():
                lines += [f"--- frame {place}", *inner.split("\n")]
        return cls(_text(main.get("title"))[:300], tuple(lines), _scrolled(main.get("scroll")))


def parse_reference(text: str) -> int:
    """The reference that an agent names. Raises `BadRequestError` if it is none."""
    if (found := _REFERENCE.fullmatch(text.strip())) is None:
        raise BadRequestError(f"{text!r} is no reference: take one from the tab's window, such as e12")
    return int(found[1])


class References(Generic[Place]):
    """Which numbers of references belong to which frame of a tab. No number is given twice: after another page was
    opened, an old reference means nothing.
    """

    def __init__(self) -> None:
        self._next = 1
        self._looks: deque[tuple[Place, int, int]] = deque(maxlen=_MOST_LOOKS)

    def begin(self, place: Place) -> int:
        """Look at a frame: the first number for what is new there. If no answer comes, its numbers stay taken."""
        first = self._next
        self._next += _MOST_REFERENCES
        self._looks.append((place, first, self._next))
        return first

    def end(self, answered: Any) -> None:
        """The frame has answered with the next number that is free. A page can answer anything."""
        place, first, end = self._looks.pop()
        if isinstance(answered, int) and first <= answered <= end:
            end = self._next = answered
        if end > first:
            self._looks.append((place, first, end))

    def place(self, number: int) -> Place | None:
        """The frame whose reference it is; `None` if no frame of this tab has given it."""
        return next((place for place, first, end in reversed(self._looks) if first <= number < end), None)


def file_name(suggested: str) -> str:
    """The name for a file that a page suggests: without folders, not hidden, and not too long for a disk."""
    name = suggested.replace("\\", "/").rpartition("/")[2].replace("\0", "").lstrip(".") or "download"
    stem, dot, suffix = name.rpartition(".")
    if not dot or len(suffix) > 20:
        stem, suffix = name, ""
    ending = f".{suffix}" if suffix else ""
    room = _LONGEST_NAME - len(ending.encode(errors="replace"))
    return stem.encode(errors="replace")[:room].decode(errors="ignore") + ending


def checked_address(url: str) -> str:
    """The address if a tab may open it: `http` and `https` only. Files and scripts are not for agents. A bare name gets
    `https://` before it.
    """
    address = f"https://{url.strip()}" if _BARE.fullmatch(url.strip()) else url.strip()
    try:
        parts = urlsplit(address)
        is_fine = parts.scheme in _SCHEMES and bool(parts.hostname) and parts.port != 0
    except ValueError as error:
        raise BadRequestError(f"{url!r} is no address: {error}") from None
    if not is_fine:
        raise BadRequestError(f"a tab opens http:// and https:// addresses, not {url!r}")
    return address


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _scrolled(value: Any) -> str:
    if not (isinstance(value, list) and len(value) == 3 and all(isinstance(each, int | float) for each in value)):
        return ""
    top, height, whole = value
    # A page may say that it has no height, or less.
    return "" if whole <= max(1, height * 1.2) else f"scrolled to {100 * (top + height) / whole:.0f} % of the page"
