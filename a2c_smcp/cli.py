"""`a2c`: the one command. Each subcommand imports its own room when it runs, so that `a2c --help` stays quick."""

import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from a2c_smcp import PROTOCOL_VERSION, __version__
from a2c_smcp.agent.chat_cli import chat
from a2c_smcp.agent.cli import ApprovalTimeoutOption, NameOption, OfficeOption
from a2c_smcp.agent.cli import app as agent_app
from a2c_smcp.computer.cli.main import app as computer_app
from a2c_smcp.docs.cli import app as docs_app
from a2c_smcp.errors import BadRequestError
from a2c_smcp.record.cli import record_app
from a2c_smcp.server.admin.cli import app as admin_app
from a2c_smcp.server.hash_key_cli import hash_key
from a2c_smcp.server.nats_setup_cli import app as server_app
from a2c_smcp.terminal.background_stream import background_stderr
from a2c_smcp.terminal.exits import FAILED
from a2c_smcp.terminal.options import (
    DEFAULT_URL,
    ApiKeyHeaderOption,
    AppGroup,
    CaOption,
    CommandApp,
    ConfigFilesOption,
    InputFilesOption,
    LogFormatOption,
    OptionGroup,
    ProxyOption,
    TransportOption,
    UrlOption,
    key_from_file,
    link_from_options,
    link_options,
    listening_problem,
    secret_option,
    with_option_groups,
)
from a2c_smcp.terminal.quick_end import quick_end, quick_imports
from a2c_smcp.terminal.screen import say
from a2c_smcp.terminal.traces import OtelOption, traced
from a2c_smcp.utils.distribution import DISTRIBUTION, install_command
from a2c_smcp.utils.logs import configure_logging
from a2c_smcp.windows.cli import windows
from a2c_smcp.wire import DEFAULT_MAX_MESSAGE, DEFAULT_MAX_TIMEOUT

if TYPE_CHECKING:
    from a2c_smcp.link.interface import LinkOptions
    from a2c_smcp.office_mcp.command import HttpOptions
    from a2c_smcp.server.admin.setup import AdminOptions

__all__ = ["app", "main"]


class _InOrder(AppGroup):
    """Commands in the order in which people meet them."""

    def list_commands(self, ctx: Any) -> list[str]:
        order = [
            "demo",
            "server",
            "login",
            "whoami",
            "logout",
            "computer",
            "agent",
            "chat",
            "mcp",
            "docs",
            "windows",
            "doctor",
            "uninstall-data",
        ]
        return sorted(super().list_commands(ctx), key=order.index)


app = CommandApp(
    cls=_InOrder,
    help="A2C-SMCP: an agent uses the tools, the screen and the documents of many computers through one server.",
)
app.add_typer(agent_app)
app.command()(chat)
app.add_typer(computer_app)
app.add_typer(docs_app)
app.command()(windows)
server_app.add_typer(admin_app)
server_app.command("hash-key")(hash_key)
app.add_typer(server_app)

LogLevelOption = Annotated[
    Literal["debug", "info", "warning", "error"],
    typer.Option("--log-level", help="The least important lines of the log on stderr."),
]
NatsCredsOption = Annotated[
    Path | None,
    typer.Option("--nats-creds", envvar="A2C_NATS_CREDS", metavar="FILE", help="NATS credentials file."),
]


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
    """Options that stand before the subcommand."""


# --- a2c server


@dataclass(frozen=True)
class KeyFlags:
    """Keys, and what is allowed without one."""

    api_key: Annotated[
        list[str] | None,
        typer.Option(envvar="A2C_API_KEY", help="A key that may do everything; repeatable.", callback=secret_option),
    ] = None
    api_key_file: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="A file that holds such a key; repeatable. `ps` does not show the key."),
    ] = None
    keys: Annotated[Path | None, typer.Option(metavar="FILE", help="TOML file of keys and what each allows.")] = None
    api_key_header: ApiKeyHeaderOption = "x-api-key"
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Without a key: allow this name in Host and Origin, too, not only loopback; repeatable.",
        ),
    ] = None
    cluster_key: Annotated[
        list[str] | None,
        typer.Option(
            envvar="A2C_CLUSTER_KEY",
            help="A key of the cluster key file; repeatable. Others can read it on a command line.",
            callback=secret_option,
        ),
    ] = None


