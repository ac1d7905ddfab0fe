"""The text of Socket.IO packets that carry JSON only. Knows the frame around a message, but not its meaning."""

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import orjson

from a2c_smcp.errors import BadRequestError
from a2c_smcp.utils.json_sizes import nests_deeper
from a2c_smcp.wire import Encoded, NotRepresentableError, Unacceptable, codec, written

__all__ = [
    "ACK",
    "EVENT",
    "MAX_DEPTH",
    "NAME",
    "Head",
    "encode_ack",
    "encode_event",
    "name_of",
    "read_ack",
    "read_event",
    "read_head",
    "refused_event",
]

#: Packet types of Socket.IO.
EVENT: Final = 2
ACK: Final = 3
#: How deep an event's payload may nest.
MAX_DEPTH: Final = 100
_SHORT: Final = 4096

# Packet type, attachments, namespace with its query, ack id. The rest is JSON.
_HEAD: Final = re.compile(r"([0-6])(?:(\d{1,10})-)?(?:(/[^,?]*)(?:\?[^,]*)?(?:,|$))?(\d{1,100}(?!\d))?", re.ASCII)
#: How an event begins whose name can be read without decoding.
NAME: Final = re.compile(r'\s*\[\s*"([^"\\\x00-\x1f]{1,100})"\s*[,\]]')


class Head(NamedTuple):
    """The text before a packet's JSON, and that JSON as text."""

    packet_type: int
    attachments: int
    namespace: str | None
    ack_id: int | None
    body: str


def read_head(text: str) -> Head:
    """Split a packet, or raise `ValueError`. Its JSON is not read."""
    if (match := _HEAD.match(text)) is None:
        raise ValueError("not a Socket.IO packet")
    kind, attachments, namespace, ack_id = match.groups()
    return Head(
        int(kind), int(attachments or 0), namespace, int(ack_id) if ack_id is not None else None, text[match.end() :]
    )


def read_event(body: str) -> list[Any]:
    """The name and the decoded arguments of an event.

    Arguments that nest too deep, or that Python cannot represent, are replaced by `Unacceptable`. Raises `ValueError`
    if it is not an event.
    """
    try:
        data = codec.loads(body)
    except NotRepresentableError as error:
        return [name_of(body), Unacceptable(BadRequestError(str(error)))]
    if not isinstance(data, list) or not data:
        raise ValueError("an event must be a JSON array that begins with its name")
    # A short text is looked at here: this runs for every message.
    is_flat = len(body) < _SHORT and body.count("[") + body.count("{") <= MAX_DEPTH
    if not is_flat and nests_deeper(body, data[1:], MAX_DEPTH):
        return refused_event(data, BadRequestError(f"the payload is nested deeper than {MAX_DEPTH} levels"))
    return data


def read_ack(body: str) -> list[Any]:
    """The decoded arguments of an ack. An error stands for arguments that `read_event` would refuse.

    An ack that does not decode has no arguments: so its caller gets an answer and does not wait until the timeout.
    A lone surrogate becomes U+FFFD: the caller may pass the answer on to a program that cannot read one.
    """
    try:
        data = codec.loads_well_formed(body)
    except NotRepresentableError as error:
        return [BadRequestError(f"the answer: {error}").payload()]
    except ValueError:
        return []
    if not isinstance(data, list):
        return []
    if nests_deeper(body, data, MAX_DEPTH):
        return [BadRequestError(f"the answer is nested deeper than {MAX_DEPTH} levels").payload()]
    return data


def name_of(body: str) -> str | None:
    """The name of an event without decoding its arguments, if that is possible."""
    return match[1] if (match := NAME.match(body)) else None


def encode_event(namespace: str, event: str, data: Any, ack_id: int | None = None) -> str:
    """The packet of an event with this payload. Raises `BadRequestError` for a payload that is not JSON."""
    if isinstance(data, Encoded):
        body = f"[{codec.dumps(event)},{data.text}]"
    else:
        try:
            body = orjson.dumps((event, data)).decode()
        except TypeError:
            body = written(event, [event, data])
    return f"{EVENT}{namespace},{'' if ack_id is None else ack_id}{body}"


def encode_ack(namespace: str, ack_id: int, args: Sequence[Any]) -> str:
    """The packet of an ack with these arguments. An `Encoded` argument must be the only one."""
    first = args[0] if args else None
    body = f"[{first.text}]" if isinstance(first, Encoded) else codec.dumps(args)
    return f"{ACK}{namespace},{ack_id}{body}"


def refused_event(data: Any, error: BadRequestError) -> list[Any]:
    """An event whose arguments are replaced by an error."""
    name = data[0] if isinstance(data, list) and data else None
    return [name, Unacceptable(error)]
