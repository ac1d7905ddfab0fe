"""Which rule decides a call, and how. The first rule that matches decides. Pure: clocks and real paths are passed in.

A rule that a person made from a card has the digest of the tool as it was then. Such a rule gives way to every `deny`
that matches, also to a later one: a click must not switch off what somebody has written down. Only an `allow` that
somebody wrote before that `deny` keeps it from matching, as it does without the card's rule. If the tool has changed
since, or if another server now has a tool of this name, the rule is asleep: the call is asked for, unless a later rule
denies it.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from itertools import islice
from typing import Any, Final

from a2c_smcp.computer.asker import Asker
from a2c_smcp.computer.rules.conditions import (
    MISSING,
    UNCLEAR,
    Condition,
    Fit,
    Known,
    RealPath,
    all_of,
    names_of,
    paths_of,
    test,
)
from a2c_smcp.computer.rules.globs import Glob
from a2c_smcp.computer.rules.paths import BY_TEXT
from a2c_smcp.computer.rules.rule import ArgumentConditions, Effect, Rule
from a2c_smcp.utils.json_sizes import json_or_none

__all__ = [
    "LARGEST_ARGUMENTS",
    "Moment",
    "RuleCounters",
    "RuleVerdict",
    "RuledCall",
    "RuledTool",
    "answer_for_all",
    "decide",
    "fits_asker",
    "names_to_resolve",
    "needs_lookups",
    "paths_to_resolve",
]

#: Conditions on arguments are tested only up to this size, in bytes.
LARGEST_ARGUMENTS: Final = 64 * 1024
#: How many paths of one call are resolved. The condition on any other path does not fit.
_MOST_PATHS: Final = 1000
#: How many names of hosts of one call are looked up. The condition on any other name does not fit.
_MOST_NAMES: Final = 20


@dataclass(frozen=True)
class RuledTool:
    """A tool as rules see it."""

    server: str
    name: str
    """The name that agents see."""
    original: str
    """The server's own name for it."""
    annotations: Mapping[str, Any] = field(default_factory=dict)
    make_digest: Callable[[], str] = field(default=lambda: "", compare=False)

    @cached_property
    def digest(self) -> str:
        """Of the tool as its server describes it now. Only rules that are bound to a digest need it."""
        return self.make_digest()

    # Without a hint, MCP's own defaults: nothing is taken as harmless that its server does not say is.

    @property
    def read_only(self) -> bool:
        return self.annotations.get("readOnlyHint") is True

    @property
    def destructive(self) -> bool:
        return not self.read_only and self.annotations.get("destructiveHint") is not False

    @property
    def open_world(self) -> bool:
        return self.annotations.get("openWorldHint") is not False


@dataclass(frozen=True)
class RuledCall:
    """A call as rules see it."""

    tool: RuledTool
    arguments: Mapping[str, Any] = field(default_factory=dict)
    asker: Asker | None = None
    """The agent that made the call; `None` if no agent did."""

    @cached_property
    def is_large(self) -> bool:
        text = json_or_none(self.arguments)
        return text is None or len(text) > LARGEST_ARGUMENTS or len(text.encode()) > LARGEST_ARGUMENTS

    @cached_property
    def names_places(self) -> bool:
        """Whether a text in the arguments may be a path or a URL, so that something may have to be looked up."""
        return not self.is_large and any(map(_may_be_place, _texts(self.arguments)))


@dataclass(frozen=True, slots=True)
class Moment:
    """When a call is decided."""

    time: float
    """Unix time."""
    minute: int
    """Of the day, by the computer's clock."""
    steady: float = 0.0
    """Seconds of a clock that is never set back. Rates are counted by it."""


@dataclass(frozen=True, slots=True)
class RuleVerdict:
    """What a rule says about a call."""

    effect: Effect
    rule: Rule
    is_asleep: bool = False
    """Whether the rule was made for another tool than this one is now."""


class RuleCounters:
    """How often each rule decided, and when last. Rates are kept here, too."""

    def __init__(self) -> None:
        self._times: dict[str, deque[float]] = {}
        self._matched: dict[str, tuple[int, float]] = {}
        self._recalled: Mapping[str, tuple[int, float]] = {}

    def spent(self, rule: Rule, steady: float) -> bool:
        """Whether the rule has decided as often as its rate allows."""
        rate = rule.at_most
        times = self._times.get(rule.id)
        if rate is None or times is None:
            return False
        # The oldest of the last `count` calls is still inside the window.
        return len(times) >= rate.count and times[-rate.count] > steady - rate.seconds

    def count(self, rule: Rule, now: Moment) -> None:
        """The rule has decided a call."""
        count, _ = self._matched.get(rule.id, (0, 0.0))
        self._matched[rule.id] = count + 1, now.time
        if rule.at_most is not None:
            times = self._times.setdefault(rule.id, deque())
            times.append(now.steady)
            while len(times) > rule.at_most.count:
                times.popleft()

    def matched(self, rule_id: str) -> tuple[int, float | None]:
        """How often it decided, and when last, in Unix time. Earlier runs count if they were recalled."""
        before, last_before = self._recalled.get(rule_id, (0, None))
        count, last = self._matched.get(rule_id, (0, last_before))
        return before + count, last

    def recall(self, counts: Mapping[str, tuple[int, float]]) -> None:
        """How often rules decided in earlier runs, and when last. Rates do not count it."""
        self._recalled = counts

    def keep(self, rules: Sequence[Rule]) -> None:
        """Forget the counts of all other rules."""
        ids = {rule.id for rule in rules}
        self._times = {rule_id: times for rule_id, times in self._times.items() if rule_id in ids}
        self._matched = {rule_id: found for rule_id, found in self._matched.items() if rule_id in ids}


