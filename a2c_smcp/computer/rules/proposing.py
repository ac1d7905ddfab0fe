"""Proposes rules for a call that a person looks at: the narrowest one, and how far each part of it may be widened.
Pure.
"""

import json
import os.path
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from a2c_smcp.computer.rules.conditions import DEEPEST, parse_conditions
from a2c_smcp.computer.rules.deciding import RuledCall
from a2c_smcp.computer.rules.hosts import HostPattern, host_of
from a2c_smcp.computer.rules.rule import Rule, parse_rules
from a2c_smcp.computer.rules.words import Phrase, condition_phrase, in_english, rule_phrases
from a2c_smcp.errors import BadRequestError
from a2c_smcp.utils.json_sizes import is_deeper
from a2c_smcp.utils.secret_names import holds_secret
from a2c_smcp.utils.text import visible

__all__ = ["Proposal", "Step", "Widening", "deny_rule", "propose", "tool_rule"]

#: A call with more arguments gets no rule "like this": nobody would read it.
_MOST_ARGUMENTS: Final = 12
_FOLDERS_UP: Final = 3


@dataclass(frozen=True, slots=True)
class Step:
    """One width of a part. `written` is the condition as it is written, `None` for any value."""

    phrase: Phrase
    written: Mapping[str, Any] | str | None = field(hash=False)


@dataclass(frozen=True, slots=True)
class Widening:
    """One part of a rule: an argument, or the agent. The first step is the narrowest."""

    name: str
    """The argument; empty for the agent."""
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Proposal:
    """The rule that covers a call. Each part has its own width."""

    base: Mapping[str, Any] = field(hash=False)
    parts: tuple[Widening, ...]

    def rule(self, rule_id: str, widths: Sequence[int] = ()) -> Rule:
        """The rule with these widths, 0 for parts that have none. Raises `BadRequestError` for a width that no part
        has.
        """
        if len(widths) > len(self.parts):
            raise BadRequestError("there are more widths than parts of the rule")
        chosen = dict(enumerate(widths))
        raw: dict[str, Any] = {"id": rule_id, **self.base}
        args: dict[str, Any] = {}
        for place, part in enumerate(self.parts):
            width = chosen.get(place, 0)
            if not 0 <= width < len(part.steps):
                raise BadRequestError("the rule cannot be widened like this")
            written = part.steps[width].written
            if written is None:
                continue
            if part.name:
                args[_written_name(part.name)] = written
            else:
                raw["agent"] = written
        return _parsed({**raw, **({"args": args} if args else {})})

    @property
    def fixed(self) -> list[Phrase]:
        """What no width changes."""
        return rule_phrases(_parsed({"id": "shown", **self.base}))

    def sentences(self, widths: Sequence[int]) -> list[str]:
        """The rule with these widths, a line for each part."""
        chosen = [part.steps[width].phrase for part, width in zip(self.parts, widths, strict=True)]
        return [in_english(phrase) for phrase in (*self.fixed, *chosen)]


def propose(call: RuledCall) -> Proposal | None:
    """The narrowest rule that covers this call, and how it may be widened; `None` if it has too many arguments, or
    arguments that are too large.
    """
    if len(call.arguments) > _MOST_ARGUMENTS or call.is_large or is_deeper(call.arguments, DEEPEST - 1):
        return None
    if not _is_exact(call.arguments) or any(map(_is_wide, (call.agent, call.tool.name, call.tool.server))):
        return None
    parts = [_part(name, value) for name, value in call.arguments.items()]
    if call.agent:
        its_agent = Step(Phrase("agent", value=visible(call.agent)), call.agent)
        parts.append(Widening("", (its_agent, Step(Phrase("anyagent"), None))))
    return Proposal({**_base(call), "only_args": sorted(call.arguments)}, tuple(parts))


def tool_rule(call: RuledCall, rule_id: str) -> Rule:
    """The rule that allows this tool, with any arguments, for every agent."""
    return _parsed({"id": rule_id, **_base(call)})


