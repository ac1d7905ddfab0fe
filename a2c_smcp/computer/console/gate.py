"""Which requests come in, by their headers. Pure.

Another page in the same browser can send requests here: from another site, from another port of this machine, or from a
name that its owner has resolve to 127.0.0.1. It cannot choose what the browser writes into `Host`, `Origin` and
`Sec-Fetch-Site`, and it cannot read the key of a session, which only our own page sends along.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from a2c_smcp.web.hosts import OwnOrigins, Refusal, values_by_name

__all__ = ["HEADERS", "SESSION_HEADER", "policy", "refusal"]

#: The header that carries the key of a session. A page of another origin would have to ask before it sends it.
SESSION_HEADER: Final = "x-a2c-session"
_OURS: Final = ("same-origin", "none")

#: What every answer says, beside its Content-Security-Policy.
HEADERS: Final[Mapping[str, str]] = {
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


def policy(import_map_digest: str) -> str:
    """The Content-Security-Policy: our own files, and the one inline script that says where modules are."""
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src 'self' 'sha256-{import_map_digest}'",
            "style-src 'self'",
            "img-src 'self' data:",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    )


def refusal(headers: Iterable[tuple[str, str]], origins: OwnOrigins, *, method: str, is_api: bool) -> Refusal | None:
    """Why a request stays outside; `None` if it may come in. The names of `headers` are in lower case."""
    given = values_by_name(headers)
    hosts, sent = given.get("host", []), given.get("origin", [])
    if (foreign := origins.refusal(hosts, sent)) is not None:
        return foreign
    if any(origin.partition("://")[2] != hosts[0].lower() for origin in sent):
        return Refusal(403, "requests from another address of this computer are not served")
    if method not in ("GET", "HEAD") and len(sent) != 1:
        return Refusal(403, "a request that changes something says from which page it comes")
    if is_api and any(site not in _OURS for site in given.get("sec-fetch-site", ())):
        return Refusal(403, "requests from other sites are not served")
    return None
