"""`a2c`: the one command. Each subcommand imports its own room when it runs, so that `a2c --help` stays quick."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from a2c_smcp import PROTOCOL_VERSION, __version__
from a2c_smcp.agent.cli import NameOption, OfficeOption
from a2c_smcp.agent.cli import app as agent_app
from a2c_smcp.computer.cli.main import app as computer_app
from a2c_smcp.docs.cli import app as docs_app
from a2c_smcp.server.nats_setup_cli import app as server_app
from a2c_smcp.terminal.background_stream import background_stderr
from a2c_smcp.terminal.exits import FAILED
from a2c_smcp.terminal.options import (
    DEFAULT_KEY_HEADER,
    DEFAULT_URL,
    ApiKeyFileOption,
    ApiKeyHeaderOption,
    ApiKeyOption,
    AppGroup,
    CaOption,
    CommandApp,
    ProxyOption,
    TransportOption,
    UrlOption,
    key_from_file,
    link_options,
    listening_problem,
    secret_option,
)
from a2c_smcp.terminal.quick_end import quick_end, quick_imports
from a2c_smcp.terminal.screen import say
from a2c_smcp.utils.distribution import DISTRIBUTION, install_command
from a2c_smcp.utils.logs import LogFormat, configure_logging
from a2c_smcp.wire import DEFAULT_MAX_MESSAGE, DEFAULT_MAX_TIMEOUT

__all__ = ["app", "main"]


class _InOrder(AppGroup):
    """Commands in the order in which people meet them."""

    def list_commands(self, ctx: Any) -> list[str]:
        order = ["demo", "server", "computer", "agent", "mcp", "docs", "doctor"]
        return sorted(super().list_commands(ctx), key=order.index)


app = CommandApp(
    cls=_InOrder,
    help="A2C-SMCP: an agent uses the tools, the screen and the documents of many computers through one server.",
)
app.add_typer(agent_app)
app.add_typer(computer_app)
app.add_typer(docs_app)
app.add_typer(server_app)

LogLevelOption = Annotated[
    Literal["debug", "info", "warning", "error"], typer.Option(help="What goes to the log on stderr.")
]
LogFormatOption = Annotated[LogFormat, typer.Option(help="For people, or one JSON object a line.")]


def _print_version(wanted: bool) -> None:
    if wanted:
        say(f"{DISTRIBUTION} {__version__} (protocol {PROTOCOL_VERSION})")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Options that stand before any subcommand."""