def decide(
    rules: Sequence[Rule],
    call: RuledCall,
    now: Moment,
    counters: RuleCounters,
    known: Known | RealPath = BY_TEXT,
    counted: str | None = None,
) -> RuleVerdict | None:
    """What the first rule that matches says; `None` if no rule matches. Nothing is counted, and nothing raises.

    `known` is what was looked up before, or only where paths lead. `counted` is the rule that has counted this call
    already: its rate has room for it.
    """
    known = known if isinstance(known, Known) else Known(known)
    # The verdict of a rule that is bound to a tool. It stands unless a later rule denies the call.
    standing: RuleVerdict | None = None
    for rule in rules:
        match _names(rule, call):
            case _NameMatch.OTHER:
                continue
            case _NameMatch.CHANGED:
                if standing is None and (rule.expires is None or now.time < rule.expires):
                    standing = RuleVerdict("ask", rule, is_asleep=True)
                continue
        if not _conditions(rule, call, now, known):
            continue
        if rule.id != counted and counters.spent(rule, now.steady):
            continue
        if rule.effect == "deny":
            return RuleVerdict("deny", rule)
        if standing is None:
            standing = RuleVerdict(rule.effect, rule)
            if not _is_bound_allow(rule):
                break
        elif rule.effect == "allow" and rule.digest is None:
            break
    return standing


def _is_bound_allow(rule: Rule) -> bool:
    return rule.effect == "allow" and rule.digest is not None


def paths_to_resolve(rules: Sequence[Rule], call: RuledCall) -> list[str]:
    """The paths that conditions on this call need, the first thousand. Most calls need none."""

    def needed(rule: Rule, condition: Condition, value: Any) -> Iterator[str]:
        return paths_of(condition, value, is_allow=rule.effect == "allow")

    return _needed(rules, call, needed, _MOST_PATHS)


def names_to_resolve(rules: Sequence[Rule], call: RuledCall) -> list[str]:
    """The names of hosts whose addresses conditions on this call need. An `allow` never relies on addresses."""

    def needed(rule: Rule, condition: Condition, value: Any) -> Iterator[str]:
        return iter(()) if rule.effect == "allow" else names_of(condition, value)

    return _needed(rules, call, needed, _MOST_NAMES)


def _needed(
    rules: Sequence[Rule], call: RuledCall, needed: Callable[[Rule, Condition, Any], Iterator[str]], most: int
) -> list[str]:
    found: dict[str, None] = {}
    for rule in rules if call.names_places else ():
        here = {
            each: None
            for args in rule.args
            for condition in args.conditions
            for each in islice(needed(rule, condition, _value(call.arguments, args)), most)
        }
        if here and _names(rule, call) is _NameMatch.MATCHES:
            found |= here
            if len(found) >= most:
                break
    return list(found)[:most]


def answer_for_all(rules: Sequence[Rule], tool: RuledTool, otherwise: Effect) -> Effect | None:
    """The one answer that holds for every call of a tool; `None` if it depends on the call or on the time.

    `otherwise` is the answer if no rule matches.
    """
    call = RuledCall(tool)
    possible: set[Effect] = set()
    standing: Effect | None = None
    for rule in rules:
        name = _tool_name(rule, call)
        if name is _NameMatch.OTHER:
            continue
        if name is _NameMatch.CHANGED:
            if rule.expires is None:
                standing = standing or "ask"
            elif standing is None:
                possible.add("ask")
            continue
        if not _hints(rule, tool):
            continue
        is_certain = _is_certain(rule)
        if standing is None and is_certain and _is_bound_allow(rule):
            standing = "allow"
            continue
        if standing is None or rule.effect == "deny":
            possible.add(rule.effect)
        elif rule.effect == "ask" or rule.digest is not None:
            continue  # the standing answer stays, and a later rule may deny
        if is_certain:
            possible |= {standing} if standing is not None and rule.effect != "deny" else set()
            break
    else:
        possible.add(standing or otherwise)
    return possible.pop() if len(possible) == 1 else None


def _is_certain(rule: Rule) -> bool:
    """Whether the rule matches every call of its tools, by any agent, at any time."""
    if rule.effect == "allow" and (rule.agent or rule.key):
        return False  # nobody may vouch for the agent
    named = (rule.agent, rule.key, rule.office)
    is_for_all = all(not globs or any(glob.text == "*" for glob in globs) for globs in named)
    has_limits = rule.hours is not None or rule.at_most is not None or rule.expires is not None
    return is_for_all and not rule.args and rule.only_args is None and not has_limits


