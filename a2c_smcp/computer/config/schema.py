"""The JSON Schema of a config file in its three shapes, for editors, made from the models of `mcp_clients/model.py`.

`make schema` writes it to `config.schema.json`, which is in the wheel; `a2c computer schema` prints that file. It is
draft-07, because editors know that one best. With it an editor shows most mistakes while somebody types;
`a2c computer validate` shows all of them.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

from pydantic import BaseModel

from a2c_smcp.computer.config.files import FOLDER_KEYS, SCHEMA_KEY
from a2c_smcp.computer.mcp_clients.model import (
    CommandInput,
    OAuthParameters,
    PickStringInput,
    PromptStringInput,
    SSEParameters,
    SSEServerConfig,
    StdioParameters,
    StdioServerConfig,
    StreamableHttpParameters,
    StreamableHttpServerConfig,
    ToolMeta,
)
from a2c_smcp.computer.rules.conditions import OPERATORS
from a2c_smcp.computer.rules.rule import EFFECTS, RULE_KEYS

__all__ = ["SCHEMA_FILE", "config_schema", "schema_text"]

Schema: TypeAlias = dict[str, Any]

SCHEMA_FILE: Final = Path(__file__).with_name("config.schema.json")

#: What an editor shows beside a key. A key means the same wherever it stands, with the exceptions below.
_DESCRIPTIONS: Final[Mapping[str, str]] = {
    "name": "What the server is called, here and in every message about it.",
    "type": "How the MCP server is reached.",
    "server_parameters": "How it is started, or where it is.",
    "disabled": "If true, the server stays in the file and is not started.",
    "forbidden_tools": "Tools that agents neither see nor call, by their own names or by their aliases.",
    "tool_meta": "Settings of single tools, by the server's own name for the tool.",
    "default_tool_meta": "Settings of every tool of this server; tool_meta wins.",
    "vrl": "A VRL program that runs on every result; its output stands beside the result.",
    "tool_prefix": "Put before the name of every tool that has no alias.",
    "protocol": "Which era of MCP to speak; if it is not set, the computer finds out.",
    "start_timeout": "How many seconds a start may take: 30, or 180 if the command downloads the server first.",
    "questions": "Where questions of its tools are asked: here, at the agent that made the call, or at both places.",
    "share": "What agents may read: all resources and prompts, those that are shown (windows, documents), or none.",
    "poll": "Every how many seconds windows are read, if the server does not say when they change.",
    "detached": "What becomes of its daemons, and of other processes with a session of their own, when it ends.",
    "auto_apply": "If true, agents may call the tool without a person's yes.",
    "alias": "What agents call the tool.",
    "tags": "Words for agents. With the tag dangerous, the person who confirms a call sees a warning.",
    "ret_object_mapper": "Carried to agents, and not used by the computer.",
    "command": "The program, looked up on the PATH.",
    "args": "Its arguments.",
    "env": "Variables of the server's process, added to a few of this computer's. Secrets: ${input:id} or ${env:NAME}.",
    "envFile": "A file of NAME=value lines, added to env; the values in env win.",
    "cwd": "The folder that it is started in.",
    "encoding": "The text encoding of its pipes.",
    "encoding_error_handler": "What to do with bytes that are not valid in that encoding.",
    "url": "Where it is: http:// or https://.",
    "oauth": "How to sign in, if the server wants that. Most servers need nothing here.",
    "client_id": "The id of a client that is registered at the issuer.",
    "client_secret": "Its secret: ${input:id} or ${env:NAME}.",
    "private_key": "Its private key in PEM, for a machine that signs in with a JWT: ${input:id} or ${env:NAME}.",
    "key_algorithm": "How that key signs.",
    "client_metadata_url": "The public https:// address of a Client ID Metadata Document.",
    "scopes": "The scopes to ask for, instead of those that the server names.",
    "issuer": "The issuer that the client is registered at. It gets the secret, and no other one does.",
    "grant": "Whether a person signs in, or the machine itself: with its client_id, or with a JWT (jwt_bearer).",
    "assertion": "For jwt_bearer: a JWT that the issuer takes, such as that of a workload: ${input:id} or ${env:NAME}.",
    "id_token": "For jwt_bearer: the person's ID token at the identity provider: ${input:id} or ${env:NAME}.",
    "token_exchange_url": "The token endpoint of the identity provider, which gives a JWT for the ID token.",
    "exchange_client_id": "The id of the client that is registered at the identity provider.",
    "exchange_client_secret": "Its secret: ${input:id} or ${env:NAME}.",
    "redirect_port": "The port of this computer that the browser comes back to, if it must be a certain one.",
    "headers": "Headers of every request. Secrets: ${input:id} or ${env:NAME}.",
    "timeout": "How long one request may take.",
    "sse_read_timeout": "How long a stream may be silent.",
    "terminate_on_close": "Tell the server when its session ends.",
    "id": "The id in ${input:id}.",
    "description": "What the person who is asked reads.",
    "default": "The value if nobody can be asked. A prompt shows it, and the person may change it.",
    "password": "If true, the value is not shown, not even while it is typed.",
    "options": "The values to choose from.",
    "bundle_id": "What agents of release 0.4 call the server. If it is not set, it is made from the name.",
    "skills": "A folder of skills, which agents may list and read.",
    "uploads": "The folder into which agents may put files. Without it they cannot.",
    "rules": "What may run without a person, and what never runs; the first rule that matches decides.",
    "shell": "Hand the command to a shell instead of splitting it as a shell would.",
}
_OF_A_COMMAND_INPUT: Final = {
    "command": "The command whose output is the value.",
    "args": "Options of the command: --key value for each.",
}
_OF_AN_INPUT: Final = {"type": "Where its value comes from."}

#: Texts, or objects as release 0.4 of the other implementation has them.
_OPTIONS: Final[Schema] = {
    "type": "array",
    "minItems": 1,
    "items": {
        "anyOf": [
            {"type": ["string", "number"]},
            {
                "type": "object",
                "properties": {"label": {"type": "string"}, "value": {"type": "string"}},
                "required": ["value"],
                "additionalProperties": False,
            },
        ]
    },
}
_PLACEHOLDER: Final[Schema] = {"type": "string", "pattern": r"\$\{(input|env):[^}]*\}"}
#: A file may have 8080 where a text is expected.
_TEXT: Final = ["string", "number"]
_URL: Final[Schema] = {"type": "string", "pattern": r"^https?://[^/]|\$\{(input|env):[^}]*\}"}
_CHECKED_TEXT: Final[Mapping[str, Schema]] = {
    "url": _URL,
    "issuer": _URL,
    "client_metadata_url": _URL,
    "token_exchange_url": _URL,
    "id": {"type": "string", "pattern": r"^[^}]*[^}\s][^}]*$"},
}
#: No placeholder may stand for these: they are needed before any input is asked for.
_LITERAL: Final = {"name", "type"}

_KINDS: Final[Mapping[str, tuple[type[BaseModel], type[BaseModel], tuple[str, ...]]]] = {
    "stdio": (StdioServerConfig, StdioParameters, ("stdio",)),
    "streamable": (StreamableHttpServerConfig, StreamableHttpParameters, ("http", "streamable-http", "streamable")),
    "sse": (SSEServerConfig, SSEParameters, ("sse",)),
}
_INPUTS: Final[Mapping[str, type[BaseModel]]] = {
    "promptString": PromptStringInput,
    "pickString": PickStringInput,
    "command": CommandInput,
}


def config_schema() -> Schema:
    """The schema as data."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "A config file of an A2C-SMCP computer",
        "description": "Our own shape, mcpServers as Claude Desktop and Cursor write it, or .vscode/mcp.json.",
        **_if({"type": "array"}, _ref("list"), _if(_has("mcpServers"), _ref("mcpServers"), _object_of_our_own())),
        "definitions": dict(sorted(_definitions())),
    }


