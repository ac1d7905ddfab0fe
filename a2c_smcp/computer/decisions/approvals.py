"""Decides whether a tool call runs, needs a person's yes, or is refused. It asks nobody itself."""

from dataclasses import dataclass, field
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
    "denied",
]

#: Why a call did not run, as an agent reads it beside the code 4005.
RefusalOutcome: TypeAlias = Literal["nobody", "unanswered", "refused", "rule"]


@dataclass(frozen=True, slots=True)
class Run:
    """The call needs no confirmation, or the person said yes."""

    how: HowDecided | None = field(default=None, compare=False)
    """How it was decided, if nobody was asked."""


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
    how: HowDecided | None = field(default=None, compare=False)
    """How it was decided, if a rule did."""

    def error(self, tool_name: TOOL_NAME) -> ToolConfirmationError:
        said = f"{self.explanation}: {self.reason}" if self.reason else self.explanation
        return ToolConfirmationError(
            f"Tool {tool_name} requires confirmation: {said}",
            {"outcome": self.outcome} | ({"reason": self.reason} if self.reason else {}),
        )


Approval: TypeAlias = Run | AskPerson | Refuse


def approve(
    meta: ToolMeta | None,
    *,
    can_ask: bool,
    is_allowed: bool = False,
    verdict: RuleVerdict | None = None,
    confirmed_by: str | None = None,
) -> Approval:
    """What to do with a call of a tool that has this merged meta.

    `can_ask`: somebody is there who can be asked. `is_allowed`: every call is allowed here. `confirmed_by` is the place
    where this call was confirmed already. `verdict` is that of a rule, and comes before all of these and before the
    config.
    """
    if verdict is not None:
        if verdict.effect == "deny":
            return denied(verdict)
        if verdict.effect == "allow":
            return Run(HowDecided("rule", rule=verdict.rule.id))
    elif meta is not None and meta.auto_apply is True:
        return _BY_CONFIG
    elif confirmed_by is not None:
        return Run(decided_at(confirmed_by))
    elif is_allowed:
        return _BY_YES
    if can_ask:
        return AskPerson()
    changed = "the tool has changed since it was allowed, and " if verdict is not None and verdict.is_asleep else ""
    return Refuse("nobody", f"{changed}nobody can confirm it here", "" if verdict is None else verdict.rule.reason)


def denied(verdict: RuleVerdict) -> Refuse:
    """What to do with a call that a rule denies."""
    how = HowDecided("rule", rule=verdict.rule.id)
    return Refuse("rule", "a rule of this computer denies it", verdict.rule.reason, how)


def approve_resolution(resolution: Resolution) -> Run | Refuse:
    """What to do after a person was asked. If nobody answered, the call is refused, but not by a person."""
    if resolution.outcome is Outcome.ACCEPTED:
        return Run()
    outcome, explanation = _REFUSALS[resolution.outcome]
    return Refuse(outcome, explanation, resolution.reason)


def decided_at(place: str | None) -> HowDecided:
    """How a call was decided about which this place was asked; `None` if nobody answered."""
    if place is None:
        return HowDecided("nobody")
    if place is RULE:
        return HowDecided("rule")
    return HowDecided("program" if place == CALLBACK else "person", place)


_BY_CONFIG: Final = Run(HowDecided("config"))
_BY_YES: Final = Run(HowDecided("yes"))
_REFUSALS: Final[dict[Outcome, tuple[RefusalOutcome, str]]] = {
    Outcome.DECLINED: ("refused", "the person refused"),
    Outcome.DISMISSED: ("refused", "the person refused"),
    Outcome.UNANSWERED: ("unanswered", "nobody answered in time"),
    Outcome.WITHDRAWN: ("unanswered", "the question was withdrawn before somebody answered"),
    Outcome.FAILED: ("nobody", "asking for it failed"),
}
