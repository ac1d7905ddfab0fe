"""What our server does for clients of each dialect. Pure.

It marks the requests of 0.4 agents, limits the size of their answers, and gives them errors in their own form. It
limits the size of requests to 0.4 computers, and answers requests that these do not know. Nothing changes
for other clients.
"""

from typing import Any, Final

from a2c_smcp.dialects.empty_answers import empty_answer
from a2c_smcp.dialects.flat_errors import flat_payload
from a2c_smcp.dialects.handshake import Dialect
from a2c_smcp.dialects.marks import MARK
from a2c_smcp.errors import PayloadTooLargeError, SMCPError, error_from_payload
from a2c_smcp.wire import Encoded, checked_size, codec

__all__ = ["LARGEST_FOR_04", "answer_for", "largest_for", "mark_of", "refusal_for", "stand_in_of"]

#: Bytes of one message that a client of 0.4 can receive. A larger one ends its connection, and the client does not join
#: again.
LARGEST_FOR_04: Final = 4 * 1024 * 1024


def mark_of(agent: Dialect) -> str | None:
    """What the computer is told of the agent's dialect, under `MARK_FIELD`; `None` if it is told nothing."""
    return MARK if agent is Dialect.V0_4 else None


def largest_for(computer: Dialect, max_message: int) -> int:
    """Bytes of one request that this computer can receive."""
    return min(max_message, LARGEST_FOR_04) if computer is Dialect.V0_4 else max_message


def stand_in_of(computer: Dialect, event: str | None, req_id: str) -> Any:
    """The answer that replaces an empty one of this computer; `None` if the agent is told that there was none."""
    return empty_answer(event, req_id) if computer is Dialect.V0_4 else None


def refusal_for(agent: Dialect, event: str | None, error: SMCPError, reply: Any) -> Any:
    """The server's own refusal. `reply` is the one for clients of our dialect."""
    return flat_payload(event, error) if agent is Dialect.V0_4 and isinstance(reply, dict) else reply


def answer_for(agent: Dialect, event: str, answer: Encoded, error: SMCPError | None) -> Encoded:
    """A computer's answer as this agent can take it. `error` is the error in it, if there is one.

    Raises `PayloadTooLargeError` for an answer that is so large that the agent would lose its connection.
    """
    if agent is not Dialect.V0_4:
        return answer
    try:
        checked_size("the answer", answer.text, LARGEST_FOR_04)
    except PayloadTooLargeError as too_large:
        raise PayloadTooLargeError(f"{too_large.message}, because this agent cannot receive more") from None
    if error is None:
        return answer
    payload = codec.loads(answer.text)
    if "code" in payload:  # the computer has already made it flat
        return answer
    return Encoded(codec.dumps(flat_payload(event, error_from_payload(payload) or error)))
