"""Connects the decisions of a server with the engine: a line for each client that knocks at the server's namespace.

Also what a client may do before it has shown a key: connections are counted by address, and messages are small.
"""

import logging
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from a2c_smcp.dialects.handshake import marked_as_ours
from a2c_smcp.engine.bounds import EngineBounds
from a2c_smcp.engine.connection import EngineApplication, EngineConnection, TurnedAwayError
from a2c_smcp.engine.errors import PeerError
from a2c_smcp.engine.events import FELL_BEHIND, UNREADABLE, AckCame, BadPacket, Said, SessionEnded
from a2c_smcp.errors import BadRequestError
from a2c_smcp.server.admission import Admission, Peer, peer_of
from a2c_smcp.server.limits import Limits, Place
from a2c_smcp.server.port import Decisions, Mention, Newcomer, Notice, NotLetInError
from a2c_smcp.utils.text import in_log
from a2c_smcp.wire import codec

__all__ = ["EngineLine", "EngineLines", "engine_bounds"]

logger = logging.getLogger(__name__)

_TOO_MANY: Final = "too many connections from this address"
_NO_BINARY: Final = codec.dumps([BadRequestError("binary payloads are not part of the protocol").payload()])


def engine_bounds(limits: Limits, ping_interval: float, ping_timeout: float) -> EngineBounds:
    """The engine's limits for a server with these."""
    return EngineBounds(
        max_message=limits.max_message,
        first_messages=limits.first_messages,
        queued_bytes=limits.queued_bytes,
        ping_interval=ping_interval,
        ping_timeout=ping_timeout,
        connect_timeout=limits.connect_timeout,
    )


class _Guest:
    """What is kept of a connection: whose place it has, and its line."""

    __slots__ = ("address", "carriers", "giver", "line", "place")

    def __init__(self, address: str, place: Place, giver: Peer | None) -> None:
        self.address = address
        self.place = place
        self.giver = giver
        """The network connection whose place this is, if that may go on without this session."""
        self.carriers = 0
        self.line: EngineLine | None = None


class EngineLine:
    """A `ClientLine` over a connection of the engine."""

    __slots__ = ("_connection", "_guest", "_namespace", "_open", "address", "connection", "sid")

    def __init__(self, connection: EngineConnection, guest: _Guest, namespace: str) -> None:
        self._connection = connection
        self._guest = guest
        self._namespace = namespace
        self._open = True
        self.sid = secrets.token_urlsafe(15)
        self.address = guest.address
        self.connection = connection.sid

    @property
    def is_open(self) -> bool:
        return self._open and self._connection.session.ended is None

    @property
    def queued_bytes(self) -> int:
        return self._connection.session.queue.queued_bytes

    @property
    def sent_bytes(self) -> int:
        return self._connection.session.queue.sent_bytes

    @property
    def received_bytes(self) -> int:
        return self._connection.session.received_bytes

    @property
    def is_written_out(self) -> bool:
        return not self.is_open or self._connection.is_written_out

    @property
    def has_given_a_sign(self) -> bool:
        return self._connection.session.has_given_a_sign

    def take_place(self) -> None:
        self._guest.place.join()

    def admit(self) -> None:
        self._connection.admit()
        if self._connection.carrier is not None and (peer := peer_of(self._connection.scope)) is not None:
            peer.welcome()

    def bound(self, queued_bytes: int) -> None:
        self._connection.session.queue.most_bytes = queued_bytes

    def send(self, text: str) -> None:
        if self._open:
            self._connection.send(text)

    def notify(self, notice: Notice) -> None:
        if self._open:
            self._connection.send(notice)

    def offer(self, text: str) -> bool:
        return self._open and self._connection.offer(text)

    def mention(self, mention: Mention) -> None:
        if self._open:
            self._connection.mention(mention)

    def ask(self, ack_id: int, text: str, on_ack: Callable[[str], None]) -> bool:
        if not self.is_open:
            return False
        self._connection.spaces.expect(self._namespace, ack_id, on_ack)
        if self._connection.offer(text):
            return True
        self.forget(ack_id)
        return False

    def forget(self, ack_id: int) -> None:
        self._connection.spaces.forget(self._namespace, ack_id)

    def ask_for_a_sign(self) -> None:
        self._connection.ask_for_a_sign()

    def close(self, reason: str) -> None:
        if self._open:
            self._connection.close(reason)

    def end(self) -> None:
        """The client has left the namespace."""
        self._open = False


