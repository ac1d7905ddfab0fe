"""Socket.IO packets that carry JSON only, and their text. Knows the frame around a message, but not its meaning."""

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from a2c_smcp.errors import BadRequestError
from a2c_smcp.utils.json_sizes import nests_deeper
from a2c_smcp.utils.socketio_internals import ACK, BINARY_ACK, BINARY_EVENT, EVENT, Packet
from a2c_smcp.wire import Encoded, NotRepresentableError, Unacceptable, codec, written

__all__ = [
    "MAX_DEPTH",
    "Head",
    "SMCPPacket",
    "encode_ack",
    "encode_event",
    "name_of",
    "read_ack",
    "read_event",
    "read_head",
]

#: How deep an event's payload may nest.
MAX_DEPTH: Final = 100

# Packet type, attachments, namespace with its query, ack id. The rest is JSON.
_HEAD: Final = re.compile(r"([0-6])(?:(\d{1,10})-)?(?:(/[^,?]*)(?:\?[^,]*)?(?:,|$))?(\d{1,100}(?!\d))?", re.ASCII)


_NAME: Final = re.compile(r'\s*\[\s*"([^"\\\x00-\x1f]{1,100})"\s*[,\]]')


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
    if nests_deeper(body, data[1:], MAX_DEPTH):
        return _refused(data, BadRequestError(f"the payload is nested deeper than {MAX_DEPTH} levels"))
    return data


def read_ack(body: str) -> list[Any]:
    """The decoded arguments of an ack. An error stands for arguments that `read_event` would refuse.

    An ack that does not decode has no arguments: so its caller gets an answer and does not wait until the timeout.
    """
    try:
        data = codec.loads(body)
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
    return match[1] if (match := _NAME.match(body)) else None


def encode_event(namespace: str, event: str, data: Any, ack_id: int | None = None) -> str:
    """The packet of an event with this payload. Raises `BadRequestError` for a payload that is not JSON."""
    body = f"[{codec.dumps(event)},{data.text}]" if isinstance(data, Encoded) else written(event, [event, data])
    return _encode(EVENT, namespace, ack_id, body)


def encode_ack(namespace: str, ack_id: int, args: Sequence[Any]) -> str:
    """The packet of an ack with these arguments. An `Encoded` argument must be the only one."""
    first = args[0] if args else None
    body = f"[{first.text}]" if isinstance(first, Encoded) else codec.dumps(args)
    return _encode(ACK, namespace, ack_id, body)


def _encode(packet_type: int, namespace: str, ack_id: int | None, body: str) -> str:
    return f"{packet_type}{namespace},{'' if ack_id is None else ack_id}{body}"


class SMCPPacket(Packet):  # type: ignore[misc]  # python-socketio ships no types
    """A Socket.IO packet that carries JSON only. Give it to python-socketio as `serializer`.

    Unlike the library's `json=` argument this does not change other Socket.IO servers of the process. Sending bytes
    raises `TypeError`. An event with bytes, or nested deeper than `MAX_DEPTH`, reaches its handler as `Unacceptable`,
    and is answered with 400.
    """

    uses_binary_events = False
    json = codec
    data: Any

    def decode(self, encoded_packet: str) -> int:
        self.packet_type, attachments, self.namespace, self.id, body = read_head(encoded_packet)
        if self.packet_type == EVENT:
            self.data = read_event(body)
        elif self.packet_type == ACK:
            self.data = read_ack(body)
        elif self.packet_type in (BINARY_EVENT, BINARY_ACK):
            self.data = [name_of(body)]  # it is refused later in any case
        else:
            self.data = codec.loads(body) if body else None
        return attachments

    def add_attachment(self, attachment: bytes) -> bool:
        if self.attachment_count <= len(self.attachments):
            raise ValueError("Unexpected binary attachment")
        self.attachments.append(b"")  # the attachments are counted, but not kept
        if len(self.attachments) < self.attachment_count:
            return False
        error = BadRequestError("binary payloads are not part of the protocol")
        self.data = _refused(self.data, error) if self.packet_type == BINARY_EVENT else [error.payload()]
        return True


def _refused(data: Any, error: BadRequestError) -> list[Any]:
    name = data[0] if isinstance(data, list) and data else None
    return [name, Unacceptable(error)]
