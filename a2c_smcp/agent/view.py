"""What an agent knows of its office, and what to fetch after which notification. Pure: no sockets, no clock.

The shell performs every `Fetch` and reports `fetched` or `failed`, with the pause that the cost of the fetch demands.
Only one fetch runs at a time for each part of each computer. Changes that are announced meanwhile, however many, are
fetched once more after it. An outcome changes nothing if its computer has left since, or has left and come back. A
computer that comes back during a pause is left alone until the pause is over.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import count
from types import MappingProxyType
from typing import Any, Final

from a2c_smcp.agent.pacing import SHORT
from a2c_smcp.errors import BadRequestError, ConnectionLostError, ForbiddenError, PayloadTooLargeError, SMCPError
from a2c_smcp.smcp import (
    UPDATE_CONFIG_NOTIFICATION,
    UPDATE_DESKTOP_NOTIFICATION,
    UPDATE_FINDER_NOTIFICATION,
    UPDATE_TOOL_LIST_NOTIFICATION,
    GetComputerConfigRet,
    GetFinderRet,
    SMCPTool,
)
from a2c_smcp.types import Desktop
from a2c_smcp.utils.backoff import backoff

__all__ = ["REFRESHES", "ComputerView", "Fetch", "Later", "OfficeView", "Part", "retry_delay"]


class Part(Enum):
    """The parts of a computer in an agent's live view. Each is fetched on its own."""

    TOOLS = "tools"
    CONFIG = "config"
    DESKTOP = "desktop"
    DOCUMENTS = "documents"


#: Which parts each notification makes stale.
REFRESHES: Final[Mapping[str, tuple[Part, ...]]] = {
    UPDATE_CONFIG_NOTIFICATION: (Part.CONFIG, Part.TOOLS),
    UPDATE_TOOL_LIST_NOTIFICATION: (Part.TOOLS,),
    UPDATE_DESKTOP_NOTIFICATION: (Part.DESKTOP,),
    UPDATE_FINDER_NOTIFICATION: (Part.DOCUMENTS,),
}


def retry_delay(failures: int) -> float:
    """How many seconds to wait after this many failures in a row."""
    return backoff(failures, first=1.0, longest=30.0)


@dataclass(frozen=True, slots=True)
class ComputerView:
    """One computer as it was fetched last.

    A part is `None` until it is fetched: tools when the computer comes, the other parts after their first notification.
    Before that, read a part with the client's own methods, such as `get_desktop`.
    """

    name: str
    tools: Sequence[SMCPTool] | None = None
    config: GetComputerConfigRet | None = None
    desktop: Sequence[Desktop] | None = None
    documents: GetFinderRet | None = None
    """The first 1000 of its catalogue, and how many there are in all."""
    failures: Mapping[Part, SMCPError] = field(default_factory=dict)
    """Why the last attempt to fetch a part failed. The old value stays."""


@dataclass(frozen=True, slots=True)
class Fetch:
    """One part of one computer, to be fetched now."""

    computer: str
    part: Part
    ticket: int


@dataclass(frozen=True, slots=True)
class Later:
    """A part that must not be fetched yet: hand it to `resume` after this many seconds."""

    fetch: Fetch
    delay: float


class _Phase(Enum):
    IDLE = "idle"
    FETCHING = "fetching"
    RESTING = "resting"
    """The last fetch was costly: the next one waits."""
    RETRYING = "retrying"
    """The last fetch failed: it is repeated after a pause."""


@dataclass(slots=True)
class _Slot:
    """One part of one computer. `fetch` is the last fetch, until its outcome no longer matters."""

    value: Any = None
    error: SMCPError | None = None
    fetch: Fetch | None = None
    phase: _Phase = _Phase.IDLE
    is_held_back: bool = False
    """Whether the pause is longer than a caller should wait."""
    wanted: int | None = None
    """The number of the first wish that came after the last fetch began."""
    wanted_after: int | None = None
    """The number of the first wish that came during a fetch."""
    failures: int = 0
    is_retried: bool = False


