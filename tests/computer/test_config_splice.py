"""Entries that go into the text of a config file, and out of it: everything else in the text stays as it is."""

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2c_smcp.computer.config.files import read_config_text
from a2c_smcp.computer.config.problems import InvalidConfigError
from a2c_smcp.computer.config.splice import (
    ConfigSpliceError,
    add_input,
    add_server,
    entry_text,
    meaning,
    remove_server,
    replace_server,
)

FILE = """{
    // what I work with
    "mcpServers": {
        "mail": {"command": "mail"}, // the first
        /* for notes */
        "notes": {
            "command": "notes", // a program
            "args": ["--all",]
        } // the last
    },
    "inputs": []
}
"""
ENTRY = """{
  "command": "npx",
  "args": [
    "-y", // no question
    "z"
  ]
}"""
OWN = '{"name": "a", "type": "stdio", "server_parameters": {"command": "a"}}'


def test_a_new_entry_stands_below_the_others_and_is_indented_as_they_are() -> None:
    after = add_server(FILE, "new", ENTRY)
    assert after == FILE.replace(
        "        } // the last\n",
        """        }, // the last
        "new": {
            "command": "npx",
            "args": [
                "-y", // no question
                "z"
            ]
        }
""",
    )


def test_a_removed_entry_takes_its_comma_along_and_leaves_the_comments() -> None:
    without_last = remove_server(FILE, "notes")
    assert '"mail": {"command": "mail"} // the first\n        /* for notes */\n        // the last\n' in without_last
    without_first = remove_server(FILE, "mail")
    assert without_first == FILE.replace('"mail": {"command": "mail"}, // the first', "// the first")
    assert [raw["name"] for raw in read_config_text(without_first).servers] == ["notes"]


def test_an_entry_is_shown_without_its_indentation_and_replaced_where_it_stands() -> None:
    shown = entry_text(FILE, "notes")
    assert shown == '{\n    "command": "notes", // a program\n    "args": ["--all",]\n}'
    assert replace_server(FILE, "notes", shown) == FILE
    after = replace_server(FILE, "notes", shown.replace("--all", "--some"))
    assert after == FILE.replace("--all", "--some")


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_ends_and_a_byte_order_mark_stay(newline: str, mark: str) -> None:
    text = mark + FILE.replace("\n", newline)
    after = add_server(text, "new", ENTRY)
    assert after.startswith(mark) and set(re.findall(r"\r\n|\r|\n", after)) == {newline}
    assert remove_server(after, "new").replace("}, // the last", "} // the last") == text


def test_tabs_stay_tabs_and_a_trailing_comma_stays_the_habit_of_the_file() -> None:
    after = add_server('{\n\t"servers": {\n\t\t"a": {"url": "http://a"},\n\t},\n}', "b", ENTRY)
    assert '\n\t\t"b": {\n\t\t\t"command": "npx",\n\t\t\t"args": [\n' in after
    assert after.endswith("\n\t\t},\n\t},\n}")


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("", '{\n  "mcpServers": {\n    "n": {"command": "x"}\n  }\n}\n'),
        ("// mine\n", '// mine\n{\n  "mcpServers": {\n    "n": {"command": "x"}\n  }\n}\n'),
        ("{}", '{\n  "mcpServers": {\n    "n": {"command": "x"}\n  }\n}'),
        ('{"mcpServers": {}}', '{"mcpServers": {\n  "n": {"command": "x"}\n}}'),
        ('{"a": {"command": "a"}}', '{"a": {"command": "a"}, "n": {"command": "x"}}'),
        ('{"inputs": []}', '{"inputs": [], "servers": {\n  "n": {"command": "x"}\n}}'),
        ('{"servers": {"a": {"url": "http://a"}}}', '{"servers": {"a": {"url": "http://a"}, "n": {"command": "x"}}}'),
    ],
)
def test_each_shape_takes_an_entry(text: str, after: str) -> None:
    assert add_server(text, "n", '{"command": "x"}') == after


@pytest.mark.parametrize("text", ["[]", f"[{OWN}]", '{"servers": []}', f'{{"servers": [{OWN}]}}'])
def test_a_list_gets_our_own_shape_with_the_name_in_it(text: str) -> None:
    after = add_server(text, "n", '{"command": "x", "env": {"A": "1"}}')
    assert read_config_text(after).servers[-1] == {
        "name": "n",
        "type": "stdio",
        "server_parameters": {"command": "x", "env": {"A": "1"}},
    }
    assert remove_server(after, "n").replace(" ", "").replace("\n", "") == text.replace(" ", "")
    with pytest.raises(ConfigSpliceError, match="envFile"):
        add_server(text, "m", '{"command": "x", "envFile": "e"}')