@server_app.callback(invoke_without_command=True)
@background_stderr()
def server(
    context: typer.Context,
    host: Annotated[str, typer.Option(help="Address to bind.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(envvar="A2C_PORT", min=0, max=65535, help="Port to bind; 0 picks one and prints it.")
    ] = 7000,
    api_key: Annotated[
        list[str] | None,
        typer.Option(envvar="A2C_API_KEY", help="A key that may do everything; repeatable.", callback=secret_option),
    ] = None,
    api_key_file: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="A file with such a key, which `ps` does not show; repeatable."),
    ] = None,
    keys: Annotated[Path | None, typer.Option(metavar="FILE", help="TOML file of keys and what each allows.")] = None,
    api_key_header: ApiKeyHeaderOption = DEFAULT_KEY_HEADER,
    tls_cert: Annotated[Path | None, typer.Option(metavar="FILE", help="Certificate chain, PEM.")] = None,
    tls_key: Annotated[Path | None, typer.Option(metavar="FILE", help="Its private key, PEM.")] = None,
    max_message: Annotated[int, typer.Option(min=1024, help="Largest message, in bytes.")] = DEFAULT_MAX_MESSAGE,
    max_timeout: Annotated[
        int, typer.Option(min=1, help="Longest timeout of a tool call, in seconds.")
    ] = DEFAULT_MAX_TIMEOUT,
    ping_interval: Annotated[float, typer.Option(min=0.1, help="Seconds between pings.")] = 10.0,
    ping_timeout: Annotated[float, typer.Option(min=0.1, help="Seconds to answer a ping.")] = 10.0,
    pending_relays: Annotated[int, typer.Option(min=1, help="Unanswered requests per connection.")] = 1024,
    requests_per_second: Annotated[
        float | None, typer.Option(min=0.001, help="Requests per second and connection; default: no limit.")
    ] = None,
    connections_per_address: Annotated[
        int | None, typer.Option(min=1, help="Connections per address, from their first byte on; default: no limit.")
    ] = None,
    queued_bytes: Annotated[
        int, typer.Option(min=1024, help="Bytes that may wait for a slow reader before it is disconnected.")
    ] = 64 * 1024 * 1024,
    forwarded_allow_ips: Annotated[
        str,
        typer.Option(help="Proxies whose X-Forwarded-For, -Proto and -Host are believed; addresses, networks or *."),
    ] = "127.0.0.1",
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Without a key: one more name, beside those of loopback, that Host and Origin may have; repeatable.",
        ),
    ] = None,
    nats: Annotated[
        str | None,
        typer.Option(
            envvar="A2C_NATS",
            metavar="URL[,URL]",
            help="NATS servers, nats:// or tls://, that several servers share to be one; default: this one is alone.",
        ),
    ] = None,
    nats_creds: Annotated[
        Path | None, typer.Option(envvar="A2C_NATS_CREDS", metavar="FILE", help="NATS credentials file.")
    ] = None,
    nats_prefix: Annotated[str, typer.Option(help="What the names of this system in NATS begin with.")] = "a2c",
    nats_lease: Annotated[
        int, typer.Option(min=2, help="Seconds of silence after which a server counts as gone; the same for all.")
    ] = 15,
    cluster_key_file: Annotated[
        Path | None,
        typer.Option(
            envvar="A2C_CLUSTER_KEY_FILE",
            metavar="FILE",
            help="The key that servers on NATS share and sign with: one a line, the first signs, all are accepted.",
        ),
    ] = None,
    cluster_key: Annotated[
        list[str] | None,
        typer.Option(
            envvar="A2C_CLUSTER_KEY",
            help="Such a key itself; repeatable. On a command line others can read it.",
            callback=secret_option,
        ),
    ] = None,
    accept_unsigned: Annotated[
        bool,
        typer.Option(
            "--accept-unsigned", help="Take messages of servers that have no cluster key yet; for a rollout only."
        ),
    ] = False,
    log_level: LogLevelOption = "info",
    log_format: LogFormatOption = "text",
) -> None:
    """Run a server: offices for agents and computers, with health, readiness and metrics over HTTP."""
    if context.invoked_subcommand is not None:
        return
    with quick_imports():
        from a2c_smcp.server.auth import KeyFileError
        from a2c_smcp.server.cli import ServerOptions, UsageProblem, serve
        from a2c_smcp.server.limits import Limits

    configure_logging(log_level, log_format)
    limits = Limits(
        max_message=max_message,
        max_timeout=max_timeout,
        pending_relays=pending_relays,
        requests_per_second=requests_per_second,
        connections_per_address=connections_per_address,
        queued_bytes=queued_bytes,
    )
    options = ServerOptions(
        host=host,
        port=port,
        api_keys=(*(api_key or ()), *map(key_from_file, api_key_file or ())),
        keys_file=keys,
        api_key_header=api_key_header,
        tls_cert=tls_cert,
        tls_key=tls_key,
        ping_interval=ping_interval,
        ping_timeout=ping_timeout,
        forwarded_allow_ips=forwarded_allow_ips,
        allowed_hosts=tuple(allowed_host or ()),
        limits=limits,
        nats=nats,
        nats_creds=nats_creds,
        nats_prefix=nats_prefix,
        nats_lease=nats_lease,
        cluster_keys=tuple(cluster_key or ()),
        cluster_key_file=cluster_key_file,
        accept_unsigned=accept_unsigned,
    )
    try:
        serve(options)
    except UsageProblem as problem:
        raise typer.BadParameter(str(problem)) from None
    except (KeyFileError, OSError) as error:
        say(f"a2c server: {listening_problem(error, '--port')}", err=True)
        raise typer.Exit(FAILED) from None


