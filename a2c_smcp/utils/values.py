"""Values as a person types them: one JSON object, `@file`, or `key=value` read by a tool's schema. Reads files.

Both command lines use this module, so that a call means the same wherever it is typed.
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from a2c_smcp.errors import BadRequestError

__all__ = [
    "TOO_MANY_DIGITS",
    "Typed",
    "file_path",
    "json_value",
    "parameters",
    "read_values",
    "signature",
    "text_value",
    "texts",
]

#: Python refuses a number with more digits than `sys.get_int_max_str_digits()`, with a `ValueError` of its own.
TOO_MANY_DIGITS: Final = "invalid JSON: a number has too many digits; if it need not be a number, put it in quotes"


@dataclass(frozen=True, slots=True)
class Typed:
    """The typed arguments before the tool's schema is known: an object, or pairs of text."""

    given: Mapping[str, Any] = field(default_factory=dict)
    pairs: Mapping[str, str] = field(default_factory=dict)

    def read(self, schema: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The object. The value of a pair has the type in the schema. Without a type it is read as JSON, or else as
        text.
        """
        properties = parameters(schema)
        return {
            **self.given,
            **{key: _value(text, properties.get(key), schema or {}) for key, text in self.pairs.items()},
        }


def read_values(words: Sequence[str], *, stdin: bool = False) -> Typed:
    """Read one word of JSON, or `@file` (`@-` for stdin, if it is free), or any number of `key=value`. Raises
    `BadRequestError` for anything else.
    """
    if len(words) == 1 and words[0].lstrip().startswith(("{", "[", "@")):
        value = json_value(words[0], stdin=stdin)
        if not isinstance(value, dict):
            raise BadRequestError("must be a JSON object")
        return Typed(given=value)
    pairs: dict[str, str] = {}
    for word in words:
        key, equals, text = word.partition("=")
        if not key or not equals:
            raise BadRequestError(f"{word!r} is neither JSON, nor @file, nor key=value")
        if key in pairs:
            raise BadRequestError(f"{key!r} is given twice")
        pairs[key] = text
    return Typed(pairs=pairs)


def json_value(word: str, *, stdin: bool = False) -> Any:
    """The value of a word of JSON, or of the JSON in `@file`."""
    text = _file(word[1:], stdin) if word.startswith("@") else word
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise BadRequestError(f"invalid JSON at line {error.lineno}, column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise BadRequestError("invalid JSON: nested too deeply") from None
    except ValueError:
        raise BadRequestError(TOO_MANY_DIGITS) from None


def file_path(name: str | Path) -> Path:
    """The path for a file name, which may start with `~`. Raises `BadRequestError` for an unknown home folder."""
    try:
        return Path(name).expanduser()
    except RuntimeError:
        problem = f"{name}: that home folder is unknown here; for a name that starts with ~, write ./{name}"
        raise BadRequestError(problem) from None


def text_value(word: str) -> Any:
    """A value that is text unless it is plainly JSON. `@file` means the content of the file, without its last line
    break.
    """
    if word.startswith("@"):
        return _file(word[1:]).removesuffix("\n")
    return json_value(word) if word.startswith(("{", "[", '"')) else word


def parameters(schema: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The parameters in a schema, each with its own schema."""
    found = (schema or {}).get("properties")
    return found if isinstance(found, Mapping) else {}


def signature(schema: Mapping[str, Any] | None) -> str:
    """The parameters for people to read: `path, head?`. A question mark means optional."""
    required = _list((schema or {}).get("required"))
    return ", ".join(name if name in required else f"{name}?" for name in parameters(schema))


def texts(*names: str) -> dict[str, Any]:
    """A schema in which these parameters are text."""
    return {"properties": {name: {"type": "string"} for name in names}}


def _value(text: str, schema: Any, root: Mapping[str, Any]) -> Any:
    """Text if the schema wants text: `zip=01234` is not a number. Otherwise JSON, or else text."""
    # References and nested schemas are followed this deep: a schema may refer to itself.
    types = set(_types(schema, root, 8))
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return text
    if "string" not in types:
        return value
    return value if not isinstance(value, str) and _type(value) & types else text


def _types(schema: Any, root: Mapping[str, Any], depth: int) -> Iterator[str]:
    """The JSON types that a schema allows, if it says so."""
    if not isinstance(schema, Mapping) or not depth:
        return
    declared = schema.get("type")
    yield from (declared,) if isinstance(declared, str) else _list(declared)
    for choice in [*_list(schema.get("enum")), *([schema["const"]] if "const" in schema else ())]:
        yield from _type(choice)
    for part in (part for key in ("anyOf", "oneOf", "allOf") for part in _list(schema.get(key))):
        yield from _types(part, root, depth - 1)
    if isinstance(reference := schema.get("$ref"), str):
        yield from _types(_referred(reference, root), root, depth - 1)


def _referred(reference: str, root: Mapping[str, Any]) -> Any:
    """The part of the schema that `#/$defs/Name` means; `None` if it is not there."""
    found: Any = root
    for part in reference.removeprefix("#/").split("/"):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _type(value: Any) -> set[str]:
    """The JSON Schema type of a value; an integer is a number as well."""
    match value:
        case None:
            return {"null"}
        case bool():
            return {"boolean"}
        case int():
            return {"integer", "number"}
        case float():
            return {"number"}
        case str():
            return {"string"}
        case list():
            return {"array"}
        case _:
            return {"object"}


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _file(name: str, stdin: bool = False) -> str:
    try:
        if stdin and name == "-":
            return sys.stdin.read()
        return file_path(name).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise BadRequestError(f"{name} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadRequestError(f"{name} cannot be read: it is not UTF-8 text") from None
