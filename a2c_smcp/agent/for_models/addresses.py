"""Resources of many computers, each under an address of its own. Pure.

`a2c://laptop/desktop` is everything that shows on a computer. `a2c://laptop/window/…` and `a2c://laptop/file/…` are
resources of it: the scheme of their own URI, and the rest of it byte for byte. So a template stays a template. A URI
without `//` is whole after `~`: `a2c://laptop/~/urn:isbn:1`. A user interface of a tool has to begin with `ui://`:
`ui://a2c/laptop/…`. So no computer can offer its interface for a tool of another one.

If only one computer is served, its resources keep their own URIs.
"""

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote

__all__ = ["SCHEME", "Address", "Addresses", "desktop_address"]

SCHEME: Final = "a2c://"
_APP_SCHEME: Final = "ui://"
_APPS: Final = "ui://a2c/"
_WHOLE: Final = "~"
_URI: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Address:
    """A computer, and the URI of one of its resources; `None` for its whole desktop."""

    computer: str
    uri: str | None = None


def desktop_address(computer: str) -> str:
    return f"{SCHEME}{quote(computer, safe='')}/desktop"


@dataclass(frozen=True, slots=True)
class Addresses:
    """The addresses of an office, or, with `only`, of one computer."""

    only: str | None = None

    def of(self, computer: str, uri: str) -> str:
        """The address of a resource, or of a template."""
        if self.only is not None:
            return uri
        name = quote(computer, safe="")
        if uri.startswith(_APP_SCHEME):
            return f"{_APPS}{name}/{uri.removeprefix(_APP_SCHEME)}"
        if (parts := _URI.fullmatch(uri)) is None:
            return f"{SCHEME}{name}/{_WHOLE}/{uri}"
        return f"{SCHEME}{name}/{parts[1]}/{parts[2]}"

    def parse(self, address: str) -> Address | None:
        """Parse an address; `None` if it is not one, or is that of a computer that is not served."""
        found = _parsed(address)
        if self.only is None:
            return found
        if address.startswith(SCHEME):
            return found if found is not None and found.computer == self.only else None
        return Address(self.only, address)

    def is_address(self, uri: str) -> bool:
        """Whether the office answers for this URI."""
        return self.only is not None or uri.startswith((SCHEME, _APPS))


def _parsed(address: str) -> Address | None:
    if address.startswith(_APPS):
        computer, slash, rest = address.removeprefix(_APPS).partition("/")
        return Address(unquote(computer), f"{_APP_SCHEME}{rest}") if computer and slash else None
    computer, _, rest = address.removeprefix(SCHEME).partition("/")
    if not (address.startswith(SCHEME) and computer):
        return None
    if rest == "desktop":
        return Address(unquote(computer))
    kind, slash, rest = rest.partition("/")
    if not (kind and slash and rest):
        return None
    return Address(unquote(computer), rest if kind == _WHOLE else f"{kind}://{rest}")