@dataclass(frozen=True)
class TokenFlags:
    """Tokens beside keys: fields of `ServerOptions`."""

    oidc: Annotated[
        str | None,
        typer.Option(
            envvar="A2C_OIDC",
            metavar="URL",
            help="Take the tokens of this issuer (OpenID Connect), too.",
            show_default=False,
        ),
    ] = None
    oidc_audience: Annotated[
        list[str] | None,
        typer.Option(
            envvar="A2C_OIDC_AUDIENCE", metavar="NAME", help="With --oidc: what tokens call this server; repeatable."
        ),
    ] = None
    oidc_rules: Annotated[
        Path | None,
        typer.Option(envvar="A2C_OIDC_RULES", metavar="FILE", help="With --oidc: TOML file of what claims allow."),
    ] = None


@dataclass(frozen=True)
class SignInFlags:
    """What `a2c login` is told: fields of `ServerOptions`."""

    oidc_client_id: Annotated[
        str | None,
        typer.Option(
            envvar="A2C_OIDC_CLIENT_ID",
            metavar="ID",
            help="With --oidc: the client id that a2c login uses at the issuer.",
            show_default="it registers itself",
        ),
    ] = None
    oidc_scope: Annotated[
        list[str] | None,
        typer.Option(
            envvar="A2C_OIDC_SCOPE", metavar="NAME", help="With --oidc: what a2c login asks for, too; repeatable."
        ),
    ] = None


@dataclass(frozen=True)
class ConnectionFlags:
    """Fields of `ServerOptions`."""

    tls_cert: Annotated[Path | None, typer.Option(metavar="FILE", help="Certificate chain, PEM.")] = None
    tls_key: Annotated[Path | None, typer.Option(metavar="FILE", help="Its private key, PEM.")] = None
    ping_interval: Annotated[float, typer.Option(min=0.1, help="Seconds between pings.")] = 10.0
    ping_timeout: Annotated[float, typer.Option(min=0.1, help="Seconds to answer a ping.")] = 10.0
    forwarded_allow_ips: Annotated[
        str,
        typer.Option(help="Proxies whose X-Forwarded-For, -Proto and -Host are believed: addresses, networks or *."),
    ] = "127.0.0.1"


@dataclass(frozen=True)
class DrainFlags:
    """Fields of `DrainTimes`."""

    drain: Annotated[
        float,
        typer.Option(
            min=0,
            help="Seconds from SIGTERM or Ctrl-C to the end, at most: clients move to other servers, and calls finish.",
        ),
    ] = 30.0
    drain_announce: Annotated[
        float, typer.Option(min=0, help="Seconds of these in which the clients are told to move, one after the other.")
    ] = 5.0


@dataclass(frozen=True)
class LimitFlags:
    """Fields of `Limits`."""

    max_message: Annotated[int, typer.Option(min=1024, help="Largest message, in bytes.")] = DEFAULT_MAX_MESSAGE
    max_timeout: Annotated[int, typer.Option(min=1, help="Longest timeout of a tool call, in seconds.")] = (
        DEFAULT_MAX_TIMEOUT
    )
    pending_relays: Annotated[int, typer.Option(min=1, help="Unanswered requests per connection.")] = 1024
    requests_per_second: Annotated[
        float | None,
        typer.Option(min=0.001, help="Requests per second and connection.", show_default="no limit"),
    ] = None
    connections_per_address: Annotated[
        int | None,
        typer.Option(min=1, help="Connections per address, from their first byte on.", show_default="no limit"),
    ] = None
    queued_bytes: Annotated[
        int, typer.Option(min=1024, help="Bytes that may wait for a slow reader before it is disconnected.")
    ] = 64 * 1024 * 1024


