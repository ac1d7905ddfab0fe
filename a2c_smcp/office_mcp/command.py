"""What `a2c mcp` does: it takes its seat in the office, and serves MCP hosts over stdio or HTTP until it is stopped."""

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Final

from a2c_smcp.agent.client import AsyncSMCPAgentClient
from a2c_smcp.agent.for_models.office_agent import OfficeAgent
from a2c_smcp.agent.for_models.tool_names import checked_labels
from a2c_smcp.agent.seat.place import NotSharedError
from a2c_smcp.agent.seat.seat_link import shared_seat
from a2c_smcp.errors import BadRequestError, ForbiddenError
from a2c_smcp.link.interface import LinkFactory, LinkOptions
from a2c_smcp.oidc.metadata import checked_url
from a2c_smcp.terminal.quick_end import quick_imports
from a2c_smcp.utils.loops import fast_command_loop
from a2c_smcp.utils.reloading import FileReloads, ReloadPart
from a2c_smcp.web.hosts import is_loopback, is_unspecified

if TYPE_CHECKING:
    from a2c_smcp.mcp_server.people import TokenGate
    from a2c_smcp.office_mcp.tools import SearchMode
from a2c_smcp.terminal.screen import say

__all__ = ["NO_TOKEN", "HttpOptions", "OfficeOptions", "run", "seated"]

logger = logging.getLogger(__name__)

#: Instead of a token: hosts need none.
NO_TOKEN: Final = "none"


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """Where hosts reach the server over HTTP, and which token they need."""

    port: int
    host: str = "127.0.0.1"
    token: str | None = field(default=None, repr=False)
    """If it is `None`, a new token is made and printed. `NO_TOKEN` lets hosts in without one, on loopback only."""
    allowed_hosts: tuple[str, ...] = ()
    oidc: str | None = None
    """The issuer whose tokens let people in, too."""
    oidc_audiences: tuple[str, ...] = ()
    """What tokens call this server. The first one is the URL by which hosts reach it; without any, its own address."""
    oidc_rules: Path | None = None


@dataclass(frozen=True, slots=True)
class OfficeOptions:
    """Which office is served, and how."""

    link: LinkOptions
    office: str
    name: str
    computer: str | None = None
    short_names: Mapping[str, str] = field(default_factory=dict)
    search: "SearchMode" = "auto"
    timeout: int = 300
    approval_timeout: int | None = None
    http: HttpOptions | None = None


def run(options: OfficeOptions) -> None:
    """Serve until the host closes stdin, or until SIGINT or SIGTERM. Raises `ValueError` for options that make no
    sense.
    """
    # This check comes before the seat is taken.
    checked_labels(options.short_names)
    if options.http is not None:
        _check_names(options.http)
    with asyncio.Runner(loop_factory=fast_command_loop) as runner:
        runner.run(_serve(options))


def _check_names(http: HttpOptions) -> None:
    """The kit refuses this, too, but in words for programmers."""
    if http.oidc is None and (http.oidc_audiences or http.oidc_rules):
        raise ValueError("--oidc-audience and --oidc-rules need --oidc")
    if http.oidc is not None and http.token == NO_TOKEN:
        raise ValueError("--http-token none lets everybody in: leave it out with --oidc")
    if http.oidc is not None and not http.oidc_audiences and not is_loopback(http.host):
        raise ValueError("--oidc needs --oidc-audience, the URL by which hosts reach this server, as https://host/mcp")
    try:
        if http.oidc is not None:
            checked_url(http.oidc, "--oidc")
        for audience in http.oidc_audiences[:1]:
            checked_url(audience, "--oidc-audience")
    except BadRequestError as error:
        raise ValueError(error.message) from None
    if is_unspecified(http.host) and not http.allowed_hosts:
        ways = "as in --allowed-host mcp.example.com, or --allowed-host '*' for all"
        raise ValueError(f"say by which names {http.host} is reached, {ways}")
    if http.token == NO_TOKEN and not is_loopback(http.host):
        raise ValueError(
            f"--http-token none is for this machine only: every machine that reaches {http.host} could use the office"
        )
    if http.token == NO_TOKEN and "*" in http.allowed_hosts:
        raise ValueError("--http-token none with --allowed-host '*' would let every web page use the office")


