"""`a2c computer`, also installed as `a2c-computer`; and `smcp-computer`, which is for programs and prints `@a2c` lines.

Each command imports what it needs when it runs, so that `--help` stays quick.
"""

import hashlib
import importlib
import platform
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from a2c_smcp.errors import BadRequestError
from a2c_smcp.terminal.background_stream import background_stderr
from a2c_smcp.terminal.exits import FAILED, REFUSED
from a2c_smcp.terminal.options import (
    DEFAULT_KEY_HEADER,
    DEFAULT_URL,
    KEY_ADVICE,
    ApiKeyFileOption,
    ApiKeyHeaderOption,
    ApiKeyOption,
    CaOption,
    CommandApp,
    ProxyOption,
    TransportOption,
    UrlOption,
    link_options,
)
from a2c_smcp.terminal.quick_end import quick_end, quick_imports
from a2c_smcp.terminal.screen import say
from a2c_smcp.utils.logs import LogFormat, configure_logging
from a2c_smcp.utils.state_folder import state_folder
from a2c_smcp.utils.system import PROMPT

__all__ = ["app", "main"]

app = CommandApp(
    name="computer",
    help="Host MCP servers and offer their tools, windows and documents to an agent.",
    add_completion=False,  # `a2c` has it, for all of its commands
)


PrefixTools = Annotated[
    bool,
    typer.Option(
        "--prefix-tools", help="Put SERVER_ before the names of each server's tools; a tool_prefix in a file wins."
    ),
]


@app.callback()
def computer() -> None:
    """A callback keeps this a group of commands, however many there are."""


@app.command()
def validate(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Config files, read as one configuration.")],
    prefix_tools: PrefixTools = False,
) -> None:
    """Say everything that is wrong with config files, without starting or asking for anything."""
    from a2c_smcp.computer.cli.validate import validate_files

    raise typer.Exit(validate_files(files, prefix_tools=prefix_tools))


@app.command()
def schema() -> None:
    """Print the JSON Schema of a config file, for editors: a2c computer schema > a2c.schema.json"""
    from a2c_smcp.computer.config.schema import SCHEMA_FILE

    say(SCHEMA_FILE.read_text("utf-8").rstrip())


