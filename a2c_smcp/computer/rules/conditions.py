"""The conditions on an argument of a call, as data: an operator and what it compares with. Pure.

A condition holds, or fails, or does not fit: then the value has another type than the condition needs, and nothing is
known. An `allow` needs conditions that hold. A `deny` or an `ask` also takes those that do not fit.
"""

import json
import os.path
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, TypeAlias

from a2c_smcp.computer.rules.globs import Glob
from a2c_smcp.computer.rules.hosts import HostPattern, host_of, parse_host_pattern
from a2c_smcp.terminal.suggestions import did_you_mean
from a2c_smcp.utils.json_sizes import is_deeper

__all__ = [
    "DEEPEST",
    "MISSING",
    "OPERATORS",
    "UNCLEAR",
    "Condition",
    "Fit",
    "RealPath",
    "all_of",
    "lexical",
    "parse_conditions",
    "paths_of",
    "test",
]

#: How many levels of lists and objects a value may have that an argument is compared with.
DEEPEST: Final = 32
MISSING: Final = object()
#: The value of a JSON Pointer that leads through something else than a list or an object.
UNCLEAR: Final = object()

#: The path with all links resolved; `None` if it is not known.
RealPath: TypeAlias = Callable[[str], str | None]


class Fit(Enum):
    HOLDS = "holds"
    FAILS = "fails"
    MISFIT = "misfit"
    """The value has another type, or cannot be understood for certain."""


@dataclass(frozen=True, slots=True)
class Condition:
    operator: str
    operand: Any
    """What the operator compares with; for `every` and `some`, a tuple of conditions."""


def all_of(fits: Iterator[Fit]) -> Fit:
    """Whether all hold. One that fails decides."""
    found = Fit.HOLDS
    for fit in fits:
        if fit is Fit.FAILS:
            return fit
        if fit is Fit.MISFIT:
            found = fit
    return found


def test(condition: Condition, value: Any, real_path: RealPath) -> Fit:
    """Whether a value, or `MISSING` or `UNCLEAR`, fulfils a condition. Never raises."""
    if value is UNCLEAR:
        return Fit.MISFIT
    if condition.operator == "absent":
        return _absent(condition.operand, value)
    if value is MISSING:
        return Fit.FAILS
    return _TESTS[condition.operator](condition.operand, value, real_path)


def paths_of(condition: Condition, value: Any) -> Iterator[str]:
    """The paths that must be resolved before this condition can be tested."""
    if condition.operator == "under":
        if isinstance(value, str) and _is_certain_path(value):
            yield value
            yield condition.operand
    elif condition.operator in ("every", "some") and isinstance(value, list):
        for item in value:
            for inner in condition.operand:
                yield from paths_of(inner, item)


def lexical(path: str) -> str:
    """The path without `.` and `..`, by its text alone."""
    plain = os.path.normpath(path)
    # POSIX lets a path begin with two slashes, and says that this may mean something else. Nowhere it does.
    return os.path.normcase(f"/{plain.lstrip('/')}" if plain.startswith("//") else plain)


# --- tests


def _absent(wanted: bool, value: Any) -> Fit:
    if value is None:  # many servers take `null` as if the argument were not there
        return Fit.MISFIT
    return _of((value is MISSING) is wanted)


def _of(is_true: bool) -> Fit:
    return Fit.HOLDS if is_true else Fit.FAILS


def _equals(operand: Any, value: Any, _: RealPath) -> Fit:
    return Fit.MISFIT if _kind(operand) != _kind(value) else _of(_same(operand, value))


def _one_of(operand: tuple[Any, ...], value: Any, _: RealPath) -> Fit:
    if not any(_kind(option) == _kind(value) for option in operand):
        return Fit.MISFIT
    return _of(any(_same(option, value) for option in operand))


def _glob(operand: Glob, value: Any, _: RealPath) -> Fit:
    return _of(operand.matches(value)) if isinstance(value, str) else Fit.MISFIT


def _under(folder: str, value: Any, real_path: RealPath) -> Fit:
    if not isinstance(value, str) or not _is_certain_path(value):
        return Fit.MISFIT
    path, real_folder = real_path(value), real_path(folder)
    if path is None or real_folder is None:
        return Fit.MISFIT
    if _is_within(lexical(path), lexical(real_folder)):
        return Fit.HOLDS
    # The text points into the folder, a link leads out of it: an `allow` must not match, a `deny` must.
    return Fit.MISFIT if _is_within(lexical(value), lexical(folder)) else Fit.FAILS


def _host(operand: tuple[HostPattern, ...], value: Any, _: RealPath) -> Fit:
    host = host_of(value) if isinstance(value, str) else None
    return Fit.MISFIT if host is None else _of(any(pattern.matches(host) for pattern in operand))


def _at_most(operand: float, value: Any, _: RealPath) -> Fit:
    return _of(value <= operand) if _is_number(value) else Fit.MISFIT


def _at_least(operand: float, value: Any, _: RealPath) -> Fit:
    return _of(value >= operand) if _is_number(value) else Fit.MISFIT


def _longest(operand: int, value: Any, _: RealPath) -> Fit:
    return _of(len(value) <= operand) if isinstance(value, str | list) else Fit.MISFIT


