"""`a2c computer`, also installed as `a2c-computer`; and `smcp-computer`, which prints `@a2c` lines for programs.

Each command imports what it needs when it runs, so that `--help` stays quick.
"""

import hashlib
import importlib
import platform
import re
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
from a2c_smcp.record.cli import record_app
from a2c_smcp.record.places import record_of
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
    """List everything that is wrong with config files, and with rules files (.toml). Starts nothing."""
    from a2c_smcp.computer.cli.validate import validate_files

    raise typer.Exit(validate_files(files, prefix_tools=prefix_tools))


@app.command()
def schema() -> None:
    """Print the JSON Schema of a config file, for editors: a2c computer schema > a2c.schema.json"""
    from a2c_smcp.computer.config.schema import SCHEMA_FILE

    say(SCHEMA_FILE.read_text("utf-8").rstrip())


@app.command("import")
def import_(
    hosts: Annotated[
        list[str] | None,
        typer.Argument(metavar="[HOST]...", help="claude-desktop, cursor, zed, …", show_default="all that are found"),
    ] = None,
    to: Annotated[Path, typer.Option("--to", metavar="FILE", help="The config file that gets the servers.")] = Path(
        "a2c.json"
    ),
    yes: Annotated[bool, typer.Option("--yes", help="Write without a question.")] = False,
) -> None:
    """Find the MCP servers of the hosts on this machine, show them, and copy them into a config file if you say so."""
    from a2c_smcp.computer.cli.importing import import_servers
    from a2c_smcp.errors import BadRequestError

    try:
        raise typer.Exit(import_servers(hosts or (), to, yes=yes))
    except (BadRequestError, OSError) as error:
        say(f"a2c computer import: {error}", err=True)
        raise typer.Exit(FAILED) from None


rules_app = CommandApp(name="rules", help="Rules: what may run without a person, and what never runs.")
app.add_typer(rules_app)


@rules_app.command("test")
def rules_test(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A rules file, or a config file with rules.")],
    call: Annotated[str, typer.Option("--call", metavar="TOOL", help="The tool, by the name that agents see.")] = "",
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="The arguments of the call.")
    ] = None,
    agent: Annotated[str, typer.Option(help="The agent that calls.", show_default="none")] = "",
    key: Annotated[str, typer.Option(help="The name of the agent's key.", show_default="not known")] = "",
    claimed: Annotated[
        bool, typer.Option("--claimed", help="No key is bound to the agent's name: it only says that it is this agent.")
    ] = False,
    office: Annotated[str, typer.Option(help="The office of the call.", show_default="none")] = "",
    server: Annotated[
        str, typer.Option(help="The server of the tool.", show_default="that of a rule from a card, or none")
    ] = "",
    hint: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A hint of the tool that is true: readOnlyHint, …")
    ] = None,
    read: Annotated[
        str, typer.Option(metavar="URI|KIND", help="Instead of a call: what is read, such as window://mail or prompt.")
    ] = "",
) -> None:
    """Say which rule decides a call or a read, and why. Runs nothing."""
    from a2c_smcp.computer.asker import Asker
    from a2c_smcp.computer.cli.rule_checks import test_read_rules, test_rules

    if bool(call) == bool(read):
        raise typer.BadParameter("give a --call or a --read")
    asker = Asker(agent, key or None, bool(agent) and not claimed, office) if agent or key or office else None
    if read:
        raise typer.Exit(test_read_rules(file, read, asker, server))
    raise typer.Exit(test_rules(file, call, arguments or [], asker, server, hint or []))


@rules_app.command("list")
def rules_list(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="A rules file.", show_default="that of the computer --name")
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(envvar="A2C_NAME", help="The computer whose rules are listed.", show_default="the machine's"),
    ] = None,
) -> None:
    """List the rules of a file in words, in the order in which they decide. Those of a computer with how often each
    decided, by its record.
    """
    from a2c_smcp.computer.cli.rule_checks import list_rules
    from a2c_smcp.record.places import record_of

    if file is not None:
        raise typer.Exit(list_rules(file))
    path = _rules_file(None, _name(name))
    raise typer.Exit(list_rules(path, None if path is None else record_of(_name(name))))


ServerName = Annotated[str, typer.Argument(metavar="NAME", help="The server's name in the config files.")]


@app.command()
def login(name: ServerName, config: ConfigFilesOption = None, inputs: InputFilesOption = None) -> None:
    """Sign in to a remote MCP server ahead of time. The sign-in is kept for the computers of this user."""
    from a2c_smcp.computer.cli.sign_ins import login as sign_in

    raise typer.Exit(sign_in(_config_files(config, inputs), name))


