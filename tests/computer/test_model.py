"""Configs, inputs and tool meta: their defaults, their refusals, and what they never show."""

import importlib.util
from datetime import timedelta
from typing import Any

import pytest

from a2c_smcp.computer.config.problems import InvalidConfigError
from a2c_smcp.computer.mcp_clients.model import (
    CommandInput,
    PickStringInput,
    PromptStringInput,
    SSEServerConfig,
    StdioServerConfig,
    StreamableHttpServerConfig,
    ToolMeta,
    parse_input,
    parse_server,
    parse_unrendered,
    wire_input,
    wire_server,
)
from a2c_smcp.smcp import GET_CONFIG_EVENT
from a2c_smcp.wire import parse_response

CANARY = "canary-7f3a"


def stdio(**parameters: Any) -> dict[str, Any]:
    return {"name": "files", "type": "stdio", "server_parameters": {"command": "files-server", **parameters}}


def http(kind: str = "streamable", **parameters: Any) -> dict[str, Any]:
    return {"name": "web", "type": kind, "server_parameters": {"url": "https://127.0.0.1/mcp", **parameters}}


def jwt_bearer(**keys: Any) -> dict[str, Any]:
    return http(oauth={"grant": "jwt_bearer", "client_id": "c", "assertion": "a", **keys})


def exchange(**keys: Any) -> dict[str, Any]:
    return jwt_bearer(**{"assertion": None, "id_token": "i", "token_exchange_url": "http://127.0.0.1:1/token", **keys})


def problems(raw: object) -> list[str]:
    with pytest.raises(InvalidConfigError) as caught:
        parse_server(raw)
    assert caught.value.code == 400
    return [str(problem) for problem in caught.value.problems]


# --- shapes and defaults


def test_a_stdio_config_is_written_in_full() -> None:
    assert wire_server(parse_server(stdio())) == {
        "name": "files",
        "type": "stdio",
        "disabled": False,
        "forbidden_tools": [],
        "tool_meta": {},
        "default_tool_meta": None,
        "vrl": None,
        "server_parameters": {
            "command": "files-server",
            "args": [],
            "env": None,
            "cwd": None,
            "encoding": "utf-8",
            "encoding_error_handler": "strict",
        },
    }


def test_a_streamable_config_has_durations_inside_and_iso_8601_on_the_wire() -> None:
    config = parse_server(http(timeout="PT1M30S"))
    assert isinstance(config, StreamableHttpServerConfig)
    assert config.server_parameters.timeout == timedelta(seconds=90)
    assert wire_server(config)["server_parameters"] == {
        "url": "https://127.0.0.1/mcp",
        "headers": None,
        "timeout": "PT1M30S",
        "sse_read_timeout": "PT5M",
        "terminate_on_close": True,
    }
    assert wire_server(parse_server(http()))["server_parameters"]["timeout"] == "PT30S"


def test_an_sse_config_has_seconds() -> None:
    config = parse_server(http("sse"))
    assert isinstance(config, SSEServerConfig)
    assert wire_server(config)["server_parameters"] == {
        "url": "https://127.0.0.1/mcp",
        "headers": None,
        "timeout": 5.0,
        "sse_read_timeout": 300.0,
    }


@pytest.mark.parametrize("raw", [stdio(), http(), http("sse")])
def test_what_is_written_reads_back_and_passes_the_wire(raw: dict[str, Any]) -> None:
    config = parse_server({**raw, "protocol": "legacy", "tool_meta": {"t": {"alias": "a", "colour": "red"}}})
    written = wire_server(config)
    assert parse_server(written) == config
    assert parse_response(GET_CONFIG_EVENT, {"servers": {config.name: written}})


@pytest.mark.parametrize(("key", "value", "wrong"), [("share", "all", "some"), ("poll", 5.0, 0.5)])
def test_share_and_poll_are_ours_and_left_out_when_unset(key: str, value: Any, wrong: Any) -> None:
    assert key not in wire_server(parse_server(stdio()))
    assert wire_server(parse_server({**stdio(), key: value}))[key] == value
    assert parse_unrendered({**stdio(), key: "${input:x}"})
    assert problems({**stdio(), key: wrong})[0].startswith(f"server 'files': {key}: ")


