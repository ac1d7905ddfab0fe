"""The name of a browser, such as `Chrome on Linux`, where people read who decided. Pure.

It is made of words of ours. The words that a browser sends are never shown.
"""

from collections.abc import Iterable
from typing import Final

__all__ = ["DeviceNames", "device_name"]

# The first match counts: most browsers also say that they are Chrome, and Chrome says that it is Safari.
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
    """The name, without a number, of a browser that sends this header."""
    browser = _found(_BROWSERS, user_agent) or _UNKNOWN
    system = _found(_SYSTEMS, user_agent)
    return f"{browser} on {system}" if system else browser


def _found(table: tuple[tuple[tuple[str, ...], str], ...], user_agent: str) -> str | None:
    return next((name for marks, name in table if any(mark in user_agent for mark in marks)), None)


class DeviceNames:
    """Gives each name once in a run, and no name that is `taken`. So the history never credits one browser with the
    decision of another.
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = frozenset(taken)
        self._given: dict[str, int] = {}

    def new(self, name: str) -> str:
        """This name, or `name (2)`, `name (3)` and so on: the first that is free."""
        number = self._given.get(name, 0) + 1
        while (numbered := f"{name} ({number})" if number > 1 else name) in self._taken:
            number += 1
        self._given[name] = number
        return numbered
