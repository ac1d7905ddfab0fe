"""The rules that a person makes with an answer: calls like this one, this tool, or never. For a read: this document or
window, for this agent or for all. Pure.
"""

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
from a2c_smcp.computer.rules.proposing import Proposal, deny_rule, propose, tool_rule, why_no_rule
from a2c_smcp.computer.rules.proposing_reads import propose_read, read_rule
from a2c_smcp.computer.rules.reads import RuledRead
from a2c_smcp.computer.rules.rule import Rule
from a2c_smcp.errors import BadRequestError
from a2c_smcp.utils.secret_shapes import hidden

__all__ = ["made_rule", "no_proposal_for", "proposal_for", "ruled_call"]


def ruled_call(call: WatchedCall, definition: ToolDefinition) -> RuledCall:
    """The call as rules see it, with the tool as the person saw it."""
    tool = RuledTool(
        call.server or "", call.name, call.tool or call.name, definition.annotations, lambda: definition.digest
    )
    return RuledCall(tool, call.arguments, call.asker)


def proposal_for(decision: Confirmation) -> Proposal | None:
    """The narrowest rule for calls like this one, and how it may be widened."""
    if decision.reads is not None:
        return propose_read(decision.reads)
    return propose(ruled_call(decision.call, decision.definition))


def no_proposal_for(decision: Confirmation) -> tuple[str, str]:
    """Why `proposal_for` is `None`: a key for the page, and the reason in words."""
    if decision.reads is not None:
        return "address", "its address may mean several things, or has a secret in it"
    return why_no_rule(ruled_call(decision.call, decision.definition))


def made_rule(decision: Confirmation, answer: DecisionAnswer, rule_id: str) -> Rule | None:
    """The rule that an answer makes, if it makes one. Raises `BadRequestError` if there can be no such rule."""
    if decision.reads is not None:
        return _read_rule(decision.reads, answer, rule_id)
    call = ruled_call(decision.call, decision.definition)
    match answer:
        case Accepted(always=True):
            return tool_rule(call, rule_id)
        case Accepted(widths=tuple() as widths):
            if (proposal := propose(call)) is None:
                raise BadRequestError(f"no rule like this can be made: {why_no_rule(call)[1]}")
            return proposal.rule(rule_id, widths)
        case Declined(never=True, reason=reason):
            return deny_rule(call, rule_id, hidden(plain_reason(reason)))
    return None


def _read_rule(read: RuledRead, answer: DecisionAnswer, rule_id: str) -> Rule | None:
    match answer:
        case Accepted(always=True):
            return read_rule(read, rule_id, "allow")
        case Accepted(widths=tuple() as widths):
            if (proposal := propose_read(read)) is None:
                raise BadRequestError("no rule can be made for this; write one by hand")
            return proposal.rule(rule_id, widths)
        case Declined(never=True, reason=reason):
            return read_rule(read, rule_id, "deny", hidden(plain_reason(reason)))
    return None