def test_protocol_is_ours_and_left_out_when_unset() -> None:
    assert "protocol" not in wire_server(parse_server(stdio()))
    assert wire_server(parse_server({**stdio(), "protocol": "2026-07-28"}))["protocol"] == "2026-07-28"
    assert problems({**stdio(), "protocol": "2020-01-01"})[0].startswith("server 'files': protocol: ")


def test_tool_meta_keeps_what_it_does_not_know() -> None:
    meta = ToolMeta.model_validate({"tags": ["a"], "colour": {"r": 1}})
    assert meta.model_dump() == {
        "auto_apply": None,
        "alias": None,
        "tags": ["a"],
        "ret_object_mapper": None,
        "colour": {"r": 1},
    }


def test_texts_become_the_declared_type_as_environment_variables_need() -> None:
    config = parse_server({**http("sse", timeout="7.5"), "disabled": "true"})
    assert isinstance(config, SSEServerConfig)
    assert config.disabled is True
    assert config.server_parameters.timeout == 7.5


def test_numbers_become_text_where_text_is_declared() -> None:
    config = parse_server(stdio(args=["--port", 8080], env={"PORT": 8080}))
    assert isinstance(config, StdioServerConfig)
    assert config.server_parameters.args == ["--port", "8080"]
    assert config.server_parameters.env == {"PORT": "8080"}


def test_configs_are_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        setattr(parse_server(stdio()), "disabled", True)  # noqa: B010


# --- refusals


def test_every_problem_is_named_with_its_place() -> None:
    raw = {**stdio(args="x", colour=1), "disabled": "maybe", "tool_meta": {"t": {"auto_apply": 7}}, "nmae": 1}
    del raw["server_parameters"]["command"]
    found = problems(raw)
    places = [text.split(": ")[:2] for text in found]
    assert sorted(places) == sorted(
        ["server 'files'", field]
        for field in (
            "disabled",
            "nmae",
            "tool_meta.t.auto_apply",
            "server_parameters.args",
            "server_parameters.colour",
            "server_parameters.command",
        )
    )
    assert "server 'files': nmae: unknown key; did you mean 'name'?" in found
    assert "server 'files': server_parameters.command: required, and missing" in found


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({}, "server: type: required, and missing"),
        ({"type": "http"}, "server: type: must be one of 'stdio', 'streamable', 'sse'"),
        ([], "server: must be an object"),
        (None, "server: must be an object"),
        (stdio(encoding="klingon"), "encoding: no such text encoding"),
        (stdio(command=""), "command: "),
        (stdio(args=[["x"]]), "server_parameters.args[0]: "),
        (http(url="ftp://h"), "url: must be an http:// or https:// URL"),
        (http(url="https://"), "url: must be an http:// or https:// URL"),
        (http(url="https://h:x/"), "url: must be an http:// or https:// URL"),
        (http(url="https://[::1/"), "url: must be an http:// or https:// URL"),
        (http(timeout="soon"), "timeout: must be an ISO 8601 duration"),
        (http(timeout=[]), "timeout: must be an ISO 8601 duration"),
        (http(timeout="PT0S"), "timeout: "),
        (http("sse", timeout=-1), "timeout: "),
        (http("sse", timeout=float("inf")), "timeout: "),
        (jwt_bearer(client_id=None), "jwt_bearer needs a client_id"),
        (jwt_bearer(assertion=None), "either an assertion, or an id_token and a token_exchange_url"),
        (jwt_bearer(id_token="i", token_exchange_url="https://h"), "either an assertion, or an id_token"),
        (jwt_bearer(assertion=None, id_token="i"), "id_token and token_exchange_url need each other"),
        (jwt_bearer(assertion=None, exchange_client_id="c"), "id_token and token_exchange_url need each other"),
        (jwt_bearer(grant="client_credentials", client_secret="s"), 'need "grant": "jwt_bearer"'),
        (jwt_bearer(private_key="k"), 'it needs "grant": "client_credentials"'),
        (exchange(exchange_client_secret="s"), "exchange_client_secret needs an exchange_client_id"),
        (exchange(token_exchange_url="http://h.example/token"), "token_exchange_url: must be an https:// URL"),
        (exchange(token_exchange_url="https://[::1"), "token_exchange_url: must be an http:// or https:// URL"),
    ],
)
def test_bad_values_are_refused_in_their_place(raw: object, message: str) -> None:
    assert message in problems(raw)[0]


