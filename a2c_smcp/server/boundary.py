"""The one place where a server's errors become replies and log lines, and what else both shells do alike. No I/O of
its own.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from a2c_smcp.errors import InternalError, SMCPError, error_from_payload
from a2c_smcp.packets import read_ack
from a2c_smcp.server.relays import Relay
from a2c_smcp.smcp import EVENTS, TOOL_CALL_EVENT, Kind
from a2c_smcp.utils.text import in_log, req_id_in_log
from a2c_smcp.wire import Encoded, codec

__all__ = [
    "Ack",
    "Observer",
    "Silent",
    "ack_of",
    "answer_of",
    "cancellation",
    "log_passed_on",
    "log_refusal",
    "payload_of",
    "refusal",
    "remote_address",
]

logger = logging.getLogger("a2c_smcp.server")


class Observer(Protocol):
    """Hears what happens, to count it."""

    def relayed(self, event: str, outcome: str, seconds: float) -> None: ...
    def refused(self, code: int) -> None: ...


class Silent:
    """Counts nothing."""

    def relayed(self, event: str, outcome: str, seconds: float) -> None:
        pass

    def refused(self, code: int) -> None:
        pass


def payload_of(args: Sequence[object]) -> object:
    """An event's one argument; anything else is left for validation to refuse."""
    return args[0] if len(args) == 1 else None


def refusal(event: object, error: SMCPError) -> Any:
    """An error in the form that the event's sender reads."""
    row = EVENTS.get(event) if isinstance(event, str) else None
    if row is not None and row.kind is Kind.MEMBERSHIP:
        return False, error.reason()
    if event == TOOL_CALL_EVENT:
        return error.tool_call_payload()
    return error.payload()


def log_refusal(event: object, sid: str, payload: object, error: SMCPError) -> None:
    """One line a refusal, with the request's id; a fault of ours was logged with its traceback already."""
    logger.warning("refused %s from %s, req_id %s: %s", in_log(event), sid, req_id_in_log(payload), error)


def log_passed_on(event: str, sid: str, payload: object, answer: Mapping[str, Any]) -> None:
    """One line for an error that a computer answered with, and that the agent gets as it is."""
    if (error := error_from_payload(answer)) is not None:
        said = in_log(f"{error.code} {error.message}")
        logger.warning("passed on to %s, %s, req_id %s: %s", sid, event, req_id_in_log(payload), said)


@dataclass(frozen=True, slots=True)
class Ack:
    """What a computer acked; `encoded` when it is one object, whose text can be passed on as it came."""

    args: Sequence[Any]
    encoded: Encoded | None = None


def ack_of(body: str) -> Ack:
    """An ack from its JSON."""
    args = read_ack(body, codec.peek)
    if len(args) == 1 and isinstance(args[0], dict):
        return Ack(args, Encoded(body.strip()[1:-1]))
    return Ack(read_ack(body))


def answer_of(event: str, args: Sequence[object]) -> dict[str, Any]:
    """What a computer acked, passed on as it came; what is no answer at all becomes an error."""
    answer = args[0] if args else None
    if isinstance(answer, dict):
        return answer
    raise InternalError(f"the computer gave no answer to {event}; it may not support it")


def cancellation(relay: Relay) -> dict[str, str]:
    """What the computer is told when the agent of a running call has gone."""
    return {"agent": relay.agent, "req_id": relay.req_id}


def remote_address(environ: Mapping[str, Any]) -> str:
    """The peer's address. Engine.IO gives every ASGI request a loopback `REMOTE_ADDR`; the scope has the real one."""
    scope = environ.get("asgi.scope")
    client = scope.get("client") if scope else None
    return str(client[0]) if client else str(environ.get("REMOTE_ADDR", "unknown"))
