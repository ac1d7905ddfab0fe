"""Proposes rules for a call that a person looks at: the narrowest one, and how far each part of it may be widened.
Pure.
"""

import json
import os.path
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from a2c_smcp.computer.asker import Asker
from a2c_smcp.computer.rules.conditions import DEEPEST, parse_conditions
from a2c_smcp.computer.rules.deciding import RuledCall
from a2c_smcp.computer.rules.examples import newly_allowed
from a2c_smcp.computer.rules.hosts import HostPattern, default_port, host_of
from a2c_smcp.computer.rules.mail import mail_parts
from a2c_smcp.computer.rules.paths import is_certain_path
from a2c_smcp.computer.rules.rule import Rule, parse_rules
from a2c_smcp.computer.rules.words import Phrase, condition_phrase, in_english, rule_phrases
from a2c_smcp.errors import BadRequestError
from a2c_smcp.utils.json_sizes import is_deeper
from a2c_smcp.utils.secret_shapes import holds_named_secret, holds_secret
from a2c_smcp.utils.text import visible

__all__ = ["Proposal", "Step", "Widening", "asker_steps", "deny_rule", "propose", "tool_rule", "why_no_rule"]

#: A call with more arguments gets no rule "like this": nobody would read it.
_MOST_ARGUMENTS: Final = 12
_FOLDERS_UP: Final = 3
#: A text of parts, such as a branch or an image with its tag. Only what is behind the last separator is widened.
_PARTED: Final = re.compile(r"(?!.*\.\.)([\w.+-]+(?:[/:@][\w.+-]+)*[/:@])\w[\w.+-]*")


@dataclass(frozen=True, slots=True)
class Step:
    """One width of a part. `written` is the condition as it is written, `None` for any value."""

    phrase: Phrase
    written: Mapping[str, Any] | None = field(hash=False)
    examples: tuple[str, ...] = ()
    """Up to three values that it would newly allow: the call did not have them, and no narrower step allows them."""


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
                raw |= written
        return _parsed({**raw, **({"args": args} if args else {})})

    @property
    def fixed(self) -> list[Phrase]:
        """What no width changes."""
        return rule_phrases(_parsed({"id": "shown", **self.base}))

    def sentences(self, widths: Sequence[int]) -> list[str]:
        """The rule with these widths, a line for each part."""
        chosen = [part.steps[width].phrase for part, width in zip(self.parts, widths, strict=True)]
        return [in_english(phrase) for phrase in (*self.fixed, *chosen)]

    def examples(self, widths: Sequence[int]) -> list[tuple[str, ...]]:
        """What each part newly allows with these widths."""
        return [part.steps[width].examples for part, width in zip(self.parts, widths, strict=True)]


def why_no_rule(call: RuledCall) -> tuple[str, str]:
    """Why there is no rule "like this": a key for the page, and words. Both are empty if there is one."""
    if propose(call) is not None:
        return "", ""
    arguments = {} if call.is_large else call.arguments
    if secret := next((name for name, value in arguments.items() if _quotes_secret(name, value)), None):
        return "secret", f"{visible(secret)} has a secret in it, and a rules file is no place for secrets"
    return "large", "the call has too many or too large arguments"


def propose(call: RuledCall) -> Proposal | None:
    """The narrowest rule that covers this call, and how it may be widened; `None` if it has too many arguments,
    arguments that are too large, or one with a secret in it: a rule for any value of that argument would allow far more
    than the person saw.
    """
    if len(call.arguments) > _MOST_ARGUMENTS or call.is_large or is_deeper(call.arguments, DEEPEST - 1):
        return None
    asker = call.asker
    bound_to = "" if asker is None or asker.is_claimed else asker.name
    if not _is_exact(call.arguments) or any(map(_is_wide, (bound_to, call.tool.name, call.tool.server))):
        return None
    if any(_quotes_secret(name, value) for name, value in call.arguments.items()):
        return None
    parts = [_part(name, value) for name, value in call.arguments.items()]
    if asker is not None:
        parts.append(Widening("", (*asker_steps(asker), Step(Phrase("anyagent"), None))))
    proposal = Proposal({**_base(call), "only_args": sorted(call.arguments)}, tuple(parts))
    return replace(proposal, parts=tuple(_with_examples(proposal.base, part, call) for part in parts))


def _with_examples(base: Mapping[str, Any], part: Widening, call: RuledCall) -> Widening:
    alone = Proposal(base, (part,))  # all parts must hold, so each can be tried by itself
    rules = [alone.rule("shown", (width,)) for width in range(len(part.steps))]
    seen = {part.name: call.arguments[part.name]} if part.name else {}
    is_secret = bool(part.name) and holds_secret(part.name, seen[part.name])
    shown = newly_allowed(rules, replace(call, arguments=seen), part.name, is_secret=is_secret)
    steps = [replace(step, examples=found) for step, found in zip(part.steps, shown, strict=True)]
    return replace(part, steps=tuple(steps))


