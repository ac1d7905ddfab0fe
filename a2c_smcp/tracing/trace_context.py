"""The trace context of W3C as text: which `traceparent` counts, and how a request gets another one. Pure."""

import re
from typing import Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

__all__ = ["traceparent_in", "well_formed", "with_parent"]

#: Version 00, an id of the trace and an id of the span that are not all zeros, and flags.
_FORM: Final = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}", re.ASCII)
#: Bytes of a `meta` in which the server looks for a `traceparent`.
_LARGEST_META: Final = 64 * 1024


class _Meta(msgspec.Struct):
    traceparent: Raw | UnsetType = UNSET


_META: Final = msgspec.json.Decoder(_Meta)


def well_formed(value: object) -> str | None:
    """The `traceparent`, if it is one that counts. Peers may send anything: all the rest is ignored, and not logged."""
    return value if isinstance(value, str) and _FORM.fullmatch(value) else None


def traceparent_in(meta: Raw) -> str | None:
    """The `traceparent` in the JSON of a request's `meta`. One with escapes in its JSON does not count."""
    if len(memoryview(meta)) > _LARGEST_META:
        return None
    try:
        found = _META.decode(meta).traceparent
    except (msgspec.DecodeError, RecursionError):
        return None
    # A text that counts is ASCII. Another encoding would not match.
    return None if found is UNSET else well_formed(bytes(memoryview(found)[1:-1]).decode("ascii", "replace"))


def with_parent(body: str, old: str, new: str) -> str:
    """The JSON of a request in which `new` takes the place of the `traceparent` `old`. Both have the same length.

    `old` comes from `traceparent_in`, so it is in the text, and in quotes. If it is there twice, one may be an argument
    of a tool: then the text stays as it is.
    """
    quoted = f'"{old}"'
    return body.replace(quoted, f'"{new}"') if body.count(quoted) == 1 else body
