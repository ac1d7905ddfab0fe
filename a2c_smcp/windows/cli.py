"""`a2c windows`. What it needs is imported when it runs."""

import importlib.util
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from a2c_smcp.terminal.exits import FAILED
from a2c_smcp.terminal.options import listening_problem
from a2c_smcp.terminal.screen import say
from a2c_smcp.utils.distribution import install_command
from a2c_smcp.utils.logs import configure_logging
from a2c_smcp.utils.system import OPEN_WINDOWS

if TYPE_CHECKING:
    import mcp_types as types

__all__ = ["journal_command", "windows"]

#: Options that a config does not repeat: what is printed is a server over stdio, and a secret has no place in it.
_NOT_IN_CONFIGS: Final = frozenset({"print_config", "http", "token", "folder"})


def windows(
    context: typer.Context,
    terminals: Annotated[
        bool, typer.Option("--terminals", help="Let the agent open terminals, each a window.")
    ] = False,
    browser: Annotated[
        bool, typer.Option("--browser", help="Let the agent use a Chromium of its own; each tab is a window.")
    ] = False,
    browser_url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Show the tabs of your Chromium, which runs with --remote-debugging-port."),
    ] = None,
    browser_path: Annotated[str | None, typer.Option(metavar="FILE", help="The Chromium to start.")] = None,
    browser_arg: Annotated[
        list[str] | None, typer.Option(metavar="ARG", help="An option for the Chromium that is started; repeatable.")
    ] = None,
    headed: Annotated[bool, typer.Option("--headed", help="Show that Chromium on the screen.")] = False,
    downloads: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", exists=True, file_okay=False, help="Keep its downloads there; otherwise refuse them."
        ),
    ] = None,
    follow: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Show the last 200 lines of a file as it grows; repeatable."),
    ] = None,
    command: Annotated[
        list[str] | None,
        typer.Option(metavar="COMMAND", help="Show what a command prints, when it changes; repeatable."),
    ] = None,
    every: Annotated[float, typer.Option(min=1, metavar="SECONDS", help="How often commands run.")] = 10.0,
    journal: Annotated[
        list[str] | None,
        typer.Option(metavar="UNIT", help="Show the journal of a systemd unit; 'all' shows everything; repeatable."),
    ] = None,
    tmux: Annotated[bool, typer.Option("--tmux", help="Show your own tmux panes, to read only.")] = False,
    tmux_session: Annotated[
        str | None, typer.Option(metavar="NAME", help="Show the panes of this session only.")
    ] = None,
    tmux_type: Annotated[bool, typer.Option("--tmux-type", help="Let the agent type into tmux panes, too.")] = False,
    folder: Annotated[
        Path,
        typer.Option("--in", metavar="DIR", exists=True, file_okay=False, help="Where terminals and commands start."),
    ] = Path("."),
    sandbox: Annotated[
        bool, typer.Option("--sandbox", help="Terminals may write below --in only (needs bubblewrap).")
    ] = False,
    errors_first: Annotated[bool, typer.Option("--errors-first", help="Show lines about errors first.")] = False,
    mask: Annotated[
        list[str] | None,
        typer.Option(metavar="REGEX", help="Hide what this matches, beside what looks like a key; repeatable."),
    ] = None,
    keep_env: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Give programs this variable although it is named like a secret; repeatable."
        ),
    ] = None,
    budget: Annotated[int, typer.Option(min=500, max=1_000_000, help="Characters that a window shows at most.")] = 8000,
    host: Annotated[str, typer.Option(help="Host of the window:// URIs: a reversed domain.")] = "local.windows",
    http: Annotated[
        int | None,
        typer.Option(min=0, max=65535, metavar="PORT", help="Serve over HTTP on loopback, not stdio; 0 picks a port."),
    ] = None,
    token: Annotated[
        str | None, typer.Option(envvar="A2C_WINDOWS_TOKEN", help="Bearer token that HTTP requests must have.")
    ] = None,
    print_config: Annotated[
        bool, typer.Option("--print-config", help="Print the config of a computer for these options, and exit.")
    ] = False,
) -> None:
    """Show terminals, tabs, files and commands as windows, as an MCP server over stdio unless --http is given.

    The person is asked about every tool that types or runs something. `a2c windows --terminals --print-config` prints
    a config for `a2c computer run --config FILE`.
    """
    if not OPEN_WINDOWS.works:
        _fail(OPEN_WINDOWS.problem)
    commands = [*(command or ()), *(journal_command(unit) for unit in journal or ())]
    if not (terminals or browser or browser_url or follow or commands or tmux or tmux_session or tmux_type):
        _fail("nothing to show: give --terminals, --browser, --follow, --command, --journal or --tmux")
    has_tools = terminals or browser or browser_url or tmux_type
    if http is not None and not token and (has_tools or tmux or tmux_session):
        _fail(
            "--http needs a token with terminals, a browser or tmux: other users of this machine could use them. "
            "Set A2C_WINDOWS_TOKEN, or give --token"
        )
    if print_config:
        if http is not None:
            _fail("--print-config makes the config of a server over stdio: leave --http out")
        from a2c_smcp.windows.annotations import BROWSER_TOOLS, TERMINAL_TOOLS

        tools = dict(TERMINAL_TOOLS if terminals else {}) | dict(BROWSER_TOOLS if browser or browser_url else {})
        say(json.dumps(_config(["--in", str(folder.resolve()), *_given(context)], tools), indent=2))
        return
    _check_extra("pyghostty" if terminals else None, "playwright" if browser or browser_url else None)
    from a2c_smcp.windows.browser.chromium import BrowserOptions
    from a2c_smcp.windows.sandbox import sandbox_command
    from a2c_smcp.windows.server import WindowsOptions, windows_server

    configure_logging("warning")
    try:
        options = WindowsOptions(
            folder=folder.resolve(),
            terminals=terminals,
            wrapper=sandbox_command(folder.resolve(), os.environ) if sandbox else (),
            browser=(
                BrowserOptions(browser_url, browser_path, browser_arg or (), headed, downloads)
                if browser or browser_url
                else None
            ),
            tmux=tmux or tmux_session is not None or tmux_type,
            tmux_session=tmux_session,
            tmux_type=tmux_type,
            files=[path.absolute() for path in follow or ()],
            commands=commands,
            every=every,
            errors_first=errors_first,
            mask=mask or (),
            keep_env=keep_env or (),
            budget=budget,
            environment=dict(os.environ),
        )
        server = windows_server(options, host)
        if http is None:
            server.run()
        else:
            server.run_http(http, token=token)
    except (ValueError, OSError) as error:
        _fail(listening_problem(error, "--http"))