def asker_steps(asker: Asker) -> Iterator[Step]:
    """For whom the rule is. A claimed name is no part of it: a rule with that name would never match."""
    if not asker.is_claimed and asker.name:
        yield Step(Phrase("agent", value=visible(asker.name)), {"agent": asker.name})
    elif asker.key is not None and not _is_wide(asker.key):
        yield Step(Phrase("anyof.key", visible(asker.name), visible(asker.key)), {"key": asker.key})
    elif asker.office and not _is_wide(asker.office):
        yield Step(Phrase("anyof.office", visible(asker.name), visible(asker.office)), {"office": asker.office})


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


def _quotes_secret(name: str, value: Any) -> bool:
    """Whether a secret stands inside of an argument that is not a secret as a whole."""
    return holds_secret("", value) and not holds_named_secret(name, value)


def _part(name: str, value: Any) -> Widening:
    if holds_named_secret(name, value):  # a rules file and the record are no places for it
        return Widening(name, (Step(Phrase("secret", visible(name)), None),))
    steps = [Step(_phrase(name, each), each) for each in _conditions(value)]
    return Widening(name, (*steps, Step(Phrase("any", visible(name)), None)))


def _phrase(name: str, written: Mapping[str, Any]) -> Phrase:
    phrases = tuple(condition_phrase(name, condition) for condition in parse_conditions(written))
    return phrases[0] if len(phrases) == 1 else Phrase("all", parts=phrases)


def _conditions(value: Any) -> Iterator[dict[str, Any]]:
    """What may be written about this value, from the narrowest on."""
    yield {"equals": value} if _is_toml(value) else {"equals_json": json.dumps(value, ensure_ascii=False)}
    if isinstance(value, str):
        yield from _wider_texts(value)
    elif isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        for wider in _wider_items(value):
            # No more of them than the person saw.
            yield {"every": wider, "longest": len(value)}
    elif isinstance(value, int | float) and not isinstance(value, bool) and _is_toml(value):
        yield from _wider_numbers(value)


def _wider_numbers(value: float) -> Iterator[dict[str, Any]]:
    """Numbers between nothing and this one. Zero has a meaning of its own for many tools: no limit, or everything."""
    if isinstance(value, int):
        if abs(value) > 1:
            nearest = 1 if value > 0 else -1
            yield {"at_least": min(nearest, value), "at_most": max(nearest, value), "whole": True}
    elif value != 0:
        yield {"at_least": min(0, value), "at_most": max(0, value)}


def _wider_texts(value: str) -> Iterator[dict[str, Any]]:
    if folders := _folders(value):
        yield from ({"under": folder} for folder in folders)
    elif (origin := _origin(value)) is not None:
        yield {"host": origin}
    elif (parts := mail_parts(value)) is not None:
        yield {"mail": f"*@{parts[1]}"}
    elif found := _PARTED.fullmatch(value):
        yield {"plain_glob": f"{found[1]}*"}


def _wider_items(items: list[str]) -> Iterator[dict[str, Any]]:
    yield {"one_of": list(dict.fromkeys(items))}
    folders = [_folders(item) for item in items]
    if shared := [folder for folder in folders[0] if all(folder in each for each in folders)]:
        yield {"under": shared[0]}
    origins = [_origin(item) for item in items]
    if None not in origins:
        yield {"host": list(dict.fromkeys(origins))}
    addresses = [mail_parts(item) for item in items]
    if None not in addresses:
        yield {"mail": list(dict.fromkeys(f"*@{address[1]}" for address in addresses if address is not None))}


def _origin(value: str) -> str | None:
    """The scheme, host and port of a URL that every program reads alike, as a rule has them."""
    host = host_of(value)
    if host is None or not host.is_plain or host.port is None:
        return None
    port = None if host.port == default_port(host.scheme) else host.port
    return str(HostPattern(host.name, below=False, port=port, scheme=host.scheme))


def _folders(value: str) -> list[str]:
    """The folders of a path that is clear without the computer's file system, from the nearest on."""
    if not is_certain_path(value) or os.path.normpath(value) != value:
        return []
    found: list[str] = []
    folder = os.path.dirname(value)
    while len(found) < _FOLDERS_UP and os.path.dirname(folder) != folder:
        found.append(folder)
        folder = os.path.dirname(folder)
    return found


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
