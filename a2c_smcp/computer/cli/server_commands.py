"""Commands about the MCP servers of this computer."""

from collections.abc import Awaitable, Callable, Iterable

from a2c_smcp.computer.cli.command_table import command, first, number, page
from a2c_smcp.computer.cli.output import printable, quoted
from a2c_smcp.computer.cli.session import CLISession, status_fields
from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.config.files import read_config_files, read_snippet
from a2c_smcp.computer.config.problems import InvalidConfigError
from a2c_smcp.computer.watching.events import ServerStatus
from a2c_smcp.errors import SMCPError
from a2c_smcp.utils.values import file_path, read_values, texts

__all__: list[str] = []


def _servers(session: CLISession) -> Iterable[str]:
    return [status.server for status in session.computer.statuses]


@command("servers list")
async def servers_list(session: CLISession) -> None:
    """Every MCP server, its state, and what it shares with agents."""
    _show_servers(session)


def _show_servers(session: CLISession) -> None:
    statuses = session.computer.statuses
    shared = session.computer.shared.counts
    rows = [
        (status.server, status.state.value, str(status.restarts), str(shared.get(status.server, "")), _why(status))
        for status in statuses
    ]
    session.output.event(
        "server_status",
        page(("server", "state", "restarts", "shares", "why"), rows),
        servers=[status_fields(status, shared.get(status.server)) for status in statuses],
        all=True,
    )


def _why(status: ServerStatus) -> str:
    """Why the server is in its state, and which of its entry's keys are ignored."""
    return "; ".join(filter(None, (status.reason, f"ignored: {status.ignored}" if status.ignored else None)))


def _add_action(verb: str, act: Callable[[Computer, str], Awaitable[object]], help_text: str) -> None:
    async def action(session: CLISession, name: str) -> None:
        await act(session.computer, name)
        _show_servers(session)

    action.__doc__ = help_text
    command(f"servers {verb}", "NAME", first(_servers))(action)


_add_action("start", Computer.start_server, "Start a server.")
_add_action("stop", Computer.stop_server, "Stop a server. It stays stopped until you start it.")
_add_action("restart", Computer.restart_server, "Restart a server with its config and its inputs as they are now.")


@command("servers remove", "NAME [--logout yes|no]", first(_servers))
async def servers_remove(session: CLISession, name: str, *, logout: str = "no") -> None:
    """Stop a server and forget it; with `--logout yes`, also the sign-in at it."""
    await session.computer.remove_server(name, sign_out=logout == "yes")
    _show_servers(session)


@command("servers login", "NAME", first(_servers))
async def servers_login(session: CLISession, name: str) -> None:
    """Ask again for the sign-in that a server waits for."""
    session.computer.begin_sign_in(name)
    _show_servers(session)


@command("servers logout", "NAME", first(_servers))
async def servers_logout(session: CLISession, name: str) -> None:
    """Stop a server and delete the sign-in at it."""
    await session.computer.sign_out(name)
    _show_servers(session)


@command("servers add", "JSON|@FILE|KEY=VALUE...", secret=True)
async def servers_add(session: CLISession, *words: str) -> None:
    """Add servers, or change those of the same names. Takes a config of ours, or the `mcpServers` JSON of a README."""
    store = session.computer.inputs
    prefix_tools = session.files.prefix_tools
    if len(words) == 1 and words[0].startswith("@"):
        # Read like --config: comments are allowed, and paths in it are relative to its folder.
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


@command("servers logs", "NAME [--lines N]", first(_servers))
async def servers_logs(session: CLISession, name: str, *, lines: str | None = None) -> None:
    """The last lines that a server wrote to its stderr."""
    log = session.computer.server_logs(name)
    if lines is not None:
        log = log[max(0, len(log) - int(number(lines, "lines"))) :]
    session.output.event("server_logs", quoted("\n".join(log)) if log else "  (none)", server=name, lines=log)
