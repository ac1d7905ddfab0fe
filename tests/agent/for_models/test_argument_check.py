"""Whether arguments fit, whatever other people wrote as a schema."""

import time
from typing import Any

import pytest
from jsonschema import validators

from a2c_smcp.agent.for_models.argument_check import argument_problem, misnamed_arguments
from tests.undocumented import Library

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1}},
    "required": ["city"],
    "additionalProperties": False,
}


def test_what_fits_fits() -> None:
    assert argument_problem(SCHEMA, {"city": "Bern", "days": 2}) is None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "'city' is a required property"),
        ({"city": 7}, "city: 7 is not of type 'string'"),
        ({"city": "Bern", "days": 0}, "days: 0 is less than the minimum of 1"),
        ({"city": "Bern", "town": 1}, "'town' was unexpected"),
    ],
)
def test_what_does_not_is_said_in_a_sentence(arguments: Any, said: str) -> None:
    problem = argument_problem(SCHEMA, arguments)
    assert problem is not None
    assert said in problem


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "nonsense"},
        {"properties": 7},
        {"$ref": "https://example.org/never-fetched"},
        {"$ref": "#/$defs/missing"},
        {"$schema": "https://example.org/unknown", "required": "city"},
        {"allOf": [{"$ref": "#"}]},
    ],
)
def test_a_schema_that_makes_no_sense_is_left_to_its_server(schema: dict[str, Any]) -> None:
    assert argument_problem(schema, {"city": 7}) is None


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"x": {"pattern": "^(a+)+$"}}},
        {"propertyNames": {"pattern": "^(a+)+$"}},
        {"patternProperties": {"^(a+)+$": {}}, "additionalProperties": False},
        {"$schema": "http://json-schema.org/draft-04/schema#", "properties": {"x": {"pattern": "^(a+)+$"}}},
        {"properties": {"x": {"$schema": "http://json-schema.org/draft-07/schema#", "pattern": "^(a+)+$"}}},
    ],
)
def test_a_pattern_cannot_hold_the_process(schema: dict[str, Any]) -> None:
    evil = "a" * 40 + "!"
    assert argument_problem(schema, {"x": evil, evil: 1}) is None


def test_a_value_is_not_quoted_at_length() -> None:
    problem = argument_problem({"properties": {"x": {"type": "integer"}}}, {"x": "long " * 10_000})
    assert problem is not None
    assert len(problem) < 400


@pytest.mark.parametrize("keyword", ["type", "unevaluatedProperties"])
def test_a_short_schema_that_takes_for_ever_is_left_to_its_server(keyword: str) -> None:
    twice = {f"d{level}": {"allOf": [{"$ref": f"#/$defs/d{level + 1}"}] * 2} for level in range(60)}
    schema: dict[str, Any] = {"type": "object", "$defs": {**twice, "d60": {"type": "object"}}, "$ref": "#/$defs/d0"}
    schema |= {"unevaluatedProperties": False} if keyword == "unevaluatedProperties" else {}
    assert argument_problem(schema, {"a": 1}) is None


def test_a_schema_that_is_too_long_to_be_looked_at_is_left_to_its_server() -> None:
    begun = time.monotonic()
    schema = {"type": "object", "properties": {f"a{number}": {"type": "string"} for number in range(50_000)}}
    assert argument_problem(schema, {"a1": 1}) is None
    assert time.monotonic() - begun < 20


def test_jsonschema_makes_the_validator_of_a_part_by_evolve() -> None:
    library = Library("jsonschema", "agent/for_models/argument_check.py")
    library.says(validators.Draft202012Validator.evolve, "validator_for(schema, default=self.__class__)")


def test_a_mistyped_argument_is_named_with_what_was_meant() -> None:
    said = argument_problem(SCHEMA, {"citty": "Bern"})
    assert said is not None and said.endswith("there is no argument 'citty': did you mean 'city'?")
    assert misnamed_arguments(SCHEMA, {"city": "Bern", "dayz": 1}) == [
        "there is no argument 'dayz': did you mean 'days'?"
    ]
    assert misnamed_arguments(SCHEMA, {"city": "Bern", "walrus": 1}) == []
    assert misnamed_arguments(SCHEMA, {"city": "Bern", "days": 1, "day": 1}) == []  # what was meant is there


@pytest.mark.parametrize("schema", [{}, {"properties": 7}, {"properties": {f"a{n}": {} for n in range(51)}}])
def test_odd_schemas_mean_nothing(schema: dict[str, Any]) -> None:
    assert misnamed_arguments(schema, {"a": 1}) == []
    assert misnamed_arguments(SCHEMA, "no object") == []
