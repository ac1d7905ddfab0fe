"""The one record of each tool call, while it runs and for some time after. Pure: the clocks are passed in.

`LoggedCall` is the record. Events, decisions, snapshots and the history show views of it: `WatchedCall`, `RunningCall`,
`EndedCall`, `ToolCallRecord`. A view is made when somebody asks for it, so a call that nobody watches costs a few
microseconds here. Each call has an id of ours, because two agents may use the same `req_id`.

What is kept of ended calls is bounded, in number and in bytes. The result of an agent's call is kept as the JSON that
was sent, which the memory for repeats has, too. Nested objects are kept as JSON: that takes a fifth of their memory,
and writing it is faster than weighing them.
"""

import hashlib
import itertools
import json
import math
import secrets
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

import orjson

from a2c_smcp.computer.asker import Asker
from a2c_smcp.computer.types import ToolCallRecord
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
from a2c_smcp.wire import Encoded, codec

if TYPE_CHECKING:
    from mcp_types import CallToolResult

    from a2c_smcp.computer.decisions.callers import Caller
    from a2c_smcp.computer.rules.store import RulesInForce

__all__ = [
    "CallLog",
    "CallOutcome",
    "DecidedBy",
    "EndedCall",
    "HowDecided",
    "KeptCalls",
    "LoggedCall",
    "ProgressReport",
    "RunningCall",
    "Verdict",
    "WatchedCall",
    "digest_of",
    "sorted_json",
]

#: The markers that the Computer puts into a result itself. They are small.
_OWN_MARKERS: Final = frozenset(
    {TOOL_META_MARKER, ERROR_CODE_MARKER, TIMEOUT_MARKER, CANCELLED_MARKER, OUTCOME_MARKER, REASON_MARKER}
)

#: What became of a call: its tool `succeeded` or `failed`, or the Computer or a person there stopped it.
CallOutcome: TypeAlias = Literal["succeeded", "failed", "cancelled", "refused", "unanswered", "nobody", "timed_out"]
#: What a person or a program decided about a call.
Verdict: TypeAlias = Literal["allowed", "refused", "cancelled"]
#: What decided whether a call may run: `auto_apply` in the `config`, a `rule`, a `person` at a place, a `program` by
#: its callback, the option `yes` for every call, or `nobody`.
DecidedBy: TypeAlias = Literal["config", "rule", "person", "program", "yes", "nobody"]


@dataclass(frozen=True, slots=True)
class HowDecided:
    """How it was decided whether a call may run."""

    by: DecidedBy = "nobody"
    """`nobody` if the call never came so far, if nobody was there to be asked, or if nobody answered."""
    place: str | None = None
    """Where a person or a program decided: `terminal`, the name of a page or its device, `callback`."""
    rule: str | None = None
    """The rule that decided, by its name."""


@dataclass(frozen=True, slots=True)
class KeptCalls:
    """How much a Computer keeps of the calls that ended."""

    calls: int = 1000
    shown: int = 100
    """How many of these calls a snapshot has. Older ones are built when somebody asks for them."""
    history: int = 10
    all_bytes: int = 4 * 2**20
    one_bytes: int = 2**20
    """The most that is kept of the arguments of one call. The same number holds for its result."""


@dataclass(frozen=True, slots=True)
class WatchedCall:
    """A tool call: who called which tool with which arguments."""

    id: str
    """Ours, and unique in the process: two agents may use the same `req_id`."""
    req_id: str
    agent: str | None
    """`None` if this program, or the person at the computer, made the call."""
    server: SERVER_NAME | None
    """`None` if no server has a tool of this name."""
    tool: TOOL_NAME | None
    """The server's own name for the tool."""
    name: TOOL_NAME
    """The name that agents see."""
    arguments: Mapping[str, Any]
    timeout: float | None
    started_at: float
    """Unix time."""
    office: str | None = None
    """The office that the call came from, if it came from one."""
    key: str | None = None
    """The name of the agent's key at the server, if that is known."""
    claimed: bool = True
    """Whether no key is bound to the agent's name: any agent could say it."""

    @property
    def asker(self) -> Asker | None:
        """Who made the call, as rules see it."""
        return None if self.agent is None else Asker(self.agent, self.key, not self.claimed, self.office or "")

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
    """A call that has no result yet. It may still wait for a confirmation."""

    call: WatchedCall
    progress: ProgressReport | None


