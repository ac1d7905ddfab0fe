"""Socket.IO 5 on one connection: who is in which namespace, and which acks are waited for. Pure.

`ServerNamespaces` and `ClientNamespaces` stand on a session of Engine.IO, each on its own end. They take the packets
that `session.receive` gives, and make the texts that the session sends. Each belongs to one connection, so an ack is
answered on the connection that its event came by, or nowhere.
"""

from collections.abc import Callable, Container, Mapping
from enum import Enum, auto
from json import dumps
from typing import Any, Final

from a2c_smcp.engine.bounds import EngineBounds
from a2c_smcp.engine.errors import IllegalMoveError, PeerError
from a2c_smcp.engine.events import AckCame, EngineEvent, Knocked, LetIn, Said, SaidGoodbye, TurnedAway
from a2c_smcp.engine.messages import (
    ACK,
    BINARY_ACK,
    BINARY_EVENT,
    CONNECT,
    CONNECT_ERROR,
    DISCONNECT,
    EVENT,
    HEAD,
    encode_packet,
    read_data,
)

__all__ = ["ClientNamespaces", "Namespaces", "ServerNamespaces", "Stay"]

#: How a server refuses a namespace that it does not have.
_INVALID: Final = {"message": "Invalid namespace"}


class Standing(Enum):
    """How a client stands in a namespace."""

    ASKED = auto()
    IN = auto()


class Stay:
    """What one end keeps of a namespace: the acks that it waits for."""

    __slots__ = ("standing", "waiters")

    def __init__(self) -> None:
        self.standing = Standing.ASKED
        self.waiters: dict[int, Any] = {}


class Namespaces:
    """What both ends do in the same way."""

    __slots__ = ("_attachments", "_bounds", "_members", "_numbers")

    def __init__(self, bounds: EngineBounds, numbers: Callable[[], int]) -> None:
        """`numbers` gives the ids of acks. They must be unique among all connections of the process: a peer that acks
        on another connection than it was asked on must not answer a question of that one.
        """
        self._bounds = bounds
        self._numbers = numbers
        self._members: dict[str, Stay] = {}
        self._attachments = 0

    @property
    def members(self) -> list[str]:
        """The namespaces that the client is in."""
        return [name for name, each in self._members.items() if each.standing is Standing.IN]

    def is_in(self, namespace: str) -> bool:
        member = self._members.get(namespace)
        return member is not None and member.standing is Standing.IN

    # --- from the peer

    def receive(self, packet: str) -> EngineEvent | None:
        """Take the Engine.IO packet of a message. `None` if it is about nothing that this end knows. Raises `PeerError`
        for what is no packet: count it with `bad` of the session.
        """
        if (match := HEAD.match(packet, 1)) is None:
            raise PeerError("not a Socket.IO packet")
        kind, attachments, name, number = match.groups()
        namespace = name or "/"
        body = packet[match.end() :]
        if kind == EVENT:
            if body[:1] != "[":
                raise PeerError("an event must be a JSON array that begins with its name")
            if self.is_in(namespace):
                return Said(namespace, int(number) if number is not None else None, body)
            return None  # the session in that namespace has just ended
        if kind == ACK:
            return self._take_ack(namespace, number, body)
        if kind in (BINARY_EVENT, BINARY_ACK):
            self._attachments += int(attachments or 0)
            if kind == BINARY_ACK:
                return self._take_ack(namespace, number, body, binary=True)
            if self.is_in(namespace):
                return Said(namespace, int(number) if number is not None else None, body, binary=True)
            return None
        if len(body) > self._bounds.connect_characters:
            raise PeerError(f"a packet of type {kind} has more than {self._bounds.connect_characters} characters")
        return self._take_other(kind, namespace, body)

    def expects_attachment(self) -> bool:
        """Whether a binary message belongs to an event that was said to have attachments. It is dropped then."""
        if not self._attachments:
            return False
        self._attachments -= 1
        return True

    def _take_ack(self, namespace: str, number: str | None, body: str, *, binary: bool = False) -> AckCame | None:
        member = self._members.get(namespace)
        if member is None or number is None or (ack_id := int(number)) not in member.waiters:
            return None  # it comes too late, or twice, or nobody has asked
        return AckCame(member.waiters.pop(ack_id), body, binary)

    def _take_other(self, kind: str, namespace: str, body: str) -> EngineEvent | None:
        raise NotImplementedError

    # --- to the peer

    def say(self, namespace: str, body: str) -> str:
        """The packet of an event that wants no ack. `body` is its JSON: an array that begins with its name."""
        self._member(namespace)
        return encode_packet(EVENT, namespace, body)

    def ask(self, namespace: str, body: str, waiter: Any) -> tuple[int, str]:
        """The packet of an event that wants an ack, and its id. `AckCame` will have the waiter."""
        self._member(namespace)
        number = self._numbers()
        self.expect(namespace, number, waiter)
        return number, encode_packet(EVENT, namespace, body, number)

    def expect(self, namespace: str, number: int, waiter: Any) -> None:
        """Wait for an ack with this id, which somebody else has chosen, and has put into the packet."""
        waiters = self._member(namespace).waiters
        if number in waiters:
            raise IllegalMoveError(f"an ack with the id {number} is waited for already")
        waiters[number] = waiter

    def forget(self, namespace: str, number: int) -> None:
        """Nobody waits for this ack any more. It may come nevertheless."""
        if (member := self._members.get(namespace)) is not None:
            member.waiters.pop(number, None)

    def answer(self, namespace: str, ack_id: int, body: str) -> str:
        """The packet that answers an event. `body` is the JSON of an array."""
        self._member(namespace)
        return encode_packet(ACK, namespace, body, ack_id)

    def leave(self, namespace: str) -> str:
        """The packet that ends the client's stay in a namespace."""
        self._member(namespace)
        del self._members[namespace]
        return encode_packet(DISCONNECT, namespace)

    def _member(self, namespace: str) -> Stay:
        member = self._members.get(namespace)
        if member is None or member.standing is not Standing.IN:
            raise IllegalMoveError(f"the client is not in {namespace}")
        return member

    def _asked(self, namespace: str) -> Stay:
        member = self._members.get(namespace)
        if member is None or member.standing is not Standing.ASKED:
            raise IllegalMoveError(f"nobody asks to be let into {namespace}")
        return member


