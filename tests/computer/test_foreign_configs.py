"""Config files of other programs, as people have them: what is read of them, and what is said."""

from pathlib import Path
from typing import Any

import pytest

from a2c_smcp.computer.config.files import ConfigFiles, read_config_files
from a2c_smcp.computer.config.splice import ConfigSpliceError, add_server

WINDSURF = """{"mcpServers": {
  "remote": {"serverUrl": "https://mcp.example.com/mcp", "headers": {"Authorization": "Bearer ${env:TOKEN}"}},
  "local": {"command": "npx", "args": ["-y", "x"], "disabledTools": ["rm"], "disabled": true}
}}"""
GEMINI = """{"theme": "dark", "mcpServers": {"web": {"httpUrl": "https://a.example/mcp", "timeout": 5000}}}"""
ZED = """// Zed's settings
{
  "theme": "One Dark", "vim_mode": false,
  "context_servers": {
    "new": {"source": "custom", "command": "uvx", "args": ["mcp-server-git"], "env": {"A": "1"}},
    "old": {"command": {"path": "node", "args": ["s.js"], "env": {}}, "settings": {}},
    "remote": {"url": "https://a.example/mcp", "headers": {"X": "1"}, "enabled": false},
    "extension": {"settings": {"key": "value"}},
  },
}
"""
CODEX = """
model = "gpt-5"
approval_policy = "on-request"

[mcp_servers.docs]
command = "npx"
args = ["-y", "@upstash/context7-mcp"]
env_vars = ["LOCAL_TOKEN"]
startup_timeout_sec = 20

[mcp_servers.docs.env]
MODE = "fast"

[mcp_servers.figma]
url = "https://mcp.figma.com/mcp"
bearer_token_env_var = "FIGMA_TOKEN"
http_headers = { "X-Region" = "us-east-1" }
env_http_headers = { "X-Key" = "KEY" }
enabled = false
disabled_tools = ["delete"]

[projects."/home/me"]
trust_level = "trusted"
"""
GOOSE = """
GOOSE_PROVIDER: anthropic
extensions:
  developer:
    bundled: true
    enabled: true
    name: developer
    timeout: 300
    type: builtin
  fetch:
    type: stdio
    name: Fetch
    enabled: true
    cmd: uvx
    args: [mcp-server-fetch]
    envs: {REGION: eu}
    env_keys: [API_KEY]
    timeout: 300
  web:
    type: streamable_http
    name: web
    enabled: false
    uri: https://a.example/mcp
    headers: {X: "1"}
"""
CONTINUE = """
name: My assistant
version: 1.0.0
schema: v1
models:
  - name: GPT
    provider: openai
mcpServers:
  - name: SQLite
    command: npx
    args: ["-y", "mcp-sqlite", "/db"]
    env:
      KEY: ${{ secrets.SQLITE_KEY }}
  - name: Web
    type: streamable-http
    url: https://a.example/mcp
    requestOptions:
      headers:
        Authorization: Bearer ${{ secrets.WEB }}
"""


def read(tmp_path: Path, name: str, text: str) -> ConfigFiles:
    (tmp_path / name).write_text(text)
    files = read_config_files(tmp_path / name)
    assert files.problems == (), files.problems
    return files


def by_name(files: ConfigFiles) -> dict[str, Any]:
    return {raw["name"]: raw for raw in files.servers}


def test_windsurf_and_gemini_have_other_words_for_a_url(tmp_path: Path) -> None:
    files = by_name(read(tmp_path, "mcp_config.json", WINDSURF))
    assert files["remote"]["type"] == "streamable"
    assert files["remote"]["server_parameters"]["url"] == "https://mcp.example.com/mcp"
    assert (files["local"]["forbidden_tools"], files["local"]["disabled"]) == (["rm"], True)
    [web] = read(tmp_path, "settings.json", GEMINI).servers
    assert (web["type"], web["server_parameters"]["url"]) == ("streamable", "https://a.example/mcp")


def test_zeds_settings(tmp_path: Path) -> None:
    files = read(tmp_path, "settings.json", ZED)
    servers = by_name(files)
    assert servers["new"]["server_parameters"] == {"command": "uvx", "args": ["mcp-server-git"], "env": {"A": "1"}}
    assert servers["old"]["server_parameters"] == {"command": "node", "args": ["s.js"], "env": {}}
    assert (servers["remote"]["disabled"], servers["remote"]["server_parameters"]["headers"]) == (True, {"X": "1"})
    assert [str(warning).partition(": ")[2] for warning in files.warnings] == [
        "server 'extension': is left out: it is an extension of Zed, which starts it itself"
    ]


def test_codex(tmp_path: Path) -> None:
    files = read(tmp_path, "config.toml", CODEX)
    servers = by_name(files)
    assert servers["docs"]["server_parameters"]["env"] == {"LOCAL_TOKEN": "${env:LOCAL_TOKEN}", "MODE": "fast"}
    assert servers["figma"]["server_parameters"]["headers"] == {
        "X-Region": "us-east-1",
        "X-Key": "${env:KEY}",
        "Authorization": "Bearer ${env:FIGMA_TOKEN}",
    }
    assert (servers["figma"]["disabled"], servers["figma"]["forbidden_tools"]) == (True, ["delete"])
    assert files.warnings == ()


