"""Finds the waiting item of a queue that a repeat can be merged into. Pure bookkeeping, without the queue."""

from collections.abc import Hashable
from typing import Generic, TypeVar

__all__ = ["Repeats"]

_T = TypeVar("_T")


class Repeats(Generic[_T]):
    """The waiting items that a repeat may be merged into, by their subject and their content."""

    def __init__(self) -> None:
        self._waiting: dict[Hashable, dict[Hashable, _T]] = {}

    def find(self, about: Hashable, saying: Hashable) -> _T | None:
        """The waiting item with the same subject and content."""
        return self._waiting.get(about, {}).get(saying)

    def add(self, about: Hashable, saying: Hashable, item: _T) -> None:
        self._waiting.setdefault(about, {})[saying] = item

    def bar(self, about: Hashable) -> None:
        """From now on nothing is merged into the waiting items: a repeat must not overtake what just happened."""
        self._waiting.pop(about, None)

    def remove(self, about: Hashable, saying: Hashable, item: _T) -> None:
        """The item has left the queue. A newer item in its place stays."""
        said = self._waiting.get(about)
        if said is not None and said.get(saying) is item:
            del said[saying]
            if not said:
                del self._waiting[about]
