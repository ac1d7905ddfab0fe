"""The server's end of one Engine.IO session. Pure: no sockets, and no clock but the one handed in.

A session polls, or it has a websocket. A session that polls may move to a websocket (`ServerUpgrade`); until it has
moved, polls and POSTs go on. What the shell does:

- It hands every packet that comes to `receive`, and looks at `ended` afterwards.
- When there is something to send, `send` says whether the shell must write it to the websocket now. Otherwise it
  waits: `frames` has it as soon as the websocket takes more (`writable`), and `answer` as soon as there is a poll.
- It calls `tick` when the time is `wake_at`.
"""

import math
from collections.abc import Callable, Iterator
from enum import Enum

from a2c_smcp.engine.bounds import EngineBounds
from a2c_smcp.engine.errors import IllegalMoveError, PeerError, TooLargeError
from a2c_smcp.engine.events import (
    CLIENT_DISCONNECT,
    FELL_BEHIND,
    PING_TIMEOUT,
    SERVER_DISCONNECT,
    TOO_LARGE,
    TRANSPORT_ERROR,
    BadPacket,
    SessionEnded,
)
from a2c_smcp.engine.outgoing import Control, Mention, Parcel, QueueOutcome, SendQueue, packet_of, size_of_parcel
from a2c_smcp.engine.packets import (
    CLOSE,
    MESSAGE,
    NOOP,
    PING,
    PONG,
    PROBE,
    PROBED,
    UPGRADE,
    Greeting,
    split_payload,
)

__all__ = ["Carrier", "ServerSession", "ServerUpgrade"]


class Carrier(Enum):
    """How packets travel."""

    POLLING = "polling"
    WEBSOCKET = "websocket"