class ServerNamespaces(Namespaces):
    """The server's end. A client knocks, and is let in or turned away."""

    __slots__ = ("_known",)

    def __init__(self, known: Container[str], bounds: EngineBounds, numbers: Callable[[], int]) -> None:
        super().__init__(bounds, numbers)
        self._known = known

    def _take_other(self, kind: str, namespace: str, body: str) -> EngineEvent | None:
        if kind == DISCONNECT:
            return SaidGoodbye(namespace) if self._members.pop(namespace, None) is not None else None
        if kind != CONNECT:
            raise PeerError("a client may not refuse a connection")
        data = read_data(body)
        if namespace in self._members:
            raise PeerError("the client is in that namespace")
        if namespace in self._known:
            self._members[namespace] = Stay()
        return Knocked(namespace, data)

    def is_known(self, namespace: str) -> bool:
        """Whether there is this namespace. Otherwise send `unknown` to whoever knocks."""
        return namespace in self._known

    @staticmethod
    def unknown(namespace: str) -> str:
        """The packet for somebody who knocks at a namespace that is not there."""
        return encode_packet(CONNECT_ERROR, namespace, dumps(_INVALID, separators=(",", ":")))

    def let_in(self, namespace: str, data: Mapping[str, Any]) -> str:
        """The packet that tells a client that it is in. `data` has its `sid`."""
        self._asked(namespace).standing = Standing.IN
        return encode_packet(CONNECT, namespace, dumps(data, separators=(",", ":")))

    def turn_away(self, namespace: str, data: Mapping[str, Any]) -> str:
        """The packet that refuses a client. `data` has a `message`, and may have `data`."""
        self._asked(namespace)
        del self._members[namespace]
        return encode_packet(CONNECT_ERROR, namespace, dumps(data, separators=(",", ":")))


class ClientNamespaces(Namespaces):
    """The client's end."""

    __slots__ = ()

    def knock(self, namespace: str, data: Mapping[str, Any] | None = None) -> str:
        """The packet that asks to be let into a namespace."""
        if namespace in self._members:
            raise IllegalMoveError(f"the client is in {namespace}, or has asked already")
        self._members[namespace] = Stay()
        return encode_packet(CONNECT, namespace, "" if data is None else dumps(data, separators=(",", ":")))

    def _take_other(self, kind: str, namespace: str, body: str) -> EngineEvent | None:
        member = self._members.get(namespace)
        if kind == DISCONNECT:
            return SaidGoodbye(namespace) if self._members.pop(namespace, None) is not None else None
        data = read_data(body)
        if member is None or member.standing is not Standing.ASKED:
            return None  # the client has left meanwhile
        if kind == CONNECT:
            member.standing = Standing.IN
            return LetIn(namespace, data)
        del self._members[namespace]
        return TurnedAway(namespace, data)
