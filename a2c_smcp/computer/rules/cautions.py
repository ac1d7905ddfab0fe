"""What a person may not have meant with a rule, though it is no mistake. Pure."""

from collections.abc import Iterable, Iterator
from typing import Final

from a2c_smcp.computer.rules.conditions import Condition
from a2c_smcp.computer.rules.globs import Glob
from a2c_smcp.computer.rules.hosts import HOST_CLASSES, HostPattern, is_in_class
from a2c_smcp.computer.rules.rule import ArgumentConditions, Rule

__all__ = ["cautions_of", "rule_warnings"]

_SEPARATORS: Final = frozenset("/:, ")


def rule_warnings(rule: Rule) -> Iterator[str]:
    """One sentence for each condition that matches more, or less, than it seems to."""
    for key in ("agent", "key"):
        if rule.effect == "allow" and any(glob.text == "*" for glob in getattr(rule, key)):
            yield f'{key}: "*" takes only what is certain; leave {key} out, and any agent is allowed'
    for args in rule.args:
        found = _of_allow(args) if rule.effect == "allow" else _of_other(args)
        yield from (f"args.{args.name}: {said}" for said in found)


def cautions_of(rules: Iterable[Rule]) -> Iterator[str]:
    """The warnings of all rules, each with the rule's id."""
    for rule in rules:
        yield from (f"rule {rule.id}: {said}" for said in rule_warnings(rule))


def _of_allow(args: ArgumentConditions) -> Iterator[str]:
    conditions = [*_flat(args.conditions)]
    operators = {condition.operator for condition in conditions}
    if "at_most" in operators and "at_least" not in operators:
        yield "at_most also takes every negative number; add at_least"
    for glob in (condition.operand for condition in conditions if condition.operator == "glob"):
        if not isinstance(glob, Glob) or "*" not in glob.text:
            continue
        if "@" in glob.text:
            yield "the * of a glob takes more than one mail address; did you mean 'mail'?"
        elif _SEPARATORS & set(glob.text):
            yield "the * of a glob also takes slashes, colons and blanks; did you mean 'plain_glob', or 'under'?"


def _of_other(args: ArgumentConditions) -> Iterator[str]:
    if any(condition.operator == "every" for condition in args.conditions):
        yield "it matches only if every item does; did you mean 'some'?"
    for condition in _flat(args.conditions):
        if condition.operator == "host":
            yield from _of_hosts(condition.operand)


def _of_hosts(patterns: tuple[HostPattern, ...]) -> Iterator[str]:
    for name in HOST_CLASSES:
        has_class = any(pattern.is_class and pattern.name == name for pattern in patterns)
        if not has_class and any(is_in_class(name, pattern.name) for pattern in patterns):
            yield f"other names and addresses lead to the same place; did you mean host = {name!r}?"


def _flat(conditions: Iterable[Condition]) -> Iterator[Condition]:
    for condition in conditions:
        if condition.operator in ("every", "some"):
            yield from condition.operand
        else:
            yield condition
