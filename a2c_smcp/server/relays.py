"""The calls that wait for a computer's answer: who asked, who was asked. Pure bookkeeping; a shell owns the waiting.

Every relay is filed under both its sessions, so that the end of either finds it at once, and nothing is left behind.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias, TypeVar

from a2c_smcp.errors import SMCPError, TooManyRequestsError
from a2c_smcp.smcp import ToolProgress

__all__ = ["Orphans", "Relay", "RelayTable", "ReportWay"]

_K = TypeVar("_K")

#: What the ids of one caller's relays may have in all, in characters. They are all that is kept of a request once it is
#: sent, and the caller chooses their length.
_MOST_IDS: Final = 1024 * 1024


class ReportWay(Protocol):
    """Takes the reports of one call to its caller, without waiting."""

    def __call__(self, report: ToolProgress) -> None: ...

    def end(self) -> None:
        """The call has an answer, which is sent next."""


_ReportKey: TypeAlias = tuple[str, str, str]


@dataclass(slots=True, eq=False)
class Relay:
    """One request on its way. `fail` ends the wait for its answer with an error."""

    caller: str
    target: str
    event: str
    agent: str
    req_id: str
    computer: str
    fail: Callable[[SMCPError], None]
    ack_id: int | None = field(default=None)
    on_progress: ReportWay | None = field(default=None)
    """`None` if the caller did not ask for reports."""

    @property
    def key(self) -> "_ReportKey":
        """What a report must have to be about this relay."""
        return self.target, self.agent, self.req_id

    @property
    def weight(self) -> int:
        return len(self.agent) + len(self.req_id)


@dataclass(frozen=True, slots=True)
class Orphans:
    """The relays that lost a peer."""

    unanswered: tuple[Relay, ...]
    """Their computer has gone: fail them."""
    unwanted: tuple[Relay, ...]
    """Their agent has gone: cancel them at the computer."""


class RelayTable:
    def __init__(self, most_per_caller: int) -> None:
        self._most = most_per_caller
        self._by_caller: dict[str, dict[Relay, None]] = {}
        self._by_target: dict[str, dict[Relay, None]] = {}
        self._weights: Counter[str] = Counter()
        # Only those whose callers want progress: the others cost nothing more.
        self._reporting: dict[_ReportKey, dict[Relay, None]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._by_caller.values()))

    def open(self, relay: Relay) -> None:
        """File a relay, or raise `TooManyRequestsError` when its caller has too many."""
        mine = self._by_caller.get(relay.caller)
        if mine is not None and len(mine) >= self._most:
            raise TooManyRequestsError(f"{self._most} requests are waiting for an answer; wait for some of them")
        if self._weights[relay.caller] + relay.weight > _MOST_IDS:
            raise TooManyRequestsError("the ids of the requests that are waiting for an answer are too long")
        self._weights[relay.caller] += relay.weight
        self._by_caller.setdefault(relay.caller, {})[relay] = None
        self._by_target.setdefault(relay.target, {})[relay] = None
        if relay.on_progress is not None:
            self._reporting.setdefault(relay.key, {})[relay] = None

    def close(self, relay: Relay) -> None:
        """Forget a relay, whatever became of it."""
        if relay in self._by_caller.get(relay.caller, ()):
            self._weights[relay.caller] -= relay.weight
            if not self._weights[relay.caller]:
                del self._weights[relay.caller]
        _take_out(self._by_caller, relay.caller, relay)
        _take_out(self._by_target, relay.target, relay)
        if relay.on_progress is not None:
            _take_out(self._reporting, relay.key, relay)

    def reported_by(self, sid: str, report: ToolProgress) -> Relay | None:
        """The relay to this session that a report is about, if its caller asked for reports.

        A request that its caller has repeated has two relays, and one caller: it gets a report once.
        """
        relays = self._reporting.get((sid, report["agent"], report["req_id"]), ())
        return next((relay for relay in relays if relay.computer == report["computer"]), None)

    def orphaned_by(self, sid: str) -> Orphans:
        """What the end of a session, or its leaving the office, does to the calls it has part in."""
        return Orphans(tuple(self._by_target.get(sid, ())), tuple(self._by_caller.get(sid, ())))


def _take_out(index: dict[_K, dict[Relay, None]], key: _K, relay: Relay) -> None:
    if (filed := index.get(key)) is not None:
        filed.pop(relay, None)
        if not filed:
            del index[key]
