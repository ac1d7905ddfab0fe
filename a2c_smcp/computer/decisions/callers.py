"""Where a call came from, as a place that can answer the call's questions."""

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from a2c_smcp.computer.decisions.store import AskHandler
from a2c_smcp.computer.mcp_clients.elicitation.asking import QuestionMode

__all__ = ["CALLER", "Caller"]


@dataclass(frozen=True, slots=True)
class Caller:
    """The agent that made a call, and whose host can put questions of these `modes` to a person.

    `ask` takes a `Question`. It returns `None` if the agent cannot be asked.
    """

    name: str
    modes: frozenset[QuestionMode]
    ask: AskHandler


#: The caller of this task's call; unset if it can answer no questions.
CALLER: Final[ContextVar[Caller]] = ContextVar("caller")
