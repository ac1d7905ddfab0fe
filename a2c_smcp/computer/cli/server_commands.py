"""Commands about the MCP servers of this computer."""

from collections.abc import Iterable
from typing import Final

from a2c_smcp.computer.cli.command_table import CommandGroup, arguments, first, number, page
from a2c_smcp.computer.cli.output import printable, quoted
from a2c_smcp.computer.cli.parse import options
from a2c_smcp.computer.cli.session import CLISession, status_fields
from a2c_smcp.computer.config.files import read_config_files, read_snippet
from a2c_smcp.computer.config.problems import InvalidConfigError
from a2c_smcp.computer.watching.events import ServerStatus
from a2c_smcp.errors import (
    SMCPError,
)
from a2c_smcp.utils.values import file_path, read_values, texts

__all__ = ["SERVER_COMMANDS"]

SERVER_COMMANDS: Final = CommandGroup()


def _servers(session: CLISession) -> Iterable[str]:
    return [status.server for status in session.computer.statuses]


@SERVER_COMMANDS.command("servers list")
async def servers_list(session: CLISession, words: list[str]) -> None:
    """Every MCP server and its state."""
    arguments(words)
    _show_servers(session)


def _show_servers(session: CLISession) -> None:
    statuses = session.computer.statuses
    rows = [(status.server, status.state.value, str(status.restarts), _why(status)) for status in statuses]
    session.output.event(
        "server_status",
        page(("server", "state", "restarts", "why"), rows),
        servers=[status_fields(status) for status in statuses],
        all=True,
    )


def _why(status: ServerStatus) -> str:
    """What there is to say of a server besides its state."""
    return "; ".join(filter(None, (status.reason, f"ignored: {status.ignored}" if status.ignored else None)))


@SERVER_COMMANDS.command("servers start", "NAME", first(_servers))
async def servers_start(session: CLISession, words: list[str]) -> None:
    """Start a server."""
    await session.computer.start_server(*arguments(words, "NAME"))
    _show_servers(session)


@SERVER_COMMANDS.command("servers stop", "NAME", first(_servers))
async def servers_stop(session: CLISession, words: list[str]) -> None:
    """Stop a server until it is started."""
    await session.computer.stop_server(*arguments(words, "NAME"))
    _show_servers(session)


@SERVER_COMMANDS.command("servers restart", "NAME", first(_servers))
async def servers_restart(session: CLISession, words: list[str]) -> None:
    """Start a server anew, with its config and its inputs as they are now."""
    await session.computer.restart_server(*arguments(words, "NAME"))
    _show_servers(session)


@SERVER_COMMANDS.command("servers add", "JSON | @FILE | KEY=VALUE...", secret=True)
async def servers_add(session: CLISession, words: list[str]) -> None:
    """Add servers, or change those of the same names: a config of ours, or the `mcpServers` JSON of any README."""
    store = session.computer.inputs
    prefix_tools = session.files.prefix_tools
    if len(words) == 1 and words[0].startswith("@"):
        # As `--config` reads it: with comments, and names of files that start where this one is.
        snippet = read_config_files(file_path(words[0][1:]), inputs=store.definitions, prefix_tools=prefix_tools)
    else:
        written = read_values(words).read(texts("name", "command", "url"))
        snippet = read_snippet(written, inputs=store.definitions, prefix_tools=prefix_tools)
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


@SERVER_COMMANDS.command("servers remove", "NAME", first(_servers))
async def servers_remove(session: CLISession, words: list[str]) -> None:
    """Stop a server and forget it."""
    await session.computer.remove_server(*arguments(words, "NAME"))
    _show_servers(session)


@SERVER_COMMANDS.command("servers logs", "NAME [--lines N]", first(_servers))
async def servers_logs(session: CLISession, words: list[str]) -> None:
    """The last lines that a server wrote to its stderr."""
    plain, given = options(words, ("lines",))
    (name,) = arguments(plain, "NAME")
    lines = session.computer.server_logs(name)
    if "lines" in given:
        lines = lines[max(0, len(lines) - int(number(given["lines"], "lines"))) :]
    session.output.event("server_logs", quoted("\n".join(lines)) if lines else "  (none)", server=name, lines=lines)
