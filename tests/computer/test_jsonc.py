"""The scanner of JSON with comments: what it takes, where things stand, and what it refuses."""

import json

import pytest

from a2c_smcp.computer.config.jsonc import JsoncError, scan


def test_every_value_knows_its_place() -> None:
    text = '\ufeff// "no": {\n{ "a" : [1, "x\\n",], /* , */ "b": {"c": null,},\r\n}\n// end'
    root = scan(text)
    assert root is not None and root.is_object
    assert [member.name for member in root.members] == ["a", "b"]
    first, second = root.members
    assert text[first.node.start : first.node.end] == '[1, "x\\n",]'
    assert [member.node.value for member in first.node.members] == [1, "x\n"]
    assert text[second.start : second.node.end] == '"b": {"c": null,}'
    assert [text[member.comma or 0] for member in root.members] == [",", ","]


@pytest.mark.parametrize("text", ["", " \n", "// only this", "\ufeff /* and */ // that"])
def test_a_text_of_blanks_and_comments_has_no_value(text: str) -> None:
    assert scan(text) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "line 1, column 2: expected a key"),
        ("[1 2]", "expected a comma"),
        ('{"a" 1}', "colon"),
        ("\r\n\n{a: 1}", "line 3, column 2: expected a key"),
        ("[,]", "expected a value"),
        ('"a\n"', "does not end on its line"),
        ("01", "neither"),
        ("[NaN]", "expected a value"),
        ("{} {}", "more text after the value"),
        ("[1] /* no end", "more text after the value"),
        ('"\\q"', "neither"),
        ("[" * (64 + 1), "nested too deeply"),
        ("9" * 5000, "neither"),
    ],
)
def test_what_is_no_json_is_refused_with_its_line(text: str, said: str) -> None:
    with pytest.raises(JsoncError, match=said):
        scan(text)


def test_a_deep_text_is_read_without_recursion() -> None:
    text = "[" * 64 + "]" * 64
    root = scan(text)
    assert root is not None and root.end == len(text)
    assert json.loads(text) is not None
