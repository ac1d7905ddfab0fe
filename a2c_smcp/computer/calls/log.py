"""The tool calls that run, and the last ones that ended, for people who watch. Pure: the clocks are passed in.

Two agents may use the same `req_id`, so each call has an id of ours. A call costs a few microseconds here whether
somebody watches or not: the values that watchers see are made when they are asked for. What is kept of calls that
ended has bounds, in number and in bytes; objects within objects are kept as JSON, which takes a fifth of their memory
and is written faster than they are counted.
"""

import hashlib
import itertools
import json
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import orjson

from a2c_smcp.results import (
    CANCELLED_MARKER,
    ERROR_CODE_MARKER,
    OUTCOME_MARKER,
    REASON_MARKER,
    TIMEOUT_MARKER,
    TOOL_META_MARKER,
    structured_object,
    to_wire,
)
from a2c_smcp.smcp import CallToolRet
from a2c_smcp.types import SERVER_NAME, TOOL_NAME
from a2c_smcp.utils.bounded import BoundedDict
from a2c_smcp.utils.json_sizes import CUT_MARK, Budget, cut_into, cut_value, flat_weight, json_or_none, weight
from a2c_smcp.wire import codec

if TYPE_CHECKING:
    from mcp_types import CallToolResult

__all__ = [
    "KEPT_CALLS",
    "SHOWN_CALLS",
    "CallLog",
    "CallOutcome",
    "EndedCall",
    "ProgressReport",
    "RunningCall",
    "Verdict",
    "WatchedCall",
]

#: How many calls that ended are kept.
KEPT_CALLS: Final = 1000
#: How many of them a watcher begins with; the others are built when they are asked for.
SHOWN_CALLS: Final = 100

#: The markers that the Computer makes itself, and that are small.
_OWN_MARKERS: Final = frozenset(
    {TOOL_META_MARKER, ERROR_CODE_MARKER, TIMEOUT_MARKER, CANCELLED_MARKER, OUTCOME_MARKER, REASON_MARKER}
)


#: What became of a call: its tool `succeeded` or `failed`, or the Computer or somebody there stopped it.
CallOutcome: TypeAlias = Literal["succeeded", "failed", "cancelled", "refused", "unanswered", "nobody", "timed_out"]
#: What the person or program did that decided about a call.
Verdict: TypeAlias = Literal["allowed", "refused", "cancelled"]


@dataclass(frozen=True, slots=True)
class WatchedCall:
    """A tool call: who made it, and of what. `digest` stands for server, tool and arguments."""

    id: str
    """Ours, and unique in the process: two agents may use the same `req_id`."""
    req_id: str
    agent: str | None
    """`None` for a call that comes from no agent: one of this program, or of the person at the computer."""
    server: SERVER_NAME | None
    """`None` for a name that no server has."""
    tool: TOOL_NAME | None
    """The server's own name for it."""
    name: TOOL_NAME
    """The name that agents see."""
    arguments: Mapping[str, Any]
    timeout: float | None
    started_at: float
    """Unix time."""
    office: str | None = None
    """Where the call came from; `None` for one that came from no office."""

    @property
    def digest(self) -> str:
        """The SHA-256 of server, tool and arguments, in hex."""
        return digest_of([self.server, self.tool, self.arguments])


@dataclass(frozen=True, slots=True)
class ProgressReport:
    """How far a call is, as its tool reports it."""

    progress: float
    total: float | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class RunningCall:
    """A call that has no result yet; perhaps it waits for a confirmation."""

    call: WatchedCall
    progress: ProgressReport | None


@dataclass(frozen=True, slots=True)
class EndedCall:
    """A call and its result, as the agent sees them. Of what is very large, only a part is kept."""

    call: WatchedCall
    duration: float
    """Seconds."""
    result: CallToolRet
    decided_by: str | None
    """Who confirmed or refused it, or cancelled it while it ran; `verdict` says which."""
    stopped: CallOutcome | None = None
    """Why it did not run, or not to its end. The Computer's own word: an MCP server may write anything into `meta`."""
    cancelled_here: bool = False
    """Whether somebody at the computer wanted it cancelled."""

    @property
    def outcome(self) -> CallOutcome:
        """What became of it."""
        return self.stopped or ("succeeded" if self.ok else "failed")

    @property
    def verdict(self) -> Verdict | None:
        """What `decided_by` did; `None` if that made no difference, or if nobody decided."""
        if self.decided_by is None:
            return None
        if self.cancelled_here:
            return "cancelled" if self.stopped == "cancelled" else None
        return "refused" if self.stopped == "refused" else "allowed"

    @property
    def ok(self) -> bool:
        """Whether the tool did what it was asked to."""
        return not self.result["isError"]

    @property
    def code(self) -> int | None:
        """The code of the protocol, if it failed with one: 4001 to 4005, 413."""
        code = (self.result["meta"] or {}).get(ERROR_CODE_MARKER)
        return code if isinstance(code, int) else None

    @property
    def cancelled(self) -> bool:
        """Whether it was cancelled, by the agent or at the computer."""
        return self.stopped == "cancelled"


