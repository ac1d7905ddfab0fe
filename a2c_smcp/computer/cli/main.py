"""`a2c computer`, also installed as `a2c-computer`; and `smcp-computer`, which prints `@a2c` lines for programs.

Each command imports what it needs when it runs, so that `--help` stays quick.
"""

import hashlib
import importlib
import platform
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from a2c_smcp.computer.cli.run_options import ConsoleOptions, RunOptions
from a2c_smcp.errors import BadRequestError
from a2c_smcp.terminal.background_stream import background_stderr
from a2c_smcp.terminal.exits import FAILED, REFUSED
from a2c_smcp.terminal.options import (
    KEY_ADVICE,
    CommandApp,
    ConfigFilesOption,
    InputFilesOption,
    LogFormatOption,
    OptionGroup,
    link_from_options,
)
from a2c_smcp.terminal.quick_end import quick_end, quick_imports
from a2c_smcp.terminal.screen import say
from a2c_smcp.terminal.traces import OtelOption, traced
from a2c_smcp.utils.logs import configure_logging
from a2c_smcp.utils.state_folder import state_folder
from a2c_smcp.utils.system import PROMPT

if TYPE_CHECKING:
    from a2c_smcp.link.interface import LinkOptions

__all__ = ["app", "main"]

app = CommandApp(
    name="computer",
    help="Host MCP servers and offer their tools, windows and documents to an agent.",
    add_completion=False,  # `a2c` has it for all of its commands
)

PrefixTools = Annotated[
    bool,
    typer.Option(
        "--prefix-tools", help="Put SERVER_ before the names of each server's tools. A tool_prefix in a file wins."
    ),
]


@app.callback()
def computer() -> None:
    """With a callback typer keeps this a group, even if it has one command."""


@app.command()
def validate(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Config files, read as one configuration.")],
    prefix_tools: PrefixTools = False,
) -> None:
    """List everything that is wrong with config files. Starts nothing and asks for nothing."""
    from a2c_smcp.computer.cli.validate import validate_files

    raise typer.Exit(validate_files(files, prefix_tools=prefix_tools))


@app.command()
def schema() -> None:
    """Print the JSON Schema of a config file, for editors: a2c computer schema > a2c.schema.json"""
    from a2c_smcp.computer.config.schema import SCHEMA_FILE

    say(SCHEMA_FILE.read_text("utf-8").rstrip())


@dataclass(frozen=True)
class StartFlags:
    """Fields of `RunOptions`."""

    yes: Annotated[bool, typer.Option("--yes", help="Run every call, also of tools that are not auto_apply.")] = False
    auto_connect: Annotated[
        bool, typer.Option("--auto-connect/--no-auto-connect", help="Start servers when they are added or enabled.")
    ] = True
    auto_reconnect: Annotated[
        bool,
        typer.Option("--auto-reconnect/--no-auto-reconnect", help="Restart servers that die or whose entry changes."),
    ] = True
    prefix_tools: PrefixTools = False


@dataclass(frozen=True)
class SizeFlags:
    """Limits of the Computer."""

    max_message: Annotated[
        int | None,
        typer.Option(min=1024, help="Largest message in bytes, as at the server.", show_default="16 MiB"),
    ] = None
    max_window: Annotated[
        int | None,
        typer.Option(min=1024, help="How many bytes of a window a whole desktop shows.", show_default="1 MiB"),
    ] = None