class EngineLines(EngineApplication):
    """The engine's side of a server: what it tells becomes calls of `decisions`."""

    def __init__(self, decisions: Decisions, admission: Admission, namespace: str) -> None:
        self._decisions = decisions
        self._admission = admission
        self._namespace = namespace
        self.namespaces = (namespace,)

    # --- connections

    def opened(self, connection: EngineConnection) -> None:
        limits, scope = self._admission.limits, connection.scope
        address = str(scope["client"][0]) if scope.get("client") else "unknown"
        peer, giver = peer_of(scope), None
        if peer is not None and peer.place is not None and peer.place.is_open:
            place: Place | None = peer.place.pass_on()
            # A websocket ends with its session. A connection that is polled over can go on, for other requests.
            giver = peer if scope["type"] == "http" else None
        else:
            place = self._admission.addresses.knock(address)
        if place is None:
            self._admission.address_log.warn(address, "refused a connection from %s: too many of them", address)
            raise PeerError(_TOO_MANY)
        connection.user = _Guest(address, place, giver)
        connection.session.queue.most_bytes = limits.queued_bytes
        if peer is None or not peer.known:  # a client with a key may have come over this network connection before
            connection.session.limit = min(limits.max_message, limits.first_messages)
        else:
            connection.session.admit()

    @contextmanager
    def carrying(self, connection: EngineConnection, scope: Mapping[str, Any]) -> Iterator[None]:
        """Do not count the connections of this session's polls, because the session is counted. Before a key was
        shown, this holds for two connections only: one for a GET and one for a POST.
        """
        peer, guest = peer_of(scope), connection.user
        if peer is None:
            yield
            return
        self._welcome(peer, connection)
        if connection.admitted or peer.place is None or guest.carriers >= 2:
            yield
            return
        guest.carriers += 1
        try:
            with peer.place.lent():
                yield
        finally:
            guest.carriers -= 1
        self._welcome(peer, connection)

    def moved(self, connection: EngineConnection) -> None:
        if (peer := peer_of(connection.scope)) is not None:
            peer.leave()  # its connection ends with this session, which is counted
            self._welcome(peer, connection)

    @staticmethod
    def _welcome(peer: Peer, connection: EngineConnection) -> None:
        if connection.admitted:
            peer.welcome()

    def closed(self, connection: EngineConnection) -> None:
        guest: _Guest = connection.user
        if guest.giver is not None:
            guest.giver.take_back(guest.place)
        else:
            guest.place.leave()

    def noticed(self, connection: EngineConnection, event: BadPacket | SessionEnded) -> None:
        log, address = self._admission.address_log, connection.user.address
        match event:
            case BadPacket(why=why, number=number):
                what = "ignored a frame from %s, number %d that does not decode: %s"
                log.warn(address, what, address, number, in_log(why))
            case SessionEnded(reason=reason, why=why) if reason == FELL_BEHIND:
                logger.warning("disconnecting a reader that fell behind: %s", why)
            case SessionEnded(why=why) if why == UNREADABLE:
                log.warn(address, "%s has closed its connection: %s", address, why)
            case SessionEnded(why=why):
                log.warn(address, "closing a connection from %s: %s", address, in_log(why))

    # --- clients

    async def knock(
        self, connection: EngineConnection, namespace: str, data: Mapping[str, Any] | None
    ) -> Mapping[str, Any]:
        line = EngineLine(connection, connection.user, namespace)
        try:
            await self._decisions.connect(line, newcomer_in(connection), data)
        except NotLetInError as error:
            raise TurnedAwayError(error.data) from None
        connection.user.line = line
        return marked_as_ours({"sid": line.sid})

    def said(self, connection: EngineConnection, event: Said) -> None:
        line = connection.user.line
        take = self._decisions.binary_event if event.binary else self._decisions.event
        if (reply := take(line, event.ack_id, event.body)) is not None:
            connection.send(reply)

    def answered(self, connection: EngineConnection, event: AckCame) -> None:
        event.waiter(_NO_BINARY if event.binary else event.body)

    def left(self, connection: EngineConnection, namespace: str, reason: str) -> None:
        guest: _Guest = connection.user
        line, guest.line = guest.line, None
        if line is not None:
            line.end()
            self._decisions.disconnected(line, reason)


def newcomer_in(connection: EngineConnection) -> Newcomer:
    """What is known of a client, from its first request."""
    scope = connection.scope
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    return Newcomer(connection.user.address, headers, scope["query_string"].decode("latin-1"))
