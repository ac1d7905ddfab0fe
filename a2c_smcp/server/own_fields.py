"""The fields of a relayed request that nobody but the server writes: who asks, and the agent's dialect. Pure.

The server passes the text of a request on and does not decode it. So it puts a field into the text, behind all others:
of two fields with one name readers take the last one. What a client has written under such a name is taken out.
"""

from collections.abc import Collection, Mapping
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from a2c_smcp.dialects.marks import MARK_FIELD
from a2c_smcp.errors import BadRequestError
from a2c_smcp.request_fields import REQUEST_FIELDS
from a2c_smcp.server.offices import Member
from a2c_smcp.smcp import STAMP_FIELD
from a2c_smcp.wire import LARGE, codec

__all__ = [
    "OWN_FIELDS",
    "RAW_FIELDS",
    "stamp_of",
    "with_field",
    "without_foreign_stamp",
    "without_own_fields",
]

OWN_FIELDS: Final = (STAMP_FIELD, MARK_FIELD)

#: By event: the fields of its request and the server's own ones, as they are in the text.
RAW_FIELDS: Final[Mapping[str, msgspec.json.Decoder[Any]]] = {
    event: msgspec.json.Decoder(
        msgspec.defstruct(
            "Raws", [(name, Raw | UnsetType, UNSET) for name in (*(each.name for each in fields), *OWN_FIELDS)]
        )
    )
    for event, fields in REQUEST_FIELDS.items()
}
_EVENT: Final = msgspec.json.Decoder(tuple[str, Raw])
_FIELDS: Final = msgspec.json.Decoder(tuple[str, dict[str, Raw]])
#: How every escaped ASCII character begins, and with it every other spelling of a field of ours.
_ESCAPED_ASCII: Final = "\\u00"


def stamp_of(asker: Member) -> dict[str, object]:
    """What a computer is told of the sender of a request."""
    key = {"key": asker.key} if asker.key else {}
    return {"name": asker.name, **key, "bound": asker.bound}


def with_field(body: str, name: str, value: object) -> str:
    """The JSON of an accepted request, with one more field at the end of its payload. After the payload there are only
    blanks and a bracket, so the last brace closes it. Every request has other fields.
    """
    end = body.rindex("}")
    return f'{body[:end]},"{name}":{codec.dumps(value)}{body[end:]}'


def without_own_fields(body: str, names: Collection[str] = OWN_FIELDS) -> str:
    """The JSON of a request without fields of these names, however they are spelled. The values of all other fields
    stay as they were. Of a large request only the fields stay that its event has: it may have a million others, and
    nobody honest sends what is taken out here. Raises `BadRequestError` for a text that is not a request.
    """
    try:
        if len(body) > LARGE:
            return _with_known_fields(body, names)
        event, payload = _FIELDS.decode(body)
        if payload.keys().isdisjoint(names):
            return body
        kept = {name: value for name, value in payload.items() if name not in names}
        return msgspec.json.encode((event, kept)).decode()
    except (msgspec.DecodeError, KeyError, UnicodeError, RecursionError):
        return _without_slowly(body, names)


def _with_known_fields(body: str, names: Collection[str]) -> str:
    event, payload = _EVENT.decode(body)
    fields = msgspec.structs.asdict(RAW_FIELDS[event].decode(payload))
    if all(fields[name] is UNSET for name in names):
        return body
    kept = {name: value for name, value in fields.items() if value is not UNSET and name not in names}
    return msgspec.json.encode((event, kept)).decode()


def _without_slowly(body: str, names: Collection[str]) -> str:
    """Decode all of a small request: msgspec takes no lone surrogates."""
    try:
        event, payload = codec.loads(body if len(body) <= LARGE else "")
        if payload.keys().isdisjoint(names):
            return body
        return codec.dumps([event, {name: value for name, value in payload.items() if name not in names}])
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise BadRequestError("the request must be an event with one JSON object") from None


def without_foreign_stamp(body: str) -> str:
    """The JSON of a request that another server process has passed on, without a stamp in it. That process may be
    older, and pass on what its clients wrote. Raises `BadRequestError`.
    """
    if STAMP_FIELD not in body and _ESCAPED_ASCII not in body:
        return body
    return without_own_fields(body, (STAMP_FIELD,))
