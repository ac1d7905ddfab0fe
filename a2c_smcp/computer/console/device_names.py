"""What a browser is called where people read who decided, such as `Chrome on Linux`. Pure.

The name is made of words of ours: what a browser says of itself is looked at, and never shown.
"""

from collections.abc import Iterable
from typing import Final

__all__ = ["MAX_DEVICE_NAME", "DeviceNames", "device_name"]

#: Characters of a name, its number included.
MAX_DEVICE_NAME: Final = 60

# The first that is found counts: most browsers also say that they are Chrome, and Chrome that it is Safari.
_BROWSERS: Final = (
    (("Edg/", "EdgA/", "EdgiOS/"), "Edge"),
    (("OPR/", "OPT/"), "Opera"),
    (("SamsungBrowser/",), "Samsung Internet"),
    (("Firefox/", "FxiOS/"), "Firefox"),
    (("Chrome/", "CriOS/", "Chromium/"), "Chrome"),
    (("Safari/",), "Safari"),
)
_SYSTEMS: Final = (
    (("Android",), "Android"),
    (("iPhone",), "iPhone"),
    (("iPad",), "iPad"),
    (("Windows",), "Windows"),
    (("Macintosh", "Mac OS X"), "macOS"),
    (("CrOS",), "ChromeOS"),
    (("Linux",), "Linux"),
)
_UNKNOWN: Final = "Unknown browser"


def device_name(user_agent: str) -> str:
    """A name without a number, for a browser that sends this header."""
    browser = _found(_BROWSERS, user_agent) or _UNKNOWN
    system = _found(_SYSTEMS, user_agent)
    return f"{browser} on {system}" if system else browser


def _found(table: tuple[tuple[tuple[str, ...], str], ...], user_agent: str) -> str | None:
    return next((name for marks, name in table if any(mark in user_agent for mark in marks)), None)


class DeviceNames:
    """Gives each name once in a run, and none that is `taken`: the history of calls must not credit one browser with
    what another decided.
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = frozenset(taken)
        self._given: dict[str, int] = {}

    def new(self, name: str) -> str:
        """This name, or the first of `name (2)`, `name (3)`, … that nobody had."""
        number = self._given.get(name, 0) + 1
        while (numbered := f"{name} ({number})" if number > 1 else name) in self._taken:
            number += 1
        self._given[name] = number
        return numbered
