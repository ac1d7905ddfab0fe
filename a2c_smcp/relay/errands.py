"""The answering side: requests of others that have no answer yet. Pure: the adapter runs it and looks at the clock.

    take ──► begin ──► finished      it has an answer; is the answer still wanted?
       │         └───► withdraw      nobody waits for the answer any more: cancel it
       └─────────────► lost          the asker has gone: cancel everything

An errand begins at most once, and not after its deadline.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from a2c_smcp.errors import BadRequestError, RequestTimeoutError, TooManyRequestsError

__all__ = ["Errand", "ErrandTable"]

K = TypeVar("K", bound=Hashable)
W = TypeVar("W")

_NEVER: Final = float("inf")


@dataclass(slots=True, eq=False)
class Errand(Generic[K, W]):
    """One request of somebody else."""

    id: K
    work: W
    """What the adapter cancels when nobody waits any more."""
    deadline: float = _NEVER
    """The last moment at which it may begin, by this side's clock."""
    has_begun: bool = False


class ErrandTable(Generic[K, W]):
    """What one asker waits for, by its id."""

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        self._errands: dict[K, Errand[K, W]] = {}

    def __len__(self) -> int:
        return len(self._errands)

    def __contains__(self, errand_id: K) -> bool:
        return errand_id in self._errands

    def get(self, errand_id: K) -> Errand[K, W] | None:
        """An errand that has no answer yet."""
        return self._errands.get(errand_id)

    def ids(self) -> list[K]:
        return list(self._errands)

    def take(self, errand: Errand[K, W]) -> None:
        """Note an errand. Raises `BadRequestError` if its id is in use, `TooManyRequestsError` over the bound."""
        if errand.id in self._errands:
            raise BadRequestError(f"request id {errand.id!r} is under way")
        if self._most is not None and len(self._errands) >= self._most:
            raise TooManyRequestsError(f"{self._most} requests are under way; wait for some of them")
        self._errands[errand.id] = errand

    def begin(self, errand_id: K, now: float = 0.0) -> Errand[K, W] | None:
        """Begin an errand. Returns `None` if it was withdrawn or has begun before.

        Raises `RequestTimeoutError` after its deadline. The adapter answers with that error, and calls `finished`.
        """
        errand = self._errands.get(errand_id)
        if errand is None or errand.has_begun:
            return None
        errand.has_begun = True
        if now > errand.deadline:
            raise RequestTimeoutError("the request came too late to be started")
        return errand

    def finished(self, errand_id: K) -> bool:
        """The errand has an answer. Returns whether somebody still waits for it."""
        return self._errands.pop(errand_id, None) is not None

    def withdraw(self, errand_id: K) -> Errand[K, W] | None:
        """Nobody waits for the answer any more. Returns the errand to cancel, if it has no answer yet."""
        return self._errands.pop(errand_id, None)

    def lost(self) -> list[Errand[K, W]]:
        """The asker has gone. Returns the errands to cancel, the oldest first."""
        errands = list(self._errands.values())
        self._errands.clear()
        return errands
