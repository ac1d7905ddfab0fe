"""Where a call came from, as a place that can answer the call's questions."""

from dataclasses import dataclass

from a2c_smcp.computer.decisions.store import AskHandler
from a2c_smcp.computer.mcp_clients.elicitation.asking import QuestionMode

__all__ = ["Caller"]


@dataclass(frozen=True, slots=True)
class Caller:
    """The agent that made a call, and whose host can put questions of these `modes` to a person.

    `ask` takes a `Question`. It returns `None` if the agent cannot be asked.
    """

    name: str
    modes: frozenset[QuestionMode]
    ask: AskHandler