class LoggedCall:
    """The log's entry of one call. Its owner says what becomes of it; `call` is the view for watchers."""

    server: SERVER_NAME | None = None
    tool: TOOL_NAME | None = None
    office: str | None = None
    progress: ProgressReport | None = None
    decided_by: str | None = None
    is_cancelled = False
    """At the computer: an agent that cancels its call needs no word of it."""
    stopped: CallOutcome | None = None
    duration = 0.0
    size = 0
    _call: WatchedCall | None = None
    _result: "CallToolResult | CallToolRet"
    #: JSON in the place of what was there.
    _arguments_text: str | None = None
    _structured_text: str | None = None

    def __init__(
        self,
        call_id: str,
        req_id: str,
        agent: str | None,
        name: TOOL_NAME,
        arguments: dict[str, Any],
        timeout: float | None,
        started_at: float,
        started: float,
        cancel: Callable[[], None],
    ) -> None:
        self.id = call_id
        self.req_id = req_id
        self.agent = agent
        self.name = name
        self.arguments = arguments
        self.timeout = timeout
        self.started_at = started_at
        self.started = started
        self.cancel: Callable[[], None] = cancel

    @property
    def call(self) -> WatchedCall:
        # What is built from its JSON is not kept: it may take twenty times the memory.
        if self._arguments_text is not None:
            return self._watched(codec.loads(self._arguments_text))
        if self._call is None:
            self._call = self._watched(self.arguments)
        return self._call

    def _watched(self, arguments: Mapping[str, Any]) -> WatchedCall:
        return WatchedCall(
            self.id,
            self.req_id,
            self.agent,
            self.server,
            self.tool,
            self.name,
            arguments,
            self.timeout,
            self.started_at,
            self.office,
        )

    @property
    def ended(self) -> EndedCall:
        if not isinstance(self._result, dict):
            self._result = to_wire(self._result)
        result = self._result
        if self._structured_text is not None:
            result = result.copy()
            result["structuredContent"] = codec.loads(self._structured_text)
        return EndedCall(self.call, self.duration, result, self.decided_by, self.stopped, self.is_cancelled)

    @property
    def size_of_names(self) -> int:
        """How many characters of an agent it has besides its arguments."""
        return len(self.req_id) + len(self.name) + len(self.agent or "")

    def end(self, result: "CallToolResult", now: float, most: int) -> None:
        self.duration = now - self.started
        self.cancel = _nothing  # it holds the call's task
        self.size = self.size_of_names + self._keep_arguments(most) + self._keep_result(result, most)

    def _keep_arguments(self, most: int) -> int:
        kept, size = _kept(self.arguments, most) or _kept_part(cut_value(self.arguments, most), most)
        if kept is not self.arguments:
            self._call = None
        if isinstance(kept, str):
            self._arguments_text, self.arguments = kept, {}
        else:
            self.arguments = kept
        return size

    def _keep_result(self, result: "CallToolResult", most: int) -> int:
        self._result = result
        size = weight_of_content(result, most)
        if result.structured_content is None and size <= most:
            return size
        structured = _kept(structured_object(result.structured_content) or {}, most - size)
        if structured is None:
            self._result = _cut_result(to_wire(result), most)
            return most
        if isinstance(structured[0], str):
            self._structured_text = structured[0]
            self._result = result.model_copy(update={"structured_content": None})
        return size + structured[1]


