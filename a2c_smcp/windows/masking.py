"""Hides what looks like a secret in the text of windows. Pure.

A secret becomes as many asterisks as it has characters, so that rows of a screen keep their length.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from a2c_smcp.utils.secret_names import NAMED_LIKE_A_SECRET

__all__ = ["SecretMask", "joined_rows", "without_secrets"]

#: Each marks the secret with the group `secret`, or is all secret.
_LOOKS_LIKE_A_KEY: Final = (
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?P<s1>[A-Za-z0-9+/=\s]{16,20000})",
    r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    r"\bgh[pousr]_[A-Za-z0-9]{20,255}\b",
    r"\bgithub_pat_[A-Za-z0-9_]{20,255}\b",
    r"\bglpat-[A-Za-z0-9_-]{16,255}",
    r"\bxox[abeoprs]-[A-Za-z0-9-]{10,255}",
    r"\bsk-[A-Za-z0-9_-]{16,255}",
    r"\bAIza[A-Za-z0-9_-]{30,60}",
    r"\bnpm_[A-Za-z0-9]{30,60}",
    # Where a word begins, not at each part of it: otherwise a long text of such parts would take seconds.
    r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,4000}+\.[A-Za-z0-9_-]{4,8000}+\.[A-Za-z0-9_-]{4,2000}",
    r"(?i:\b(?:bearer|basic)\s{1,4})(?P<s2>[A-Za-z0-9+/=._~-]{8,4000})",
    r"://[^\s/?#:@]{0,200}:(?P<s3>[^\s/?#@]{1,200})@",
    r"(?i:(?:api[_-]?key|passphrase|passw(?:or)?d|pwd|secret|token)(?>[a-z0-9_-]{0,40}[\"']?\s{0,4}[=:]\s{0,4}[\"']?))"
    r"(?P<s4>[^\s\"',;]{4,4000})",
)


class SecretMask:
    """Hides secrets by the person's own patterns, and by what looks like a key. Raises `ValueError` for a pattern that
    is no regular expression.
    """

    def __init__(self, patterns: Iterable[str] = ()) -> None:
        self._patterns = [re.compile("|".join(_LOOKS_LIKE_A_KEY))]
        for pattern in patterns:
            try:
                self._patterns.append(re.compile(pattern))
            except re.error as error:
                raise ValueError(f"--mask {pattern!r} is no regular expression: {error}") from None

    def __call__(self, text: str) -> str:
        """The text with its secrets hidden. It has the same length."""
        for pattern in self._patterns:
            text = pattern.sub(_hidden, text)
        return text

    def rows(self, rows: Sequence[str], columns: int) -> list[str]:
        """The rows of a screen with their secrets hidden, also those that go on in the next row."""
        masked = self(joined_rows(rows, columns))
        result: list[str] = []
        start = 0
        for row in rows:
            result.append(masked[start : start + len(row)])
            start += len(row) + (0 if _is_full(row, columns) else 1)
        return result


def joined_rows(rows: Sequence[str], columns: int) -> str:
    """The rows of a screen as a text: a row that is full goes on in the next one."""
    return "".join(row + ("" if _is_full(row, columns) else "\n") for row in rows)


def without_secrets(
    environment: Mapping[str, str], keep: Iterable[str] = (), mask: SecretMask | None = None
) -> dict[str, str]:
    """The environment without variables that are named like a secret, or hold what the mask would hide, such as a URL
    with a password; other than those to `keep`.
    """
    kept = frozenset(keep)
    mask = mask or SecretMask()
    return {
        name: value
        for name, value in environment.items()
        if name in kept or not (NAMED_LIKE_A_SECRET.search(name) or mask(value) != value)
    }


def _hidden(found: re.Match[str]) -> str:
    """The match with its secret part, or all of it, replaced. Line ends stay."""
    start, end = next(
        (found.span(name) for name, value in found.groupdict().items() if value is not None), found.span()
    )
    whole, offset = found[0], found.start()
    secret = re.sub(r"[^\n]", "*", whole[start - offset : end - offset])
    return whole[: start - offset] + secret + whole[end - offset :]


def _is_full(row: str, columns: int) -> bool:
    """Whether the next row may go on with the same word. Wide characters take two columns."""
    return sum(1 if ord(character) < 0x1100 else 2 for character in row) >= columns - 1
