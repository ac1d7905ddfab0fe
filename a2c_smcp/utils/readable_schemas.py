"""Schemas of tools as every MCP host can read them. Pure.

One schema that a host cannot read costs it the whole list: the tools of all computers. `docs/hosts.md` has the table of
what hosts refuse. What is shown here is not what is checked: the tool's own MCP server decides about arguments.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final

from a2c_smcp.utils.json_sizes import json_or_none
from a2c_smcp.utils.schema_keywords import SAME_MEANING, SchemaTooLargeError, Tidying
from a2c_smcp.utils.schema_references import cut_references, follow, target_of
from a2c_smcp.utils.text import cut

__all__ = [
    "SCHEMA_LIMITS",
    "ReadableSchema",
    "SchemaLimits",
    "composed_schema",
    "input_schema",
    "outline",
    "output_schema",
]


@dataclass(frozen=True, slots=True)
class SchemaLimits:
    """How large a schema may be. A larger one is shown as an outline."""

    characters: int = 32_000
    """Of its JSON: about eight thousand tokens."""
    parts: int = 5000
    """Keywords and schemas in it."""
    followed_parts: int = 20_000
    """Schemas in it, when every reference is replaced by its target."""
    levels: int = 32
    """Schemas inside each other, references followed. Clients of mcp 2 refuse a list with 200 levels of JSON."""
    value_levels: int = 16
    """Levels of a value, such as a default."""
    outlined: int = 100
    """Properties in an outline."""


SCHEMA_LIMITS: Final = SchemaLimits()

#: Anthropic's API refuses all tools if the name of one argument is another. Gemini CLI does so for `constructor`.
_PLAIN_NAME: Final = re.compile(r"(?!(?:__proto__|constructor)\Z)[A-Za-z0-9_.-]{1,64}")
#: Anthropic's and OpenAI's APIs refuse these at the top of a tool's schema.
_NOT_AT_THE_TOP: Final = ("allOf", "anyOf", "oneOf", "then", "else", "if", "not", "enum", "const", "$ref")


@dataclass(frozen=True, slots=True)
class ReadableSchema:
    """A schema to show, `None` if it is left out, and what is different from the original, in a few words each."""

    schema: dict[str, Any] | None
    changes: tuple[str, ...] = ()


def input_schema(schema: Any, limits: SchemaLimits = SCHEMA_LIMITS) -> ReadableSchema:
    """The schema of a tool's arguments as every host can read it. It may allow more than the original."""
    tidying = Tidying(limits.levels, limits.parts, limits.value_levels)
    try:
        copy = tidying.copy(schema)
    except SchemaTooLargeError:
        return outline(schema, limits)
    if copy.get("type") != "object":
        tidying.changed("a type that is not object")
        copy["type"] = "object"
    _flatten(copy, tidying)
    _describe_odd_names(copy, tidying)
    if tidying.refers:
        if cut_references(copy):
            tidying.changed("references that lead nowhere")
        _cut_circles(copy, tidying)
    if not _fits(copy, tidying.refers, limits):
        return outline(schema, limits)
    return ReadableSchema(copy, tuple(tidying.changes))


def composed_schema(schema: Any, limits: SchemaLimits = SCHEMA_LIMITS) -> dict[str, Any] | None:
    """The schema of a tool's arguments with what MCP allows since 2026-07-28: conditions and alternatives at its top,
    and `$anchor`. `None` if something else of it would have to be changed.
    """
    tidying = Tidying(limits.levels, limits.parts, limits.value_levels, kept=frozenset({"$anchor"}))
    try:
        copy = tidying.copy(schema)
    except SchemaTooLargeError:
        return None
    is_whole = copy.get("type") == "object" and not set(tidying.changes) - {SAME_MEANING}
    if not is_whole or not all(map(_PLAIN_NAME.fullmatch, copy.get("properties", {}))):
        return None
    if tidying.refers and (cut_references(copy) or follow(copy).circles):
        return None
    return copy if _fits(copy, tidying.refers, limits) else None


def output_schema(schema: Any, limits: SchemaLimits = SCHEMA_LIMITS) -> ReadableSchema:
    """The schema of a tool's structured results. Hosts compile it, and check results with it. So it is shown only if
    nothing had to be changed that has a meaning.
    """
    if schema is None:
        return ReadableSchema(None)
    tidying = Tidying(limits.levels, limits.parts, limits.value_levels)
    try:
        copy = tidying.copy(schema)
    except SchemaTooLargeError:
        return ReadableSchema(None, ("an output schema that is too large",))
    lost = [change for change in tidying.changes if change != SAME_MEANING]
    if copy.get("type") != "object":
        lost.append("a type that is not object")
    if tidying.refers and cut_references(copy):
        lost.append("references that lead nowhere")
    if "constructor" in copy.get("properties", {}):
        lost.append("a name that hosts refuse")
    if not lost and not _fits(copy, tidying.refers, limits):
        lost.append("too large")
    if lost:
        return ReadableSchema(None, (f"an output schema ({', '.join(lost)})",))
    return ReadableSchema(copy, tuple(tidying.changes))


