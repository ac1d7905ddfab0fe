"""A rule as a value, and how it is read from data: a TOML file, or the `rules` of a config file. Pure."""

import datetime as dt
import hashlib
import itertools
import json
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from a2c_smcp.computer.config.problems import Problem
from a2c_smcp.computer.rules.conditions import Condition, parse_conditions
from a2c_smcp.computer.rules.globs import Glob
from a2c_smcp.computer.rules.reads import ReadPattern
from a2c_smcp.terminal.suggestions import did_you_mean

__all__ = [
    "EFFECTS",
    "MOST_RULES",
    "RULE_KEYS",
    "ArgumentConditions",
    "Effect",
    "Hours",
    "Rate",
    "Rule",
    "parse_rules",
]

Effect: TypeAlias = Literal["deny", "ask", "allow"]
EFFECTS: Final[tuple[Effect, ...]] = ("deny", "ask", "allow")
#: How many rules one file may have.
MOST_RULES: Final = 1000
_LONGEST_REASON: Final = 1000
_SECONDS: Final = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}
_MOST_PER_WINDOW: Final = 10_000
#: What only a rule about calls can have.
_OF_CALLS: Final = ("tool", "read_only", "destructive", "open_world", "args", "only_args", "at_most", "digest")


@dataclass(frozen=True, slots=True)
class Rate:
    """At most `count` calls in any window of `seconds`."""

    count: int
    unit: str

    @property
    def seconds(self) -> int:
        return _SECONDS[self.unit]


@dataclass(frozen=True, slots=True)
class Hours:
    """A time of day, in minutes since midnight by the computer's clock. It may pass midnight."""

    start: int
    end: int

    def has(self, minute: int) -> bool:
        if self.start <= self.end:
            return self.start <= minute < self.end
        return minute >= self.start or minute < self.end

    def __str__(self) -> str:
        return "-".join(f"{time // 60:02}:{time % 60:02}" for time in (self.start, self.end))


@dataclass(frozen=True, slots=True)
class ArgumentConditions:
    """The conditions on one argument."""

    name: str
    """The argument's name, or a JSON Pointer such as `/to/0/address`."""
    conditions: tuple[Condition, ...]

    @property
    def steps(self) -> tuple[str, ...]:
        """The way to the value inside the arguments."""
        if not self.name.startswith("/"):
            return (self.name,)
        return tuple(step.replace("~1", "/").replace("~0", "~") for step in self.name[1:].split("/"))


@dataclass(frozen=True, slots=True)
class Rule:
    """What to do with the calls and reads that match. A condition that is not given matches all of them."""

    effect: Effect
    id: str
    """The name by which it is listed, counted and undone."""
    reason: str = ""
    """What the agent reads if the rule refuses its call."""
    agent: tuple[Glob, ...] = ()
    key: tuple[Glob, ...] = ()
    office: tuple[Glob, ...] = ()
    server: tuple[Glob, ...] = ()
    tool: tuple[Glob, ...] = ()
    reads: tuple[ReadPattern, ...] = ()
    """What is read. A rule that says so is not about calls."""
    read_only: bool | None = None
    destructive: bool | None = None
    open_world: bool | None = None
    hours: Hours | None = None
    args: tuple[ArgumentConditions, ...] = ()
    only_args: frozenset[str] | None = None
    """The only arguments that a call may have."""
    at_most: Rate | None = None
    expires: float | None = None
    """Unix time."""
    digest: str | None = None
    """The digest of the tool that a person saw when they made the rule."""
    raw: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """As it was written."""

    @property
    def is_about_reads(self) -> bool:
        """Whether it can match a read: it says so, or it has no condition that only a call can fulfil."""
        return bool(self.reads) or all(getattr(self, key) in (None, ()) for key in _OF_CALLS)


def parse_rules(data: Any, place: str = "rules", file: str = "") -> tuple[tuple[Rule, ...], tuple[Problem, ...]]:
    """The rules of a list, and what is wrong with it. If anything is, use none of them."""
    if not isinstance(data, list):
        return (), (Problem("must be a list of rules", place, file=file),)
    rules: list[Rule] = []
    problems: list[Problem] = []
    ids: set[str] = set()
    if len(data) > MOST_RULES:
        problems.append(Problem(f"has {len(data)} rules; at most {MOST_RULES} are allowed", place, file=file))
        data = data[:MOST_RULES]
    for number, raw in enumerate(data, 1):
        found = list(_problems(raw))
        if not found:
            rule = _rule(raw, ids)
            if rule.id in ids:
                found.append(("id", "another rule has this id"))
            ids.add(rule.id)
            rules.append(rule)
        where = f"{place}[{number}]"
        problems += [Problem(said, f"{where}.{key}" if key else where, file=file) for key, said in found]
    return tuple(rules), tuple(problems)


def _rule(raw: Mapping[str, Any], taken: Container[str]) -> Rule:
    values = {key: _FIELDS[key](raw[key]) for key in _FIELDS if key in raw}
    if "id" not in values:
        made = _made_id(raw)
        # The same rule may stand there twice.
        again = (f"{made}-{number}" for number in itertools.count(2))
        values["id"] = next(each for each in itertools.chain((made,), again) if each not in taken)
    return Rule(**values, raw=dict(raw))


def _made_id(raw: Mapping[str, Any]) -> str:
    """An id that stays while the rule stays as it is, wherever it stands in the file."""
    return hashlib.sha256(json.dumps(raw, sort_keys=True, default=str).encode()).hexdigest()[:8]


