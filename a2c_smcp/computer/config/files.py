"""Reads and checks config files: our own shape, and the `mcpServers` and VS Code files that people already have.

It resolves no input and starts nothing. Its results are in our own shape, with placeholders in place.
"""

import json
import re
import shlex
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from a2c_smcp.computer.config.env_files import find_env_file, parse_env_file
from a2c_smcp.computer.config.foreign import foreign_servers, is_foreign, not_taken, with_our_words
from a2c_smcp.computer.config.languages import ConfigTextError, read_document
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
from a2c_smcp.computer.rules.rule import Rule, parse_rules
from a2c_smcp.computer.vrl.syntax import check_written_vrl
from a2c_smcp.terminal.suggestions import did_you_mean, near_names

__all__ = [
    "FOLDER_KEYS",
    "SCHEMA_KEY",
    "ConfigFiles",
    "is_flat",
    "load_config_files",
    "read_config_files",
    "read_config_text",
    "read_config_texts",
    "read_snippet",
    "shape_of",
    "usable_config_files",
    "with_tool_prefix",
    "without_schema",
]

#: The key that names a file's JSON Schema to an editor. It means nothing to us.
SCHEMA_KEY: Final = "$schema"
#: The keys of a file that name folders of the computer.
FOLDER_KEYS: Final = ("skills", "uploads")


@dataclass(frozen=True, slots=True)
class ConfigFiles:
    """What one or several config files say together, and what is wrong with them."""

    servers: tuple[dict[str, Any], ...] = field(default=(), repr=False)
    """The configs as written, in order, in our own shape. They may hold secrets in clear text."""
    inputs: tuple[MCPServerInput, ...] = ()
    rules: tuple[Rule, ...] = ()
    """The rules of all files, in order."""
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    wrong: frozenset[str] = frozenset()
    """The names of servers whose entries cannot be used."""
    skills: Path | None = None
    """The folder of skills that agents may read."""
    uploads: Path | None = None
    """The folder into which agents may put files."""

    @property
    def unusable(self) -> tuple[Problem, ...]:
        """The problems of whole files. Every other problem makes one entry unusable."""
        return tuple(problem for problem in self.problems if not problem.subject)


def load_config_files(*paths: str | Path, prefix_tools: bool = False) -> ConfigFiles:
    """Read config files: our own shape, `mcpServers`, or `.vscode/mcp.json`. Give `servers` and `inputs` of the result
    to `Computer(mcp_servers=…, inputs=…)`.

    Raises `InvalidConfigError` with everything that is wrong in any of the files. With `prefix_tools`, a server without
    a `tool_prefix` gets one: its name and `_`.
    """
    files = read_config_files(*paths, prefix_tools=prefix_tools)
    if files.problems:
        raise InvalidConfigError(files.problems)
    return files


def usable_config_files(*paths: str | Path, prefix_tools: bool = False) -> ConfigFiles:
    """Like `load_config_files`, but wrong entries are left out; `problems` names them.

    Raises `InvalidConfigError` for a file that cannot be read.
    """
    files = read_config_files(*paths, prefix_tools=prefix_tools)
    if files.unusable:
        raise InvalidConfigError(files.problems)
    return files


def read_config_files(*paths: str | Path, inputs: Iterable[str] = (), prefix_tools: bool = False) -> ConfigFiles:
    """Like `load_config_files`, but raises nothing: `problems` says what is wrong.

    The files may refer to each other's inputs, and to `inputs`, the ids of inputs that are defined elsewhere.
    """
    return _together([_read(str(path)) for path in paths], inputs, prefix_tools)


def read_config_texts(
    texts: Iterable[tuple[str, str]], *, inputs: Iterable[str] = (), prefix_tools: bool = False
) -> ConfigFiles:
    """Like `read_config_files`, for pairs of a file's name and its text."""
    return _together([_read_text(text, file) for file, text in texts], inputs, prefix_tools)


