"""Placeholders: where they are found, what takes their place, and where they may not stand."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2c_smcp.computer.config.problems import InvalidConfigError
from a2c_smcp.computer.inputs import ConfigRender, servers_referencing
from a2c_smcp.computer.inputs.render import MAX_DEPTH


def rendered(raw: Any, **inputs: Any) -> Any:
    return ConfigRender(raw).render(inputs, {"HOME": "/home/me"})


def problems(raw: Any) -> list[str]:
    with pytest.raises(InvalidConfigError) as caught:
        ConfigRender(raw).render({}, {})
    return [str(problem) for problem in caught.value.problems]


def nested(levels: int) -> Any:
    value: Any = "${input:x}"
    for level in range(levels):
        value = [value] if level % 2 else {"k": value}
    return value


# --- finding


def test_references_are_found_at_any_depth_in_order_each_with_its_first_place() -> None:
    render = ConfigRender(
        {"a": ["x", "${input:one}/${input:two}"], "b": {"c": {"d": "${input:three}"}}, "e": "${input:one} ${env:HOME}"}
    )
    assert list(render.inputs.items()) == [("one", "a[1]"), ("two", "a[1]"), ("three", "b.c.d")]
    assert render.variables == {"HOME": "e"}


@pytest.mark.parametrize("text", ["${input}", "$input:x", "${input:x", "{input:x}", "${Input:x}", "${workspaceFolder}"])
def test_what_is_no_placeholder_stays(text: str) -> None:
    assert ConfigRender([text]).inputs == {}
    assert rendered([text]) == [text]


def test_a_placeholder_in_a_key_is_an_error_that_names_the_place() -> None:
    assert problems({"env": {"${input:x}": "v"}, "l": [{"a${env:B}": 1}]}) == [
        "env.${input:x}: a key must not hold a placeholder",
        "l[0].a${env:B}: a key must not hold a placeholder",
    ]


def test_nesting_has_a_limit_and_the_error_names_the_place() -> None:
    assert rendered(nested(MAX_DEPTH), x=1)
    for levels in (MAX_DEPTH + 1, 50, 400):
        (problem,) = problems({"server_parameters": nested(levels)})
        assert problem.startswith("server_parameters")
        assert "nested deeper than" in problem
        assert len(problem) < 200


def test_which_servers_refer_to_an_input() -> None:
    servers = {
        "a": {"args": ["-k", "${input:k}"]},
        "b": {"args": ["${input:kk}", "${env:k}"]},
        "c": {"url": "http://${input:j}:${input:k}/"},
        "wrong": {"${input:k}": "x"},
    }
    assert servers_referencing("k", servers) == ["a", "c"]
    assert servers_referencing("none", servers) == []


# --- substituting


@pytest.mark.parametrize("value", ["text", 7, 1.5, True, None, {"a": [1]}, ["x"], ""])
def test_one_placeholder_and_nothing_else_takes_the_values_own_type(value: Any) -> None:
    result = rendered({"a": ["${input:x}"]}, x=value)
    assert result == {"a": [value]}
    assert type(result["a"][0]) is type(value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("v", "v"),
        (7, "7"),
        (1.5, "1.5"),
        (True, "true"),
        (None, "null"),
        ({"a": ["é"]}, '{"a": ["é"]}'),
        ("\\1", "\\1"),
    ],
)
def test_among_other_text_the_value_is_written_out(value: Any, text: str) -> None:
    assert rendered("<${input:x}>", x=value) == f"<{text}>"


def test_two_placeholders_are_text_too() -> None:
    assert rendered("${input:a}${input:b}", a=1, b=2) == "12"


def test_environment_variables_take_their_place() -> None:
    assert rendered(["${env:HOME}", "${env:HOME}/${input:x}"], x="d") == ["/home/me", "/home/me/d"]


def test_values_that_look_like_placeholders_are_not_rendered_again() -> None:
    assert rendered(["${input:a}", "<${input:a}>"], a="${input:b}${env:HOME}") == [
        "${input:b}${env:HOME}",
        "<${input:b}${env:HOME}>",
    ]


def test_what_is_not_text_stays() -> None:
    raw: dict[str, Any] = {"a": 1, "b": True, "c": None, "d": [2.5, {}], "e": {"f": []}}
    assert rendered(raw) == raw


def test_everything_that_is_missing_is_named() -> None:
    assert problems({"a": "${input:x}", "b": ["${input:}", "${env:NO_SUCH}"]}) == [
        "a: no value for input 'x'",
        "b[0]: no value for input ''",
        "b[1]: the environment variable 'NO_SUCH' is not set",
    ]


json_like: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.just("${input:x} and ${input:y}"),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text("abc"), children, max_size=4),
    max_leaves=20,
)


@given(json_like)
def test_rendering_leaves_the_config_as_it_was_and_no_reference_behind(raw: Any) -> None:
    before = repr(raw)
    template = ConfigRender(raw)
    result = template.render(dict.fromkeys(template.inputs, "-"), {})
    assert repr(raw) == before
    assert not ConfigRender(result).inputs
