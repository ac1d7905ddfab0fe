"""The memory of tool calls: a request that arrives twice runs once, and both get the same result.

Bookkeeping only. Who runs a call, and what others wait on while it runs, is the shell's: it hands in an entry (a
future, say), and gets it back for every repeat. The clock is passed in.

    admit ──► New        run it, then `finish` with the result, or `forget` it if there will never be one
          ├─► Running    wait for what the entry promises
          └─► Finished   answer with this
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeAlias, TypeVar

import orjson

from a2c_smcp.errors import BadRequestError
from a2c_smcp.types import TOOL_NAME

__all__ = [
    "MAX_BYTES",
    "MAX_RESULTS",
    "REMEMBERED_SECONDS",
    "CallAdmission",
    "CallKey",
    "CallMemory",
    "Finished",
    "New",
    "Running",
]

REMEMBERED_SECONDS: Final = 300.0
MAX_RESULTS: Final = 256
MAX_BYTES: Final = 64 * 1024 * 1024
#: A request that is larger is remembered by its hash: Python's own has a key of this process, and takes a quarter of
#: the time of a digest.
_KEPT: Final = 16 * 1024

E = TypeVar("E")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class CallKey:
    """What makes two requests the same one."""

    office: str
    agent: str
    req_id: str

    @property
    def size(self) -> int:
        """How many characters it has."""
        return len(self.office) + len(self.agent) + len(self.req_id)


@dataclass(frozen=True, slots=True)
class New:
    """Not seen before, or forgotten since."""


@dataclass(frozen=True, slots=True)
class Running(Generic[E]):
    entry: E


@dataclass(frozen=True, slots=True)
class Finished(Generic[R]):
    result: R


CallAdmission: TypeAlias = New | Running[E] | Finished[R]


@dataclass(frozen=True, slots=True)
class _Result(Generic[R]):
    request: bytes
    value: R
    size: int
    expires: float


class CallMemory(Generic[E, R]):
    """Calls by key: the running ones with the shell's entry, the finished ones with their result."""

    def __init__(
        self,
        remembered_seconds: float = REMEMBERED_SECONDS,
        max_results: int = MAX_RESULTS,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self._remembered_seconds = remembered_seconds
        self._max_results = max_results
        self._max_bytes = max_bytes
        self._running: dict[CallKey, tuple[bytes, E]] = {}
        # Finished calls are inserted in the order in which they expire.
        self._finished: dict[CallKey, _Result[R]] = {}
        self._bytes = 0

    def admit(
        self, key: CallKey, tool: TOOL_NAME, params: Mapping[str, Any], entry: E, now: float
    ) -> CallAdmission[E, R]:
        """What to do with a request; `New` keeps `entry` for its repeats.

        The same key with another tool or params raises `BadRequestError`, and changes nothing.
        """
        self._evict(now)
        request = _fingerprint(tool, params)
        if running := self._running.get(key):
            _check_same(key, running[0], request)
            return Running(running[1])
        if finished := self._finished.get(key):
            _check_same(key, finished.request, request)
            return Finished(finished.value)
        self._running[key] = (request, entry)
        return New()

    def running(self, key: CallKey) -> E | None:
        """The entry of a call that runs now: what a cancellation is for."""
        running = self._running.get(key)
        return running[1] if running else None

    def running_in(self, office: str) -> list[E]:
        """The entries of all calls of an office that run now."""
        return [entry for key, (_, entry) in self._running.items() if key.office == office]

    def finish(self, key: CallKey, result: R, size: int, now: float) -> None:
        """Remember the result of a running call; `size` is what it has in bytes when encoded."""
        request, _ = self._running.pop(key)
        size += len(request) + key.size
        self._finished[key] = _Result(request, result, size, now + self._remembered_seconds)
        self._bytes += size
        self._evict(now)

    def forget(self, key: CallKey) -> None:
        """A running call that will never have a result: a repeat of the request is `New` again."""
        self._running.pop(key, None)

    def _evict(self, now: float) -> None:
        """Drop the oldest results until the rest are young, few and small enough."""
        while self._finished:
            oldest = next(iter(self._finished))
            result = self._finished[oldest]
            if result.expires > now and len(self._finished) <= self._max_results and self._bytes <= self._max_bytes:
                return
            del self._finished[oldest]
            self._bytes -= result.size


def _fingerprint(tool: TOOL_NAME, params: Mapping[str, Any]) -> bytes:
    """The call as text, for comparison; a hash of a call that is too large to be kept."""
    try:
        text = orjson.dumps([tool, params], option=orjson.OPT_SORT_KEYS)
    except TypeError:  # what only the standard library takes, an integer over 64 bits for instance
        text = json.dumps([tool, params], sort_keys=True).encode()
    return text if len(text) <= _KEPT else b"%d bytes, %d" % (len(text), hash(text))


def _check_same(key: CallKey, known: bytes, request: bytes) -> None:
    if known != request:
        raise BadRequestError(
            "this req_id was used for another tool or other params; a new call needs a new one", {"req_id": key.req_id}
        )
