"""The JSON Schema of config files: made from the models, and of one mind with the reader."""

import json
import subprocess
import sys
from typing import Any

import pytest
from jsonschema import Draft7Validator

from a2c_smcp.computer.config.files import read_snippet
from a2c_smcp.computer.config.schema import SCHEMA_FILE, config_schema, schema_text

HERE = {"$schema": "./a2c.schema.json"}
STDIO = {"type": "stdio", "server_parameters": {"command": "run"}}
HTTP = {"type": "streamable", "server_parameters": {"url": "https://example.com/mcp", "timeout": "PT10S"}}
SSE = {"type": "sse", "server_parameters": {"url": "http://127.0.0.1:8000/sse", "timeout": 5}}
PROMPT = {"id": "key", "type": "promptString", "description": "d", "password": True}

RIGHT: dict[str, Any] = {
    "a server": {"name": "a", **STDIO},
    "a server with its schema": {**HERE, "name": "a", **STDIO},
    "a list": [{"name": "a", **STDIO}, {"name": "b", **HTTP}, {"name": "c", **SSE}],
    "a list of inputs": [PROMPT],
    "servers in a list": {**HERE, "servers": [{"name": "a", **STDIO}], "inputs": None},
    "servers by name": {**HERE, "servers": {"a": STDIO, "b": HTTP, "c": SSE}, "inputs": [PROMPT]},
    "inputs of all kinds": {
        "inputs": [
            PROMPT,
            {"id": "size", "type": "pickString", "options": ["s", "l"], "default": "s"},
            {"id": "token", "type": "command", "command": "pass show token", "args": {"length": 20}, "shell": False},
        ]
    },
    "mcpServers": {**HERE, "mcpServers": {"a": {"command": "run", "env": {"PORT": 8080}}, "b": {"url": "http://h"}}},
    "mcpServers with a name of another program": {"mcpServers": {"a": {"command": "run", "alwaysAllow": []}}, "x": 1},
    "an entry of ours among them": {"mcpServers": {"a": {"command": "run"}, "b": STDIO}},
    "our keys in a flat entry": {"mcpServers": {"a": {"command": "run", "tool_prefix": "a_", "disabled": True}}},
    "the types of other programs": {
        "mcpServers": {
            "a": {"type": "http", "url": "http://h"},
            "b": {"type": "streamable-http", "url": "http://h"},
            "c": {"type": "sse", "url": "http://h", "timeout": 5},
        }
    },
    "VS Code": {**HERE, "servers": {"a": {"type": "stdio", "command": "run"}}, "inputs": [PROMPT]},
    "a placeholder for a flag": {"servers": [{"name": "a", **STDIO, "disabled": "${env:A_OFF}"}]},
    "a placeholder for a part": {"servers": {"a": {"type": "stdio", "server_parameters": "${env:A}"}}},
    "tool meta": {
        "servers": {"a": {**STDIO, "tool_meta": {"t": {"alias": "u", "tags": ["x"], "own": 1}, "v": "${env:V}"}}}
    },
}
WRONG: dict[str, Any] = {
    "a text": "servers",
    "no type": {"name": "a", "server_parameters": {"command": "run"}},
    "a type that is none": {"name": "a", "type": "pipe", "server_parameters": {"command": "run"}},
    "no name": STDIO,
    "a key that is misspelt": {"name": "a", "type": "stdio", "server_parameters": {"comand": "run"}},
    "an unknown key in a server": {"servers": {"a": {**STDIO, "tool_prefx": "a_"}}},
    "an unknown key beside servers": {"servers": {"a": STDIO}, "input": []},
    "a command in a server of HTTP": {"servers": {"a": {"type": "sse", "server_parameters": {"command": "run"}}}},
    "a URL that is none": {"servers": {"a": {"type": "sse", "server_parameters": {"url": "ftp://h"}}}},
    "a flag that is a text": {"servers": {"a": {**STDIO, "disabled": "maybe"}}},
    "a placeholder for a name": {"servers": {"a": {"type": "${env:T}", "server_parameters": {"command": "run"}}}},
    "an error handler that is none": {
        "servers": [
            {"name": "a", "type": "stdio", "server_parameters": {"command": "r", "encoding_error_handler": "x"}}
        ]
    },
    "an input without options": {"inputs": [{"id": "size", "type": "pickString"}]},
    "an input of no kind": {"inputs": [{"id": "size", "type": "promptNumber"}]},
    "an id that no placeholder names": {"inputs": [{**PROMPT, "id": "a}"}]},
    "an empty entry": {"mcpServers": {"a": {}}},
    "servers that are a text": {"mcpServers": "a"},
    "a time of no length": {"servers": {"a": {"type": "sse", "server_parameters": {"url": "http://h", "timeout": 0}}}},
}


@pytest.fixture(scope="module")
def schema() -> Draft7Validator:
    Draft7Validator.check_schema(config_schema())
    return Draft7Validator(json.loads(SCHEMA_FILE.read_text("utf-8")))


def test_the_file_in_the_package_is_what_the_models_say() -> None:
    assert SCHEMA_FILE.read_text("utf-8") == schema_text(), "type: make schema"


@pytest.mark.parametrize("name", RIGHT)
def test_what_the_reader_takes_is_right(name: str, schema: Draft7Validator) -> None:
    found = read_snippet(RIGHT[name], inputs=["key"])
    assert [*found.problems] == []
    assert not any("$schema" in str(warning) for warning in found.warnings)
    assert [error.message for error in schema.iter_errors(RIGHT[name])] == []


@pytest.mark.parametrize("name", WRONG)
def test_what_the_reader_refuses_is_wrong(name: str, schema: Draft7Validator) -> None:
    assert read_snippet(WRONG[name]).problems
    assert not schema.is_valid(WRONG[name])


def test_an_editor_is_told_the_key_and_not_that_no_shape_fits(schema: Draft7Validator) -> None:
    (error,) = schema.iter_errors({"servers": {"a": {**STDIO, "tool_prefx": "a_"}}})
    assert "tool_prefx" in error.message
    assert list(error.absolute_path) == ["servers", "a"]


def test_the_command_prints_it() -> None:
    command = [sys.executable, "-m", "a2c_smcp.cli", "computer", "schema"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == schema_text()
