"""A rule in words. Pure.

A rule becomes phrases: a key and the values for it. The terminal has the English sentence of each key here; the page
has sentences for the same keys in its languages.
"""

import datetime as dt
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import orjson

from a2c_smcp.computer.rules.conditions import Condition
from a2c_smcp.computer.rules.globs import Glob, PlainGlob
from a2c_smcp.computer.rules.hosts import HostPattern
from a2c_smcp.computer.rules.mail import MailPattern
from a2c_smcp.computer.rules.rule import Rule
from a2c_smcp.utils.secret_shapes import MASK, hidden, holds_secret
from a2c_smcp.utils.text import visible

__all__ = [
    "ENGLISH",
    "Phrase",
    "condition_phrase",
    "effect_phrase",
    "in_english",
    "rule_phrases",
    "sentence_of",
    "shown_value",
]

_LONGEST_VALUE: Final = 200
#: The operators that quote values of the argument.
_QUOTES: Final = frozenset({"equals", "one_of", "glob", "plain_glob"})
#: The conditions on who asks, and their sentences in a rule that does not allow.
_UNCERTAIN: Final = {"agent": "agent.claimed", "key": "key.unknown"}

#: The English sentences. The page's `texts-en.js` has the same, with `rule.` before each key.
ENGLISH: Final = {
    "allow": "Allow",
    "ask": "Ask before",
    "deny": "Never run",
    "allow.reads": "Allow reading",
    "ask.reads": "Ask before reading",
    "deny.reads": "Never read",
    "tool": "the tool is {value}",
    "server": "the server is {value}",
    "agent": "the agent is {value}, by a key that is bound to this name",
    "agent.claimed": "the agent is {value}, or no key is bound to its name",
    "key": "its key is {value}",
    "key.unknown": "its key is {value}, or is not known",
    "office": "the office is {value}",
    "anytool": "any tool",
    "anything": "any tool, and whatever can be read",
    "reads": "what is read is {value}",
    "read_only.yes": "its server says that it only reads",
    "read_only.no": "its server does not say that it only reads",
    "destructive.yes": "it may destroy something",
    "destructive.no": "its server says that it destroys nothing",
    "open_world.yes": "it may reach the outside world",
    "open_world.no": "its server says that it stays on this computer",
    "only_args": "it has no other arguments than {value}",
    "no_args": "it has no arguments",
    "hours": "the time is {value}",
    "rate": "at most {value}",
    "expires": "until {value}",
    "bound": "as long as the tool stays as it was shown",
    "equals": "{name} is exactly {value}",
    "one_of": "{name} is one of {value}",
    "glob": "{name} has the form {value}",
    "plain_glob": "{name} has the form {value}, where * is letters, digits and . _ + - only",
    "under": "{name} is in the folder {value}",
    "host": "{name} is a URL of {value}",
    "mail": "{name} is one mail address of {value}",
    "one_line.yes": "{name} is one line",
    "one_line.no": "{name} has line breaks or other control characters",
    "at_most": "{name} is at most {value}",
    "at_least": "{name} is at least {value}",
    "whole.yes": "{name} is a whole number",
    "whole.no": "{name} is not a whole number",
    "longest": "{name} has at most {value} characters or items",
    "absent.yes": "{name} is left out",
    "absent.no": "{name} is given",
    "every": "for every item of {name}: {value}",
    "some": "for at least one item of {name}: {value}",
    "item": "it",
    "all": "{value}",
    "any": "any {name}",
    "secret": "any value of {name}: a secret is not written into a rule",
    "anyagent": "any agent",
    "anyof.key": "any agent with the key {value}: no key is bound to the name {name}",
    "anyof.office": "any agent in the office {value}: no key is bound to the name {name}",
}


@dataclass(frozen=True, slots=True)
class Phrase:
    key: str
    name: str = ""
    """The argument, if it is about one."""
    value: str = ""
    parts: tuple["Phrase", ...] = ()
    """The conditions on the items of a list. They stand for the value."""

    @property
    def data(self) -> dict[str, Any]:
        """For the page."""
        return {"key": self.key, "name": self.name, "value": self.value, "parts": [part.data for part in self.parts]}


