"""The contents of a resource in parts, for contents that do not fit into one message. Pure.

The bodies of all contents count one after the other: the decoded bytes of blobs, the UTF-8 of texts. A part ends
between two characters, so it may be up to three bytes shorter than asked for.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from a2c_smcp.errors import BadRequestError, InternalError
from a2c_smcp.utils.text import well_formed

__all__ = ["ResourceBody", "ResourcePart", "read_range"]


@dataclass(frozen=True, slots=True)
class ResourcePart:
    """Some bytes of the contents. `first` is the place of the first content among all."""

    contents: list[dict[str, Any]]
    first: int


class ResourceBody:
    """All contents of a resource, in MCP's JSON form, as bytes. Raises `InternalError` for a blob that is not
    base64.
    """

    def __init__(self, contents: Sequence[Mapping[str, Any]], meta: Mapping[str, Any] | None = None) -> None:
        self.meta = meta
        self._items: list[tuple[dict[str, Any], str, bytes]] = []
        for content in contents:
            kind = "blob" if "blob" in content else "text"
            around = {key: value for key, value in content.items() if key != kind}
            self._items.append((around, kind, _bytes(kind, str(content.get(kind, "")))))
        self.size = sum(len(data) for _, _, data in self._items)

    def part(self, offset: int, length: int) -> ResourcePart:
        """The bytes from `offset` on. Raises `BadRequestError` for an offset behind the end, or inside a character."""
        if offset > self.size:
            raise BadRequestError(f"field 'range': the contents have {self.size} bytes", {"field": "range"})
        end, begin = offset + length, 0
        chosen: list[dict[str, Any]] = []
        first = len(self._items)
        for number, (around, kind, data) in enumerate(self._items):
            after = begin + len(data)
            is_in = begin < end and offset < after if data else offset <= begin < max(end, offset + 1)
            if is_in or (not data and begin == self.size <= end):
                first = min(first, number)
                chosen.append({**around, kind: _piece(kind, data, max(0, offset - begin), end - begin)})
            begin = after
        return ResourcePart(chosen, first)


def _bytes(kind: str, text: str) -> bytes:
    if kind == "text":
        return well_formed(text).encode()
    try:
        return base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        raise InternalError("the MCP server sent a blob that is not base64") from None


def _piece(kind: str, data: bytes, start: int, end: int) -> str:
    if kind == "blob":
        return base64.b64encode(data[start:end]).decode()
    if start < len(data) and _is_inside(data[start]):
        raise BadRequestError("field 'range': the offset is inside a character", {"field": "range"})
    stop = min(end, len(data))
    while start < stop < len(data) and _is_inside(data[stop]):
        stop -= 1
    if stop == start < min(end, len(data)):  # not even one character fits: it comes all the same, or nothing ever would
        stop += 1
        while stop < len(data) and _is_inside(data[stop]):
            stop += 1
    return data[start:stop].decode()


def _is_inside(byte: int) -> bool:
    """Whether a byte of UTF-8 is not the first one of its character."""
    return byte & 0b1100_0000 == 0b1000_0000


def read_range(wanted: Sequence[int]) -> tuple[int, int]:
    """The offset and the length in a request, or `BadRequestError`."""
    if len(wanted) != 2 or wanted[0] < 0 or wanted[1] < 1:
        raise BadRequestError("field 'range': must be [offset, length], from 0 and from 1 on", {"field": "range"})
    return wanted[0], wanted[1]