def read_config_text(text: str, file: str = "") -> ConfigFiles:
    """What one file says by itself. It may refer to inputs of other files."""
    reading = _read_text(text, file)
    return _together([reading], reading.referenced, prefix_tools=False)


def read_snippet(data: object, *, inputs: Iterable[str] = (), prefix_tools: bool = False) -> ConfigFiles:
    """Like `read_config_files`, for JSON that a person pasted: a whole file, or a named entry of `mcpServers`.

    Names of files in it are relative to the working directory.
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
        rules=tuple(rule for reading in readings for rule in reading.rules),
        problems=(
            *(problem for reading in readings for problem in reading.problems),
            *_twice((f"server {raw['name']!r}", file) for raw, file in servers),
            *_twice((f"input {definition.id!r}", file) for definition, file in inputs),
            *(problem for reading in readings for problem in reading.undefined(known)),
        ),
        warnings=tuple(warning for reading in readings for warning in reading.warnings),
        wrong=frozenset(name for reading in readings for name in reading.wrong) - first_servers.keys(),
        skills=next((each.folders["skills"] for each in readings if "skills" in each.folders), None),
        uploads=next((each.folders["uploads"] for each in readings if "uploads" in each.folders), None),
    )


def with_tool_prefix(raw: dict[str, Any]) -> dict[str, Any]:
    """The config of a server; if it has no `tool_prefix`, with its name and `_` as the prefix."""
    return raw if raw.get("tool_prefix") is not None else {**raw, "tool_prefix": f"{raw['name']}_"}


# --- one file


class _ConfigFile:
    """One file that is being read. Collects all problems instead of stopping at the first one."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.servers: list[dict[str, Any]] = []
        self.inputs: list[MCPServerInput] = []
        self.rules: tuple[Rule, ...] = ()
        self.problems: list[Problem] = []
        self.warnings: list[Problem] = []
        self.wrong: set[str] = set()
        #: The ids of all inputs, also of wrong ones: a server that refers to a wrong input is not wrong itself.
        self.input_ids: set[str] = set()
        self.folders: dict[str, Path] = {}
        """The folders that it names, by their keys."""
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
        """Take a config, and return whether it is right.

        With `flat` the file has no `server_parameters`, so problems do not name that key.
        """
        before = len(self.problems)
        raw = without_schema(raw)
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

    def add_rules(self, raw: object) -> None:
        """Take the rules of this file. A mistake makes the whole file unusable: without a rule, too much might run."""
        self.rules, problems = parse_rules(raw, file=self.file)
        self.problems += problems

    def add_input(self, raw: object, position: int) -> None:
        if isinstance(raw, dict):
            self.input_ids.add(str(raw.get("id")))
        with self._collecting(_subject("input", raw, "id", position)):
            self.inputs.append(parse_input(raw))

    def add_folder(self, key: str, name: object) -> None:
        """Take the name of a folder. It is relative to the folder of the file."""
        path = Path(self.file).absolute().parent / Path(name).expanduser() if isinstance(name, str) and name else None
        if path is None:
            self.problem("must be the name of a folder", key)
        elif not path.is_dir():
            self.problem("there is no such folder", key)
        else:
            self.folders[key] = path

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
        data = read_document(text, file, repeated)
    except ConfigTextError as error:
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


def without_schema(data: Any) -> Any:
    """What a file says, without the name of its JSON Schema."""
    if not isinstance(data, dict) or SCHEMA_KEY not in data:
        return data
    return {key: value for key, value in data.items() if key != SCHEMA_KEY}


def shape_of(data: Any) -> str:
    """The shape of what a file says, which has no `$schema` any more; one of

    - `mcpServers`, `servers`: an object with that key; `servers` also for an object that has only `inputs` or `rules`
    - `names`: an object of servers by their names
    - `server`: one server
    - `list`, `inputs`: a list of servers, or of inputs
    - `foreign`: another program's own shape, which is read and not written
    - `empty`: `{}`
    - `""`: none of these
    """
    if isinstance(data, list):
        return "inputs" if data and all(map(_is_input, data)) else "list"
    if not isinstance(data, dict):
        return ""
    if is_foreign(data):
        return "foreign"
    if "mcpServers" in data:
        return "mcpServers"
    if data.keys() & {"servers", "inputs", "rules"}:
        return "servers"
    if data.keys() & {"name", "type", "server_parameters"}:
        return "server"
    return "empty" if not data else "names" if all(map(is_flat, data.values())) else ""