async def _serve(options: OfficeOptions) -> None:
    async with seated(options.link, options.office, options.name) as agent:
        # Importing mcp takes half a second. The office is joined meanwhile.
        await asyncio.to_thread(_import_mcp)
        from a2c_smcp.agent.for_models.remembered_office import remembered_office
        from a2c_smcp.office_mcp.server import office_server

        server = office_server(
            agent,
            computer=options.computer,
            short_names=options.short_names,
            search=options.search,
            timeout=options.timeout,
            approval_timeout=options.approval_timeout,
            memory=remembered_office(options.link.url, options.office, options.computer),
        )
        if options.http is None:
            from a2c_smcp.mcp_server import stdio

            await stdio.serve(server.mcp)
            return
        from a2c_smcp.mcp_server import http

        token, shown = _token(options.http)
        people, parts = (None, []) if options.http.oidc is None else _gate_maker(options.http, options.office)

        def ready(address: str) -> None:
            say(f"a2c mcp ready on {address}; bearer token: {shown}", err=True)

        async with FileReloads(parts) if parts else nullcontext():
            await http.serve(
                server,
                options.http.port,
                host=options.http.host,
                token=token,
                hosts=options.http.allowed_hosts,
                ready=ready,
                people=people,
            )


def _token(http: HttpOptions) -> tuple[str | None, str]:
    """The token that hosts need, and how it is printed."""
    if http.oidc is not None:
        return http.token, f"of {http.oidc}{', or the one that you gave' if http.token else ''}"
    if http.token == NO_TOKEN:
        return None, "none: every program on this machine can use the office"
    if http.token:
        return http.token, "the one that you gave"
    made = secrets.token_urlsafe(24)
    return made, made


def _gate_maker(http: HttpOptions, office: str) -> "tuple[Callable[[str], TokenGate], list[ReloadPart]]":
    """Makes the gate for people, for a server at an address, and the files that it reads again. Raises `ValueError` for
    options that make no sense.
    """
    from a2c_smcp.mcp_server.people import TokenGate
    from a2c_smcp.oidc.checking import CheckedToken, TokenChecker
    from a2c_smcp.oidc.sign_in import SignIn
    from a2c_smcp.oidc.token_rules import TokenRules, load_rules

    rules = TokenRules() if http.oidc_rules is None else load_rules(http.oidc_rules)
    issuer = http.oidc or ""
    gates: list[TokenGate] = []

    async def read_again() -> str:
        nonlocal rules
        assert http.oidc_rules is not None
        rules = await asyncio.to_thread(load_rules, http.oidc_rules)
        for gate in gates:
            gate.checker.change_leeway(rules.leeway)
        return "the rules for tokens"

    def check(token: CheckedToken) -> None:
        """They all act as the one agent of the office, so they must be allowed to be it."""
        allowed = rules.allowed(token.claims)
        if "agent" not in allowed.roles or not any(fnmatchcase(office, each) for each in allowed.offices):
            raise ForbiddenError(f"the rules of this server do not let {allowed.name} use this office")
        logger.debug("a request of %s", allowed.name)

    def make(address: str) -> TokenGate:
        audiences = http.oidc_audiences or (address,)
        gate = TokenGate(TokenChecker(issuer, audiences, leeway=rules.leeway), SignIn(issuer, audiences), check)
        gates.append(gate)
        return gate

    files = () if http.oidc_rules is None else (http.oidc_rules,)
    return make, [ReloadPart("rules for tokens", files, read_again)] if files else []


def _import_mcp() -> None:
    with quick_imports():
        import a2c_smcp.mcp_server.stdio
        import a2c_smcp.office_mcp.server  # noqa: F401


@asynccontextmanager
async def seated(link: LinkOptions, office: str, name: str) -> AsyncIterator[OfficeAgent]:
    """The agent of the office. It connects and joins as soon as possible. The processes of one user share its seat."""
    way: LinkFactory | None = None
    try:
        way = shared_seat(link, office, name)
    except NotSharedError as problem:
        logger.warning("the seat is not shared: %s", problem)
    agent = AsyncSMCPAgentClient(link, name=name, link=way)
    agent.attend(office)
    try:
        yield agent
    finally:
        await agent.close()
