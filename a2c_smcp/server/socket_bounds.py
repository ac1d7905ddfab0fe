"""The limits of every Engine.IO connection, of either server: bytes that wait, bytes of a message, frames that do not
decode, the time to join, and the number of connections of an address.
"""

import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NoReturn, TypeAlias

from a2c_smcp.errors import TooManyRequestsError
from a2c_smcp.server.admission import Admission, Peer, peer_of
from a2c_smcp.server.limits import Place
from a2c_smcp.server.mounted import remote_address
from a2c_smcp.server.outbox import Outbox, ReportPacket
from a2c_smcp.utils.engineio_internals import MESSAGE, ContentTooLongError, EngineServer, Packet, scope_of
from a2c_smcp.utils.socketio_internals import SocketIOServer, handled_namespaces, namespaces_of, session_of
from a2c_smcp.utils.text import in_log

__all__ = [
    "SOCKETS",
    "TOO_MANY",
    "Bounded",
    "ServerDoor",
    "SocketBounds",
    "Take",
    "check_frame",
    "packet_of",
]

logger = logging.getLogger(__name__)

#: Separates the packets of a POST.
_SEPARATOR: Final = b"\x1e"
_MESSAGE: Final = str(MESSAGE)
#: The first characters of Socket.IO packets.
_SOCKET_IO: Final = frozenset("0123456")
#: The first characters of the other Engine.IO packets; `b` is binary data of a client that polls.
_ELSE: Final = frozenset("012356")
_BASE64: Final = "b"
TOO_MANY: Final = "too many connections from this address"

#: Takes the text of a Socket.IO packet from a socket; returns whether it was taken.
Take: TypeAlias = Callable[[Any, str], bool]


@dataclass(frozen=True, slots=True)
class SocketBounds:
    """What one Engine.IO connection may send, and how it is written to."""

    poll_packets: int = 16
    """Packets that one long poll returns. Older clients drop the connection if there are more."""
    post_packets: int = 4096
    """Packets that one POST may have. A polling client writes everything that it has in one POST."""
    bad_frames: int = 10
    """Frames that do not decode, after which a connection is closed."""
    other_characters: int = 100
    """Characters of an Engine.IO packet that is not a message. `2probe` is the longest that a client needs."""
    flush_seconds: float = 1.0
    """How long a closing connection may take to flush before it is cut."""


SOCKETS: Final = SocketBounds()


def check_frame(data: str | bytes) -> None:
    """Raise `ValueError` unless this is an Engine.IO packet that may be decoded.

    Engine.IO decodes everything in it that looks like JSON, of any size. What begins with a digit, as Socket.IO packets
    do, stays text.
    """
    if isinstance(data, bytes) or data.startswith(_BASE64):
        return
    if data.startswith(_MESSAGE):
        if data[1:2] not in _SOCKET_IO:
            raise ValueError("not a Socket.IO packet")
    elif data[:1] not in _ELSE:
        raise ValueError("not an Engine.IO packet")
    elif len(data) > SOCKETS.other_characters:
        raise ValueError(f"an Engine.IO packet without a message has more than {SOCKETS.other_characters} characters")


def packet_of(data: str | bytes) -> Packet:
    """Decode an Engine.IO packet, or raise `ValueError`."""
    check_frame(data)
    return Packet(encoded_packet=data)


@dataclass(frozen=True, slots=True)
class ServerDoor:
    """What all connections of one server share."""

    server: SocketIOServer
    namespace: str
    admission: Admission
    take: Take
    """Is offered every message first, in the order of arrival."""

    def has_let_in(self, eio_sid: str) -> bool:
        """Whether a connection is in any namespace."""
        return any(namespaces_of(self.server, eio_sid))

    def has_let_in_elsewhere(self, eio_sid: str) -> bool:
        """Whether another namespace of this server, an application's own, has let the connection in.

        A namespace without handlers does not count: python-socketio accepts every client there, by default in `/`.
        """
        others = handled_namespaces(self.server) - {self.namespace}
        return any(session_of(self.server, each, eio_sid) for each in others)


