"""Words, options and values as a person types them."""

from pathlib import Path
from typing import Any

import pytest

from a2c_smcp.computer.cli.parse import json_value, options, split, text_value, values
from a2c_smcp.errors import BadRequestError


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", []),
        ("  servers   list ", ["servers", "list"]),
        ("call 'a b' \"c d\" e\\ f", ["call", "a b", "c d", "e f"]),
        ('call {"a": "b c", "d": [1, 2]} x', ["call", '{"a": "b c", "d": [1, 2]}', "x"]),
        ('call list=[1, 2] text="a b"', ["call", "list=[1, 2]", "text=a b"]),
        ("""call '{"a": 1}'""", ["call", '{"a": 1}']),
        ("call x={y", None),
        ('call {"a": 1}x', None),
        ("call {a: 1}", None),
        ("call 'a", None),
        ("call x\\", None),
        ("call " + "[" * 100_000, None),
    ],
)
def test_words_are_split_as_a_shell_would_and_json_stays_whole(line: str, words: list[str] | None) -> None:
    if words is not None:
        assert split(line) == words
        return
    with pytest.raises(BadRequestError):
        split(line)


def test_options_may_stand_anywhere() -> None:
    assert options(["a", "--url", "u", "b", "--name=x=y"], ("url", "name")) == (["a", "b"], {"url": "u", "name": "x=y"})


@pytest.mark.parametrize("words", [["--nope", "x"], ["--url"]])
def test_an_option_is_known_and_has_a_value(words: list[str]) -> None:
    with pytest.raises(BadRequestError):
        options(words, ("url",))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], {}),
        (['{"a": [1, "b"]}'], {"a": [1, "b"]}),
        (
            ["n=1", "t=x=y", "b=true", 'o={"k": null}', "empty="],
            {"n": 1, "t": "x=y", "b": True, "o": {"k": None}, "empty": ""},
        ),
        (["zip=01234", "id=7"], {"zip": "01234", "id": "7"}),
    ],
)
def test_values_are_an_object(words: list[str], expected: dict[str, Any]) -> None:
    assert values(words, texts=("id",)) == expected


@pytest.mark.parametrize("words", [["[1]"], ["word"], ["=x"], ['{"a": 1}', "b=2"], ["@/does/not/exist"]])
def test_what_is_no_object_is_refused(words: list[str]) -> None:
    with pytest.raises(BadRequestError):
        values(words)


def test_files_stand_for_what_they_hold(tmp_path: Path) -> None:
    file = tmp_path / "value.json"
    file.write_text('{"a": 1}\n')
    assert values([f"@{file}"]) == {"a": 1}
    assert json_value(f"@{file}") == {"a": 1}
    assert text_value(f"@{file}") == '{"a": 1}'
    file.write_bytes(b"\xff")
    with pytest.raises(BadRequestError, match="UTF-8"):
        text_value(f"@{file}")


@pytest.mark.parametrize(("word", "value"), [("8080", "8080"), ("[1]", [1]), ('"x"', "x"), ("a=b", "a=b")])
def test_one_value_is_text_unless_it_is_plainly_json(word: str, value: Any) -> None:
    assert text_value(word) == value
