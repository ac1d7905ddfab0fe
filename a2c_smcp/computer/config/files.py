"""Config files, and snippets of them: our own shape, and the `mcpServers` and VS Code JSON that people already have.

Reads and checks; resolves no input, starts nothing. What comes out is raw: our shape, placeholders in place.
"""

import json
import re
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from a2c_smcp.computer.config.env_files import find_env_file, parse_env_file
from a2c_smcp.computer.config.jsonc import JsoncError, read_jsonc
from a2c_smcp.computer.config.problems import InvalidConfigError, Problem
from a2c_smcp.computer.inputs.render import ConfigRender
from a2c_smcp.computer.mcp_clients.model import (
    BaseServerConfig,
    CommandInput,
    MCPServerInput,
    PickStringInput,
    PromptStringInput,
    SSEParameters,
    StdioParameters,
    StreamableHttpParameters,
    parse_input,
    parse_unrendered,
)
from a2c_smcp.computer.vrl.syntax import check_written_vrl
from a2c_smcp.terminal.suggestions import did_you_mean

__all__ = [
    "SCHEMA_KEY",
    "ConfigFiles",
    "load_config_files",
    "read_config_files",
    "read_config_text",
    "read_config_texts",
    "read_snippet",
    "usable_config_files",
    "with_tool_prefix",
]

#: Names the JSON Schema of a file to an editor, and says nothing to us.
SCHEMA_KEY: Final = "$schema"


@dataclass(frozen=True, slots=True)
class ConfigFiles:
    """What one or several config files say together, and what is wrong with them."""

    servers: tuple[dict[str, Any], ...] = field(default=(), repr=False)
    """Configs as written, in order, in our own shape; a file may hold secrets in clear text."""
    inputs: tuple[MCPServerInput, ...] = ()
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    wrong: frozenset[str] = frozenset()
    """The names of servers that are in the files and cannot be used."""

    @property
    def unusable(self) -> tuple[Problem, ...]:
        """What is wrong with files as a whole; other problems cost their own entries only."""
        return tuple(problem for problem in self.problems if not problem.subject)


def load_config_files(*paths: str | Path, prefix_tools: bool = False) -> ConfigFiles:
    """Read config files: our own shape, `mcpServers`, or `.vscode/mcp.json`. `servers` and `inputs` of the result are
    for `Computer(mcp_servers=…, inputs=…)`.

    Raises `InvalidConfigError` with everything that is wrong in any of the files. `prefix_tools` gives every server
    that has no `tool_prefix` its own name and `_` for one.
    """
    files = read_config_files(*paths, prefix_tools=prefix_tools)
    if files.problems:
        raise InvalidConfigError(files.problems)
    return files


def usable_config_files(*paths: str | Path, prefix_tools: bool = False) -> ConfigFiles:
    """The same, but one wrong entry costs that entry only; `problems` says what was left out.

    Raises `InvalidConfigError` for a file that cannot be read.
    """
    files = read_config_files(*paths, prefix_tools=prefix_tools)
    if files.unusable:
        raise InvalidConfigError(files.problems)
    return files


def read_config_files(*paths: str | Path, inputs: Iterable[str] = (), prefix_tools: bool = False) -> ConfigFiles:
    """Read files and say everything that is wrong with them; they may refer to each other's inputs.

    `inputs` are the ids of those that are defined elsewhere. `prefix_tools` gives every server that has no
    `tool_prefix` its own name and `_` for one.
    """
    return _together([_read(str(path)) for path in paths], inputs, prefix_tools)


def read_config_texts(
    texts: Iterable[tuple[str, str]], *, inputs: Iterable[str] = (), prefix_tools: bool = False
) -> ConfigFiles:
    """The same for files whose texts are known: pairs of a file's name and its text."""
    return _together([_read_text(text, file) for file, text in texts], inputs, prefix_tools)


def read_config_text(text: str, file: str = "") -> ConfigFiles:
    """What one file says by itself. It may refer to inputs that another file defines."""
    reading = _read_text(text, file)
    return _together([reading], reading.referenced, prefix_tools=False)


def read_snippet(data: object, *, inputs: Iterable[str] = (), prefix_tools: bool = False) -> ConfigFiles:
    """The same for what a person pasted: what a file may hold, and a single entry of `mcpServers` with its name.

    The names of files in it start in the working directory.
    """
    reading = _ConfigFile("")
    _read_document(data, reading)
    return _together([reading], inputs, prefix_tools)