def schema_text() -> str:
    """The schema as it is written to the file."""
    return json.dumps(config_schema(), indent=2, ensure_ascii=False) + "\n"


# --- the shapes


def _object_of_our_own() -> Schema:
    # A file is one of VS Code if at least one of its servers has no `server_parameters`.
    flat = {"type": "object", "not": {"additionalProperties": _has("server_parameters")}}
    vs_code = {"required": ["servers"], "properties": {"servers": flat}}
    collection = {"anyOf": [_has("servers"), _has("inputs"), _has("rules")]}
    return _if(vs_code, _ref("vsCode"), _if(collection, _ref("servers"), _ref("server")))


def _definitions() -> Iterable[tuple[str, Schema]]:
    yield "toolMeta", _part(ToolMeta)
    yield "oauth", _part(OAuthParameters)
    for kind, (server, parameters, types) in _KINDS.items():
        yield f"{kind}Parameters", _part(parameters)
        whole = _part(server, {"type": {"const": kind}, "server_parameters": _ref(f"{kind}Parameters")})
        yield f"{kind}Server", whole
        yield f"{kind}Named", {**whole, "required": [key for key in whole["required"] if key != "name"]}
        yield f"{kind}Flat", _flat(whole["properties"], _part(parameters), types)
    for kind, model in _INPUTS.items():
        more = _OF_A_COMMAND_INPUT if kind == "command" else {}
        known = {"type": {"const": kind}, "options": _OPTIONS}
        yield f"{kind}Input", _part(model, known, _OF_AN_INPUT | more, stands_for=False)
    yield "server", _of_type({kind: _ref(f"{kind}Server") for kind in _KINDS})
    yield "named", _of_type({kind: _ref(f"{kind}Named") for kind in _KINDS})
    yield "input", _of_type({kind: _ref(f"{kind}Input") for kind in _INPUTS})
    yield "entry", _if(_has("server_parameters"), _ref("named"), _flat_entry())
    inputs = {"type": ["array", "null"], "items": _ref("input")}
    yield "list", {"anyOf": [{"items": _ref("server")}, {"items": _ref("input"), "minItems": 1}]}
    folders = {key: _described(key, {"type": ["string", "null"]}) for key in FOLDER_KEYS}
    rules = _described("rules", {"type": "array", "items": _ref("rule")})
    extra: Schema = {"inputs": inputs, "rules": rules, **folders}
    yield "servers", _object({"servers": _listed_or_named(), **extra}, extra=False)
    yield "mcpServers", _object({"mcpServers": _named("entry"), **extra}, extra=True)
    yield "vsCode", _object({"servers": _named("entry"), **extra}, extra=True)
    yield "rule", _rule()