def test_servers_in_our_own_shape_get_another_one_in_that_shape() -> None:
    text = '{"servers": {"a": {"type": "stdio", "server_parameters": {"command": "a"}}}}'
    after = json.loads(add_server(text, "n", '{"command": "x"}'))
    assert after["servers"]["n"]["server_parameters"] == {"command": "x"}


@pytest.mark.parametrize(
    "text",
    [
        '{"$schema": "s"}',
        '{"$schema": "s", "a": {"command": "a"}}',
        '{"$schema": "s", "mcpServers": {"a": {"command": "a"}}}',
        f'{{"$schema": "s", "servers": {{"a": {OWN}}}}}',
    ],
)
def test_a_schema_for_editors_stays_where_it_is(text: str) -> None:
    before = list(read_config_text(text).servers)
    after = add_server(text, "b", '{"command": "b"}')
    assert '"$schema": "s"' in after
    assert [raw["name"] for raw in _servers(after)] == [*(raw["name"] for raw in before), "b"]
    assert entry_text(after, "$schema") is None
    assert _servers(remove_server(after, "b")) == before


def test_a_file_of_one_server_and_its_schema_keeps_that_server() -> None:
    with pytest.raises(ConfigSpliceError):
        remove_server('{"$schema": "s", "a": {"command": "a"}}', "a")  # it would be no config file then


def test_a_file_of_one_server_with_a_schema_can_be_edited() -> None:
    text = OWN.replace("{", '{"$schema": "s", ', 1)
    shown = entry_text(text, "a")
    assert shown == text
    after = replace_server(text, "a", shown.replace('"command": "a"', '"command": "b"'))
    assert after == text.replace('"command": "a"', '"command": "b"')


def test_a_file_of_one_server_can_be_edited_and_nothing_else() -> None:
    text = '{ "name": "a", "command": "x" } // mine'
    assert replace_server(text, "a", '{"name": "a", "command": "y"}') == '{"name": "a", "command": "y"} // mine'
    with pytest.raises(ConfigSpliceError, match=r"nothing but the server 'a'.*disabled"):
        remove_server(text, "a")
    with pytest.raises(ConfigSpliceError, match="put it into an object with the key mcpServers"):
        add_server(text, "b", ENTRY)
    with pytest.raises(ConfigSpliceError, match="nothing but the server 'a'"):
        remove_server('{"a": {"command": "x"}}', "a")


@pytest.mark.parametrize(
    ("text", "name", "entry", "said"),
    [
        ("{", "n", ENTRY, "mend"),
        ('{"mcpServers": {"a": 3}}', "n", ENTRY, "must be an object; nothing was changed, mend the file first"),
        ('{"mcpServers": {"n": {"command": "x"}}}', "n", ENTRY, "already has a server 'n'; edit that one"),
        ('[{"id": "i", "type": "promptString"}]', "n", ENTRY, "holds only inputs"),
        ("", "n", ENTRY + ', "other": {}', "more text after the value"),
        ("", "n", "[]", "one JSON object"),
    ],
)
def test_what_cannot_be_done_is_refused_with_a_reason(text: str, name: str, entry: str, said: str) -> None:
    with pytest.raises(ConfigSpliceError, match=said):
        add_server(text, name, entry)


def test_a_wrong_entry_is_refused_with_everything_that_is_wrong() -> None:
    with pytest.raises(InvalidConfigError) as caught:
        add_server(FILE, "n", '{"command": "", "disabled": 3}')
    assert {problem.field for problem in caught.value.problems} == {"command", "disabled"}
    with pytest.raises(ConfigSpliceError, match="no server 'gone' any more"):
        remove_server(FILE, "gone")
    with pytest.raises(InvalidConfigError, match="name: must be 'a'"):
        replace_server(f"[{OWN}]", "a", OWN.replace('"a"', '"b"', 1))


def test_an_input_goes_into_the_list_or_gets_one() -> None:
    definition = '{"id": "key", "type": "promptString", "password": true}'
    assert '"inputs": [\n        {"id": "key"' in add_input(FILE, definition)
    after = add_input('{"mcpServers": {"a": {"command": "x", "env": {"K": "${input:key}"}}}}', definition)
    assert [found.id for found in read_config_text(after).inputs] == ["key"]
    with pytest.raises(ConfigSpliceError, match="no place for inputs"):
        add_input(f"[{OWN}]", definition)
    with pytest.raises(ConfigSpliceError, match="defined 2 times"):
        add_input(after, definition)


