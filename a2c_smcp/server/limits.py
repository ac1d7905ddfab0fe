"""How much one client may ask for. Plain values and counters; the clock is handed in."""

from collections import Counter
from dataclasses import dataclass

from a2c_smcp.errors import TooManyRequestsError
from a2c_smcp.server.offices import MAX_NAME, MAX_OFFICE_ID
from a2c_smcp.smcp import TOOL_CALL_EVENT
from a2c_smcp.wire import DEFAULT_MAX_MESSAGE, DEFAULT_MAX_TIMEOUT

__all__ = ["AddressLimit", "Limits", "TokenBucket"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Every limit of the server; `None` means no limit."""

    max_message: int = DEFAULT_MAX_MESSAGE
    max_timeout: int = DEFAULT_MAX_TIMEOUT
    tool_call_grace: float = 5.0
    """How much longer than a tool call's own timeout the server waits for the computer."""
    relay_timeout: float = 15.0
    """How long the server waits for the answer to any other relay."""
    pending_relays: int = 1024
    requests_per_second: float | None = None
    connections_per_address: int | None = None
    connect_timeout: float = 10.0
    """How long a connection may stay without joining a namespace; it is looked at once every ping timeout."""
    queued_bytes: int = 64 * 1024 * 1024
    """What may wait for a slow reader before it is disconnected."""
    name_length: int = MAX_NAME
    office_id_length: int = MAX_OFFICE_ID

    def deadline(self, event: str, timeout: int | None) -> float:
        """How long to wait for the computer's answer, in seconds."""
        if event == TOOL_CALL_EVENT and timeout is not None:
            return timeout + self.tool_call_grace
        return self.relay_timeout


class TokenBucket:
    """At most `rate` requests a second on average, and a second's worth at once."""

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


class AddressLimit:
    """How many connections each address has."""

    def __init__(self, most: int | None) -> None:
        self._most = most
        self._open: Counter[str] = Counter()

    def enter(self, address: str) -> None:
        """Count one more, or raise `TooManyRequestsError`."""
        if self._most is not None and self._open[address] >= self._most:
            raise TooManyRequestsError(f"more than {self._most} connections from one address")
        self._open[address] += 1

    def leave(self, address: str) -> None:
        self._open[address] -= 1
        if self._open[address] <= 0:
            del self._open[address]
