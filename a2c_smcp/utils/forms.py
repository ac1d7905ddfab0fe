"""The form that an MCP server asks a person to fill in: its fields, and which values each of them takes.

Pure. Knows MCP's restricted JSON Schema, a flat object of plain values; nothing of who shows the form, or how.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from enum import Enum
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

from a2c_smcp.errors import BadRequestError
from a2c_smcp.utils.json_sizes import is_deeper, weight

__all__ = ["FieldKind", "FieldOption", "FieldValue", "FormField", "InvalidFormError", "QuestionForm", "parse_form"]


FieldValue: TypeAlias = str | int | float | bool | list[str]


@dataclass(frozen=True, slots=True)
class _FormBounds:
    """How large a form may be: more than a person would read or fill in."""

    fields: int = 100
    options: int = 1000
    schema_bytes: int = 1024 * 1024  # roughly, and for the whole schema, with the parts that no form shows
    schema_levels: int = 16
    text: int = 100_000  # characters that a person may type into one field


_MOST: Final = _FormBounds()


class InvalidFormError(ValueError):
    """A schema that cannot be shown as a form: MCP does not allow it, or it is too large."""


class FieldKind(Enum):
    """The kind of value that a field takes."""

    TEXT = "text"
    NUMBER = "number"
    INTEGER = "integer"
    YES_NO = "yes_no"
    CHOICE = "choice"
    SEVERAL = "several"


@dataclass(frozen=True, slots=True)
class FieldOption:
    """One of the values that a field offers."""

    value: str
    title: str


@dataclass(frozen=True, slots=True)
class FormField:
    """One field of a form. `read` takes what a person typed, `check` a value; both say in words what is wrong."""

    name: str
    kind: FieldKind
    title: str
    description: str | None = None
    required: bool = False
    default: FieldValue | None = None
    options: tuple[FieldOption, ...] = ()
    """For `CHOICE` and `SEVERAL`."""
    least: int | float | None = None
    """The smallest number, the shortest text, or the fewest options."""
    most: int | float | None = None
    format: str | None = None
    """For `TEXT`: `email`, `uri`, `date` or `date-time`."""

    def check(self, value: object) -> FieldValue:
        """The value, or `ValueError` with a sentence that says what it must be."""
        match self.kind, value:
            case FieldKind.TEXT, str():
                return self._checked_text(value)
            case FieldKind.YES_NO, bool():
                return value
            case ((FieldKind.NUMBER | FieldKind.INTEGER), (int() | float())) if not isinstance(value, bool):
                return self._checked_number(value)
            case FieldKind.CHOICE, str() if value in self._values:
                return value
            case FieldKind.SEVERAL, list() if all(isinstance(item, str) and item in self._values for item in value):
                return self._checked_several(value)
        raise ValueError(_WANTED[self.kind])

    def read(self, text: str) -> FieldValue | None:
        """The value that the person typed; `None` if they left an optional field empty. `ValueError` as for `check`."""
        typed = text if self.kind is FieldKind.TEXT else text.strip()
        if not typed:
            if self.kind is FieldKind.SEVERAL and self.required:
                return self.check([])
            if self.required:
                raise ValueError("It is required.")
            return None
        return self.check(_READERS[self.kind](self, typed))

    def written(self, value: FieldValue) -> str:
        """A value as a person would type it, so that `read` returns it."""
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, list):
            return ", ".join(map(self._written_option, value))
        return self._written_option(value) if isinstance(value, str) and self.options else str(value)

    def _written_option(self, value: str) -> str:
        """The option itself; or its number, if `read` would not understand the option."""
        if value and value == value.strip() and "," not in value:
            return value
        return str([option.value for option in self.options].index(value) + 1)

    @property
    def _values(self) -> set[str]:
        return {option.value for option in self.options}

    def _checked_text(self, text: str) -> str:
        if self.least is not None and len(text) < self.least:
            raise ValueError(f"It must have at least {_count(self.least, 'character')}.")
        if len(text) > (most := min(self.most if self.most is not None else _MOST.text, _MOST.text)):
            raise ValueError(f"It must have at most {_count(most, 'character')}.")
        if self.format in _FORMATS:
            holds, wanted = _FORMATS[self.format]
            if not holds(text):
                raise ValueError(f"It must be {wanted}.")
        return text

    def _checked_number(self, number: int | float) -> int | float:
        if isinstance(number, float):
            if not math.isfinite(number):
                raise ValueError(_WANTED[self.kind])
            if self.kind is FieldKind.INTEGER:
                if not number.is_integer():
                    raise ValueError(_WANTED[self.kind])
                number = int(number)
        if self.least is not None and number < self.least:
            raise ValueError(f"It must be at least {self.least}.")
        if self.most is not None and number > self.most:
            raise ValueError(f"It must be at most {self.most}.")
        return number

    def _checked_several(self, chosen: list[Any]) -> list[str]:
        if len(set(chosen)) < len(chosen):
            raise ValueError("Choose no option twice.")
        if self.least is not None and len(chosen) < self.least:
            raise ValueError(f"Choose at least {_count(self.least, 'option')}.")
        if self.most is not None and len(chosen) > self.most:
            raise ValueError(f"Choose at most {_count(self.most, 'option')}.")
        return list(chosen)

    # --- what a person types

    def _number(self, text: str) -> int | float:
        try:
            return int(text)
        except ValueError:
            pass
        try:
            return float(text)
        except ValueError:
            raise ValueError(_WANTED[self.kind]) from None

    def _yes_no(self, text: str) -> bool:
        try:
            return _YES_NO[text.lower()]
        except KeyError:
            raise ValueError(_WANTED[self.kind]) from None

    def _option(self, text: str) -> str:
        """An option by its value, its title or its number. A number that is itself a value means that value."""
        if text in self._values:
            return text
        titled = [option.value for option in self.options if option.title.lower() == text.lower()]
        if len(titled) == 1:
            return titled[0]
        if text.isdecimal() and len(text) < 10 and 0 < int(text) <= len(self.options):
            return self.options[int(text) - 1].value
        raise ValueError(_WANTED[self.kind])

    def _several(self, text: str) -> list[str]:
        return [self._option(part.strip()) for part in text.split(",") if part.strip()]


_WANTED: Final = {
    FieldKind.TEXT: "It must be text.",
    FieldKind.NUMBER: "It must be a number.",
    FieldKind.INTEGER: "It must be a whole number.",
    FieldKind.YES_NO: "Answer yes or no.",
    FieldKind.CHOICE: "Choose one of the options, by its number or its name.",
    FieldKind.SEVERAL: "Choose from the options, by number or name, with commas between them.",
}
_YES_NO: Final = {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}
_READERS: Final[Mapping[FieldKind, Callable[[FormField, str], object]]] = {
    FieldKind.TEXT: lambda _, text: text,
    FieldKind.NUMBER: FormField._number,
    FieldKind.INTEGER: FormField._number,
    FieldKind.YES_NO: FormField._yes_no,
    FieldKind.CHOICE: FormField._option,
    FieldKind.SEVERAL: FormField._several,
}


@dataclass(frozen=True, slots=True)
class QuestionForm:
    """The fields of a form, in order. A form without fields asks only for a yes or a no."""

    fields: tuple[FormField, ...] = ()

    def check(self, content: Mapping[str, Any] | None) -> dict[str, FieldValue]:
        """The checked content; `BadRequestError` names the first wrong field, and never its value.

        A field that is `None` is left out. Without any content the form's defaults are taken.
        """
        if content is None:
            content = {field.name: field.default for field in self.fields}
        given = {name: value for name, value in content.items() if value is not None}
        if unknown := given.keys() - {field.name for field in self.fields}:
            raise BadRequestError(f"the form has no field {sorted(unknown)[0]!r}", {"field": sorted(unknown)[0]})
        checked: dict[str, FieldValue] = {}
        for field in self.fields:
            try:
                if field.name in given:
                    checked[field.name] = field.check(given[field.name])
                elif field.required:
                    raise ValueError("It is required.")
            except ValueError as problem:
                details = {"field": field.name, "problem": str(problem)}
                raise BadRequestError(f"{field.title}: {problem}", details) from None
        return checked


def parse_form(schema: Mapping[str, Any]) -> QuestionForm:
    """The form that MCP's `requestedSchema` describes; `InvalidFormError` if it cannot be shown to a person."""
    properties, required = schema.get("properties", {}), schema.get("required") or []
    if not isinstance(properties, Mapping) or not isinstance(required, list):
        raise InvalidFormError("its schema is not an object with properties")
    if len(properties) > _MOST.fields:
        raise InvalidFormError(f"it has {len(properties)} fields; at most {_MOST.fields} are allowed")
    # A front end that shows the form, or remembers it, keeps the whole schema.
    if weight(schema, _MOST.schema_bytes) > _MOST.schema_bytes or is_deeper(schema, _MOST.schema_levels):
        raise InvalidFormError("its schema is too large or nested too deeply for a form")
    needed = {name for name in required if isinstance(name, str)}
    return QuestionForm(tuple(_field(str(name), part, name in needed) for name, part in properties.items()))