def in_english(phrase: Phrase) -> str:
    name = phrase.name or ENGLISH["item"]
    value = " and ".join(map(in_english, phrase.parts)) if phrase.parts else phrase.value
    return ENGLISH[phrase.key].replace("{name}", name).replace("{value}", value)


def sentence_of(rule: Rule) -> str:
    """The whole rule as one English sentence."""
    first, *rest = map(in_english, rule_phrases(rule))
    return f"{in_english(effect_phrase(rule))}: {first}{''.join(f'; {each}' for each in rest)}"


def effect_phrase(rule: Rule) -> Phrase:
    return Phrase(f"{rule.effect}.reads" if rule.reads else rule.effect)


def rule_phrases(rule: Rule) -> list[Phrase]:
    """Every condition of the rule, in the order in which a person reads it."""
    return list(_phrases(rule))


def _phrases(rule: Rule) -> Iterator[Phrase]:
    if rule.reads:
        yield Phrase("reads", value=", ".join(visible(pattern.text) for pattern in rule.reads))
    elif not rule.tool:
        yield Phrase("anything" if rule.is_about_reads else "anytool")
    for key in ("tool", "server", "agent", "key", "office"):
        if globs := getattr(rule, key):
            # What is uncertain fits as well, if the rule allows nothing.
            shown = key if rule.effect == "allow" else _UNCERTAIN.get(key, key)
            yield Phrase(shown, value=", ".join(visible(glob.text) for glob in globs))
    for key in ("read_only", "destructive", "open_world"):
        if (wanted := getattr(rule, key)) is not None:
            yield Phrase(f"{key}.{'yes' if wanted else 'no'}")
    for args in rule.args:
        for condition in args.conditions:
            yield condition_phrase(args.name, condition)
    if rule.only_args is not None:
        names = ", ".join(visible(name) for name in sorted(rule.only_args))
        yield Phrase("only_args", value=names) if names else Phrase("no_args")
    if rule.hours is not None:
        yield Phrase("hours", value=str(rule.hours))
    if rule.at_most is not None:
        yield Phrase("rate", value=f"{rule.at_most.count} per {rule.at_most.unit}")
    if rule.expires is not None:
        yield Phrase("expires", value=dt.datetime.fromtimestamp(rule.expires).strftime("%Y-%m-%d %H:%M"))
    if rule.digest is not None and rule.effect != "deny":
        yield Phrase("bound")


def condition_phrase(name: str, condition: Condition) -> Phrase:
    """A condition on an argument, or on an item if there is no name."""
    shown = visible(name)
    match condition:
        case Condition("absent" | "one_line" | "whole" as key, wanted):
            return Phrase(f"{key}.{'yes' if wanted else 'no'}", shown)
        case Condition("every" | "some" as key, inner):
            if holds_secret(name, ()):
                return Phrase(key, shown, MASK)
            return Phrase(key, shown, parts=tuple(condition_phrase("", each) for each in inner))
        case Condition(key, operand):
            return Phrase(key, shown, MASK if key in _QUOTES and holds_secret(name, operand) else _value(operand))


def _value(operand: Any) -> str:
    match operand:
        case Glob() | PlainGlob():
            return _cut(hidden(visible(operand.text)))
        case tuple() if operand and isinstance(operand[0], HostPattern | MailPattern):
            return ", ".join(map(str, operand))
        case tuple():
            return _cut(", ".join(map(_value, operand)))
        case _:
            return shown_value(operand)


def shown_value(value: Any) -> str:
    """A value of an argument, for a person: as JSON, without secrets, and cut if it is long."""
    return _cut(hidden(visible(_json(value))))


def _json(value: Any) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # for example an integer over 64 bits
        return json.dumps(value, ensure_ascii=False, default=str)


def _cut(text: str) -> str:
    if len(text) <= _LONGEST_VALUE:
        return text
    return f"{text[:_LONGEST_VALUE]}… ({len(text):,})"
