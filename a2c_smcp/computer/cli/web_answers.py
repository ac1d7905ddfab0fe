"""Finds out what answers at an address where no server of ours does, with TLS and without. No key is sent."""

import asyncio
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, urlsplit

import httpx2

from a2c_smcp.utils.text import printable

__all__ = ["WebAnswer", "describe_answers", "other_scheme", "speaks", "web_answers"]

_SECURE: Final = {"http": False, "ws": False, "https": True, "wss": True}
#: The beginning of a Socket.IO server's greeting.
_GREETING: Final = '0{"sid"'


@dataclass(frozen=True, slots=True)
class WebAnswer:
    """An answer over HTTP."""

    status: int
    text: str = ""
    """Its first line, if it is plain text."""

    def __str__(self) -> str:
        return f"HTTP {self.status}: {printable(self.text)}" if self.text else f"HTTP {self.status}"


async def web_answers(url: str, path: str) -> tuple[WebAnswer | None, WebAnswer | None]:
    """The answers at this URL's host and port, with TLS and without. `path` replaces the URL's own path."""
    return (await speaks(url, path, tls=True), await speaks(url, path, tls=False))


async def speaks(url: str, path: str, *, tls: bool) -> WebAnswer | None:
    """The answer to a GET, with TLS (any certificate) or without; `None` if there is none."""
    try:
        async with (
            asyncio.timeout(5),  # a slow server may send byte after byte
            httpx2.AsyncClient(verify=False, trust_env=False, timeout=5) as http,
            http.stream("GET", _address(url, path, tls=tls), headers={"accept-encoding": "identity"}) as response,
        ):
            is_text = response.headers.get("content-type", "").startswith("text/plain")
            return WebAnswer(response.status_code, await _first_line(response) if is_text else "")
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError):
        return None


async def _first_line(response: httpx2.Response) -> str:
    async for chunk in response.aiter_raw():
        return chunk[:200].decode("utf-8", "replace").partition("\n")[0].strip()
    return ""


def _address(url: str, path: str, *, tls: bool) -> str:
    """The same host and port, with the port written out: another scheme would imply another port."""
    parts = urlsplit(url)
    port = parts.port or (443 if _SECURE[parts.scheme] else 80)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{'https' if tls else 'http'}://{host}:{port}{path}"


def other_scheme(url: str) -> str:
    """The URL with the other scheme: https for http, http for https."""
    parts: SplitResult = urlsplit(url)
    port = "" if parts.port is not None else f":{443 if _SECURE[parts.scheme] else 80}"
    return parts._replace(scheme="http" if _SECURE[parts.scheme] else "https", netloc=parts.netloc + port).geturl()


def describe_answers(url: str, tls: WebAnswer | None, plain: WebAnswer | None) -> tuple[str, str] | None:
    """What is wrong with the URL of a server, and what to do; `None` if these answers do not tell."""
    wants_tls = _SECURE[urlsplit(url).scheme]
    # Most TLS servers close a connection without TLS; some answer 400.
    if not wants_tls and tls is not None and (plain is None or plain.status == 400):
        return f"{url} speaks TLS", f"use https: --url {other_scheme(url)}"
    if wants_tls and tls is None and plain is not None:
        return f"{url} does not speak TLS", f"use http: --url {other_scheme(url)}"
    found = tls if wants_tls else plain
    if found is None or found.text.startswith(_GREETING):
        return None
    if found.status in (401, 403):
        return f"{url} answers, but refuses access ({found})", "ask its administrator"
    if found.status >= 500:
        return f"{url} answers, but fails ({found})", "ask its administrator, or that of a proxy before it"
    return (
        f"{url} is a web server, but not an A2C server ({found})",
        "correct the host and the port of --url, or start a server with `a2c server`",
    )
