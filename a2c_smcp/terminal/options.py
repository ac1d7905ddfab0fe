"""Options of the commands that connect to a server. Imports nothing that connects until it is asked to."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from a2c_smcp.terminal.screen import say

if TYPE_CHECKING:
    from a2c_smcp.link.interface import LinkOptions

__all__ = [
    "COMMAND_SETTINGS",
    "KEY_ADVICE",
    "ApiKeyFileOption",
    "ApiKeyOption",
    "CaOption",
    "ProxyOption",
    "TransportOption",
    "key_from_file",
    "link_options",
    "secret_option",
]

#: Where a command keeps the key of --api-key-file until --api-key is looked at.
_KEY: Final = "a2c_smcp.api_key"
#: Options that have another one beside them, for a file.
_IN_FILES: Final = ("api_key", "cluster_key")


def key_from_file(path: Path) -> str:
    """The key in a file, with what is wrong with it as a usage error; says on stderr who else may read it."""
    from a2c_smcp.errors import BadRequestError
    from a2c_smcp.utils.secret_files import exposure, key_in

    try:
        key = key_in(path)
    except BadRequestError as problem:
        raise typer.BadParameter(problem.message) from None
    if (warning := exposure(path)) is not None:
        say(f"warning: {warning}", err=True)
    return key


def secret_option(context: typer.Context, param: typer.CallbackParam, value: Any) -> Any:
    """The callback of an option that takes a secret: a word on stderr if it came over the command line."""
    if value and _is_typed(context, param):
        safe = [f"--{param.name}-file FILE".replace("_", "-")] if param.name in _IN_FILES else []
        if isinstance(param.envvar, str):
            safe.append(param.envvar)
        say(
            f"hint: {param.opts[0]} shows its secret in the list of processes; {' or '.join(safe)} does not",
            err=True,
        )
    return value


def _is_typed(context: typer.Context, param: typer.CallbackParam) -> bool:
    source = context.get_parameter_source(param.name or "")
    return source is not None and source.name == "COMMANDLINE"


def _read_key(context: typer.Context, path: Path | None) -> Path | None:
    if path is not None:
        context.meta[_KEY] = key_from_file(path)
    return path


def _one_key(context: typer.Context, param: typer.CallbackParam, key: str | None) -> str | None:
    """The key of --api-key-file if there is one: a variable of the environment is for all commands, a file for one."""
    if _KEY not in context.meta:
        secret_option(context, param, key)
        return key
    if _is_typed(context, param):
        raise typer.BadParameter("give --api-key or --api-key-file, not both")
    return str(context.meta[_KEY])


ApiKeyOption = Annotated[
    str | None,
    typer.Option("--api-key", envvar="A2C_API_KEY", help="The key for the server.", callback=_one_key),
]
ApiKeyFileOption = Annotated[
    Path | None,
    typer.Option(
        "--api-key-file",
        metavar="FILE",
        help="A file with the key, which others cannot see in the list of processes.",
        show_default=False,
        callback=_read_key,
        is_eager=True,  # before --api-key, whose value it becomes
    ),
]

#: What to do when a server refuses the key, or wants one.
KEY_ADVICE: Final = "give the right key with --api-key-file FILE or A2C_API_KEY"

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
    from a2c_smcp.link.interface import LinkOptions

    try:
        return LinkOptions(url, **more)
    except BadRequestError as problem:
        raise typer.BadParameter(problem.message) from None
