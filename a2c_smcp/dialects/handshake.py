"""How both sides of a connection learn which dialect the other one speaks. Pure.

Clients say it in the query of their URL. Our clients always have `a2c_version` in it, because a 0.4 server refuses
everybody else, and `a2c_office` beside it, by which our servers recognise them. A server of ours names its dialect in
the payload of its Socket.IO CONNECT packet. Other servers name none, so a client asks them with one HTTP request that
opens no session (`PROBE_QUERY`). A 0.4 server answers with its version; older servers do not.
"""

import json
import re
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

__all__ = [
    "PROBE_QUERY",
    "SPOKEN_VERSION",
    "VERSION_FIELD",
    "Dialect",
    "announces_ours",
    "announces_stamps",
    "client_query",
    "dialect_of_client",
    "marked_as_ours",
    "max_payload_in",
    "refused_version",
]

VERSION_FIELD: Final = "a2c_version"
_OFFICE_FIELD: Final = "a2c_office"
_STAMPS_FIELD: Final = "stamps"
#: The version that our clients send: 0.4 servers accept no other MAJOR and MINOR.
SPOKEN_VERSION: Final = "0.4.0"
#: No server opens a session for it: none accepts this version, and none this number of the Engine.IO protocol.
PROBE_QUERY: Final = urlencode({VERSION_FIELD: "0.0.0", "EIO": "3", "transport": "polling"})

_MISMATCH: Final = 4008
_VERSION: Final = re.compile(r"(\d{1,6})\.(\d{1,6})\.(\d{1,6})", re.ASCII)


class Dialect(Enum):
    """What a peer speaks."""

    OURS = "ours"
    OLDER = "older"
    V0_4 = "0.4"


def client_query(version: str = SPOKEN_VERSION) -> dict[str, str]:
    """What our clients have in the query of their URL."""
    return {VERSION_FIELD: version, _OFFICE_FIELD: "1"}


def dialect_of_client(query: str) -> Dialect:
    """The dialect of a client, by the query of its URL. A client with the version alone is one of 0.4."""
    given = dict(parse_qsl(query, max_num_fields=100))
    if given.get(_OFFICE_FIELD) == "1":
        return Dialect.OURS
    found = _VERSION.fullmatch(given.get(VERSION_FIELD, ""))
    is_new = found is not None and (int(found[1]), int(found[2])) >= (0, 4)
    return Dialect.V0_4 if is_new else Dialect.OLDER


# --- what a server says


def marked_as_ours(payload: Mapping[str, Any]) -> dict[str, Any]:
    """The payload of a CONNECT packet of our server. Other clients ignore these keys."""
    return {**payload, _OFFICE_FIELD: 1, _STAMPS_FIELD: True}


def announces_ours(payload: object) -> bool:
    """Whether this payload of a CONNECT packet comes from a server of ours."""
    return isinstance(payload, Mapping) and payload.get(_OFFICE_FIELD) == 1


def announces_stamps(payload: object) -> bool:
    """Whether the server with this payload of a CONNECT packet writes into every request from whom it comes."""
    return isinstance(payload, Mapping) and payload.get(_STAMPS_FIELD) is True


def max_payload_in(greeting: str | None) -> int | None:
    """The largest message that a server takes, from the Engine.IO packet with which it greets; `None` if it does not
    say.
    """
    if greeting is None or not greeting.startswith("0{"):
        return None
    try:
        said = json.loads(greeting[1:].partition("\x1e")[0])
    except ValueError:
        return None
    most = said.get("maxPayload")
    return most if isinstance(most, int) and not isinstance(most, bool) and most > 0 else None


def refused_version(body: str) -> str | None:
    """The version of a server that has refused ours (4008), from the body of its answer; `None` for another answer."""
    try:
        said = json.loads(body)
    except ValueError:
        return None
    if not isinstance(said, dict) or said.get("code") != _MISMATCH:
        return None
    version = said.get("server_version")
    return version if isinstance(version, str) and _VERSION.fullmatch(version) else None
