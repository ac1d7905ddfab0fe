"""A dict that forgets its oldest entries, so that nobody can fill it. Pure: the time is handed in."""

import sys
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

__all__ = ["BoundedDict"]

K = TypeVar("K")
V = TypeVar("V")


class BoundedDict(Generic[K, V]):
    """A dict in the order of insertion. When it has more than `most` entries, or they weigh more than `heaviest`
    together, the oldest are forgotten. An entry that alone weighs more is not kept.
    """

    def __init__(
        self, most: int = sys.maxsize, *, heaviest: int = sys.maxsize, weigh: Callable[[V], int] | None = None
    ) -> None:
        self._most = most
        self._heaviest = heaviest
        self._weigh = weigh
        self._kept: dict[K, tuple[V, int, float]] = {}
        """Each value with its weight, and when it was put."""
        self.weight = 0
        """The weight of all entries together."""

    def __len__(self) -> int:
        return len(self._kept)

    def __contains__(self, key: object) -> bool:
        return key in self._kept

    def __iter__(self) -> Iterator[K]:
        """The keys, oldest first."""
        return iter(self._kept)

    def values(self) -> list[V]:
        """The values, oldest first."""
        return [value for value, _, _ in list(self._kept.values())]

    def get(self, key: K) -> V | None:
        """The value of a key; `None` if the key is unknown."""
        kept = self._kept.get(key)
        return None if kept is None else kept[0]

    def put(self, key: K, value: V, now: float = 0.0, weight: int = 0) -> list[tuple[K, V]]:
        """Add an entry as the newest one; an older entry with its key is replaced. Returns the forgotten entries.

        The entry has this `weight` unless there is a function to weigh it.
        """
        if key in self._kept:
            self.pop(key)
        if self._weigh is not None:
            weight = self._weigh(value)
        self._kept[key] = (value, weight, now)
        self.weight += weight
        forgotten = []
        while len(self._kept) > self._most or self.weight > self._heaviest:
            forgotten.append(self.pop_oldest())
        return forgotten

    def use(self, key: K) -> V | None:
        """The value of a key, as `get` returns it; its entry becomes the newest one."""
        if (kept := self._kept.pop(key, None)) is None:
            return None
        self._kept[key] = kept
        return kept[0]

    def pop(self, key: K) -> V | None:
        """Take an entry out; returns its value, or `None` if the key is unknown."""
        kept = self._kept.pop(key, None)
        if kept is None:
            return None
        self.weight -= kept[1]
        return kept[0]

    def pop_oldest(self) -> tuple[K, V]:
        """Take the oldest entry out. There must be one."""
        key = next(iter(self._kept))
        value, weight, _ = self._kept.pop(key)
        self.weight -= weight
        return key, value

    def forget_before(self, moment: float) -> list[tuple[K, V]]:
        """Forget the entries that were added before this moment, and return them."""
        forgotten = []
        while self._kept and next(iter(self._kept.values()))[2] < moment:
            forgotten.append(self.pop_oldest())
        return forgotten

    def clear(self) -> None:
        self._kept.clear()
        self.weight = 0
