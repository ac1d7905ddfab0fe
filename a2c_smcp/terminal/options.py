"""Options of the commands that connect to a server. Imports nothing that connects until it is asked to."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from a2c_smcp.terminal.screen import say

if TYPE_CHECKING:
    from a2c_smcp.link.interface import LinkOptions

__all__ = [
    "DEFAULT_KEY_HEADER",
    "DEFAULT_URL",
    "KEY_ADVICE",
    "ApiKeyFileOption",
    "ApiKeyHeaderOption",
    "ApiKeyOption",
    "AppGroup",
    "CaOption",
    "CommandApp",
    "ProxyOption",
    "TransportOption",
    "UrlOption",
    "key_from_file",
    "link_options",
    "listening_problem",
    "secret_option",
]

_Function = TypeVar("_Function", bound=Callable[..., Any])

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

DEFAULT_URL: Final = "http://127.0.0.1:7000"
UrlOption = Annotated[str, typer.Option("--url", envvar="A2C_URL", help="Where the server is.")]
DEFAULT_KEY_HEADER: Final = "x-api-key"
ApiKeyHeaderOption = Annotated[str, typer.Option("--api-key-header", help="Header that carries the key.")]

#: What to do when a server refuses the key, or wants one.
KEY_ADVICE: Final = "give the right key with --api-key-file FILE or A2C_API_KEY"


class _FlagsWithoutType:
    """A command, or a group of them, whose help shows no type beside a flag. typer would show `<bool>`."""

    def get_params(self, ctx: Any) -> list[Any]:
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]  # the class that this is mixed into has it
        for param in params:
            if getattr(param, "is_flag", False) and param.metavar is None:
                param.metavar = ""
        return params


class _PlainCommand(_FlagsWithoutType, TyperCommand):
    pass


class AppGroup(_FlagsWithoutType, TyperGroup):
    """The group of a `CommandApp`, for a group that changes more."""


class CommandApp(typer.Typer):
    """A `typer.Typer` with our settings. Where `NO_COLOR` is set, help and errors have no styles at all: typer's other
    way to print them would still print bold text.
    """

    def __init__(self, **settings: Any) -> None:
        ours = {
            "cls": AppGroup,
            "no_args_is_help": True,
            "context_settings": {"help_option_names": ["-h", "--help"]},
            "rich_markup_mode": None if os.environ.get("NO_COLOR") else "rich",
            "pretty_exceptions_enable": False,  # its tracebacks show more than a log should hold
        }
        super().__init__(**{**ours, **settings})

    def command(self, name: str | None = None, **settings: Any) -> Callable[[_Function], _Function]:
        """As typer's."""
        return super().command(name, **{"cls": _PlainCommand, **settings})


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


def listening_problem(error: Exception, option: str) -> str:
    """Why a command cannot listen, and what to do if its port is taken. `option` is the one that names the port."""
    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        return f"{error.strerror}; name another port with {option}, or 0 for any that is free"
    return str(error)


def link_options(url: str, **more: Any) -> "LinkOptions":
    """`LinkOptions`, with what is wrong in them as a usage error of the command."""
    from a2c_smcp.errors import BadRequestError
    from a2c_smcp.link.interface import LinkOptions

    try:
        return LinkOptions(url, **more)
    except BadRequestError as problem:
        raise typer.BadParameter(problem.message) from None
