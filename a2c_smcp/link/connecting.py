"""Makes a connection by the first transport that gets through, with the proxy and the certificates of the options."""

import asyncio
import os
import ssl
from collections.abc import Callable, Sequence
from urllib.parse import urlencode

from a2c_smcp import __version__
from a2c_smcp.errors import BadRequestError
from a2c_smcp.link.connection import Connection
from a2c_smcp.link.interface import LinkOptions
from a2c_smcp.link.proxies import Proxy, find_proxy
from a2c_smcp.link.transports import Way
from a2c_smcp.link.ways import Failure, attempts, explain, unreachable
from a2c_smcp.smcp import SMCP_NAMESPACE

__all__ = ["connect", "shown_url"]

MakeConnection = Callable[[Proxy | None, ssl.SSLContext | None], Connection]


async def connect(
    options: LinkOptions, office: str | None, make: MakeConnection, *, websockets_are_cut: bool
) -> tuple[Connection, Way]:
    """Connect, and say how. Raises the class of the server's refusal, or `ConnectionLostError`.

    `office` goes into the URL, for a load balancer.
    """
    shown, failures = shown_url(options.url), list[Failure]()
    proxy, tls = find_proxy(options.url, options.proxy, os.environ), _trusting(options.ca)
    tries = attempts(options.transport, websockets_are_cut=websockets_are_cut)
    for transports in tries:
        # The first attempt leaves time for the second: a proxy that blocks websockets may let them wait.
        seconds = options.connect_timeout / (2 if transports is not tries[-1] else 1)
        connection = make(proxy, tls)
        error = await _attempt(connection, options, office, transports, seconds)
        if error is None:
            transport = str(connection.transport())
            no_websocket = failures[0].why if failures and transport == "polling" else ""
            return connection, Way(transport, proxy, no_websocket)
        failures.append(explain(error, shown, proxy))
        if not failures[-1].transport_only:
            break
    raise unreachable(shown, failures)


async def _attempt(
    connection: Connection, options: LinkOptions, office: str | None, transports: Sequence[str], seconds: float
) -> Exception | None:
    """Connect once. Returns the error, or `None` if it is connected. Raises the server's refusal."""
    headers = {"User-Agent": f"a2c-smcp/{__version__}", **options.headers}
    if options.api_key is not None:
        headers[options.api_key_header] = options.api_key
    try:
        async with asyncio.timeout(seconds):
            await connection.connect(
                _addressed(options.url, office),
                headers=headers,
                auth={"token": options.api_key} if options.api_key is not None else None,
                transports=list(transports),
                namespaces=[SMCP_NAMESPACE],
                socketio_path=options.socketio_path,
                wait_timeout=seconds,
            )
    except Exception as error:
        # The libraries raise more than their own errors, for instance a KeyError for a strange greeting.
        await connection.dispose()
        if connection.refusal is not None:
            raise connection.refusal from None
        return connection.failure or error
    except BaseException:
        await connection.dispose()
        raise
    return None


def _addressed(url: str, office: str | None) -> str:
    """The URL with the office for a load balancer. A query that it has is kept."""
    if office is None:
        return url
    return f"{url}{'&' if '?' in url else '?'}{urlencode({'office': office})}"


def shown_url(url: str) -> str:
    """A URL as it may be logged: without user information and query, where people keep secrets."""
    scheme, separator, rest = url.partition("?")[0].rpartition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{separator}{host.rpartition('@')[2]}{slash}{path}"


def _trusting(ca: str | os.PathLike[str] | None) -> ssl.SSLContext | None:
    """A context that trusts this file besides the system's certificates; `None` if there is no file."""
    if ca is None:
        return None
    context = ssl.create_default_context()
    try:
        context.load_verify_locations(ca)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise BadRequestError(f"the certificates in {os.fspath(ca)} cannot be read: {error}") from None
    return context