class OfficeView:
    """The office that the agent is in."""

    def __init__(self) -> None:
        self._computers: dict[str, dict[Part, _Slot]] = {}
        #: The parts that had a pause when their computers left, until that pause is over.
        self._resting: dict[tuple[str, Part], _Slot] = {}
        self._tickets = count(1)
        self._wishes = count(1)
        self._listing = False
        self._arrived: set[str] = set()
        self._departed: set[str] = set()

    @property
    def computers(self) -> Mapping[str, ComputerView]:
        """Every computer by its name, as it is now. It is a snapshot."""
        return MappingProxyType({name: _view(name, slots) for name, slots in self._computers.items()})

    @property
    def settled(self) -> bool:
        """Whether everything was fetched, or tried at least once."""
        return self.settled_since(self.now())

    def now(self) -> int:
        """The number of this moment, for `settled_since`."""
        return next(self._wishes)

    def settled_since(self, moment: int) -> bool:
        """Whether everything that was due at that moment was fetched, or tried at least once. A computer that announces
        changes all the time does not delay this; nor does a part that is too costly to fetch again soon.
        """
        return not self._listing and not any(
            slot.wanted is not None and slot.wanted <= moment and not slot.is_held_back for slot in self._slots()
        )

    def clear(self) -> None:
        """Forget everything: the agent has left the office."""
        self._computers.clear()
        self._resting.clear()
        self._listing = False

    # --- who is here

    def begin_listing(self) -> None:
        """Call this before asking for the members. A computer that comes or goes meanwhile may or may not be in the
        answer.
        """
        self._listing = True
        self._arrived.clear()
        self._departed.clear()

    def end_listing(self, names: Iterable[str]) -> list[Fetch]:
        """Take the list of computers. Everything known of them may be out of date."""
        present = (set(names) - self._departed) | self._arrived
        self._listing = False
        for name in self._computers.keys() - present:
            self._drop(name)
        fetches: list[Fetch | None] = []
        for name in sorted(present - self._arrived):
            slots = self._computers.setdefault(name, self._new_slots(name))
            fetches += [self._want(name, part) for part, slot in slots.items() if part is Part.TOOLS or _known(slot)]
        return _some(fetches)

    def enter(self, computer: str) -> list[Fetch]:
        """A computer came. If one of the same name was here, it has gone."""
        self._arrived.add(computer)
        self._departed.discard(computer)
        self._drop(computer)
        self._computers[computer] = self._new_slots(computer)
        return _some([self._want(computer, Part.TOOLS)])

    def leave(self, computer: str) -> None:
        self._arrived.discard(computer)
        self._departed.add(computer)
        self._drop(computer)

    def _drop(self, computer: str) -> None:
        for part, slot in self._computers.pop(computer, {}).items():
            if slot.phase is _Phase.RESTING:
                self._resting[computer, part] = _Slot(
                    fetch=slot.fetch, phase=slot.phase, is_held_back=slot.is_held_back
                )

    def _new_slots(self, computer: str) -> dict[Part, _Slot]:
        """Empty slots, except for parts whose pause is not over yet. Otherwise a computer that comes and goes all
        the time would be fetched all the time.
        """
        return {part: self._resting.pop((computer, part), _Slot()) for part in Part}

    # --- what they have

    def update(self, notification: str, computer: str) -> list[Fetch]:
        """A computer announced a change. A computer that is not known yet will be listed soon, and fetched then."""
        if computer not in self._computers:
            return []
        return _some([self._want(computer, part) for part in REFRESHES[notification]])

    def fetched(self, fetch: Fetch, value: Any, pause: float = 0.0) -> tuple[bool, Later | list[Fetch]]:
        """Take a value. Returns whether it is new, and what to fetch next. `pause` is how many seconds the next fetch
        waits at least.
        """
        slot = self._slot_of(fetch)
        if slot is None:
            return False, []
        news = slot.value != value or slot.error is not None
        slot.value, slot.error, slot.failures = value, None, 0
        return news, self._rest(fetch, slot, pause)

    def failed(self, fetch: Fetch, error: SMCPError, pause: float = 0.0) -> Later | list[Fetch] | None:
        """Take a failure. Returns what to do about it; `None` if its computer has gone."""
        slot = self._slot_of(fetch)
        if slot is None:
            return None
        slot.error = error
        slot.failures += 1
        # A malformed, too large or forbidden answer does not change by itself. After a lost connection everything is
        # fetched again.
        slot.is_retried = not isinstance(
            error, BadRequestError | ForbiddenError | PayloadTooLargeError | ConnectionLostError
        )
        return self._rest(fetch, slot, pause)

    def resume(self, fetch: Fetch) -> Later | list[Fetch]:
        """The pause of a part, or of a failed fetch, is over. Nothing happens if a newer fetch has begun."""
        slot = self._slot_of(fetch)
        resting = self._resting.get((fetch.computer, fetch.part))
        if resting is not None and resting.fetch == fetch:
            del self._resting[fetch.computer, fetch.part]
        if slot is None or slot.phase is _Phase.FETCHING:
            return []
        if slot.phase is _Phase.RESTING:
            return self._go_on(fetch, slot)
        return [self._begin(fetch.computer, fetch.part, slot)]

    # ---

    def _want(self, computer: str, part: Part) -> Fetch | None:
        slot = self._computers[computer][part]
        wish = next(self._wishes)
        if slot.phase is _Phase.FETCHING:
            slot.wanted_after = slot.wanted_after or wish
            return None
        slot.wanted = slot.wanted or wish
        return None if slot.phase is _Phase.RESTING else self._begin(computer, part, slot)

    def _begin(self, computer: str, part: Part, slot: _Slot) -> Fetch:
        slot.fetch = Fetch(computer, part, next(self._tickets))
        slot.phase, slot.is_held_back = _Phase.FETCHING, False
        return slot.fetch

    def _rest(self, fetch: Fetch, slot: _Slot, pause: float) -> Later | list[Fetch]:
        slot.wanted, slot.wanted_after = slot.wanted_after, None
        if pause <= 0:
            return self._go_on(fetch, slot)
        slot.phase, slot.is_held_back = _Phase.RESTING, pause > SHORT
        return Later(fetch, pause)

    def _go_on(self, fetch: Fetch, slot: _Slot) -> Later | list[Fetch]:
        if slot.wanted is not None:
            return [self._begin(fetch.computer, fetch.part, slot)]
        if slot.error is not None and slot.is_retried:
            slot.phase, slot.is_held_back = _Phase.RETRYING, False
            return Later(fetch, retry_delay(slot.failures))
        slot.fetch, slot.phase, slot.is_held_back = None, _Phase.IDLE, False
        return []

    def _slot_of(self, fetch: Fetch) -> _Slot | None:
        """The slot that still waits for exactly this fetch."""
        slot = self._computers.get(fetch.computer, {}).get(fetch.part)
        return slot if slot is not None and slot.fetch == fetch else None

    def _slots(self) -> Iterator[_Slot]:
        return (slot for slots in self._computers.values() for slot in slots.values())


def _known(slot: _Slot) -> bool:
    return slot.value is not None or slot.error is not None or slot.fetch is not None


def _some(fetches: Iterable[Fetch | None]) -> list[Fetch]:
    return [fetch for fetch in fetches if fetch is not None]


def _view(name: str, slots: Mapping[Part, _Slot]) -> ComputerView:
    values = {part.value: slot.value for part, slot in slots.items()}
    failures = {part: slot.error for part, slot in slots.items() if slot.error is not None}
    return ComputerView(name, **values, failures=MappingProxyType(failures))
