"""Whether a tool call runs, is asked about, or is refused. Decides; does not ask itself."""

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from a2c_smcp.computer.decisions.book import Outcome, Resolution
from a2c_smcp.computer.mcp_clients.model import ToolMeta
from a2c_smcp.errors import ToolConfirmationError
from a2c_smcp.types import TOOL_NAME

__all__ = [
    "CALLING_AGENT",
    "CALLING_OFFICE",
    "Approval",
    "AskPerson",
    "RefusalOutcome",
    "Refuse",
    "Run",
    "approve",
    "approve_resolution",
]

#: The agent whose call this is, for callbacks that show who asks; unset for calls that come from no agent.
CALLING_AGENT: Final[ContextVar[str]] = ContextVar("calling_agent")
#: The office that the call came from, where it came from one.
CALLING_OFFICE: Final[ContextVar[str]] = ContextVar("calling_office")

#: Who or what kept a call from running, as an agent reads it beside 4005.
RefusalOutcome: TypeAlias = Literal["nobody", "unanswered", "refused", "rule"]


@dataclass(frozen=True, slots=True)
class Run:
    """The call needs no confirmation, or the person agreed."""


@dataclass(frozen=True, slots=True)
class AskPerson:
    """A person is to be asked; `approve_resolution` takes what came of it."""


@dataclass(frozen=True, slots=True)
class Refuse:
    """The call ends with 4005."""

    outcome: RefusalOutcome
    explanation: str
    reason: str = ""
    """The person's own words."""

    def error(self, tool_name: TOOL_NAME) -> ToolConfirmationError:
        said = f"{self.explanation}: {self.reason}" if self.reason else self.explanation
        return ToolConfirmationError(
            f"Tool {tool_name} requires confirmation: {said}",
            {"outcome": self.outcome} | ({"reason": self.reason} if self.reason else {}),
        )


Approval: TypeAlias = Run | AskPerson | Refuse


def approve(meta: ToolMeta | None, *, can_ask: bool, is_allowed: bool = False) -> Approval:
    """What to do with a call to a tool of this merged meta, given whether somebody can be asked, or has allowed it
    already.
    """
    if (meta is not None and meta.auto_apply is True) or is_allowed:
        return Run()
    return AskPerson() if can_ask else Refuse("nobody", "nobody can confirm it here")


def approve_resolution(resolution: Resolution) -> Run | Refuse:
    """What to do after somebody was asked. Silence is no refusal, and no yes."""
    if resolution.outcome is Outcome.ACCEPTED:
        return Run()
    outcome, explanation = _REFUSALS[resolution.outcome]
    return Refuse(outcome, explanation, resolution.reason)


_REFUSALS: Final[dict[Outcome, tuple[RefusalOutcome, str]]] = {
    Outcome.DECLINED: ("refused", "the person refused"),
    Outcome.DISMISSED: ("refused", "the person refused"),
    Outcome.UNANSWERED: ("unanswered", "nobody answered in time"),
    Outcome.WITHDRAWN: ("unanswered", "it was withdrawn before somebody answered"),
    Outcome.FAILED: ("nobody", "asking for it failed"),
}
