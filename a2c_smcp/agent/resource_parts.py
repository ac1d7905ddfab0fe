"""Puts the parts of a large resource together again. Pure: the caller asks for each part.

A computer may belong to anybody. Each part must bring the reader on by what was asked for, and all parts must speak of
one size. So a computer can neither make the reader ask for ever nor fill its memory beyond the caller's bound.
"""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from a2c_smcp.errors import BadRequestError, PayloadTooLargeError
from a2c_smcp.smcp import ReadResourceRet
from a2c_smcp.utils.json_sizes import weight

__all__ = ["MOST_BYTES", "PART_BYTES", "ResourceParts"]

#: How much of a resource is read at most, if the caller gives no bound, and how much is asked for at once.
MOST_BYTES: Final = 64 * 2**20
PART_BYTES: Final = 2 * 2**20
#: A text is cut between two characters: a part may have so many bytes less, or more if not even one character fits.
_CUT: Final = 3
#: About how many bytes the fields around the bodies may have in all contents together, such as `_meta`.
_FIELDS: Final = 8 * 2**20


@dataclass(slots=True)
class _GatheredContent:
    fields: dict[str, Any]
    is_blob: bool
    pieces: list[bytes] = field(default_factory=list)

    def whole(self) -> dict[str, Any]:
        body = b"".join(self.pieces)
        if self.is_blob:
            return {**self.fields, "blob": base64.b64encode(body).decode()}
        return {**self.fields, "text": body.decode("utf-8", "surrogatepass")}


class ResourceParts:
    """What was read so far. `add` takes the answer to a `range` that began at `offset`, until `is_whole`."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most = most_bytes
        self._contents: list[_GatheredContent] = []
        self._total: int | None = None
        self._fields = 0
        self.offset = 0
        """Where the next part begins."""

    @property
    def is_whole(self) -> bool:
        return self._total is not None and self.offset >= self._total

    @property
    def contents(self) -> list[dict[str, Any]]:
        return [each.whole() for each in self._contents]

    def check_size(self, size: object) -> None:
        """Raise `PayloadTooLargeError` if a resource of this size may not be read."""
        if isinstance(size, int) and size > self._most:
            raise PayloadTooLargeError(
                f"the resource has {size} bytes; {self._most} are allowed", {"total_size": size, "most": self._most}
            )

    def add(self, part: ReadResourceRet, length: int) -> None:
        """Take a part. Raises `BadRequestError` for one that does not follow, `PayloadTooLargeError` over the bound."""
        total = part.get("total_size")
        if total is None or total < 0:
            raise _wrong("has no total_size")
        self.check_size(total)
        if self._total not in (None, total):
            raise _wrong("is of another size: the resource has changed; read it again")
        pieces = [_body(content) for content in part["contents"]]
        size = sum(len(body) for _, body in pieces)
        wanted = min(length, total - self.offset)
        is_near = wanted - _CUT <= size <= min(wanted + _CUT, total - self.offset)
        if not is_near or (wanted > 0 and size == 0):
            raise _wrong(f"has {size} bytes instead of {wanted}")
        self._total = total
        self._append(part, pieces)
        self.offset += size

    def _append(self, part: ReadResourceRet, pieces: list[tuple[bool, bytes]]) -> None:
        first = part.get("first", 0)
        for index, (content, (is_blob, body)) in enumerate(zip(part["contents"], pieces, strict=True), first):
            if index == len(self._contents):
                self._contents.append(_GatheredContent(self._around(content), is_blob))
            elif index > len(self._contents) or self._contents[index].is_blob is not is_blob:
                raise _wrong("does not follow the part before")
            elif index < len(self._contents) - 1 and body:  # an empty content may stand in two parts
                raise _wrong("repeats a content that was complete")
            self._contents[index].pieces.append(body)

    def _around(self, content: Mapping[str, Any]) -> dict[str, Any]:
        """The fields around a body. A computer may send contents without end that have no body."""
        fields = {key: value for key, value in content.items() if key not in ("text", "blob")}
        self._fields += weight(fields, _FIELDS)
        if self._fields > _FIELDS:
            raise PayloadTooLargeError(f"the contents have more than {_FIELDS} bytes beside their bodies")
        return fields


def _body(content: Mapping[str, Any]) -> tuple[bool, bytes]:
    """Whether a content is a blob, and its bytes."""
    if isinstance(text := content.get("text"), str):
        return False, text.encode("utf-8", "surrogatepass")
    try:
        return True, base64.b64decode(content["blob"], validate=True)
    except (KeyError, TypeError, ValueError, binascii.Error):
        raise _wrong("has a content without a body that can be read") from None


def _wrong(problem: str) -> BadRequestError:
    return BadRequestError(f"reply to client:read_resource: the part {problem}", {"field": "contents"})