def _every(operand: tuple[Condition, ...], value: Any, real_path: RealPath) -> Fit:
    if not isinstance(value, list):
        return Fit.MISFIT
    return all_of(test(inner, item, real_path) for item in value for inner in operand)


def _some(operand: tuple[Condition, ...], value: Any, real_path: RealPath) -> Fit:
    if not isinstance(value, list):
        return Fit.MISFIT
    found = Fit.FAILS
    for item in value:
        fit = all_of(test(inner, item, real_path) for inner in operand)
        if fit is Fit.HOLDS:
            return fit
        if fit is Fit.MISFIT:
            found = fit
    return found


_TESTS: Final[Mapping[str, Callable[[Any, Any, RealPath], Fit]]] = {
    "equals": _equals,
    "one_of": _one_of,
    "glob": _glob,
    "under": _under,
    "host": _host,
    "at_most": _at_most,
    "at_least": _at_least,
    "longest": _longest,
    "every": _every,
    "some": _some,
}


def _kind(value: Any) -> str:
    match value:
        case bool():
            return "bool"
        case int() | float():
            return "number"
        case str():
            return "text"
        case list() | tuple():
            return "list"
        case dict():
            return "object"
    return "null" if value is None else "other"


def _same(one: Any, other: Any) -> bool:
    """Equal as JSON: `true` is not 1, and 1.0 is 1."""
    if _kind(one) != _kind(other):
        return False
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(value, other[key]) for key, value in one.items())
    return bool(one == other)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value


def _is_certain_path(value: str) -> bool:
    """Whether it is clear which file is meant. A relative path depends on where the server runs, `~` on the server."""
    return os.path.isabs(value) and "\0" not in value


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder if folder.endswith(os.sep) else folder + os.sep)


# --- what a person writes


def parse_conditions(raw: Any) -> Iterator[Condition]:
    """The conditions of one argument. Raises `ValueError` that says where, and what to write instead."""
    if not isinstance(raw, dict) or not raw:
        raise ValueError(f"must be a table with an operator, such as {{equals = {_example(raw)}}}")
    for name, operand in raw.items():
        if name not in _PARSERS:
            raise ValueError(f"unknown operator {name!r}{did_you_mean(name, _PARSERS) or f'; there are {_NAMES}'}")
        try:
            yield Condition("equals" if name == "equals_json" else name, _PARSERS[name](operand))
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None


def _example(raw: Any) -> str:
    return repr(raw)[:40] if isinstance(raw, str | int | float) and not isinstance(raw, bool) else '"…"'


def _shallow(operand: Any) -> Any:
    if is_deeper(operand, DEEPEST):
        raise ValueError(f"must not have more than {DEEPEST} levels")
    if not _is_json(operand):
        raise ValueError("must be a value that JSON can express: no date and no time")
    return operand


def _is_json(value: Any) -> bool:
    if isinstance(value, list):
        return all(map(_is_json, value))
    if isinstance(value, dict):
        return all(map(_is_json, value.values()))
    return _kind(value) != "other"


def _json_text(operand: Any) -> Any:
    try:
        value = json.loads(_text(operand))
    except (ValueError, RecursionError):
        raise ValueError("must be JSON in a text, such as 'null'") from None
    return _shallow(value)


def _options(operand: Any) -> tuple[Any, ...]:
    if not isinstance(operand, list) or not operand:
        raise ValueError("must be a list with at least one value")
    return tuple(_shallow(operand))


def _text(operand: Any) -> str:
    if not isinstance(operand, str) or not operand:
        raise ValueError("must be a text")
    return operand


def _folder(operand: Any) -> str:
    folder = os.path.expanduser(_text(operand))
    if not _is_certain_path(folder):
        raise ValueError("must be an absolute path, or begin with ~/")
    return lexical(folder)


def _hosts(operand: Any) -> tuple[HostPattern, ...]:
    texts = operand if isinstance(operand, list) and operand else [operand]
    return tuple(parse_host_pattern(_text(text)) for text in texts)


def _number(operand: Any) -> float:
    if not _is_number(operand):
        raise ValueError("must be a number")
    return operand  # type: ignore[no-any-return]


def _count(operand: Any) -> int:
    if not isinstance(operand, int) or isinstance(operand, bool) or operand < 0:
        raise ValueError("must be a whole number of characters or items")
    return operand


def _flag(operand: Any) -> bool:
    if not isinstance(operand, bool):
        raise ValueError("must be true or false")
    return operand


def _inner(operand: Any) -> tuple[Condition, ...]:
    conditions = tuple(parse_conditions(operand))
    if any(inner.operator in ("every", "some", "absent") for inner in conditions):
        raise ValueError("takes conditions on one item: neither every, some nor absent")
    return conditions


_PARSERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "equals": _shallow,
    "equals_json": _json_text,
    "one_of": _options,
    "glob": lambda operand: Glob(_text(operand)),
    "under": _folder,
    "host": _hosts,
    "at_most": _number,
    "at_least": _number,
    "longest": _count,
    "absent": _flag,
    "every": _inner,
    "some": _inner,
}
OPERATORS: Final = tuple(_PARSERS)
_NAMES: Final = ", ".join(OPERATORS)
