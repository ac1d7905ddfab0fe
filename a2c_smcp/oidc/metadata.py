"""What an issuer says about itself, read in bounded size and time. Knows nothing of servers and clients of ours."""

import asyncio
import json
import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2

from a2c_smcp.errors import BadRequestError
from a2c_smcp.web.hosts import is_loopback

__all__ = [
    "MOST_BYTES",
    "IssuerFetchError",
    "checked_url",
    "fetch_json",
    "fetch_metadata",
    "json_object",
    "new_http_client",
    "read_json",
]

#: Bytes of one document, at most. Real documents have a hundredth of this.
MOST_BYTES: Final = 512 * 1024
#: Seconds for one document, from the name's resolution to its last byte.
_SECONDS: Final = 10.0


class IssuerFetchError(Exception):
    """A document of an issuer cannot be fetched or used. The text says why, and has no secret in it."""

    def __init__(self, text: str, status: int | None = None) -> None:
        super().__init__(text)
        self.status = status
        """The status of the answer; `None` if there was none."""


def checked_url(url: str, what: str) -> str:
    """The URL, if requests may go to it: `https`, or `http` on this machine. Raises `BadRequestError`, which calls it
    `what`.
    """
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        raise BadRequestError(f"{what} is not a URL") from None
    if parts.username is not None or parts.fragment or not host:
        raise BadRequestError(f"{what} must be https://host[:port][/path]")
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(host)):
        raise BadRequestError(f"{what} must begin with https://: others could read tokens on the way")
    return url


def new_http_client(*, verify: ssl.SSLContext | None = None) -> httpx2.AsyncClient:
    """A client that follows no redirects, and trusts what the system or `SSL_CERT_FILE` trusts."""
    # Making a context takes 20 ms: it is made once for some requests.
    return httpx2.AsyncClient(timeout=_SECONDS, follow_redirects=False, verify=verify or ssl.create_default_context())


async def read_json(client: httpx2.AsyncClient, request: httpx2.Request) -> tuple[int, dict[str, Any]]:
    """The status and the JSON object of an answer. Raises `IssuerFetchError`."""
    shown = (
        f"{request.url.scheme}://{request.url.netloc.decode('ascii', 'replace').rpartition('@')[2]}{request.url.path}"
    )
    try:
        async with asyncio.timeout(_SECONDS):
            # Not decompressed: a small answer could become a large one.
            request.headers["Accept-Encoding"] = "identity"
            answer = await client.send(request, stream=True)
            try:
                body = await _bounded(answer, shown)
            finally:
                await answer.aclose()
    except TimeoutError:
        raise IssuerFetchError(f"{shown} did not answer within {_SECONDS:g} s") from None
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        raise IssuerFetchError(f"{shown}: {str(error) or type(error).__name__}") from None
    return answer.status_code, json_object(body, answer.status_code, shown)


def json_object(body: bytes, status: int, shown: str) -> dict[str, Any]:
    """The JSON object in an answer of the address `shown`. Raises `IssuerFetchError`."""
    try:
        value = json.loads(body) if body else {}  # RFC 7009: the answer to a revocation is empty
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise IssuerFetchError(f"{shown} answers with status {status}, and not with a JSON object", status)
    return value


async def _bounded(answer: httpx2.Response, shown: str) -> bytes:
    body = bytearray()
    async for part in answer.aiter_raw():
        body += part
        if len(body) > MOST_BYTES:
            raise IssuerFetchError(f"{shown} answers with more than {MOST_BYTES} bytes")
    return bytes(body)


async def fetch_json(client: httpx2.AsyncClient, url: str) -> dict[str, Any]:
    """The JSON object at a URL. Raises `IssuerFetchError`."""
    status, value = await read_json(client, client.build_request("GET", url, headers={"Accept": "application/json"}))
    if status != 200:
        raise IssuerFetchError(f"{url} answers with status {status}")
    return value


#: Where an issuer describes itself: before and after its path (OpenID Connect Discovery 1.0, RFC 8414).
_WELL_KNOWN: Final = (("", "/.well-known/openid-configuration"), ("/.well-known/oauth-authorization-server", ""))


async def fetch_metadata(fetch: Callable[[str], Awaitable[dict[str, Any]]], issuer: str) -> Mapping[str, Any]:
    """What an issuer says about itself. `fetch` returns the JSON object at a URL, or raises `IssuerFetchError`. So does
    this function if nothing can be read, or if the issuer names another one.
    """
    parts = urlsplit(issuer)
    problems = []
    for before, after in _WELL_KNOWN:
        url = f"{parts.scheme}://{parts.netloc}{before}{parts.path.rstrip('/')}{after}"
        try:
            found = await fetch(url)
        except IssuerFetchError as error:
            problems.append(str(error))
            continue
        # RFC 8414, 3.3: otherwise one issuer could pass its keys off as those of another.
        if str(found.get("issuer", "")).rstrip("/") != issuer.rstrip("/"):
            raise IssuerFetchError(f"{url} is about another issuer")
        return found
    raise IssuerFetchError("; ".join(problems))