@dataclass(frozen=True, slots=True)
class EndedCall:
    """A call and its result, as the agent sees them. Very large arguments and results are cut."""

    call: WatchedCall
    duration: float
    """Seconds."""
    result: CallToolRet
    decided_by: str | None
    """Who confirmed, refused or cancelled it; `verdict` says which of these."""
    stopped: CallOutcome | None = None
    """Why it did not run to its end. The Computer says so itself: an MCP server may write anything into `meta`."""
    cancelled_here: bool = False
    """Whether somebody at the computer tried to cancel it."""
    how: HowDecided = HowDecided()
    """How it was decided whether it may run. A cancel changes nothing here."""

    @property
    def outcome(self) -> CallOutcome:
        """What became of it."""
        return self.stopped or ("succeeded" if self.ok else "failed")

    @property
    def verdict(self) -> Verdict | None:
        """What `decided_by` did; `None` if nobody decided, or if a cancel came too late."""
        if self.decided_by is None:
            return None
        if self.cancelled_here:
            return "cancelled" if self.stopped == "cancelled" else None
        return "refused" if self.stopped == "refused" else "allowed"

    @property
    def ok(self) -> bool:
        """Whether the tool succeeded."""
        return not self.result["isError"]

    @property
    def code(self) -> int | None:
        """The protocol's code for the failure, 4001 to 4005 or 413; `None` if there is none."""
        code = (self.result["meta"] or {}).get(ERROR_CODE_MARKER)
        return code if isinstance(code, int) else None

    @property
    def cancelled(self) -> bool:
        """Whether it was cancelled, by the agent or at the computer."""
        return self.stopped == "cancelled"


