"""The commands: one function each, one table of them. The table is also the help, the completion and the suggestions.

A command prints what it has to say, or raises `SMCPError`, which the loop prints. Its docstring is its help.
"""

import difflib
import json
import shutil
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeAlias

from mcp_types import TextContent, TextResourceContents

from a2c_smcp import PROTOCOL_VERSION, __version__
from a2c_smcp.computer.cli.output import printable, quoted, table
from a2c_smcp.computer.cli.parse import options, split
from a2c_smcp.computer.cli.session import CLISession, status_fields
from a2c_smcp.computer.config_files import load_config_files, read_config_files, read_snippet
from a2c_smcp.computer.events import ServerStatus
from a2c_smcp.computer.mcp_clients.masking import MASK, input_view
from a2c_smcp.computer.mcp_clients.model import CommandInput, MCPServerInput, PromptStringInput, parse_input
from a2c_smcp.computer.problems import InvalidConfigError
from a2c_smcp.errors import (
    BadRequestError,
    InputNotFoundError,
    InvalidDPEURIError,
    NotFoundError,
    NotInRoomError,
    SMCPError,
)
from a2c_smcp.results import ERROR_CODE_MARKER, to_wire
from a2c_smcp.smcp import CallToolRet
from a2c_smcp.utils.saving import save
from a2c_smcp.utils.values import parameters, read_values, signature, text_value, texts

__all__ = ["COMMANDS", "Command", "Quit", "completions", "find", "is_kept", "run"]

Action: TypeAlias = Callable[[CLISession, list[str]], Awaitable[None]]
Completes: TypeAlias = Callable[[CLISession, Sequence[str]], Iterable[str]]


class Quit(Exception):  # noqa: N818 - not an error
    """The person wants to go."""


@dataclass(frozen=True, slots=True)
class Command:
    name: str
    usage: str
    """What follows the name."""
    run: Action
    completes: Completes
    """What may come after the words that stand there, for completion."""
    secret: bool
    """Whether what follows may be one: such a line is never kept."""

    @property
    def help(self) -> str:
        return " ".join((self.run.__doc__ or "").split())


#: By name, in the order of the help.
COMMANDS: Final[dict[str, Command]] = {}


def _nothing(session: CLISession, words: Sequence[str]) -> Iterable[str]:
    return ()


def _first(names: Callable[[CLISession], Iterable[str]]) -> Completes:
    """Names that may stand in the first place only."""
    return lambda session, words: () if words else names(session)


def _command(
    name: str, usage: str = "", completes: Completes = _nothing, *, secret: bool = False
) -> Callable[[Action], Action]:
    def register(function: Action) -> Action:
        COMMANDS[name] = Command(name, usage, function, completes, secret)
        return function

    return register


# --- the table at work


async def run(session: CLISession, line: str) -> None:
    """Carry out one line; raises `SMCPError` for what fails, and `Quit`."""
    words = split(line)
    if words:
        command, rest = find(words)
        await command.run(session, rest)


def find(words: Sequence[str]) -> tuple[Command, list[str]]:
    """The command that a line starts with, and the words after it; `BadRequestError` suggests the nearest."""
    for length in (3, 2, 1):
        if (command := COMMANDS.get(" ".join(words[:length]))) is not None:
            return command, list(words[length:])
    raise BadRequestError(_suggestion(words))


def _suggestion(words: Sequence[str]) -> str:
    group = [name.split(" ", 1)[1] for name in COMMANDS if name.startswith(f"{words[0]} ")]
    if group and len(words) == 1:
        return f"{words[0]!r} is followed by one of: {', '.join(group)}"
    for length in (3, 2, 1):
        typed = " ".join(words[:length])
        known = [name for name in COMMANDS if len(name.split()) == length]
        if near := difflib.get_close_matches(typed, known, n=1):
            return f"there is no command {typed[:100]!r}; did you mean {near[0]!r}?"
    return f"there is no command {words[0][:100]!r}; `help` lists them"


