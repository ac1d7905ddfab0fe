"""The subscriptions of all processes behind one seat. Several that want the same resource are one at its computer.

It knows no socket: who wants a resource is any value, and the function that asks the computer is handed in.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeAlias, TypeVar

from a2c_smcp.errors import error_from_payload
from a2c_smcp.packet_text import read_ack

__all__ = ["ResourceKey", "SharedSubscriptions"]

S = TypeVar("S", bound=Hashable)

ResourceKey: TypeAlias = tuple[str, str]
"""A computer and a URI."""


@dataclass(slots=True)
class _Wanted(Generic[S]):
    by: dict[S, None] = field(default_factory=dict)
    is_made: bool = False
    """Whether the computer has said yes."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while the computer is asked: a subscription and its end must not overtake each other."""


class SharedSubscriptions(Generic[S]):
    """Who wants which resource."""

    def __init__(self) -> None:
        self._wanted: dict[ResourceKey, _Wanted[S]] = {}

    def __len__(self) -> int:
        return len(self._wanted)

    def wanting(self, key: ResourceKey) -> list[S]:
        """Those who are to be told of a change."""
        wanted = self._wanted.get(key)
        return list(wanted.by) if wanted else []

    async def subscribe(self, who: S, key: ResourceKey, ask: Callable[[], Awaitable[str]]) -> str | None:
        """The computer's answer to `ask`; `None` if it was not asked, because the subscription was there already."""
        wanted = self._wanted.setdefault(key, _Wanted())
        wanted.by[who] = None
        is_made = False
        try:
            async with wanted.lock:
                if wanted.is_made:
                    is_made = True
                    return None
                answer = await ask()
                is_made = wanted.is_made = _is_yes(answer)
                return answer
        finally:
            if not is_made:
                self._drop(who, key, wanted)

    async def unsubscribe(self, who: S, key: ResourceKey, ask: Callable[[], Awaitable[str]]) -> str | None:
        """The computer's answer; `None` if it was not asked, because others still want the resource."""
        wanted = self._wanted.get(key)
        if wanted is None:
            return await ask()
        wanted.by.pop(who, None)
        async with wanted.lock:
            if wanted.by:
                return None
            wanted.is_made = False
            try:
                return await ask()
            finally:
                self._drop(who, key, wanted)

    def gone(self, who: S) -> list[ResourceKey]:
        """Somebody has gone. Returns what nobody wants any more; hand it to `unsubscribe`."""
        keys = [key for key, wanted in self._wanted.items() if who in wanted.by]
        for key in keys:
            del self._wanted[key].by[who]
        return [key for key in keys if not self._wanted[key].by]

    def forget(self, computer: str | None = None) -> None:
        """A computer has come or gone, or all have (`None`): they know no subscription any more."""
        keys: Iterable[ResourceKey] = [key for key in self._wanted if computer in (None, key[0])]
        for key in keys:
            del self._wanted[key]

    def _drop(self, who: S, key: ResourceKey, wanted: _Wanted[S]) -> None:
        wanted.by.pop(who, None)
        if not wanted.by and self._wanted.get(key) is wanted:
            del self._wanted[key]


def _is_yes(answer: str) -> bool:
    try:
        first, *_ = read_ack(answer)
    except ValueError:
        return False
    return isinstance(first, dict) and error_from_payload(first) is None