@dataclass(slots=True, eq=False)
class LoggedCall:
    """The record of one call. `ToolCalls` writes into it what becomes of the call; the properties are views of it."""

    req_id: str
    asker: Asker | None
    name: TOOL_NAME
    arguments: dict[str, Any]
    timeout: float | None
    started_at: float
    """Unix time."""
    started: float
    """By the clock of the event loop."""
    cancel: Callable[[], None]
    """Ends the call early."""
    decided_by: str | None = None
    caller: "Caller | None" = None
    """Who can answer the questions of the call where it came from."""
    tool_ends: float = math.inf
    """When the tool is out of time, by the clock of the event loop."""
    may_start: Callable[[], bool] | None = None
    """Whether what was decided about still holds. Its session asks when the call has its turn."""
    rules: "RulesInForce | None" = None
    """The rules when it was decided; `None` if they are not asked, and once it has ended."""
    counted_by: str | None = None
    """The rule that has counted it."""
    sent: Encoded | None = None
    """The result as it goes to the agent, without the dialect of that agent; `None` if no agent gets it like this."""
    id: str = ""
    server: SERVER_NAME | None = None
    tool: TOOL_NAME | None = None
    progress: ProgressReport | None = None
    is_cancelled: bool = False
    """Whether somebody at the computer cancelled it. A cancel by the call's agent is not noted here."""
    stopped: CallOutcome | None = None
    code: int | None = None
    """The code of the error with which the Computer ended it. An MCP server may write any code into `meta`."""
    how: HowDecided = HowDecided()
    """How it was decided whether it may run. `ToolCalls` writes it before the call goes to its server."""
    sent_at: float | None = None
    """Unix time when it went to its MCP server; `None` if it never reached one."""
    error: str | None = None
    """The error with which it failed there."""
    duration: float = 0.0
    size: int = 0
    #: A text is the JSON of the result.
    _result: "CallToolResult | CallToolRet | str | None" = None
    #: Nested arguments and structured content, as JSON, once the call has ended.
    _arguments_text: str | None = None
    _structured_text: str | None = None

    # What is built from the JSON is not kept: it may take twenty times the memory.

    @property
    def kept_arguments(self) -> dict[str, Any]:
        """The arguments; of a call that has ended, as much of them as is kept."""
        return self.arguments if self._arguments_text is None else codec.loads(self._arguments_text)

    @property
    def has_ended(self) -> bool:
        return self._result is not None

    @property
    def call(self) -> WatchedCall:
        asker = self.asker
        return WatchedCall(
            self.id,
            self.req_id,
            None if asker is None else asker.name,
            self.server,
            self.tool,
            self.name,
            self.kept_arguments,
            self.timeout,
            self.started_at,
            *((None, None, True) if asker is None else (asker.office or None, asker.key, asker.is_claimed)),
        )

    @property
    def ended(self) -> EndedCall:
        result = self._result
        assert result is not None
        if isinstance(result, str):
            result = cast("CallToolRet", codec.loads(result))
        elif not isinstance(result, dict):
            self._result = result = to_wire(result)
        if self._structured_text is not None:
            result = result.copy()
            result["structuredContent"] = codec.loads(self._structured_text)
        return EndedCall(self.call, self.duration, result, self.decided_by, self.stopped, self.is_cancelled, self.how)

    @property
    def past(self) -> ToolCallRecord:
        """The call as the history shows it. It has ended, and has reached its server."""
        assert self.sent_at is not None
        return {
            "timestamp": datetime.fromtimestamp(self.sent_at, UTC).isoformat(),
            "req_id": self.req_id,
            "server": self.server or "",
            "tool": self.tool or "",
            "parameters": self.kept_arguments,
            "timeout": self.timeout,
            "success": self.error is None,
            "error": self.error,
        }

    @property
    def size_of_names(self) -> int:
        """The size of the texts that the agent chose, without the arguments, in characters."""
        return len(self.req_id) + len(self.name) + (0 if self.asker is None else len(self.asker.name))

    def reached(self, sent_at: float, error: str | None) -> None:
        """The call was sent to its MCP server, and came back; with `error`, it failed there."""
        self.sent_at, self.error = sent_at, error

    def end(self, result: "CallToolResult", now: float, most: int) -> None:
        self.duration = now - self.started
        # These keep the call's task and the old rules in memory.
        self.cancel, self.may_start, self.rules = _nothing, None, None
        size = len(self.req_id) + len(self.name) + (0 if self.asker is None else len(self.asker.name))
        arguments = flat_weight(self.arguments)
        size += arguments if arguments is not None and arguments <= most else self._keep_arguments(most)
        if self.sent is not None and len(text := self.sent.text) <= most:
            self._result = text
            self.size = size + len(text)
        else:
            self.size = size + self._keep_result(result, most)

    def _keep_arguments(self, most: int) -> int:
        if (found := _kept(self.arguments, most)) is None:
            cut = cut_value(self.arguments, most)
            found = cut, min(weight(cut, most), most)
        kept, size = found
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


def _nothing() -> None:
    pass


