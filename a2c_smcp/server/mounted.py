"""What both namespaces for python-socketio share: lines to clients over what that library documents, and no more.

The library decodes what it reads and encodes what it is given, so every message is JSON twice here. It bounds nothing
that waits, has no pings that we could send, and numbers acks for each connection: `docs/limits.md` says what follows.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from socketio.exceptions import ConnectionRefusedError

from a2c_smcp.errors import BadRequestError, TooManyRequestsError
from a2c_smcp.packet_text import ACK, read_head
from a2c_smcp.server.admission import Admission
from a2c_smcp.server.boundary import binary_message
from a2c_smcp.server.envelopes import Message
from a2c_smcp.server.limits import Place
from a2c_smcp.server.port import Mention, Newcomer, Notice, NotLetInError
from a2c_smcp.server.switchboard import Switchboard
from a2c_smcp.wire import Unacceptable, codec

__all__ = ["MountedLine", "connection_refused", "newcomer_of", "remote_address", "served"]

_TOO_MANY: Final = "too many connections from this address"


def remote_address(environ: Mapping[str, Any]) -> str:
    """The peer's address. Engine.IO gives every ASGI request a loopback `REMOTE_ADDR`; the real one is in the scope."""
    client = (environ.get("asgi.scope") or {}).get("client")
    return str(client[0]) if client else str(environ.get("REMOTE_ADDR", "unknown"))


def newcomer_of(environ: Mapping[str, Any]) -> Newcomer:
    """A client, from the WSGI-shaped environment of its first request."""
    headers = {
        key.removeprefix("HTTP_").replace("_", "-").lower(): value
        for key, value in environ.items()
        if key.startswith("HTTP_") and isinstance(value, str)
    }
    return Newcomer(remote_address(environ), headers, str(environ.get("QUERY_STRING", "")))


def connection_refused(error: NotLetInError) -> ConnectionRefusedError:
    """The refusal of a connection, as python-socketio wants it raised."""
    return ConnectionRefusedError(error.data["message"], error.data["data"])


class MountedLine:
    """A `ClientLine` over python-socketio. What is sent goes into the library's own queue, which has no bounds."""

    queued_bytes = sent_bytes = received_bytes = 0
    is_written_out = True
    has_given_a_sign = True  # nobody can tell

    def __init__(self, sid: str, address: str, admission: Admission) -> None:
        self.sid = sid
        self.address = address
        self.connection = sid
        self.is_open = True
        self.reason = ""
        """Why we have closed it."""
        self._admission = admission
        self._place: Place | None = None
        self._replies: dict[int, Callable[[Any], None]] = {}
        self._reply_ids = 0
        self._acks: dict[int, Callable[[str], None]] = {}

    def emit(self, event: str, args: tuple[Any, ...], on_ack: Callable[..., None] | None = None) -> None:
        """Queue an event, in order."""
        raise NotImplementedError

    def resolve(self, reply: Callable[[Any], None], value: Any) -> None:
        """Answer an event, in the same order."""
        raise NotImplementedError

    def end(self) -> None:
        """Let the library end the session."""
        raise NotImplementedError

    def expect_reply(self, reply: Callable[[Any], None]) -> int:
        """The number under which the switchboard answers an event. `reply` is called once."""
        self._reply_ids += 1
        self._replies[self._reply_ids] = reply
        return self._reply_ids

    def ended(self) -> None:
        """The session has ended."""
        self.is_open = False
        self._acks.clear()
        if self._place is not None:
            self._place.leave()
        replies, self._replies = self._replies, {}
        for reply in replies.values():
            reply(None)

    def acked(self, ack_id: int, args: Sequence[Any]) -> None:
        if (on_ack := self._acks.pop(ack_id, None)) is not None:
            try:
                body = codec.dumps(args)
            except TypeError:  # it has bytes in it
                body = codec.dumps([BadRequestError("binary payloads are not part of the protocol").payload()])
            on_ack(body)

    # --- what the switchboard calls

    def take_place(self) -> None:
        self._place = self._admission.addresses.knock(self.address)
        if self._place is None:
            raise TooManyRequestsError(_TOO_MANY)
        self._place.join()

    def admit(self) -> None:
        """This library has the same limits for everybody."""

    def bound(self, queued_bytes: int) -> None:
        """This library has no bounds."""

    def send(self, text: str) -> None:
        head = read_head(text)
        values = codec.loads(head.body)
        if head.packet_type != ACK:
            if self.is_open:
                self.emit(values[0], tuple(values[1:]))
        elif (reply := self._replies.pop(head.ack_id or 0, None)) is not None:
            self.resolve(reply, values[0] if len(values) == 1 else tuple(values))

    def notify(self, notice: Notice) -> None:
        self.send(notice.text)

    def offer(self, text: str) -> bool:
        self.send(text)
        return self.is_open

    def mention(self, mention: Mention) -> None:
        self.send(mention.text)

    def ask(self, ack_id: int, text: str, on_ack: Callable[[str], None]) -> bool:
        if not self.is_open:
            return False
        event, *args = codec.loads(read_head(text).body)
        self._acks[ack_id] = on_ack
        self.emit(event, tuple(args), lambda *said: self.acked(ack_id, said))
        return True

    def forget(self, ack_id: int) -> None:
        self._acks.pop(ack_id, None)

    def ask_for_a_sign(self) -> None:
        """This library sends its pings when it wants to."""

    def close(self, reason: str) -> None:
        if self.is_open:
            self.is_open, self.reason = False, reason
            self.end()


def served(
    switchboard: Switchboard, line: MountedLine, event: Any, args: Sequence[Any], reply: Callable[[Any], None]
) -> None:
    """Serve an event that the library has decoded. `reply` gets what the library is to answer."""
    number = line.expect_reply(reply)
    unacceptable = next((each.error for each in args if isinstance(each, Unacceptable)), None)
    text = None
    if unacceptable is not None and isinstance(event, str):
        text = switchboard.refuse(line, number, Message(event, error=unacceptable))
    else:
        try:
            text = switchboard.event(line, number, codec.dumps([event, *args]))
        except (TypeError, ValueError):  # it has bytes in it, or is not an event
            text = switchboard.refuse(line, number, binary_message(event))
    if text is not None:
        line.send(text)