@pytest.mark.parametrize("raw", [jwt_bearer(), exchange(), exchange(exchange_client_id="e")])
def test_a_jwt_or_an_exchange_for_one_is_a_sign_in_without_a_person(raw: dict[str, Any]) -> None:
    assert parse_server(raw)
    waiting = {key: value and "${input:x}" for key, value in raw["server_parameters"]["oauth"].items()}
    assert parse_unrendered(http(oauth={**waiting, "grant": "jwt_bearer"}))


def test_vrl_without_the_extra_is_refused_naming_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert parse_server({**stdio(), "vrl": ".a = 1"}).vrl == ".a = 1"
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert ".[vrl]" in problems({**stdio(), "vrl": ".a = 1"})[0]


# --- placeholders


def test_an_unrendered_config_may_hold_placeholders_anywhere() -> None:
    raw = {
        **http(timeout="${input:t}", terminate_on_close="${input:c}", headers={"X": "a ${input:h}"}),
        "disabled": "${input:d}",
        "tool_meta": {"t": "${input:meta}"},
        "default_tool_meta": {"auto_apply": "${input:auto}"},
    }
    written = wire_server(parse_unrendered(raw))
    assert written["disabled"] == "${input:d}"
    assert written["tool_meta"] == {"t": "${input:meta}"}
    assert written["default_tool_meta"]["auto_apply"] == "${input:auto}"
    assert written["server_parameters"] == {
        "url": "https://127.0.0.1/mcp",
        "headers": {"X": "a ${input:h}"},
        "timeout": "${input:t}",
        "sse_read_timeout": "PT5M",
        "terminate_on_close": "${input:c}",
    }
    assert wire_server(parse_unrendered({**stdio(), "server_parameters": "${input:all}"}))["server_parameters"] == (
        "${input:all}"
    )
    assert "disabled" in problems(raw)[0]


def test_an_unrendered_config_is_checked_where_it_holds_no_placeholder() -> None:
    with pytest.raises(InvalidConfigError, match="encoding: no such"):
        parse_unrendered(stdio(encoding="klingon", cwd="${input:x}"))


@pytest.mark.parametrize("name", ["two\nlines", "\x1b[31mred", " files", "files\t", "\u2028"])
def test_a_name_stays_on_its_line(name: str) -> None:
    with pytest.raises(InvalidConfigError, match="name: must not have control characters or surrounding blanks"):
        parse_unrendered({**stdio(), "name": name})


# --- inputs


def test_the_three_kinds_of_input() -> None:
    assert parse_input({"id": "k", "type": "promptString", "password": True}) == PromptStringInput(
        id="k", description="", type="promptString", default=None, password=True
    )
    pick = parse_input({"id": "p", "description": "d", "type": "pickString", "options": ["a", "b"], "default": "b"})
    assert isinstance(pick, PickStringInput)
    command = parse_input({"id": "c", "type": "command", "command": "echo hi", "args": {"n": 1}})
    assert isinstance(command, CommandInput)
    assert wire_input(command) == {
        "id": "c",
        "description": "",
        "type": "command",
        "command": "echo hi",
        "args": {"n": "1"},
    }
    assert wire_input(parse_input({"id": "c", "type": "command", "command": "x", "shell": True}))["shell"] is True