# --- drawn at random

_BLANK = st.sampled_from(["", " ", "\n", "\n  ", "\t", "// c\n", "/* , } */", '/* "x": { */ ', "\n// \U0001f600 ]\n\n"])
_NAMES = st.lists(st.text("ab\u00e9\u4e2d-\"\\/'", min_size=1, max_size=4), min_size=1, max_size=4, unique=True)


@st.composite
def _documents(draw: st.DrawFn) -> tuple[str, list[str]]:
    """A config file as nobody would lay it out, and the names of its servers."""
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    names = [name for name in draw(_NAMES) if name not in ("name", "type")]

    def blank() -> str:
        return draw(_BLANK)

    def joined(opener: str, parts: list[str], closer: str) -> str:
        comma = f"{blank()},{blank()}"
        trailing = draw(st.sampled_from(["", ","])) if parts else ""
        return f"{opener}{blank()}{comma.join(parts)}{blank()}{trailing}{blank()}{closer}"

    def pair(key: str, value: str) -> str:
        return f"{json.dumps(key)}{blank()}:{blank()}{value}"

    def entry(name: str, *, own: bool) -> str:
        parts = [pair("command", '"run"'), pair("args", joined("[", ['"a"', '"}"'], "]"))]
        if not own:
            return joined("{", parts, "}")
        return joined("{", [pair("name", json.dumps(name)), pair("type", '"stdio"'),
                            pair("server_parameters", joined("{", parts, "}"))], "}")  # fmt: skip

    by_name = draw(st.booleans())
    if by_name:
        servers = joined("{", [pair(name, entry(name, own=draw(st.booleans()))) for name in names], "}")
        key = "mcpServers"
    else:
        servers, key = joined("[", [entry(name, own=True) for name in names], "]"), "servers"
    inputs = joined("[", [joined("{", [pair("id", '"i"'), pair("type", '"promptString"')], "}")], "]")
    parts = [pair(key, servers), pair("inputs", inputs)]
    whole = joined("{", parts[:: draw(st.sampled_from([1, -1]))], "}")
    return f"{blank()}{whole}{blank()}".replace("\n", newline), names


def _texts(text: str) -> list[str]:
    """The comments of a text, and its values but the commas, in order."""
    return re.findall(r'"(?:\\.|[^"\\])*"|//[^\r\n]*|/\*.*?\*/|[^\s,]', text)


def _servers(text: str) -> list[dict[str, Any]]:
    found = read_config_text(text)
    assert found.problems == ()
    return list(found.servers)


@settings(derandomize=True, deadline=None, max_examples=150)
@given(_documents())
def test_an_entry_that_goes_in_and_out_again_leaves_no_trace_but_blanks(document: tuple[str, list[str]]) -> None:
    text, names = document
    after = add_server(text, "new one", ENTRY)
    assert _servers(after) == [*_servers(text), meaning("new one", ENTRY)]
    assert after.startswith(text[: text.index(json.dumps(names[-1]))])
    assert _texts(remove_server(after, "new one")) == _texts(text)


@settings(derandomize=True, deadline=None, max_examples=150)
@given(_documents(), st.integers(0, 3))
def test_a_replaced_or_removed_entry_leaves_the_others(document: tuple[str, list[str]], number: int) -> None:
    text, names = document
    name = names[number % len(names)]
    shown = entry_text(text, name)
    assert shown is not None
    assert replace_server(text, name, shown) == text
    changed = replace_server(text, name, shown.replace('"run"', '"walk"'))
    assert _texts(changed.replace('"walk"', '"run"')) == _texts(text)
    assert [raw["server_parameters"]["command"] for raw in _servers(changed)] == [
        "walk" if raw["name"] == name else "run" for raw in _servers(text)
    ]
    removed = remove_server(text, name)
    assert _servers(removed) == [raw for raw in _servers(text) if raw["name"] != name]


@settings(derandomize=True, deadline=None, max_examples=200)
@given(st.text('{}[]",:/*\n a1\\', max_size=40))
def test_a_text_that_is_no_config_is_refused_and_never_a_fault(text: str) -> None:
    try:
        after = add_server(text, "n", ENTRY)
    except ConfigSpliceError:
        return
    assert [raw["name"] for raw in _servers(after)][-1] == "n"
