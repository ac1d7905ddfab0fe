"""What `a2c doctor` checks in config files: commands, URLs of MCP servers, and inputs.

It starts nothing, asks nobody, and shows no value of an input.
"""

import asyncio
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx2

from a2c_smcp.computer.cli.package_checks import downloaded_package, is_there
from a2c_smcp.computer.cli.web_answers import speaks
from a2c_smcp.computer.config.files import ConfigFiles
from a2c_smcp.computer.config.problems import InvalidConfigError
from a2c_smcp.computer.inputs import ConfigRender
from a2c_smcp.computer.inputs.env import variable_of
from a2c_smcp.computer.mcp_clients.http.failures import explain_error
from a2c_smcp.computer.mcp_clients.masking import masked_url
from a2c_smcp.computer.mcp_clients.model import (
    CommandInput,
    MCPServerConfig,
    MCPServerInput,
    SSEParameters,
    StdioParameters,
    StreamableHttpParameters,
    parse_server,
    parse_unrendered,
)
from a2c_smcp.computer.utils.placeholder import holds_placeholder
from a2c_smcp.utils.text import printable

__all__ = ["Finding", "examine_config"]

_EVENTS: Final = "text/event-stream"
_PAGE: Final = "text/html"
_NOT_THERE: Final = "start it, or correct its url"
_WANTS_HTTPS: Final = "write https:// in its url"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was checked. `advice` says what to do about it; it is empty if all is well."""

    what: str
    advice: str = ""

    def __str__(self) -> str:
        return f"✗ {self.what}\n    {self.advice}" if self.advice else f"✓ {self.what}"


def examine_config(config: ConfigFiles, *, ask_registries: bool = False) -> Iterator[Finding]:
    """With `ask_registries`, npm and PyPI are asked for the packages that the commands of servers download."""
    for problem in config.problems:
        yield Finding(str(problem), "correct that file; `a2c computer validate` lists all problems")
    if not config.problems:
        yield Finding(f"config files: {len(config.servers)} servers, {len(config.inputs)} inputs")
    known = dict(filter(None, map(_known, config.inputs)))
    servers = [server for server in (_CheckedServer(raw, known) for raw in config.servers) if not server.is_off]
    yield from _inputs(config, servers)
    yield from asyncio.run(_examine(servers, ask_registries))


class _CheckedServer:
    """A config as it is written, and as it would run if all its values are known."""

    def __init__(self, raw: dict[str, Any], known: Mapping[str, Any]) -> None:
        self.written: MCPServerConfig = parse_unrendered(raw)
        self.template = ConfigRender(raw)
        self.rendered: MCPServerConfig | None = None
        with suppress(InvalidConfigError):  # a missing value is a finding of its own
            self.rendered = parse_server(self.template.render(known, os.environ))

    @property
    def subject(self) -> str:
        return f"server {printable(self.written.name)!r}"

    @property
    def is_off(self) -> bool:
        return (self.rendered or self.written).disabled is True


async def _examine(servers: list[_CheckedServer], ask_registries: bool) -> list[Finding]:
    return await asyncio.gather(*(_examine_one(server, ask_registries) for server in servers))


async def _examine_one(server: _CheckedServer, ask_registries: bool) -> Finding:
    written: object = server.written.server_parameters
    if isinstance(written, StdioParameters):
        found = _command(server.subject, written)
        return found if found.advice else await _package(found, written, ask_registries)
    if isinstance(written, StreamableHttpParameters | SSEParameters):
        return await _url(server, written)
    return _unknown(server.subject, "what it needs")  # a placeholder stands for all of it


def _unknown(subject: str, what: str) -> Finding:
    return Finding(f"{subject}: {what} depends on inputs that are known only when it starts")


# --- inputs


def _known(definition: MCPServerInput) -> tuple[str, Any] | None:
    """The value that an input has before a person is asked."""
    value = os.environ.get(variable_of(definition.id), definition.fallback)
    return None if value is None else (definition.id, value)


def _inputs(config: ConfigFiles, servers: list[_CheckedServer]) -> Iterator[Finding]:
    needed = {input_id for server in servers for input_id in server.template.inputs}
    for definition in config.inputs:
        if definition.id in needed and _known(definition) is None:
            yield _without_value(definition)
    for server in servers:
        for problem in server.template.unset(os.environ):
            yield Finding(
                f"{server.subject}: {printable(str(problem))}", "set the variable, or write its value into the file"
            )


def _without_value(definition: MCPServerInput) -> Finding:
    subject = f"input {printable(definition.id)!r}"
    if isinstance(definition, CommandInput):
        return Finding(f"{subject}: its command will run when a server needs the value")
    return Finding(
        f"{subject} has no value",
        f"set {variable_of(definition.id)}, or give it a default: with --headless nobody is asked",
    )


# --- commands


def _command(subject: str, parameters: StdioParameters) -> Finding:
    env: object = parameters.env
    path = env.get("PATH") if isinstance(env, dict) else None
    if any(map(holds_placeholder, (parameters.command, parameters.cwd, env, path))):
        return _unknown(subject, "its command")
    folder = Path(parameters.cwd or ".").absolute()
    if not folder.is_dir():
        return Finding(
            f"{subject}: there is no folder {printable(str(folder))}", "create it, or correct server_parameters.cwd"
        )
    command = parameters.command
    found = shutil.which(str(folder / command) if os.sep in command else command, path=path or os.environ.get("PATH"))
    if found is None:
        return Finding(
            f"{subject}: the command {printable(command)!r} is not found",
            "install it, or correct server_parameters.command",
        )
    return Finding(f"{subject}: {printable(found)}")


async def _package(found: Finding, parameters: StdioParameters, ask_registries: bool) -> Finding:
    """The finding about a command, with what is known of the package that it downloads."""
    package = downloaded_package(parameters.command, parameters.args or ())
    if package is None:
        return found
    name = printable(package.name)
    if not ask_registries:
        return Finding(f"{found.what}; not checked: whether {package.registry} has {name} (--ask-registries does)")
    match await is_there(package):
        case True:
            return Finding(f"{found.what}; {package.registry} has {name}")
        case None:
            return Finding(f"{found.what}; {package.registry} could not be asked for {name}")
    return Finding(f"{found.what}; {package.registry} has no {name}", "correct the name of the package in its args")


# --- URLs


async def _url(server: _CheckedServer, written: StreamableHttpParameters | SSEParameters) -> Finding:
    if server.rendered is None:
        return _unknown(server.subject, "its URL")
    parameters = server.rendered.server_parameters
    assert isinstance(parameters, StreamableHttpParameters | SSEParameters)
    subject = f"{server.subject}: {printable(masked_url(written.url))}"
    try:
        status, kind = await _head(parameters)
    except (httpx2.HTTPError, OSError) as error:
        return await _unanswered(subject, parameters.url, error)
    except httpx2.InvalidURL:  # its message has parts of the URL, perhaps a password
        return Finding(f"{subject} is not a valid URL", "correct its url")
    except UnicodeError:
        return Finding(f"{subject}: its URL or a header has a character that HTTP cannot send", "remove it")
    except (ValueError, ImportError) as error:  # for example a proxy of another kind
        return Finding(
            f"{subject} cannot be reached: {printable(str(error))}",
            "correct its url, or the variable HTTPS_PROXY, HTTP_PROXY or ALL_PROXY",
        )
    if status == 400 and await _speaks_tls(parameters.url):
        return Finding(f"{subject} speaks TLS", _WANTS_HTTPS)
    return _answered(subject, status, kind, isinstance(parameters, SSEParameters))


async def _unanswered(subject: str, url: str, error: Exception) -> Finding:
    """No HTTP answer came: the reason, in the words that a computer has for it."""
    if isinstance(error, httpx2.RemoteProtocolError | httpx2.ReadError) and await _speaks_tls(url):
        return Finding(f"{subject} speaks TLS", _WANTS_HTTPS)
    found = explain_error(error, url, os.environ)
    if found is None:
        return Finding(f"{subject} does not answer: {type(error).__name__}", _NOT_THERE)
    return Finding(f"{subject}: {printable(found.problem)}", found.advice or _NOT_THERE)


async def _speaks_tls(url: str) -> bool:
    """Whether the server at an http:// URL speaks TLS."""
    return url.startswith("http:") and await speaks(url, "/", tls=True) is not None


