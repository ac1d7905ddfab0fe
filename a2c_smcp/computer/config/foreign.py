"""How other programs write down their MCP servers, as entries of `mcpServers` and inputs of ours. Pure.

Zed (`context_servers` in its `settings.json`), Codex (`[mcp_servers.x]` in TOML), Goose (`extensions` in YAML) and
Continue (`mcpServers` as a list, in YAML); and the words that Windsurf, Gemini CLI and others have for our keys.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

__all__ = ["ForeignServers", "foreign_servers", "is_foreign", "not_taken", "with_our_words"]

#: What other programs call a key of a server's entry.
_OUR_WORDS: Final = {
    "serverUrl": "url",  # Windsurf
    "httpUrl": "url",  # Gemini CLI
    "uri": "url",  # Goose
    "cmd": "command",
    "envs": "env",
    "http_headers": "headers",  # Codex
    "disabledTools": "forbidden_tools",
    "disabled_tools": "forbidden_tools",
    "excludeTools": "forbidden_tools",
}
_TYPES: Final = {"streamable_http": "streamable", "streamableHttp": "streamable"}
#: What says nothing about how a server is reached.
_SILENT: Final = frozenset(
    {
        *("source", "settings", "bundled", "description", "display_name", "timeout", "scopes"),
        *("required", "faviconUrl"),
        *("startup_timeout_sec", "startup_timeout_ms", "tool_timeout_sec", "name", "env_keys", "env_vars"),
        *("bearer_token_env_var", "env_http_headers", "enabled", "requestOptions", "connectionTimeout", "apiKey"),
    }
)
_ALLOWED_ONLY: Final = (
    "is not taken over: agents may use every tool of this server; name those that they may not in forbidden_tools"
)
_APPROVED: Final = "is not taken over: a person is asked here, unless auto_apply or a rule says otherwise"
#: Keys of other programs that widen or narrow what a server may do, and that we have no key for.
_NOT_TAKEN: Final = {
    **dict.fromkeys(("available_tools", "enabled_tools", "includeTools"), _ALLOWED_ONLY),
    **dict.fromkeys(("alwaysAllow", "always_allow", "autoApprove", "trust", "default_tools_approval_mode"), _APPROVED),
}
#: Kinds of Goose's extensions that are no MCP servers of their own.
_BUILT_IN: Final = frozenset({"builtin", "platform", "frontend", "inline_python"})
#: `${{ secrets.NAME }}` of Continue.
_SECRET: Final = re.compile(r"\$\{\{\s*(?:secrets|inputs)\.(?:[\w.-]+/)*([A-Za-z0-9_-]+)\s*\}\}")
#: `$NAME` and `${NAME}` in a header of Goose.
_HEADER_VARIABLE: Final = re.compile(r"\$(?:\{\s*([A-Za-z_]\w*)\s*\}|([A-Za-z_]\w*))")


@dataclass(slots=True)
class ForeignServers:
    """The servers of a file, each as an entry of `mcpServers`; and the inputs that they refer to."""

    servers: dict[str, Any] = field(default_factory=dict, repr=False)
    inputs: list[dict[str, Any]] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    """Why an entry is no server for us, by its name."""


def is_foreign(data: Any) -> bool:
    """Whether a file has servers in a shape of another program, which we read and do not write."""
    return _reader(data) is not None


def foreign_servers(data: Any) -> ForeignServers | None:
    """The servers of a file of another program; `None` for every other file."""
    read = _reader(data)
    if read is None:
        return None
    found = ForeignServers()
    read(data, found)
    asked = {name: None for raw in found.servers.values() for name in _inputs_in(raw)}
    found.inputs = [
        {"id": name, "type": "promptString", "description": f"The secret {name}", "password": True} for name in asked
    ]
    return found


def with_our_words(raw: dict[str, Any]) -> dict[str, Any]:
    """An entry with our names for the keys that other programs call otherwise."""
    entry = {_OUR_WORDS.get(key, key): value for key, value in raw.items()}
    if "httpUrl" in raw:
        entry.setdefault("type", "streamable")
    if raw.get("enabled") is False:
        entry["disabled"] = True
    if isinstance(entry.get("type"), str):
        entry["type"] = _TYPES.get(entry["type"], entry["type"])
    return {key: value for key, value in entry.items() if key != "enabled"}


def not_taken(raw: Mapping[str, Any]) -> dict[str, str]:
    """Why keys of an entry that say what a server may do mean nothing here, by key. An empty text for one that says
    nothing.
    """
    found = {key: why if raw[key] else "" for key, why in _NOT_TAKEN.items() if key in raw}
    match raw.get("tools"):
        case Mapping():
            found["tools"] = _APPROVED
        case list() as names:
            found["tools"] = "" if "*" in names else _ALLOWED_ONLY
    return found


def _reader(data: Any) -> Callable[[Any, ForeignServers], None] | None:
    if not isinstance(data, Mapping):
        return None
    if isinstance(data.get("context_servers"), Mapping):
        return _zed
    if isinstance(data.get("mcp_servers"), Mapping):
        return _codex
    if isinstance(data.get("extensions"), Mapping) and any(map(_is_extension, data["extensions"].values())):
        return _goose
    servers = data.get("mcpServers")
    return _continue if isinstance(servers, list) and servers else None


def _is_extension(raw: object) -> bool:
    return isinstance(raw, Mapping) and isinstance(raw.get("type"), str)


def _zed(data: Any, found: ForeignServers) -> None:
    for name, raw in data["context_servers"].items():
        if not isinstance(raw, Mapping):
            found.servers[str(name)] = raw
        elif isinstance(command := raw.get("command"), Mapping):  # as Zed wrote it before
            inner = {**command, "command": command.get("path")}
            found.servers[str(name)] = _entry({**inner, **{k: v for k, v in raw.items() if k != "command"}}, {"path"})
        elif raw.keys() & {"command", "url"}:
            found.servers[str(name)] = _entry(raw)
        else:
            found.left_out[str(name)] = "it is an extension of Zed, which starts it itself"


def _codex(data: Any, found: ForeignServers) -> None:
    for name, raw in data["mcp_servers"].items():
        if not isinstance(raw, Mapping):
            found.servers[str(name)] = raw
            continue
        entry = _entry(raw)
        headers = {name: _variable(of) for name, of in _object(raw.get("env_http_headers")).items()}
        if isinstance(token := raw.get("bearer_token_env_var"), str):
            headers["Authorization"] = f"Bearer {_variable(token)}"
        if headers:
            entry["headers"] = {**_object(entry.get("headers")), **headers}
        passed = {each: _variable(each) for each in _texts(raw.get("env_vars"))}
        if passed:
            entry["env"] = {**passed, **_object(entry.get("env"))}
        found.servers[str(name)] = entry


def _goose(data: Any, found: ForeignServers) -> None:
    for name, raw in data["extensions"].items():
        if not isinstance(raw, Mapping):
            found.servers[str(name)] = raw
        elif str(raw.get("type")) in _BUILT_IN:
            found.left_out[str(name)] = "it is a part of Goose"
        else:
            found.servers[str(name)] = _goose_entry(raw)


def _goose_entry(raw: Mapping[str, Any]) -> dict[str, Any]:
    entry = _entry(raw)
    kept = {key: f"${{input:{key}}}" for key in _texts(raw.get("env_keys"))}  # in Goose's own keyring
    variables = {**kept, **_object(entry.get("env"))}
    if "url" not in entry:
        return {**entry, "env": variables} if variables else entry
    # A server that is reached by a URL gets them in its headers.
    headers = {name: _with_variables(value, variables) for name, value in _object(entry.get("headers")).items()}
    return {**{key: value for key, value in entry.items() if key not in ("env", "socket")}, "headers": headers}


def _continue(data: Any, found: ForeignServers) -> None:
    for position, raw in enumerate(data["mcpServers"], 1):
        if not isinstance(raw, Mapping):
            found.servers[f"number {position}"] = raw
            continue
        if "uses" in raw:
            found.left_out[str(raw["uses"])] = "it is a block of Continue's hub, which only Continue gets"
            continue
        entry = _entry(raw)
        headers = {**_object(_object(raw.get("requestOptions")).get("headers")), **_object(entry.get("headers"))}
        if isinstance(key := raw.get("apiKey"), str):
            headers["Authorization"] = f"Bearer {key}"
        if headers:
            entry["headers"] = headers
        found.servers[str(raw.get("name") or f"number {position}")] = _with_inputs(entry)


def _entry(raw: Mapping[str, Any], without: Iterable[str] = ()) -> dict[str, Any]:
    entry = with_our_words({key: value for key, value in raw.items() if value is not None})
    return {key: value for key, value in entry.items() if key not in _SILENT and key not in without}


def _variable(name: object) -> str:
    return f"${{env:{name}}}"


def _with_variables(value: Any, variables: Mapping[str, Any]) -> Any:
    """A header with the values of those variables that it names."""
    if not isinstance(value, str):
        return value
    return _HEADER_VARIABLE.sub(lambda found: str(variables.get(found[1] or found[2], found[0])), value)


def _with_inputs(value: Any) -> Any:
    """The value with `${input:X}` for each `${{ secrets.X }}`."""
    match value:
        case str():
            return _SECRET.sub(r"${input:\1}", value)
        case Mapping():
            return {key: _with_inputs(inner) for key, inner in value.items()}
        case list():
            return [_with_inputs(inner) for inner in value]
    return value


def _inputs_in(value: Any) -> list[str]:
    match value:
        case str():
            return re.findall(r"\$\{input:([A-Za-z0-9_-]+)\}", value)
        case Mapping():
            return [name for inner in value.values() for name in _inputs_in(inner)]
        case list():
            return [name for inner in value for name in _inputs_in(inner)]
    return []


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _texts(value: Any) -> list[str]:
    """The names in a list of texts, or of objects with a `name`."""
    items = value if isinstance(value, list) else []
    named = [item.get("name") if isinstance(item, Mapping) else item for item in items]
    return [name for name in named if isinstance(name, str)]
