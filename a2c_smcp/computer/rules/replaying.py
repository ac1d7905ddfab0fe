"""What other rules would have said of past calls. Pure.

Links, host names and rates are left out: they are as they were only then.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from a2c_smcp.computer.rules.deciding import Moment, RuleCounters, RuledCall, RuleVerdict, decide
from a2c_smcp.computer.rules.rule import Rule
from a2c_smcp.computer.rules.rule_list import RuleList

__all__ = ["PastCall", "ReplayedCall", "replayed"]


@dataclass(frozen=True, slots=True)
class PastCall:
    """A call of the past, with its tool as it is now."""

    call: RuledCall
    at: float
    """When it began, in Unix time."""


@dataclass(frozen=True, slots=True)
class ReplayedCall:
    """What the rules say of a call, and what they would say."""

    past: PastCall
    before: RuleVerdict | None
    after: RuleVerdict | None


def replayed(
    before: Sequence[Rule], after: Sequence[Rule], rule: Rule | None, calls: Iterable[PastCall], now: Moment
) -> list[ReplayedCall]:
    """The calls that `rule` would decide, or of which the new rules say something else than the old ones."""
    old, new, counters = RuleList(tuple(before)), RuleList(tuple(after)), RuleCounters()
    found = []
    for past in calls:
        was = decide(old.about(past.call.tool), past.call, now, counters)
        is_now = decide(new.about(past.call.tool), past.call, now, counters)
        decides = rule is not None and is_now is not None and is_now.rule.id == rule.id
        if decides or _effect(was) != _effect(is_now):
            found.append(ReplayedCall(past, was, is_now))
    return found


def _effect(verdict: RuleVerdict | None) -> str | None:
    return None if verdict is None else verdict.effect
