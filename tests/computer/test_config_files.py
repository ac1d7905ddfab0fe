"""Config files: our own shape, the files people already have, and errors that name their place."""

import json
from pathlib import Path
from typing import Any

import pytest

from a2c_smcp.computer.config.files import (
    ConfigFiles,
    load_config_files,
    read_config_files,
    read_snippet,
    usable_config_files,
)
from a2c_smcp.computer.config.problems import InvalidConfigError
from a2c_smcp.computer.mcp_clients.masking import config_view
from a2c_smcp.computer.mcp_clients.model import parse_unrendered


def own(name: str, *args: str, **extra: Any) -> dict[str, Any]:
    return {"name": name, "type": "stdio", "server_parameters": {"command": "run", "args": list(args)}, **extra}


def prompt(input_id: str) -> dict[str, Any]:
    return {"id": input_id, "type": "promptString", "description": "d"}


class Folder:
    """A place for files; what is said of them is compared without the folder's name."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self, *contents: object) -> ConfigFiles:
        paths = [self._path / f"{number}.json" for number in range(1, len(contents) + 1)]
        for path, content in zip(paths, contents, strict=True):
            if isinstance(content, bytes):
                path.write_bytes(content)
            else:
                path.write_text(content if isinstance(content, str) else json.dumps(content))
        return read_config_files(*paths)

    def problems(self, *contents: object) -> list[str]:
        return [self.short(problem) for problem in self.read(*contents).problems]

    def warnings(self, content: object) -> list[str]:
        files = self.read(content)
        assert files.problems == ()
        return [self.short(warning) for warning in files.warnings]

    def short(self, text: object) -> str:
        return str(text).replace(f"{self._path}/", "")


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


# --- our own shape


@pytest.mark.parametrize(
    "content",
    [
        own("a"),
        [own("a")],
        {"servers": [own("a")]},
        {"servers": {"a": own("a")}},
        {"servers": {"a": {key: value for key, value in own("a").items() if key != "name"}}, "inputs": []},
        {"servers": [own("a")], "inputs": None},
    ],
)
def test_a_server_a_list_or_servers_with_inputs(folder: Folder, content: object) -> None:
    files = folder.read(content)
    assert files.problems == files.warnings == ()
    assert list(files.servers) == [own("a")]


@pytest.mark.parametrize(
    "content",
    [
        own("a"),
        {"servers": [own("a")]},
        {"servers": {"a": own("a")}},
        {"mcpServers": {"a": {"command": "run"}}},
        {"servers": {"a": {"command": "run"}}},
        {"a": {"command": "run"}},
        {"name": "a", "command": "run"},
    ],
)
def test_a_schema_for_editors_says_nothing_to_us(folder: Folder, content: dict[str, Any]) -> None:
    without, files = folder.read(content), folder.read({"$schema": "./a2c.schema.json", **content})
    assert files.problems == files.warnings == ()
    assert files.servers == without.servers != ()


def test_what_get_config_shows_can_be_read(folder: Folder) -> None:
    view = config_view([own("a", "${input:k}"), own("b")], folder.read({"inputs": [prompt("k")]}).inputs)
    files = folder.read(view)
    assert files.problems == ()
    assert [raw["name"] for raw in files.servers] == ["a", "b"]
    assert [definition.id for definition in files.inputs] == ["k"]


def test_unknown_keys_are_refused_by_name_but_not_in_tool_meta(folder: Folder) -> None:
    assert folder.problems({"servers": [own("a", colour=1, tool_meta={"t": {"colour": 1}})], "server": []}) == [
        "1.json: server: unknown key; did you mean 'servers'?",
        "1.json: server 'a': colour: unknown key",
    ]


def test_inputs_may_stand_in_another_file(folder: Folder) -> None:
    files = folder.read([own("a", "${input:k}")], {"inputs": [prompt("k")]})
    assert files.problems == ()
    assert folder.problems([own("a", "${input:k}")]) == [
        "1.json: server 'a': server_parameters.args[0]: there is no input 'k'"
    ]


# --- files that other programs write


def test_mcp_servers_as_claude_desktop_and_cursor_write_them(folder: Folder) -> None:
    files = folder.read(
        {
            "mcpServers": {
                "filesystem": {
                    "command": "npx",
                    "args": ["-y", "@modelcontextprotocol/server-filesystem", "/tmp"],
                    "env": {"API_KEY": "${env:API_KEY}"},
                },
                "remote": {"url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${env:TOKEN}"}},
                "events": {"type": "sse", "url": "https://example.com/sse"},
                "off": {"type": "http", "url": "https://example.com/mcp", "disabled": True},
            }
        }
    )
    assert files.problems == files.warnings == ()
    assert list(files.servers) == [
        {
            "name": "filesystem",
            "type": "stdio",
            "server_parameters": {
                "command": "npx",
                "args": ["-y", "@modelcontextprotocol/server-filesystem", "/tmp"],
                "env": {"API_KEY": "${env:API_KEY}"},
            },
        },
        {
            "name": "remote",
            "type": "streamable",
            "server_parameters": {
                "url": "https://example.com/mcp",
                "headers": {"Authorization": "Bearer ${env:TOKEN}"},
            },
        },
        {"name": "events", "type": "sse", "server_parameters": {"url": "https://example.com/sse"}},
        {
            "name": "off",
            "type": "streamable",
            "disabled": True,
            "server_parameters": {"url": "https://example.com/mcp"},
        },
    ]
    assert all(parse_unrendered(raw) for raw in files.servers)


VSCODE = """\ufeff{
  // 💡 Inputs are prompted on first server start.
  "inputs": [
    {
      "type": "promptString",
      "id": "perplexity-key",
      "description": "API key // not a comment, /* neither */",
      "password": true,
    },
  ],
  "servers": {
    /* a local one */
    "perplexity": {
      "type": "stdio",
      "command": "npx",
      "args": ["-y", "server-perplexity-ask", "a,]"],
      "env": { "PERPLEXITY_API_KEY": "${input:perplexity-key}", "PORT": 8080 },
      "envFile": "${workspaceFolder}/.env",
      "dev": { "watch": "build/**/*.js" }
    },
    "github": { "type": "http", "url": "https://example.com/mcp/", },
    "fetch": { "command": "uvx", "args": ["mcp-server-fetch"], "cwd": "${workspaceFolder}" }
  },
  "sandbox": {}
}
"""


def test_vscode_mcp_json_with_its_comments(folder: Folder) -> None:
    files = folder.read(VSCODE)
    assert files.problems == ()
    assert [(raw["name"], raw["type"]) for raw in files.servers] == [
        ("perplexity", "stdio"),
        ("github", "streamable"),
        ("fetch", "stdio"),
    ]
    assert files.servers[0]["server_parameters"]["args"][-1] == "a,]"
    assert files.inputs[0].description == "API key // not a comment, /* neither */"
    assert [folder.short(warning) for warning in files.warnings] == [
        "1.json: sandbox: unknown key, ignored",
        "1.json: server 'perplexity': dev: unknown key, ignored; did you mean 'env'?",
        "1.json: server 'perplexity': envFile: cannot be read, and is ignored: No such file or directory",
        "1.json: server 'fetch': ${workspaceFolder} has no meaning here and is left as it is",
    ]


def test_streamable_http_has_many_names_there(folder: Folder) -> None:
    kinds = ("http", "streamable-http", "streamable")
    files = folder.read({"mcpServers": {kind: {"type": kind, "url": "http://h"} for kind in kinds}})
    assert [raw["type"] for raw in files.servers] == ["streamable"] * 3
    assert folder.problems(own("a", type="http")) == [
        "1.json: server 'a': type: must be one of 'stdio', 'streamable', 'sse'"
    ]


def test_errors_in_such_files_name_the_place_as_it_is_written_there(folder: Folder) -> None:
    servers = {
        "neither": {"args": []},
        "wrong": {"command": "run", "args": "x", "env": {"A": "${input:nope}"}},
        "kind": {"type": "websocket", "url": "ws://h"},
        "half": {"type": "sse"},
        "text": "run",
    }
    assert folder.problems({"mcpServers": servers}) == [
        "1.json: server 'neither': needs a command or a url",
        "1.json: server 'wrong': args: Input should be a valid list",
        "1.json: server 'kind': type: must be one of 'stdio', 'streamable', 'sse'",
        "1.json: server 'kind': url: must be an http:// or https:// URL with a host",
        "1.json: server 'half': url: required, and missing",
        "1.json: server 'text': must be an object",
        "1.json: server 'wrong': env.A: there is no input 'nope'",
    ]


def test_unknown_keys_of_inputs_are_warned_about_there(folder: Folder) -> None:
    content = {"mcpServers": {}, "inputs": [{**prompt("k"), "placeholder": "x"}]}
    assert folder.warnings(content) == ["1.json: input 'k': placeholder: unknown key, ignored"]


def test_our_own_entries_may_stand_among_theirs(folder: Folder) -> None:
    files = folder.read({"servers": {"a": own("a"), "b": {"command": "run", "forbidden_tools": ["t"]}}})
    assert files.problems == files.warnings == ()
    assert files.servers[1]["forbidden_tools"] == ["t"]


# --- everything that is wrong


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{\n  "servers": [\n    {"name": }\n]}', "invalid JSON at line 3, column 14: expected a value"),
        ('{\n  /* two\n lines */ "servers": x}', "invalid JSON at line 3, column 22: expected a value"),
        ("", "invalid JSON at line 1, column 1: there is no value"),
        ('{"a": "b', "invalid JSON at line 1, column 7: this string does not end"),
        ("{} {}", "invalid JSON at line 1, column 4: there is more text after the value"),
        ("{} /* open", "invalid JSON at line 1, column 4: there is more text after the value"),
        ("[NaN]", "invalid JSON at line 1, column 2: expected a value"),
        ("[" * 100_000, "invalid JSON at line 1, column 65: nested too deeply"),
        (b"\xff\xfe{}", "cannot be read: it is not UTF-8 text"),
        ("7", "must be a JSON object or a list"),
        ("{}", "holds neither a server nor any of the keys servers, inputs, rules, mcpServers"),
        ({"servers": 7}, "servers: must be an object or a list"),
        ({"mcpServers": []}, "mcpServers: must be an object"),
        ({"inputs": {}}, "inputs: must be a list"),
        ([own("a"), 7], "server number 2: must be an object"),
        ([{"type": "sse"}], "server number 1: name: required, and missing"),
        ({"inputs": [{"type": "promptString"}]}, "input number 1: id: required, and missing"),
        ({"servers": {"a": own("b")}}, "server 'a': name: must be 'a', as the entry is called"),
        ('{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}', "the key 'a' stands 2 times in one object"),
        ([own("a"), own("a")], "server 'a': defined 2 times"),
        ({"inputs": [prompt("k"), prompt("k")]}, "input 'k': defined 2 times"),
        (own("a", tool_meta={"${input:x}": {}}), "server 'a': tool_meta.${input:x}: a key must not hold a placeholder"),
        (
            own("${input:x}"),
            "server '${input:x}': name: must not hold a placeholder: it is needed before any input is asked for",
        ),
        ({"inputs": [{"id": "k", "type": "command", "command": "echo 'x"}]}, "input 'k': the command cannot be split"),
    ],
)
def test_each_problem_names_its_place(folder: Folder, content: object, message: str) -> None:
    assert folder.problems(content)[0].startswith(f"1.json: {message}")


def test_fifty_levels_are_too_many_and_the_place_is_named(folder: Folder) -> None:
    deep: Any = "x"
    for _ in range(50):
        deep = {"k": deep}
    (problem,) = folder.problems(own("a", tool_meta={"t": {"extra": deep}}))
    assert problem.startswith("1.json: server 'a': tool_meta.t.extra.k.k")
    assert "nested deeper than" in problem
    deep_text = '{"mcpServers": {"a": {"command": "x", "tool_meta": ' + '{"k":' * 900 + "1" + "}" * 900 + "}}}"
    assert "nested too deeply" in folder.problems(deep_text)[0]


def test_all_problems_of_all_files_are_reported(folder: Folder) -> None:
    first = {
        "servers": [own("a", "${input:nope}", disabled="maybe"), own("b", "${input:bad}")],
        "inputs": [{"id": "bad", "type": "pickString", "options": ["x"], "default": "y"}, prompt("k")],
    }
    assert folder.problems(first, "{", {"inputs": [prompt("k")]}, [own("b")]) == [
        "1.json: server 'a': disabled: Input should be a valid boolean, unable to interpret input",
        "1.json: input 'bad': the default is not one of the options",
        "2.json: invalid JSON at line 1, column 2: expected a key in double quotes",
        "4.json: server 'b': defined 2 times, also in 1.json",
        "3.json: input 'k': defined 2 times, also in 1.json",
        "1.json: server 'a': server_parameters.args[0]: there is no input 'nope'",
    ]


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    (problem,) = read_config_files(tmp_path / "none.json").problems
    assert str(problem) == f"{tmp_path}/none.json: cannot be read: No such file or directory"
    (problem,) = read_config_files(tmp_path).problems
    assert "Is a directory" in problem.message


def test_loading_raises_with_every_problem(tmp_path: Path) -> None:
    file = tmp_path / "c.json"
    file.write_text(json.dumps([own("a", colour=1), own("b", colour=1)]))
    with pytest.raises(InvalidConfigError) as caught:
        load_config_files(file)
    assert len(caught.value.problems) == 2
    file.write_text(json.dumps([own("a")]))
    assert load_config_files(file).servers == (own("a"),)


def test_neither_problems_nor_the_files_repr_show_values(folder: Folder) -> None:
    files = folder.read([own("a", "canary"), own("b", "x", disabled="canary", protocol="canary")])
    assert files.problems
    assert "canary" not in f"{files!r} {files}"


def test_a_list_of_inputs_is_a_file_too(tmp_path: Path) -> None:
    file = tmp_path / "inputs.json"
    file.write_text('[{"id": "a", "type": "promptString"}, {"id": "b", "type": "pickString", "options": []}]')
    read = read_config_files(file)
    assert [definition.id for definition in read.inputs] == ["a"]
    assert [problem.subject for problem in read.problems] == ["input 'b'"]


# --- snippets


@pytest.mark.parametrize(
    "snippet",
    [
        {"mcpServers": {"fs": {"command": "npx", "args": ["-y"]}}},
        {"servers": {"fs": {"command": "npx", "args": ["-y"]}}},
        {"fs": {"command": "npx", "args": ["-y"]}},
        {"name": "fs", "command": "npx", "args": ["-y"]},
        {"name": "fs", "type": "stdio", "server_parameters": {"command": "npx", "args": ["-y"]}},
    ],
)
def test_a_snippet_is_read_in_every_shape_that_people_paste(snippet: Any) -> None:
    files = read_snippet(snippet)
    assert (files.problems, files.warnings) == ((), ())
    [raw] = files.servers
    assert raw == {"name": "fs", "type": "stdio", "server_parameters": {"command": "npx", "args": ["-y"]}}


def test_a_snippet_may_refer_to_inputs_that_are_defined_elsewhere() -> None:
    snippet = {"mcpServers": {"fs": {"command": "npx", "env": {"KEY": "${input:key}"}}}}
    assert [str(problem) for problem in read_snippet(snippet).problems] == [
        "server 'fs': env.KEY: there is no input 'key'"
    ]
    assert read_snippet(snippet, inputs=["key"], prefix_tools=True).servers[0]["tool_prefix"] == "fs_"


@pytest.mark.parametrize("snippet", [{}, {"fs": "npx"}, {"command": "npx"}, 5, {"name": 5, "command": "npx"}])
def test_what_is_no_snippet_is_a_problem(snippet: Any) -> None:
    assert read_snippet(snippet).problems


def test_one_wrong_entry_costs_that_entry_only(tmp_path: Path) -> None:
    file = tmp_path / "c.json"
    entries = {"good": {"command": "x"}, "typo": {"comand": "x"}, "list": [], "bad": {"command": 1, "args": 2}}
    file.write_text(json.dumps({"mcpServers": entries}))
    files = usable_config_files(file)
    assert [raw["name"] for raw in files.servers] == ["good"]
    assert files.wrong == {"typo", "list", "bad"}
    assert {problem.subject for problem in files.problems} == {"server 'typo'", "server 'list'", "server 'bad'"}
    assert any("comand: unknown key; did you mean 'command'?" in str(problem) for problem in files.problems)
    with pytest.raises(InvalidConfigError):
        load_config_files(file)
    file.write_text("{")
    with pytest.raises(InvalidConfigError, match="invalid JSON"):
        usable_config_files(file)


def test_of_two_with_one_name_the_first_is_used(tmp_path: Path) -> None:
    file = tmp_path / "c.json"
    file.write_text(json.dumps([own("a", "first"), own("a", "second"), own("b")]))
    files = usable_config_files(file)
    assert [raw["name"] for raw in files.servers] == ["a", "b"]
    assert "first" in json.dumps(files.servers)
    assert files.wrong == frozenset()
    assert "defined 2 times" in str(files.problems[0])
