"""Schemas of strangers become schemas that every host can read, and nothing more is lost than has to be."""

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2c_smcp.utils.json_sizes import is_deeper
from a2c_smcp.utils.readable_schemas import SCHEMA_LIMITS, composed_schema, input_schema, output_schema
from a2c_smcp.utils.schema_keywords import is_ecmascript_pattern

NODE = {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/Node"}}}}


def an_object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def shown(schema: Any) -> dict[str, Any]:
    found = input_schema(schema).schema
    assert found is not None
    return found


HONEST = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "title": "Order",
    "properties": {
        "id": {"type": "string", "pattern": "^[a-z]+$", "description": "a property may be called so"},
        "type": {"type": "string", "enum": ["int", True, None], "default": {"type": "int"}},
        "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}, "minItems": 1},
        "note": {"anyOf": [{"type": "string", "maxLength": 5}, {"type": "null"}], "x-order": 3},
        "pair": {"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "number"}},
    },
    "$defs": {"line": {"type": "object", "properties": {"n": {"type": "integer", "exclusiveMinimum": 0}}}},
    "required": ["lines"],
    "additionalProperties": False,
}


def test_an_honest_schema_stays_as_it_is() -> None:
    for read in (input_schema, output_schema):
        assert read(HONEST).schema == HONEST
        assert read(HONEST).changes == ()


@pytest.mark.parametrize(
    ("given_", "expected", "what"),
    [
        (an_object(a=True, b=False), an_object(a={}, b={"not": {}}), "true or false"),
        ({"type": "object", "properties": None}, {"type": "object"}, "properties"),
        ({"type": "object", "properties": {"a": 7}}, an_object(a={}), "not a schema"),
        ({"type": "object", "required": "a"}, {"type": "object"}, "required"),
        ({"type": "string"}, {"type": "object"}, "not object"),
        (None, {"type": "object"}, "not a schema"),
        (an_object(a={"type": "int"}), an_object(a={"type": "integer"}), "type"),
        (an_object(a={"type": ["str", "any"]}), an_object(a={"type": ["string"]}), "type"),
        (an_object(a={"type": {}}), an_object(a={}), "type"),
        (an_object(a={"nullable": True}), an_object(a={}), "nullable"),
        (an_object(a={"minimum": 1, "exclusiveMinimum": True}), an_object(a={"minimum": 1}), "exclusiveMinimum"),
        (an_object(a={"enum": []}), an_object(a={}), "enum"),
        (an_object(a={"pattern": "(?i)^abc$"}), an_object(a={}), "pattern"),
        ({"$id": "urn:a", "type": "object"}, {"type": "object"}, "$id"),
        (an_object(a={"$ref": "#/$defs/no"}), an_object(a={}), "references"),
        (an_object(a={"$ref": "https://example.com/a.json"}), an_object(a={}), "references"),
        (an_object(a={"$ref": "#/properties/b/enum"}, b={"enum": [{}]}), an_object(a={}, b={"enum": [{}]}), "nowhere"),
        (an_object(a={"default": [[[[[[[[[[[[[[[[[0]]]]]]]]]]]]]]]]]}), an_object(a={}), "nest too deeply"),
        (an_object(__proto__={}), an_object(), "__proto__"),
    ],
)
def test_what_hosts_cannot_read_is_changed_and_named(given_: Any, expected: Any, what: str) -> None:
    found = input_schema(given_)
    assert found.schema == expected
    assert what in "; ".join(found.changes)


def test_an_array_says_that_its_items_can_be_anything() -> None:
    assert shown(an_object(a={"type": "array"})) == an_object(a={"type": "array", "items": {}})


def test_a_required_argument_without_a_schema_gets_one() -> None:
    assert shown({"type": "object", "required": ["a"]}) == {**an_object(a={}), "required": ["a"]}


def test_alternatives_at_the_top_become_one_list_of_arguments() -> None:
    by_path = {**an_object(path={"type": "string"}), "required": ["path"]}
    by_url = {**an_object(url={"type": "string"}), "required": ["url"]}
    both = {**an_object(size={"type": "integer"}), "required": ["size"]}
    found = input_schema(
        {"type": "object", "oneOf": [by_path, by_url], "allOf": [{"$ref": "#/$defs/x"}], "$defs": {"x": both}}
    )
    assert found.schema is not None
    assert set(found.schema["properties"]) == {"path", "url", "size"}
    assert found.schema["required"] == ["size"]
    assert not {"oneOf", "allOf"} & found.schema.keys()


def test_what_mcp_allows_since_2026_stays_unless_something_else_must_go() -> None:
    schema = {
        "type": "object",
        "$defs": {"a": {"$anchor": "here", "type": "string"}},
        "properties": {"a": {"$ref": "#/$defs/a"}},
        "allOf": [{"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}],
        "if": {"required": ["a"]},
        "then": {},
        "additionalProperties": False,
    }
    assert composed_schema(schema) == schema
    odds: tuple[dict[str, Any], ...] = (
        {"properties": {"a b": {}}},
        {"properties": {"a": {"$ref": "#/$defs/gone"}}},
        {"properties": {"a": {"$ref": "#"}}},
        {"properties": {"a": {"type": "int"}}},
        {"$id": "https://example.com/"},
        {"type": "string"},
        {"description": "long" * 10_000},
    )
    for odd in odds:
        assert composed_schema({**schema, **odd}) is None, odd


def test_a_closed_list_of_arguments_stays_closed_with_those_of_the_alternatives() -> None:
    given = {
        "type": "object",
        "properties": {"a": {}},
        "anyOf": [{"properties": {"b": {}}}],
        "additionalProperties": False,
    }
    expected = {"type": "object", "properties": {"a": {}, "b": {}}, "additionalProperties": False}
    assert input_schema(given).schema == expected


def test_a_schema_that_is_a_reference_shows_its_arguments() -> None:
    found = shown({"$ref": "#/$defs/Node", "$defs": {"Node": NODE}})
    assert found["type"] == "object" and "children" in found["properties"]


def test_a_recursive_reference_ends_and_says_what_comes_again() -> None:
    found = input_schema({**an_object(tree={"$ref": "#/$defs/Node"}), "$defs": {"Node": NODE}})
    assert found.schema is not None
    assert found.schema["properties"]["tree"] == {"$ref": "#/$defs/Node"}
    again = {"type": "object", "description": "As Node, again."}
    assert found.schema["$defs"]["Node"]["properties"]["children"]["items"] == again
    assert found.changes == ("recursive references",)
    whole = shown(an_object(self={"$ref": "#"}))
    assert whole["properties"]["self"] == {"type": "object", "description": "As the whole, again."}


def test_arguments_with_other_names_are_described_in_words() -> None:
    schema = {**an_object(名称={"type": "string", "description": "of it"}, ok={}), "required": ["名称", "ok"]}
    found = shown({**schema, "additionalProperties": False})
    assert (found["properties"], found["required"]) == ({"ok": {}}, ["ok"])
    assert "- 名称 (string, required) of it" in found["description"]
    assert "additionalProperties" not in found
    # zod takes an object with such a property for no plain object, and the list of all tools for none.
    assert shown(an_object(constructor={"type": "string"}))["properties"] == {}
    assert output_schema(an_object(constructor={"type": "string"})).schema is None


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array"},
        an_object(a={"type": "int"}),
        an_object(a={"pattern": "(?i)a"}),
        an_object(a={"$ref": "other.json"}),
        an_object(a={"nullable": True}),
        {**an_object(), "$id": "urn:another-tool"},
        {**an_object(), "id": "draft-04"},
        an_object(a={"minimum": 1, "exclusiveMinimum": True}),
    ],
)
def test_an_output_schema_is_shown_whole_or_not_at_all(schema: Any) -> None:
    found = output_schema(schema)
    assert found.schema is None
    assert len(found.changes) == 1 and found.changes[0].startswith("an output schema (")


def test_an_output_schema_may_have_booleans_and_circles() -> None:
    assert output_schema(an_object(a=True)).schema == an_object(a={})
    recursive = {**an_object(tree={"$ref": "#/$defs/Node"}), "$defs": {"Node": NODE}}
    assert output_schema(recursive).schema == recursive
    assert output_schema(None).changes == ()


@pytest.mark.parametrize(
    "pattern", ["(?i)a", "(?i:a)b", "(?P<n>a)", r"\Z", r"^\-a$", "[a", "a++", "a" * 3000, "\ud800"]
)
def test_patterns_that_javascript_refuses(pattern: str) -> None:
    assert not is_ecmascript_pattern(pattern)


@pytest.mark.parametrize("pattern", ["^abc$", r"\p{L}+", "(?<n>a)", "(?<=a)b", r"^[\w.+-]+@\w+\.\w{2,}$", "(?:a|b)"])
def test_patterns_that_javascript_knows(pattern: str) -> None:
    assert is_ecmascript_pattern(pattern)


def deep(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = an_object(a=schema)
    return schema


def doubling(levels: int) -> dict[str, Any]:
    parts = {
        f"d{n}": an_object(x={"$ref": f"#/$defs/d{n + 1}"}, y={"$ref": f"#/$defs/d{n + 1}"}) for n in range(levels)
    }
    return {**an_object(a={"$ref": "#/$defs/d0"}), "$defs": {**parts, f"d{levels}": {"type": "string"}}}


def chain(links: int) -> dict[str, Any]:
    parts: dict[str, Any] = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(links)}
    return {**an_object(a={"$ref": "#/$defs/d0"}), "$defs": {**parts, f"d{links}": {"type": "string"}}}


HOSTILE = {
    "10,000 levels": deep(10_000),
    "10 MB in one text": an_object(a={"type": "string", "description": "x" * 10_000_000}),
    "20,000 arguments": an_object(**{f"a{n}": {"type": "string", "description": "x" * 500} for n in range(20_000)}),
    "a billion schemas": doubling(30),
    "a long chain": chain(1500),
    "a million values": an_object(a={"enum": list(range(1_000_000))}),
    "slow patterns": an_object(**{f"a{n}": {"pattern": f"(a|b{n})" * 200} for n in range(2000)}),
    "a large name": {"type": "object", "properties": {"a" * 5_000_000: {}}, "patternProperties": {"b" * 5_000_000: {}}},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_schema_takes_little_time_and_becomes_small(name: str) -> None:
    before = time.process_time()
    found, output = input_schema(HOSTILE[name]), output_schema(HOSTILE[name])
    assert time.process_time() - before < 5.0  # it takes a tenth of a second
    assert found.schema is not None and found.changes
    assert len(str(found.schema)) < SCHEMA_LIMITS.characters
    assert not is_deeper(found.schema, 2 * SCHEMA_LIMITS.levels + 1)
    assert output.schema is None


def test_the_outline_of_a_large_schema_names_its_arguments() -> None:
    many = {f"a{n}": {"type": "str", "description": "about " * 100} for n in range(20_000)}
    found = shown({"type": "object", "properties": many, "required": ["a1", "a19999"]})
    assert len(found["properties"]) == SCHEMA_LIMITS.outlined
    assert found["properties"]["a1"]["type"] == "string"
    assert found["properties"]["a1"]["description"].startswith("about about")
    assert found["required"] == ["a1"]


_KEYWORDS = """
type properties items required $ref $defs anyOf allOf not enum const default pattern patternProperties nullable title
additionalProperties dependencies dependentRequired if then minimum maxLength $id $schema x-other
"""
KEYWORDS = st.sampled_from(_KEYWORDS.split())
WORDS = st.sampled_from(
    [
        "type",
        "properties",
        "items",
        "required",
        "$ref",
        "$defs",
        "anyOf",
        "allOf",
        "not",
        "enum",
        "const",
        "default",
        "pattern",
        "patternProperties",
        "nullable",
        "additionalProperties",
        "dependencies",
        "dependentRequired",
        "if",
        "then",
        "minimum",
        "maxLength",
        "$id",
        "$schema",
        "title",
        "x-other",
    ]
)
WORDS = st.sampled_from(["a", "b", "object", "array", "int", "#", "#/$defs/a", "#/properties/b", "(?i)", "^a$", "名"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYWORDS | WORDS, inner, max_size=4),
    max_leaves=25,
)


@settings(deadline=None, derandomize=True, max_examples=400)
@given(JSON)
def test_whatever_comes_in_what_comes_out_is_accepted_by_jsonschema_and_stays_as_it_is(schema: Any) -> None:
    from jsonschema import Draft202012Validator

    for read in (input_schema, output_schema):
        found = read(schema).schema
        if found is None:
            continue
        assert found["type"] == "object"
        assert all(isinstance(each, dict) for each in found.get("properties", {}).values())
        # Lists of items are an older draft's, which compilers still know.
        if "'items': [" not in str(found):
            Draft202012Validator.check_schema({key: value for key, value in found.items() if key != "$schema"})
        again = read(found)
        assert again.schema == found, again.changes