class ServerSession:
    """One session. It is open from the start; send its `greeting` first."""

    __slots__ = (
        "_bounds",
        "_clock",
        "_ping_at",
        "_pinged",
        "_polled",
        "_pong_by",
        "_ponged",
        "_released",
        "bad_packets",
        "ended",
        "join_by",
        "limit",
        "probing",
        "queue",
        "received_bytes",
        "sid",
        "way",
        "writable",
    )

    def __init__(self, sid: str, bounds: EngineBounds, clock: Callable[[], float], way: Carrier) -> None:
        self.sid = sid
        self.way = way
        self.ended: SessionEnded | None = None
        """How it ended, once it has."""
        self.queue = SendQueue(bounds.queued_bytes)
        self.writable = True
        """Set this to whether the websocket takes more."""
        first = bounds.max_message if bounds.first_messages is None else bounds.first_messages
        self.limit = min(first, bounds.max_message)
        """Bytes that a message, or a POST, may have now."""
        self.received_bytes = 0
        """Characters of the messages that came."""
        self.bad_packets = 0
        self.probing = 0
        """Websockets by which the client is about to move."""
        self._bounds = bounds
        self._clock = clock
        self._polled = False
        self._released = False
        self._pinged = self._ponged = 0
        self._ping_at = clock() + bounds.ping_interval
        self._pong_by = math.inf
        self.join_by = clock() + bounds.connect_timeout
        """When it is looked next whether the client is in a namespace."""

    @property
    def greeting(self) -> str:
        bounds, polls = self._bounds, self.way is Carrier.POLLING
        upgrades = ("websocket",) if polls else ()
        return Greeting(self.sid, upgrades, bounds.ping_interval, bounds.ping_timeout, bounds.max_message).encode()

    def admit(self) -> None:
        """The client has shown a key: from now on its messages may be large."""
        self.limit = self._bounds.max_message

    # --- from the client

    def receive(self, packet: str) -> str | BadPacket | SessionEnded | None:
        """Take a packet that came by the websocket or in a POST. Returns the packet of a message, with its digit."""
        if self.ended is not None:
            return None
        if packet[:1] == MESSAGE:
            size = len(packet)
            if size > self.limit:
                return self.end(TOO_LARGE, f"a message has more than {self.limit} bytes")
            self.received_bytes += size - 1
            return packet
        if len(packet) > self._bounds.other_characters:
            return self.bad(f"a packet without a message has more than {self._bounds.other_characters} characters")
        if packet[:1] == PONG:
            self._ponged = self._pinged
            self._pong_by = math.inf
            self._ping_at = self._clock() + self._bounds.ping_interval
        elif packet[:1] == CLOSE:
            return self.end(CLIENT_DISCONNECT)
        elif packet[:1] not in (PING, UPGRADE, NOOP):
            # A client must not send these at this point, but they do no harm: a late probe, for instance.
            return self.bad("not an Engine.IO packet")
        return None

    def receive_binary(self) -> BadPacket | SessionEnded | None:
        """A binary message came. There is nothing in our protocol that would need one."""
        return None if self.ended is not None else self.bad("a binary message")

    def split(self, body: bytes | bytearray) -> list[str]:
        """The packets of a POST, each to be handed to `receive`. Raises `PeerError` for a body that has none: count it
        with `bad`.
        """
        self.check_post(len(body))
        return split_payload(body, self._bounds.post_packets)

    def check_post(self, size: int = 0) -> None:
        """Raise `PeerError` if there may be no POST of this size now. One that is too large ends the session."""
        self._check_polls()
        if size > self.limit:
            self.end(TOO_LARGE, f"a message has more than {self.limit} bytes")
            raise TooLargeError(self.limit)

    def bad(self, why: str) -> BadPacket | SessionEnded:
        """Count a packet that does not decode."""
        self.bad_packets += 1
        if self.bad_packets >= self._bounds.bad_packets:
            return self.end(TRANSPORT_ERROR, f"packet {self.bad_packets} that does not decode: {why}")
        return BadPacket(why, self.bad_packets)

    # --- polls

    def poll(self) -> list[str] | None:
        """A poll came; `answer` has its answer, now or later. Returns the answer to the poll before it, if that one
        still waits. Raises `PeerError` if there may be no poll.
        """
        self._check_polls()
        if self._polled and not self._bounds.forgives_polls:
            self._polled = False
            self.end(TRANSPORT_ERROR, "two polls at a time")
            return [CLOSE]
        before, self._polled = self._polled, True
        return [NOOP] if before else None

    def answer(self) -> list[str] | None:
        """The packets with which to answer the poll that waits; `None` if it goes on waiting, or if there is none."""
        if not self._polled:
            return None
        packets: list[str] = []
        while self.way is Carrier.POLLING and self.queue.parcels and len(packets) < self._bounds.poll_packets:
            packets.append(packet_of(self.queue.pop()))
        if not packets and (self.ended is not None or self.way is Carrier.WEBSOCKET or self.probing or self._released):
            packets.append(NOOP)
        if packets:
            self._polled = False
        return packets or None

    def lose_poll(self) -> None:
        """The client no longer waits for the answer to its poll."""
        if self._polled:
            self._polled = False
            if not self._bounds.forgives_polls and self.ended is None:
                self.end(TRANSPORT_ERROR, "a poll was given up")

    def release(self) -> None:
        """From now on no poll waits, so that the web server can stop without cutting one off."""
        self._released = True

    def _check_polls(self) -> None:
        if self.ended is not None:
            raise PeerError("this session has ended")
        if self.way is Carrier.WEBSOCKET:
            raise PeerError("this session has a websocket")

    # --- to the client

    @property
    def is_direct(self) -> bool:
        """Whether what is sent now goes to the websocket at once."""
        return self.writable and self.way is Carrier.WEBSOCKET and self.queue.parcels is None

    def send(self, parcel: Parcel) -> bool:
        """Send a parcel. Returns whether the shell must write it to the websocket now; otherwise it waits. A reader for
        which too much waits then has fallen behind: the session ends.
        """
        self._check_open()
        if self.is_direct:
            self.queue.passes_by(parcel)
            return True
        if self.queue.add(parcel) is QueueOutcome.BEHIND:
            self.end(FELL_BEHIND, f"over {self.queue.most_bytes} bytes wait for it")
        return False

    def offer(self, parcel: Parcel) -> bool | None:
        """Like `send`, but only if it fits. `None` if it does not; nothing has changed then."""
        self._check_open()
        if self.is_direct and self.queue.fits(size_of_parcel(parcel)):
            self.queue.passes_by(parcel)
            return True
        return False if self.queue.add_if_it_fits(parcel) else None

    def mention(self, mention: Mention) -> bool:
        """Like `send`, for what may be replaced while it waits, or left out."""
        self._check_open()
        if self.is_direct:
            self.queue.passes_by(mention)
            return True
        self.queue.add_mention(mention)
        return False

    def frames(self) -> Iterator[Parcel]:
        """What to write to the websocket, one by one, for as long as it takes more."""
        while self.writable and self.way is Carrier.WEBSOCKET and self.queue.parcels:
            yield self.queue.pop()

    def _check_open(self) -> None:
        if self.ended is not None:
            raise IllegalMoveError(f"this session has ended: {self.ended.reason}")

    # --- time

    @property
    def wake_at(self) -> float:
        """When `tick` is due."""
        return min(self._ping_at, self._pong_by, self.join_by)

    def tick(self, *, is_in: bool) -> SessionEnded | None:
        """Time has passed: queues a ping, or ends the session of a peer that has not answered one, or that has been in
        no namespace for too long. `is_in` says whether it is in one now.
        """
        now = self._clock()
        if self.ended is not None:
            return None
        if now >= self._pong_by:
            return self.end(PING_TIMEOUT)
        if now >= self.join_by:
            if not is_in:
                return self.end(SERVER_DISCONNECT, "it has joined no namespace")
            self.join_by = now + self._bounds.connect_timeout
        if now >= self._ping_at:
            self.ask_for_a_sign()
        return None

    def ask_for_a_sign(self) -> None:
        """Queue a ping now."""
        self._check_open()
        self._pinged += 1
        self._ping_at = math.inf
        self._pong_by = self._clock() + self._bounds.ping_timeout
        self.queue.add(Control(PING))

    @property
    def has_given_a_sign(self) -> bool:
        """Whether the client has answered the last ping."""
        return self._ponged == self._pinged

    # --- the end

    def end(self, reason: str, why: str = "") -> SessionEnded:
        """End the session, because of its peer or because this end wants it. The first reason stays."""
        if self.ended is None:
            self.ended = SessionEnded(reason, why)
            self._ping_at = self._pong_by = self.join_by = math.inf
            self.queue.clear()
        return self.ended


