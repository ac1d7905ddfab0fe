"""Makes a connection by the first transport that gets through, with the proxy and the certificates of the options.

It also finds out which dialect the server speaks, and comes back with the server's version if it refuses ours.
"""

import asyncio
import logging
import os
import ssl
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from inspect import isawaitable
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit

import aiohttp

from a2c_smcp import __version__
from a2c_smcp.dialects.handshake import PROBE_QUERY, SPOKEN_VERSION, Dialect, client_query, refused_version
from a2c_smcp.errors import BadRequestError, ConnectionLostError, SMCPError
from a2c_smcp.link.connection import Connection
from a2c_smcp.link.interface import LinkOptions
from a2c_smcp.link.proxies import Proxy, find_proxy
from a2c_smcp.link.transports import Way
from a2c_smcp.link.ways import Failure, attempts, explain, unreachable
from a2c_smcp.smcp import SMCP_NAMESPACE

__all__ = ["connect", "current_key", "shown_url", "trusting"]

#: Seconds that the source of keys has. It may have to ask an issuer.
_KEY_SECONDS: Final = 30.0

logger = logging.getLogger(__name__)

MakeConnection = Callable[[Proxy | None, ssl.SSLContext | None], Connection]
#: The HTTP status with which a server refuses the version of a client.
_BAD_REQUEST: Final = 400
#: Bytes of the answer to the question for a server's version.
_LONGEST_ANSWER: Final = 4096


async def connect(
    options: LinkOptions,
    office: str | None,
    make: MakeConnection,
    *,
    websockets_are_cut: bool,
    version: str = SPOKEN_VERSION,
) -> tuple[Connection, Way]:
    """Connect, and say how. Raises the class of the server's refusal, or `ConnectionLostError`.

    `office` goes into the URL, for a load balancer. `version` is the one that the server is told.
    """
    shown, failures = shown_url(options.url), list[Failure]()
    key = await current_key(options)
    proxy = None if options.connector is not None else find_proxy(options.url, options.proxy, os.environ)
    tls = trusting(options.ca)
    tries = attempts(options.transport, websockets_are_cut=websockets_are_cut)
    for transports in tries:
        # The first attempt leaves time for the second: a proxy that blocks websockets may let them wait.
        seconds = options.connect_timeout / (2 if transports is not tries[-1] else 1)
        connection = make(proxy, tls)
        connection.key = key
        query = {**client_query(version), **({} if office is None else {"office": office})}
        error = await _attempt(connection, options, query, transports, seconds)
        if error is None:
            if connection.dialect is not Dialect.OURS:
                await _learn_dialect(connection, options)
            transport = str(connection.transport())
            no_websocket = failures[0].why if failures and transport == "polling" else ""
            return connection, Way(transport, proxy, no_websocket)
        if version == SPOKEN_VERSION and isinstance(error, aiohttp.ClientResponseError):
            theirs = None
            if error.status == _BAD_REQUEST:
                with suppress(ConnectionLostError):  # the refusal says more
                    theirs = await _version_of(connection, options)
            if theirs not in (None, version):
                again = websockets_are_cut
                return await connect(options, office, make, websockets_are_cut=again, version=str(theirs))
        if connection.refusal is not None:
            raise connection.refusal
        failures.append(explain(error, shown, proxy))
        if not failures[-1].transport_only:
            break
    raise unreachable(shown, failures)


async def _attempt(
    connection: Connection, options: LinkOptions, query: Mapping[str, str], transports: Sequence[str], seconds: float
) -> Exception | None:
    """Connect once. Returns the error, or `None` if it is connected. A refusal of the server is in `connection`."""
    headers, key = _headers(options), connection.key
    if key is not None:
        headers[options.api_key_header] = key
    try:
        async with asyncio.timeout(seconds):
            await connection.connect(
                _addressed(options.url, query),
                headers=headers,
                auth={"token": key} if key is not None else None,
                transports=list(transports),
                namespaces=[SMCP_NAMESPACE],
                socketio_path=options.socketio_path,
                wait_timeout=seconds,
            )
        _heed_cancellation()
    except Exception as error:
        # The libraries raise more than their own errors, for instance a KeyError for a strange greeting.
        await connection.dispose()
        _heed_cancellation()
        return connection.failure or error
    except BaseException:
        await connection.dispose()
        raise
    return None


