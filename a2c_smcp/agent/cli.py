"""`a2c agent`: one-shot commands. Each imports what it needs when it runs. Exit status: `terminal/exits.py`."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import typer

from a2c_smcp.terminal.options import (
    DEFAULT_URL,
    ApiKeyFileOption,
    ApiKeyOption,
    CaOption,
    CommandApp,
    ProxyOption,
    TransportOption,
    UrlOption,
    link_options,
)

if TYPE_CHECKING:
    from a2c_smcp.agent.commands import CommandOptions, Work
    from a2c_smcp.utils.values import Typed

__all__ = ["NameOption", "OfficeOption", "app"]

app = CommandApp(
    name="agent",
    help="Use the computers of an office: their tools, their screens and their documents.",
    add_completion=False,
)

OfficeOption = Annotated[
    str, typer.Option("--office", envvar="A2C_OFFICE", help="The office to join; it has one agent.")
]
NameOption = Annotated[str, typer.Option("--name", envvar="A2C_NAME", help="What this agent is called.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Raw = Annotated[
    bool, typer.Option("--raw", help="Print what others wrote as it is at a terminal too, where it may do anything.")
]


def _file(name: Path | None) -> Path | None:
    from a2c_smcp.errors import BadRequestError
    from a2c_smcp.utils.values import file_path

    try:
        return name and file_path(name)
    except BadRequestError as problem:
        raise typer.BadParameter(problem.message) from None


Save = Annotated[
    Path | None,
    typer.Option(
        "--save",
        metavar="FILE",
        callback=_file,  # before the tool runs
        help="Keep the image, or other bytes, in this file.",
        show_default=False,
    ),
]
ComputerOption = Annotated[str, typer.Argument(help="The computer's name.", show_default=False)]

DEFAULT_NAME: Final = "a2c-agent"


def _session(
    office: OfficeOption,
    url: UrlOption = DEFAULT_URL,
    name: NameOption = DEFAULT_NAME,
    api_key: ApiKeyOption = None,
    api_key_file: ApiKeyFileOption = None,
    transport: TransportOption = "auto",
    proxy: ProxyOption = None,
    ca: CaOption = None,
    as_json: Json = False,
    raw: Raw = False,
) -> "CommandOptions":
    """The options that every command has. The key of `api_key_file` is in `api_key` by now."""
    from a2c_smcp.agent.commands import CommandOptions

    link = link_options(url, api_key=api_key, transport=transport, proxy=proxy, ca=ca)
    return CommandOptions(link, office, name, as_json, raw=raw)


def _command(*, live: bool = False) -> Callable[[Callable[..., "Work"]], None]:
    """Make a command of a function that returns the work to do. The command has the options of `_session`, too."""

    def register(work: Callable[..., "Work"]) -> None:
        own, shared = signature(work).parameters, signature(_session).parameters

        def command(**given: Any) -> None:
            from a2c_smcp.agent.commands import run
            from a2c_smcp.utils.logs import configure_logging

            to_do = work(**{name: given[name] for name in own})
            session = _session(**{name: given[name] for name in shared})
            configure_logging("error")
            raise typer.Exit(run(replace(session, wait=given.get("wait", 0)), to_do, live=live))

        # From here typer reads the parameters. The office is the one that a person has to give.
        office, *rest = shared.values()
        parameters = [each.replace(kind=Parameter.KEYWORD_ONLY) for each in (office, *own.values(), *rest)]
        cast(Any, command).__signature__ = Signature(parameters)
        app.command(work.__name__, help=work.__doc__)(command)

    return register


@_command()
def room() -> "Work":
    """Who is in the office."""
    from a2c_smcp.agent import commands

    return commands.room()


@_command()
def tools(
    computer: Annotated[str | None, typer.Argument(help="One computer only.", show_default=False)] = None,
) -> "Work":
    """The tools of a computer, or of all of them."""
    from a2c_smcp.agent import commands

    return commands.tools(computer)


@_command()
def call(
    computer: ComputerOption,
    tool: Annotated[str, typer.Argument(help="The tool's name.", show_default=False)],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="JSON | @FILE | KEY=VALUE",
            help="What the tool is given: a JSON object, a file that holds one (@- is stdin), or pairs whose values "
            "are read as the tool's schema declares them; without one, as JSON where they can be.",
            show_default=False,
        ),
    ] = None,
    timeout: Annotated[int, typer.Option(min=1, help="Seconds that the tool may take.")] = 60,
    save: Save = None,
    wait: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            min=0,
            help="Wait so long for the server, and for the computer and its tool, to be there.",
            show_default="10 for tools whose servers are starting",
        ),
    ] = 0,
) -> "Work":
    """Call a tool. Ctrl-C cancels it at the computer."""
    params = _params(arguments or ())
    from a2c_smcp.agent import commands

    return commands.call(computer, tool, params, timeout, save, wait)


@_command()
def desktop(
    computer: ComputerOption,
    size: Annotated[int | None, typer.Option(min=1, help="At most so many windows.")] = None,
    window: Annotated[str | None, typer.Option(metavar="URI", help="This window only.")] = None,
) -> "Work":
    """What is on a computer's screen."""
    from a2c_smcp.agent import commands

    return commands.desktop(computer, size, window)


@_command()
def finder(
    computer: ComputerOption,
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEYWORD]...", help="Documents that have any of these words.", show_default=False),
    ] = None,
    keyword: Annotated[list[str] | None, typer.Option(help="One more such word; repeatable.")] = None,
    file_type: Annotated[str | None, typer.Option(help="Documents of this type, such as pdf.")] = None,
    offset: Annotated[int, typer.Option(min=0, help="Leave out the first ones.")] = 0,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="At most so many.")] = 20,
) -> "Work":
    """The documents of a computer."""
    from a2c_smcp.agent import commands

    keywords = [*(words or []), *(keyword or [])]
    return commands.finder(computer, keywords or None, file_type, offset, limit)


@_command()
def read(
    computer: ComputerOption,
    uri: Annotated[
        str,
        typer.Argument(
            metavar="URI",
            help="dpe://… or window://…; the first page of a document is DOCUMENT/pages/0, and with ?format=markdown "
            "it is text.",
            show_default=False,
        ),
    ],
    save: Save = None,
) -> "Work":
    """Read a document, a page, an element or a window."""
    from a2c_smcp.agent import commands

    return commands.read(computer, uri, save)


@_command()
def config(computer: ComputerOption) -> "Work":
    """A computer's MCP servers and inputs, without secrets."""
    from a2c_smcp.agent import commands

    return commands.config(computer)


@_command(live=True)
def watch() -> "Work":
    """Print what changes in the office, until Ctrl-C."""
    from a2c_smcp.agent import commands

    return commands.watch()


def _params(words: Sequence[str]) -> "Typed":
    from a2c_smcp.errors import BadRequestError
    from a2c_smcp.utils.values import read_values

    try:
        return read_values(words, stdin=True)
    except BadRequestError as problem:
        raise typer.BadParameter(problem.message) from None
