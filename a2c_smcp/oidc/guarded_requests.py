"""The HTTP requests of a sign-in: bounded in size and time, and only to addresses that are safe to use.

They carry codes, secrets and tokens, and their addresses come from the server that somebody signs in at.
"""

import asyncio
import ipaddress
import os
import socket
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit

import httpx2

from a2c_smcp.errors import BadRequestError
from a2c_smcp.link.proxies import find_proxy
from a2c_smcp.oidc.addresses import Nearness, check_address, nearness
from a2c_smcp.oidc.sign_in_errors import IssuerSilentError, SignInError

__all__ = ["GuardedRequests", "place_of"]

#: How many bytes an answer may have, and how many seconds one request may take.
_MOST_BYTES: Final = 256 * 1024
_SECONDS: Final = 20.0


class GuardedRequests:
    """Sends the requests of sign-ins at one server, whose address says how near others may be. `look_up` finds the
    addresses of a URL's host, `verify` says which certificates are trusted.
    """

    def __init__(
        self,
        server_url: str,
        seconds: float = _SECONDS,
        look_up: Callable[[str], Awaitable[list[str]]] | None = None,
        *,
        verify: ssl.SSLContext | bool = True,
    ) -> None:
        self._server_url = server_url
        self._verify = verify
        self._seconds = seconds
        self._look_up = look_up or place_of
        self._server: Nearness | None = None

    async def check(self, url: str, *, has_secrets: bool = True) -> list[str]:
        """The IP addresses of this URL's host. Raises `UnsafeAddressError` if the URL must not be used."""
        if self._server is None and (
            places := [nearness(address) for address in await self._look_up(self._server_url)]
        ):
            self._server = min(places)  # of several addresses of the server's name, the farthest counts
        found = await self._look_up(url)
        check_address(url, found, self._server or Nearness.PUBLIC, has_secrets=has_secrets)
        return found

    async def send(self, request: httpx2.Request) -> httpx2.Response:
        """The answer, read to its end. Raises `SignInError`."""
        host = request.url.host
        try:
            async with asyncio.timeout(self._seconds):
                # A GET is for metadata, which is public. The server itself may have a plain `http://` address.
                found = await self.check(str(request.url), has_secrets=request.method != "GET")
                return await self._send(request, found)
        except TimeoutError:
            raise IssuerSilentError(f"{host} did not answer within {self._seconds:g} s") from None
        except httpx2.TransportError as error:
            raise IssuerSilentError(f"{host} cannot be reached ({type(error).__name__})") from None

    async def _send(self, request: httpx2.Request, found: list[str]) -> httpx2.Response:
        host = request.url.host
        request.headers["accept-encoding"] = "identity"
        if _has_proxy(str(request.url)):
            return await self._answer(request, request, 1, None)
        # To the addresses that were checked: a second look-up could find others.
        request.headers["host"] = request.url.netloc.decode("ascii")
        failed: httpx2.TransportError = httpx2.ConnectError("no such name")
        for address in found:
            sent = httpx2.Request(
                request.method,
                request.url.copy_with(host=address),
                headers=request.headers,
                content=await request.aread(),
                extensions={**request.extensions, "sni_hostname": host},
            )
            try:
                # With a transport of its own the client does not look for a proxy once more, by the address.
                return await self._answer(sent, request, len(found), httpx2.AsyncHTTPTransport(verify=self._verify))
            except (
                httpx2.ConnectError,
                httpx2.ConnectTimeout,
            ) as error:  # nothing was sent: another address may answer
                failed = error
        raise failed

    async def _answer(
        self, sent: httpx2.Request, request: httpx2.Request, tries: int, way: httpx2.AsyncHTTPTransport | None
    ) -> httpx2.Response:
        timeout = httpx2.Timeout(self._seconds, connect=self._seconds / tries)
        async with httpx2.AsyncClient(
            timeout=timeout, follow_redirects=False, verify=self._verify, transport=way
        ) as client:
            answer = await client.send(sent, stream=True)
            body = await _whole(answer, request.url.host)
        response = httpx2.Response(answer.status_code, headers=_plain(answer.headers), content=body, request=request)
        if answer.has_redirect_location:
            response.next_request = _next(request, answer)
        return response


async def place_of(url: str) -> list[str]:
    """The IP addresses of a URL's host; none if the name is not found here."""
    host = urlsplit(url).hostname or ""
    with suppress(ValueError):
        ipaddress.ip_address(host.partition("%")[0])
        return [host]
    try:
        infos = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return list(dict.fromkeys(str(info[4][0]) for info in infos))


async def _whole(answer: httpx2.Response, host: str) -> bytes:
    if answer.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
        raise SignInError(f"the answer of {host} is encoded; only plain answers are read")
    body = bytearray()
    async for chunk in answer.aiter_raw():
        body += chunk
        if len(body) > _MOST_BYTES:
            raise SignInError(f"the answer of {host} has more than {_MOST_BYTES} bytes")
    return bytes(body)


def _plain(headers: httpx2.Headers) -> httpx2.Headers:
    plain = headers.copy()
    for name in ("content-encoding", "content-length", "transfer-encoding"):
        plain.pop(name, None)
    return plain


def _next(request: httpx2.Request, answer: httpx2.Response) -> httpx2.Request | None:
    """The request that a redirect asks for. mcp follows it only within the same origin."""
    is_kept = request.method == "GET" or answer.status_code in (307, 308)
    if not is_kept:
        return None
    target = request.url.join(answer.headers["location"])
    headers = {name: value for name, value in request.headers.items() if name != "host"}
    return httpx2.Request(request.method, target, headers=headers, content=request.content)


def _has_proxy(url: str) -> bool:
    """Whether a proxy of the environment is used. It resolves names by itself."""
    try:
        return find_proxy(url, None, os.environ) is not None
    except BadRequestError:
        return True