@dataclass(frozen=True)
class ClusterFlags:
    """Fields of `ServerOptions`."""

    nats: Annotated[
        str | None,
        typer.Option(
            envvar="A2C_NATS",
            metavar="URL[,URL]",
            help="NATS servers, nats:// or tls://, through which several servers work as one.",
            show_default="none: this server is alone",
        ),
    ] = None
    nats_creds: NatsCredsOption = None
    nats_prefix: Annotated[str, typer.Option(help="The first part of this system's names in NATS.")] = "a2c"
    nats_lease: Annotated[
        int, typer.Option(min=2, help="Seconds of silence after which a server counts as gone; the same for all.")
    ] = 15
    cluster_key_file: Annotated[
        Path | None,
        typer.Option(
            envvar="A2C_CLUSTER_KEY_FILE",
            metavar="FILE",
            help="Keys, one a line, that the servers on NATS share. The first one signs; all are accepted.",
        ),
    ] = None
    accept_unsigned: Annotated[
        bool,
        typer.Option(
            "--accept-unsigned", help="Accept messages of servers that have no cluster key yet; for a rollout only."
        ),
    ] = False


@dataclass(frozen=True)
class AdminDoorFlags:
    """Where operators come in: fields of `AdminOptions`."""

    admin_socket: Annotated[
        str | None,
        typer.Option(
            envvar="A2C_ADMIN_SOCKET",
            metavar="PATH",
            help="The local socket for `a2c server admin`, which only this user may open; none: no socket.",
            show_default="a place that the command finds; the first line shows it",
        ),
    ] = None
    admin: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Let operators in at this port, too, with a key and a page at /admin."),
    ] = None
    admin_key_file: Annotated[
        Path | None,
        typer.Option(envvar="A2C_ADMIN_KEY_FILE", metavar="FILE", help="With --admin: a file that holds its key."),
    ] = None


@dataclass(frozen=True)
class ServerRecordFlags:
    """Fields of `ServerOptions`."""

    record: Annotated[
        Path | None,
        typer.Option(
            envvar="A2C_RECORD",
            metavar="FILE",
            help="Record who joins, leaves and calls which tool, never contents.",
            show_default="no record",
        ),
    ] = None
    record_days: Annotated[float, typer.Option(min=0, help="Days that the record keeps; 0: no limit.")] = 90.0
    record_size: Annotated[int, typer.Option(min=0, metavar="MIB", help="Largest size of the record; 0: no limit.")] = (
        1024
    )


@dataclass(frozen=True)
class ServerRecordPlace:
    """The record of a server."""

    file: Annotated[
        Path, typer.Option(envvar="A2C_RECORD", metavar="FILE", help="The file of the record.", show_default=False)
    ]


server_app.add_typer(record_app(ServerRecordPlace, "a server"))


def _admin_options(flags: AdminDoorFlags, allowed_hosts: tuple[str, ...]) -> "AdminOptions":
    from a2c_smcp.server.admin.setup import AdminOptions

    host, _, port = (flags.admin or "").rpartition(":")
    if flags.admin is not None and not (host and port.isascii() and port.isdigit() and int(port) < 65536):
        raise typer.BadParameter(f"--admin takes HOST:PORT, not {flags.admin!r}")
    key = "" if flags.admin_key_file is None else key_from_file(flags.admin_key_file)
    host = host.removeprefix("[").removesuffix("]")
    return AdminOptions(flags.admin_socket, host, int(port or 0), key, allowed_hosts)