def test_goose(tmp_path: Path) -> None:
    files = read(tmp_path, "config.yaml", GOOSE)
    servers = by_name(files)
    assert servers["fetch"]["server_parameters"] == {
        "command": "uvx",
        "args": ["mcp-server-fetch"],
        "env": {"API_KEY": "${input:API_KEY}", "REGION": "eu"},
    }
    assert (servers["web"]["type"], servers["web"]["disabled"]) == ("streamable", True)
    assert [(each.id, each.is_password) for each in files.inputs] == [("API_KEY", True)]
    assert [str(warning).partition(": ")[2] for warning in files.warnings] == [
        "server 'developer': is left out: it is a part of Goose"
    ]


def test_continue(tmp_path: Path) -> None:
    files = read(tmp_path, "config.yaml", CONTINUE)
    servers = by_name(files)
    assert servers["SQLite"]["server_parameters"]["env"] == {"KEY": "${input:SQLITE_KEY}"}
    assert servers["Web"]["server_parameters"]["headers"] == {"Authorization": "Bearer ${input:WEB}"}
    assert [each.id for each in files.inputs] == ["SQLITE_KEY", "WEB"]
    assert files.warnings == ()


def said_of(text: str, tmp_path: Path, name: str) -> tuple[list[str], list[str]]:
    (tmp_path / name).write_text(text)
    files = read_config_files(tmp_path / name)
    problems, warnings = (
        [str(each).partition(": ")[2] for each in found] for found in (files.problems, files.warnings)
    )
    return problems, warnings


def test_one_mistake_in_a_goose_file_costs_that_extension_and_not_the_file(tmp_path: Path) -> None:
    text = f"{GOOSE}  untyped: {{cmd: uvx, args: [x]}}\n  wrong: {{type: stdoi, cmd: x}}\n"
    text += "  list: [1]\n  odd: {type: [1], cmd: x}\n"
    problems, _ = said_of(text, tmp_path, "config.yaml")
    assert problems == [
        "server 'wrong': type: must be one of 'stdio', 'streamable', 'sse'; did you mean 'stdio'?",
        "server 'list': must be an object",
        "server 'odd': type: must be one of 'stdio', 'streamable', 'sse'",
    ]
    assert {"fetch", "web", "untyped"} == by_name(read_config_files(tmp_path / "config.yaml")).keys()


def test_the_headers_of_goose_name_its_variables(tmp_path: Path) -> None:
    text = """
extensions:
  web:
    type: streamable_http
    uri: https://a.example/mcp
    envs: {REGION: eu}
    env_keys: [TOKEN]
    socket: null
    headers: {Authorization: Bearer $TOKEN, X: "${REGION}", Y: $OTHER}
"""
    files = read(tmp_path, "config.yaml", text)
    assert files.servers[0]["server_parameters"]["headers"] == {
        "Authorization": "Bearer ${input:TOKEN}",
        "X": "eu",
        "Y": "$OTHER",
    }
    assert [each.id for each in files.inputs] == ["TOKEN"] and files.warnings == ()


def test_blocks_keys_and_secrets_of_an_organization_in_continue(tmp_path: Path) -> None:
    text = """
mcpServers:
  - uses: anthropic/memory-mcp
  - name: Figma
    type: sse
    url: https://a.example/sse
    apiKey: ${{ secrets.KEY }}
    faviconUrl: https://a.example/icon
    requestOptions: {headers: {X: "${{ secrets.org/team/X_KEY }}"}}
"""
    files = read(tmp_path, "config.yaml", text)
    headers = by_name(files)["Figma"]["server_parameters"]["headers"]
    assert headers == {"X": "${input:X_KEY}", "Authorization": "Bearer ${input:KEY}"}
    assert [str(warning).partition(": ")[2] for warning in files.warnings] == [
        "server 'anthropic/memory-mcp': is left out: it is a block of Continue's hub, which only Continue gets"
    ]


@pytest.mark.parametrize(
    ("name", "text", "key", "said"),
    [
        ("c.toml", '[mcp_servers.a]\ncommand = "x"\nenabled_tools = ["read"]', "enabled_tools", "every tool"),
        ("c.yaml", "extensions: {a: {type: stdio, cmd: x, available_tools: [r]}}", "available_tools", "every tool"),
        ("c.json", '{"mcpServers": {"a": {"command": "x", "includeTools": ["r"]}}}', "includeTools", "every tool"),
        ("c.json", '{"mcpServers": {"a": {"command": "x", "tools": ["r"]}}}', "tools", "every tool"),
        ("c.json", '{"mcpServers": {"a": {"command": "x", "autoApprove": ["r"]}}}', "autoApprove", "is asked here"),
        ("c.toml", '[mcp_servers.a]\ncommand = "x"\n[mcp_servers.a.tools.r]\nb = "c"', "tools", "is asked here"),
    ],
)
def test_what_a_host_allows_is_not_taken_over_and_that_is_said(
    name: str, text: str, key: str, said: str, tmp_path: Path
) -> None:
    problems, [warning] = said_of(text, tmp_path, name)
    assert problems == []
    assert warning.startswith(f"server 'a': {key}: is not taken over: ") and said in warning


