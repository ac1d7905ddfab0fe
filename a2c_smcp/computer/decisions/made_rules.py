"""The rules that a person makes with an answer: calls like this one, this tool, or never. Pure."""

from a2c_smcp.computer.calls.log import WatchedCall
from a2c_smcp.computer.decisions.book import (
    Accepted,
    Confirmation,
    DecisionAnswer,
    Declined,
    ToolDefinition,
    plain_reason,
)
from a2c_smcp.computer.rules.deciding import RuledCall, RuledTool
from a2c_smcp.computer.rules.proposing import Proposal, deny_rule, propose, tool_rule
from a2c_smcp.computer.rules.rule import Rule
from a2c_smcp.errors import BadRequestError

__all__ = ["made_rule", "proposal_for", "ruled_call"]


def ruled_call(call: WatchedCall, definition: ToolDefinition) -> RuledCall:
    """The call as rules see it, with the tool as the person saw it."""
    tool = RuledTool(
        call.server or "", call.name, call.tool or call.name, definition.annotations, lambda: definition.digest
    )
    return RuledCall(tool, call.arguments, call.agent or "", call.office or "")


def proposal_for(decision: Confirmation) -> Proposal | None:
    """The narrowest rule for calls like this one, and how it may be widened."""
    return propose(ruled_call(decision.call, decision.definition))


def made_rule(decision: Confirmation, answer: DecisionAnswer, rule_id: str) -> Rule | None:
    """The rule that an answer makes, if it makes one. Raises `BadRequestError` if there can be no such rule."""
    call = ruled_call(decision.call, decision.definition)
    match answer:
        case Accepted(always=True):
            return tool_rule(call, rule_id)
        case Accepted(widths=tuple() as widths):
            if (proposal := propose(call)) is None:
                raise BadRequestError("this call has too many or too large arguments for a rule like this")
            return proposal.rule(rule_id, widths)
        case Declined(never=True, reason=reason):
            return deny_rule(call, rule_id, plain_reason(reason))
    return None
