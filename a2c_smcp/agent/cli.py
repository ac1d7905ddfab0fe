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
from a2c_smcp.terminal.traces import OtelOption, traced

if TYPE_CHECKING:
    from a2c_smcp.agent.commands import CommandOptions, Work
    from a2c_smcp.utils.values import Typed

__all__ = ["ApprovalTimeoutOption", "NameOption", "OfficeOption", "app"]

app = CommandApp(
    name="agent",
    help="Use the computers of an office: their tools, their screens, their documents, and what else they share.",
    add_completion=False,
)

OfficeOption = Annotated[
    str, typer.Option("--office", envvar="A2C_OFFICE", help="The office to join; it has one agent.")
]
ApprovalTimeoutOption = Annotated[
    int | None,
    typer.Option(
        metavar="SECONDS",
        min=1,
        help="Seconds that a person may take to confirm a call; --timeout then counts from the start of the tool.",
        show_default="as part of --timeout",
    ),
]
NameOption = Annotated[str, typer.Option("--name", envvar="A2C_NAME", help="What this agent is called.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Raw = Annotated[
    bool,
    typer.Option(
        "--raw",
        help="Print texts of others unchanged, also at a terminal. Their control characters then act on the terminal.",
    ),
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
        callback=_file,  # the option is checked before the tool runs
        help="Save the image, or other bytes, of the result in this file.",
        show_default=False,
    ),
]
ComputerOption = Annotated[str, typer.Argument(help="The computer's name.", show_default=False)]

ServerOption = Annotated[
    str | None, typer.Option("--server", metavar="NAME", help="Those of this MCP server only.", show_default=False)
]

DEFAULT_NAME: Final = "a2c-agent"
_OTEL: Final = Parameter("otel", Parameter.KEYWORD_ONLY, default=False, annotation=OtelOption)


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
    """The options that every command has. A key from `api_key_file` is already in `api_key`."""
    from a2c_smcp.agent.commands import CommandOptions

    link = link_options(url, api_key=api_key, transport=transport, proxy=proxy, ca=ca)
    return CommandOptions(link, office, name, as_json, raw=raw)


def _command(*, live: bool = False) -> Callable[[Callable[..., "Work"]], None]:
    """Make a command from a function that returns the work to do. The command also has the options of `_session`."""

    def register(work: Callable[..., "Work"]) -> None:
        own, shared = signature(work).parameters, signature(_session).parameters

        def command(**given: Any) -> None:
            from a2c_smcp.agent.commands import run
            from a2c_smcp.utils.logs import configure_logging

            to_do = work(**{name: given[name] for name in own})
            session = _session(**{name: given[name] for name in shared})
            configure_logging("error")
            with traced("a2c-agent", wanted=given["otel"]):
                status = run(replace(session, wait=given.get("wait", 0)), to_do, live=live)
            raise typer.Exit(status)

        # typer reads the parameters from here. The office is the only option that a person must give.
        office, *rest = shared.values()
        parameters = [each.replace(kind=Parameter.KEYWORD_ONLY) for each in (office, *own.values(), *rest, _OTEL)]
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
    """The tools of one computer, or of all computers."""
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
            help="The arguments of the tool: a JSON object, a file that holds one (@- is stdin), or pairs. The value "
            "of a pair is read by the type in the tool's schema. Without a schema it is read as JSON, or else as text.",
            show_default=False,
        ),
    ] = None,
    timeout: Annotated[int, typer.Option(min=1, help="How many seconds the tool may take.")] = 60,
    approval_timeout: ApprovalTimeoutOption = None,
    save: Save = None,
    wait: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            min=0,
            help="Wait this many seconds for the server, the computer and its tool.",
            show_default="10 for tools whose servers are starting",
        ),
    ] = 0,
) -> "Work":
    """Call a tool. Ctrl-C cancels it at the computer."""
    params = _params(arguments or ())
    from a2c_smcp.agent import commands

    return commands.call(computer, tool, params, timeout, save, wait, approval_timeout)


@_command()
def desktop(
    computer: ComputerOption,
    size: Annotated[int | None, typer.Option(min=1, help="Show at most this many windows.")] = None,
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
    keyword: Annotated[list[str] | None, typer.Option(help="Another such word; may be repeated.")] = None,
    file_type: Annotated[str | None, typer.Option(help="Documents of this type, such as pdf.")] = None,
    offset: Annotated[int, typer.Option(min=0, help="Skip this many documents.")] = 0,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Show at most this many.")] = 20,
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
            help="dpe://…, window://…, or another resource that the computer shares; the first page of a document is "
            "DOCUMENT/pages/0, and with ?format=markdown it is text.",
            show_default=False,
        ),
    ],
    save: Save = None,
) -> "Work":
    """Read a document, a page, an element, a window or another resource."""
    from a2c_smcp.agent import resource_commands

    return resource_commands.read(computer, uri, save)


@_command()
def resources(computer: ComputerOption, server: ServerOption = None) -> "Work":
    """The resources that a computer shares beside windows and documents."""
    from a2c_smcp.agent import resource_commands

    return resource_commands.resources(computer, server)


@_command()
def prompts(computer: ComputerOption, server: ServerOption = None) -> "Work":
    """The prompts that a computer shares."""
    from a2c_smcp.agent import resource_commands

    return resource_commands.prompts(computer, server)


@_command()
def prompt(
    computer: ComputerOption,
    server: Annotated[str, typer.Argument(help="The MCP server that has the prompt.", show_default=False)],
    prompt_name: Annotated[str, typer.Argument(metavar="PROMPT", help="The prompt's name.", show_default=False)],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", help="Its arguments; the values are texts.", show_default=False),
    ] = None,
) -> "Work":
    """The messages of a prompt."""
    given: dict[str, str] = {}
    for word in arguments or ():
        key, equals, value = word.partition("=")
        if not equals:
            raise typer.BadParameter(f"{word!r} is not KEY=VALUE")
        given[key] = value
    from a2c_smcp.agent import resource_commands

    return resource_commands.prompt(computer, server, prompt_name, given)


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
