"""The fields of every request, made from the declarations in `smcp`.

This is the one table for validation: the server reads text by it, and the other ends check values by it. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args, get_origin

import msgspec
from msgspec import Raw
from typing_extensions import get_type_hints

from a2c_smcp.errors import BadRequestError
from a2c_smcp.smcp import EVENTS, TOOL_CALL_EVENT, Event

__all__ = ["REQUEST_FIELDS", "RequestField"]

_WORDS: Final[Mapping[Any, str]] = {
    str: "must be text",
    int: "must be a whole number",
    float: "must be a number",
    bool: "must be true or false",
    dict: "must be an object",
    list[str]: "must be a list of texts",
    list[int]: "must be a list of whole numbers",
}


@dataclass(frozen=True, slots=True)
class RequestField:
    """One field of a request. The contents of an object are not checked."""

    event: str
    name: str
    required: bool
    words: str
    """The rule for its value, in words."""
    reads: Any
    """The type for decoding it."""
    opening: int | None = None
    """The bracket at the beginning of an object or a list."""

    def value_of(self, data: Mapping[str, Any]) -> Any:
        """The value of this field, or `BadRequestError`; `None` for an optional field that is absent or null."""
        value = data.get(self.name)
        if value is None and (self.name not in data or not self.required):
            if self.required:
                raise self.refusal("is missing")
            return None
        try:
            if self.reads is not Raw:
                return msgspec.convert(value, self.reads)
            if isinstance(value, dict):
                return value
        except (msgspec.ValidationError, OverflowError, UnicodeEncodeError):  # the last: half a character
            pass
        raise self.refusal(self.words)

    def refusal(self, problem: str) -> BadRequestError:
        """An error that names the field, but never its value: that may be a secret or a megabyte."""
        return BadRequestError(f"{self.event}: field {self.name!r}: {problem}", {"field": self.name})


def _field(row: Event, name: str, hint: Any) -> RequestField:
    required = name in row.request.__required_keys__  # type: ignore[attr-defined]
    if row.name == TOOL_CALL_EVENT and name in ("timeout", "approval_timeout"):
        return RequestField(row.name, name, required, "", int | float | str)
    if type(None) in get_args(hint):
        hint = get_args(hint)[0]
    kind = get_origin(hint) or hint
    if kind is Literal:
        return RequestField(row.name, name, required, f"must be {' or '.join(map(repr, get_args(hint)))}", hint)
    if kind is dict:
        return RequestField(row.name, name, required, _WORDS[dict], Raw, ord("{"))
    return RequestField(row.name, name, required, _WORDS[hint], hint, ord("[") if kind is list else None)


#: The fields of each event's request.
REQUEST_FIELDS: Final[Mapping[str, tuple[RequestField, ...]]] = {
    row.name: tuple(_field(row, name, hint) for name, hint in get_type_hints(row.request).items())
    for row in EVENTS.values()
}
