"""Why an MCP server does not start over HTTP, and what to do about it. Pure. Shows no URL: it may hold a key."""

from collections.abc import Mapping
from dataclasses import dataclass
from socket import gaierror
from typing import Final

import httpx2

from a2c_smcp.errors import BadRequestError
from a2c_smcp.link.proxies import Proxy, find_proxy
from a2c_smcp.link.server_urls import speaks_no_tls

__all__ = ["HttpFailure", "LostSessionError", "describe_http", "explain_error", "is_refusal"]

_STATUSES: Final = {
    401: "it wants a key, or refuses this one; look at the headers in its config",
    403: "this key may not use it; look at the headers in its config",
    404: "there is no MCP server at this path; look at the url in its config",
    405: "there is no MCP server of this type at this path; look at the type and the url in its config",
    407: "the proxy wants a user and a password; put them into the URL of the proxy",
    429: "it gets too many requests",
}
_BROKEN: Final = "it is not ready, or broken"
_PROXY_ADVICE: Final = "correct the variable HTTPS_PROXY, HTTP_PROXY or ALL_PROXY"


class LostSessionError(Exception):
    """An HTTP server does not know the session of a request. In most cases the server was restarted."""

    def __init__(self) -> None:
        super().__init__("the server has lost its session; starting it again makes a new one")


def is_refusal(failed: int | Exception | None) -> bool:
    """Whether the server refuses the key. Then waiting does not help."""
    return failed in (401, 403)


@dataclass(frozen=True, slots=True)
class HttpFailure:
    """Why a request failed, and what to do about it; `advice` is empty if that is unknown."""

    problem: str
    advice: str = ""

    def __str__(self) -> str:
        return f"{self.problem}; {self.advice}" if self.advice else self.problem


def describe_http(failed: int | Exception | None, url: str, environ: Mapping[str, str]) -> str | None:
    """Why the last request to `url` failed, by its status or error; `None` if there is nothing better to say."""
    if isinstance(failed, int):
        advice = _STATUSES.get(failed, _BROKEN if failed >= 500 else "")
        return f"HTTP {failed}: {advice}".removesuffix(": ")
    found = None if failed is None else explain_error(failed, url, environ)
    return None if found is None else str(found)


def explain_error(failed: Exception, url: str, environ: Mapping[str, str]) -> HttpFailure | None:
    """Why a request to `url` got no answer; `None` if there is nothing better to say than the error itself."""
    text = str(failed)
    proxy = _proxy(url, environ)
    match failed:
        case LostSessionError():
            return HttpFailure(text)
        case httpx2.ProxyError():
            return HttpFailure(f"the proxy {proxy or ''} refuses: {text}".replace("  ", " "))
        case httpx2.ConnectError() if speaks_no_tls(failed):
            return HttpFailure("it does not speak TLS", "its url in the config should begin with http://")
        case httpx2.ConnectError() if "CERTIFICATE_VERIFY_FAILED" in text:
            why = text.partition("verify failed: ")[2].partition(" (_ssl")[0] or "it cannot be verified"
            return HttpFailure(
                f"its certificate is not trusted: {why}", "SSL_CERT_FILE names a file with other authorities"
            )
        case httpx2.ConnectError() if "[SSL" in text:
            return HttpFailure(f"TLS failed: {text}")
        case httpx2.ConnectError() if _is_lookup(failed):
            if proxy:
                return HttpFailure(f"the proxy {proxy} is not found: no such name", _PROXY_ADVICE)
            return HttpFailure("its host is not found: no such name")
        case httpx2.ConnectError():
            if proxy:
                return HttpFailure(f"the proxy {proxy} does not answer", _PROXY_ADVICE)
            return HttpFailure("nothing answers at its address")
        case httpx2.RemoteProtocolError() | httpx2.ReadError() if url.startswith("http:"):
            return HttpFailure("it hung up", "if it speaks TLS, its url in the config should begin with https://")
    return None


def _is_lookup(failed: BaseException | None) -> bool:
    """Whether a host name was not found. Each system has other numbers and words for that."""
    while failed is not None and not isinstance(failed, gaierror):
        failed = failed.__cause__ or failed.__context__
    return failed is not None


def _proxy(url: str, environ: Mapping[str, str]) -> Proxy | None:
    try:
        return find_proxy(url, None, environ)
    except BadRequestError:
        return None
