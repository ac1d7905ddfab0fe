"""What `client:get_config` shows: the full shape, placeholders in place, and no secret."""

from typing import Any

import pytest

from a2c_smcp.computer.mcp_clients.masking import config_view, input_view, server_view
from a2c_smcp.computer.mcp_clients.model import parse_input
from a2c_smcp.smcp import GET_CONFIG_EVENT
from a2c_smcp.wire import parse_response


def http(**parameters: Any) -> dict[str, Any]:
    return {"name": "web", "type": "streamable", "server_parameters": {"url": "https://h/", **parameters}}


def test_a_config_is_shown_in_full_with_its_defaults() -> None:
    raw = {
        "name": "files",
        "type": "stdio",
        "server_parameters": {"command": "run", "env": {"A": "x", "B": "${input:b}"}},
    }
    assert server_view(raw) == {
        "name": "files",
        "type": "stdio",
        "disabled": False,
        "forbidden_tools": [],
        "tool_meta": {},
        "default_tool_meta": None,
        "vrl": None,
        "server_parameters": {
            "command": "run",
            "args": [],
            "env": {"A": "***", "B": "${input:b}"},
            "cwd": None,
            "encoding": "utf-8",
            "encoding_error_handler": "strict",
        },
    }


def test_headers_are_masked_unless_a_placeholder_is_in_them() -> None:
    headers = {"Authorization": "Bearer ${input:key}", "X-Env": "${env:TOKEN}", "X-Key": "secret", "X-Empty": ""}
    assert server_view(http(headers=headers))["server_parameters"]["headers"] == {
        "Authorization": "Bearer ${input:key}",
        "X-Env": "${env:TOKEN}",
        "X-Key": "***",
        "X-Empty": "***",
    }


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://h:8/p", "https://h:8/p"),
        ("https://user:pass@h/p?key=1&b=2#f", "https://***@h/p?***#f"),
        ("https://token@h", "https://***@h"),
        ("https://h/p?key=${input:k}", "https://h/p?key=${input:k}"),
        ("https://h/p?key=${input:k}&other=secret", "https://h/p?key=${input:k}&***"),
        ("https://me:${input:p@ss}@h/", "https://***:${input:p@ss}@h/"),
        ("https://${input:host}/${env:P}?a", "https://${input:host}/${env:P}?***"),
        ("${input:url}", "${input:url}"),
        ("${input:url}?key=secret", "${input:url}?***"),
        ("https://[${input:host}/?key=secret", "***"),
    ],
)
def test_userinfo_and_query_of_a_url_are_masked(url: str, shown: str) -> None:
    assert server_view(http(url=url))["server_parameters"]["url"] == shown


def test_placeholders_stay_wherever_they_stand() -> None:
    raw = {**http(timeout="${input:t}", headers="${input:h}"), "disabled": "${input:d}"}
    view = server_view(raw)
    assert view["disabled"] == "${input:d}"
    assert view["server_parameters"]["timeout"] == "${input:t}"
    assert view["server_parameters"]["headers"] == "${input:h}"
    whole = server_view({**http(), "server_parameters": "${input:all}"})
    assert whole["server_parameters"] == "${input:all}"


def test_the_default_of_a_password_is_masked_and_no_other() -> None:
    password = {"id": "p", "type": "promptString", "password": True}
    assert input_view(parse_input({**password, "default": "secret"}))["default"] == "***"
    assert input_view(parse_input(password))["default"] is None
    assert input_view(parse_input({**password, "password": False, "default": "plain"}))["default"] == "plain"
    pick = {"id": "o", "type": "pickString", "options": ["a"], "default": "a"}
    assert input_view(parse_input(pick)) == {**pick, "description": ""}


def test_the_whole_answer_passes_the_wire() -> None:
    inputs = [parse_input({"id": "c", "type": "command", "command": "x", "args": {"a": "b"}})]
    view = config_view([http(), {**http(), "name": "other", "protocol": "legacy"}], inputs)
    assert list(view["servers"]) == ["web", "other"]
    assert parse_response(GET_CONFIG_EVENT, view)["inputs"] == view["inputs"]


def test_the_config_itself_is_left_as_it_was() -> None:
    raw = http(headers={"K": "v"})
    server_view(raw)
    assert raw == http(headers={"K": "v"})


def test_the_secrets_of_oauth_are_masked() -> None:
    keys = {"client_secret": "s", "id_token": "i", "exchange_client_id": "e", "exchange_client_secret": "${input:x}"}
    oauth = {"grant": "jwt_bearer", "client_id": "c", "token_exchange_url": "https://h/", **keys}
    shown = server_view(http(oauth=oauth))["server_parameters"]["oauth"]
    assert {key: shown[key] for key in keys} == {**keys, "client_secret": "***", "id_token": "***"}
    ready = {"grant": "jwt_bearer", "client_id": "c", "assertion": "a"}
    assert server_view(http(oauth=ready))["server_parameters"]["oauth"]["assertion"] == "***"
