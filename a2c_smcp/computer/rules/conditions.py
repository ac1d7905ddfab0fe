"""The conditions on an argument of a call, as data: an operator and what it compares with. Pure.

A condition holds, or fails, or does not fit: then the value has another type than the condition needs, and nothing is
known. An `allow` needs conditions that hold. A `deny` or an `ask` also takes those that do not fit.
"""

import json
import os.path
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from a2c_smcp.computer.rules.fits import Fit, all_of, any_of
from a2c_smcp.computer.rules.globs import Glob, PlainGlob
from a2c_smcp.computer.rules.hosts import HostPattern, host_fit, name_to_look_up, parse_host_pattern
from a2c_smcp.computer.rules.mail import MailPattern, mail_fit, parse_mail_pattern
from a2c_smcp.computer.rules.paths import (
    Known,
    RealPath,
    climbs,
    fixed_folder,
    is_certain_path,
    lexical,
    may_be_same,
    may_name,
    trimmed,
    under_fit,
)
from a2c_smcp.terminal.suggestions import did_you_mean
from a2c_smcp.utils.json_sizes import is_deeper
from a2c_smcp.utils.text import has_control_characters

__all__ = [
    "DEEPEST",
    "MISSING",
    "OPERATORS",
    "UNCLEAR",
    "Condition",
    "Fit",
    "Known",
    "RealPath",
    "all_of",
    "is_same",
    "lexical",
    "names_of",
    "parse_conditions",
    "paths_of",
    "test",
]

#: How many levels of lists and objects a value may have that an argument is compared with.
DEEPEST: Final = 32
MISSING: Final = object()
#: The value of a JSON Pointer that leads through something else than a list or an object.
UNCLEAR: Final = object()


@dataclass(frozen=True, slots=True)
class Condition:
    operator: str
    operand: Any
    """What the operator compares with; for `every` and `some`, a tuple of conditions."""


def test(condition: Condition, value: Any, known: Known) -> Fit:
    """Whether a value, or `MISSING` or `UNCLEAR`, fulfils a condition. Never raises."""
    if value is UNCLEAR:
        return Fit.MISFIT
    if condition.operator == "absent":
        return _absent(condition.operand, value)
    if value is MISSING:
        return Fit.FAILS
    return _TESTS[condition.operator](condition.operand, value, known)


def paths_of(condition: Condition, value: Any, *, is_allow: bool = True) -> Iterator[str]:
    """The paths that must be resolved before this condition can be tested. An `allow` compares a pattern with the text
    alone; whatever else compares it also with the file to which the text leads.
    """
    match condition:
        case Condition("every" | "some", inner):
            for item in value if isinstance(value, list) else ():
                for each in inner:
                    yield from paths_of(each, item, is_allow=is_allow)
        case _ if isinstance(value, str) and is_certain_path(path := value if is_allow else trimmed(value)):
            if (others := _paths_in(condition, is_allow=is_allow)) is not None:
                yield path
                yield from others


def _paths_in(condition: Condition, *, is_allow: bool) -> tuple[str, ...] | None:
    """The paths with which a condition compares another path; `None` if it compares with no path."""
    match condition:
        case Condition("under", folder):
            return (folder,)
        case _ if is_allow:
            return None
        case Condition("glob" | "plain_glob", Glob() | PlainGlob() as glob):
            folder = fixed_folder(glob)
            return (folder,) if folder else ()
        case Condition("equals", str() as path):
            return (path,) if is_certain_path(path) else ()
        case Condition("one_of", options):
            return tuple(path for path in options if isinstance(path, str) and is_certain_path(path))
    return None


def names_of(condition: Condition, value: Any) -> Iterator[str]:
    """The names of hosts whose addresses must be known before this condition can be tested."""
    match condition:
        case Condition("every" | "some", inner):
            for item in value if isinstance(value, list) else ():
                for each in inner:
                    yield from names_of(each, item)
        case Condition("host", patterns):
            if isinstance(value, str) and (name := name_to_look_up(patterns, value)) is not None:
                yield name


# --- tests


def _absent(wanted: bool, value: Any) -> Fit:
    if value is None:  # many servers take `null` as if the argument were not there
        return Fit.MISFIT
    return _of((value is MISSING) is wanted)


def _of(is_true: bool) -> Fit:
    return Fit.HOLDS if is_true else Fit.FAILS


def _equals(operand: Any, value: Any, known: Known) -> Fit:
    if _kind(operand) != _kind(value):
        return Fit.MISFIT
    if is_same(operand, value):
        return Fit.HOLDS
    is_other_name = isinstance(operand, str) and may_be_same(operand, value, known)
    return Fit.MISFIT if is_other_name else Fit.FAILS


