"""Options of the commands that connect to a server. Imports nothing that connects until a command needs it."""

import errno
import os
from collections.abc import Callable
from dataclasses import is_dataclass
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeVar, cast

import typer
from typer.core import TyperCommand, TyperGroup

from a2c_smcp.terminal.screen import say
from a2c_smcp.utils.logs import LogFormat

if TYPE_CHECKING:
    from a2c_smcp.link.interface import LinkOptions

__all__ = [
    "DEFAULT_URL",
    "KEY_ADVICE",
    "ApiKeyFileOption",
    "ApiKeyHeaderOption",
    "ApiKeyOption",
    "AppGroup",
    "CaOption",
    "CommandApp",
    "ConfigFilesOption",
    "InputFilesOption",
    "LogFormatOption",
    "OptionGroup",
    "ProxyOption",
    "TransportOption",
    "UrlOption",
    "key_from_file",
    "link_from_options",
    "link_options",
    "listening_problem",
    "secret_option",
    "with_option_groups",
]

_Function = TypeVar("_Function", bound=Callable[..., Any])

#: Where a command keeps the key of --api-key-file until --api-key is read.
_KEY: Final = "a2c_smcp.api_key"


def key_from_file(path: Path) -> str:
    """The key in a file. A file without a usable key is a usage error. Warns if others may read the file."""
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
    """The callback of an option that takes a secret. It warns on stderr if the secret was typed on the command line."""
    if value and _is_typed(context, param):
        option = param.opts[0]
        safe = [f"{option}-file FILE"] if option in ("--api-key", "--cluster-key") else []
        if isinstance(param.envvar, str):
            safe.append(param.envvar)
        say(f"hint: {option} shows its secret in the list of processes; {' or '.join(safe)} does not", err=True)
    return value


def _is_typed(context: typer.Context, param: typer.CallbackParam) -> bool:
    source = context.get_parameter_source(param.name or "")
    return source is not None and source.name == "COMMANDLINE"


def _read_key(context: typer.Context, path: Path | None) -> Path | None:
    if path is not None:
        context.meta[_KEY] = key_from_file(path)
    return path


def _one_key(context: typer.Context, param: typer.CallbackParam, key: str | None) -> str | None:
    """The key of --api-key-file, or else of --api-key. The file wins over the environment, which all commands share."""
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
        help="A file that holds the key. The list of processes does not show such a key.",
        show_default=False,
        callback=_read_key,
        is_eager=True,  # it is read before --api-key, and becomes its value
    ),
]

DEFAULT_URL: Final = "http://127.0.0.1:7000"
UrlOption = Annotated[str, typer.Option("--url", envvar="A2C_URL", help="The server's address.")]
ApiKeyHeaderOption = Annotated[str, typer.Option("--api-key-header", help="The HTTP header that carries the key.")]
ConfigFilesOption = Annotated[
    list[Path] | None, typer.Option("--config", metavar="FILE", help="Config file; repeatable.")
]
InputFilesOption = Annotated[
    list[Path] | None, typer.Option("--inputs", metavar="FILE", help="Inputs file; repeatable.")
]
LogFormatOption = Annotated[
    LogFormat, typer.Option("--log-format", help="text: log lines for people. json: one JSON object a line.")
]

#: The advice after a server has refused the key, or wants one.
KEY_ADVICE: Final = "give the right key with --api-key-file FILE or A2C_API_KEY, or sign in with a2c login"


class _FlagsWithoutType:
    """A command or a group whose help shows no type beside a flag. typer would show `<bool>`."""

    def get_params(self, ctx: Any) -> list[Any]:
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]  # the class that this is mixed into has it
        for param in params:
            if getattr(param, "is_flag", False) and param.metavar is None:
                param.metavar = ""
        return params


class _PlainCommand(_FlagsWithoutType, TyperCommand):
    pass


class AppGroup(_FlagsWithoutType, TyperGroup):
    """The group of a `CommandApp`. A group of commands that needs more is a subclass of it."""