class Bounded:
    """Counts bytes that wait for the reader, frames that do not decode, and the time until a client is admitted."""

    sid: str
    server: EngineServer
    closed: bool
    door: ServerDoor
    address: str = "unknown"
    place: Place | None = None
    giver: Peer | None = None
    """The connection whose place this is, if that connection may go on without this session."""
    admitted: bool = False
    """Whether a client has shown a key over this connection."""
    bad_frames: int = 0
    received_bytes: int = 0
    """Characters of the messages that came."""
    join_by: float = math.inf
    outbox: Outbox
    closing: bool
    queue: Any

    def open(self, door: ServerDoor, environ: Any) -> bool:
        """Obey the rules of admission from now on; `False` if there are too many connections from this address."""
        limits, log = door.admission.limits, door.admission.address_log
        self.door = door
        self.outbox = Outbox(limits.queued_bytes)
        self.address = remote_address(environ)
        self.join_by = time.monotonic() + limits.connect_timeout
        scope = scope_of(environ)
        peer = peer_of(scope)
        if peer is not None and peer.place is not None and peer.place.is_open:
            self.place = peer.place.pass_on()
            # A websocket ends with its session. A connection that is polled over can go on, for other requests.
            self.giver = peer if scope and scope["type"] == "http" else None
        else:
            self.place = self.admission.addresses.knock(self.address)
        if self.place is None:
            log.warn(self.address, "refused a connection from %s: too many of them", self.address)
        return self.place is not None

    @property
    def admission(self) -> Admission:
        return self.door.admission

    @property
    def limit(self) -> int:
        """Bytes that a message may have now."""
        most = self.server.max_http_buffer_size
        known = self.admitted or self.door.has_let_in_elsewhere(self.sid)
        return most if known else min(most, self.admission.limits.first_messages)

    @property
    def is_hopeless(self) -> bool:
        """Whether to close the connection, because too many frames did not decode."""
        return self.bad_frames >= SOCKETS.bad_frames

    def take_place(self) -> None:
        """Count as a connection that takes part, or raise `TooManyRequestsError`."""
        if self.place is None:
            raise TooManyRequestsError(TOO_MANY)
        self.place.join()

    def note_bad_frame(self, error: Exception) -> None:
        """Count and log a frame that does not decode. The caller looks at `is_hopeless` next."""
        self.bad_frames += 1
        what = "closing a connection from %s: frame %d that does not decode: %s"
        self.admission.address_log.warn(
            self.address,
            what if self.is_hopeless else "ignored a frame from %s, number %d that does not decode: %s",
            self.address,
            self.bad_frames,
            in_log(f"{type(error).__name__}: {error}"),
        )

    def _warn_of_size(self) -> None:
        self.admission.address_log.warn(
            self.address, "closing a connection from %s: a message has more than %d bytes", self.address, self.limit
        )

    def _leave_place(self) -> None:
        if self.place is not None and self.giver is not None:
            self.giver.take_back(self.place)
        elif self.place is not None:
            self.place.leave()

    def _forget(self) -> None:
        """Take a closed connection out of Engine.IO, which would log a traceback if a POST came for it."""
        self.server.sockets.pop(self.sid, None)

    def _declared_length(self, environ: Any) -> int:
        """The `Content-Length` of a POST that is to be read; 0 if it has none."""
        declared = environ.get("CONTENT_LENGTH") or "0"
        length = int(declared) if declared.isdecimal() and len(declared) < 19 else math.inf
        if length > self.limit:
            self._refuse_post()
        return int(length)

    def _refuse_post(self) -> NoReturn:
        self._warn_of_size()
        raise ContentTooLongError

    def _encoded_packets_of(self, body: bytes | bytearray) -> list[str]:
        """The packets of a POST, not decoded yet.

        Engine.IO's `Payload` decodes all of them in one go. It takes what begins with `d=` for a form, and needs half a
        minute to parse a large one.
        """
        if body.count(_SEPARATOR) >= SOCKETS.post_packets:
            self.note_bad_frame(ValueError(f"more than {SOCKETS.post_packets} packets in one POST"))
            return []
        try:
            return str(body, "utf-8").split(_SEPARATOR.decode()) if body else []
        except UnicodeDecodeError as error:
            self.note_bad_frame(error)
            return []

    def _is_late(self) -> bool:
        """Whether this connection has had no session for too long. Such a connection would be counted nowhere."""
        now = time.monotonic()
        if now <= self.join_by or self.closed:
            return False
        if self.door.has_let_in(self.sid):
            # Look again later: a session counts as let in until it is refused or has left.
            self.join_by = now + self.admission.limits.connect_timeout
            return False
        self.admission.address_log.warn(
            self.address, "closing a connection from %s that has joined no namespace", self.address
        )
        return True

    def _offer(self, pkt: Any) -> bool:
        return pkt.packet_type == MESSAGE and isinstance(pkt.data, str) and self._offer_text(pkt.data)

    def _offer_text(self, text: str) -> bool:
        self.received_bytes += len(text)
        try:
            return self.door.take(self, text)
        except Exception as error:
            # Peers send anything. One message is lost, not the connection.
            self.note_bad_frame(error)
            return True

    def mention(self, pkt: ReportPacket) -> None:
        """Queue a report without waiting. A slow reader gets the latest report, or none, and stays connected."""
        if not self.closed and not self.closing and self.outbox.add_report(pkt):
            self.queue.put_nowait(pkt)

    def hand(self, pkt: Packet) -> bool:
        """Queue a packet without waiting, if it fits. Returns whether it does; the reader stays connected."""
        if self.closed or self.closing or not self.outbox.add_if_it_fits(pkt):
            return False
        self.queue.put_nowait(pkt)
        return True

    def _fell_behind(self) -> None:
        logger.warning("disconnecting a reader that fell behind: over %d bytes wait for it", self.outbox.most_bytes)