@app.command()
@background_stderr()
def mcp(
    office: OfficeOption,
    url: UrlOption = DEFAULT_URL,
    name: NameOption = "a2c-mcp",
    api_key: ApiKeyOption = None,
    api_key_file: ApiKeyFileOption = None,
    computer: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Only this computer; its tools keep their names.", show_default=False),
    ] = None,
    short: Annotated[
        list[str] | None,
        typer.Option("--as", metavar="NAME=SHORT", help="Call the tools of a computer SHORT__…; repeatable."),
    ] = None,
    search: Annotated[
        Literal["auto", "always", "never"],
        typer.Option(help="Hosts get a search for tools instead of their list; auto: from 40 tools on."),
    ] = "auto",
    timeout: Annotated[
        int, typer.Option(min=1, help="Seconds that a tool may take; the host has a limit of its own.")
    ] = 300,
    http: Annotated[
        int | None,
        typer.Option(
            metavar="PORT", min=0, max=65535, help="Serve over streamable HTTP, at /mcp; 0 picks a port and prints it."
        ),
    ] = None,
    http_host: Annotated[str, typer.Option(metavar="ADDRESS", help="With --http: the address to bind.")] = "127.0.0.1",
    http_token: Annotated[
        str | None,
        typer.Option(
            envvar="A2C_MCP_TOKEN",
            help="With --http: what hosts show as Authorization: Bearer …",
            callback=secret_option,
            show_default="a new one, which is printed",
        ),
    ] = None,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="With --http: one more name, beside those of loopback, that Host and Origin may have; repeatable.",
        ),
    ] = None,
    transport: TransportOption = "auto",
    proxy: ProxyOption = None,
    ca: CaOption = None,
    log_level: LogLevelOption = "warning",
    log_format: LogFormatOption = "text",
) -> None:
    """The office as an MCP server, for any MCP host: every computer's tools, windows and documents.

    Without --http it talks over stdin and stdout, and a host starts it itself. In the host's config:

    {"mcpServers": {"office": {"command": "a2c", "args": ["mcp", "--url", "https://…", "--office", "lab"],
    "env": {"A2C_API_KEY": "…"}}}}

    It need not find the server: it is tried for ever, and the tool list_computers says what is wrong.
    """
    from a2c_smcp.office_mcp.command import HttpOptions, OfficeOptions, run

    configure_logging(log_level, log_format)
    link = link_options(url, api_key=api_key, transport=transport, proxy=proxy, ca=ca, office=office)
    over = None if http is None else HttpOptions(http, http_host, http_token, tuple(allowed_host or ()))
    try:
        run(OfficeOptions(link, office, name, computer, _short_names(short or ()), search, timeout, over))
    except ValueError as problem:
        raise typer.BadParameter(str(problem)) from None
    except OSError as error:
        say(f"a2c mcp: {listening_problem(error, '--http')}", err=True)
        raise typer.Exit(FAILED) from None


def _short_names(pairs: Iterable[str]) -> dict[str, str]:
    found = {}
    for pair in pairs:
        name, equals, short = pair.rpartition("=")
        if not (equals and name and short):
            raise typer.BadParameter(f"--as takes NAME=SHORT, not {pair!r}")
        found[name] = short
    return found


@app.command()
def doctor(
    config: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Config file whose commands, URLs and inputs are looked at; repeatable."),
    ] = None,
    inputs: Annotated[list[Path] | None, typer.Option(metavar="FILE", help="File with inputs; repeatable.")] = None,
    url: UrlOption = DEFAULT_URL,
    office: Annotated[
        str | None,
        typer.Option(help="Look who is in this office, too: as its agent, for a moment.", show_default="none"),
    ] = None,
    api_key: ApiKeyOption = None,
    api_key_file: ApiKeyFileOption = None,
    api_key_header: ApiKeyHeaderOption = DEFAULT_KEY_HEADER,
    transport: TransportOption = "auto",
    proxy: ProxyOption = None,
    ca: CaOption = None,
    nats: Annotated[
        str | None,
        typer.Option(envvar="A2C_NATS", metavar="URL[,URL]", help="The NATS servers of `a2c server --nats`."),
    ] = None,
    nats_creds: Annotated[
        Path | None, typer.Option(envvar="A2C_NATS_CREDS", metavar="FILE", help="NATS credentials file.")
    ] = None,
    nats_prefix: Annotated[str, typer.Option(help="The prefix of `a2c server --nats-prefix`.")] = "a2c",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead, for programs.")] = False,
) -> None:
    """Say what is wrong with this installation, the config files or the server, and what to do about it."""
    from a2c_smcp.computer.cli.doctor import Examination, examine

    configure_logging("error")
    link = link_options(url, api_key=api_key, api_key_header=api_key_header, transport=transport, proxy=proxy, ca=ca)
    more = _nats_findings(nats, nats_creds, nats_prefix) if nats is not None else ()
    wanted = Examination(link, [*(config or ()), *(inputs or ())], office, more)
    raise typer.Exit(examine(wanted, as_json=as_json))


def _nats_findings(nats: str, creds: Path | None, prefix: str) -> "list[tuple[str, str]]":
    import asyncio
    from importlib.util import find_spec

    from a2c_smcp.server.cluster.options import ClusterOptions, parse_servers

    if find_spec("nats") is None:
        return [("nats-py is not installed", f"run: {install_command('cluster')}")]
    from a2c_smcp.server.cluster.checks import examine_nats

    try:
        options = ClusterOptions(parse_servers(nats), creds, prefix)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    return asyncio.run(examine_nats(options))


@app.command()
def demo(
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave everything running, and say how to join from another terminal.")
    ] = False,
    console: Annotated[
        bool, typer.Option("--console", help="Afterwards, keep the computer running with its console in the browser.")
    ] = False,
) -> None:
    """A guided tour on this machine: no configuration, no questions, nothing left behind."""
    from a2c_smcp.demo.tour import run

    raise typer.Exit(run(keep, console))


def main() -> None:
    with quick_end():
        app()


if __name__ == "__main__":
    main()
