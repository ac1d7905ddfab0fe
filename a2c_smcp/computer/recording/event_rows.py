"""Events of a Computer as rows of the record. Pure.

An event of another class than these is recorded if its class names a kind of rows in `recorded_as`: its fields become
the row.
"""

from collections.abc import Callable
from dataclasses import fields
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from a2c_smcp.computer.calls.log import WatchedCall
from a2c_smcp.computer.decisions.approvals import decided_at
from a2c_smcp.computer.decisions.book import Confirmation, Decision, MissingInput, MissingSignIn, Question
from a2c_smcp.computer.recording.call_rows import vouched
from a2c_smcp.computer.watching.events import (
    ComputerEvent,
    DecisionAsked,
    DecisionDecided,
    OfficeStatus,
    ServerStatus,
)
from a2c_smcp.record.rows import RecordRow, body_text
from a2c_smcp.utils.text import cut

__all__ = ["RECORDED", "about_of", "event_row", "place_of"]

#: The classes of events that have a row of their own shape.
RECORDED: Final = frozenset({DecisionAsked, DecisionDecided, OfficeStatus, ServerStatus})
#: Characters of a text that are kept of an event.
_LONGEST: Final = 1000


def about_of(decision: Decision) -> str:
    """The id of the story that a decision belongs to: that of its call, if that is known."""
    return decision.id if decision.call is None else decision.call.id


def event_row(at: int, event: ComputerEvent, about: str, redact: Callable[[str], str]) -> RecordRow | None:
    """The row of an event. `about` is the id of the story that a decision belongs to. `redact` takes the known secrets
    out of a text.
    """
    match event:
        case DecisionAsked(decision=decision):
            return _asked(at, decision, redact)
        case DecisionDecided():
            how = decided_at(event.by)
            said: dict[str, Any] = {
                "decision": event.decision_id,
                "what": event.kind,
                "place": how.place,
                "always": event.always or None,
                "rule": event.rule,
                "reason": cut(redact(event.reason), _LONGEST) or None,
            }
            row = RecordRow(at, "decided", about or event.decision_id, outcome=event.outcome.value, how=how.by)
            return row._replace(body=body_text(said))
        case ServerStatus():
            said = {"reason": _text(event.reason, redact), "restarts": event.restarts or None}
            return RecordRow(at, "server", server=event.server, outcome=event.state.value, body=body_text(said))
        case OfficeStatus():
            said = {"url": place_of(event.url), "name": event.name, "reason": _text(event.reason, redact)}
            return RecordRow(at, "office", office=event.office or "", outcome=event.state, body=body_text(said))
    return _of_fields(at, event, redact)


def _asked(at: int, decision: Decision, redact: Callable[[str], str]) -> RecordRow:
    said: dict[str, Any] = {"decision": decision.id, "what": decision.kind}
    row = RecordRow(at, "asked", about_of(decision))
    match decision:
        case Confirmation(call=call):
            row = _with_call(row, call)
            said |= {"digest": decision.digest, **vouched(call.asker)}
        case Question():
            row = row._replace(server=decision.server)
            if decision.call is not None:
                row = _with_call(row, decision.call)
                said |= vouched(decision.call.asker)
            url = None if decision.url is None else place_of(decision.url)
            said |= {"message": _text(decision.message, redact), "url": _text(url, redact)}
        case MissingInput():
            said |= {"input": decision.input_id, "servers": list(decision.servers)}
        case MissingSignIn():
            row = row._replace(server=decision.server)
            scopes = _text(" ".join(decision.scopes), redact) or None
            said |= {"host": _text(decision.host, redact), "scopes": scopes, "step_up": decision.is_step_up or None}
    return row._replace(body=body_text(said))


def place_of(url: str) -> str:
    """Scheme, host and path of a URL. Whatever else it has may be a secret: userinfo, query, fragment."""
    try:
        parts = urlsplit(url)
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
    except ValueError:
        return ""


def _with_call(row: RecordRow, call: WatchedCall) -> RecordRow:
    return row._replace(
        office=call.office or "", agent=call.agent or "", server=call.server or "", tool=call.tool or call.name
    )


def _of_fields(at: int, event: Any, redact: Callable[[str], str]) -> RecordRow | None:
    if not isinstance(kind := getattr(event, "recorded_as", None), str):
        return None
    given = {field.name: getattr(event, field.name) for field in fields(event)}
    columns: dict[str, Any] = {
        name: str(given.pop(name))
        for name in ("about", "office", "agent", "server", "tool", "outcome")
        if given.get(name) is not None
    }
    said = {
        name: value if isinstance(value, bool | int | float | None) else _text(str(value), redact)
        for name, value in given.items()
    }
    return RecordRow(at, kind, **columns, body=body_text(said))


def _text(text: str | None, redact: Callable[[str], str]) -> str | None:
    return None if text is None else cut(redact(text), _LONGEST)