def _problems(raw: Any) -> Iterator[tuple[str, str]]:
    """Each field that is wrong, and why."""
    if not isinstance(raw, dict):
        yield "", "must be a table"
        return
    for key, value in raw.items():
        if key not in _FIELDS:
            yield key, f"unknown key{did_you_mean(key, _FIELDS)}"
            continue
        try:
            _FIELDS[key](value)
        except _FieldError as error:
            yield f"{key}.{error.part}", str(error)
        except ValueError as error:
            yield key, str(error)
    if "effect" not in raw:
        yield "", f"needs an effect: {', '.join(EFFECTS)}"
    elif raw["effect"] != "allow" and "at_most" in raw:
        yield "at_most", "only an allow can have it: further calls are then asked for, or go on to the next rule"
    if "reads" in raw and (both := [key for key in _OF_CALLS if key in raw]):
        yield "reads", f"a rule is about calls or about reads, and {both[0]!r} is about calls; write two rules"
    if "digest" in raw and (not isinstance(raw.get("tool"), str) or Glob(raw["tool"]).is_wide):
        yield "digest", "needs the name of one tool, without wildcards: it is the digest of that tool"


# --- fields


class _FieldError(ValueError):
    def __init__(self, part: str, message: str) -> None:
        super().__init__(message)
        self.part = part


def _effect(value: Any) -> Effect:
    if value not in EFFECTS:
        raise ValueError(f"must be one of {', '.join(EFFECTS)}{did_you_mean(str(value), EFFECTS)}")
    return value  # type: ignore[no-any-return]


def _id(value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9._-]{1,64}", value):
        raise ValueError("must have 1 to 64 letters, digits, dots, hyphens or underscores")
    return value


def _reason(value: Any) -> str:
    if not isinstance(value, str) or len(value) > _LONGEST_REASON:
        raise ValueError(f"must be a text of at most {_LONGEST_REASON} characters")
    return value


def _globs(value: Any) -> tuple[Glob, ...]:
    texts: Sequence[Any] = value if isinstance(value, list) else [value]
    if not texts or not all(isinstance(text, str) and text for text in texts):
        raise ValueError('must be a name, or a list of names; "*" in it stands for any text')
    return tuple(Glob(text) for text in texts)


def _reads(value: Any) -> tuple[ReadPattern, ...]:
    texts: Sequence[Any] = value if isinstance(value, list) else [value]
    if not texts or not all(isinstance(text, str) and text for text in texts):
        raise ValueError('must be a URI such as "window://*", a word such as "prompt", or a list of them')
    return tuple(map(ReadPattern, texts))


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def _hours(value: Any) -> Hours:
    found = re.fullmatch(r"(\d\d?):(\d\d)\s*-\s*(\d\d?):(\d\d)", value) if isinstance(value, str) else None
    if found is None:
        raise ValueError('must be two times such as "09:00-17:30"')
    start_hour, start, end_hour, end = map(int, found.groups())
    hours = Hours(start_hour * 60 + start, end_hour * 60 + end)
    if start > 59 or end > 59 or not 0 <= hours.start < 1440 or not 0 <= hours.end <= 1440 or hours.start == hours.end:
        raise ValueError("must be two different times of a day, from 00:00 to 24:00")
    return hours


def _args(value: Any) -> tuple[ArgumentConditions, ...]:
    if not isinstance(value, dict):
        raise ValueError('must be a table, such as args.path = {under = "/home/ada/notes"}')
    found = []
    for name, raw in value.items():
        try:
            found.append(ArgumentConditions(name, tuple(parse_conditions(raw))))
        except ValueError as error:
            raise _FieldError(name, str(error)) from None
    return tuple(found)


def _names(value: Any) -> frozenset[str]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise ValueError('must be a list of the names of arguments, such as ["path", "text"]')
    return frozenset(value)


def _rate(value: Any) -> Rate:
    found = re.fullmatch(r"(\d{1,9}) per (second|minute|hour|day)", value) if isinstance(value, str) else None
    if found is None:
        raise ValueError('must be a number of calls per second, minute, hour or day, such as "20 per hour"')
    if not 1 <= int(found[1]) <= _MOST_PER_WINDOW:
        raise ValueError(f"must be 1 to {_MOST_PER_WINDOW:,} calls")
    return Rate(int(found[1]), found[2])


def _expires(value: Any) -> float:
    """The moment after which the rule does not match. A day alone is meant with all its hours."""
    try:
        if isinstance(value, str):
            value = dt.date.fromisoformat(value) if len(value) == 10 else dt.datetime.fromisoformat(value)
        if isinstance(value, dt.datetime):
            return value.timestamp()
        if isinstance(value, dt.date):
            return (dt.datetime.combine(value, dt.time()) + dt.timedelta(days=1)).timestamp()
    except (ValueError, OverflowError, OSError):
        pass
    raise ValueError("must be a date such as 2026-12-31, or a date with a time")


def _digest(value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[0-9a-f]{64}", value):
        raise ValueError("must be the digest of a tool, 64 hexadecimal digits, as rules from a card have it")
    return value


_FIELDS: Final[Mapping[str, Any]] = {
    "effect": _effect,
    "id": _id,
    "reason": _reason,
    "agent": _globs,
    "key": _globs,
    "office": _globs,
    "server": _globs,
    "tool": _globs,
    "reads": _reads,
    "read_only": _flag,
    "destructive": _flag,
    "open_world": _flag,
    "hours": _hours,
    "args": _args,
    "only_args": _names,
    "at_most": _rate,
    "expires": _expires,
    "digest": _digest,
}
RULE_KEYS: Final = tuple(_FIELDS)