@app.command()
def logout(name: ServerName, config: ConfigFilesOption = None, inputs: InputFilesOption = None) -> None:
    """Delete the sign-in at a remote MCP server."""
    from a2c_smcp.computer.cli.sign_ins import logout as sign_out

    raise typer.Exit(sign_out(_config_files(config, inputs), name))


def _config_files(config: list[Path] | None, inputs: list[Path] | None) -> list[Path]:
    if not config:
        raise typer.BadParameter("--config is needed: it names the file with the server")
    return [*config, *(inputs or ())]


@dataclass(frozen=True)
class StartFlags:
    """Fields of `RunOptions`."""

    yes: Annotated[bool, typer.Option("--yes", help="Run every call that no rule is about.")] = False
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


@dataclass(frozen=True)
class RecordFlags:
    """What is recorded, and for how long."""

    record: Annotated[
        bool, typer.Option("--record/--no-record", help="Keep a record of every call and decision in a private file.")
    ] = True
    record_days: Annotated[float, typer.Option(min=0, help="Days that the record keeps; 0: no limit.")] = 90.0
    record_size: Annotated[int, typer.Option(min=0, metavar="MIB", help="Largest size of the record; 0: no limit.")] = (
        1024
    )
    record_results: Annotated[
        bool, typer.Option("--record-results", help="Record what tools answer, too, not only its size and digest.")
    ] = False
    record_required: Annotated[
        bool,
        typer.Option("--record-required", help="No record, no call and no read: they fail while it cannot be written."),
    ] = False
    record_head_to_server: Annotated[
        bool,
        typer.Option(
            "--record-head-to-server", help="Tell the server how far the record goes, for its own record (--record)."
        ),
    ] = False


@dataclass(frozen=True)
class ComputerRecordPlace:
    """The record of a computer."""

    name: Annotated[
        str | None, typer.Option(envvar="A2C_NAME", help="The computer's name.", show_default="the machine's")
    ] = None
    record_file: Annotated[
        Path | None,
        typer.Option("--file", metavar="FILE", help="Instead: the file of a record.", show_default=False),
    ] = None

    @property
    def file(self) -> Path:
        return self.record_file or record_of(_name(self.name))


app.add_typer(record_app(ComputerRecordPlace, "a computer"))


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
    rules: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The rules file, TOML. It must be there; an empty file has no rules.",
            show_default="a file in the user's state folder",
        ),
    ] = None,
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
    recording: RecordFlags,
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
    name = _name(name)
    with quick_imports():
        options = RunOptions(
            name=name,
            office=office,
            link=replace(link, max_message=limits.max_message or link.max_message),
            files=(*(config or ()), *(inputs or ())),
            home_file=config[0] if config else None,
            rules=_rules_file(rules, name),
            needs_rules=rules is not None,
            json_lines=json_lines,
            console=console,
            factory=_factory(computer_factory, name, vars(limits), recording),
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


def _name(name: str | None) -> str:
    return name or platform.node()[:64] or "computer"


def _rules_file(given: Path | None, name: str) -> Path | None:
    """The rules file: the given one, or that of the computer with this name. `None` if there is no home folder."""
    if given is not None:
        return given
    is_plain = re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}", name) is not None
    folder = name if is_plain else hashlib.sha256(name.encode()).hexdigest()[:16]
    with suppress(BadRequestError):
        return state_folder() / "rules" / folder / "rules.toml"
    return None


def _factory(path: str | None, name: str, limits: dict[str, int | None], recording: RecordFlags) -> Any:
    """The function that makes the Computer. A user's own factory gets only the limits that were given, and neither the
    remembered tools nor the record.
    """
    given: dict[str, Any] = {limit: value for limit, value in limits.items() if value is not None}
    if path is not None:
        return partial(_load(path), **given)
    from a2c_smcp.computer.cli.kept_sign_ins import kept_sign_ins
    from a2c_smcp.computer.computer import Computer
    from a2c_smcp.computer.mcp_clients.remembered_tools import RememberedTools

    with suppress(BadRequestError):  # there is no home folder
        file = state_folder() / "tools" / f"{hashlib.sha256(name.encode()).hexdigest()[:16]}.json"
        given["remembered_tools"] = RememberedTools(file)
        if recording.record:
            from a2c_smcp.record.retention import Retention
            from a2c_smcp.record.writer import RecordWriter

            keep = Retention(days=recording.record_days, bytes=recording.record_size * 2**20)
            given["record"] = RecordWriter(record_of(name), keep)
            given["record_results"] = recording.record_results
            given["record_required"] = recording.record_required
            given["tell_record_head"] = recording.record_head_to_server
        given["sign_in_store"] = kept_sign_ins()
    if recording.record_required and "record" not in given:
        raise typer.BadParameter("--record-required needs a record: leave out --no-record, and have a home folder")
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