async def _head(parameters: StreamableHttpParameters | SSEParameters) -> tuple[int, str]:
    """The status and the content type of a GET. It opens no session, and the body is not read."""
    headers = {"accept": f"application/json, {_EVENTS}", **(parameters.headers or {})}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=10.0) as http,
        http.stream("GET", parameters.url) as response,
    ):
        return response.status_code, response.headers.get("content-type", "").partition(";")[0].strip().lower()


def _answered(subject: str, status: int, kind: str, is_sse: bool) -> Finding:
    answers = f"{subject} answers"
    match status:
        case 401 | 403:
            return Finding(f"{answers}, but refuses access (HTTP {status})", "correct its headers")
        case 404 | 410:
            return Finding(f"{answers}, but has nothing at this path (HTTP {status})", "correct the path in its url")
        case _ if 300 <= status < 400:
            return Finding(f"{answers}, but has moved (HTTP {status})", "correct its url")
        case _ if status >= 500:
            return Finding(f"{answers}, but fails (HTTP {status})", "ask its administrator")
        case 200 if kind == _PAGE:
            return Finding(f"{answers} with a web page; it is not an MCP server", "correct its url")
        case _ if is_sse and not (status == 200 and kind == _EVENTS):
            return Finding(
                f"{answers}, but not as an SSE server (HTTP {status})", "correct its url, or try the type streamable"
            )
    return Finding(answers)