@app.command()
@background_stderr()
def run(
    *,
    name: Annotated[
        str | None,
        typer.Option(envvar="A2C_NAME", help="This computer's name in the office.", show_default="the machine's"),
    ] = None,
    office: Annotated[
        str | None, typer.Option(envvar="A2C_OFFICE", help="The office to join.", show_default="none")
    ] = None,
    config: ConfigFilesOption = None,
    inputs: InputFilesOption = None,
    link: Annotated["LinkOptions", OptionGroup(link_from_options)],
    headless: Annotated[
        bool, typer.Option("--headless", help="Run without a prompt until SIGTERM, and follow changes of the files.")
    ] = False,
    starting: StartFlags,
    json_lines: Annotated[
        bool,
        typer.Option(
            "--json-lines/--no-json-lines",
            envvar="A2C_JSON_LINES",
            help="At the prompt, also print @a2c lines for programs, as smcp-computer does.",
        ),
    ] = False,
    limits: SizeFlags,
    console: ConsoleOptions,
    computer_factory: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:ATTR", help="Makes the Computer; called like a2c_smcp.computer.computer.Computer."
        ),
    ] = None,
    otel: OtelOption = False,
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"] | None,
        typer.Option(help="The least important lines of the log on stderr.", show_default="info; at a prompt, error"),
    ] = None,
    log_format: LogFormatOption = "text",
) -> None:
    """Host the MCP servers of config files, with a prompt for commands, or headless as a service."""
    missing = [option for option, value in (("--office", office), ("--config", config)) if not value]
    if headless and missing:
        raise typer.BadParameter(f"--headless needs {' and '.join(missing)}")
    name = name or platform.node()[:64] or "computer"
    with quick_imports():
        options = RunOptions(
            name=name,
            office=office,
            link=replace(link, max_message=limits.max_message or link.max_message),
            files=(*(config or ()), *(inputs or ())),
            home_file=config[0] if config else None,
            json_lines=json_lines,
            console=console,
            factory=_factory(computer_factory, name, vars(limits)),
            **vars(starting),
        )
    with traced("a2c-computer", wanted=otel):
        _start(options, lambda level: configure_logging(log_level or level, log_format), headless=headless)


def _start(options: RunOptions, start_log: Callable[[str], None], *, headless: bool) -> None:
    from a2c_smcp.computer.config.problems import InvalidConfigError
    from a2c_smcp.errors import SMCPError, UnauthorizedError

    try:
        if headless:
            with quick_imports():
                from a2c_smcp.computer.cli.headless import run_headless

            start_log("info")
            run_headless(options)
        else:
            if not PROMPT.works:
                raise typer.BadParameter(PROMPT.problem)
            with quick_imports():
                from a2c_smcp.computer.cli.repl import is_terminal, run_repl

            if not is_terminal():
                raise typer.BadParameter("the prompt needs a terminal; with --headless none is needed")
            run_repl(options, lambda: start_log("error"))
    except SMCPError as error:
        say(f"a2c computer: {error}", err=True)
        if isinstance(error, UnauthorizedError):
            say(KEY_ADVICE, err=True)
        raise typer.Exit(FAILED if isinstance(error, InvalidConfigError) else REFUSED) from None


def _factory(path: str | None, name: str, limits: dict[str, int | None]) -> Any:
    """The function that makes the Computer. A user's own factory gets only the limits that were given, and not the
    remembered tools.
    """
    given: dict[str, Any] = {limit: value for limit, value in limits.items() if value is not None}
    if path is not None:
        return partial(_load(path), **given)
    from a2c_smcp.computer.computer import Computer
    from a2c_smcp.computer.mcp_clients.remembered_tools import RememberedTools

    with suppress(BadRequestError):  # there is no home folder
        file = state_folder() / "tools" / f"{hashlib.sha256(name.encode()).hexdigest()[:16]}.json"
        given["remembered_tools"] = RememberedTools(file)
    return partial(Computer, **given)


def _load(path: str) -> Any:
    """The object that `module:attr` names. Modules of the working directory are found, too."""
    module, _, attribute = path.partition(":")
    sys.path.insert(0, "")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, ValueError, AttributeError) as error:
        raise typer.BadParameter(f"--computer-factory {path}: {error}") from None
    finally:
        sys.path.remove("")
    if not callable(found):
        raise typer.BadParameter(f"--computer-factory {path}: that is not a function or a class")
    return found


def main() -> None:
    with quick_end():
        app()


def smcp_main() -> None:
    """`smcp-computer`, the name in the specification: for programs that read `@a2c` lines."""
    with quick_end():
        app(default_map={"run": {"json_lines": True}})
