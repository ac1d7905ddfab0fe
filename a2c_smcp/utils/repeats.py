"""Finds the waiting item of a queue that a repeat of it can collapse into. Pure bookkeeping, without the queue."""

from collections.abc import Hashable
from typing import Generic, TypeVar

__all__ = ["Repeats"]

_T = TypeVar("_T")


class Repeats(Generic[_T]):
    """The waiting items that a repeat may collapse into, by what they are about and what they say of it."""

    def __init__(self) -> None:
        self._waiting: dict[Hashable, dict[Hashable, _T]] = {}

    def find(self, about: Hashable, saying: Hashable) -> _T | None:
        """The item that already waits and says this."""
        return self._waiting.get(about, {}).get(saying)

    def add(self, about: Hashable, saying: Hashable, item: _T) -> None:
        self._waiting.setdefault(about, {})[saying] = item

    def bar(self, about: Hashable) -> None:
        """From now on nothing collapses into the items that wait: a repeat must not move before what just happened."""
        self._waiting.pop(about, None)

    def remove(self, about: Hashable, saying: Hashable, item: _T) -> None:
        """The item has left the queue. Another item that took its place stays."""
        said = self._waiting.get(about)
        if said is not None and said.get(saying) is item:
            del said[saying]
            if not said:
                del self._waiting[about]
