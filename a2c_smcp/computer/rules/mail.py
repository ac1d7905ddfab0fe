"""One mail address, as a rule compares it. Pure.

Mail programs disagree about odd addresses: comments, quotes, routes, encoded words, lists. A text that is not plainly
one address has no address here: an `allow` does not take it, a `deny` does.
"""

import re
from dataclasses import dataclass
from typing import Final

import idna

from a2c_smcp.computer.rules.fits import Fit

__all__ = ["MailPattern", "mail_fit", "mail_parts", "parse_mail_pattern"]

# The standard allows more in front of the @. Programs read some of that as a route (% ! :), a file or a program (/ |),
# an encoded word (=?…?=), a quote, or an option (- at the beginning).
_LOCAL: Final = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_+'-]|\.(?![.@]))*")
_LABEL: Final = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_DOMAIN: Final = re.compile(rf"(?:{_LABEL}\.)+(?!\d+\Z){_LABEL}")
_LONGEST_LOCAL: Final = 64
_LONGEST: Final = 254


@dataclass(frozen=True, slots=True)
class MailPattern:
    """`ben@example.com`, `*@example.com` for everybody there, and `*@*.example.com` for every domain below it."""

    local: str
    """Empty for everybody."""
    domain: str
    below: bool

    def fit(self, local: str, domain: str) -> Fit:
        is_there = domain.endswith(f".{self.domain}") if self.below else domain == self.domain
        if not is_there:
            return Fit.FAILS
        if self.local in ("", local):
            return Fit.HOLDS
        # The domain alone decides whether case counts, and most leave out what stands behind a plus.
        return Fit.MISFIT if _mailbox(self.local) == _mailbox(local) else Fit.FAILS

    def __str__(self) -> str:
        return f"{self.local or '*'}@{'*.' if self.below else ''}{self.domain}"


def mail_parts(text: str) -> tuple[str, str] | None:
    """The mailbox and the domain, in lower case, of a text that is exactly one plain address; `None` for any other."""
    local, _, domain = text.partition("@")
    if len(text) > _LONGEST or len(local) > _LONGEST_LOCAL:
        return None
    if not _LOCAL.fullmatch(local) or local.endswith(".") or not _DOMAIN.fullmatch(domain):
        return None
    return local, domain.lower()


def mail_fit(patterns: tuple[MailPattern, ...], text: str) -> Fit:
    """Whether a text is an address of one of the patterns."""
    if (parts := mail_parts(text)) is None:
        return Fit.MISFIT
    fits = {pattern.fit(*parts) for pattern in patterns}
    return next((fit for fit in (Fit.HOLDS, Fit.MISFIT) if fit in fits), Fit.FAILS)


def parse_mail_pattern(text: str) -> MailPattern:
    """Read what a person wrote. Raises `ValueError` that says what to write instead."""
    local, _, domain = text.partition("@")
    below = domain.startswith("*.")
    name = domain[2:] if below else domain
    try:
        name = name.lower() if name.isascii() else idna.encode(name, uts46=True).decode()
    except idna.IDNAError:
        name = ""
    if mail_parts(f"{'a' if local == '*' else local}@{name}") is None:
        raise ValueError("must be an address such as 'ben@example.com', '*@example.com' or '*@*.example.com'")
    return MailPattern("" if local == "*" else local, name, below)


def _mailbox(local: str) -> str:
    return local.partition("+")[0].lower()
