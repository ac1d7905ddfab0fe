"""The asking side: requests that have no answer yet. Pure: the adapter sends, waits and looks at the clock.

    ask ──► sent ──► answer                an answer has come: the ask ends with it
      │       ├────► fail                  it cannot have an answer any more
      │       ├────► withdraw, late        nobody waits any more; the other side is told, if it was sent
      │       └────► lost                  one of the two parties has gone
      └── report: news about an ask that still waits

Every ask ends once: each of these takes it out of the table, and `None` says that it had ended before.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from a2c_smcp.errors import TooManyRequestsError

__all__ = ["UNBOUNDED", "Ask", "AskBounds", "AskTable", "LostAsks"]

K = TypeVar("K", bound=Hashable)
W = TypeVar("W")


@dataclass(frozen=True, slots=True)
class AskBounds:
    """How much one caller may have waiting; `None` means no bound."""

    most: int | None = None
    """How many asks at once."""
    most_weight: int | None = None
    """The sum of their weights."""


UNBOUNDED: Final = AskBounds()


@dataclass(slots=True, eq=False)
class Ask(Generic[K, W]):
    """One request on its way."""

    id: K
    waiter: W
    """What the adapter completes when the ask ends: a future, or another record of the request."""
    caller: str = ""
    """Who asks. Empty in a table with a single caller; no bounds apply then."""
    target: str = ""
    """Who is asked. Empty in a table with a single target."""
    topic: Hashable = None
    """What a report names; `None` if the caller wants no reports."""
    weight: int = 0
    was_sent: bool = False


@dataclass(frozen=True, slots=True)
class LostAsks(Generic[K, W]):
    """The asks that ended because a party has gone."""

    unanswered: tuple[Ask[K, W], ...]
    """Their target has gone. An ask that was not sent has not run, and can be asked again elsewhere."""
    unwanted: tuple[Ask[K, W], ...]
    """Their caller has gone. If an ask was sent, its target must be told."""


class AskTable(Generic[K, W]):
    """What waits for an answer, by its id, by its parties and by the topic of its reports."""

    def __init__(self, bounds: AskBounds = UNBOUNDED) -> None:
        self._bounds = bounds
        self._asks: dict[K, Ask[K, W]] = {}
        self._callers: dict[str, dict[Ask[K, W], None]] = {}
        self._targets: dict[str, dict[Ask[K, W], None]] = {}
        self._topics: dict[Hashable, dict[Ask[K, W], None]] = {}
        self._weights: dict[str, int] = {}

    def bound(self, bounds: AskBounds) -> None:
        """Apply these bounds to asks that are filed from now on."""
        self._bounds = bounds

    def __len__(self) -> int:
        return len(self._asks)

    def __contains__(self, ask_id: K) -> bool:
        return ask_id in self._asks

    def get(self, ask_id: K) -> Ask[K, W] | None:
        """An ask that still waits."""
        return self._asks.get(ask_id)

    def waiting(self) -> list[Ask[K, W]]:
        """Everything that waits, the oldest first."""
        return list(self._asks.values())

    def ask(self, ask: Ask[K, W]) -> None:
        """File an ask. Raises `TooManyRequestsError` over a bound of its caller, `ValueError` if its id is in use."""
        if ask.id in self._asks:
            raise ValueError(f"request id {ask.id!r} is already in flight")
        if caller := ask.caller:
            most, most_weight = self._bounds.most, self._bounds.most_weight
            if most is not None and len(self._callers.get(caller, ())) >= most:
                raise TooManyRequestsError(f"{most} requests are waiting for an answer; wait for some of them")
            weight = self._weights.get(caller, 0) + ask.weight
            if most_weight is not None and weight > most_weight:
                raise TooManyRequestsError("the ids of the requests that are waiting for an answer are too long")
            self._weights[caller] = weight
            self._callers.setdefault(caller, {})[ask] = None
        if ask.target:
            self._targets.setdefault(ask.target, {})[ask] = None
        if ask.topic is not None:
            self._topics.setdefault(ask.topic, {})[ask] = None
        self._asks[ask.id] = ask

    def sent(self, ask_id: K) -> bool:
        """Note that an ask is being sent. Returns `False` if it has ended, and so must not be sent."""
        if (ask := self._asks.get(ask_id)) is None:
            return False
        ask.was_sent = True
        return True

    def end(self, ask_id: K) -> Ask[K, W] | None:
        """Take an ask out; returns `None` if it had ended before."""
        if (ask := self._asks.pop(ask_id, None)) is None:
            return None
        parties: tuple[tuple[dict[Any, dict[Ask[K, W], None]], Hashable], ...] = (
            (self._callers, ask.caller),
            (self._targets, ask.target),
            (self._topics, ask.topic),
        )
        for index, key in parties:
            if (filed := index.get(key)) is not None:
                del filed[ask]
                if not filed:
                    del index[key]
        if ask.caller:
            self._weights[ask.caller] -= ask.weight
            if ask.caller not in self._callers:
                del self._weights[ask.caller]
        return ask

    # The four ways in which one ask ends. They differ in what the adapter does next.

    answer = end
    """The answer has come."""
    fail = end
    """No answer can come any more."""

    def withdraw(self, ask_id: K) -> bool:
        """Nobody waits for the answer any more. Returns whether the target must be told."""
        ask = self.end(ask_id)
        return ask is not None and ask.was_sent

    late = withdraw
    """The deadline has passed, by the adapter's clock."""

    def report(self, topic: Hashable, *, about: Callable[[W], bool] | None = None) -> Ask[K, W] | None:
        """The ask that a report is about, if it still waits. If several have this topic, the oldest one gets it."""
        for ask in self._topics.get(topic, ()):
            if about is None or about(ask.waiter):
                return ask
        return None

    def parted_by(self, party: str) -> LostAsks[K, W]:
        """The asks of a caller or target, which `lost` would end. They stay in the table."""
        return LostAsks(tuple(self._targets.get(party, ())), tuple(self._callers.get(party, ())))

    def concerns(self, party: str) -> bool:
        """Whether an ask of this caller or target still waits."""
        return party in self._callers or party in self._targets

    def lost(self, party: str) -> LostAsks[K, W]:
        """A caller or target has gone: end its asks."""
        lost = self.parted_by(party)
        for ask in (*lost.unanswered, *lost.unwanted):
            self.end(ask.id)
        return lost

    def lost_all(self) -> list[Ask[K, W]]:
        """The only target of this table has gone: end everything, the oldest first."""
        asks = self.waiting()
        self._asks.clear()
        self._callers.clear()
        self._targets.clear()
        self._topics.clear()
        self._weights.clear()
        return asks
