"""`a2c://<computer>/…`: windows and documents of many computers under one scheme. Pure.

`a2c://laptop/desktop` is everything that shows on a computer. `a2c://laptop/window/…` and `a2c://laptop/dpe/…` are its
windows and documents: the rest is copied byte for byte from their own URIs.
"""

from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote

__all__ = ["SCHEME", "Address", "address_of", "desktop_address", "is_address", "parse_address"]

SCHEME: Final = "a2c://"
_KINDS: Final = ("window", "dpe")


@dataclass(frozen=True, slots=True)
class Address:
    """A computer, and the URI of one of its windows or documents; `None` for its whole desktop."""

    computer: str
    uri: str | None = None


def is_address(uri: str) -> bool:
    return uri.startswith(SCHEME)


def desktop_address(computer: str) -> str:
    return f"{SCHEME}{quote(computer, safe='')}/desktop"


def address_of(computer: str, uri: str) -> str | None:
    """The address of a window or a document of a computer; `None` for any other URI."""
    scheme, separator, rest = uri.partition("://")
    return f"{SCHEME}{quote(computer, safe='')}/{scheme}/{rest}" if separator and scheme in _KINDS else None


def parse_address(uri: str) -> Address | None:
    """Parse an address; `None` if the URI is not one."""
    computer, _, rest = uri.removeprefix(SCHEME).partition("/")
    if not (is_address(uri) and computer):
        return None
    if rest == "desktop":
        return Address(unquote(computer))
    kind, slash, rest = rest.partition("/")
    return Address(unquote(computer), f"{kind}://{rest}") if slash and rest and kind in _KINDS else None