def _texts(value: Any) -> Iterator[str]:
    left = [value]
    while left:
        match left.pop():
            case str() as text:
                yield text
            case Mapping() as inner:
                left.extend(inner.values())
            case list() as items:
                left.extend(items)


def _may_be_place(text: str) -> bool:
    return "/" in text or "\\" in text


# --- one rule


class _NameMatch(Enum):
    OTHER = "other"
    MATCHES = "matches"
    CHANGED = "changed"
    """The rule is bound to a tool of this name that was another one."""


def _names(rule: Rule, call: RuledCall) -> _NameMatch:
    """Whether agent, office, server and tool are the rule's. A rule that is asleep sleeps for every agent."""
    found = _tool_name(rule, call)
    return found if found is not _NameMatch.MATCHES or fits_asker(rule, call.asker) else _NameMatch.OTHER


def fits_asker(rule: Rule, asker: Asker | None) -> bool:
    """Whether the rule is about this agent, with its key, in its office. A claimed name and an unknown key are
    uncertain: so they are no reason for an `allow`, and no way around a `deny` or an `ask`.
    """
    if not (rule.agent or rule.key or rule.office):
        return True
    if asker is None:
        return all(not globs or _any(rule, globs, "") for globs in (rule.agent, rule.key, rule.office))
    counts = rule.effect != "allow"
    if rule.agent and not (counts if asker.is_claimed else _any(rule, rule.agent, asker.name)):
        return False
    if rule.key and not (counts if asker.key is None else _any(rule, rule.key, asker.key)):
        return False
    return not rule.office or _any(rule, rule.office, asker.office)


def _tool_name(rule: Rule, call: RuledCall) -> _NameMatch:
    if rule.reads:
        return _NameMatch.OTHER
    tool = call.tool
    # Agents use the shown name. A `deny` also knows the server's own name: an alias does not bring a tool back.
    names = (tool.name,) if rule.effect == "allow" else (tool.name, tool.original)
    if rule.tool and not any(_any(rule, rule.tool, name) for name in names):
        return _NameMatch.OTHER
    is_server = not rule.server or _any(rule, rule.server, tool.server)
    if rule.digest is None or rule.effect == "deny":
        return _NameMatch.MATCHES if is_server else _NameMatch.OTHER
    return _NameMatch.MATCHES if is_server and rule.digest == tool.digest else _NameMatch.CHANGED


def _any(rule: Rule, globs: tuple[Glob, ...], text: str) -> bool:
    """Whether a name matches. A line break in a name keeps an `allow` from it, and no `deny`."""
    if rule.effect == "allow":
        return any(glob.matches(text) for glob in globs)
    return any(glob.may_match(text) for glob in globs)


def _conditions(rule: Rule, call: RuledCall, now: Moment, known: Known) -> bool:
    if rule.expires is not None and now.time >= rule.expires:
        return False
    if rule.hours is not None and not rule.hours.has(now.minute):
        return False
    if not _hints(rule, call.tool):
        return False
    if not rule.args and rule.only_args is None:
        return True
    fit = Fit.MISFIT if call.is_large else all_of(_arguments(rule, call, known))
    return fit is Fit.HOLDS or (fit is Fit.MISFIT and rule.effect != "allow")


def _hints(rule: Rule, tool: RuledTool) -> bool:
    return (
        rule.read_only in (None, tool.read_only)
        and rule.destructive in (None, tool.destructive)
        and rule.open_world in (None, tool.open_world)
    )


def _arguments(rule: Rule, call: RuledCall, known: Known) -> Iterator[Fit]:
    if rule.only_args is not None and not rule.only_args.issuperset(call.arguments):
        yield Fit.FAILS
    for args in rule.args:
        value = _value(call.arguments, args)
        for condition in args.conditions:
            yield test(condition, value, known)


def _value(arguments: Mapping[str, Any], args: ArgumentConditions) -> Any:
    found: Any = arguments
    for step in args.steps:
        if isinstance(found, Mapping):
            found = found.get(step, MISSING)
        elif isinstance(found, list) and step.isascii() and step.isdigit():
            found = found[int(step)] if len(step) < 10 and int(step) < len(found) else MISSING
        else:
            # A server may read a text as JSON, or one value as a list of one.
            return UNCLEAR
        if found is MISSING:
            break
    return found


#: What is looked up for an `allow`, and for any other rule.
_LOOKED_UP: Final = {
    True: frozenset({"under"}),
    False: frozenset({"under", "glob", "plain_glob", "equals", "one_of", "host"}),
}


def needs_lookups(rule: Rule) -> bool:
    """Whether paths or names may have to be resolved before the rule can be tested."""
    operators = _LOOKED_UP[rule.effect == "allow"]
    return any(
        condition.operator in operators
        or (condition.operator in ("every", "some") and any(inner.operator in operators for inner in condition.operand))
        for args in rule.args
        for condition in args.conditions
    )
