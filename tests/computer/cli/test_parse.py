"""Words and options as a person types them."""

import pytest

from a2c_smcp.computer.cli.parse import options, quote, split
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
        ("call x={y text=[a]b", ["call", "x={y", "text=[a]b"]),
        ('call x={"y', None),
        ("call x={a}'b c'", None),
        ('call {"a": 1}x', None),
        ("call {a: 1}", None),
        ("call 'a", None),
        ("call x\\", None),
        ("call " + "[" * 100_000, None),
        ('call {"a": ' + "1" * 5000 + "}", None),
    ],
)
def test_words_are_split_as_a_shell_would_and_json_stays_whole(line: str, words: list[str] | None) -> None:
    if words is not None:
        assert split(line) == words
        return
    with pytest.raises(BadRequestError):
        split(line)


@pytest.mark.parametrize("word", ["files", "window://w?a=1&b", "my server", "it's", 'a"b', "{x", "[1] 2", "a\\b", ""])
def test_what_is_quoted_is_one_word_again(word: str) -> None:
    assert split(f"call {quote(word)} x") == ["call", word, "x"]


def test_what_needs_no_quotes_gets_none() -> None:
    assert quote("window://w?a=1&b") == "window://w?a=1&b"


def test_options_may_stand_anywhere() -> None:
    assert options(["a", "--url", "u", "b", "--name=x=y"], ("url", "name")) == (["a", "b"], {"url": "u", "name": "x=y"})


@pytest.mark.parametrize("words", [["--nope", "x"], ["--url"]])
def test_an_option_is_known_and_has_a_value(words: list[str]) -> None:
    with pytest.raises(BadRequestError):
        options(words, ("url",))