def completions(session: CLISession, line: str) -> tuple[list[str], str]:
    """What may come next in a line up to the cursor, and the part of it that is already there."""
    *before, word = line.split(" ") if line else [""]
    before = [part for part in before if part]
    names = [name.split() for name in COMMANDS]
    found = {name[len(before)] for name in names if len(name) > len(before) and name[: len(before)] == before}
    length = next((n for n in (3, 2, 1) if " ".join(before[:n]) in COMMANDS), None)
    if length is not None:
        found.update(COMMANDS[" ".join(before[:length])].completes(session, before[length:]))
    return sorted(item for item in found if item.startswith(word)), word


def is_kept(line: str) -> bool:
    """Whether a line may be remembered. What is no command may be a secret with a typo before it."""
    words = line.split()
    try:
        command, rest = find(words) if words else (None, [])
    except BadRequestError:
        return False
    return command is not None and not command.secret and not any(word.startswith("--api-key") for word in rest)


def _servers(session: CLISession) -> Iterable[str]:
    return [status.server for status in session.computer.statuses]


def _calls(session: CLISession, words: Sequence[str]) -> Iterable[str]:
    """A tool, and then those of its parameters that are not there yet."""
    plain: list[str] = []
    rest = iter(words)
    for word in rest:
        if not word.startswith("--"):
            plain.append(word)
        elif "=" not in word:
            next(rest, None)  # the option's value
    if not plain:
        return session.computer.tool_servers
    name, *given = plain
    there = {word.partition("=")[0] for word in given}
    return [f"{parameter}=" for parameter in parameters(_schema(session, name)) if parameter not in there]


def _inputs(session: CLISession) -> Iterable[str]:
    return session.computer.inputs.definitions


def _arguments(words: Sequence[str], *names: str) -> list[str]:
    """Exactly these arguments."""
    if len(words) != len(names):
        raise BadRequestError(f"expected {' '.join(names) or 'nothing'} here, not {len(words)} words")
    return list(words)