def _together(readings: Sequence["_ConfigFile"], defined: Iterable[str], prefix_tools: bool) -> ConfigFiles:
    inputs = [(definition, reading.file) for reading in readings for definition in reading.inputs]
    servers = [(raw, reading.file) for reading in readings for raw in reading.servers]
    known = {*defined, *(input_id for reading in readings for input_id in reading.input_ids)}
    first_servers = {raw["name"]: raw for raw, _ in reversed(servers)}
    first_inputs = {definition.id: definition for definition, _ in reversed(inputs)}
    return ConfigFiles(
        servers=tuple(with_tool_prefix(raw) if prefix_tools else raw for raw in reversed(first_servers.values())),
        inputs=tuple(reversed(first_inputs.values())),
        problems=(
            *(problem for reading in readings for problem in reading.problems),
            *_twice((f"server {raw['name']!r}", file) for raw, file in servers),
            *_twice((f"input {definition.id!r}", file) for definition, file in inputs),
            *(problem for reading in readings for problem in reading.undefined(known)),
        ),
        warnings=tuple(warning for reading in readings for warning in reading.warnings),
        wrong=frozenset(name for reading in readings for name in reading.wrong) - first_servers.keys(),
    )


def with_tool_prefix(raw: dict[str, Any]) -> dict[str, Any]:
    """The config of a server; if it has no `tool_prefix`, with its name and `_` for one."""
    return raw if raw.get("tool_prefix") is not None else {**raw, "tool_prefix": f"{raw['name']}_"}


# --- one file