class ServerUpgrade:
    """A websocket by which a client that polls is about to move. The session goes on whatever becomes of it."""

    __slots__ = ("_is_probed", "_session", "moved", "over")

    def __init__(self, session: ServerSession) -> None:
        """If the session has a websocket already, this one is over: close it. Raises `PeerError` if it has ended."""
        if session.ended is not None:
            raise PeerError("this session has ended")
        self._session = session
        self._is_probed = False
        self.moved = False
        """Whether the session has moved: this websocket is its websocket from now on."""
        self.over = session.way is Carrier.WEBSOCKET
        """Whether nothing comes of it: close this websocket."""

    def receive(self, packet: str) -> str | None:
        """Take a packet. Returns what to write back."""
        if self.moved or self.over:
            raise IllegalMoveError("this move is over")
        session = self._session
        if session.ended is not None or session.way is Carrier.WEBSOCKET:
            self.give_up()
        elif not self._is_probed and packet == PROBE:
            self._is_probed = True
            session.probing += 1  # polls return at once from now on, because the client waits for that
            return PROBED
        elif self._is_probed and packet[:1] == UPGRADE:
            session.probing -= 1
            session.way = Carrier.WEBSOCKET
            self.moved = True
        else:
            self.give_up()
        return None

    def give_up(self) -> None:
        """The websocket has ended, or it took too long."""
        if self._is_probed and not self.moved and not self.over:
            self._session.probing -= 1
        self.over = True