def _number(text: str, name: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise BadRequestError(f"--{name} needs a number") from None


def _page(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return table(headers, rows, shutil.get_terminal_size().columns)


# --- the office


@_command("connect", "[--url URL] [--office OFFICE] [--name NAME] [--api-key KEY]")
async def connect(session: CLISession, words: list[str]) -> None:
    """Connect to a server, and join an office. What is left out stays as it was: the URL, the key, the name, and the
    office unless it was left with `leave`."""
    plain, given = options(words, ("url", "office", "name", "api-key"))
    _arguments(plain)
    link = replace(
        session.link, url=given.get("url", session.link.url), api_key=given.get("api-key", session.link.api_key)
    )
    await session.connect(link, given.get("name", session.computer.name), given.get("office", session.office))


@_command("disconnect")
async def disconnect(session: CLISession, words: list[str]) -> None:
    """Leave the server; the MCP servers go on running."""
    _arguments(words)
    if not await session.disconnect():
        raise NotInRoomError("not connected to a server")


@_command("join", "OFFICE")
async def join(session: CLISession, words: list[str]) -> None:
    """Join an office of the server that this computer is connected to."""
    await session.join(*_arguments(words, "OFFICE"))


@_command("leave")
async def leave(session: CLISession, words: list[str]) -> None:
    """Leave the office, and stay connected."""
    _arguments(words)
    await session.leave()


# --- servers


@_command("servers list")
async def servers_list(session: CLISession, words: list[str]) -> None:
    """Every MCP server and its state."""
    _arguments(words)
    _show_servers(session)


def _show_servers(session: CLISession) -> None:
    statuses = session.computer.statuses
    rows = [(status.server, status.state.value, str(status.restarts), _why(status)) for status in statuses]
    session.output.event(
        "server_status",
        _page(("server", "state", "restarts", "why"), rows),
        servers=[status_fields(status) for status in statuses],
        all=True,
    )


def _why(status: ServerStatus) -> str:
    """What there is to say of a server besides its state."""
    return "; ".join(filter(None, (status.reason, f"ignored: {status.ignored}" if status.ignored else None)))


@_command("servers start", "NAME", _first(_servers))
async def servers_start(session: CLISession, words: list[str]) -> None:
    """Start a server."""
    await session.computer.start_server(*_arguments(words, "NAME"))
    _show_servers(session)


@_command("servers stop", "NAME", _first(_servers))
async def servers_stop(session: CLISession, words: list[str]) -> None:
    """Stop a server until it is started."""
    await session.computer.stop_server(*_arguments(words, "NAME"))
    _show_servers(session)


@_command("servers restart", "NAME", _first(_servers))
async def servers_restart(session: CLISession, words: list[str]) -> None:
    """Start a server anew, with its config and its inputs as they are now."""
    await session.computer.restart_server(*_arguments(words, "NAME"))
    _show_servers(session)


@_command("servers add", "JSON | @FILE | KEY=VALUE...", secret=True)
async def servers_add(session: CLISession, words: list[str]) -> None:
    """Add servers, or change those of the same names: a config of ours, or the `mcpServers` JSON of any README."""
    store = session.computer.inputs
    written = read_values(words).read(texts("name", "command", "url"))
    snippet = read_snippet(written, inputs=store.definitions, prefix_tools=session.files.prefix_tools)
    if snippet.problems:
        raise InvalidConfigError(snippet.problems)
    for warning in snippet.warnings:
        session.output.text(f"! {printable(str(warning))}")
    for definition in snippet.inputs:
        store.put(definition)
    refused: list[SMCPError] = []
    for raw in snippet.servers:
        try:
            await session.computer.add_or_update_server(raw)
        except SMCPError as error:
            refused.append(error)
    for other in refused[1:]:
        session.show_error(other)
    if refused:
        raise refused[0]
    _show_servers(session)


@_command("servers remove", "NAME", _first(_servers))
async def servers_remove(session: CLISession, words: list[str]) -> None:
    """Stop a server and forget it."""
    await session.computer.remove_server(*_arguments(words, "NAME"))
    _show_servers(session)


@_command("servers logs", "NAME [--lines N]", _first(_servers))
async def servers_logs(session: CLISession, words: list[str]) -> None:
    """The last lines that a server wrote to its stderr."""
    plain, given = options(words, ("lines",))
    (name,) = _arguments(plain, "NAME")
    lines = session.computer.server_logs(name)
    if "lines" in given:
        lines = lines[max(0, len(lines) - int(_number(given["lines"], "lines"))) :]
    session.output.event("server_logs", quoted("\n".join(lines)) if lines else "  (none)", server=name, lines=lines)


# --- tools


@_command("tools list")
async def tools_list(session: CLISession, words: list[str]) -> None:
    """The tools that can be called now: of which server, and with which parameters (`?`: may be left out)."""
    _arguments(words)
    servers = session.computer.tool_servers
    rows = [
        (tool["name"], servers[tool["name"]], signature(tool["params_schema"]), tool["description"].partition("\n")[0])
        for tool in session.computer.get_available_tools()
    ]
    session.show_tools(_page(("tool", "server", "parameters", "description"), rows))


@_command("tools call", "[--timeout SECONDS] [--save FILE] TOOL [JSON | @FILE | KEY=VALUE...]", _calls)
async def tools_call(session: CLISession, words: list[str]) -> None:
    """Call a tool, and show its result, or save the image in it. Ctrl-C cancels it."""
    plain, given = options(words, ("timeout", "save"))
    if not plain:
        raise BadRequestError("expected a TOOL here")
    name, *rest = plain
    timeout = _number(given["timeout"], "timeout") if "timeout" in given else None
    params = read_values(rest).read(_schema(session, name))
    req_id = uuid.uuid4().hex
    with session.confirmations.own(req_id):
        result = await session.computer.execute_tool(req_id, name, params, timeout)
    wire = to_wire(result)
    saved, unsaved = _save(wire, given.get("save"))
    shown = [item.text if isinstance(item, TextContent) else f"[{item.type}]" for item in result.content]
    shown += [f"saved in {path}: {what}" for path, what in saved]
    session.output.event(
        "tool_call_result",
        f"{'✗' if result.is_error else '✓'} {printable(name)}\n{quoted(chr(10).join(shown))}",
        req_id=req_id,
        tool=name,
        ok=not result.is_error,
        error_code=(result.meta or {}).get(ERROR_CODE_MARKER),
        result=wire,
        saved=[str(path) for path, _ in saved],
    )
    if unsaved is not None:
        raise unsaved


def _save(result: CallToolRet, file: str | None) -> tuple[list[tuple[Path, str]], BadRequestError | None]:
    """What was saved, or why it could not be: the result is shown in any case."""
    if file is None or result["isError"]:
        return [], None
    try:
        return save(result["content"], file), None
    except BadRequestError as error:
        return [], error


def _schema(session: CLISession, name: str) -> dict[str, Any] | None:
    tools = session.computer.get_available_tools()
    return next((tool["params_schema"] for tool in tools if tool["name"] == name), None)


_CURE: Final = (
    "Give all tools of one of them other names with tool_prefix in its server's config (--prefix-tools does it for "
    "every server), or a single one with tool_meta.TOOL.alias."
)


@_command("tools conflicts")
async def tools_conflicts(session: CLISession, words: list[str]) -> None:
    """Tool names that two servers claim, and what to do about it."""
    _arguments(words)
    conflicts = [(name, clash.servers) for clash in session.computer.tool_conflicts for name in clash.tool_names]
    session.output.event(
        "tool_conflicts",
        _page(("tool", "servers"), [(name, ", ".join(servers)) for name, servers in conflicts])
        + (f"\n  {_CURE}" if conflicts else ""),
        conflicts=[{"tool": name, "servers": servers} for name, servers in conflicts],
    )


# --- inputs


@_command("inputs load", "FILE")
async def inputs_load(session: CLISession, words: list[str]) -> None:
    """Define the inputs that a file holds; those that are defined already are defined anew."""
    (name,) = _arguments(words, "FILE")
    for definition in load_config_files(name.removeprefix("@")).inputs:
        session.computer.inputs.put(definition)
    _show_inputs(session)


@_command("inputs list")
async def inputs_list(session: CLISession, words: list[str]) -> None:
    """Every input, and whether it has a value."""
    _arguments(words)
    _show_inputs(session)


def _show_inputs(session: CLISession) -> None:
    store = session.computer.inputs
    rows = [
        (input_id, definition.type, "yes" if input_id in store.values else "no", definition.description)
        for input_id, definition in store.definitions.items()
    ]
    session.output.event(
        "inputs_loaded",
        _page(("input", "type", "has a value", "description"), rows),
        inputs=[
            {**input_view(definition), "has_value": input_id in store.values}
            for input_id, definition in store.definitions.items()
        ],
    )


@_command("inputs add", "JSON | @FILE | KEY=VALUE...", secret=True)
async def inputs_add(session: CLISession, words: list[str]) -> None:
    """Define an input."""
    session.computer.inputs.add(parse_input(read_values(words).read(texts("id", "description", "default", "command"))))
    _show_inputs(session)


@_command("inputs remove", "ID", _first(_inputs))
async def inputs_remove(session: CLISession, words: list[str]) -> None:
    """Forget an input and its value."""
    session.computer.inputs.remove(*_arguments(words, "ID"))
    _show_inputs(session)


@_command("inputs value set", "ID [TEXT | JSON | @FILE]", _first(_inputs), secret=True)
async def inputs_value_set(session: CLISession, words: list[str]) -> None:
    """Give an input a value; without one it is asked for. A password is typed hidden, and never here."""
    if not words or len(words) > 2:
        raise BadRequestError("expected an ID and a value here; a value with blanks needs quotes")
    store = session.computer.inputs
    definition = store.definition(words[0])
    if len(words) == 1:
        value = await session.ask_input(definition)
    elif _is_password(definition) and not words[1].startswith("@"):
        raise BadRequestError("a password is typed hidden: leave the value out, and it is asked for")
    else:
        value = text_value(words[1])
    store.set_value(words[0], value)
    _show_values(session, words[0])


@_command("inputs value get", "ID", _first(_inputs))
async def inputs_value_get(session: CLISession, words: list[str]) -> None:
    """The value that an input has got; secrets are masked."""
    (input_id,) = _arguments(words, "ID")
    session.computer.inputs.definition(input_id)
    if input_id not in session.computer.inputs.values:
        raise InputNotFoundError(input_id, "it has no value yet")
    _show_values(session, input_id)


@_command("inputs value clear", "[ID]", _first(_inputs))
async def inputs_value_clear(session: CLISession, words: list[str]) -> None:
    """Forget the value of an input, or of all of them; it is asked for when next needed."""
    if words:
        session.computer.inputs.clear_value(*_arguments(words, "ID"))
    else:
        session.computer.inputs.clear_values()
    _show_values(session)


@_command("inputs value list")
async def inputs_value_list(session: CLISession, words: list[str]) -> None:
    """The values that inputs have got; secrets are masked."""
    _arguments(words)
    _show_values(session)


def _show_values(session: CLISession, only: str | None = None) -> None:
    store = session.computer.inputs
    shown = {
        input_id: MASK if _is_secret(store.definitions[input_id]) else value
        for input_id, value in store.values.items()
        if only in (None, input_id)
    }
    rows = [(input_id, value if isinstance(value, str) else _json(value)) for input_id, value in shown.items()]
    session.output.event("input_values", _page(("input", "value"), rows), values=shown)


def _is_password(definition: MCPServerInput) -> bool:
    return isinstance(definition, PromptStringInput) and bool(definition.password)


def _is_secret(definition: MCPServerInput) -> bool:
    """What a command prints is mostly a token that a password store gave away."""
    return _is_password(definition) or isinstance(definition, CommandInput)


# --- windows


def _windows(session: CLISession) -> Iterable[str]:
    return session.windows


@_command("desktop list", "[--size N]")
async def desktop_list(session: CLISession, words: list[str]) -> None:
    """The windows as an agent would see them, in that order."""
    plain, given = options(words, ("size",))
    _arguments(plain)
    size = int(_number(given["size"], "size")) if "size" in given else None
    desktops = await session.computer.get_desktop(size)
    session.windows = [desktop.partition("\n\n")[0] for desktop in desktops]
    session.output.event(
        "desktop_updated", _page(("window",), [(uri,) for uri in session.windows]), windows=session.windows
    )


@_command("desktop show", "WINDOW_URI", _first(_windows))
async def desktop_show(session: CLISession, words: list[str]) -> None:
    """One window with its content."""
    (uri,) = _arguments(words, "WINDOW_URI")
    desktops = await session.computer.get_desktop(window=uri)
    if not desktops:
        raise NotFoundError(f"no window is called {uri!r}")
    session.output.event("window", quoted(desktops[0]), uri=uri, desktop=desktops[0])


# --- documents


def _documents(session: CLISession) -> Iterable[str]:
    return session.documents


@_command("finder list", "[--type TYPE] [--offset N] [--limit N] [KEYWORD...]")
async def finder_list(session: CLISession, words: list[str]) -> None:
    """The documents as an agent would find them: those that any of the keywords matches, or all."""
    keywords, given = options(words, ("type", "offset", "limit"))
    documents, total = await session.computer.get_finder(
        keywords,
        given.get("type"),
        int(_number(given.get("offset", "0"), "offset")),
        int(_number(given.get("limit", "20"), "limit")),
    )
    session.documents = [document["uri"] for document in documents]
    rows = [(document["uri"], document["file_type"], document["title"]) for document in documents]
    session.output.event(
        "finder_updated",
        f"{_page(('document', 'type', 'title'), rows)}\n  {len(documents)} of {total}",
        documents=documents,
        total_count=total,
    )


@_command("finder show", "DPE_URI", _first(_documents))
async def finder_show(session: CLISession, words: list[str]) -> None:
    """What a document, a page or an element holds."""
    (uri,) = _arguments(words, "DPE_URI")
    if not uri.startswith("dpe://"):
        raise InvalidDPEURIError(uri, "not a dpe:// URI")
    read = await session.computer.read_resource(uri)
    texts = [item.text if isinstance(item, TextResourceContents) else "[binary]" for item in read.contents]
    session.output.event(
        "document",
        quoted("\n".join(texts)),
        uri=uri,
        contents=[item.model_dump(mode="json", by_alias=True, exclude_none=True) for item in read.contents],
    )


# --- this computer


@_command("history")
async def history(session: CLISession, words: list[str]) -> None:
    """The last tool calls that reached a server."""
    _arguments(words)
    calls = session.computer.history
    rows = [
        (call["timestamp"][:19], call["server"], call["tool"], "✓" if call["success"] else f"✗ {call['error']}")
        for call in calls
    ]
    session.output.event("history", _page(("at (UTC)", "server", "tool", ""), rows), calls=calls)


@_command("config show")
async def config_show(session: CLISession, words: list[str]) -> None:
    """The configuration as an agent may see it: placeholders in place, secrets masked."""
    _arguments(words)
    config = session.computer.get_config()
    session.output.event("config", quoted(json.dumps(config, indent=2, ensure_ascii=False)), config=config)


@_command("config validate", "[FILE...]")
async def config_validate(session: CLISession, words: list[str]) -> None:
    """Say everything that is wrong with config files: these, or those that this run was started with."""
    files = read_config_files(*words) if words else session.files.read()
    _show_check(session, files.problems, files.warnings)


@_command("config reload")
async def config_reload(session: CLISession, words: list[str]) -> None:
    """Take over what the config files say now; files with a problem change nothing."""
    _arguments(words)
    files = session.files.read()
    refused = {} if files.problems else await session.files.take_over(files)
    problems = [f"server {name!r} is left as it is: {error}" for name, error in refused.items()]
    _show_check(session, [*files.problems, *problems], files.warnings)


def _show_check(session: CLISession, problems: Sequence[object], warnings: Sequence[object]) -> None:
    found = [*(("error", str(problem)) for problem in problems), *(("warning", str(warning)) for warning in warnings)]
    session.output.event(
        "config_checked",
        _page(("", ""), found) if found else "✓ nothing is wrong",
        ok=not problems,
        problems=[str(problem) for problem in problems],
        warnings=[str(warning) for warning in warnings],
    )


@_command("status")
async def status(session: CLISession, words: list[str]) -> None:
    """Who and where this computer is, and how its servers do."""
    _arguments(words)
    states = Counter(server.state.value for server in session.computer.statuses)
    office = session.membership.office_id if session.membership else None
    fields: dict[str, Any] = {
        "name": session.computer.name,
        "url": session.connected_to,
        "office": office,
        "joined": session.joined,
        "servers": dict(states),
        "tools": len(session.computer.get_available_tools()),
        "version": __version__,
        "protocol": PROTOCOL_VERSION,
    }
    rows = [(key, value if isinstance(value, str) else _json(value)) for key, value in fields.items()]
    session.output.event("status", _page(("", ""), rows), **fields)


@_command("help", "[COMMAND]", _first(lambda _: COMMANDS))
async def help_(session: CLISession, words: list[str]) -> None:
    """What there is, or what a command does."""
    name = " ".join(words)
    found = [command for command in COMMANDS.values() if f"{command.name} ".startswith(f"{name} " if name else "")]
    if not found:
        raise BadRequestError(_suggestion(words))
    session.output.event(
        "help",
        _page(("command", ""), [(f"{command.name} {command.usage}".rstrip(), command.help) for command in found]),
        commands=[{"name": command.name, "usage": command.usage, "help": command.help} for command in found],
    )


@_command("quit")
async def quit_(session: CLISession, words: list[str]) -> None:
    """Stop everything and go. Ctrl-D does the same, and so does Ctrl-C on an empty line."""
    raise Quit


@_command("exit")
async def exit_(session: CLISession, words: list[str]) -> None:
    """The same as `quit`."""
    raise Quit


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