class CallLog:
    """`start` a call, then `end` it with its result, once. Of calls that ended about `kept_bytes` are kept, and of the
    arguments of one, and of its result, `kept_of_a_call`.
    """

    def __init__(
        self, kept_calls: int = KEPT_CALLS, kept_bytes: int = 16 * 1024 * 1024, kept_of_a_call: int = 1024 * 1024
    ) -> None:
        self._kept_of_a_call = kept_of_a_call
        self._running: dict[str, LoggedCall] = {}
        self._ended: BoundedDict[str, LoggedCall] = BoundedDict(
            kept_calls, heaviest=kept_bytes, weigh=lambda entry: entry.size
        )
        self._prefix = secrets.token_hex(4)
        self._numbers = itertools.count(1)

    def start(
        self,
        req_id: str,
        agent: str | None,
        name: TOOL_NAME,
        arguments: dict[str, Any],
        timeout: float | None,
        *,
        unix_time: float,
        now: float,
        cancel: Callable[[], None],
    ) -> LoggedCall:
        """A new running call; `cancel` is what ends it early. Which tool it is may be said later."""
        call_id = f"{self._prefix}-{next(self._numbers)}"
        entry = LoggedCall(call_id, req_id, agent, name, arguments, timeout, unix_time, now, cancel)
        self._running[call_id] = entry
        return entry

    def end(self, entry: LoggedCall, result: "CallToolResult", now: float) -> int:
        """The call has this result; the oldest of those that ended are forgotten until the rest fit.

        Returns how many bytes were forgotten, about.
        """
        del self._running[entry.id]
        entry.end(result, now, self._kept_of_a_call)
        return sum(forgotten.size for _, forgotten in self._ended.put(entry.id, entry))

    def find(self, call_id: str) -> LoggedCall | None:
        """The entry of a call that runs now."""
        return self._running.get(call_id)

    def find_ended(self, call_id: str) -> EndedCall | None:
        """One of the last calls that ended; the others are not built."""
        entry = self._ended.get(call_id)
        return None if entry is None else entry.ended

    @property
    def running(self) -> tuple[RunningCall, ...]:
        """The calls that run, oldest first."""
        return tuple(RunningCall(entry.call, entry.progress) for entry in self._running.values())

    @property
    def ended(self) -> tuple[EndedCall, ...]:
        """The last hundred calls that ended, oldest first."""
        return tuple(entry.ended for entry in self._ended.values()[-SHOWN_CALLS:])

    def past(self, before: str | None = None) -> Iterator[EndedCall]:
        """The calls that ended and are kept, newest first; with `before`, an id, those that ended before that call.

        Each is built when it is reached, in any thread. A call that the log forgets meanwhile is still handed out.
        """
        entries = self._ended.values()
        if before is not None:
            # If that call is not kept any more, no earlier one is.
            del entries[next((at for at, entry in enumerate(entries) if entry.id == before), 0) :]
        return (entry.ended for entry in reversed(entries))


def _nothing() -> None:
    pass


# --- digests


def digest_of(value: Any) -> str:
    """The SHA-256 of a JSON value, in hex: the same for the same value, whatever the order of its keys."""
    try:
        text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # what only the standard library takes, an integer over 64 bits for instance
        text = json.dumps(value, sort_keys=True, default=str).encode()
    return hashlib.sha256(text).hexdigest()


# --- sizes


def weight_of_content(result: "CallToolResult", most: int) -> int:
    """The same of a tool's result, without its structured content."""
    meta = result.meta
    total = 0 if meta is None or meta.keys() <= _OWN_MARKERS else weight(meta, most)
    for item in result.content:
        if total > most:
            break
        total += _weight_of_item(item.__dict__, most)  # `getattr` for a field costs more than all the rest
    return total


def _kept(value: dict[str, Any], room: int) -> tuple[dict[str, Any] | str, int] | None:
    """An object as it is kept, and its size; `None` for one that does not fit, or that JSON cannot say."""
    size = flat_weight(value)
    if size is not None:
        return (value, size) if size <= room else None
    text = json_or_none(value)
    return (text, len(text)) if text is not None and len(text) <= room else None


def _kept_part(value: dict[str, Any], most: int) -> tuple[dict[str, Any], int]:
    """What was cut, or what JSON cannot say, and its size."""
    return value, min(weight(value, most), most)


def _weight_of_item(fields: dict[str, Any], most: int) -> int:
    """The same of the fields of a content item, or of a model inside one."""
    # About how many bytes Python takes for a model of mcp's.
    total = 512
    for value in fields.values():
        if type(value) is str:
            total += len(value)
        elif value is None:
            continue
        elif isinstance(value, dict):
            total += weight(value, most)
        elif isinstance(value, list):
            total += sum(_weight_of_item(getattr(each, "__dict__", {"": each}), most) for each in value)
        else:
            total += _weight_of_item(getattr(value, "__dict__", {}), most)
    return total


def _cut_result(result: CallToolRet, most: int) -> CallToolRet:
    room = Budget(most)
    content = [_fitted_item(item, room) for item in result["content"]]
    # Its markers are the Computer's own, and small, but for what a server or a transformation put there.
    meta = {key: cut_into(value, room) for key, value in (result["meta"] or {}).items()} or None
    structured = cut_into(result["structuredContent"], room)
    if not isinstance(structured, dict | None):
        structured = {CUT_MARK: "too large to be kept"}
    return {"meta": meta, "content": content, "structuredContent": structured, "isError": result["isError"]}


def _fitted_item(item: dict[str, Any], room: Budget) -> dict[str, Any]:
    """A content item, or a text in the place of an image that does not fit: half an image shows nothing."""
    within = item.get("resource", item)
    binary = next((within[key] for key in ("data", "blob") if isinstance(within.get(key), str)), "")
    if len(binary) > room.left:
        kind = within.get("mimeType") or item.get("type")
        return {"type": "text", "text": f"[{kind}, {len(binary)} characters of base64: too large to be kept]"}
    fitted = cut_into(item, room)
    return fitted if isinstance(fitted, dict) else {"type": "text", "text": CUT_MARK}
