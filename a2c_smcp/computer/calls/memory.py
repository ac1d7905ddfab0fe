"""The requests for tool calls: a request that arrives twice runs once, and both times it gets the same reply. Pure.

The caller runs the call. It hands in an entry, which stands for the call while it runs. The clock is passed in.

    admit ──► NEW        run it, then `finish` with the reply, or `forget` it if there will never be one
          ├─► Running    wait for the reply of this entry
          ├─► Finished   answer with this reply
          └─► RAN        it has run, and its reply does not fit into the memory any more

This is no part of `CallLog`: it knows requests by who asks and by their ids, also those that are refused before a call
begins, and it keeps what was sent, for five minutes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Generic, Literal, NamedTuple, TypeAlias, TypeVar

from a2c_smcp.computer.calls.log import sorted_json
from a2c_smcp.errors import BadRequestError, TooManyRequestsError
from a2c_smcp.types import TOOL_NAME
from a2c_smcp.utils.bounded import BoundedDict
from a2c_smcp.utils.json_sizes import flat_weight, weight_of_json

__all__ = ["NEW", "RAN", "CallAdmission", "CallKey", "CallMemory", "Finished", "Running"]

E = TypeVar("E")
R = TypeVar("R")


_TEXTS: Final = frozenset({str})


class CallKey(NamedTuple):
    """Names a request: two requests with the same key are the same request. A tuple, because each call hashes it
    often.
    """

    office: str
    name: str
    """The name of who asks. Whether it is `bound` counts, too: who only claims it gets nobody's results."""
    bound: bool
    agent: str
    """The id of the sender's own in the request."""
    req_id: str


class _Without(Enum):
    NEW = "new"
    RAN = "ran"


#: The request is not known, or not any more.
NEW: Final = _Without.NEW
#: It is known that the request has run, and nothing else.
RAN: Final = _Without.RAN


@dataclass(frozen=True, slots=True)
class Running(Generic[E]):
    entry: E


@dataclass(frozen=True, slots=True)
class Finished(Generic[R]):
    result: R


CallAdmission: TypeAlias = Literal[_Without.NEW, _Without.RAN] | Running[E] | Finished[R]


class CallMemory(Generic[E, R]):
    """Calls by key: the running ones with the caller's entry, the finished ones with their result.

    At most `max_running` calls run, or wait for a person, at once. Their params may take about `max_running_bytes`.
    Of a finished call whose result does not fit any more it is remembered that it has run, for `max_ran` calls.
    """

    def __init__(
        self,
        remembered_seconds: float = 300.0,
        max_results: int = 256,
        max_bytes: int = 16 * 1024 * 1024,
        max_running: int = 1024,
        max_running_bytes: int = 64 * 1024 * 1024,
        max_ran: int = 10_000,
    ) -> None:
        self._remembered_seconds = remembered_seconds
        self._max_running = max_running
        self._max_running_bytes = max_running_bytes
        #: The hash of the request, the entry, and about how many bytes its params take.
        self._running: dict[CallKey, tuple[int, E, int]] = {}
        self._running_bytes = 0
        #: The hash of the request, its result, and when it came.
        self._finished: BoundedDict[CallKey, tuple[int, R, float]] = BoundedDict(max_results, heaviest=max_bytes)
        #: The same without the result, by the hash of the key: hashes have a secret key in each process.
        self._ran: BoundedDict[int, tuple[int, float]] = BoundedDict(max_ran)
        self._next_look = 0.0

    def admit(
        self, key: CallKey, tool: TOOL_NAME, params: Mapping[str, Any], entry: E, now: float
    ) -> CallAdmission[E, R]:
        """What to do with a request. If it is `NEW`, `entry` is kept for its repeats.

        Raises `BadRequestError` for a known key with another tool or other params, and `TooManyRequestsError` for one
        call too many. Neither changes anything.
        """
        size = flat_weight(params)
        if size is not None and {*map(type, params.values())} <= _TEXTS:
            request = hash((tool, frozenset(params.items())))  # not so with numbers: -1 and -2 have one hash
        else:
            text = sorted_json([tool, params])
            size, request = weight_of_json(text) if size is None else size, hash(text)
        if (running := self._running.get(key)) is not None:
            _check_same(key, running[0], request)
            return Running(running[1])
        too_old = now - self._remembered_seconds
        if (finished := self._finished.get(key)) is not None and finished[2] >= too_old:
            _check_same(key, finished[0], request)
            return Finished(finished[1])
        if (ran := self._ran.get(hash(key))) is not None and ran[1] >= too_old:
            _check_same(key, ran[0], request)
            return RAN
        size += len(key.office) + len(key.name) + len(key.agent) + len(key.req_id)
        # One call alone may be larger: the size of a message limits it. A small call is always let in.
        is_over = size > 16 * 1024 and self._running_bytes + size > self._max_running_bytes
        if len(self._running) >= self._max_running or (is_over and self._running):
            self._refuse()
        self._running[key] = request, entry, size
        self._running_bytes += size
        return NEW

    def _refuse(self) -> None:
        if len(self._running) >= self._max_running:
            raise TooManyRequestsError(
                f"{self._max_running} calls run or wait at this computer; try again when some of them have ended"
            )
        raise TooManyRequestsError(
            f"the params of the calls that run or wait at this computer take {self._running_bytes} bytes of "
            f"{self._max_running_bytes}; try again when some of them have ended"
        )

    def running(self, office: str, agent: str, req_id: str) -> list[E]:
        """The entries of the calls that run now and have these ids. A cancel does not say more."""
        ids = (office, agent, req_id)
        return [entry for key, (_, entry, _) in self._running.items() if (key.office, key.agent, key.req_id) == ids]

    def all_running(self, office: str | None = None) -> list[E]:
        """The entries of all calls that run now, or of those from one office."""
        return [entry for key, (_, entry, _) in self._running.items() if office in (None, key.office)]

    def finish(self, key: CallKey, result: R, size: int, now: float) -> None:
        """Remember the result of a running call, which has `size` bytes."""
        request, _, params = self._running.pop(key)
        self._running_bytes -= params
        if now >= self._next_look:
            self._next_look = now + self._remembered_seconds / 10
            self._finished.forget_before(now - self._remembered_seconds)
            self._ran.forget_before(now - self._remembered_seconds)
        size += len(key.office) + len(key.name) + len(key.agent) + len(key.req_id)
        for old, (ran, _, at) in self._finished.put(key, (request, result, now), now, size):
            self._ran.put(hash(old), (ran, at), at)

    def forget(self, key: CallKey) -> None:
        """Forget a running call that will never have a result. A repeat of the request is `NEW` again."""
        if (running := self._running.pop(key, None)) is not None:
            self._running_bytes -= running[2]


def _check_same(key: CallKey, known: int, request: int) -> None:
    if known != request:
        raise BadRequestError(
            "this req_id was used for another tool or other params; a new call needs a new req_id",
            {"req_id": key.req_id},
        )