def is_flat(raw: object) -> bool:
    """Whether a server's entry is written as other programs do, without `server_parameters`."""
    return (
        isinstance(raw, dict)
        and "server_parameters" not in raw
        and bool(raw.keys() & {"command", "url", "serverUrl", "httpUrl"})
    )


def _read_document(data: Any, reading: _ConfigFile) -> None:
    data = without_schema(data)
    match shape_of(data):
        case "inputs":
            _read_inputs(data, False, reading)
        case "list":
            for position, raw in enumerate(data, 1):
                reading.add_server(raw, position)
        case ("mcpServers" | "servers") as key:
            _read_collection(data, key, reading)
        case "foreign":
            _read_foreign(data, reading)
        case "server" if is_flat(data) and isinstance(name := data.get("name"), str):
            _read_flat(name, {key: value for key, value in data.items() if key != "name"}, reading)
        case "server":
            reading.add_server(data)
        case "names":
            _read_collection({"mcpServers": data}, "mcpServers", reading)
        case _ if isinstance(data, dict):
            keys = ("servers", "inputs", "rules", "mcpServers")
            meant = next(filter(None, (did_you_mean(str(key), keys) for key in data)), "")
            reading.problem(f"holds neither a server nor any of the keys {', '.join(keys)}{meant}")
        case _:
            reading.problem("must be a JSON object or a list")


def _read_foreign(data: Any, reading: _ConfigFile) -> None:
    found = foreign_servers(data)
    assert found is not None, "its shape says so"
    for name, why in found.left_out.items():
        reading.warn(f"is left out: {why}", "", f"server {name!r}")
    for name, raw in found.servers.items():
        _read_named(name, raw, True, reading)
    if _has_rules(data):
        reading.add_rules(data["rules"])
    _read_inputs(found.inputs, True, reading)


def _has_rules(data: Mapping[str, Any]) -> bool:
    """Whether `rules` are ours. Continue has a list of that name, too: texts for its model."""
    rules = data.get("rules")
    return isinstance(rules, list) and any(isinstance(each, dict) and "effect" in each for each in rules)


def _is_input(raw: object) -> bool:
    return isinstance(raw, dict) and "id" in raw and "name" not in raw


def _read_collection(data: dict[str, Any], key: str, reading: _ConfigFile) -> None:
    servers = data.get(key, [])
    foreign = key == "mcpServers" or (isinstance(servers, dict) and any(map(is_flat, servers.values())))
    reading.unknown(data, {key, "inputs", "rules", *FOLDER_KEYS}, refuse=not foreign)
    for folder_key in FOLDER_KEYS:
        if data.get(folder_key) is not None:
            reading.add_folder(folder_key, data[folder_key])
    if "rules" in data:
        reading.add_rules(data["rules"])
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
    reading.wrong.add(name)  # in the end, the names of usable servers are taken out
    if not isinstance(raw, dict):
        reading.problem("must be an object", "", subject)
    elif foreign and "server_parameters" not in raw:
        _read_flat(name, raw, reading)
    elif raw.get("name", name) != name:
        reading.problem(f"must be {name!r}, as the entry is called", "name", subject)
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
#: `${workspaceFolder}`, `${userHome}` and the like mean something only to the program that wrote the file.
_FOREIGN_VARIABLE: Final = re.compile(r"\$\{(?!input:|env:)[A-Za-z][^}]*\}")