class CommandApp(typer.Typer):
    """A `typer.Typer` with our settings, whose commands may have option groups.

    With `NO_COLOR`, help and errors have no styles at all: typer would still print bold text.
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
        """Like typer's own method. In addition, the parameters of the function may be option groups."""
        register = super().command(name, **{"cls": _PlainCommand, **settings})

        def add(function: _Function) -> _Function:
            register(with_option_groups(function))
            return function

        return add


class OptionGroup:
    """Marks a parameter as a group of options: `link: Annotated[LinkOptions, OptionGroup(link_from_options)]`. The
    command gets the parameters of `link_from_options` as options, and `link` is what that function returns.
    """

    def __init__(self, make: Callable[..., Any]) -> None:
        self.make = make


def with_option_groups(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as typer wants it: each parameter that is a group becomes the options of that group.

    A group is marked with `OptionGroup`, or is a dataclass whose fields are options.
    """
    groups: dict[str, Callable[..., Any]] = {}
    parameters: list[Parameter] = []
    for name, parameter in signature(function).parameters.items():
        if (make := _maker(parameter.annotation)) is None:
            parameters.append(parameter)
        else:
            groups[name] = make
            parameters += signature(make).parameters.values()

    def command(**given: Any) -> Any:
        made = {
            name: make(**{each: given.pop(each) for each in signature(make).parameters})
            for name, make in groups.items()
        }
        return function(**made, **given)

    command.__name__, command.__doc__ = function.__name__, function.__doc__
    keywords = [parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in parameters]
    cast(Any, command).__signature__ = Signature(keywords)
    return command


def _maker(annotation: Any) -> Callable[..., Any] | None:
    if isinstance(annotation, type) and is_dataclass(annotation):
        return annotation
    marks = getattr(annotation, "__metadata__", ())
    return next((mark.make for mark in marks if isinstance(mark, OptionGroup)), None)


TransportOption = Annotated[
    Literal["auto", "websocket", "polling"],
    typer.Option(
        "--transport",
        envvar="A2C_TRANSPORT",
        help="auto: a websocket, or long polling where websockets do not get through.",
    ),
]
ProxyOption = Annotated[
    str | None,
    typer.Option(
        "--proxy",
        envvar="A2C_PROXY",
        metavar="URL",
        help="HTTP proxy, http://[NAME:PASSWORD@]HOST:PORT; empty: no proxy.",
        show_default="HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY",
    ),
]
CaOption = Annotated[
    Path | None,
    typer.Option(
        "--ca",
        envvar="A2C_CA",
        metavar="FILE",
        help="PEM file of certificates to trust, beside those of the system or of SSL_CERT_FILE.",
        show_default=False,
    ),
]


def listening_problem(error: Exception, option: str) -> str:
    """Why a command cannot listen, and what to do if its port is taken. `option` is the option for the port."""
    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        return f"{error.strerror}; name another port with {option}, or 0 for any free port"
    return str(error)


def link_options(url: str, **more: Any) -> "LinkOptions":
    """`LinkOptions`; a wrong value is a usage error of the command. Without a key, the token of `a2c login` counts."""
    from a2c_smcp.errors import BadRequestError
    from a2c_smcp.link.interface import LinkOptions
    from a2c_smcp.login.fresh_tokens import login_for

    if more.get("api_key") is None:
        more["api_key"] = login_for(url)
    try:
        return LinkOptions(url, **more)
    except BadRequestError as problem:
        raise typer.BadParameter(problem.message) from None


def link_from_options(
    url: UrlOption = DEFAULT_URL,
    api_key: ApiKeyOption = None,
    api_key_file: ApiKeyFileOption = None,  # its key is in `api_key` by now
    api_key_header: ApiKeyHeaderOption = "x-api-key",
    transport: TransportOption = "auto",
    proxy: ProxyOption = None,
    ca: CaOption = None,
) -> "LinkOptions":
    """The connection that a command's options describe. It is made for an `OptionGroup`."""
    return link_options(url, api_key=api_key, api_key_header=api_key_header, transport=transport, proxy=proxy, ca=ca)
