"""A call as a row of the record: masked arguments, size and digest of the result, and how it was decided. Pure.

Rows are made in the thread that writes the record. A call has ended by then, or its record is only read.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from blake3 import blake3

from a2c_smcp.computer.asker import Asker
from a2c_smcp.computer.calls.log import LoggedCall
from a2c_smcp.record.rows import RecordRow, body_text
from a2c_smcp.results import text_of, to_wire
from a2c_smcp.utils.json_sizes import CUT_MARK, Budget
from a2c_smcp.utils.secret_shapes import MASK, follows_secret_option, is_named_like_a_secret, named_value
from a2c_smcp.utils.text import cut
from a2c_smcp.wire import codec

if TYPE_CHECKING:
    from mcp_types import CallToolResult

__all__ = ["CALL", "MOST_ARGUMENTS", "MOST_RESULT", "RUNNING", "call_row", "masked", "running_row", "vouched"]

#: The kinds of rows: a call that has ended, and one that runs when the record is written.
CALL: Final = "call"
RUNNING: Final = "running"

#: About how many bytes of the arguments of one call are recorded, and of its result if results are asked for.
MOST_ARGUMENTS: Final = 4096
MOST_RESULT: Final = 64 * 1024
_DEEPEST: Final = 32
#: Calls of a tool have the same names.
_is_secret: Final = lru_cache(1000)(is_named_like_a_secret)


def running_row(at: int, call: LoggedCall, redact: Callable[[str], str]) -> RecordRow | None:
    """The row of a call that has just begun; `None` if it has ended meanwhile: then one row is enough."""
    if call.has_ended:
        return None
    return _row(int(call.started_at * 1e6), RUNNING, call, redact, outcome="", more={})


def call_row(
    at: int,
    call: LoggedCall,
    result: "CallToolResult",
    sent: str | None,
    redact: Callable[[str], str],
    redact_result: Callable[[str], str] | None = None,
) -> RecordRow:
    """The row of a call that has ended. `sent` is the result as it goes to the agent; `None` if it goes to nobody.
    `redact` takes the known secrets out of a text. With `redact_result`, the row has the result itself, too.
    """
    if sent is None:
        sent = codec.dumps(to_wire(result))
    data = sent.encode("utf-8", "surrogatepass")
    code = call.code
    outcome = call.stopped or ("failed" if result.is_error else "succeeded")
    more: dict[str, Any] = {
        "seconds": round(call.duration, 6),
        "bytes": len(data),
        "reason": cut(redact(text_of(result)), 300) if code is not None else None,
        "cancelled_by": call.decided_by if call.is_cancelled else None,
        "result": None if redact_result is None else masked(_content(result), redact_result, MOST_RESULT),
    }
    return _row(at, CALL, call, redact, outcome, more, code, blake3(data).digest())


def _content(result: "CallToolResult") -> dict[str, Any]:
    wire: dict[str, Any] = {**to_wire(result)}
    del wire["meta"]  # the Computer's own markers
    return wire


def _row(
    at: int,
    kind: str,
    call: LoggedCall,
    redact: Callable[[str], str],
    outcome: str,
    more: dict[str, Any],
    code: int | None = None,
    digest: bytes | None = None,
) -> RecordRow:
    how, asker = call.how, call.asker
    said = {
        "req_id": call.req_id,
        "name": None if call.name == call.tool else call.name,
        "arguments": masked(call.kept_arguments, redact, MOST_ARGUMENTS),
        "timeout": call.timeout,
        "place": how.place,
        "rule": how.rule,
        **more,
        **vouched(asker),
    }
    who = ("", "") if asker is None else (asker.office, asker.name)
    names = (call.id, *who, call.server or "", call.tool or "", outcome, how.by)
    return RecordRow(at, kind, *names, code, digest, body_text(said))


def vouched(asker: Asker | None) -> dict[str, Any]:
    """What a row says of the name in its column `agent`: the key, and whether the name is only claimed."""
    return {} if asker is None else {"key": asker.key, "claimed": asker.is_claimed}


def masked(value: Any, redact: Callable[[str], str], most: int) -> Any:
    """A JSON value without secrets: `redact` takes them out of a text, and the values of fields that are named like one
    are masked. It is cut to about `most` bytes.
    """
    return _masked(value, redact, Budget(most), 0)


def _masked(value: Any, redact: Callable[[str], str], room: Budget, depth: int) -> Any:
    room.left -= 8
    if isinstance(value, str):
        # Redacted first: of a secret that is cut, the rest would not be found.
        shown = redact(value)
        kept = shown[: max(0, room.left)]
        room.left -= len(kept)
        return kept if len(kept) == len(value) or kept == shown else f"{kept}{CUT_MARK} ({len(value)} characters)"
    if not isinstance(value, Mapping | list | tuple):
        return value
    if room.left <= 0 or depth > _DEEPEST:
        return CUT_MARK
    if isinstance(value, Mapping):
        return _masked_object(value, redact, room, depth)
    items: list[Any] = []
    for at, child in enumerate(value):
        if room.left <= 0:
            items.append(f"{CUT_MARK} ({len(value) - len(items)} more)")
            break
        items.append(MASK if follows_secret_option(value, at) else _masked(child, redact, room, depth + 1))
    return items


def _masked_object(value: Mapping[Any, Any], redact: Callable[[str], str], room: Budget, depth: int) -> dict[str, Any]:
    copy: dict[str, Any] = {}
    secret = named_value(value)
    for key, child in value.items():
        if room.left <= 0:
            copy[CUT_MARK] = f"{len(value) - len(copy)} more"
            break
        name = cut(redact(str(key)), 200)
        room.left -= len(name)
        is_secret = not isinstance(child, bool | None) and (name == secret or _is_secret(name))
        copy[name] = MASK if is_secret else _masked(child, redact, room, depth + 1)
    return copy
