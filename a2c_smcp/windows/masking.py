"""Hides what looks like a secret in the text of windows, and what the person names. Pure.

A secret becomes as many asterisks as it has characters, so that rows of a screen keep their length.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from a2c_smcp.utils.secret_shapes import NAMED_LIKE_A_SECRET, starred, stars

__all__ = ["SecretMask", "joined_rows", "without_secrets"]


class SecretMask:
    """Hides secrets by the person's own patterns, and by what looks like a key. Raises `ValueError` for a pattern that
    is no regular expression.
    """

    def __init__(self, patterns: Iterable[str] = ()) -> None:
        self._patterns = list[re.Pattern[str]]()
        for pattern in patterns:
            try:
                self._patterns.append(re.compile(pattern))
            except re.error as error:
                raise ValueError(f"--mask {pattern!r} is no regular expression: {error}") from None

    def __call__(self, text: str) -> str:
        """The text with its secrets hidden. It has the same length."""
        text = starred(text)
        for pattern in self._patterns:
            text = pattern.sub(lambda found: stars(found[0]), text)
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


def _is_full(row: str, columns: int) -> bool:
    """Whether the next row may go on with the same word. Wide characters take two columns."""
    return sum(1 if ord(character) < 0x1100 else 2 for character in row) >= columns - 1