class _ConfigFile:
    """One file as it is being read; collects instead of stopping at the first problem."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.servers: list[dict[str, Any]] = []
        self.inputs: list[MCPServerInput] = []
        self.problems: list[Problem] = []
        self.warnings: list[Problem] = []
        self.wrong: set[str] = set()
        #: The ids of wrong inputs are here, too: a config that refers to one of them is not wrong for that.
        self.input_ids: set[str] = set()
        self._references: list[tuple[str, bool, str, str]] = []

    def problem(self, message: str, field: str = "", subject: str = "") -> None:
        self.problems.append(Problem(message, field, subject, self.file))

    def warn(self, message: str, field: str = "", subject: str = "") -> None:
        self.warnings.append(Problem(message, field, subject, self.file))

    def unknown(self, keys: Iterable[str], known: Collection[str], subject: str = "", *, refuse: bool = False) -> None:
        for key in keys:
            if key not in known and refuse:
                self.problem(f"unknown key{did_you_mean(key, known)}", key, subject)
            elif key not in known:
                self.warn(f"unknown key, ignored{did_you_mean(key, known)}", key, subject)

    def add_server(self, raw: object, position: int = 1, *, flat: bool = False) -> bool:
        """Take in a config and say whether it is right.

        `flat`: the file has no `server_parameters`, so the places that are named have none either.
        """
        before = len(self.problems)
        raw = _without_schema(raw)
        subject = _subject("server", raw, "name", position)
        with self._collecting(subject, flat):
            template = ConfigRender(raw)
            self._references += [(subject, flat, *reference) for reference in template.inputs.items()]
        with self._collecting(subject, flat):
            config = parse_unrendered(raw)
            check_written_vrl(config)
        if len(self.problems) > before:
            if isinstance(raw, dict):
                self.wrong.add(str(raw.get("name")))
            return False
        assert isinstance(raw, dict)
        self.servers.append({**raw, "name": config.name})
        return True

    def add_input(self, raw: object, position: int) -> None:
        if isinstance(raw, dict):
            self.input_ids.add(str(raw.get("id")))
        with self._collecting(_subject("input", raw, "id", position)):
            self.inputs.append(parse_input(raw))

    @property
    def referenced(self) -> list[str]:
        """The ids of the inputs that its servers refer to."""
        return [input_id for _, _, input_id, _ in self._references]

    def undefined(self, known: Container[str]) -> Iterator[Problem]:
        """References to inputs that no file defines."""
        for subject, flat, input_id, place in self._references:
            if input_id not in known:
                yield Problem(f"there is no input {input_id!r}", _place(place, flat), subject, self.file)

    @contextmanager
    def _collecting(self, subject: str, flat: bool = False) -> Iterator[None]:
        try:
            yield
        except InvalidConfigError as error:
            self.problems += [
                replace(problem, field=_place(problem.field, flat), subject=subject, file=self.file)
                for problem in error.problems
            ]


def _subject(kind: str, raw: object, key: str, position: int) -> str:
    name = raw.get(key) if isinstance(raw, dict) else None
    return f"{kind} {name!r}" if isinstance(name, str) else f"{kind} number {position}"


def _place(field: str, flat: bool) -> str:
    return field.removeprefix("server_parameters.") if flat else field


def _read(file: str) -> _ConfigFile:
    try:
        text = Path(file).read_text(encoding="utf-8-sig")
    except OSError as error:
        return _unreadable(file, str(error.strerror))
    except UnicodeDecodeError:
        return _unreadable(file, "it is not UTF-8 text")
    return _read_text(text, file)


def _unreadable(file: str, why: str) -> _ConfigFile:
    reading = _ConfigFile(file)
    reading.problem(f"cannot be read: {why}")
    return reading


def _read_text(text: str, file: str) -> _ConfigFile:
    reading = _ConfigFile(file)

    def repeated(key: str, count: int) -> None:
        reading.problem(f"the key {key!r} stands {count} times in one object")

    try:
        data = read_jsonc(text, repeated)
    except JsoncError as error:
        reading.problem(str(error))
    else:
        _read_document(data, reading)
    return reading


def _twice(named: Iterable[tuple[str, str]]) -> Iterator[Problem]:
    seen: dict[str, list[str]] = {}
    for subject, file in named:
        seen.setdefault(subject, []).append(file)
    for subject, files in seen.items():
        if len(files) > 1:
            where = "" if len(set(files)) == 1 else f", also in {', '.join(sorted(set(files) - {files[-1]}))}"
            yield Problem(f"defined {len(files)} times{where}", "", subject, files[-1])


# --- shapes


def _without_schema(data: Any) -> Any:
    if not isinstance(data, dict) or SCHEMA_KEY not in data:
        return data
    return {key: value for key, value in data.items() if key != SCHEMA_KEY}


def _read_document(data: Any, reading: _ConfigFile) -> None:
    data = _without_schema(data)
    if isinstance(data, list) and data and all(map(_is_input, data)):
        _read_inputs(data, False, reading)
    elif isinstance(data, list):
        for position, raw in enumerate(data, 1):
            reading.add_server(raw, position)
    elif not isinstance(data, dict):
        reading.problem("must be a JSON object or a list")
    elif "mcpServers" in data:
        _read_collection(data, "mcpServers", reading)
    elif "servers" in data or "inputs" in data:
        _read_collection(data, "servers", reading)
    elif _is_foreign(data) and isinstance(name := data.get("name"), str):
        _read_foreign(name, {key: value for key, value in data.items() if key != "name"}, reading)
    elif data.keys() & {"name", "type", "server_parameters"}:
        reading.add_server(data)
    elif data and all(map(_is_foreign, data.values())):
        _read_collection({"mcpServers": data}, "mcpServers", reading)
    else:
        reading.problem("holds neither a server nor any of the keys servers, inputs, mcpServers")


def _is_input(raw: object) -> bool:
    return isinstance(raw, dict) and "id" in raw and "name" not in raw


def _read_collection(data: dict[str, Any], key: str, reading: _ConfigFile) -> None:
    servers = data.get(key, [])
    foreign = key == "mcpServers" or (isinstance(servers, dict) and any(map(_is_foreign, servers.values())))
    reading.unknown(data, {key, "inputs"}, refuse=not foreign)
    if isinstance(servers, dict):
        for name, raw in servers.items():
            _read_named(name, raw, foreign, reading)
    elif isinstance(servers, list) and not foreign:
        for position, raw in enumerate(servers, 1):
            reading.add_server(raw, position)
    else:
        reading.problem("must be an object" if foreign else "must be an object or a list", key)
    _read_inputs(data.get("inputs"), foreign, reading)


def _read_named(name: str, raw: object, foreign: bool, reading: _ConfigFile) -> None:
    subject = f"server {name!r}"
    reading.wrong.add(name)  # unless it turns out to be right
    if not isinstance(raw, dict):
        reading.problem("must be an object", "", subject)
    elif foreign and "server_parameters" not in raw:
        _read_foreign(name, raw, reading)
    elif raw.get("name", name) != name:
        reading.problem("is not the name that it is listed under", "name", subject)
    else:
        reading.add_server({"name": name, **raw})


def _read_inputs(inputs: object, foreign: bool, reading: _ConfigFile) -> None:
    if inputs is None:
        return
    if not isinstance(inputs, list):
        reading.problem("must be a list", "inputs")
        return
    for position, raw in enumerate(inputs, 1):
        if foreign and isinstance(raw, dict) and (known := _INPUT_KEYS.get(str(raw.get("type")))):
            reading.unknown(raw, known, _subject("input", raw, "id", position))
            raw = {key: value for key, value in raw.items() if key in known}
        reading.add_input(raw, position)


# --- files that other programs write

_TYPES: Final = {"http": "streamable", "streamable-http": "streamable"}
_OWN_KEYS: Final = BaseServerConfig.model_fields.keys() - {"name"}
_PARAMETERS: Final[Mapping[str, Collection[str]]] = {
    "stdio": StdioParameters.model_fields.keys(),
    "streamable": StreamableHttpParameters.model_fields.keys(),
    "sse": SSEParameters.model_fields.keys(),
}
_INPUT_KEYS: Final = {
    "promptString": PromptStringInput.model_fields.keys(),
    "pickString": PickStringInput.model_fields.keys(),
    "command": CommandInput.model_fields.keys(),
}
#: `${workspaceFolder}`, `${userHome}` and the like mean something to the program that wrote the file only.
_FOREIGN_VARIABLE: Final = re.compile(r"\$\{(?!input:|env:)[A-Za-z][^}]*\}")


def _is_foreign(raw: object) -> bool:
    return isinstance(raw, dict) and "server_parameters" not in raw and bool(raw.keys() & {"command", "url"})


def _read_foreign(name: str, raw: dict[str, Any], reading: _ConfigFile) -> None:
    """Bring a flat entry into our shape: what belongs to the transport goes into `server_parameters`."""
    subject = f"server {name!r}"
    kind = raw.get("type") or ("stdio" if "command" in raw else "streamable" if "url" in raw else None)
    if kind is None:
        reading.problem("needs a command or a url", "", subject)
        for key in raw:
            if meant := did_you_mean(key, ("command", "url")):
                reading.problem(f"unknown key{meant}", key, subject)
        return
    kind = _TYPES.get(str(kind), kind)
    parameters = _PARAMETERS.get(str(kind), frozenset())
    if parameters:
        reading.unknown(raw, {"type", *_OWN_KEYS, *parameters, *(["envFile"] if kind == "stdio" else ())}, subject)
    own = {key: value for key, value in raw.items() if key in _OWN_KEYS}
    server_parameters = {key: value for key, value in raw.items() if key in parameters}
    if kind == "stdio" and raw.get("envFile") is not None:
        _add_variables(server_parameters, raw["envFile"], subject, reading)
    if reading.add_server({"name": name, "type": kind, **own, "server_parameters": server_parameters}, flat=True):
        for variable in sorted(set(_FOREIGN_VARIABLE.findall(json.dumps(server_parameters)))):
            reading.warn(f"{variable} has no meaning here and is left as it is", "", subject)


def _add_variables(parameters: dict[str, Any], env_file: object, subject: str, reading: _ConfigFile) -> None:
    """Add the variables of the file to the server's `env`, whose own values win."""
    try:
        if not isinstance(env_file, str):
            raise ValueError("must be a text")
        variables = parse_env_file(find_env_file(env_file, reading.file).read_text("utf-8-sig"))
    except OSError as error:
        # Mostly a file that is not in the repository: the server says itself what it lacks.
        reading.warn(f"cannot be read, and is ignored: {error.strerror}", "envFile", subject)
    except UnicodeDecodeError:
        reading.problem("cannot be read: it is not UTF-8 text", "envFile", subject)
    except ValueError as error:
        reading.problem(str(error), "envFile", subject)
    else:
        own = parameters.get("env")
        if own is None or isinstance(own, dict):
            parameters["env"] = {**variables, **(own or {})}
