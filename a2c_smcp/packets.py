"""python-socketio's packet for JSON only. The text of packets is in `packet_text`, which needs no library."""

from typing import Any, Final

from a2c_smcp.dialects.handshake import marked_as_ours
from a2c_smcp.errors import BadRequestError
from a2c_smcp.packet_text import ACK, EVENT, name_of, read_ack, read_event, read_head, refused_event
from a2c_smcp.utils.socketio_internals import BINARY_ACK, BINARY_EVENT, CONNECT, Packet
from a2c_smcp.wire import codec

__all__ = ["SMCPPacket", "ServerPacket"]


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
        self.data = refused_event(self.data, error) if self.packet_type == BINARY_EVENT else [error.payload()]
        return True


#: The library's own events. For one with such a name that a client sends, another name stands.
_RESERVED: Final = ("connect", "disconnect")


class ServerPacket(SMCPPacket):
    """The packets of our servers. The one that accepts a client says whose server it is."""

    def decode(self, encoded_packet: str) -> int:
        attachments = super().decode(encoded_packet)
        if self.packet_type == EVENT and self.data[0] in _RESERVED:
            self.data[0] = f"event {self.data[0]}"
        return attachments

    def encode(self) -> Any:
        if self.packet_type == CONNECT and isinstance(self.data, dict):
            self.data = marked_as_ours(self.data)
        return super().encode()