def _read_flat(name: str, raw: dict[str, Any], reading: _ConfigFile) -> None:
    """Bring a flat entry into our shape: the keys of its transport go into `server_parameters`."""
    subject = f"server {name!r}"
    ignored = not_taken(raw)
    for key, why in ignored.items():
        if why:
            reading.warn(why, key, subject)
    raw = {key: value for key, value in with_our_words(raw).items() if key not in ignored}
    before = len(reading.problems)
    if not raw.keys() & {"command", "url", "type"}:
        raw = _without_slips(raw, subject, reading)
    kind = raw.get("type")
    if kind is not None and kind not in (*_PARAMETERS, *_TYPES):
        meant = did_you_mean(str(kind), (*_PARAMETERS, *_TYPES))
        reading.problem(f"must be one of 'stdio', 'streamable', 'sse'{meant}", "type", subject)
        kind = None  # the rest is checked all the same
    kind = _TYPES.get(str(kind), kind) or ("stdio" if "command" in raw else "streamable" if "url" in raw else None)
    if kind is None:
        if len(reading.problems) == before:
            reading.problem("needs a command or a url", "", subject)
        return
    parameters = _PARAMETERS[str(kind)]
    known = {"type", *_OWN_KEYS, *parameters, *(["envFile"] if kind == "stdio" else ())}
    of_others = {"envFile", *(key for keys in _PARAMETERS.values() for key in keys)} - known
    for key in sorted(raw.keys() & of_others):
        reading.warn(f"means nothing for a server of the type {kind!r}, and is ignored", key, subject)
    reading.unknown(raw, known | of_others, subject)
    if (advice := _one_text(raw.get("command"))) is not None:
        reading.warn(advice, "command", subject)
    own = {key: value for key, value in raw.items() if key in _OWN_KEYS}
    server_parameters = {key: value for key, value in raw.items() if key in parameters}
    if kind == "stdio" and raw.get("envFile") is not None:
        _add_variables(server_parameters, raw["envFile"], subject, reading)
    config = {"name": name, "type": kind, **own, "server_parameters": server_parameters}
    is_right = reading.add_server(config, flat=True)
    if len(reading.problems) > before:
        reading.servers = [server for server in reading.servers if server["name"] != name]
    elif is_right:
        for variable in sorted(set(_FOREIGN_VARIABLE.findall(json.dumps(server_parameters)))):
            reading.warn(f"{variable} has no meaning here and is left as it is", "", subject)


def _add_variables(parameters: dict[str, Any], env_file: object, subject: str, reading: _ConfigFile) -> None:
    """Add the variables of a file to the server's `env`. The values in `env` win."""
    try:
        if not isinstance(env_file, str):
            raise ValueError("must be a text")
        variables = parse_env_file(find_env_file(env_file, reading.file).read_text("utf-8-sig"))
    except OSError as error:
        # Often such a file is not in the repository. The server itself says what it lacks.
        reading.warn(f"cannot be read, and is ignored: {error.strerror}", "envFile", subject)
    except UnicodeDecodeError:
        reading.problem("cannot be read: it is not UTF-8 text", "envFile", subject)
    except ValueError as error:
        reading.problem(str(error), "envFile", subject)
    else:
        own = parameters.get("env")
        if own is None or isinstance(own, dict):
            parameters["env"] = {**variables, **(own or {})}


def _without_slips(raw: dict[str, Any], subject: str, reading: _ConfigFile) -> dict[str, Any]:
    """The entry with the key that was meant by a mistyped one, so that the rest of it is checked, too."""
    for key in raw:
        if near := near_names(key, ("command", "url", "serverUrl", "httpUrl")):
            reading.problem(f"unknown key; did you mean {near[0]!r}?", key, subject)
            return with_our_words({near[0] if other == key else other: value for other, value in raw.items()})
    return raw


def _one_text(command: object) -> str | None:
    """What to write for a command that holds its arguments, too. A path may have blanks in it."""
    if not isinstance(command, str) or command.count(" ") == 0 or "/" in command.split()[0] or "\\" in command:
        return None
    try:
        program, *arguments = shlex.split(command)
    except ValueError:
        return None
    args = json.dumps(arguments, ensure_ascii=False)
    return f'is a program with its arguments in one text: write {json.dumps(program)}, and "args": {args}'