def _one_of(operand: tuple[Any, ...], value: Any, known: Known) -> Fit:
    of_its_kind = [option for option in operand if _kind(option) == _kind(value)]
    return any_of(_equals(option, value, known) for option in of_its_kind) if of_its_kind else Fit.MISFIT


def _glob(operand: Glob, value: Any, known: Known) -> Fit:
    if not isinstance(value, str):
        return Fit.MISFIT
    if operand.matches(value) and (not climbs(value) or operand.matches(lexical(value))):
        return Fit.HOLDS
    return Fit.MISFIT if may_name(operand, value, known) else Fit.FAILS


def _plain_glob(operand: PlainGlob, value: Any, known: Known) -> Fit:
    if not isinstance(value, str):
        return Fit.MISFIT
    if operand.matches(value):
        return Fit.HOLDS
    return Fit.MISFIT if may_name(Glob(operand.text), value, known) else Fit.FAILS


def _under(folder: str, value: Any, known: Known) -> Fit:
    return under_fit(folder, value, known) if isinstance(value, str) else Fit.MISFIT


def _host(operand: tuple[HostPattern, ...], value: Any, known: Known) -> Fit:
    return host_fit(operand, value, known.addresses) if isinstance(value, str) else Fit.MISFIT


def _mail(operand: tuple[MailPattern, ...], value: Any, _: Known) -> Fit:
    return mail_fit(operand, value) if isinstance(value, str) else Fit.MISFIT


def _one_line(wanted: bool, value: Any, _: Known) -> Fit:
    return _of(has_control_characters(value) is not wanted) if isinstance(value, str) else Fit.MISFIT


def _at_most(operand: float, value: Any, _: Known) -> Fit:
    return _of(value <= operand) if _is_number(value) else Fit.MISFIT


def _at_least(operand: float, value: Any, _: Known) -> Fit:
    return _of(value >= operand) if _is_number(value) else Fit.MISFIT


def _whole(wanted: bool, value: Any, _: Known) -> Fit:
    if not _is_number(value):
        return Fit.MISFIT
    return _of((isinstance(value, int) or value.is_integer()) is wanted)


def _longest(operand: int, value: Any, _: Known) -> Fit:
    return _of(len(value) <= operand) if isinstance(value, str | list) else Fit.MISFIT


def _every(operand: tuple[Condition, ...], value: Any, known: Known) -> Fit:
    if not isinstance(value, list) or not value:  # many tools take an empty list for all that there is
        return Fit.MISFIT
    return all_of(test(inner, item, known) for item in value for inner in operand)


def _some(operand: tuple[Condition, ...], value: Any, known: Known) -> Fit:
    if not isinstance(value, list):
        return Fit.MISFIT
    return any_of(all_of(test(inner, item, known) for inner in operand) for item in value)


_TESTS: Final[Mapping[str, Callable[[Any, Any, Known], Fit]]] = {
    "equals": _equals,
    "one_of": _one_of,
    "glob": _glob,
    "plain_glob": _plain_glob,
    "under": _under,
    "host": _host,
    "mail": _mail,
    "one_line": _one_line,
    "at_most": _at_most,
    "at_least": _at_least,
    "whole": _whole,
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


def is_same(one: Any, other: Any) -> bool:
    """Equal as JSON: `true` is not 1, and 1.0 is 1."""
    if _kind(one) != _kind(other):
        return False
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(is_same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(is_same(value, other[key]) for key, value in one.items())
    return bool(one == other)


def _is_number(value: Any) -> bool:
    """Whether it is one, with an end: NaN and infinity are not."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value - value == 0


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
    if not is_certain_path(folder):
        raise ValueError("must be an absolute path, or begin with ~/")
    return lexical(folder)


def _hosts(operand: Any) -> tuple[HostPattern, ...]:
    texts = operand if isinstance(operand, list) and operand else [operand]
    return tuple(parse_host_pattern(_text(text)) for text in texts)


def _mails(operand: Any) -> tuple[MailPattern, ...]:
    texts = operand if isinstance(operand, list) and operand else [operand]
    return tuple(parse_mail_pattern(_text(text)) for text in texts)


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
    "plain_glob": lambda operand: PlainGlob(_text(operand)),
    "under": _folder,
    "host": _hosts,
    "mail": _mails,
    "one_line": _flag,
    "at_most": _number,
    "at_least": _number,
    "whole": _flag,
    "longest": _count,
    "absent": _flag,
    "every": _inner,
    "some": _inner,
}
OPERATORS: Final = tuple(_PARSERS)
_NAMES: Final = ", ".join(OPERATORS)
