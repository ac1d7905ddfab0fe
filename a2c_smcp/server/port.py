"""The seam between the decisions of a server and its connections. Neither side knows more of the other than is here.

`Decisions` is what a connection calls, `ClientLine` what the decisions call. `switchboard` has the decisions. The lines
are those of the engine, or of a namespace that is mounted on a python-socketio server. Everything here runs on one
event loop, and but for `Decisions.connect` nothing here waits: a message is decided on in the callback that brought it.

Texts are packets of Socket.IO without the Engine.IO digit before them, such as `2/smcp,7["client:tool_call",…]`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from a2c_smcp.engine.outgoing import Mention, Notice, Outgoing

__all__ = [
    "DISCONNECT_REASONS",
    "FELL_BEHIND",
    "KEY_WITHDRAWN",
    "KICKED",
    "LOST_PLACE",
    "REPLACED",
    "TOKEN_EXPIRED",
    "TOO_LARGE",
    "ClientLine",
    "Decisions",
    "Mention",
    "Newcomer",
    "NotLetInError",
    "Notice",
    "Outgoing",
]

# Why a connection ended: the words of Engine.IO, and ours.
FELL_BEHIND: Final = "fell behind"
#: A newer session of the same client has its place.
REPLACED: Final = "replaced"
#: An operator has ended its session.
KICKED: Final = "kicked"
#: Its key is not valid any more.
KEY_WITHDRAWN: Final = "key withdrawn"
#: Its token has ended, and it has shown no new one.
TOKEN_EXPIRED: Final = "token expired"
TOO_LARGE: Final = "message too large"
LOST_PLACE: Final = "lost its place"
DISCONNECT_REASONS: Final = frozenset(
    {
        "client disconnect",
        "server disconnect",
        "transport close",
        "transport error",
        "ping timeout",
        FELL_BEHIND,
        REPLACED,
        KICKED,
        KEY_WITHDRAWN,
        TOKEN_EXPIRED,
        TOO_LARGE,
        LOST_PLACE,
    }
)


# --- what a connection calls


@dataclass(frozen=True, slots=True)
class Newcomer:
    """What is known of a client before it has shown a key."""

    address: str
    headers: Mapping[str, str]
    """The HTTP headers of its first request, by their names in lower case."""
    query: str = ""
    """The query of its first request."""


class NotLetInError(Exception):
    """The client is refused. `data` is for `CONNECT_ERROR`: its `message`, and its `data` with the code."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        super().__init__(data["message"])
        self.data = data


class Decisions(Protocol):
    """The server, as connections see it."""

    async def connect(self, line: "ClientLine", newcomer: Newcomer, auth: Any) -> None:
        """Decide on the CONNECT of a client. Raises `NotLetInError`. When it returns, the client is in: the connection
        sends CONNECT before it does anything else, and passes events on from then on. Those that came before are
        dropped. It may take seconds (keys may be checked elsewhere, a wrong key is held back), and may be cancelled
        if the connection has gone.
        """
        ...

    def event(self, line: "ClientLine", ack_id: int | None, body: str) -> str | None:
        """Take an event: the JSON behind the head of its packet. Returns the packet to `send` on this line; `None` if
        there is nothing to send, or if the answer comes later. Raises `ValueError` if it is not an event; the
        connection counts it as a frame that does not decode.
        """
        ...

    def binary_event(self, line: "ClientLine", ack_id: int | None, body: str) -> str | None:
        """Take an event with attachments, without them. Returns the packet that refuses it."""
        ...

    def disconnected(self, line: "ClientLine", reason: str) -> None:
        """A client that was let in has gone, for one of `DISCONNECT_REASONS` or another word. Called once for each,
        and never from within a call of these decisions on any line: in the loop's next turn then.
        """
        ...


# --- what the decisions call


class ClientLine(Protocol):
    """The connection of one client in the namespace of the server. Its methods never wait and never raise, but for
    `take_place`. On a line that is not open they do nothing, and return `False`.
    """

    sid: str
    """Unique in all processes; 16 characters or more that nobody can guess."""
    address: str
    connection: str
    """The name of the network session under it, for the log: a client may open one session after another over it."""

    @property
    def is_open(self) -> bool:
        """Whether its client can be written to. `False` from the moment of `close` on."""
        ...

    @property
    def queued_bytes(self) -> int:
        """What waits for the client to read it, without what the system's own buffers hold."""
        ...

    @property
    def sent_bytes(self) -> int: ...
    @property
    def received_bytes(self) -> int: ...
    @property
    def is_written_out(self) -> bool:
        """Whether nothing waits for the client to read it, also in the buffer of the transport."""
        ...

    # before and after the key

    def take_place(self) -> None:
        """Count as a connection that takes part, or raise `TooManyRequestsError`: too many come from its address."""

    def admit(self) -> None:
        """The client has shown a key: lift the limits of clients without one."""

    def bound(self, queued_bytes: int) -> None:
        """Hold at most this many bytes for the client from now on."""

    # to the client

    def send(self, text: str) -> None:
        """Queue or write a packet. A client for which too much waits then has fallen behind: the line closes itself,
        with `FELL_BEHIND`, which it logs.
        """

    def notify(self, notice: Notice) -> None:
        """The same for a notification, unless it is a repeat that nobody needs."""

    def offer(self, text: str) -> bool:
        """The same, but only if it leaves an eighth of the room free, or if nothing waits and it fits. Returns whether
        it does; the client stays connected.
        """
        ...

    def mention(self, mention: Mention) -> None:
        """Queue a mention, or put it in the place of an earlier one about the same. It is dropped if it would not fit
        into an eighth of the room.
        """

    def ask(self, ack_id: int, text: str, on_ack: Callable[[str], None]) -> bool:
        """`offer` an event that wants an ack. `on_ack` gets the JSON of the ack with this id, if it comes over this
        line and before `forget`; at most once, and not from within this call.
        """
        ...

    def forget(self, ack_id: int) -> None:
        """Nobody waits for this ack any more."""

    # its life

    def ask_for_a_sign(self) -> None:
        """Ping the client now."""

    @property
    def has_given_a_sign(self) -> bool:
        """Whether the client has answered the last ping. What it had sent before that has arrived then."""
        ...

    def close(self, reason: str) -> None:
        """End the connection at once, the transport and not only the session, so that the client comes back by
        itself.
        """