@server_app.callback(invoke_without_command=True)
@with_option_groups
@background_stderr()
def server(
    *,
    context: typer.Context,
    host: Annotated[str, typer.Option(envvar="A2C_HOST", help="Address to bind.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(envvar="A2C_PORT", min=0, max=65535, help="Port to bind; 0 picks one and prints it.")
    ] = 7000,
    keys: KeyFlags,
    tokens: TokenFlags,
    sign_in: SignInFlags,
    connections: ConnectionFlags,
    ending: DrainFlags,
    limits: LimitFlags,
    limits_file: Annotated[
        Path | None,
        typer.Option(
            "--limits", metavar="FILE", help="TOML file of limits instead of these options; it may change meanwhile."
        ),
    ] = None,
    cluster: ClusterFlags,
    operators: AdminDoorFlags,
    recording: ServerRecordFlags,
    otel: OtelOption = False,
    log_level: LogLevelOption = "info",
    log_format: LogFormatOption = "text",
) -> None:
    """Run a server: offices for agents and computers, with health, readiness and metrics over HTTP."""
    if context.invoked_subcommand is not None:
        return
    with quick_imports():
        from a2c_smcp.oidc.token_rules import RulesFileError
        from a2c_smcp.server.auth import KeyFileError
        from a2c_smcp.server.cli import ServerOptions, UsageProblem, serve
        from a2c_smcp.server.draining import DrainTimes
        from a2c_smcp.server.limits import Limits
        from a2c_smcp.server.limits_file import LimitsFileError

    configure_logging(log_level, log_format)
    try:
        options = ServerOptions(
            host,
            port,
            tuple(keys.api_key or ()),
            keys.keys,
            keys.api_key_header,
            allowed_hosts=tuple(keys.allowed_host or ()),
            cluster_keys=tuple(keys.cluster_key or ()),
            api_key_files=tuple(keys.api_key_file or ()),
            admin=_admin_options(operators, tuple(keys.allowed_host or ())),
            limits=Limits(**vars(limits)),
            limits_file=limits_file,
            drain=DrainTimes(ending.drain, ending.drain_announce),
            oidc=tokens.oidc,
            oidc_audiences=tuple(tokens.oidc_audience or ()),
            oidc_rules=tokens.oidc_rules,
            oidc_client_id=sign_in.oidc_client_id,
            oidc_scopes=tuple(sign_in.oidc_scope or ()),
            **vars(connections),
            **vars(cluster),
            **vars(recording),
        )
        with traced("a2c-server", wanted=otel):
            serve(options)
    except UsageProblem as problem:
        raise typer.BadParameter(str(problem)) from None
    except (KeyFileError, LimitsFileError, RulesFileError, OSError) as error:
        say(f"a2c server: {listening_problem(error, '--port')}", err=True)
        raise typer.Exit(FAILED) from None


# --- a2c mcp


def _token_option(context: typer.Context, param: typer.CallbackParam, value: str | None) -> str | None:
    from a2c_smcp.office_mcp.command import NO_TOKEN

    return value if value == NO_TOKEN else secret_option(context, param, value)


def _http_options(
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
            help="With --http: the token that hosts send as Authorization: Bearer …; none: hosts need no token, on "
            "loopback only.",
            callback=_token_option,
            show_default="a new one, which is printed",
        ),
    ] = None,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="With --http: allow this name in Host and Origin, too, not only loopback; repeatable."
        ),
    ] = None,
) -> "HttpOptions | None":
    from a2c_smcp.office_mcp.command import HttpOptions

    return None if http is None else HttpOptions(http, http_host, http_token, tuple(allowed_host or ()))


def _with_people(http: "HttpOptions | None", tokens: TokenFlags) -> "HttpOptions | None":
    """The options for HTTP, with the issuer whose tokens count."""
    if http is None:
        # Variables that are meant for `a2c server` may be set, too.
        return None
    return replace(
        http, oidc=tokens.oidc, oidc_audiences=tuple(tokens.oidc_audience or ()), oidc_rules=tokens.oidc_rules
    )


