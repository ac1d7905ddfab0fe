"""Decides by its headers whether a request of a page comes in. Pure.

Other pages in the same browser can send requests here: from another site, from another port of this machine, or from a
name that resolves to 127.0.0.1. They cannot choose the headers `Host`, `Origin` and `Sec-Fetch-Site`, which the browser
writes. And they cannot read the key that only our own page sends.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from a2c_smcp.web.hosts import AllowedHosts, Refusal, values_by_name

__all__ = ["HEADERS", "policy", "refusal"]

_OURS: Final = ("same-origin", "none")

#: The headers of every answer, beside its Content-Security-Policy.
HEADERS: Final[Mapping[str, str]] = {
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


def policy(import_map_digest: str | None = None) -> str:
    """The Content-Security-Policy: it allows our own files, and the inline script that says where modules are, if there
    is one.
    """
    import_map = "" if import_map_digest is None else f" 'sha256-{import_map_digest}'"
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src 'self'{import_map}",
            "style-src 'self'",
            "img-src 'self' data:",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    )


def refusal(headers: Iterable[tuple[str, str]], allowed: AllowedHosts, *, method: str, is_api: bool) -> Refusal | None:
    """Why a request is refused; `None` if it may come in. The names of `headers` are in lower case."""
    given = values_by_name(headers)
    hosts, sent = given.get("host", []), given.get("origin", [])
    if (foreign := allowed.refusal(hosts, sent)) is not None:
        return foreign
    if any(origin.partition("://")[2] != hosts[0].lower() for origin in sent):
        return Refusal(403, "requests from another address of this computer are not served")
    if method not in ("GET", "HEAD") and len(sent) != 1:
        return Refusal(403, "a request that changes something must have one Origin header")
    if is_api and any(site not in _OURS for site in given.get("sec-fetch-site", ())):
        return Refusal(403, "requests from other sites are not served")
    return None
