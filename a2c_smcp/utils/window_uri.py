"""`window://host/path…?priority=P&fullscreen=F` as a frozen value. Parses and builds; knows nothing of windows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from a2c_smcp.errors import InvalidWindowURIError
from a2c_smcp.utils.uri import URIProblem, ascii_integer, check_host, encode_segment, join, split

__all__ = ["WindowURI", "is_window_uri", "try_parse_window_uri"]

_SCHEME = "window"
_BOOLEANS = {
    **dict.fromkeys(("true", "1", "yes", "on"), True),
    **dict.fromkeys(("false", "0", "no", "off"), False),
}


def is_window_uri(uri: str) -> bool:
    """Whether a resource claims to be a window. `WindowURI.parse` says whether the URI is valid."""
    return uri.startswith(f"{_SCHEME}://")


@dataclass(frozen=True, slots=True)
class WindowURI:
    """The address of a window. Building one that breaks a rule raises `InvalidWindowURIError`."""

    host: str
    path: tuple[str, ...] = ()
    priority: int | None = None
    fullscreen: bool | None = None
    params: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Query parameters that the protocol does not know, kept unchanged."""

    def __post_init__(self) -> None:
        try:
            check_host(self.host)
            for segment in self.path:
                encode_segment(segment)
            if self.priority is not None:
                _check_priority(self.priority)
            if not isinstance(self.fullscreen, bool | None):
                raise URIProblem("fullscreen must be true or false")
            if reserved := {"priority", "fullscreen"} & self.params.keys():
                raise URIProblem(f"{min(reserved)} is a field, not a parameter")
            self._write()
        except URIProblem as problem:
            raise InvalidWindowURIError(f"{_SCHEME}://{self.host}", str(problem)) from None

    @classmethod
    def parse(cls, text: str) -> "WindowURI":
        """Read a window URI. Raises `InvalidWindowURIError` with the rule that it breaks."""
        try:
            raw = split(text, _SCHEME)
            params = dict(raw.query)
            priority = params.pop("priority", None)
            fullscreen = params.pop("fullscreen", None)
            return cls(
                host=raw.host,
                path=raw.segments,
                priority=None if priority is None else ascii_integer(priority, "priority", 0, 100),
                fullscreen=None if fullscreen is None else _boolean(fullscreen),
                params=params,
            )
        except URIProblem as problem:
            raise InvalidWindowURIError(str(text), str(problem)) from None

    def build(self) -> str:
        """Write the URI; `WindowURI.parse` reads the same value back."""
        return self._write()

    __str__ = build

    def _write(self) -> str:
        query = dict(self.params)
        if self.priority is not None:
            query["priority"] = str(self.priority)
        if self.fullscreen is not None:
            query["fullscreen"] = "true" if self.fullscreen else "false"
        return join(_SCHEME, self.host, map(encode_segment, self.path), query)


# A server may list ten thousand windows, and every desktop asks about all of them.
@lru_cache(maxsize=2**15)
def try_parse_window_uri(text: str) -> WindowURI | None:
    """Read a window URI that may be invalid; `None` if it is. The result is remembered."""
    try:
        return WindowURI.parse(text)
    except InvalidWindowURIError:
        return None


def _check_priority(value: Any) -> None:
    if type(value) is not int or not 0 <= value <= 100:
        raise URIProblem("priority must be an integer from 0 to 100")


def _boolean(text: str) -> bool:
    try:
        return _BOOLEANS[text.lower()]
    except KeyError:
        raise URIProblem(f"fullscreen must be one of {', '.join(_BOOLEANS)}") from None
