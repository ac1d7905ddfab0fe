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

from a2c_smcp.errors import BadRequestError, TooManyRequestsError
from a2c_smcp.types import TOOL_NAME
from a2c_smcp.utils.bounded import BoundedDict
from a2c_smcp.utils.json_sizes import flat_weight, weight_of_json

__all__ = [
    "CallAdmission",
    "CallKey",
    "CallMemory",
    "Finished",
    "New",
    "Running",
]

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


class CallMemory(Generic[E, R]):
    """Calls by key: the running ones with the shell's entry, the finished ones with their result.

    So many may run or wait for a person at once, with params of about `max_running_bytes` of memory together.
    """

    def __init__(
        self,
        remembered_seconds: float = 300.0,
        max_results: int = 256,
        max_bytes: int = 64 * 1024 * 1024,
        max_running: int = 1024,
        max_running_bytes: int = 64 * 1024 * 1024,
    ) -> None:
        self._remembered_seconds = remembered_seconds
        self._max_running = max_running
        self._max_running_bytes = max_running_bytes
        self._running: dict[CallKey, _Admitted[E]] = {}
        self._running_bytes = 0
        self._finished: BoundedDict[CallKey, _Result[R]] = BoundedDict(
            max_results, heaviest=max_bytes, weigh=lambda result: result.size
        )

    def admit(
        self, key: CallKey, tool: TOOL_NAME, params: Mapping[str, Any], entry: E, now: float
    ) -> CallAdmission[E, R]:
        """What to do with a request; `New` keeps `entry` for its repeats.

        The same key with another tool or params raises `BadRequestError`, one call too many `TooManyRequestsError`;
        neither changes anything.
        """
        self._finished.forget_before(now - self._remembered_seconds)
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
        self._finished.forget_before(now - self._remembered_seconds)
        self._finished.put(key, _Result(running.request, result, size), now)

    def forget(self, key: CallKey) -> None:
        """A running call that will never have a result: a repeat of the request is `New` again."""
        if running := self._running.pop(key, None):
            self._running_bytes -= running.size


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
