"""What answers at an address where what was expected does not: it is asked with TLS and without. No key is sent."""

import asyncio
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, urlsplit

import httpx2

from a2c_smcp.utils.text import printable

__all__ = ["WebAnswer", "describe_answers", "other_scheme", "speaks", "web_answers"]

#: For an answer to begin, in seconds.
_ANSWER_SECONDS: Final = 5.0
_SECURE: Final = {"http": False, "ws": False, "https": True, "wss": True}
#: How the greeting of a Socket.IO server begins.
_GREETING: Final = '0{"sid"'


@dataclass(frozen=True, slots=True)
class WebAnswer:
    """How something answers over HTTP."""

    status: int
    text: str = ""
    """The first line, if it is plain text."""

    def __str__(self) -> str:
        return f"HTTP {self.status}: {printable(self.text)}" if self.text else f"HTTP {self.status}"


async def web_answers(url: str, path: str) -> tuple[WebAnswer | None, WebAnswer | None]:
    """What answers at this URL's host and port with TLS, and what without. `path` takes the place of the URL's own."""
    return (await speaks(url, path, tls=True), await speaks(url, path, tls=False))


async def speaks(url: str, path: str, *, tls: bool) -> WebAnswer | None:
    """What answers a GET with TLS, whatever its certificate is, or without; `None` if nothing does."""
    try:
        async with (
            asyncio.timeout(_ANSWER_SECONDS),
            httpx2.AsyncClient(verify=False, trust_env=False, timeout=_ANSWER_SECONDS) as http,
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
    """The same host and port: a URL without a port means another one when its scheme is another."""
    parts = urlsplit(url)
    port = parts.port or (443 if _SECURE[parts.scheme] else 80)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{'https' if tls else 'http'}://{host}:{port}{path}"


def other_scheme(url: str) -> str:
    """The URL with TLS instead of without, or the other way round."""
    parts: SplitResult = urlsplit(url)
    port = "" if parts.port is not None else f":{443 if _SECURE[parts.scheme] else 80}"
    return parts._replace(scheme="http" if _SECURE[parts.scheme] else "https", netloc=parts.netloc + port).geturl()


def describe_answers(url: str, tls: WebAnswer | None, plain: WebAnswer | None) -> tuple[str, str] | None:
    """What is wrong with the URL of an office's server, and what to do; `None` if these answers do not tell."""
    wants_tls = _SECURE[urlsplit(url).scheme]
    # Most servers with TLS hang up on a request without, and some answer it with 400.
    if not wants_tls and tls is not None and (plain is None or plain.status == 400):
        return f"{url} speaks TLS", f"name it with https: --url {other_scheme(url)}"
    if wants_tls and tls is None and plain is not None:
        return f"{url} does not speak TLS", f"name it with http: --url {other_scheme(url)}"
    found = tls if wants_tls else plain
    if found is None or found.text.startswith(_GREETING):
        return None
    if found.status in (401, 403):
        return f"{url} answers, and refuses us ({found})", "ask its administrator"
    if found.status >= 500:
        return f"{url} answers, and fails ({found})", "ask its administrator, also of a proxy before it"
    return (
        f"{url} is a web server, and no A2C server answers there ({found})",
        "correct the host and the port of --url, or start one with `a2c server`",
    )