def _rule() -> Schema:
    """A rule. Its conditions on arguments are checked when the file is read."""
    names = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}
    kinds: dict[str, Schema] = {
        "effect": {"enum": list(EFFECTS)},
        **dict.fromkeys(("agent", "office", "server", "tool", "reads"), names),
        **{key: {"type": "boolean"} for key in ("read_only", "destructive", "open_world")},
        "args": {"type": "object", "additionalProperties": _conditions()},
        "only_args": {"type": "array", "items": {"type": "string"}},
    }
    return {
        "type": "object",
        "properties": {key: kinds.get(key, {"type": "string"}) for key in RULE_KEYS},
        "required": ["effect"],
        "additionalProperties": False,
    }


def _conditions() -> Schema:
    operators = dict.fromkeys(OPERATORS, True)
    return {"type": "object", "properties": operators, "additionalProperties": False, "minProperties": 1}


def _flat(own: Schema, parameters: Schema, types: tuple[str, ...]) -> Schema:
    """An entry as other programs write it: the keys of the transport stand beside the other keys."""
    properties = {key: value for key, value in own.items() if key not in ("name", "type", "server_parameters")}
    properties |= {"type": _described("type", {"enum": list(types)})} | parameters["properties"]
    if "stdio" in types:
        properties["envFile"] = _described("envFile", {"type": "string"})
    return {"type": "object", "properties": properties, "required": parameters["required"]}


def _flat_entry() -> Schema:
    """Without a type, a command means stdio and a url means streamable HTTP."""
    http = {"anyOf": [_is_type(*_KINDS["streamable"][2]), {"not": {"anyOf": [_has("type"), _has("command")]}}]}
    return _if(_is_type("sse"), _ref("sseFlat"), _if(http, _ref("streamableFlat"), _ref("stdioFlat")))


