"""The client's end of one Engine.IO session. Pure: no sockets, and no clock but the one handed in.

What a shell on it does, by websocket only (`ClientSession(clock, Carrier.WEBSOCKET, …)`):

1. Open the websocket. Hand every text to `receive`; the first one gives `Greeted`.
2. Write what `frames` gives, after every `receive`, `tick` and `send`.

By polling (`Carrier.POLLING`):

1. GET. Hand the body to `receive_payload`; the first one begins with the greeting.
2. As long as `may_poll` is true, GET with the `sid` of the greeting, one at a time, and hand the body over. Call
   `polling` before each, and `receive_payload` or `lose` after it.
3. As long as `body` gives a text, POST it, one at a time, and call `posted` after it.

To move from polling to a websocket, if the greeting offers one: open it with the `sid`, write `probe()`, and hand every
text of it to `receive_on_probe`. Go on polling; `may_poll` and `body` stop by themselves when the server has answered
the probe. When it says so, write `upgrade()` to the websocket, which is the session's from then on. If the websocket
fails before, call `give_up_probe`, and the session goes on polling.

Call `tick` when the time is `wake_at`, and look at `ended` after everything.
"""

import math
from collections.abc import Callable, Iterator
from enum import Enum, auto

from a2c_smcp.engine.bounds import EngineBounds
from a2c_smcp.engine.errors import IllegalMoveError, PeerError
from a2c_smcp.engine.events import (
    PING_TIMEOUT,
    SERVER_DISCONNECT,
    TOO_LARGE,
    TRANSPORT_CLOSE,
    TRANSPORT_ERROR,
    BadPacket,
    Greeted,
    SessionEnded,
)
from a2c_smcp.engine.outgoing import Control, Parcel, QueueOutcome, SendQueue, packet_of
from a2c_smcp.engine.packets import (
    CLOSE,
    MESSAGE,
    NOOP,
    OPEN,
    PING,
    PONG,
    PROBE,
    PROBED,
    UPGRADE,
    Greeting,
    join_packets,
    split_payload,
)
from a2c_smcp.engine.server_session import Carrier

__all__ = ["ClientSession"]


class Move(Enum):
    """How far the client has come on its way from polling to a websocket."""

    NONE = auto()
    PROBING = auto()
    PAUSING = auto()
    """The server has answered the probe. The poll and the POST that are under way must end first."""


