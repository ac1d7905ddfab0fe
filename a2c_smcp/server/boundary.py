"""The one place where errors of the server become replies and log lines, and other steps that both shells share. Does
no I/O.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from a2c_smcp.errors import BadRequestError, InternalError, NotFoundError, SMCPError
from a2c_smcp.packet_text import encode_event
from a2c_smcp.server.effects import Broadcast
from a2c_smcp.server.envelopes import Message
from a2c_smcp.server.port import Notice
from a2c_smcp.server.relays import Relay
from a2c_smcp.smcp import EVENTS, TOOL_CALL_EVENT, Kind
from a2c_smcp.utils.limited_log import LimitedLog
from a2c_smcp.utils.text import in_log, req_id_in_log

__all__ = [
    "Observer",
    "Silent",
    "binary_message",
    "cancellation",
    "log_passed_on",
    "log_refusal",
    "notice_of",
    "outcome_of",
    "refusal",
    "unanswered",
]


class Observer(Protocol):
    """Counts what happens."""

    def relayed(self, event: str, outcome: str, seconds: float) -> None: ...
    def refused(self, code: int) -> None: ...
    def joined(self, outcome: str, seconds: float) -> None: ...
    def disconnected(self, reason: str) -> None: ...


class Silent:
    """Counts nothing."""

    def relayed(self, event: str, outcome: str, seconds: float) -> None:
        pass

    def refused(self, code: int) -> None:
        pass

    def joined(self, outcome: str, seconds: float) -> None:
        pass

    def disconnected(self, reason: str) -> None:
        pass


def outcome_of(error: BaseException | None) -> str:
    """How a request ended, in a word of a bounded set: `failed`, a code of the protocol, or what has gone.

    A 404 is the caller's mistake: it names a computer that is not there. `computer_gone` and `process_gone` are not.
    """
    if not isinstance(error, SMCPError):
        return "failed"
    if error.code == NotFoundError.default_code and (gone := error.details.get("gone")) in ("computer", "process"):
        return f"{gone}_gone"
    return "other" if type(error) is SMCPError else str(error.code)  # a code that this version does not know


def binary_message(event: object) -> Message:
    """The message that stands for an event with binary attachments."""
    error = BadRequestError("binary payloads are not part of the protocol")
    return Message(event if isinstance(event, str) else None, error=error)


def refusal(event: str | None, error: SMCPError) -> Any:
    """An error in the form that the event's sender reads."""
    row = EVENTS.get(event or "")
    if row is not None and row.kind is Kind.MEMBERSHIP:
        return False, error.reason()
    if event == TOOL_CALL_EVENT:
        return error.tool_call_payload()
    return error.payload()


def log_refusal(
    log: LimitedLog, peer: str, message: Message, sid: str, error: SMCPError, fields: Mapping[str, object]
) -> None:
    """Log one line for a refusal, with the id of the request. `fields` are about the session."""
    req_id, event = req_id_in_log(message.request), in_log(message.event)
    said = {"event": "refused", "request": event, "req_id": req_id, "code": error.code, **fields}
    log.warn(peer, "refused %s from %s, req_id %s: %s", event, sid, req_id, error, fields=said)


def log_passed_on(
    log: LimitedLog,
    peer: str,
    event: str,
    sid: str,
    request: Mapping[str, Any],
    error: SMCPError,
    fields: Mapping[str, object],
) -> None:
    """Log one line for an error that a computer answered, and that the agent gets as it is."""
    said, req_id = in_log(f"{error.code} {error.message}"), req_id_in_log(request)
    given = {"event": "passed on", "request": event, "req_id": req_id, "code": error.code, **fields}
    log.warn(peer, "passed on to %s, %s, req_id %s: %s", sid, event, req_id, said, fields=given)


def unanswered(event: str) -> InternalError:
    """The error for an ack of a computer without an answer."""
    return InternalError(f"the computer gave no answer to {event}; it may not support it", {"unanswered": event})


def notice_of(namespace: str, broadcast: Broadcast) -> Notice:
    """A broadcast as it is sent."""
    text = encode_event(namespace, broadcast.event, broadcast.data)
    return Notice(text, broadcast.skip_sid, broadcast.event, collapses=broadcast.collapses)


def cancellation(relay: Relay) -> dict[str, str]:
    """What the computer is told when the agent of a running call has gone."""
    return {"agent": relay.agent, "req_id": relay.req_id}