def outline(schema: Any, limits: SchemaLimits = SCHEMA_LIMITS) -> ReadableSchema:
    """The arguments' names, types and descriptions alone, for a schema that is too large."""
    found = schema.get("properties") if isinstance(schema, dict) else None
    properties: dict[str, Any] = {}
    for name, each in found.items() if isinstance(found, dict) else ():
        if len(properties) == limits.outlined:
            break
        if _PLAIN_NAME.fullmatch(name):
            facts = {key: each[key] for key in ("type", "description") if key in each} if isinstance(each, dict) else {}
            facts["description"] = cut(facts["description"], 100) if isinstance(facts.get("description"), str) else ""
            properties[name] = Tidying(1, 10, 1).copy(facts)
    required = schema.get("required") if isinstance(schema, dict) else None
    kept = [name for name in properties if isinstance(required, list) and name in required[:1000]]
    shown: dict[str, Any] = {"type": "object", "properties": properties}
    return ReadableSchema({**shown, "required": kept} if kept else shown, ("everything but an outline: too large",))


def _fits(schema: dict[str, Any], refers: bool, limits: SchemaLimits) -> bool:
    if refers:
        followed = follow(schema)
        if followed.parts > limits.followed_parts or followed.levels > limits.levels:
            return False
    text = json_or_none(schema)
    return text is not None and len(text) <= limits.characters


def _flatten(root: dict[str, Any], tidying: Tidying) -> None:
    """Merge what alternatives at the top say about arguments into the one list of arguments."""
    branches = list(_branches(root))
    gone = [keyword for keyword in _NOT_AT_THE_TOP if root.pop(keyword, None) is not None]
    if gone:
        _merge(root, branches)
        tidying.changed(f"{', '.join(gone)} at the top")
    # Gemini's API refuses a list of required arguments with one that has no schema.
    for name in root.get("required", ()):
        root.setdefault("properties", {}).setdefault(name, {})


def _merge(root: dict[str, Any], branches: Iterable[tuple[dict[str, Any], bool]]) -> None:
    properties, required = dict(root.get("properties", {})), list(root.get("required", ()))
    for branch, always in branches:
        for name, each in branch.get("properties", {}).items():
            # A copy: a schema that is in two places would look like a circle.
            properties.setdefault(name, deepcopy(each))
        required += branch.get("required", ()) if always else ()
    root["properties"] = properties
    if required:
        root["required"] = list(dict.fromkeys(required))
    # A false `additionalProperties` stays: it is about the arguments at the top, where those of the branches are now.
    root.pop("unevaluatedProperties", None)


def _branches(root: dict[str, Any]) -> Iterator[tuple[dict[str, Any], bool]]:
    """The schemas that are merged into the top one, and whether each always counts."""
    waiting, seen = [(root, True)], {id(root)}
    for schema, always in waiting:
        found = [(each, always) for each in schema.get("allOf", ())]
        found += [(each, False) for keyword in ("anyOf", "oneOf") for each in schema.get(keyword, ())]
        found += [(schema[keyword], False) for keyword in ("then", "else") if keyword in schema]
        if "$ref" in schema and (target := target_of(root, schema["$ref"])) is not None:
            found.append((target, always))
        for branch, counts in found:
            if id(branch) not in seen:
                seen.add(id(branch))
                waiting.append((branch, counts))
                yield branch, counts


def _cut_circles(root: dict[str, Any], tidying: Tidying) -> None:
    """Take out the references that lead back. In their place is the type of the target, and its name in words."""
    for schema in follow(root).circles:
        reference = schema.pop("$ref", None)
        if reference is None:  # a schema contains its children: only a reference can lead back
            continue
        tidying.changed("recursive references")
        target = target_of(root, reference) or {}
        if "type" in target:
            schema.setdefault("type", target["type"])
            if "array" in target["type"]:
                schema.setdefault("items", {})
        name = "the whole" if reference == "#" else reference.rpartition("/")[2]
        schema.setdefault("description", f"As {cut(name, 100)}, again.")


def _describe_odd_names(root: dict[str, Any], tidying: Tidying) -> None:
    """Arguments with a name that an API refuses move into the description: a model can still give them."""
    properties: Mapping[str, Any] = root.get("properties", {})
    odd = [name for name in properties if not _PLAIN_NAME.fullmatch(name)]
    if not odd:
        return
    tidying.changed("arguments with names that hosts refuse")
    required = root.get("required", [])
    lines = []
    for name in odd[: SCHEMA_LIMITS.outlined]:
        each = properties[name]
        facts = [str(each.get("type", "")), "required" if name in required else ""]
        about = cut(str(each.get("description", "")), 200)
        lines.append(f"- {cut(name, 200)} ({', '.join(filter(None, facts)) or 'anything'}) {about}".rstrip())
    root["properties"] = {name: each for name, each in properties.items() if name not in odd}
    if "required" in root:
        root["required"] = [name for name in required if name not in odd]
    if root.get("additionalProperties") is False:
        del root["additionalProperties"]
    texts = (root.get("description"), "More arguments, by these exact names:", *lines)
    root["description"] = "\n".join(text for text in texts if text)