@app.command()
@background_stderr()
def mcp(
    *,
    office: OfficeOption,
    link: Annotated["LinkOptions", OptionGroup(link_from_options)],
    name: NameOption = "a2c-mcp",
    computer: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Only this computer, as if its MCP servers were local: tools, prompts and resources keep their names.",
            show_default=False,
        ),
    ] = None,
    short: Annotated[
        list[str] | None,
        typer.Option("--as", metavar="NAME=SHORT", help="Call the tools of a computer SHORT__…; repeatable."),
    ] = None,
    search: Annotated[
        Literal["auto", "always", "never"],
        typer.Option(help="Give hosts a search for tools instead of the list. auto: from 40 tools on."),
    ] = "auto",
    timeout: Annotated[
        int, typer.Option(min=1, help="Seconds that a tool may take; the host has a limit of its own.")
    ] = 300,
    approval_timeout: ApprovalTimeoutOption = None,
    http: Annotated["HttpOptions | None", OptionGroup(_http_options)],
    tokens: TokenFlags,
    install: Annotated[
        str | None,
        typer.Option(
            metavar="HOST",
            help="Write the entry for these options into the config of a host (cursor, zed, codex, …), and exit.",
            show_default=False,
        ),
    ] = None,
    otel: OtelOption = False,
    log_level: LogLevelOption = "warning",
    log_format: LogFormatOption = "text",
) -> None:
    """The office as an MCP server, for any MCP host: every computer's tools, windows and documents.

    Without --http it talks over stdin and stdout, and a host starts it. In the host's config:

    {"mcpServers": {"office": {"command": "a2c", "args": ["mcp", "--url", "https://…", "--office", "lab"],
    "env": {"A2C_API_KEY": "…"}}}}

    It starts even if the server does not answer. It then tries again for ever, and its tool list_computers says what is
    wrong.
    """
    if install is not None:
        raise typer.Exit(_install(install, office, link))
    from a2c_smcp.office_mcp.command import OfficeOptions, run

    configure_logging(log_level, log_format)
    options = OfficeOptions(
        replace(link, office=office),
        office,
        name,
        computer,
        _short_names(short or ()),
        search,
        timeout,
        approval_timeout,
        _with_people(http, tokens),
    )
    try:
        with traced("a2c-mcp", wanted=otel):
            run(options)
    except ValueError as problem:
        raise typer.BadParameter(str(problem)) from None
    except OSError as error:
        say(f"a2c mcp: {listening_problem(error, '--http')}", err=True)
        raise typer.Exit(FAILED) from None


def _install(host: str, office: str, link: "LinkOptions") -> int:
    from a2c_smcp.computer.cli.installing import install_entry, known_host
    from a2c_smcp.errors import BadRequestError

    words = sys.argv[sys.argv.index("mcp") + 1 :]
    key = link.api_key if isinstance(link.api_key, str) and "--api-key-file" not in words else None
    for option, value in (("--office", office), ("--url", link.url)):  # a host does not have this shell's variables
        if not any(word.partition("=")[0] == option for word in words):
            words = [option, value, *words]
    try:
        install_entry(known_host(host), office, words, key)
    except (BadRequestError, OSError) as error:
        say(f"a2c mcp: {error}", err=True)
        return FAILED
    return 0


def _short_names(pairs: Iterable[str]) -> dict[str, str]:
    found = {}
    for pair in pairs:
        name, equals, short = pair.rpartition("=")
        if not (equals and name and short):
            raise typer.BadParameter(f"--as takes NAME=SHORT, not {pair!r}")
        found[name] = short
    return found


# --- a2c login, a2c logout, a2c whoami


def _server_place(
    url: UrlOption = DEFAULT_URL,
    transport: TransportOption = "auto",
    proxy: ProxyOption = None,
    ca: CaOption = None,
) -> "LinkOptions":
    return link_options(url, transport=transport, proxy=proxy, ca=ca)