def test_the_labels_of_options_are_kept_beside_the_values() -> None:
    options = ["a", {"label": "Bee", "value": "b"}, {"label": "c", "value": "c"}, {"label": " ", "value": "d"}]
    pick = parse_input({"id": "p", "type": "pickString", "options": [*options, {"value": "e"}], "default": "b"})
    assert isinstance(pick, PickStringInput)
    assert (pick.options, pick.labels) == (["a", "b", "c", "d", "e"], {"b": "Bee"})
    assert (pick.problem_with("b"), pick.problem_with("Bee") is None) == (None, False)
    assert (wire_input(pick)["options"], wire_input(pick)["labels"]) == (pick.options, {"b": "Bee"})
    plain = parse_input({"id": "p", "type": "pickString", "options": pick.options, "default": "b"})
    assert "labels" not in wire_input(plain)
    assert plain != pick, "a file in which only a label changed is another definition"


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"id": "p", "type": "pickString", "options": [{"label": 1, "value": "a"}]}, "options[0]: must be a text, or"),
        ({"id": "p", "type": "pickString", "options": [{"label": "a"}]}, "options[0]: must be a text, or an object"),
        ({"id": "p", "type": "pickString", "options": ["a"], "default": "b"}, "input 'p': the default is not one of"),
        ({"id": "p", "type": "pickString", "options": []}, "input 'p': options: "),
        ({"id": "p", "type": "pickString"}, "input 'p': options: required"),
        ({"id": "a}b", "type": "promptString"}, "input 'a}b': id: must not"),
        ({"id": " ", "type": "promptString"}, "input ' ': id: must not"),
        ({"id": "p", "type": "promptString", "pasword": True}, "input 'p': pasword: unknown key"),
        ({"id": "p", "type": "ask"}, "input 'p': type: must be one of 'promptString', 'pickString', 'command'"),
        ("p", "input: must be an object"),
    ],
)
def test_bad_inputs_are_refused_in_their_place(raw: object, message: str) -> None:
    with pytest.raises(InvalidConfigError) as caught:
        parse_input(raw)
    assert message in str(caught.value)


# --- nothing shows a value


@pytest.mark.parametrize(
    "raw",
    [
        stdio(args=[CANARY], env={"K": CANARY}, cwd=CANARY, command=CANARY),
        http(url=f"https://u:{CANARY}@h/?k={CANARY}", headers={"K": CANARY}),
        {**stdio(), "tool_meta": {"t": {"x": CANARY}}, "default_tool_meta": {"alias": CANARY}},
    ],
)
def test_a_repr_shows_no_value(raw: dict[str, Any]) -> None:
    config = parse_server(raw)
    shown = f"{config!r} {config} {config.server_parameters!r} {config.server_parameters} {config.tool_meta!r}"
    assert raw["name"] in shown
    assert CANARY not in shown


def test_the_repr_of_an_input_shows_no_default() -> None:
    definition = parse_input({"id": "k", "type": "promptString", "default": CANARY})
    assert "k" in repr(definition)
    assert CANARY not in f"{definition!r} {definition}"


@pytest.mark.parametrize(
    "raw",
    [
        stdio(encoding=CANARY, encoding_error_handler=CANARY, env=CANARY, args=CANARY),
        {**stdio(), "disabled": CANARY, "protocol": CANARY, "forbidden_tools": CANARY, "tool_meta": CANARY},
        http(url=CANARY, timeout=CANARY, headers=CANARY, terminate_on_close=CANARY),
        http("sse", timeout=CANARY),
        {**stdio(), "server_parameters": CANARY},
        {**stdio(), "default_tool_meta": {"auto_apply": CANARY, "tags": CANARY}},
    ],
)
def test_an_error_shows_no_value(raw: object) -> None:
    with pytest.raises(InvalidConfigError) as caught:
        parse_server(raw)
    error = caught.value
    assert CANARY not in f"{error} {error!r} {error.payload()} {error.__cause__!r} {error.problems}"
    # What a logged traceback would print.
    assert error.__suppress_context__
