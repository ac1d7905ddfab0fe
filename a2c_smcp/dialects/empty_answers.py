"""Answers in the name of 0.4 computers, which do not answer what they do not know. Pure."""

from typing import Any

from a2c_smcp.dialects.handshake import Dialect
from a2c_smcp.smcp import GET_FINDER_EVENT, GetFinderRet

__all__ = ["empty_answer", "filled_in"]


def empty_answer(event: str | None, req_id: str) -> Any:
    """The answer that replaces the missing one of a 0.4 computer; `None` if the agent is told that there was none.

    Such a computer has no documents, and an agent that searches all computers needs no error for it.
    """
    if event != GET_FINDER_EVENT:
        return None
    nothing: GetFinderRet = {"documents": [], "total_count": 0, "req_id": req_id}
    return nothing


def filled_in(server: Dialect, event: str, req_id: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of an ack at this server. A 0.4 server sends an empty ack for an event that it does not
    know.
    """
    is_empty = server is Dialect.V0_4 and (not args or args[0] is None)
    return (empty_answer(event, req_id),) if is_empty else args
