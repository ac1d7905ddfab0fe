"""All commands in one table, which is also the help, the completion and the suggestions; and the commands about the
computer itself.

A command prints what it has to say, or raises `SMCPError`, which the loop prints. Its docstring is its help.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

from a2c_smcp import PROTOCOL_VERSION, __version__
from a2c_smcp.computer.cli.command_table import Command, CommandGroup, arguments, as_json, page
from a2c_smcp.computer.cli.console_commands import CONSOLE_COMMANDS
from a2c_smcp.computer.cli.input_commands import INPUT_COMMANDS
from a2c_smcp.computer.cli.office_commands import OFFICE_COMMANDS
from a2c_smcp.computer.cli.output import quoted
from a2c_smcp.computer.cli.parse import quote, split
from a2c_smcp.computer.cli.resource_commands import RESOURCE_COMMANDS
from a2c_smcp.computer.cli.server_commands import SERVER_COMMANDS
from a2c_smcp.computer.cli.session import CLISession
from a2c_smcp.computer.cli.tool_commands import TOOL_COMMANDS
from a2c_smcp.computer.config.files import read_config_files
from a2c_smcp.errors import BadRequestError
from a2c_smcp.terminal.suggestions import did_you_mean
from a2c_smcp.utils.values import file_path

__all__ = ["COMMANDS", "Command", "Quit", "completions", "find", "is_kept", "run"]

#: By name, in the order of the help; what follows in this module comes last.
COMMANDS: Final = CommandGroup(
    {**OFFICE_COMMANDS, **SERVER_COMMANDS, **TOOL_COMMANDS, **INPUT_COMMANDS, **RESOURCE_COMMANDS, **CONSOLE_COMMANDS}
)


class Quit(Exception):  # noqa: N818 - not an error
    """The person wants to go."""


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
        if meant := did_you_mean(typed, known):
            return f"there is no command {typed[:100]!r}{meant}"
    return f"there is no command {words[0][:100]!r}; `help` lists them"


def completions(session: CLISession, line: str) -> tuple[list[str], str]:
    """What may come next in a line up to the cursor, and the part of it that is already there."""
    start, _, word = line.rpartition(" ")
    try:
        before = split(start)
    except BadRequestError:  # a quotation or JSON that is still being typed
        return [], word
    found = {*_next_words(before)}
    length = next((n for n in (3, 2, 1) if " ".join(before[:n]) in COMMANDS), None)
    if length is not None:
        found.update(COMMANDS[" ".join(before[:length])].completes(session, before[length:]))
    return sorted(quote(item) for item in found if item.startswith(word) or quote(item).startswith(word)), word


def _next_words(before: Sequence[str]) -> Iterator[str]:
    """What comes after these words in the names of commands."""
    for name in map(str.split, COMMANDS):
        if len(name) > len(before) and name[: len(before)] == list(before):
            yield name[len(before)]


def is_kept(line: str) -> bool:
    """Whether a line may be remembered. What is no command may be a secret with a typo before it."""
    try:
        words = split(line)
    except BadRequestError:  # kept, so that it can be corrected
        words = line.split()
    try:
        command, rest = find(words) if words else (None, [])
    except BadRequestError:
        return False
    return command is not None and not command.secret and not any("--api-key" in word for word in rest)


# --- this computer


@COMMANDS.command("history")
async def history(session: CLISession, words: list[str]) -> None:
    """The last tool calls that reached a server."""
    arguments(words)
    calls = session.computer.history
    rows = [
        (call["timestamp"][:19], call["server"], call["tool"], "✓" if call["success"] else f"✗ {call['error']}")
        for call in calls
    ]
    session.output.event("history", page(("at (UTC)", "server", "tool", ""), rows), calls=calls)


@COMMANDS.command("config show")
async def config_show(session: CLISession, words: list[str]) -> None:
    """The configuration as an agent may see it: placeholders in place, secrets masked."""
    arguments(words)
    config = session.computer.get_config()
    session.output.event("config", quoted(json.dumps(config, indent=2, ensure_ascii=False)), config=config)


@COMMANDS.command("config validate", "[FILE...]")
async def config_validate(session: CLISession, words: list[str]) -> None:
    """Say everything that is wrong with config files: these, or those that this run was started with."""
    files = read_config_files(*map(file_path, words)) if words else session.files.read()
    _show_check(session, files.problems, files.warnings)


@COMMANDS.command("config reload")
async def config_reload(session: CLISession, words: list[str]) -> None:
    """Take over what the config files say now; entries with a problem stay as they were."""
    arguments(words)
    files = session.files.read()
    refused = {} if files.unusable else await session.files.take_over(files)
    problems = [f"server {name!r} {outcome}" for name, outcome in refused.items()]
    _show_check(session, [*files.problems, *problems], files.warnings)


def _show_check(session: CLISession, problems: Sequence[object], warnings: Sequence[object]) -> None:
    found = [*(f"error: {problem}" for problem in problems), *(f"warning: {warning}" for warning in warnings)]
    session.output.event(
        "config_checked",
        quoted("\n".join(found)) if found else "✓ nothing is wrong",
        ok=not problems,
        problems=[str(problem) for problem in problems],
        warnings=[str(warning) for warning in warnings],
    )


@COMMANDS.command("status")
async def status(session: CLISession, words: list[str]) -> None:
    """Who and where this computer is, and how its servers do."""
    arguments(words)
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
    rows = [(key, value if isinstance(value, str) else as_json(value)) for key, value in fields.items()]
    session.output.event("status", page(("", ""), rows), **fields)


@COMMANDS.command("help", "[COMMAND]", lambda _, words: _next_words(words))
async def help_(session: CLISession, words: list[str]) -> None:
    """What there is, or what a command does."""
    name = " ".join(words)
    found = [command for command in COMMANDS.values() if f"{command.name} ".startswith(f"{name} " if name else "")]
    if not found:
        raise BadRequestError(_suggestion(words))
    session.output.event(
        "help",
        page(("command", ""), [(f"{command.name} {command.usage}".rstrip(), command.help) for command in found]),
        commands=[{"name": command.name, "usage": command.usage, "help": command.help} for command in found],
    )


@COMMANDS.command("quit")
async def quit_(session: CLISession, words: list[str]) -> None:
    """Stop everything and go. Ctrl-D does the same, and so does Ctrl-C on an empty line."""
    raise Quit


@COMMANDS.command("exit")
async def exit_(session: CLISession, words: list[str]) -> None:
    """The same as `quit`."""
    raise Quit