@app.command()
@background_stderr()
def run(
    name: Annotated[
        str | None,
        typer.Option(envvar="A2C_NAME", help="This computer's name in the office.", show_default="the machine's"),
    ] = None,
    office: Annotated[
        str | None, typer.Option(envvar="A2C_OFFICE", help="The office to join.", show_default="none")
    ] = None,
    config: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Config file; repeatable. Headless, its changes are followed."),
    ] = None,
    inputs: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="File with inputs; repeatable. Headless, its changes are followed."),
    ] = None,
    url: UrlOption = DEFAULT_URL,
    api_key: ApiKeyOption = None,
    api_key_file: ApiKeyFileOption = None,
    api_key_header: ApiKeyHeaderOption = DEFAULT_KEY_HEADER,
    transport: TransportOption = "auto",
    proxy: ProxyOption = None,
    ca: CaOption = None,
    headless: Annotated[bool, typer.Option("--headless", help="Serve until SIGTERM, without a prompt.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Run every call, also of tools that are not auto_apply.")] = False,
    auto_connect: Annotated[
        bool, typer.Option("--auto-connect/--no-auto-connect", help="Start servers when they are added or enabled.")
    ] = True,
    auto_reconnect: Annotated[
        bool, typer.Option("--auto-reconnect/--no-auto-reconnect", help="Restart servers that die or are updated.")
    ] = True,
    prefix_tools: PrefixTools = False,
    json_lines: Annotated[
        bool,
        typer.Option(
            "--json-lines/--no-json-lines",
            envvar="A2C_JSON_LINES",
            help="At the prompt, print @a2c lines for programs, too. smcp-computer does.",
        ),
    ] = False,
    max_message: Annotated[
        int | None, typer.Option(min=1024, help="Largest message, in bytes; the server's.", show_default="16 MiB")
    ] = None,
    max_window: Annotated[
        int | None,
        typer.Option(min=1024, help="How many bytes of a window a whole desktop shows.", show_default="1 MiB"),
    ] = None,
    console: Annotated[
        str | None,
        typer.Option(
            metavar="[HOST:]PORT",
            help="Open a page in the browser, to watch and to decide; 0 picks one, as last time. A HOST needs TLS.",
        ),
    ] = None,
    console_cert: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Certificate chain of the console, PEM.")
    ] = None,
    console_key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Its private key, PEM, if it is in another file.")
    ] = None,
    computer_factory: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:ATTR", help="Makes the Computer; called like a2c_smcp.computer.computer.Computer."
        ),
    ] = None,
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"] | None,
        typer.Option(
            help="What goes to the log on stderr.", show_default="info; interactive, where events are shown, error"
        ),
    ] = None,
    log_format: Annotated[LogFormat, typer.Option(help="For people, or one JSON object a line.")] = "text",
) -> None:
    """Host the MCP servers of config files, with a prompt for commands, or headless as a service."""
    if headless:
        missing = [option for option, value in (("--office", office), ("--config", config)) if not value]
        if missing:
            raise typer.BadParameter(f"--headless needs {' and '.join(missing)}")
    with quick_imports():
        from a2c_smcp.computer.cli.consoles import ConsoleOptions
        from a2c_smcp.computer.config.problems import InvalidConfigError
        from a2c_smcp.errors import SMCPError, UnauthorizedError
        from a2c_smcp.wire import DEFAULT_MAX_MESSAGE

    name = name or platform.node()[:64] or "computer"
    common: dict[str, Any] = {
        "name": name,
        "office": office,
        "link": link_options(
            url,
            api_key=api_key,
            api_key_header=api_key_header,
            transport=transport,
            proxy=proxy,
            ca=ca,
            max_message=max_message or DEFAULT_MAX_MESSAGE,
        ),
        "files": (*(config or ()), *(inputs or ())),
        "home_file": config[0] if config else None,
        "yes": yes,
        "auto_connect": auto_connect,
        "auto_reconnect": auto_reconnect,
        "prefix_tools": prefix_tools,
        "console": ConsoleOptions(console, console_cert, console_key),
        "factory": _factory(computer_factory, name, {"max_message": max_message, "max_window": max_window}),
    }
    try:
        if headless:
            with quick_imports():
                from a2c_smcp.computer.cli.headless import HeadlessOptions, run_headless

            configure_logging(log_level or "info", log_format)
            run_headless(HeadlessOptions(**common))
        else:
            if not PROMPT.works:
                raise typer.BadParameter(PROMPT.problem)
            with quick_imports():
                from a2c_smcp.computer.cli.repl import ReplOptions, is_terminal, run_repl

            if not is_terminal():
                raise typer.BadParameter("the prompt needs a terminal; --headless does without")
            run_repl(
                ReplOptions(**common, json_lines=json_lines),
                lambda: configure_logging(log_level or "error", log_format),
            )
    except SMCPError as error:
        say(f"a2c computer: {error}", err=True)
        if isinstance(error, UnauthorizedError):
            say(KEY_ADVICE, err=True)
        raise typer.Exit(FAILED if isinstance(error, InvalidConfigError) else REFUSED) from None


def _factory(path: str | None, name: str, limits: dict[str, int | None]) -> Any:
    """The function that makes the Computer. A factory of the user's own need not know limits that are not given, nor
    the tools of earlier runs.
    """
    given: dict[str, Any] = {limit: value for limit, value in limits.items() if value is not None}
    if path is not None:
        return partial(_load(path), **given)
    from a2c_smcp.computer.computer import Computer
    from a2c_smcp.computer.mcp_clients.remembered_tools import RememberedTools

    with suppress(BadRequestError):  # there is no home
        file = state_folder() / "tools" / f"{hashlib.sha256(name.encode()).hexdigest()[:16]}.json"
        given["remembered_tools"] = RememberedTools(file)
    return partial(Computer, **given)


def _load(path: str) -> Any:
    """What `module:attr` names; modules of the working directory count."""
    module, _, attribute = path.partition(":")
    sys.path.insert(0, "")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, ValueError, AttributeError) as error:
        raise typer.BadParameter(f"--computer-factory {path}: {error}") from None
    finally:
        sys.path.remove("")
    if not callable(found):
        raise typer.BadParameter(f"--computer-factory {path}: it cannot be called")
    return found


def main() -> None:
    with quick_end():
        app()


def smcp_main() -> None:
    """The command that the specification names, for programs that read its lines."""
    with quick_end():
        app(default_map={"run": {"json_lines": True}})
