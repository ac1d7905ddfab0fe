"""What `a2c mcp` does: takes its seat in the office, and serves MCP hosts over stdio or HTTP until it is to end."""

import asyncio
import secrets
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from a2c_smcp.agent.client import AsyncSMCPAgentClient
from a2c_smcp.mcp_server import http, stdio
from a2c_smcp.office_mcp.agent import OfficeAgent
from a2c_smcp.office_mcp.server import DEFAULT_TIMEOUT, office_server
from a2c_smcp.office_mcp.tools import SearchMode
from a2c_smcp.utils.link import LinkOptions
from a2c_smcp.utils.loops import fast_command_loop

__all__ = ["HttpOptions", "OfficeOptions", "run", "seated"]


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """Where hosts reach the server over HTTP, and what they have to show."""

    port: int
    host: str = "127.0.0.1"
    token: str | None = field(default=None, repr=False)
    """Without one, a new one is made and printed."""
    allowed_hosts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OfficeOptions:
    """Which office is served, and how."""

    link: LinkOptions
    office: str
    name: str
    computer: str | None = None
    short_names: Mapping[str, str] = field(default_factory=dict)
    search: SearchMode = "auto"
    timeout: int = DEFAULT_TIMEOUT
    http: HttpOptions | None = None


def run(options: OfficeOptions) -> None:
    """Serve until the host closes stdin, or SIGINT or SIGTERM comes; `ValueError` for options that make no sense."""
    with asyncio.Runner(loop_factory=fast_command_loop) as runner:
        runner.run(_serve(options))


async def _serve(options: OfficeOptions) -> None:
    async with seated(options.link, options.office, options.name) as agent:
        server = office_server(
            agent,
            computer=options.computer,
            short_names=options.short_names,
            search=options.search,
            timeout=options.timeout,
        )
        if options.http is None:
            await stdio.serve(server.mcp)
            return
        token = options.http.token or secrets.token_urlsafe(24)

        def ready(address: str) -> None:
            shown = "the one that you gave" if options.http and options.http.token else token
            print(f"a2c mcp ready on {address}; bearer token: {shown}", file=sys.stderr, flush=True)

        await http.serve(
            server,
            options.http.port,
            host=options.http.host,
            token=token,
            hosts=options.http.allowed_hosts,
            ready=ready,
        )


@asynccontextmanager
async def seated(link: LinkOptions, office: str, name: str) -> AsyncIterator[OfficeAgent]:
    """The agent of the office, which connects and joins as soon as it can be done."""
    agent = AsyncSMCPAgentClient(link, name=name)
    agent.attend(office)
    try:
        yield agent
    finally:
        await agent.close()