def _fail(problem: str) -> None:
    say(f"a2c windows: {problem}", err=True)
    raise typer.Exit(FAILED)


def _check_extra(*packages: str | None) -> None:
    if any(name is not None and importlib.util.find_spec(name) is None for name in packages):
        _fail(f"this needs the extra 'windows': {install_command('windows')}")


def journal_command(unit: str) -> str:
    """The command that prints the journal of a unit; of all units for `all`."""
    import shlex

    chosen = "" if unit == "all" else f" --unit {shlex.quote(unit)}"
    return f"journalctl --lines 200 --no-pager --output short-iso{chosen}"


def _given(context: typer.Context) -> list[str]:
    """The options of the command line once more, with paths that hold anywhere."""
    words: list[str] = []
    for option in context.command.params:
        source = context.get_parameter_source(option.name or "")
        if option.name in _NOT_IN_CONFIGS or source is None or source.name != "COMMANDLINE":
            continue
        value = context.params[option.name or ""]
        for each in value if isinstance(value, list | tuple) else [value]:
            words += [option.opts[0]] if each is True else [option.opts[0], _anywhere(option.name, each)]
    return words


def _anywhere(name: str | None, value: object) -> str:
    is_path = isinstance(value, Path) or (name == "browser_path" and os.sep in str(value))
    return os.path.abspath(str(value)) if is_path else str(value)


def _config(options: list[str], tools: "Mapping[str, types.ToolAnnotations]") -> dict[str, Any]:
    """The config of this server: tools that only look run at once, the others are asked about."""
    return {
        "servers": [
            {
                "name": "windows",
                "type": "stdio",
                "tool_meta": {name: {"auto_apply": True} for name, says in tools.items() if says.read_only_hint},
                "server_parameters": {"command": "a2c", "args": ["windows", *options]},
            }
        ]
    }