def _heed_cancellation() -> None:
    """Raise the cancellation of this task that a library has swallowed: `asyncio.wait_for` of Python 3.11, by which
    python-socketio waits, does so if the answer comes at the same moment. Who closes the link would wait for ever.
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


async def current_key(options: LinkOptions) -> str | None:
    """The key or the token to show now. Raises `ConnectionLostError` if the source of keys takes too long or fails, and
    its own `SMCPError`.
    """
    if not callable(options.api_key):
        return options.api_key
    try:
        async with asyncio.timeout(_KEY_SECONDS):
            given = options.api_key()
            return await given if isawaitable(given) else given
    except TimeoutError:
        raise ConnectionLostError(f"no key or token for the server within {_KEY_SECONDS:g} s") from None
    except SMCPError:
        raise
    except Exception as error:
        # A source is not our code. Its issuer may be away for a moment, so the client tries again.
        logger.warning("the source of the key has failed", exc_info=error)
        raise ConnectionLostError(f"the source of the key has failed: {type(error).__name__}") from None


def _headers(options: LinkOptions) -> dict[str, str]:
    return {"User-Agent": f"a2c-smcp/{__version__}", **options.headers}


async def _learn_dialect(connection: Connection, options: LinkOptions) -> None:
    """Find out what the server speaks that has accepted this client. Only a server of ours says so by itself."""
    try:
        version = await _version_of(connection, options)
    except BaseException:
        await connection.dispose()
        raise
    connection.dialect = Dialect.OLDER if version is None else Dialect.V0_4


async def _version_of(connection: Connection, options: LinkOptions) -> str | None:
    """The version of a 0.4 server; `None` if it says none. Raises `ConnectionLostError` if it does not answer."""
    parts = urlsplit(options.url)  # Engine.IO takes no path from the URL either
    address = f"{parts.scheme}://{parts.netloc}/{options.socketio_path.strip('/')}/?{PROBE_QUERY}"
    limit = aiohttp.ClientTimeout(total=options.connect_timeout)
    try:
        async with (
            connection.new_http_session() as http,
            http.get(address, headers=_headers(options), timeout=limit, allow_redirects=False) as answer,
        ):
            if answer.status != _BAD_REQUEST:
                return None
            return refused_version((await answer.content.read(_LONGEST_ANSWER)).decode("utf-8", "replace"))
    except (aiohttp.ClientError, OSError) as error:  # also the timeout
        # Without an answer nobody knows the dialect, and a wrong guess loses every answer.
        why = str(error) or "no answer in time"
        raise ConnectionLostError(f"{shown_url(options.url)} does not say which version it has: {why}") from None


def _addressed(url: str, query: Mapping[str, str]) -> str:
    """The URL with these fields in its query. What it has in it is kept, and comes first."""
    given = dict(parse_qsl(url.partition("?")[2]))
    fields = {key: value for key, value in query.items() if key not in given}
    return f"{url}{'&' if '?' in url else '?'}{urlencode(fields)}" if fields else url


def shown_url(url: str) -> str:
    """A URL as it may be logged: without user information and query, where people keep secrets."""
    scheme, separator, rest = url.partition("?")[0].rpartition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{separator}{host.rpartition('@')[2]}{slash}{path}"


def trusting(ca: str | os.PathLike[str] | None) -> ssl.SSLContext | None:
    """A context that trusts this file besides the system's certificates; `None` if there is no file."""
    if ca is None:
        return None
    context = ssl.create_default_context()
    try:
        context.load_verify_locations(ca)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise BadRequestError(f"the certificates in {os.fspath(ca)} cannot be read: {error}") from None
    return context
