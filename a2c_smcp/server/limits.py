"""How much one client may ask for. Plain values and counters; the clock is handed in."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from a2c_smcp.errors import TooManyRequestsError
from a2c_smcp.smcp import TOOL_CALL_EVENT
from a2c_smcp.wire import DEFAULT_MAX_MESSAGE, DEFAULT_MAX_TIMEOUT

__all__ = ["AddressLimit", "Limits", "Place", "TokenBucket"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Every limit of the server; `None` means no limit. Times are in seconds."""

    max_message: int = DEFAULT_MAX_MESSAGE
    """Bytes of one message. Set the same for agents and computers (`LinkOptions`). A larger message closes the
    connection of its sender."""
    first_messages: int = 16 * 1024
    """Bytes that a message may have before its sender has shown a key."""
    max_timeout: int = DEFAULT_MAX_TIMEOUT
    """The longest `timeout` of a tool call; a longer one is refused with 400."""
    tool_call_grace: float = 5.0
    """How much longer than a tool call's own timeout the server waits for the computer."""
    relay_timeout: float = 15.0
    """How long the server waits for the answer to any other relay."""
    pending_relays: int = 1024
    """Requests of one agent that may wait for an answer at a time; one more is refused with 429."""
    requests_per_second: float | None = None
    """Requests of one connection, on average; one more is refused with 429."""
    connections_per_address: int | None = None
    """Connections of one address; one more is refused with 429."""
    wrong_keys: int | None = 10
    """How many wrong keys of one address are refused without delay. After that, one refusal a second is sent. When
    five refusals wait, an address that has never shown a right key gets 429, and its keys are not checked."""
    connect_timeout: float = 10.0
    """How long a connection may stay without joining a namespace. This is checked once every ping timeout."""
    header_timeout: float = 10.0
    """How long a request's headers may take, and how long 16 KiB of its body."""
    queued_bytes: int = 64 * 1024 * 1024
    """Bytes that may wait for a slow reader before it is disconnected."""

    def deadline(self, event: str, timeout: int | None) -> float:
        """How long to wait for the computer's answer, in seconds."""
        if event == TOOL_CALL_EVENT and timeout is not None:
            return timeout + self.tool_call_grace
        return self.relay_timeout


class TokenBucket:
    """Allows `rate` requests a second on average. At once it allows as many as in one second."""

    __slots__ = ("_filled_at", "_rate", "_tokens")

    def __init__(self, rate: float, now: float) -> None:
        self._rate = rate
        self._tokens = self._capacity
        self._filled_at = now

    @property
    def _capacity(self) -> float:
        return max(self._rate, 1.0)

    def take(self, now: float) -> None:
        """Take one token, or raise `TooManyRequestsError`."""
        self._tokens = min(self._capacity, self._tokens + (now - self._filled_at) * self._rate)
        self._filled_at = now
        if self._tokens < 1:
            raise TooManyRequestsError(f"more than {self._rate:g} requests per second; slow down")
        self._tokens -= 1


class Place:
    """One connection as `AddressLimit` counts it. Only the first call of `leave` counts."""

    __slots__ = ("_joined", "_lent", "_limit", "_open", "address")

    def __init__(self, limit: "AddressLimit", address: str) -> None:
        self._limit = limit
        self._open = True
        self._joined = False
        self._lent = False
        self.address = address

    @property
    def is_open(self) -> bool:
        return self._open

    def pass_on(self) -> "Place":
        """Give this place to another holder. This holder has left then."""
        other = Place(self._limit, self.address)
        with self._limit.lock:
            other._open, other._joined = self._open, self._joined
            self._open = False
        return other

    def give_back(self) -> "Place":
        """The place of the connection under a session that has ended, in exchange for this place."""
        other = Place(self._limit, self.address)
        with self._limit.lock:
            if self._open and self._joined:
                self._limit.count_leave(self.address, joined=True)
                self._limit.count_knock(self.address)
            other._open = self._open
            self._open = False
        return other

    def join(self) -> None:
        """Count as a connection that takes part, or raise `TooManyRequestsError`."""
        with self._limit.lock:
            if self._open and not self._joined:
                self._limit.count_join(self.address)
                self._joined = True

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Do not count this connection inside the block, because its session is counted."""
        with self._limit.lock:
            if self._open:
                self._limit.count_leave(self.address, self._joined)
            self._lent = True
        try:
            yield
        finally:
            with self._limit.lock:
                self._lent = False
                if self._open:
                    self._limit.count_knock(self.address)

    def leave(self) -> None:
        with self._limit.lock:
            if self._open and not self._lent:
                self._limit.count_leave(self.address, self._joined)
            self._open = False


class AddressLimit:
    """How many connections each address has: those that take part, and those that have only knocked."""

    def __init__(self, most: int | None) -> None:
        self.lock = threading.Lock()
        self._most = most
        self._joined: Counter[str] = Counter()
        self._knocked: Counter[str] = Counter()

    def change(self, most: int | None) -> None:
        """Allow this many connections of an address from now on. Those that are open stay."""
        with self.lock:
            self._most = most

    def knock(self, address: str) -> Place | None:
        """A place for a new connection; `None` if there are too many from this address.

        Two connections may always knock, also above the limit. So a client that polls reaches its session, and a client
        that is one too many gets the refusal of `Place.join`, which has a code.
        """
        with self.lock:
            knocked = self._knocked[address]
            if self._most is not None and knocked >= 2 and knocked + self._joined[address] >= self._most:
                return None
            self.count_knock(address)
        return Place(self, address)

    # Call these with the lock held.

    def count_knock(self, address: str) -> None:
        self._knocked[address] += 1

    def count_join(self, address: str) -> None:
        # The knock of this connection is among these.
        if self._most is not None and self._knocked[address] + self._joined[address] > self._most:
            raise TooManyRequestsError(f"more than {self._most} connections from one address")
        self._drop(self._knocked, address)
        self._joined[address] += 1

    def count_leave(self, address: str, joined: bool) -> None:
        self._drop(self._joined if joined else self._knocked, address)

    @staticmethod
    def _drop(counter: Counter[str], address: str) -> None:
        counter[address] -= 1
        if counter[address] <= 0:
            del counter[address]
