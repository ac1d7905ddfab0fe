"""Values as a person types them, for both command lines."""

import io
from pathlib import Path
from typing import Any

import pytest

from a2c_smcp.errors import BadRequestError
from a2c_smcp.utils.values import json_value, parameters, read_values, signature, text_value, texts


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], {}),
        (['{"a": [1, "b"]}'], {"a": [1, "b"]}),
        ([' {"a": 1}'], {"a": 1}),
        (
            ["n=1", "t=x=y", "b=true", 'o={"k": null}', "empty=", "list=[1, 2]"],
            {"n": 1, "t": "x=y", "b": True, "o": {"k": None}, "empty": "", "list": [1, 2]},
        ),
        (["zip=01234", "id=7"], {"zip": "01234", "id": "7"}),
        (['quoted="3"', "nan=NaN"], {"quoted": "3", "nan": "NaN"}),
    ],
)
def test_values_are_an_object(words: list[str], expected: dict[str, Any]) -> None:
    assert read_values(words).read(texts("id")) == expected


SCHEMA: dict[str, Any] = {
    "properties": {
        "text": {"type": "string"},
        "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "either": {"type": ["string", "integer"]},
        "number": {"type": "number"},
        "flag": {"type": "boolean"},
        "list": {"type": "array"},
        "colour": {"enum": ["1", "2"]},
        "choice": {"$ref": "#/$defs/Choice"},
        "loop": {"$ref": "#/properties/loop"},
        "free": {},
    },
    "$defs": {"Choice": {"oneOf": [{"const": "1"}, {"type": "object"}]}},
}


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("text=1", "1"),
        ("text=null", "null"),
        ('text="1"', '"1"'),
        ("maybe=1", "1"),
        ("maybe=null", None),
        ("either=1", 1),
        ("either=1.5", "1.5"),
        ("either=a", "a"),
        ("number=1", 1),
        ("number=x", "x"),
        ("flag=true", True),
        ("list=[1]", [1]),
        ("colour=1", "1"),
        ("choice=1", "1"),
        ('choice={"a": 1}', {"a": 1}),
        ("loop=1", 1),
        ("free=1", 1),
        ("unknown=1", 1),
    ],
)
def test_a_pair_is_what_the_schema_declares(word: str, value: Any) -> None:
    assert read_values([word]).read(SCHEMA) == {word.partition("=")[0]: value}


@pytest.mark.parametrize("schema", [None, {}, {"properties": 1}, {"properties": {"a": 1}}, {"properties": {"a": None}}])
def test_a_schema_that_says_nothing_leaves_json(schema: Any) -> None:
    assert read_values(["a=1"]).read(schema) == {"a": 1}


def test_an_object_is_taken_as_it_is() -> None:
    assert read_values(['{"text": 1}']).read(SCHEMA) == {"text": 1}


def test_the_parameters_of_a_schema() -> None:
    assert list(parameters(SCHEMA))[:2] == ["text", "maybe"]
    assert list(parameters(None)) == []
    assert signature({"properties": {"path": {}, "head": {}}, "required": ["path"]}) == "path, head?"
    assert signature({"properties": {"path": {}}, "required": 5}) == "path?"
    assert signature(None) == ""


@pytest.mark.parametrize(
    "words",
    [["[1]"], ["word"], ["{"], ["=x"], ["a=1", "a=2"], ['{"a": 1}', "b=2"], ["a=1", "@f"], ["@/does/not/exist"]],
)
def test_what_is_no_object_is_refused(words: list[str]) -> None:
    with pytest.raises(BadRequestError):
        read_values(words)


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("@~nosuchuser/x", "~nosuchuser/x: that home folder is unknown here; .* write ./~nosuchuser/x"),
        ('{"a": ' + "1" * 5000 + "}", "too many digits; .* in quotes"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_what_python_itself_cannot_read_is_said(word: str, sentence: str) -> None:
    with pytest.raises(BadRequestError, match=sentence):
        read_values([word])


def test_files_stand_for_what_they_hold(tmp_path: Path) -> None:
    file = tmp_path / "value.json"
    file.write_text('{"a": "你好"}\n', "utf-8")
    assert read_values([f"@{file}"]).read() == {"a": "你好"}
    assert json_value(f"@{file}") == {"a": "你好"}
    assert text_value(f"@{file}") == '{"a": "你好"}'
    file.write_text("[]")
    with pytest.raises(BadRequestError, match="object"):
        read_values([f"@{file}"])
    file.write_bytes(b"\xff")
    with pytest.raises(BadRequestError, match="UTF-8"):
        text_value(f"@{file}")


def test_stdin_is_read_only_where_it_is_free(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO('{"a": 1}'))
    with pytest.raises(BadRequestError, match="cannot be read"):
        read_values(["@-"])
    assert read_values(["@-"], stdin=True).read() == {"a": 1}
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\xff"), "utf-8"))
    with pytest.raises(BadRequestError, match="UTF-8"):
        read_values(["@-"], stdin=True)


@pytest.mark.parametrize(("word", "value"), [("8080", "8080"), ("[1]", [1]), ('"x"', "x"), ("a=b", "a=b")])
def test_one_value_is_text_unless_it_is_plainly_json(word: str, value: Any) -> None:
    assert text_value(word) == value
