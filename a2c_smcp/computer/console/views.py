"""What the console shows of a Computer, as JSON. Pure.

Arguments and results are sent as text: a browser would read numbers as floats, and a person must see the exact call.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from a2c_smcp import PROTOCOL_VERSION, __version__
from a2c_smcp.computer.calls.log import EndedCall, ProgressReport, RunningCall, WatchedCall
from a2c_smcp.computer.console.decision_views import decision_list
from a2c_smcp.computer.console.limits import CONSOLE_LIMITS
from a2c_smcp.computer.decisions.shown_text import TOO_DEEP, as_text, text_start, visible
from a2c_smcp.computer.watching.events import OfficeStatus, ServerStatus
from a2c_smcp.computer.watching.snapshot import ComputerSnapshot
from a2c_smcp.smcp import SMCPTool
from a2c_smcp.utils.json_sizes import is_deeper
from a2c_smcp.utils.secret_shapes import hidden

__all__ = [
    "call_view",
    "ended_view",
    "export_view",
    "office_view",
    "progress_view",
    "result_view",
    "running_view",
    "server_view",
    "snapshot_view",
    "table_view",
    "tool_view",
]

_IMAGES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "image/svg+xml"})


def call_view(call: WatchedCall, most: int | None = CONSOLE_LIMITS.preview_characters) -> dict[str, Any]:
    """Who calls which tool, with at most `most` characters of the arguments. In lists, secrets are hidden; a call that
    is opened has them.
    """
    arguments, cut = (as_text(call.arguments), False) if most is None else text_start(call.arguments, most)
    arguments = arguments if most is None else hidden(arguments)
    return {
        "id": call.id,
        "req_id": call.req_id,
        "agent": None if call.agent is None else visible(call.agent),
        "claimed": call.agent is not None and call.claimed,
        "server": call.server,
        "tool": visible(call.tool or call.name),
        "name": call.name,
        "arguments": arguments,
        "cut": cut,
        "timeout": call.timeout,
        "started_at": call.started_at,
    }


def progress_view(progress: ProgressReport) -> dict[str, Any]:
    message = None if progress.message is None else visible(progress.message)
    return {"progress": progress.progress, "total": progress.total, "message": message}


def running_view(running: RunningCall) -> dict[str, Any]:
    progress = None if running.progress is None else progress_view(running.progress)
    return {**call_view(running.call), "progress": progress}


def ended_view(ended: EndedCall) -> dict[str, Any]:
    """An ended call with the beginning of its result. `result_view` has the whole."""
    text = "\n".join(_texts(ended.result))
    return {
        **call_view(ended.call),
        "duration": ended.duration,
        "ok": ended.ok,
        "code": ended.code,
        "outcome": ended.outcome,
        "verdict": ended.verdict,
        "decided_by": ended.decided_by,
        "rule": ended.how.rule,
        "text": text[: CONSOLE_LIMITS.preview_characters],
    }


def result_view(ended: EndedCall) -> dict[str, Any]:
    """An ended call with all of its arguments and its result."""
    structured = ended.result.get("structuredContent")
    return {
        **ended_view(ended),
        **call_view(ended.call, None),
        "content": [_content_view(item) for item in ended.result.get("content") or ()],
        "structured": None if structured is None else as_text(structured),
    }


def export_view(ended: EndedCall) -> dict[str, Any]:
    """An ended call for programs, whole: values instead of texts."""
    call = ended.call
    return {
        "id": call.id,
        "req_id": call.req_id,
        "agent": call.agent,
        "key": call.key,
        "claimed": call.agent is not None and call.claimed,
        "server": call.server,
        "tool": call.tool,
        "name": call.name,
        "arguments": _exportable(call.arguments),
        "timeout": call.timeout,
        "started_at": datetime.fromtimestamp(call.started_at, UTC).isoformat(),
        "seconds": ended.duration,
        "outcome": ended.outcome,
        "error_code": ended.code,
        "verdict": ended.verdict,
        "decided_by": ended.decided_by,
        "result": _exportable(ended.result),
    }


def _exportable(value: Any) -> Any:
    return TOO_DEEP if is_deeper(value, CONSOLE_LIMITS.depth) else value


def _texts(result: Mapping[str, Any]) -> list[str]:
    return [str(item.get("text", "")) for item in result.get("content") or () if item.get("type") == "text"]


def _content_view(item: Mapping[str, Any]) -> dict[str, Any]:
    match item:
        case {"type": "text", "text": str(text)}:
            return {"type": "text", "text": text}
        case {"type": "image", "mimeType": str(mime), "data": str(data)} if mime in _IMAGES:
            return {"type": "image", "url": f"data:{mime};base64,{data}", "mime": mime}
        case {"type": "resource", "resource": {"uri": str(uri), "text": str(text)}}:
            return {"type": "text", "text": text, "title": uri}
        case {"type": "resource_link", "uri": str(uri)}:
            return {"type": "text", "text": uri, "title": str(item.get("name", ""))}
    return {"type": "other", "text": str(item.get("type")), "title": str(item.get("mimeType", ""))}


def table_view(content: Any) -> dict[str, Any] | None:
    """The cells as text, if this is the content of a table: a browser would change large numbers."""
    if not isinstance(content, dict) or not isinstance(rows := content.get("rows"), list):
        return None
    headers = content.get("headers")
    return {
        "headers": [_cell(each) for each in headers] if isinstance(headers, list) else [],
        "rows": [[_cell(each) for each in row] for row in rows[: CONSOLE_LIMITS.rows] if isinstance(row, list)],
        "cut": len(rows) > CONSOLE_LIMITS.rows,
    }


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def server_view(status: ServerStatus) -> dict[str, Any]:
    return {
        "name": status.server,
        "state": status.state.value,
        "reason": None if status.reason is None else visible(status.reason),
        "restarts": status.restarts,
        "ignored": status.ignored,
        "waits_for": status.waits_for,
        "is_remote": status.is_remote,
    }


def office_view(office: OfficeStatus) -> dict[str, Any]:
    return {
        "id": office.id,
        "url": office.url,
        "state": office.state,
        "office": office.office,
        "name": office.name,
        "reason": None if office.reason is None else visible(office.reason),
        "final": office.final,
        "since": office.since,
    }


def tool_view(tool: SMCPTool, server: str) -> dict[str, Any]:
    """A tool that can be called now, with its schema for a form and as text."""
    return {
        "name": tool["name"],
        "server": server,
        "description": visible(tool["description"]),
        "schema": {} if is_deeper(tool["params_schema"], CONSOLE_LIMITS.depth) else tool["params_schema"],
        "schema_text": as_text(tool["params_schema"]),
        "returns": None if tool["return_schema"] is None else as_text(tool["return_schema"]),
    }


def snapshot_view(snapshot: ComputerSnapshot, run: str, now: float) -> dict[str, Any]:
    """What a page starts with. It asks for tools, windows, documents and logs when somebody looks at them."""
    return {
        "kind": "snapshot",
        "number": snapshot.number,
        "now": now,
        "run": run,
        "version": __version__,
        "protocol": PROTOCOL_VERSION,
        "name": snapshot.name,
        "servers": [server_view(status) for status in snapshot.servers],
        "offices": [office_view(office) for office in snapshot.offices],
        "running": [running_view(running) for running in snapshot.running_calls],
        "ended": [ended_view(ended) for ended in snapshot.ended_calls],
        "pending": decision_list(snapshot.decisions),
        "answerers": list(snapshot.answerers),
        "recorded": snapshot.recorded,
    }
