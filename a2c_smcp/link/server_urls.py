"""Whether a text can be the URL of a server. Pure. No error shows a URL that may hold a password."""

from typing import Final
from urllib.parse import urlsplit

from a2c_smcp.errors import BadRequestError

__all__ = ["check_server_url", "normal_url", "speaks_no_tls"]

#: Socket.IO reads `ws` as `http` and `wss` as `https`, so they are not refused.
_SCHEMES: Final = ("http", "https", "ws", "wss")
_DEFAULT_PORTS: Final = {"http": ":80", "https": ":443"}
#: What Python's ssl says of a server that answers without TLS.
_NO_TLS: Final = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE")


def speaks_no_tls(error: Exception) -> bool:
    """Whether this error of a connection over https means that the server speaks plain HTTP."""
    return any(sign in str(error) for sign in _NO_TLS)


def check_server_url(url: str) -> None:
    """Raise `BadRequestError` if no attempt to connect can ever reach this URL."""
    if not _can_be_reached(url):
        raise BadRequestError(f"the server's URL must be an http:// or https:// URL with a host{_hint(url)}")


def _can_be_reached(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in _SCHEMES and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:  # a port that is no number or too large, a bracket that is not closed
        return False


def _hint(url: str) -> str:
    meant = f"http://{url}"
    is_plain = url.isprintable() and not any(mark in url for mark in "@?#") and "//" not in url
    is_address = not url.lower().startswith(("http:", "https:", "ws:", "wss:")) and _can_be_reached(meant)
    return f"; did you mean {meant}?" if is_plain and is_address else ""


def normal_url(url: str) -> str:
    """The URL in one spelling: `http://host`, `HTTP://Host/` and `http://host:80` are the same."""
    scheme, separator, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    user, at, address = host.rpartition("@")
    scheme = scheme.lower()
    address = address.lower().removesuffix(_DEFAULT_PORTS.get(scheme, "\0"))
    return f"{scheme}{separator}{user}{at}{address}{slash}{path}".rstrip("/")
