"""The keywords of JSON Schema, and a copy of a schema without the values that a host's compiler refuses. Pure.

JSON Schema lets a reader ignore what it does not know. Hosts do not: one wrong value in one schema, and a compiler
raises for the whole list of tools. The names of properties, and the values of `enum`, `const`, `default` and
`examples`, look like keywords but are not. So each keyword is listed here with the kind of its value.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import Any, Final

from a2c_smcp.utils.json_sizes import is_deeper

__all__ = [
    "SAME_MEANING",
    "SchemaTooLargeError",
    "Tidying",
    "children",
    "is_ecmascript_pattern",
]

#: The change that keeps the meaning of a schema. All others lose something.
SAME_MEANING: Final = "true or false as a schema"

_TYPES: Final = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})
#: What people write instead of JSON Schema's types.
_MEANT: Final = {
    "int": "integer",
    "long": "integer",
    "float": "number",
    "double": "number",
    "str": "string",
    "text": "string",
    "bool": "boolean",
    "list": "array",
    "dict": "object",
    "map": "object",
}
_ONE_SCHEMA: Final = frozenset(
    {"items", "contains", "propertyNames", "not", "if", "then", "else", "contentSchema"}
    | {"additionalProperties", "additionalItems", "unevaluatedItems", "unevaluatedProperties"}
)
#: Here every host knows true and false.
_MAY_BE_BOOLEAN: Final = frozenset(
    {"additionalProperties", "additionalItems", "unevaluatedItems", "unevaluatedProperties"}
)
_SCHEMA_LISTS: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_SCHEMA_MAPS: Final = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
#: They move the base of references, name a place in a second way, or mean something to one compiler only (Ajv).
_GONE: Final = frozenset(
    {"$id", "id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor"}
    | {"$vocabulary", "$async"}
)
_WITH_SCHEMAS: Final = _SCHEMA_MAPS | _SCHEMA_LISTS | _ONE_SCHEMA | {"dependencies"}


class SchemaTooLargeError(Exception):
    """The schema has more parts than are looked at."""


def _is_anything(_: Any) -> bool:
    return True


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_count(value: Any) -> bool:
    return _is_number(value) and value >= 0 and value == int(value)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _are_lists_of_texts(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_are_texts, value.values()))


#: A pattern is looked at up to this length. `regress` takes 40 ms for 40,000 characters.
_LONGEST_PATTERN: Final = 2000
# Newer than the compilers of many hosts: flags inside a pattern.
_FLAGS_INSIDE: Final = re.compile(r"\(\?[a-z-]+[:)]")


@lru_cache(maxsize=4096)
def is_ecmascript_pattern(pattern: str) -> bool:
    """Whether JavaScript compiles this pattern with the flag `u`, with which JSON Schema's compilers use it."""
    from regress import Regex, RegressError

    if len(pattern) > _LONGEST_PATTERN or _FLAGS_INSIDE.search(pattern):
        return False
    try:
        Regex(pattern, "u")
    except (RegressError, UnicodeEncodeError):
        return False
    return True


_VALUES: Final[Mapping[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(("$ref", "$schema", "$comment", "title", "description", "format"), _is_text),
    **dict.fromkeys(("contentEncoding", "contentMediaType"), _is_text),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _is_number),
    "multipleOf": lambda value: _is_number(value) and value > 0,
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), _is_count),
    **dict.fromkeys(("minProperties", "maxProperties", "minContains", "maxContains"), _is_count),
    **dict.fromkeys(("uniqueItems", "readOnly", "writeOnly", "deprecated", "nullable"), _is_flag),
    "enum": lambda value: isinstance(value, list) and bool(value),
    "examples": lambda value: isinstance(value, list),
    "required": _are_texts,
    "dependentRequired": _are_lists_of_texts,
    "pattern": lambda value: isinstance(value, str) and is_ecmascript_pattern(value),
}


