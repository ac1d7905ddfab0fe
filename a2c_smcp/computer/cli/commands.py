"""All commands in one table: help, completion and suggestions are made from it. The commands about the computer
itself are here, too.

A command prints its result, or raises `SMCPError`, which the loop prints. Its docstring is its help.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from a2c_smcp import PROTOCOL_VERSION, __version__
from a2c_smcp.computer.cli import (  # noqa: F401 - they put their commands into the table
    input_commands,
    office_commands,
    resource_commands,
    rule_commands,
    server_commands,
    tool_commands,
)
from a2c_smcp.computer.cli.command_table import COMMANDS, Command, as_json, command, page
from a2c_smcp.computer.cli.output import quoted
from a2c_smcp.computer.cli.parse import quote, split
from a2c_smcp.computer.cli.session import CLISession
from a2c_smcp.computer.config.files import read_config_files
from a2c_smcp.errors import BadRequestError
from a2c_smcp.terminal.suggestions import did_you_mean
from a2c_smcp.utils.values import file_path

__all__ = ["COMMANDS", "Command", "Quit", "completions", "find", "is_kept", "run"]


class Quit(Exception):  # noqa: N818 - not an error
    """The person wants to end the program."""


# --- the table at work


async def run(session: CLISession, line: str) -> None:
    """Carry out one line. Raises `SMCPError` if it fails, and `Quit`."""
    words = split(line)
    if words:
        found, rest = find(words)
        await found.run(session, rest)


def find(words: Sequence[str]) -> tuple[Command, list[str]]:
    """The command that a line starts with, and the words after it. Raises `BadRequestError` with the nearest name."""
    for length in (3, 2, 1):
        if (found := COMMANDS.get(" ".join(words[:length]))) is not None:
            return found, list(words[length:])
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
    """The words that fit at the cursor, and the part of them that is typed already."""
    start, _, word = line.rpartition(" ")
    try:
        before = split(start)
    except BadRequestError:  # quotes or JSON that are not closed yet
        return [], word
    found = {*_next_words(before)}
    length = next((n for n in (3, 2, 1) if " ".join(before[:n]) in COMMANDS), None)
    if length is not None:
        found.update(COMMANDS[" ".join(before[:length])].completes(session, before[length:]))
    return sorted(quote(item) for item in found if item.startswith(word) or quote(item).startswith(word)), word


def _next_words(before: Sequence[str]) -> Iterator[str]:
    """The words that follow these in the names of commands."""
    for name in map(str.split, COMMANDS):
        if len(name) > len(before) and name[: len(before)] == list(before):
            yield name[len(before)]


def is_kept(line: str) -> bool:
    """Whether a line may be kept in the history. A line that is not a command may be a secret after a typo."""
    try:
        words = split(line)
    except BadRequestError:  # kept, so that it can be corrected
        words = line.split()
    try:
        found, rest = find(words) if words else (None, [])
    except BadRequestError:
        return False
    return found is not None and not found.secret and not any("--api-key" in word for word in rest)


# --- this computer


@command("history")
async def history(session: CLISession) -> None:
    """The last tool calls that reached a server."""
    calls = session.computer.history
    rows = [
        (call["timestamp"][:19], call["server"], call["tool"], "✓" if call["success"] else f"✗ {call['error']}")
        for call in calls
    ]
    session.output.event("history", page(("at (UTC)", "server", "tool", ""), rows), calls=calls)


@command("config show")
async def config_show(session: CLISession) -> None:
    """The configuration that an agent may see: with placeholders, and with masked secrets."""
    config = session.computer.get_config()
    session.output.event("config", quoted(json.dumps(config, indent=2, ensure_ascii=False)), config=config)


@command("config validate", "[FILE...]")
async def config_validate(session: CLISession, *names: str) -> None:
    """List everything that is wrong with these config files, or with those that this run was started with."""
    files = read_config_files(*map(file_path, names)) if names else session.files.read()
    _show_check(session, files.problems, files.warnings)


@command("config reload")
async def config_reload(session: CLISession) -> None:
    """Read the config files again and apply them. Entries with a problem stay as they were."""
    files = session.files.read()
    refused = {} if files.unusable else await session.files.take_over(files)
    problems = [f"server {name!r} {outcome}" for name, outcome in refused.items()]
    _show_check(session, [*files.problems, *problems], files.warnings)


def _show_check(session: CLISession, problems: Sequence[object], warnings: Sequence[object]) -> None:
    found = [*(f"error: {problem}" for problem in problems), *(f"warning: {warning}" for warning in warnings)]
    session.output.event(
        "config_checked",
        quoted("\n".join(found)) if found else "✓ the config files are valid",
        ok=not problems,
        problems=[str(problem) for problem in problems],
        warnings=[str(warning) for warning in warnings],
    )


@command("status")
async def status(session: CLISession) -> None:
    """This computer's name, its office, and the states of its servers."""
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


@command("help", "[COMMAND...]", lambda _, words: _next_words(words))
async def help_(session: CLISession, *words: str) -> None:
    """List all commands, or explain one."""
    name = " ".join(words)
    found = [each for _, each in sorted(COMMANDS.items()) if f"{each.name} ".startswith(f"{name} " if name else "")]
    if not found:
        raise BadRequestError(_suggestion(words))
    session.output.event(
        "help",
        page(("command", ""), [(f"{each.name} {each.usage}".rstrip(), each.help) for each in found]),
        commands=[{"name": each.name, "usage": each.usage, "help": each.help} for each in found],
    )


@command("quit")
async def quit_(session: CLISession) -> None:
    """Stop everything and end. Ctrl-D does the same, and so does Ctrl-C on an empty line."""
    raise Quit


@command("exit")
async def exit_(session: CLISession) -> None:
    """The same as `quit`."""
    raise Quit
