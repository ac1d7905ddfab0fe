"""Options of the commands that connect to a server. Imports nothing that connects until it is asked to."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

if TYPE_CHECKING:
    from a2c_smcp.utils.link import LinkOptions

__all__ = ["COMMAND_SETTINGS", "CaOption", "ProxyOption", "TransportOption", "link_options"]

#: For the `typer.Typer` of a command that is installed. Where `NO_COLOR` is set, nothing is bold either: typer's plain
#: way to print help and errors has no styles at all.
COMMAND_SETTINGS: Final[dict[str, Any]] = {
    "no_args_is_help": True,
    "context_settings": {"help_option_names": ["-h", "--help"]},
    "rich_markup_mode": None if os.environ.get("NO_COLOR") else "rich",
    "pretty_exceptions_enable": False,  # its tracebacks show more than a log should hold
}

TransportOption = Annotated[
    Literal["auto", "websocket", "polling"],
    typer.Option(
        "--transport",
        envvar="A2C_TRANSPORT",
        help="auto: a websocket, and long polling where websockets do not get through.",
    ),
]
ProxyOption = Annotated[
    str | None,
    typer.Option(
        "--proxy",
        envvar="A2C_PROXY",
        metavar="URL",
        help="HTTP proxy, http://[NAME:PASSWORD@]HOST:PORT; an empty one for none.",
        show_default="HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY",
    ),
]
CaOption = Annotated[
    Path | None,
    typer.Option(
        "--ca",
        envvar="A2C_CA",
        metavar="FILE",
        help="Certificates to trust, PEM, besides the system's or SSL_CERT_FILE.",
        show_default=False,
    ),
]


def link_options(url: str, **more: Any) -> "LinkOptions":
    """`LinkOptions`, with what is wrong in them as a usage error of the command."""
    from a2c_smcp.errors import BadRequestError
    from a2c_smcp.utils.link import LinkOptions

    try:
        return LinkOptions(url, **more)
    except BadRequestError as problem:
        raise typer.BadParameter(problem.message) from None
