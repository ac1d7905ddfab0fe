"""What a proposed rule would newly allow: values that a person has not seen. Pure.

The values are guesses, from near to far. The rule itself decides which of them are shown, so no sentence of ours can be
wrong about it.
"""

import os.path
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from a2c_smcp.computer.asker import Asker
from a2c_smcp.computer.rules.conditions import is_same
from a2c_smcp.computer.rules.deciding import Moment, RuleCounters, RuledCall, RuleVerdict, decide
from a2c_smcp.computer.rules.deciding_reads import decide_read
from a2c_smcp.computer.rules.hosts import host_of
from a2c_smcp.computer.rules.mail import mail_parts
from a2c_smcp.computer.rules.reads import RuledRead
from a2c_smcp.computer.rules.rule import Rule
from a2c_smcp.computer.rules.words import shown_value

__all__ = ["newly_allowed", "newly_readable"]

Changed = TypeVar("Changed")

_MOST: Final = 3
_NOON: Final = Moment(0.0, 720)
#: What any value of an argument may be.
_ANYTHING: Final[tuple[Any, ...]] = (
    "/etc/passwd",
    "~/.ssh/id_ed25519",
    "file:///etc/passwd",
    "two\nlines",
    -1,
    0.5,
    10**9,
    [],
    None,
)


def newly_allowed(rules: Sequence[Rule], call: RuledCall, name: str, *, is_secret: bool) -> list[tuple[str, ...]]:
    """For each of the rules, from the narrowest to the widest: up to three values of an argument (of the agent, if
    `name` is empty) that it allows and the one before it does not. A secret is no part of such a value.
    """
    if name:
        changed = _with_another_argument(call, name, is_secret=is_secret)
    else:
        changed = {text: replace(call, asker=other) for text, other in _other_agents(call.asker).items()}
    return _allowed_first_by(rules, lambda rule, other: decide((rule,), other, _NOON, RuleCounters()), changed)


def newly_readable(rules: Sequence[Rule], read: RuledRead) -> list[tuple[str, ...]]:
    """For each of the rules, from the narrowest to the widest: up to three reads that it allows and the one before it
    does not. A rule for prompts and the like is for all that the server has.
    """
    names = (f"{read.name}-2", f"another-{read.kind}", f"any-{read.kind}") if read.name else ()
    others = {shown_value(name): replace(read, name=name) for name in names}
    others |= {text: replace(read, asker=other) for text, other in _other_agents(read.asker).items()}
    return _allowed_first_by(rules, lambda rule, other: decide_read((rule,), other, _NOON), others)


def _allowed_first_by(
    rules: Sequence[Rule], decided: Callable[[Rule, Changed], RuleVerdict | None], left: Mapping[str, Changed]
) -> list[tuple[str, ...]]:
    found = []
    for rule in rules:
        verdicts = {text: decided(rule, changed) for text, changed in left.items()}
        allowed = [text for text, verdict in verdicts.items() if verdict is not None and verdict.effect == "allow"]
        left = {text: changed for text, changed in left.items() if text not in allowed}
        found.append(tuple(allowed[:_MOST]))
    return found


def _with_another_argument(call: RuledCall, name: str, *, is_secret: bool) -> dict[str, RuledCall]:
    seen = call.arguments[name]
    guesses = _ANYTHING if is_secret else (*_near(seen), *_ANYTHING)
    return {
        shown_value(guess): replace(call, arguments={**call.arguments, name: guess})
        for guess in guesses
        if not is_same(guess, seen)
    }


def _other_agents(asker: Asker | None) -> dict[str, Asker]:
    if asker is None:
        return {}
    others = {shown_value(name): replace(asker, name=name) for name in (f"{asker.name}-2", "another-agent", "somebody")}
    if asker.is_claimed:  # a rule for it is for any name
        others["key another-key"] = replace(asker, key="another-key")
        others["office another-office"] = replace(asker, key="another-key", office="another-office")
    return others


def _near(value: Any) -> Iterator[Any]:
    """Values that a widened condition may take, from the nearest on."""
    match value:
        case bool():
            yield not value
        case int() | float():
            yield from _numbers(value)
        case str():
            yield from _texts(value)
        case list():
            yield from _lists(value)


def _numbers(value: float) -> Iterator[float]:
    sign = -1 if value < 0 else 1
    if isinstance(value, int):
        yield from (sign, value // 2, value - sign, 0)
    else:
        yield from (0, value / 2, value - value / 64)
    yield from (value * 2, -value)


def _texts(value: str) -> Iterator[str]:
    if os.path.isabs(value):
        folder = value
        while os.path.dirname(folder := os.path.dirname(folder)) != folder:
            yield from (f"{folder}/.ssh/id_ed25519", f"{folder}/other/folder/file", f"{folder}/run.sh")
    elif (host := host_of(value)) is not None:
        port = value.split("://", 1)[1].partition("/")[0].rpartition(":")[2]
        origin = f"{host.scheme}://{host.name}{f':{port}' if port.isdigit() else ''}"
        yield from (f"{origin}/", f"{origin}/another/page", f"{origin}/delete?everything=1")
    elif (parts := mail_parts(value)) is not None:
        yield from (f"{name}@{parts[1]}" for name in ("everybody", "another.person", "root"))
        yield "eve@evil.example"
    elif start := value[: max(map(value.rfind, "/:@")) + 1]:
        ends = ("evil.example", "main", "x") if start.endswith("@") else ("main", "anything-else", "1.0", "x")
        yield from (f"{start}{end}" for end in ends)


def _lists(value: list[Any]) -> Iterator[Any]:
    if len(value) > 1:
        yield from (value[:1], value[::-1], value[:1] * len(value))
    for item in value[:1]:
        yield from ([near] for near in _near(item))
    yield [*value, *value]
