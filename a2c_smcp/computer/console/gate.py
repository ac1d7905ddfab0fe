"""Which requests come in, by their headers. Pure.

Another page in the same browser can send requests here: from another site, from another port of this machine, or from a
name that its owner has resolve to 127.0.0.1. It cannot choose what the browser writes into `Host`, `Origin` and
`Sec-Fetch-Site`, and it cannot read the key of a session, which only our own page sends along.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from a2c_smcp.utils.text import in_log

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


def refusal(
    headers: Iterable[tuple[str, str]], origins: frozenset[str], *, method: str, is_api: bool
) -> tuple[int, str] | None:
    """The status and the reason why a request stays outside; `None` if it may come in.

    `headers` with names in lower case; `origins` are those of our own pages.
    """
    given: dict[str, list[str]] = {}
    for name, value in headers:
        given.setdefault(name, []).append(value)
    hosts = given.get("host", [])
    ours = {origin.partition("://")[2] for origin in origins}
    if len(hosts) != 1 or hosts[0].lower() not in ours:
        return 421, f"this console is not reached as {in_log(', '.join(hosts))}"
    sent = given.get("origin", [])
    if any(origin.lower() not in origins or origin.partition("://")[2] != hosts[0].lower() for origin in sent):
        return 403, f"requests from {in_log(', '.join(sent))} are not served"
    if method not in ("GET", "HEAD") and len(sent) != 1:
        return 403, "a request that changes something says from which page it comes"
    if is_api and any(site not in _OURS for site in given.get("sec-fetch-site", ())):
        return 403, "requests from other sites are not served"
    return None
