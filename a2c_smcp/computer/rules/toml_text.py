"""Rules in the text of a TOML file: read, added and removed while every other byte stays. Pure."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from a2c_smcp.computer.config.problems import Problem
from a2c_smcp.computer.rules.rule import Rule, parse_rules
from a2c_smcp.errors import BadRequestError, NotFoundError
from a2c_smcp.terminal.suggestions import did_you_mean

__all__ = ["comments_of", "read_rules", "rule_text", "with_rule", "without_rule"]

_KEY: Final = "rules"
_HEADER: Final = re.compile(r"^[ \t]*\[\[[ \t]*(?:rules|\"rules\"|'rules')[ \t]*\]\]", re.MULTILINE)
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPES: Final = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def read_rules(text: str, file: str = "") -> tuple[tuple[Rule, ...], tuple[Problem, ...]]:
    """The rules of a file, and what is wrong with it. If anything is, use none of them."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return (), (Problem(f"is not TOML: {error}", file=file),)
    except RecursionError:
        return (), (Problem("nests too deeply", file=file),)
    unknown = [
        Problem(f"unknown key{did_you_mean(key, (_KEY,))}; rules are written as [[rules]]", key, file=file)
        for key in data
        if key != _KEY
    ]
    rules, problems = parse_rules(data.get(_KEY, []), file=file)
    return rules, (*unknown, *problems)


def comments_of(text: str, rules: Sequence[Rule]) -> dict[str, str]:
    """The comment that stands above each of the rules of this text, by the rule's id."""
    starts = [found.start() for found in _HEADER.finditer(text)]
    if len(starts) != len(rules):
        return {}
    found = {}
    for rule, start in zip(rules, starts, strict=True):
        lines = text[_start_with_comments(text, start) : start].splitlines()
        if said := "\n".join(line.strip().lstrip("#").strip() for line in lines):
            found[rule.id] = said
    return found


def rule_text(raw: Mapping[str, Any]) -> str:
    """One rule as it is written in a file, without its header. Raises `BadRequestError` if that cannot be written."""
    return _fields(raw)


def with_rule(text: str, rule: Rule, before: str | None = None, comment: str = "") -> str:
    """The text with one more rule: before the rule with this id, or at the end.

    Raises `BadRequestError` if the text is not written so that a rule can be added.
    """
    rules = _rules_in(text)
    block = f"{_comment(comment)}[[{_KEY}]]\n{_fields(rule.raw)}"
    place = next((number for number, each in enumerate(rules) if each.id == before), None)
    if place is None:
        gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
        new, wanted = f"{text}{gap}{block}", [*rules, rule]
    else:
        start = _start_with_comments(text, _starts(text, rules)[place])
        new, wanted = f"{text[:start]}{block}\n{text[start:]}", [*rules[:place], rule, *rules[place:]]
    return _checked(new, wanted)


def without_rule(text: str, rule_id: str) -> str:
    """The text without this rule. Raises `NotFoundError` if it is not there, `BadRequestError` if it cannot be cut
    out.
    """
    rules = _rules_in(text)
    place = next((number for number, each in enumerate(rules) if each.id == rule_id), None)
    if place is None:
        raise NotFoundError("the file has no such rule any more")
    starts = [*_starts(text, rules), len(text)]
    # The comments above the next rule are about that rule.
    start = _start_with_comments(text, starts[place])
    end = len(text) if place + 1 == len(rules) else _start_with_comments(text, starts[place + 1])
    new = text[:start] + text[end:]
    return _checked(
        new.rstrip("\n") + "\n" if end == len(text) and new.strip() else new, rules[:place] + rules[place + 1 :]
    )


def _rules_in(text: str) -> list[Rule]:
    rules, problems = read_rules(text)
    if problems:
        raise BadRequestError(f"the rules file has a mistake, so it is not changed: {problems[0]}")
    return list(rules)


def _starts(text: str, rules: list[Rule]) -> list[int]:
    starts = [found.start() for found in _HEADER.finditer(text)]
    if len(starts) != len(rules):  # for example `rules = [{…}]` on one line
        raise BadRequestError("the rules file is not written with one [[rules]] for each rule; change it by hand")
    return starts


def _start_with_comments(text: str, start: int) -> int:
    """Where the lines of comments begin that stand directly above this place."""
    while start > 0:
        line = text.rfind("\n", 0, start - 1) + 1
        if not text[line:start].lstrip().startswith("#"):
            break
        start = line
    return start


def _checked(text: str, wanted: list[Rule]) -> str:
    """The new text, if it says exactly what it should. A text that our eyes misread is never written."""
    found, problems = read_rules(text)
    if problems or [_content(rule) for rule in found] != [_content(rule) for rule in wanted]:
        raise BadRequestError("the rules file is written in a way that cannot be changed here; change it by hand")
    return text


def _content(rule: Rule) -> Mapping[str, Any]:
    return rule.raw


def _comment(comment: str) -> str:
    lines = ["".join(each if each.isprintable() else " " for each in line)[:1000] for line in comment.splitlines()]
    return "".join(f"# {line}\n" for line in lines[:200] if line)


def _fields(raw: Mapping[str, Any]) -> str:
    lines = [f"{key} = {_toml(value)}" for key, value in raw.items() if key != "args"]
    lines += [f"args.{_key(name)} = {_toml(value)}" for name, value in raw.get("args", {}).items()]
    return "".join(f"{line}\n" for line in lines)


def _toml(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str():
            return _text(value)
        case list() | tuple():
            return f"[{', '.join(map(_toml, value))}]"
        case Mapping():
            return "{" + ", ".join(f"{_key(key)} = {_toml(each)}" for key, each in value.items()) + "}"
    raise BadRequestError("this value cannot be written to a TOML file")


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _text(text: str) -> str:
    def escaped(character: str) -> str:
        if character in _ESCAPES:
            return _ESCAPES[character]
        if character.isprintable() or character == " ":
            return character
        if "\ud800" <= character <= "\udfff":
            raise BadRequestError("a text with half a character cannot be written to a TOML file")
        return f"\\U{ord(character):08x}"

    return f'"{"".join(map(escaped, text))}"'