@dataclass(slots=True)
class Tidying:
    """One schema on its way to a tidy copy: how much of it may still be looked at, and what was changed.

    `levels` is how many schemas may be inside each other, `parts` how many there may be in all, and `value_levels` how
    deep a value such as `default` may nest.
    """

    levels: int
    parts: int
    value_levels: int
    changes: dict[str, None] = field(default_factory=dict)
    refers: bool = False
    """Whether the copy has references."""
    kept: frozenset[str] = frozenset()
    """Keywords that stay although some hosts refuse them."""

    def changed(self, what: str) -> None:
        self.changes[what] = None

    def copy(self, schema: Any, level: int = 1) -> dict[str, Any]:
        """The copy. Raises `SchemaTooLargeError` after too many parts."""
        self._count()
        if isinstance(schema, bool):
            self.changed(SAME_MEANING)
            return {} if schema else {"not": {}}
        if not isinstance(schema, dict):
            self.changed("what is not a schema")
            return {}
        if level > self.levels:
            self.changed(f"more than {self.levels} levels")
            return {}
        copy: dict[str, Any] = {}
        for keyword, value in schema.items():
            self._count()
            copy |= self._copy_of(keyword, value, level)
        if "nullable" in copy and "type" not in copy:
            self.changed("nullable without a type")
            del copy["nullable"]
        if copy.get("type") == "array" or (isinstance(copy.get("type"), list) and "array" in copy["type"]):
            copy.setdefault("items", {})  # says nothing, but OpenAI's API and VS Code demand it
        return copy

    def _count(self, parts: int = 1) -> None:
        self.parts -= parts
        if self.parts < 0:
            raise SchemaTooLargeError

    def _copy_of(self, keyword: str, value: Any, level: int) -> dict[str, Any]:
        """The keyword with its new value; empty if it goes."""
        if keyword in _SCHEMA_MAPS and isinstance(value, dict):
            return {keyword: self._map(keyword, value, level)}
        if keyword == "dependencies" and isinstance(value, dict):
            found = {name: each if _are_texts(each) else self.copy(each, level + 1) for name, each in value.items()}
            return {keyword: found}
        if value and isinstance(value, list) and (keyword in _SCHEMA_LISTS or keyword == "items"):
            return {keyword: [self.copy(each, level + 1) for each in value]}
        if keyword in _MAY_BE_BOOLEAN and isinstance(value, bool):
            return {keyword: value}
        if keyword in _ONE_SCHEMA and isinstance(value, dict | bool):
            return {keyword: self.copy(value, level + 1)}
        if keyword == "type":
            return self._types(value)
        if keyword == "pattern" and isinstance(value, str):
            self._count(len(value) // 20)  # to compile it takes as long as so many parts
        if keyword in _GONE - self.kept:
            self.changed(keyword)
            return {}
        if keyword in _WITH_SCHEMAS or not _VALUES.get(keyword, _is_anything)(value):
            self.changed(f"{keyword} with a value that hosts refuse")
            return {}
        if is_deeper(value, self.value_levels):
            self.changed("values that nest too deeply")
            return {}
        self.refers = self.refers or keyword == "$ref"
        return {keyword: value}

    def _map(self, keyword: str, schemas: dict[str, Any], level: int) -> dict[str, Any]:
        copies = {}
        for name, each in schemas.items():
            self._count(len(name) // 20)
            if keyword == "patternProperties" and not is_ecmascript_pattern(name):
                self.changed("pattern with a value that hosts refuse")
            elif name == "__proto__":
                self.changed("__proto__ as a name")  # JavaScript does not keep it as one
            else:
                copies[name] = self.copy(each, level + 1)
        return copies

    def _types(self, value: Any) -> dict[str, Any]:
        given = list(islice(value, 10)) if isinstance(value, list) else [value]
        meant = [_MEANT.get(each, each) if isinstance(each, str) else each for each in given]
        known = list(dict.fromkeys(each for each in meant if isinstance(each, str) and each in _TYPES))
        if known != given:
            self.changed("type with a value that hosts refuse")
        if not known:
            return {}
        return {"type": known if isinstance(value, list) else known[0]}


def children(schema: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The schemas that are directly inside a tidy schema, without those that it refers to."""
    for keyword, value in schema.items():
        if keyword in _SCHEMA_MAPS or keyword == "dependencies":
            yield from (each for each in value.values() if isinstance(each, dict))
        elif keyword in _SCHEMA_LISTS or (keyword == "items" and isinstance(value, list)):
            yield from value
        elif keyword in _ONE_SCHEMA and isinstance(value, dict):
            yield value
