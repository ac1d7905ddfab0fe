"""The rules of a computer in the order in which they decide, and changes that are not in their file yet. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from a2c_smcp.computer.rules.deciding import Moment, RuledTool, needs_lookups
from a2c_smcp.computer.rules.rule import Rule
from a2c_smcp.computer.rules.toml_text import read_rules, with_rule, without_rule
from a2c_smcp.errors import NotFoundError

__all__ = [
    "AddRule",
    "RemoveRule",
    "RuleEdit",
    "RuleList",
    "apply_edit",
    "denies_in",
    "edited_text",
    "only_denies_more",
]


@dataclass(frozen=True, slots=True)
class AddRule:
    rule: Rule
    before: str | None = None
    """The rule in front of which it stands; at the end if that is gone."""
    comment: str = ""
    is_first: bool = False
    """Whether it stands in front of all rules."""


@dataclass(frozen=True, slots=True)
class RemoveRule:
    rule_id: str


RuleEdit = AddRule | RemoveRule


def apply_edit(rules: tuple[Rule, ...], edit: RuleEdit) -> tuple[Rule, ...]:
    """The rules after a change. A rule that is gone already is no mistake: another page was quicker."""
    if isinstance(edit, RemoveRule):
        return tuple(rule for rule in rules if rule.id != edit.rule_id)
    if any(rule.id == edit.rule.id for rule in rules):
        return rules
    place = 0 if edit.is_first else next((at for at, rule in enumerate(rules) if rule.id == edit.before), len(rules))
    return (*rules[:place], edit.rule, *rules[place:])


def edited_text(text: str, edit: RuleEdit) -> str:
    """The text of the file after a change. Raises `BadRequestError` if it cannot be changed."""
    if isinstance(edit, AddRule):
        rules = read_rules(text)[0]
        if any(rule.id == edit.rule.id for rule in rules):
            return text  # written before, by a try that was interrupted
        before = rules[0].id if edit.is_first and rules else edit.before
        return with_rule(text, edit.rule, before, edit.comment)
    return without_rule(text, edit.rule_id)


def denies_in(rules: Sequence[Rule]) -> int:
    """How many of the rules forbid something."""
    return sum(rule.effect == "deny" for rule in rules)


def only_denies_more(before: Sequence[Rule], after: Sequence[Rule]) -> bool:
    """Whether a new version of a file has all rules that it had, in their order, and besides only more that forbid
    something.
    """
    kept = 0
    for rule in after:
        if kept < len(before) and rule == before[kept]:
            kept += 1
        elif rule.effect != "deny":
            return False
    return kept == len(before)


@dataclass(frozen=True)
class RuleList:
    """A value: each change returns a new one. The rules of the file come first, then those of config files."""

    in_file: tuple[Rule, ...] = ()
    edits: tuple[RuleEdit, ...] = ()
    """The changes that are not written yet."""
    in_configs: tuple[Rule, ...] = ()
    own: tuple[Rule, ...] = field(init=False)
    """The rules of the file, with the changes."""
    all: tuple[Rule, ...] = field(init=False)
    """All rules, in the order in which they decide."""
    has_lookups: bool = field(init=False)
    """Whether a rule has a condition for which paths or names may have to be resolved."""
    has_times: bool = field(init=False)
    """Whether a rule holds only at some times."""
    about_reads: tuple[Rule, ...] = field(init=False)
    """The rules that may match a read, in order."""
    _exact: dict[str, list[tuple[int, Rule]]] = field(init=False, repr=False)
    _wide: list[tuple[int, Rule]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        own = self.in_file
        for edit in self.edits:
            own = apply_edit(own, edit)
        ids = {rule.id for rule in own}
        object.__setattr__(self, "own", own)
        object.__setattr__(self, "all", (*own, *(rule for rule in self.in_configs if rule.id not in ids)))
        object.__setattr__(self, "has_lookups", any(needs_lookups(rule) for rule in self.all))
        has_times = any(rule.hours is not None or rule.expires is not None for rule in self.all)
        object.__setattr__(self, "has_times", has_times)
        object.__setattr__(self, "about_reads", tuple(rule for rule in self.all if rule.is_about_reads))
        object.__setattr__(self, "_exact", {})
        object.__setattr__(self, "_wide", [])
        for number, rule in enumerate(self.all):
            if rule.reads:
                continue
            if not rule.tool or any(glob.is_wide for glob in rule.tool):
                self._wide.append((number, rule))
            else:
                for glob in rule.tool:
                    self._exact.setdefault(glob.text, []).append((number, rule))

    def about(self, tool: RuledTool) -> Sequence[Rule]:
        """The rules that may match a call of this tool, in order."""
        if not self._exact:
            return [rule for _, rule in self._wide]
        return [rule for _, rule in sorted(self._numbered(tool), key=lambda numbered: numbered[0])]

    def _numbered(self, tool: RuledTool) -> Iterator[tuple[int, Rule]]:
        yield from self._wide
        yield from self._exact.get(tool.name, ())
        if tool.original != tool.name:
            yield from self._exact.get(tool.original, ())

    def holds_alike(self, before: Moment, now: Moment) -> bool:
        """Whether the same rules are in force at both times."""
        is_same_minute = before.minute == now.minute and abs(now.time - before.time) < 60
        return all(
            (rule.hours is None or is_same_minute)
            and (rule.expires is None or (before.time < rule.expires) == (now.time < rule.expires))
            for rule in self.all
        )

    def find(self, rule_id: str) -> Rule:
        """Raises `NotFoundError` for an unknown id."""
        for rule in self.all:
            if rule.id == rule_id:
                return rule
        raise NotFoundError("no rule has this id any more", {"rule": rule_id})

    def edited(self, *edits: RuleEdit) -> "RuleList":
        return replace(self, edits=(*self.edits, *edits))
