"""Decides whether a tool call runs, needs a person's yes, or is refused. It asks nobody itself."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from a2c_smcp.computer.calls.log import HowDecided
from a2c_smcp.computer.decisions.book import CALLBACK, RULE, Outcome, Resolution
from a2c_smcp.computer.mcp_clients.model import ToolMeta
from a2c_smcp.computer.rules.deciding import RuleVerdict
from a2c_smcp.errors import ToolConfirmationError
from a2c_smcp.types import TOOL_NAME

__all__ = [
    "Approval",
    "AskPerson",
    "RefusalOutcome",
    "Refuse",
    "Run",
    "approve",
    "approve_resolution",
    "decided_at",
    "decided_before",
    "denied",
]

#: Why a call did not run, as an agent reads it beside the code 4005.
RefusalOutcome: TypeAlias = Literal["nobody", "unanswered", "refused", "rule"]


@dataclass(frozen=True, slots=True)
class Run:
    """The call needs no confirmation, or the person said yes."""


@dataclass(frozen=True, slots=True)
class AskPerson:
    """A person must be asked. Give the outcome to `approve_resolution`."""


@dataclass(frozen=True, slots=True)
class Refuse:
    """The call ends with 4005."""

    outcome: RefusalOutcome
    explanation: str
    reason: str = ""
    """The words of the person, or of the rule."""

    def error(self, tool_name: TOOL_NAME) -> ToolConfirmationError:
        said = f"{self.explanation}: {self.reason}" if self.reason else self.explanation
        return ToolConfirmationError(
            f"Tool {tool_name} requires confirmation: {said}",
            {"outcome": self.outcome} | ({"reason": self.reason} if self.reason else {}),
        )


Approval: TypeAlias = Run | AskPerson | Refuse


def approve(
    meta: ToolMeta | None, *, can_ask: bool, is_allowed: bool = False, verdict: RuleVerdict | None = None
) -> Approval:
    """What to do with a call of a tool that has this merged meta.

    `can_ask`: somebody is there who can be asked. `is_allowed`: every call is allowed here. `verdict` is that of a
    rule, and comes before both and before the config.
    """
    if verdict is not None:
        if verdict.effect == "deny":
            return denied(verdict)
        if verdict.effect == "allow":
            return Run()
    elif (meta is not None and meta.auto_apply is True) or is_allowed:
        return Run()
    if can_ask:
        return AskPerson()
    changed = "the tool has changed since it was allowed, and " if verdict is not None and verdict.is_asleep else ""
    return Refuse("nobody", f"{changed}nobody can confirm it here", "" if verdict is None else verdict.rule.reason)


def denied(verdict: RuleVerdict) -> Refuse:
    """What to do with a call that a rule denies."""
    return Refuse("rule", "a rule of this computer denies it", verdict.rule.reason)


def approve_resolution(resolution: Resolution) -> Run | Refuse:
    """What to do after a person was asked. If nobody answered, the call is refused, but not by a person."""
    if resolution.outcome is Outcome.ACCEPTED:
        return Run()
    outcome, explanation = _REFUSALS[resolution.outcome]
    return Refuse(outcome, explanation, resolution.reason)


def decided_before(
    meta: ToolMeta | None, *, confirmed_by: str | None, verdict: RuleVerdict | None = None
) -> HowDecided:
    """How a call was decided that `approve` lets run, or refuses by a rule."""
    if verdict is not None:
        return HowDecided("rule", rule=verdict.rule.id)
    if meta is not None and meta.auto_apply is True:
        return HowDecided("config")
    return HowDecided("yes") if confirmed_by is None else decided_at(confirmed_by)


def decided_at(place: str | None) -> HowDecided:
    """How a call was decided about which this place was asked; `None` if nobody answered."""
    if place is None:
        return HowDecided("nobody")
    if place is RULE:
        return HowDecided("rule")
    return HowDecided("program" if place == CALLBACK else "person", place)


_REFUSALS: Final[dict[Outcome, tuple[RefusalOutcome, str]]] = {
    Outcome.DECLINED: ("refused", "the person refused"),
    Outcome.DISMISSED: ("refused", "the person refused"),
    Outcome.UNANSWERED: ("unanswered", "nobody answered in time"),
    Outcome.WITHDRAWN: ("unanswered", "the question was withdrawn before somebody answered"),
    Outcome.FAILED: ("nobody", "asking for it failed"),
}
