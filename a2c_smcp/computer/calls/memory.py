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
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

import orjson

from a2c_smcp.computer.calls.log import flat_weight, weight_of_json
from a2c_smcp.errors import BadRequestError, TooManyRequestsError
from a2c_smcp.types import TOOL_NAME

__all__ = [
    "MAX_BYTES",
    "MAX_RESULTS",
    "MAX_RUNNING",
    "MAX_RUNNING_BYTES",
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
#: How many calls may run or wait for a person at once, and how many bytes of memory their params may have, about.
MAX_RUNNING: Final = 1024
MAX_RUNNING_BYTES: Final = 64 * 1024 * 1024
#: A request that is larger is remembered by its hash: Python's own has a key of this process, and takes a quarter of
#: the time of a digest.
_KEPT: Final = 16 * 1024
#: What always has room, unless there are too many.
_SMALL: Final = 16 * 1024

E = TypeVar("E")
R = TypeVar("R")


class CallKey(NamedTuple):
    """What makes two requests the same one. A tuple: it is hashed nine times in a call."""

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


@dataclass(slots=True)
class _Admitted(Generic[E]):
    request: bytes
    entry: E
    size: int


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
        max_running: int = MAX_RUNNING,
        max_running_bytes: int = MAX_RUNNING_BYTES,
    ) -> None:
        self._remembered_seconds = remembered_seconds
        self._max_results = max_results
        self._max_bytes = max_bytes
        self._max_running = max_running
        self._max_running_bytes = max_running_bytes
        self._running: dict[CallKey, _Admitted[E]] = {}
        self._running_bytes = 0
        # Finished calls are inserted in the order in which they expire.
        self._finished: dict[CallKey, _Result[R]] = {}
        self._bytes = 0

    def admit(
        self, key: CallKey, tool: TOOL_NAME, params: Mapping[str, Any], entry: E, now: float
    ) -> CallAdmission[E, R]:
        """What to do with a request; `New` keeps `entry` for its repeats.

        The same key with another tool or params raises `BadRequestError`, one call too many `TooManyRequestsError`;
        neither changes anything.
        """
        self._evict(now)
        text = _text(tool, params)
        request = _fingerprint(text)
        if running := self._running.get(key):
            _check_same(key, running.request, request)
            return Running(running.entry)
        if finished := self._finished.get(key):
            _check_same(key, finished.request, request)
            return Finished(finished.value)
        flat = flat_weight(params)
        size = key.size + (weight_of_json(text) if flat is None else flat)
        self._check_room(size)
        self._running[key] = _Admitted(request, entry, size)
        self._running_bytes += size
        return New()

    def _check_room(self, size: int) -> None:
        if len(self._running) >= self._max_running:
            raise TooManyRequestsError(
                f"{self._max_running} calls run or wait at this computer; try again when some of them have ended"
            )
        # One alone may be larger: it has its limit in the size of a message. It does not keep small ones out.
        if self._running and size > _SMALL and self._running_bytes + size > self._max_running_bytes:
            raise TooManyRequestsError(
                f"the params of the calls that run or wait at this computer take {self._running_bytes} bytes of "
                f"{self._max_running_bytes}; try again when some of them have ended"
            )

    def running(self, key: CallKey) -> E | None:
        """The entry of a call that runs now: what a cancellation is for."""
        running = self._running.get(key)
        return running.entry if running else None

    def running_in(self, office: str) -> list[E]:
        """The entries of all calls of an office that run now."""
        return [running.entry for key, running in self._running.items() if key.office == office]

    def finish(self, key: CallKey, result: R, size: int, now: float) -> None:
        """Remember the result of a running call; `size` is what it has in bytes when encoded."""
        running = self._running.pop(key)
        self._running_bytes -= running.size
        size += len(running.request) + key.size
        self._finished[key] = _Result(running.request, result, size, now + self._remembered_seconds)
        self._bytes += size
        self._evict(now)

    def forget(self, key: CallKey) -> None:
        """A running call that will never have a result: a repeat of the request is `New` again."""
        if running := self._running.pop(key, None):
            self._running_bytes -= running.size

    def _evict(self, now: float) -> None:
        """Drop the oldest results until the rest are young, few and small enough."""
        while self._finished:
            oldest = next(iter(self._finished))
            result = self._finished[oldest]
            if result.expires > now and len(self._finished) <= self._max_results and self._bytes <= self._max_bytes:
                return
            del self._finished[oldest]
            self._bytes -= result.size


def _text(tool: TOOL_NAME, params: Mapping[str, Any]) -> bytes:
    try:
        return orjson.dumps([tool, params], option=orjson.OPT_SORT_KEYS)
    except TypeError:  # what only the standard library takes, an integer over 64 bits for instance
        return json.dumps([tool, params], sort_keys=True).encode()


def _fingerprint(text: bytes) -> bytes:
    """The call as text, for comparison, or a hash of a call that is too large to be kept."""
    return text if len(text) <= _KEPT else b"%d bytes, %d" % (len(text), hash(text))


def _check_same(key: CallKey, known: bytes, request: bytes) -> None:
    if known != request:
        raise BadRequestError(
            "this req_id was used for another tool or other params; a new call needs a new one", {"req_id": key.req_id}
        )
