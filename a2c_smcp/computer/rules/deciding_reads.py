"""Which rule decides a read: the first one that matches. Pure: the time is passed in.

`ReadVerdicts` keeps what was decided for one agent. It is good until other rules, or the next hour or expiry that a
rule names, may change it: then make a new one.
"""

import math
from collections.abc import Sequence
from typing import Final

from a2c_smcp.computer.asker import Asker
from a2c_smcp.computer.rules.deciding import Moment, RuleVerdict, fits_asker
from a2c_smcp.computer.rules.reads import ReadKind, RuledRead, is_simple
from a2c_smcp.computer.rules.rule import Rule
from a2c_smcp.computer.rules.rule_list import RuleList

__all__ = ["MOST_KEPT", "MOST_LISTED", "ReadVerdicts", "decide_read"]

#: How many verdicts on what servers list are kept for one agent. Then they are decided again.
MOST_LISTED: Final = 200_000
#: How many are kept with those on other names, which an agent chooses, and how long such a name may be.
MOST_KEPT: Final = 10_000
_LONGEST_NAME: Final = 300
_MANY: Final = (ReadKind.DOCUMENT, ReadKind.WINDOW)


def decide_read(rules: Sequence[Rule], read: RuledRead, now: Moment) -> RuleVerdict | None:
    """What the first rule that matches says; `None` if no rule matches."""
    for rule in rules:
        if rule.is_about_reads and _is_in_force(rule, now) and fits_asker(rule, read.asker) and _matches(rule, read):
            return RuleVerdict(rule.effect, rule)
    return None


def _is_in_force(rule: Rule, now: Moment) -> bool:
    return (rule.expires is None or now.time < rule.expires) and (rule.hours is None or rule.hours.has(now.minute))


def _is_of_server(rule: Rule, server: str) -> bool:
    if rule.effect == "allow":
        return not rule.server or any(glob.matches(server) for glob in rule.server)
    return not rule.server or any(glob.may_match(server) for glob in rule.server)


def _matches(rule: Rule, read: RuledRead) -> bool:
    if not _is_of_server(rule, read.server):
        return False
    strictly = rule.effect == "allow"
    return not rule.reads or any(pattern.matches(read, strictly=strictly) for pattern in rule.reads)


class ReadVerdicts:
    """The verdicts on the reads of one agent, by these rules, from `now` on."""

    def __init__(self, rules: RuleList, now: Moment, asker: Asker | None) -> None:
        self.rules = rules
        self._asker = asker
        self._now = now
        mine = [rule for rule in rules.about_reads if fits_asker(rule, asker)]
        self._until = min((_next_change(rule, now) for rule in mine), default=math.inf)
        self._mine = tuple(rule for rule in mine if _is_in_force(rule, now))
        self._verdicts = tuple((rule, RuleVerdict(rule.effect, rule), _beginnings(rule)) for rule in self._mine)
        self._beginnings = tuple({each for _, _, beginnings in self._verdicts for each in beginnings})
        self._kept: dict[tuple[ReadKind, str, str], RuleVerdict | None] = {}
        self.decided = 0
        """How many reads were decided by looking at the rules."""

    def is_good(self, rules: RuleList, time: float) -> bool:
        """Whether they hold for these rules at this time."""
        is_same = rules is self.rules or rules.about_reads == self.rules.about_reads
        return is_same and self._now.time <= time < self._until

    def of(self, kind: ReadKind, server: str, name: str = "", *, listed: bool = False) -> RuleVerdict | None:
        """What the rules say about this read; `None` if no rule matches. `name` is a URI, or a name. If a server has
        it `listed`, the agent has not made it up.
        """
        key = kind, server, name
        try:
            return self._kept[key]
        except KeyError:
            pass
        self.decided += 1
        verdict = self._decide(kind, server, name)
        if listed or (len(self._kept) < MOST_KEPT and len(name) <= _LONGEST_NAME):
            if len(self._kept) >= MOST_LISTED:
                self._kept.clear()
            self._kept[key] = verdict
        return verdict

    def _decide(self, kind: ReadKind, server: str, name: str) -> RuleVerdict | None:
        if kind in _MANY and is_simple(name):
            return self._decide_simple(kind, server, name)
        read = RuledRead(kind, name, server, self._asker)
        return next((verdict for rule, verdict, _ in self._verdicts if _matches(rule, read)), None)

    def _decide_simple(self, kind: ReadKind, server: str, uri: str) -> RuleVerdict | None:
        # A catalogue has thousands of documents. Comparing beginnings leaves few rules to look at, or none.
        if uri.startswith(self._beginnings):
            for rule, verdict, beginnings in self._verdicts:
                if not uri.startswith(beginnings) or not _is_of_server(rule, server):
                    continue
                if not rule.reads or any(pattern.matches_simple(kind, uri) for pattern in rule.reads):
                    return verdict
        return None

    def strictest_below(self, server: str, prefix: str) -> RuleVerdict | None:
        """The strictest verdict that some resource of a server may get whose URI begins so: `deny` before `ask`. `None`
        if the agent may surely read all of them.
        """
        found: RuleVerdict | None = None
        for rule in self._mine:
            if not _is_of_server(rule, server):
                continue
            if not rule.reads or any(pattern.may_match_below(prefix) for pattern in rule.reads):
                if rule.effect == "deny":
                    return RuleVerdict("deny", rule)
                if rule.effect == "ask" and found is None:
                    found = RuleVerdict("ask", rule)
            if not rule.reads or any(pattern.matches_all_below(prefix) for pattern in rule.reads):
                break
        return found

    def none_of(self, kind: ReadKind, server: str) -> bool:
        """Whether this agent surely may read nothing of this kind."""
        for rule in self._mine:
            if not _is_of_server(rule, server):
                continue
            is_wide = not rule.reads or any(pattern.text == "*" or pattern.kind is kind for pattern in rule.reads)
            if rule.effect == "deny" and is_wide:
                return True
            if rule.effect != "deny":
                return False
        return False


def _beginnings(rule: Rule) -> tuple[str, ...]:
    """The URIs that this rule matches begin with one of these, if they can be written in one way only."""
    return tuple({pattern.beginning for pattern in rule.reads}) or ("",)


def _next_change(rule: Rule, now: Moment) -> float:
    """When the rule begins or stops to hold, in Unix time."""
    found = math.inf if rule.expires is None or rule.expires <= now.time else rule.expires
    if rule.hours is not None:
        edges = ((edge - now.minute) % 1440 or 1440 for edge in (rule.hours.start, rule.hours.end))
        # At the full hour, too: the clock may go forward or back then.
        minutes = min(60 - now.minute % 60, *edges)
        found = min(found, now.time - now.time % 60 + 60 * minutes)
    return found
