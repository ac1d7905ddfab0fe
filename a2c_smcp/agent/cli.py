"""`a2c agent`: one-shot commands. Each imports what it needs when it runs. Exit status: `terminal/exits.py`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from a2c_smcp.terminal.options import (
    ApiKeyFileOption,
    ApiKeyOption,
    CaOption,
    ProxyOption,
    TransportOption,
    link_options,
)

if TYPE_CHECKING:
    from a2c_smcp.agent.commands import CommandOptions, Work
    from a2c_smcp.link.interface import LinkOptions
    from a2c_smcp.link.ways import Transport
    from a2c_smcp.utils.values import Typed

__all__ = ["DEFAULT_URL", "NameOption", "OfficeOption", "UrlOption", "app"]

app = typer.Typer(
    name="agent",
    help="Use the computers of an office: their tools, their screens and their documents.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,  # its tracebacks show more than a log should hold
)

UrlOption = Annotated[str, typer.Option("--url", envvar="A2C_URL", help="Where the server is.")]
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

DEFAULT_URL: Final = "http://127.0.0.1:7000"
DEFAULT_NAME: Final = "a2c-agent"


@app.command()
def room(
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
) -> None:
    """Who is in the office."""
    from a2c_smcp.agent import commands

    _run(
        commands.CommandOptions(_link(url, api_key, transport, proxy, ca), office, name, as_json, raw=raw),
        commands.room(),
    )


@app.command()
def tools(
    office: OfficeOption,
    computer: Annotated[str | None, typer.Argument(help="One computer only.", show_default=False)] = None,
    url: UrlOption = DEFAULT_URL,
    name: NameOption = DEFAULT_NAME,
    api_key: ApiKeyOption = None,
    api_key_file: ApiKeyFileOption = None,
    transport: TransportOption = "auto",
    proxy: ProxyOption = None,
    ca: CaOption = None,
    as_json: Json = False,
    raw: Raw = False,
) -> None:
    """The tools of a computer, or of all of them."""
    from a2c_smcp.agent import commands

    _run(
        commands.CommandOptions(_link(url, api_key, transport, proxy, ca), office, name, as_json, raw=raw),
        commands.tools(computer),
    )


@app.command()
def call(
    computer: ComputerOption,
    tool: Annotated[str, typer.Argument(help="The tool's name.", show_default=False)],
    office: OfficeOption,
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
    url: UrlOption = DEFAULT_URL,
    name: NameOption = DEFAULT_NAME,
    api_key: ApiKeyOption = None,
    api_key_file: ApiKeyFileOption = None,
    transport: TransportOption = "auto",
    proxy: ProxyOption = None,
    ca: CaOption = None,
    as_json: Json = False,
    raw: Raw = False,
) -> None:
    """Call a tool. Ctrl-C cancels it at the computer."""
    params = _params(arguments or ())
    from a2c_smcp.agent import commands

    work = commands.call(computer, tool, params, timeout, save, wait)
    _run(commands.CommandOptions(_link(url, api_key, transport, proxy, ca), office, name, as_json, wait, raw), work)


@app.command()
def desktop(
    computer: ComputerOption,
    office: OfficeOption,
    size: Annotated[int | None, typer.Option(min=1, help="At most so many windows.")] = None,
    window: Annotated[str | None, typer.Option(metavar="URI", help="This window only.")] = None,
    url: UrlOption = DEFAULT_URL,
    name: NameOption = DEFAULT_NAME,
    api_key: ApiKeyOption = None,
    api_key_file: ApiKeyFileOption = None,
    transport: TransportOption = "auto",
    proxy: ProxyOption = None,
    ca: CaOption = None,
    as_json: Json = False,
    raw: Raw = False,
) -> None:
    """What is on a computer's screen."""
    from a2c_smcp.agent import commands

    _run(
        commands.CommandOptions(_link(url, api_key, transport, proxy, ca), office, name, as_json, raw=raw),
        commands.desktop(computer, size, window),
    )


@app.command()
def finder(
    computer: ComputerOption,
    office: OfficeOption,
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEYWORD]...", help="Documents that have any of these words.", show_default=False),
    ] = None,
    keyword: Annotated[list[str] | None, typer.Option(help="One more such word; repeatable.")] = None,
    file_type: Annotated[str | None, typer.Option(help="Documents of this type, such as pdf.")] = None,
    offset: Annotated[int, typer.Option(min=0, help="Leave out the first ones.")] = 0,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="At most so many.")] = 20,
    url: UrlOption = DEFAULT_URL,
    name: NameOption = DEFAULT_NAME,
    api_key: ApiKeyOption = None,
    api_key_file: ApiKeyFileOption = None,
    transport: TransportOption = "auto",
    proxy: ProxyOption = None,
    ca: CaOption = None,
    as_json: Json = False,
    raw: Raw = False,
) -> None:
    """The documents of a computer."""
    from a2c_smcp.agent import commands

    keywords = [*(words or []), *(keyword or [])]
    work = commands.finder(computer, keywords or None, file_type, offset, limit)
    _run(commands.CommandOptions(_link(url, api_key, transport, proxy, ca), office, name, as_json, raw=raw), work)


@app.command()
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
    office: OfficeOption,
    save: Save = None,
    url: UrlOption = DEFAULT_URL,
    name: NameOption = DEFAULT_NAME,
    api_key: ApiKeyOption = None,
    api_key_file: ApiKeyFileOption = None,
    transport: TransportOption = "auto",
    proxy: ProxyOption = None,
    ca: CaOption = None,
    as_json: Json = False,
    raw: Raw = False,
) -> None:
    """Read a document, a page, an element or a window."""
    from a2c_smcp.agent import commands

    _run(
        commands.CommandOptions(_link(url, api_key, transport, proxy, ca), office, name, as_json, raw=raw),
        commands.read(computer, uri, save),
    )


@app.command()
def config(
    computer: ComputerOption,
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
) -> None:
    """A computer's MCP servers and inputs, without secrets."""
    from a2c_smcp.agent import commands

    _run(
        commands.CommandOptions(_link(url, api_key, transport, proxy, ca), office, name, as_json, raw=raw),
        commands.config(computer),
    )


@app.command()
def watch(
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
) -> None:
    """Print what changes in the office, until Ctrl-C."""
    from a2c_smcp.agent import commands

    _run(
        commands.CommandOptions(_link(url, api_key, transport, proxy, ca), office, name, as_json, raw=raw),
        commands.watch(),
        live=True,
    )


def _params(words: Sequence[str]) -> "Typed":
    from a2c_smcp.errors import BadRequestError
    from a2c_smcp.utils.values import read_values

    try:
        return read_values(words, stdin=True)
    except BadRequestError as problem:
        raise typer.BadParameter(problem.message) from None


def _link(url: str, api_key: str | None, transport: "Transport", proxy: str | None, ca: Path | None) -> "LinkOptions":
    return link_options(url, api_key=api_key, transport=transport, proxy=proxy, ca=ca)


def _run(session: "CommandOptions", work: "Work", *, live: bool = False) -> None:
    from a2c_smcp.agent import commands
    from a2c_smcp.utils.logs import configure_logging

    configure_logging("error")
    raise typer.Exit(commands.run(session, work, live=live))
