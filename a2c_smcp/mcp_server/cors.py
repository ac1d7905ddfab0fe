"""What a browser must read before it hands our answers to a web page of another origin (CORS). Pure.

The caller has checked the origin: only pages whose `Origin` is allowed get these headers.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

__all__ = ["Headers", "for_page", "is_preflight", "preflight"]

Headers: TypeAlias = list[tuple[bytes, bytes]]

_METHODS: Final = b"GET, POST, DELETE"
#: What a script may read of an answer beside its body.
_READABLE: Final = b"Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate"
_TOKEN: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
#: How many seconds a browser may remember the answer.
_REMEMBERED: Final = b"600"


def for_page(given: Mapping[str, Sequence[str]]) -> Headers:
    """The headers of every answer to the page that sent these headers. Empty if no page did."""
    origins = given.get("origin", ())
    if not origins:
        return []
    return [
        (b"access-control-allow-origin", origins[0].encode("latin-1")),
        (b"access-control-expose-headers", _READABLE),
        (b"vary", b"Origin"),
    ]


def is_preflight(method: str, given: Mapping[str, Sequence[str]]) -> bool:
    """Whether a browser asks what a page may send. It asks without the page's token."""
    return method == "OPTIONS" and "origin" in given and "access-control-request-method" in given


def preflight(given: Mapping[str, Sequence[str]]) -> Headers:
    """The answer to a preflight, beside `for_page`: every header is allowed, since MCP has headers for a tool's
    arguments, too.
    """
    asked = ",".join(given.get("access-control-request-headers", ())).split(",")
    names = [name.strip() for name in asked if _TOKEN.fullmatch(name.strip())]
    headers = [
        (b"access-control-allow-methods", _METHODS),
        (b"access-control-allow-headers", ", ".join(names).encode("ascii")),
        (b"access-control-max-age", _REMEMBERED),
    ]
    if given.get("access-control-request-private-network") == ["true"]:
        # Browsers ask this for a page from the internet that wants to reach this machine.
        headers.append((b"access-control-allow-private-network", b"true"))
    return headers
