"""The forms of MCP's questions: which fields there are, and what each of them takes."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2c_smcp.errors import BadRequestError
from a2c_smcp.utils.forms import (
    FieldKind,
    FormField,
    InvalidFormError,
    QuestionForm,
    parse_form,
)


def field(required: bool = True, **schema: Any) -> FormField:
    [found] = form({"it": schema}, ["it"] if required else []).fields
    return found


def form(properties: dict[str, Any], required: list[str] | None = None) -> QuestionForm:
    return parse_form({"type": "object", "properties": properties, "required": required or []})


COLOURS: dict[str, Any] = {
    "type": "string",
    "oneOf": [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}],
}
SIZES: dict[str, Any] = {
    "type": "array",
    "items": {"type": "string", "enum": ["s", "m", "l"]},
    "minItems": 1,
    "maxItems": 2,
}


@pytest.mark.parametrize(
    ("schema", "typed", "value"),
    [
        ({"type": "string"}, "as it is ", "as it is "),
        ({"type": "string", "minLength": 2, "maxLength": 3}, "abc", "abc"),
        ({"type": "string", "format": "email"}, "ann@example.com", "ann@example.com"),
        ({"type": "string", "format": "uri"}, "https://example.com/a?b", "https://example.com/a?b"),
        ({"type": "string", "format": "uri"}, "mailto:ann@example.com", "mailto:ann@example.com"),
        ({"type": "string", "format": "date"}, "2026-02-28", "2026-02-28"),
        ({"type": "string", "format": "date-time"}, "2026-02-28T10:00:00+02:00", "2026-02-28T10:00:00+02:00"),
        ({"type": "string", "format": "something else"}, "x", "x"),
        ({"type": "number"}, " 1.5 ", 1.5),
        ({"type": "number"}, "3", 3),
        ({"type": "number", "minimum": -1, "maximum": 1}, "-1e0", -1.0),
        ({"type": "integer"}, "12", 12),
        ({"type": "integer"}, "12.0", 12),
        ({"type": "boolean"}, "Y", True),
        ({"type": "boolean"}, "no", False),
        ({"type": "string", "enum": ["a", "b"]}, "b", "b"),
        ({"type": "string", "enum": ["a", "b"]}, "2", "b"),
        ({"type": "string", "enum": ["2", "1"]}, "2", "2"),  # an option that is a number is meant literally
        ({"type": "string", "enum": ["a", "b"], "enumNames": ["Ann", "Bob"]}, "bob", "b"),
        (COLOURS, "green", "g"),
        (COLOURS, "1", "r"),
        (SIZES, "s, 3", ["s", "l"]),
        ({"type": "array", "items": {"anyOf": [{"const": "x", "title": "An X"}]}}, "an x", ["x"]),
    ],
)
def test_what_is_typed_is_read_by_the_kind_of_the_field(schema: dict[str, Any], typed: str, value: Any) -> None:
    read = field(**schema).read(typed)
    assert read == value
    assert type(read) is type(value)
    assert field(**schema).check(value) == value


@pytest.mark.parametrize(
    ("schema", "typed", "problem"),
    [
        ({"type": "string"}, "", "required"),
        ({"type": "string", "minLength": 2}, "a", "at least 2 characters"),
        ({"type": "string", "maxLength": 1}, "ab", "at most 1 character."),
        ({"type": "string", "format": "email"}, "ann", "e-mail"),
        ({"type": "string", "format": "uri"}, "example", "URI"),
        ({"type": "string", "format": "uri"}, "http://[", "URI"),
        ({"type": "string", "format": "date"}, "2026-02-30", "date"),
        ({"type": "string", "format": "date"}, "20260228", "date"),
        ({"type": "string", "format": "date-time"}, "2026-02-28 10:00", "offset"),
        ({"type": "number"}, "many", "a number"),
        ({"type": "number"}, "nan", "a number"),
        ({"type": "number"}, "1e999", "a number"),
        ({"type": "number", "minimum": 0.5}, "0", "at least 0.5"),
        ({"type": "number", "maximum": 10}, "11", "at most 10"),
        ({"type": "integer"}, "1.5", "a whole number"),
        ({"type": "boolean"}, "perhaps", "yes or no"),
        ({"type": "string", "enum": ["a", "b"]}, "3", "one of the options"),
        ({"type": "string", "enum": ["a", "b"]}, "0", "one of the options"),
        (SIZES, "", "at least 1 option."),
        (SIZES, "s,s", "twice"),
        (SIZES, "s,m,l", "at most 2 options"),
        (SIZES, "s,x", "from the options"),
    ],
)
def test_what_does_not_fit_is_refused_in_words(schema: dict[str, Any], typed: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        field(**schema).read(typed)


def test_what_need_not_be_given_may_be_left_out() -> None:
    schemas: list[dict[str, Any]] = [{"type": "string"}, {"type": "integer"}, {"type": "boolean"}, COLOURS, SIZES]
    for schema in schemas:
        assert field(required=False, **schema).read("") is None
    several: dict[str, Any] = {"type": "array", "items": {"enum": ["a"]}}
    assert field(**several).read("") == []


def test_a_field_says_what_it_is() -> None:
    named = field(type="string", title="Your name", description="As on the passport", default="Ann")
    assert (named.kind, named.title, named.description) == (FieldKind.TEXT, "Your name", "As on the passport")
    assert named.default == "Ann"
    assert named.required
    assert field(type="string").title == "it"
    assert [option.title for option in field(**COLOURS).options] == ["Red", "Green"]


def test_a_default_that_does_not_fit_is_none() -> None:
    assert field(type="integer", default=3).default == 3
    assert field(type="integer", default="three").default is None
    assert field(type="integer", default=3, maximum=2).default is None
    assert field(**{**SIZES, "default": ["s", "l"]}).default == ["s", "l"]


def test_a_default_is_written_as_it_is_read() -> None:
    for schema, value in (
        ({"type": "boolean"}, False),
        ({"type": "number"}, 2.5),
        (SIZES, ["m", "l"]),
        (COLOURS, "g"),
    ):
        it = field(**schema)
        assert it.read(it.written(value)) == value


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {}},
        {"type": "array", "items": {"type": "string"}},
        {"type": "array"},
        {"type": "null"},
        {"enum": [1, 2]},
        {"oneOf": ["a"]},
        {},
        "text",
        {"enum": [str(number) for number in range(1001)]},
    ],
)
def test_what_no_form_has_is_refused(schema: Any) -> None:
    with pytest.raises(InvalidFormError, match="its field 'it'"):
        form({"it": schema})


@pytest.mark.parametrize("more", [{"x": "x" * 2_000_000}, {"x" * 2_000_000: 1}, {"x": [[]] * 200_000}])
def test_a_form_may_not_be_huge(more: dict[str, Any]) -> None:
    with pytest.raises(InvalidFormError, match="too large or nested too deeply"):
        form({"it": {"type": "string", **more}})


def test_a_form_may_not_be_deep() -> None:
    deep: dict[str, Any] = {}
    for _ in range(900):
        deep = {"x": deep}
    with pytest.raises(InvalidFormError, match="too large or nested too deeply"):
        form({"it": {"type": "string", "x": deep}})


def test_a_bound_may_be_any_number() -> None:
    assert field(type="integer", minimum=-(10**400), maximum=10**400).read("3") == 3
    with pytest.raises(ValueError, match="at least"):
        field(type="number", minimum=10**400).read("3.5")


def test_an_option_that_nobody_can_type_is_written_as_its_number() -> None:
    odd = ["a, b", " c", "", "d"]
    choice = field(type="string", enum=odd)
    assert [choice.read(choice.written(value)) for value in odd] == odd
    several = field(type="array", items={"enum": odd})
    assert several.written(odd) == "1, 2, 3, d"
    assert several.read(several.written(odd)) == odd


def test_a_form_may_not_be_endless() -> None:
    with pytest.raises(InvalidFormError, match="fields"):
        form({str(number): {"type": "string"} for number in range(101)})
    with pytest.raises(InvalidFormError, match="not an object"):
        parse_form({"type": "object", "properties": []})
    assert parse_form({"type": "object"}).fields == ()


def test_a_content_is_checked_as_a_whole_and_its_values_are_not_quoted() -> None:
    it = form({"name": {"type": "string"}, "age": {"type": "integer", "title": "Age"}}, ["name"])
    assert it.check({"name": "Ann", "age": None}) == {"name": "Ann"}
    assert it.check({"age": 3.0, "name": "Ann"}) == {"name": "Ann", "age": 3}
    for content, problem in (
        ({}, "name: It is required."),
        ({"name": "Ann", "age": "secret"}, "Age: It must be a whole number."),
        ({"name": True}, "name: It must be text."),
        ({"name": "Ann", "other": 1}, "no field 'other'"),
    ):
        with pytest.raises(BadRequestError, match=problem) as refused:
            it.check(content)
        assert "secret" not in str(refused.value)
        field, _, sentence = problem.rpartition(": ")
        if field:
            assert refused.value.details == {"field": field.lower(), "problem": sentence}


@settings(deadline=None, derandomize=True)
@given(
    st.dictionaries(
        st.text(max_size=5),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(["type", "enum", "oneOf", "anyOf", "items", "default", "minimum", "const", "title"])
                    | st.text(max_size=3),
                    inner | st.sampled_from(["string", "number", "integer", "boolean", "array"]),
                    max_size=4,
                )
            ),
            max_leaves=8,
        ),
        max_size=3,
    ),
    st.text(max_size=10),
)
def test_whatever_a_server_calls_a_form_is_one_or_is_refused(properties: dict[str, Any], typed: str) -> None:
    try:
        found = form(properties)
    except InvalidFormError:
        return
    for each in found.fields:
        try:
            value = each.read(typed)
        except ValueError:
            continue
        assert value is None or each.check(value) == value
