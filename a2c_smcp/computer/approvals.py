"""Whether a tool call runs, is asked about, or is refused. Decides; does not ask itself."""

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final, TypeAlias

from a2c_smcp.computer.mcp_clients.model import ToolMeta
from a2c_smcp.errors import ToolConfirmationError
from a2c_smcp.types import TOOL_NAME

__all__ = ["CALLING_AGENT", "Approval", "Ask", "Refuse", "Run", "approve", "approve_answer", "approve_silence"]

#: The agent whose call this is, for callbacks that show who asks; unset for calls that come from no agent.
CALLING_AGENT: Final[ContextVar[str]] = ContextVar("calling_agent")


@dataclass(frozen=True, slots=True)
class Run:
    """The call needs no confirmation, or the person agreed."""


@dataclass(frozen=True, slots=True)
class Ask:
    """The confirmation callback is to be asked; `approve_answer` takes what it returns."""


@dataclass(frozen=True, slots=True)
class Refuse:
    """The call ends with 4005."""

    reason: str

    def error(self, tool_name: TOOL_NAME) -> ToolConfirmationError:
        return ToolConfirmationError(f"Tool {tool_name} requires confirmation: {self.reason}")


Approval: TypeAlias = Run | Ask | Refuse


def approve(meta: ToolMeta | None, *, can_ask: bool) -> Approval:
    """What to do with a call to a tool of this merged meta, given whether there is a callback to ask."""
    if meta is not None and meta.auto_apply is True:
        return Run()
    return Ask() if can_ask else Refuse("nobody can confirm it here")


def approve_answer(answer: object) -> Run | Refuse:
    """What to do after the callback answered. Only `True` is a yes: a callback that forgets to return refuses."""
    return Run() if answer is True else Refuse("the person refused")


def approve_silence() -> Refuse:
    """What to do when no person answered in time: silence is no refusal, and no yes."""
    return Refuse("nobody answered in time")
