"""What `window://` and `dpe://` URIs share: how the text is split, and how the parts are written back.

Hand-written on purpose: the standard library's splitter drops control characters, changes the scheme's case and accepts
what the protocol forbids. A broken rule raises `URIProblem`, which each URI module turns into its own error.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import quote, unquote

from a2c_smcp.utils.text import has_control_characters

__all__ = ["MAX_URI_LENGTH", "RawURI", "URIProblem", "ascii_integer", "check_host", "encode_segment", "join", "split"]

MAX_URI_LENGTH = 8192

_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_NOT_IN_HOST = re.compile(r"[\s/?#@\\]")
_MAX_DIGITS = 18


class URIProblem(ValueError):  # noqa: N818 - never leaves the URI modules
    """A rule that a URI breaks, in words."""


@dataclass(frozen=True, slots=True)
class RawURI:
    """A URI split into percent-decoded parts, before the rules of its kind are checked."""

    host: str
    segments: tuple[str, ...]
    query: Mapping[str, str]


def split(text: str, scheme: str) -> RawURI:
    """Split a URI. Raises `URIProblem` for the first common rule that it breaks."""
    if not isinstance(text, str):
        raise URIProblem("a URI must be text")
    if len(text) > MAX_URI_LENGTH:
        raise URIProblem(f"a URI may have {MAX_URI_LENGTH} characters, this one has {len(text)}")
    if has_control_characters(text):
        raise URIProblem("control characters must be percent-encoded")
    prefix = f"{scheme}://"
    if not text.startswith(prefix):
        raise URIProblem(f"the scheme must be {prefix}")
    rest = text[len(prefix) :]
    if "#" in rest:
        raise URIProblem("a fragment is not allowed")
    location, _, query = rest.partition("?")
    host, slash, path = location.partition("/")
    check_host(host)
    return RawURI(host, _segments(path) if slash else (), _query(query))


def join(scheme: str, host: str, encoded_segments: Iterable[str], query: Mapping[str, str]) -> str:
    """Write a URI from its host, its already encoded segments and its decoded query."""
    text = "/".join([f"{scheme}://{host}", *encoded_segments])
    if query:
        text += "?" + "&".join(f"{encode_segment(key)}={_encode(value, ',')}" for key, value in query.items())
    if len(text) > MAX_URI_LENGTH:
        raise URIProblem(f"a URI may have {MAX_URI_LENGTH} characters, this one would have {len(text)}")
    return text


def encode_segment(segment: str) -> str:
    """Percent-encode one path segment (or query key), its slashes included."""
    if not segment:
        raise URIProblem("an empty segment or key is not allowed")
    return _encode(segment, "")


def check_host(host: str) -> None:
    if not host:
        raise URIProblem("the host is missing")
    if "@" in host:
        raise URIProblem("user information before the host is not allowed")
    if _NOT_IN_HOST.search(host) or has_control_characters(host):
        raise URIProblem("the host has a character that is not allowed")


def ascii_integer(text: str, what: str, low: int, high: int | None = None) -> int:
    """Read an integer of ASCII digits. Signs, blanks and digits of other scripts are refused."""
    wanted = f"{what} must be an integer from {low}" + (f" to {high}" if high is not None else " up")
    if not (text.isascii() and text.isdigit()):
        raise URIProblem(f"{wanted}, in ASCII digits")
    if len(text) > _MAX_DIGITS:
        raise URIProblem(f"{wanted}, of at most {_MAX_DIGITS} digits")
    value = int(text)
    if value < low or (high is not None and value > high):
        raise URIProblem(wanted)
    return value


def _segments(path: str) -> tuple[str, ...]:
    if not path:
        return ()
    segments = path.removesuffix("/").split("/")
    if "" in segments:
        raise URIProblem("an empty path segment is not allowed")
    return tuple(_decode(segment) for segment in segments)


def _query(text: str) -> dict[str, str]:
    query: dict[str, str] = {}
    for pair in filter(None, text.split("&")):
        key, _, value = pair.partition("=")
        key = _decode(key)
        if not key:
            raise URIProblem("a query parameter without a name is not allowed")
        if key in query:
            raise URIProblem(f"the query parameter {key!r} is given twice")
        query[key] = _decode(value)
    return query


def _decode(text: str) -> str:
    if _BAD_ESCAPE.search(text):
        raise URIProblem("a % must be followed by two hexadecimal digits")
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise URIProblem("percent-encoding must be UTF-8") from None


def _encode(text: str, safe: str) -> str:
    try:
        return quote(text, safe=safe)
    except UnicodeEncodeError:
        raise URIProblem("a lone surrogate cannot be encoded") from None
