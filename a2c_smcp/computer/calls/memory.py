"""The requests for tool calls: a request that arrives twice runs once, and both times it gets the same reply. Pure.

The caller runs the call. It hands in an entry, on which the repeats of the request can wait. The clock is passed in.

    admit ──► New        run it, then `finish` with the reply, or `forget` it if there will never be one
          ├─► Running    wait for this entry
          └─► Finished   answer with this reply

This is no part of `CallLog`: it knows requests by who asks and by their ids, also those that are refused before a call
begins, and it keeps the bytes that were sent, for five minutes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from a2c_smcp.computer.calls.log import sorted_json
from a2c_smcp.errors import BadRequestError, TooManyRequestsError
from a2c_smcp.types import TOOL_NAME
from a2c_smcp.utils.bounded import BoundedDict
from a2c_smcp.utils.json_sizes import flat_weight, weight_of_json

__all__ = ["CallAdmission", "CallKey", "CallMemory", "Finished", "New", "Running"]

E = TypeVar("E")
R = TypeVar("R")


class CallKey(NamedTuple):
    """Names a request: two requests with the same key are the same request. A tuple, because each call hashes it
    nine times.
    """

    office: str
    name: str
    """The name of who asks. Whether it is `bound` counts, too: who only claims it gets nobody's results."""
    bound: bool
    agent: str
    """The id of the sender's own in the request."""
    req_id: str

    @property
    def size(self) -> int:
        """How many characters it has."""
        return len(self.office) + len(self.name) + len(self.agent) + len(self.req_id)


@dataclass(frozen=True, slots=True)
class New:
    """The request is not known, or not any more."""


@dataclass(frozen=True, slots=True)
class Running(Generic[E]):
    entry: E


@dataclass(frozen=True, slots=True)
class Finished(Generic[R]):
    result: R


CallAdmission: TypeAlias = New | Running[E] | Finished[R]


@dataclass(slots=True)
class _Admitted(Generic[E]):
    request: int
    entry: E
    size: int


@dataclass(frozen=True, slots=True)
class _Result(Generic[R]):
    request: int
    value: R
    size: int


class CallMemory(Generic[E, R]):
    """Calls by key: the running ones with the caller's entry, the finished ones with their result.

    At most `max_running` calls run, or wait for a person, at once. Their params may take about `max_running_bytes`.
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
        """What to do with a request. If it is `New`, `entry` is kept for its repeats.

        Raises `BadRequestError` for a known key with another tool or other params, and `TooManyRequestsError` for one
        call too many. Neither changes anything.
        """
        self._finished.forget_before(now - self._remembered_seconds)
        text = sorted_json([tool, params])
        request = hash(text)  # has a secret key in each process, and takes a quarter of the time of a digest
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
        # One call alone may be larger: the size of a message limits it. A small call is always let in.
        if self._running and size > 16 * 1024 and self._running_bytes + size > self._max_running_bytes:
            raise TooManyRequestsError(
                f"the params of the calls that run or wait at this computer take {self._running_bytes} bytes of "
                f"{self._max_running_bytes}; try again when some of them have ended"
            )

    def running(self, office: str, agent: str, req_id: str) -> list[E]:
        """The entries of the calls that run now and have these ids. A cancel does not say more."""
        ids = (office, agent, req_id)
        return [each.entry for key, each in self._running.items() if (key.office, key.agent, key.req_id) == ids]

    def all_running(self, office: str | None = None) -> list[E]:
        """The entries of all calls that run now, or of those from one office."""
        return [running.entry for key, running in self._running.items() if office in (None, key.office)]

    def finish(self, key: CallKey, result: R, size: int, now: float) -> None:
        """Remember the result of a running call, which has `size` bytes."""
        running = self._running.pop(key)
        self._running_bytes -= running.size
        self._finished.forget_before(now - self._remembered_seconds)
        self._finished.put(key, _Result(running.request, result, size + key.size), now)

    def forget(self, key: CallKey) -> None:
        """Forget a running call that will never have a result. A repeat of the request is `New` again."""
        if running := self._running.pop(key, None):
            self._running_bytes -= running.size


def _check_same(key: CallKey, known: int, request: int) -> None:
    if known != request:
        raise BadRequestError(
            "this req_id was used for another tool or other params; a new call needs a new req_id",
            {"req_id": key.req_id},
        )