class CallLog:
    """`start` a call, then `end` it with its result, once."""

    def __init__(self, kept: KeptCalls | None = None) -> None:
        self._kept = kept = kept or KeptCalls()
        self._running: dict[str, LoggedCall] = {}
        self._ended: BoundedDict[str, LoggedCall] = BoundedDict(kept.calls, heaviest=kept.all_bytes)
        self._reached: deque[LoggedCall] = deque(maxlen=kept.history)
        self._prefix = secrets.token_hex(4)
        self._numbers = itertools.count(1)

    def start(self, entry: LoggedCall) -> None:
        """File a call that runs from now on, and give it its id. Which tool it calls may be written into it later."""
        entry.id = f"{self._prefix}-{next(self._numbers)}"
        self._running[entry.id] = entry

    def end(self, entry: LoggedCall, result: "CallToolResult", now: float) -> int:
        """The call has this result. Returns about how many bytes of the oldest ended calls were forgotten for it."""
        del self._running[entry.id]
        entry.end(result, now, self._kept.one_bytes)
        if entry.sent_at is not None:
            self._reached.append(entry)
        forgotten = self._ended.put(entry.id, entry, weight=entry.size)
        return sum([each.size for _, each in forgotten]) if forgotten else 0

    @property
    def history(self) -> tuple[ToolCallRecord, ...]:
        """The last ten calls that reached a server, oldest first."""
        return tuple(entry.past for entry in self._reached)

    @property
    def used_servers(self) -> list[SERVER_NAME]:
        """The servers of the `history`, without the rest of it."""
        return [entry.server for entry in self._reached if entry.server is not None]

    def find(self, call_id: str) -> LoggedCall | None:
        """The record of a call that runs now."""
        return self._running.get(call_id)

    def find_ended(self, call_id: str) -> EndedCall | None:
        """One of the last calls that ended, built without the others."""
        entry = self._ended.get(call_id)
        return None if entry is None else entry.ended

    @property
    def running(self) -> tuple[RunningCall, ...]:
        """The calls that run, oldest first."""
        return tuple(RunningCall(entry.call, entry.progress) for entry in self._running.values())

    @property
    def ended(self) -> tuple[EndedCall, ...]:
        """The last hundred calls that ended, oldest first."""
        return tuple(entry.ended for entry in self._ended.values()[-self._kept.shown :])

    @property
    def past_ids(self) -> frozenset[str]:
        """The ids of the ended calls that are kept."""
        return frozenset(self._ended)

    def past(self, before: str | None = None) -> Iterator[EndedCall]:
        """The ended calls that are kept, newest first; with `before`, an id, those that ended before that call.

        Each is built when the iterator reaches it, in any thread, even if the log has forgotten it meanwhile.
        """
        entries = self._ended.values()
        if before is not None:
            # If that call is forgotten, so are all earlier ones.
            del entries[next((at for at, entry in enumerate(entries) if entry.id == before), 0) :]
        return (entry.ended for entry in reversed(entries))


# --- digests


def sorted_json(value: Any) -> bytes:
    """A value as JSON that does not depend on the order of its keys."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # only the standard library takes this value, for example an integer over 64 bits
        return json.dumps(value, sort_keys=True, default=str).encode()


def digest_of(value: Any) -> str:
    """The SHA-256 of a JSON value, in hex."""
    return hashlib.sha256(sorted_json(value)).hexdigest()


# --- sizes


def weight_of_content(result: "CallToolResult", most: int) -> int:
    """About how many bytes a result takes without its structured content; may stop counting above `most`."""
    meta = result.meta
    total = 0 if meta is None or meta.keys() <= _OWN_MARKERS else weight(meta, most)
    for item in result.content:
        if total > most:
            break
        total += _weight_of_item(item.__dict__, most)  # `getattr` for a field costs more than all the rest
    return total


def _kept(value: dict[str, Any], room: int) -> tuple[dict[str, Any] | str, int] | None:
    """An object as it is kept, and its size; `None` if it does not fit, or if JSON cannot express it."""
    size = flat_weight(value)
    if size is not None:
        return (value, size) if size <= room else None
    text = json_or_none(value)
    return (text, len(text)) if text is not None and len(text) <= room else None


def _weight_of_item(fields: dict[str, Any], most: int) -> int:
    """About how many bytes a content item takes, or a model inside one."""
    total = 512  # a model of mcp, without the values of its fields
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
    # The Computer's own markers are small. A server, or a transformation, may have put more there.
    meta = {key: cut_into(value, room) for key, value in (result["meta"] or {}).items()} or None
    structured = cut_into(result["structuredContent"], room)
    if not isinstance(structured, dict | None):
        structured = {CUT_MARK: "too large to be kept"}
    return {"meta": meta, "content": content, "structuredContent": structured, "isError": result["isError"]}


def _fitted_item(item: dict[str, Any], room: Budget) -> dict[str, Any]:
    """A content item, cut to fit. An image that does not fit becomes a text: half an image shows nothing."""
    within = item.get("resource", item)
    binary = next((within[key] for key in ("data", "blob") if isinstance(within.get(key), str)), "")
    if len(binary) > room.left:
        kind = within.get("mimeType") or item.get("type")
        return {"type": "text", "text": f"[{kind}, {len(binary)} characters of base64: too large to be kept]"}
    fitted = cut_into(item, room)
    return fitted if isinstance(fitted, dict) else {"type": "text", "text": CUT_MARK}