def deny_rule(call: RuledCall, rule_id: str, reason: str = "") -> Rule:
    """The rule that never lets this tool run."""
    tool = call.tool
    said = {"reason": reason} if reason else {}
    return _parsed({"id": rule_id, "effect": "deny", "tool": tool.name, "server": tool.server, **said})


def _base(call: RuledCall) -> dict[str, Any]:
    tool = call.tool
    bound = {"digest": tool.digest} if tool.digest else {}
    return {"effect": "allow", "tool": tool.name, "server": tool.server, **bound}


def _parsed(raw: dict[str, Any]) -> Rule:
    if _is_wide(raw["tool"]) or _is_wide(raw["server"]):
        raise BadRequestError("no rule can be made for a tool or a server with * or ? in its name; write one by hand")
    rules, problems = parse_rules([raw])
    if problems:
        raise BadRequestError(f"no rule can be made for this call: {problems[0].message}")
    return rules[0]


def _is_wide(name: str) -> bool:
    return "*" in name or "?" in name


def _written_name(name: str) -> str:
    """An argument whose name begins with a slash is written as a JSON Pointer."""
    return f"/{name.replace('~', '~0').replace('/', '~1')}" if name.startswith("/") else name


def _part(name: str, value: Any) -> Widening:
    if holds_secret(name, value):  # a rules file and the record are no places for it
        return Widening(name, (Step(Phrase("secret", visible(name)), None),))
    written = [*_conditions(value)]
    steps = [Step(condition_phrase(name, next(parse_conditions(each))), each) for each in written]
    return Widening(name, (*steps, Step(Phrase("any", visible(name)), None)))


def _conditions(value: Any) -> Iterator[dict[str, Any]]:
    """What may be written about this value, from the narrowest on."""
    yield {"equals": value} if _is_toml(value) else {"equals_json": json.dumps(value, ensure_ascii=False)}
    if isinstance(value, str):
        yield from _wider_texts(value)
    elif isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        yield {"every": {"one_of": list(dict.fromkeys(value))}}
        folders = [_folder(item) for item in value]
        if None not in folders:
            shared = os.path.commonpath([folder for folder in folders if folder is not None])
            yield {"every": {"under": shared}}
    elif isinstance(value, int | float) and not isinstance(value, bool) and value == value and value > 0:
        yield {"at_most": value}


def _wider_texts(value: str) -> Iterator[dict[str, Any]]:
    folder = _folder(value)
    for _ in range(_FOLDERS_UP):
        if folder is None or os.path.dirname(folder) == folder:
            break
        yield {"under": folder}
        folder = os.path.dirname(folder)
    if (host := host_of(value)) is not None:
        has_port = "://" in value and f":{host.port}" in value.split("://", 1)[1].split("/", 1)[0]
        yield {"host": str(HostPattern(host.name, below=False, port=host.port if has_port else None))}
    name, at, domain = value.rpartition("@")
    if at and "://" not in value and "@" not in name and not set(domain) & set("*?, <>;/\n") and "." in domain:
        yield {"glob": f"*@{domain}"}


def _folder(value: str) -> str | None:
    """The folder of a path that is clear without the computer's file system."""
    if not os.path.isabs(value) or "\0" in value or os.path.normpath(value) != value:
        return None
    folder = os.path.dirname(value)
    return folder if folder != value and folder != os.sep else None


def _is_exact(arguments: Mapping[str, Any]) -> bool:
    """Whether these values can be written down and found again. NaN, for example, is equal to nothing."""
    try:
        json.dumps(arguments, allow_nan=False, ensure_ascii=False).encode()
    except ValueError:  # also half a character
        return False
    return "" not in arguments


def _is_toml(value: Any) -> bool:
    """Whether TOML can express the value. It has no `null`, and integers of 64 bits."""
    match value:
        case bool() | str():
            return True
        case int():
            return -(2**63) <= value < 2**63
        case float():
            return value == value and abs(value) != float("inf")
        case list():
            return all(map(_is_toml, value))
        case dict():
            return all(map(_is_toml, value.values()))
    return False