@app.command()
def login(
    *,
    link: Annotated["LinkOptions", OptionGroup(_server_place)],
    way: Annotated[
        Literal["auto", "browser", "device"],
        typer.Option(help="browser: here. device: a code to type in a browser anywhere. auto: what this machine has."),
    ] = "auto",
    issuer: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Who signs you in.", show_default="you are asked about what the server says"),
    ] = None,
    audience: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="What the tokens are for.", show_default="likewise"),
    ] = None,
    client_id: Annotated[
        str | None,
        typer.Option(
            metavar="ID", help="The id of a client that the issuer knows.", show_default="likewise, or a new one"
        ),
    ] = None,
    scope: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="What else the server may ask the issuer for; repeatable."),
    ] = None,
) -> None:
    """Sign in at a server that takes tokens. Every other command then has your token for that server.

    You are asked before a server gets a token from an issuer, or for an audience, that you have not agreed to at this
    server before. Without a terminal give --issuer and --audience, and what else the command then names.
    """
    from a2c_smcp.login import commands
    from a2c_smcp.login.confirming import GivenSignIn

    configure_logging("error")
    scopes = tuple(part for each in scope or [] for part in each.split())
    raise typer.Exit(commands.login(link, way, GivenSignIn(issuer, audience, client_id, scopes)))


@app.command()
def logout(*, link: Annotated["LinkOptions", OptionGroup(_server_place)]) -> None:
    """Forget your sign-in at a server, and have its tokens withdrawn."""
    from a2c_smcp.login import commands

    configure_logging("error")
    raise typer.Exit(commands.logout(link))


@app.command()
def whoami(
    *,
    link: Annotated["LinkOptions", OptionGroup(_server_place)],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead, for programs.")] = False,
) -> None:
    """Show who you are at a server, and whether the server accepts your token."""
    from a2c_smcp.login import commands

    configure_logging("error")
    raise typer.Exit(commands.whoami(link, as_json))


# --- a2c doctor, a2c demo


@app.command()
def doctor(
    *,
    config: ConfigFilesOption = None,
    inputs: InputFilesOption = None,
    link: Annotated["LinkOptions", OptionGroup(link_from_options)],
    office: Annotated[
        str | None,
        typer.Option(help="Also look who is in this office: as its agent, for a moment.", show_default="none"),
    ] = None,
    nats: Annotated[
        str | None,
        typer.Option(envvar="A2C_NATS", metavar="URL[,URL]", help="The NATS servers of `a2c server --nats`."),
    ] = None,
    nats_creds: NatsCredsOption = None,
    nats_prefix: Annotated[str, typer.Option(help="The prefix of `a2c server --nats-prefix`.")] = "a2c",
    ask_registries: Annotated[
        bool,
        typer.Option("--ask-registries", help="Ask npm and PyPI for the packages that servers' commands download."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead, for programs.")] = False,
) -> None:
    """Find what is wrong with this installation, the config files or the server, and say what to do about it."""
    from a2c_smcp.computer.cli.doctor import Examination, examine

    configure_logging("error")
    more = _nats_findings(nats, nats_creds, nats_prefix) if nats is not None else ()
    wanted = Examination(link, [*(config or ()), *(inputs or ())], office, more, ask_registries)
    raise typer.Exit(examine(wanted, as_json=as_json))


def _nats_findings(nats: str, creds: Path | None, prefix: str) -> list[tuple[str, str]]:
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


@app.command("uninstall-data")
def uninstall_data(
    yes: Annotated[bool, typer.Option("--yes", help="Remove it without a question.")] = False,
) -> None:
    """Show what is kept on this disk for you, and remove it after a yes."""
    import sys

    from a2c_smcp import uninstall_data as leaving

    def is_agreed() -> bool:
        if not yes and not sys.stdin.isatty():
            say("There is nobody to ask here: --yes removes it.")
        return yes or (sys.stdin.isatty() and typer.confirm("Remove all of this?"))

    try:
        raise typer.Exit(leaving.uninstall_data(say, is_agreed))
    except BadRequestError as error:  # there is no home
        raise typer.BadParameter(error.message) from None


@app.command()
def demo(
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave everything running, and print commands for another terminal.")
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