def _field(name: str, schema: Any, required: bool) -> FormField:
    if not isinstance(schema, Mapping):
        raise InvalidFormError(f"its field {name!r} has no schema")
    kind, options = _kind(name, schema)
    low, high = _BOUNDS.get(kind, ("", ""))
    field = FormField(
        name,
        kind,
        _text(schema.get("title")) or name,
        _text(schema.get("description")),
        required,
        options=options,
        least=_bound(schema.get(low)),
        most=_bound(schema.get(high)),
        format=_text(schema.get("format")),
    )
    return _with_default(field, schema.get("default"))


_BOUNDS: Final = {
    FieldKind.TEXT: ("minLength", "maxLength"),
    FieldKind.NUMBER: ("minimum", "maximum"),
    FieldKind.INTEGER: ("minimum", "maximum"),
    FieldKind.SEVERAL: ("minItems", "maxItems"),
}


def _kind(name: str, schema: Mapping[str, Any]) -> tuple[FieldKind, tuple[FieldOption, ...]]:
    match schema.get("type"):
        case "array" if isinstance(items := schema.get("items"), Mapping):
            if options := _options(name, items):
                return FieldKind.SEVERAL, options
        case "string" | None if options := _options(name, schema):
            return FieldKind.CHOICE, options
        case "string":
            return FieldKind.TEXT, ()
        case "number":
            return FieldKind.NUMBER, ()
        case "integer":
            return FieldKind.INTEGER, ()
        case "boolean":
            return FieldKind.YES_NO, ()
    raise InvalidFormError(f"its field {name!r} has a type that is not allowed in a form")