def test_no_list_of_allowed_tools_needs_no_word(tmp_path: Path) -> None:
    text = '{"mcpServers": {"a": {"command": "x", "tools": ["*"], "alwaysAllow": [], "trust": false}}}'
    assert said_of(text, tmp_path, "a.json") == ([], [])


@pytest.mark.parametrize(
    ("name", "text", "rules"),
    [
        ("a.toml", CODEX, '\n[[rules]]\neffect = "deny"\ntool = "x"\n'),
        ("a.yaml", GOOSE, "\nrules:\n  - {effect: deny, tool: x}\n"),
        ("a.yaml", CONTINUE, "\nrules:\n  - {effect: deny, tool: x}\n"),
    ],
)
def test_rules_of_ours_are_read_in_every_shape(tmp_path: Path, name: str, text: str, rules: str) -> None:
    before = read(tmp_path, name, text)
    files = read(tmp_path, name, text + rules)
    assert [rule.effect for rule in files.rules] == ["deny"] and files.servers == before.servers
    wrong = (tmp_path / name, text + rules.replace("tool", "toll"))
    wrong[0].write_text(wrong[1])
    [problem] = read_config_files(wrong[0]).unusable
    assert "toll" in str(problem)


def test_the_rules_that_continue_has_for_its_model_are_none_of_ours(tmp_path: Path) -> None:
    files = read(tmp_path, "config.yaml", CONTINUE + "\nrules:\n  - Answer in French.\n  - {name: a, rule: Be kind.}\n")
    assert files.rules == ()


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.toml", "[mcp_servers.x\ncommand = 1", "at line 1"),
        ("a.yaml", "extensions: {a: [}", "in line 1"),
        ("a.yaml", "a: &x [1]\nb: *x", "aliases"),
        ("a.yaml", "extensions:\n  a: {type: stdio, cmd: x}\n  a: {type: stdio, cmd: y}", "stands 2 times"),
        ("a.yaml", "a: " + "[" * 5000, ""),
        ("a.yaml", "x: '" + "y" * 1_000_001 + "'", "is not read"),
        ("a.yaml", "a: !!python/object/apply:os.system [ls]", "could not determine a constructor"),
        ("a.toml", "model = 'x'", "holds neither"),
    ],
)
def test_files_that_cannot_be_read_say_why(tmp_path: Path, name: str, text: str, said: str) -> None:
    (tmp_path / name).write_text(text)
    [problem] = read_config_files(tmp_path / name).problems
    assert said in str(problem)


def test_all_mistakes_come_at_once(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(
        """{"mcpServers": {
        "a": {"comand": "run", "args": "x", "env": 7},
        "b": {"type": "htttp", "url": "ftp://x"},
        "c": {"command": "npx -y foo"}
        }}"""
    )
    files = read_config_files(path)
    assert [str(problem).partition(": ")[2] for problem in files.problems] == [
        "server 'a': comand: unknown key; did you mean 'command'?",
        "server 'a': args: Input should be a valid list",
        "server 'a': env: must be an object",
        "server 'b': type: must be one of 'stdio', 'streamable', 'sse'; did you mean 'http'?",
        "server 'b': url: must be an http:// or https:// URL with a host",
    ]
    [warning] = files.warnings
    assert str(warning).endswith(
        'command: is a program with its arguments in one text: write "npx", and "args": ["-y", "foo"]'
    )
    assert [raw["name"] for raw in files.servers] == ["c"]


@pytest.mark.parametrize(
    ("text", "problems", "warnings"),
    [
        (
            '{"mcpservers": {"a": {"command": "x"}}}',
            [
                "holds neither a server nor any of the keys servers, inputs, rules, mcpServers; "
                "did you mean 'mcpServers'?"
            ],
            [],
        ),
        (
            '{"mcpServers": {"a": {"serverURL": "ftp://x"}}}',
            [
                "server 'a': serverURL: unknown key; did you mean 'serverUrl'?",
                "server 'a': url: must be an http:// or https:// URL with a host",
            ],
            [],
        ),
        (
            '{"mcpServers": {"a": {"type": "stdio", "url": "https://a.example/mcp", "headers": {}}}}',
            ["server 'a': command: required, and missing"],
            [
                f"server 'a': {key}: means nothing for a server of the type 'stdio', and is ignored"
                for key in ("headers", "url")
            ],
        ),
    ],
)
def test_what_people_mistype_and_mix_up(text: str, problems: list[str], warnings: list[str], tmp_path: Path) -> None:
    assert said_of(text, tmp_path, "a.json") == (problems, warnings)


def test_files_of_other_programs_are_not_changed() -> None:
    for text, file, said in (
        (ZED, "settings.json", "as another program does"),
        (CODEX, "config.toml", "is not JSON"),
        (GOOSE, "config.yaml", "is not JSON"),
    ):
        with pytest.raises(ConfigSpliceError, match=said):
            add_server(text, "x", '{"command": "run"}', file)