class ClientSession:
    """One session, from before its greeting to its end."""

    __slots__ = (
        "_bounds",
        "_clock",
        "_move",
        "_ping_by",
        "_polling",
        "_posting",
        "bad_packets",
        "ended",
        "greeting",
        "queue",
        "way",
        "writable",
    )

    def __init__(self, clock: Callable[[], float], way: Carrier, bounds: EngineBounds) -> None:
        """Of the bounds, those on messages, on the queue and on bad packets count. Until the server has greeted, its
        greeting has `connect_timeout` seconds.
        """
        self.way = way
        self.greeting: Greeting | None = None
        self.ended: SessionEnded | None = None
        self.queue = SendQueue(bounds.queued_bytes)
        self.writable = True
        """Set this to whether the websocket takes more."""
        self.bad_packets = 0
        self._bounds = bounds
        self._clock = clock
        self._ping_by = clock() + bounds.connect_timeout
        self._move = Move.NONE
        self._polling = False
        self._posting = False

    @property
    def max_message(self) -> int:
        """Bytes of the largest message that may be sent: the server would end the session over a larger one."""
        most = self.greeting.max_payload if self.greeting is not None else None
        return self._bounds.max_message if most is None else min(most, self._bounds.max_message)

    # --- from the server

    def receive(self, packet: str) -> str | BadPacket | SessionEnded | Greeted | None:
        """Take a packet of the session's websocket, or of an answer to a poll. Returns a message with its digit."""
        if self.ended is not None:
            return None
        if self.greeting is None:
            return self._greet(packet)
        if packet[:1] == MESSAGE:
            if len(packet) > self._bounds.max_message:
                return self.end(TOO_LARGE, f"a message has more than {self._bounds.max_message} bytes")
            return packet
        kind = packet[:1]
        if kind == PING:
            self._ping_by = self._clock() + self.greeting.ping_interval + self.greeting.ping_timeout
            self.queue.add(Control(PONG + packet[1 : self._bounds.other_characters]))
        elif kind == CLOSE:
            return self.end(SERVER_DISCONNECT)
        elif kind not in (NOOP, PONG):
            return self.bad("not an Engine.IO packet")
        return None

    def receive_payload(self, body: bytes) -> list[str | BadPacket | SessionEnded | Greeted]:
        """Take the answer to a poll: what it says, in order."""
        if self.way is not Carrier.POLLING:
            raise IllegalMoveError("this session does not poll")
        self._polling = False
        # A server may return any number of packets; its bytes are bounded by the shell.
        try:
            packets = split_payload(body, len(body) + 1)
        except PeerError as error:
            return [self.bad(str(error))]
        if not packets and self.greeting is None:
            packets = [""]
        found = [self.receive(packet) for packet in packets]
        return [each for each in found if each is not None]

    def bad(self, why: str) -> BadPacket | SessionEnded:
        """Count a packet that does not decode."""
        self.bad_packets += 1
        if self.bad_packets >= self._bounds.bad_packets:
            return self.end(TRANSPORT_ERROR, f"packet {self.bad_packets} that does not decode: {why}")
        return BadPacket(why, self.bad_packets)

    def _greet(self, packet: str) -> Greeted | SessionEnded:
        try:
            if packet[:1] != OPEN:
                raise PeerError("it does not greet")
            self.greeting = greeting = Greeting.read(packet)
        except PeerError as error:
            return self.end(TRANSPORT_ERROR, str(error))
        self._ping_by = self._clock() + greeting.ping_interval + greeting.ping_timeout
        return Greeted(greeting)

    # --- to the server

    @property
    def is_direct(self) -> bool:
        """Whether what is sent now goes to the websocket at once."""
        return (
            self.writable and self.way is Carrier.WEBSOCKET and self.greeting is not None and self.queue.parcels is None
        )

    def send(self, parcel: Parcel) -> bool:
        """Send a parcel. Returns whether the shell must write it to the websocket now; otherwise it waits."""
        if self.ended is not None:
            raise IllegalMoveError(f"this session has ended: {self.ended.reason}")
        if self.is_direct:
            self.queue.passes_by(parcel)
            return True
        if self.queue.add(parcel) is QueueOutcome.BEHIND:
            self.end(TRANSPORT_ERROR, f"over {self.queue.most_bytes} bytes wait for the server")
        return False

    def frames(self) -> Iterator[Parcel]:
        """What to write to the websocket, one by one, for as long as it takes more."""
        while (
            self.writable
            and self.way is Carrier.WEBSOCKET
            and self.greeting is not None
            and self.ended is None
            and self.queue.parcels
        ):
            yield self.queue.pop()

    # --- polling

    @property
    def may_poll(self) -> bool:
        """Whether to send a poll now."""
        return (
            self.way is Carrier.POLLING
            and self.ended is None
            and self.greeting is not None
            and not self._polling
            and self._move is not Move.PAUSING
        )

    def polling(self) -> None:
        """A poll is sent."""
        if not self.may_poll:
            raise IllegalMoveError("this is not the time to poll")
        self._polling = True

    def body(self) -> str | None:
        """The body of the next POST; `None` if there is none to send now. Only the client's own `posted` allows the
        next one. It has no more packets and bytes than servers take.
        """
        if (
            self.way is not Carrier.POLLING
            or self.ended is not None
            or self.greeting is None
            or self._posting
            or self._move is Move.PAUSING
            or not self.queue.parcels
        ):
            return None
        room, packets = self.max_message, list[str]()
        while self.queue.parcels and len(packets) < self._bounds.poll_packets:
            packet = packet_of(self.queue.parcels[0])
            room -= (len(packet) if packet.isascii() else len(packet.encode())) + bool(packets)
            if packets and room < 0:
                break
            packets.append(packet)
            self.queue.pop()
        self._posting = True
        return join_packets(packets)

    def posted(self) -> None:
        """The server has taken the body."""
        if not self._posting:
            raise IllegalMoveError("no POST is under way")
        self._posting = False

    def lose(self, why: str = "") -> SessionEnded:
        """The websocket has ended, or a poll or a POST has failed: what it carried may be lost, so the session ends."""
        return self.end(TRANSPORT_CLOSE, why)

    # --- from polling to a websocket

    def probe(self) -> str:
        """What to write first to a new websocket."""
        if (
            self.way is not Carrier.POLLING
            or self._move is not Move.NONE
            or self.ended is not None
            or self.greeting is None
            or Carrier.WEBSOCKET.value not in self.greeting.upgrades
        ):
            raise IllegalMoveError("this is not the time to move to a websocket")
        self._move = Move.PROBING
        return PROBE

    def receive_on_probe(self, packet: str) -> None:
        """Take a packet of the new websocket. Raises `PeerError` if nothing comes of it: close it then."""
        if self._move is Move.NONE:
            raise IllegalMoveError("nothing was probed")
        if self._move is not Move.PROBING or packet != PROBED:
            self.give_up_probe()
            raise PeerError("not the answer to a probe")
        self._move = Move.PAUSING

    @property
    def may_upgrade(self) -> bool:
        """Whether nothing is under way by polling any more, so that `upgrade` is next."""
        return self._move is Move.PAUSING and not self._polling and not self._posting and self.ended is None

    def upgrade(self) -> str:
        """What to write to the new websocket, which is the session's from now on."""
        if not self.may_upgrade:
            raise IllegalMoveError("this is not the time to move to the websocket")
        self._move, self.way = Move.NONE, Carrier.WEBSOCKET
        return UPGRADE

    def give_up_probe(self) -> None:
        """The new websocket has ended, or took too long: go on polling."""
        self._move = Move.NONE

    # --- time and the end

    @property
    def wake_at(self) -> float:
        """When `tick` is due."""
        return self._ping_by

    def tick(self) -> SessionEnded | None:
        """Time has passed: ends the session of a server that sends no pings."""
        return self.end(PING_TIMEOUT) if self.ended is None and self._clock() >= self._ping_by else None

    def close(self) -> str:
        """End the session. Returns the packet to send as the last one, by the websocket or in a POST."""
        if self.ended is not None:
            raise IllegalMoveError("this session has ended")
        self.end(TRANSPORT_CLOSE)
        return CLOSE

    def end(self, reason: str, why: str = "") -> SessionEnded:
        """End the session. The first reason stays."""
        if self.ended is None:
            self.ended = SessionEnded(reason, why)
            self._ping_by = math.inf
            self.queue.clear()
        return self.ended
