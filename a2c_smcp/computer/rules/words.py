"""A rule in words. Pure.

A rule becomes phrases: a key and the values for it. The terminal has the English sentence of each key here; the page
has sentences for the same keys in its languages.
"""

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import orjson

from a2c_smcp.computer.mcp_clients.masking import MASK
from a2c_smcp.computer.rules.conditions import Condition
from a2c_smcp.computer.rules.globs import Glob
from a2c_smcp.computer.rules.hosts import HostPattern
from a2c_smcp.computer.rules.rule import Rule
from a2c_smcp.utils.secret_names import holds_secret
from a2c_smcp.utils.text import visible

__all__ = ["ENGLISH", "Phrase", "condition_phrase", "effect_phrase", "in_english", "rule_phrases", "sentence_of"]

_LONGEST_VALUE: Final = 200
#: The operators that quote values of the argument.
_QUOTES: Final = frozenset({"equals", "one_of", "glob"})

#: The English sentences. The page's `texts-en.js` has the same, with `rule.` before each key.
ENGLISH: Final = {
    "allow": "Allow",
    "ask": "Ask before",
    "deny": "Never run",
    "tool": "the tool is {value}",
    "server": "the server is {value}",
    "agent": "the agent is {value}",
    "office": "the office is {value}",
    "anytool": "any tool",
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
    "under": "{name} is in the folder {value}",
    "host": "{name} is a URL of {value}",
    "at_most": "{name} is at most {value}",
    "at_least": "{name} is at least {value}",
    "longest": "{name} has at most {value} characters or items",
    "absent.yes": "{name} is left out",
    "absent.no": "{name} is given",
    "every": "for every item of {name}: {value}",
    "some": "for at least one item of {name}: {value}",
    "item": "it",
    "any": "any {name}",
    "secret": "any value of {name}: a secret is not written into a rule",
    "anyagent": "any agent",
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
    return Phrase(rule.effect)


def rule_phrases(rule: Rule) -> list[Phrase]:
    """Every condition of the rule, in the order in which a person reads it."""
    return list(_phrases(rule))


def _phrases(rule: Rule) -> Iterator[Phrase]:
    if not rule.tool:
        yield Phrase("anytool")
    for key in ("tool", "server", "agent", "office"):
        if globs := getattr(rule, key):
            yield Phrase(key, value=", ".join(visible(glob.text) for glob in globs))
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
        case Condition("absent", wanted):
            return Phrase(f"absent.{'yes' if wanted else 'no'}", shown)
        case Condition("every" | "some" as key, inner):
            if holds_secret(name, ()):
                return Phrase(key, shown, MASK)
            return Phrase(key, shown, parts=tuple(condition_phrase("", each) for each in inner))
        case Condition(key, operand):
            return Phrase(key, shown, MASK if key in _QUOTES and holds_secret(name, operand) else _value(operand))


def _value(operand: Any) -> str:
    match operand:
        case Glob():
            return _cut(visible(operand.text))
        case tuple() if operand and isinstance(operand[0], HostPattern):
            return ", ".join(map(str, operand))
        case tuple():
            return _cut(", ".join(map(_value, operand)))
        case _:
            return _cut(visible(_json(operand)))


def _json(value: Any) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # for example an integer over 64 bits
        return str(value)


def _cut(text: str) -> str:
    if len(text) <= _LONGEST_VALUE:
        return text
    return f"{text[:_LONGEST_VALUE]}… ({len(text):,})"