def _options(name: str, schema: Mapping[str, Any]) -> tuple[FieldOption, ...]:
    """The options, in any spelling of MCP: `enum`, perhaps with `enumNames`, or `oneOf`, or `anyOf`."""
    values, titles = schema.get("enum"), schema.get("enumNames")
    if not isinstance(values, list):
        titled = schema.get("oneOf") or schema.get("anyOf") or []
        if not isinstance(titled, list) or not all(isinstance(entry, Mapping) for entry in titled):
            raise InvalidFormError(f"the options of its field {name!r} are not a list of objects")
        values = [entry.get("const") for entry in titled]
        titles = [entry.get("title") for entry in titled]
    if len(values) > _MOST.options:
        raise InvalidFormError(f"its field {name!r} has {len(values)} options; at most {_MOST.options} are allowed")
    if not all(isinstance(value, str) for value in values):
        raise InvalidFormError(f"the options of its field {name!r} are not texts")
    if not isinstance(titles, list) or len(titles) != len(values):
        titles = values
    return tuple(
        FieldOption(value, _text(title) or value) for value, title in dict(zip(values, titles, strict=True)).items()
    )


def _with_default(field: FormField, default: Any) -> FormField:
    """The field with its default, if the default is a valid value."""
    if default is None:
        return field
    try:
        return replace(field, default=field.check(default))
    except ValueError:
        return field


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _bound(value: Any) -> int | float | None:
    if isinstance(value, float):
        return None if math.isnan(value) else value
    return value if isinstance(value, int) and not isinstance(value, bool) else None  # an integer of any size is JSON


def _count(number: int | float, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


# --- formats


def _is_email(text: str) -> bool:
    return re.fullmatch(r"[^@\s]+@[^@\s]+", text) is not None


def _is_uri(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return bool(parts.scheme and (parts.netloc or parts.path)) and not re.search(r"\s", text)


def _is_date(text: str) -> bool:
    return re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII) is not None and _holds(date.fromisoformat, text)


def _is_date_time(text: str) -> bool:
    shape = r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)"
    return re.fullmatch(shape, text, re.ASCII) is not None and _holds(datetime.fromisoformat, text.upper())


def _holds(parse: Callable[[str], object], text: str) -> bool:
    try:
        parse(text)
    except ValueError:
        return False
    return True


_FORMATS: Final[Mapping[str | None, tuple[Callable[[str], bool], str]]] = {
    "email": (_is_email, "an e-mail address"),
    "uri": (_is_uri, "a URI, like https://example.com/page"),
    "date": (_is_date, "a date, like 2026-01-31"),
    "date-time": (_is_date_time, "a date and time with its offset, like 2026-01-31T09:30:00Z"),
}