def _listed_or_named() -> Schema:
    return _if({"type": "array"}, {"items": _ref("server")}, _named("named"))


def _named(entry: str) -> Schema:
    return {"type": "object", "additionalProperties": _ref(entry)}


def _object(properties: Schema, *, extra: bool) -> Schema:
    return {
        "type": "object",
        "properties": {SCHEMA_KEY: {"type": "string"}, **properties},
        "additionalProperties": extra,
    }


# --- the parts, from their models


def _part(
    model: type[BaseModel],
    known: Mapping[str, Schema] | None = None,
    descriptions: Mapping[str, str] | None = None,
    *,
    stands_for: bool = True,
) -> Schema:
    """The schema of a model. `known` has ready schemas for some fields. With `stands_for`, placeholders may stand for
    the others.
    """
    made = model.model_json_schema()
    fields = {}
    for key, schema in made["properties"].items():
        field = (known or {}).get(key) or _CHECKED_TEXT.get(key) or _loosened(schema)
        if stands_for and key not in _LITERAL and not _takes_text(field):
            field = {"anyOf": [field, _PLACEHOLDER]}
        fields[key] = _described(key, {**field, **_default(schema)}, descriptions)
    # Editors want the key allowed where they find it; a server may be a file by itself.
    extra = {SCHEMA_KEY: {"type": "string"}} if "server_parameters" in fields else {}
    return {
        "type": "object",
        "properties": extra | fields,
        "required": made.get("required", []),
        "additionalProperties": made.get("additionalProperties", True),
    }


def _default(schema: Schema) -> Schema:
    return {"default": schema["default"]} if schema.get("default") is not None else {}


def _described(key: str, schema: Schema, more: Mapping[str, str] | None = None) -> Schema:
    return {"description": {**_DESCRIPTIONS, **(more or {})}[key], **schema}


def _loosened(schema: Schema) -> Schema:
    """A field of pydantic's schema. It also allows what our reader accepts: numbers for texts, seconds for
    durations.
    """
    schema = {key: value for key, value in schema.items() if key not in ("title", "default")}
    if "$ref" in schema:
        part = "oauth" if schema["$ref"].endswith("/OAuthParameters") else "toolMeta"
        return {"anyOf": [_ref(part), _PLACEHOLDER]}
    if schema.get("format") == "duration":
        return {"anyOf": [{"type": "string", "pattern": r"^P.|^\d|\$\{"}, {"type": "number", "exclusiveMinimum": 0}]}
    if "anyOf" in schema:
        return {"anyOf": [_loosened(option) for option in schema["anyOf"]]}
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            schema[key] = _loosened(schema[key])
    if schema.get("type") == "string" and "enum" not in schema:
        schema["type"] = _TEXT
    return schema


def _takes_text(schema: Schema) -> bool:
    """Whether any text may stand there, and so a placeholder, too."""
    if "anyOf" in schema:
        return any(_takes_text(option) for option in schema["anyOf"])
    return "enum" not in schema and "const" not in schema and "string" in str(schema.get("type"))


# --- words of the language


def _ref(name: str) -> Schema:
    return {"$ref": f"#/definitions/{name}"}


def _has(key: str) -> Schema:
    return {"required": [key]}


def _is_type(*types: str) -> Schema:
    return {"required": ["type"], "properties": {"type": {"enum": list(types)}}}


def _if(condition: Schema, then: Schema, otherwise: Schema) -> Schema:
    """Only one branch applies, so that an editor shows the mistakes of that one."""
    return {"if": condition, "then": then, "else": otherwise}


def _of_type(choices: Mapping[str, Schema]) -> Schema:
    """An object whose `type` decides what else it has."""
    return {
        "type": "object",
        "required": ["type"],
        "properties": {"type": {"enum": list(choices)}},
        "allOf": [{"if": _is_type(kind), "then": schema} for kind, schema in choices.items()],
    }


if __name__ == "__main__":
    SCHEMA_FILE.write_text(schema_text(), encoding="utf-8")
