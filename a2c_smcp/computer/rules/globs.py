"""Patterns for names and texts: `*` is any text, `?` is one character, everything else is itself. Pure.

No wildcard stands for a control character. A line break in a value makes a second value of it for many programs.
"""

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

__all__ = ["Glob", "PlainGlob"]

#: What a wildcard stands for: everything but control characters, line breaks and halves of characters.
_TEXT: Final = r"[^\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]"
_ANYTHING: Final = r"[\s\S]"
#: What a wildcard of a plain pattern stands for: no separator of paths, addresses, URLs, lists or words is among it.
_PLAIN: Final = r"[\w.+-]"


@dataclass(frozen=True, slots=True)
class Glob:
    """A pattern. It takes no longer than the text times the pattern, whatever both are."""

    text: str
    _pattern: re.Pattern[str] | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # A pattern without wildcards is compared as a text: most rules have such names.
        object.__setattr__(self, "_pattern", _compiled(self.text, _TEXT) if self.is_wide else None)

    @property
    def is_wide(self) -> bool:
        """Whether it can match more than one text."""
        return "*" in self.text or "?" in self.text

    def matches(self, text: str) -> bool:
        return text == self.text if self._pattern is None else self._pattern.fullmatch(text) is not None

    def may_match(self, text: str) -> bool:
        """Whether it matches if wildcards stand for control characters, too. A `deny` must not miss such a text."""
        if self._pattern is None:
            return text == self.text
        return _compiled(self.text, _ANYTHING).fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class PlainGlob:
    """A pattern whose `*` is at least one letter, digit, or one of `. _ + -`. Its `?` is a letter, a digit or `_`.
    At the beginning of a part of the text, a `*` begins with one of these, too: it is no option, and no hidden file.
    """

    text: str
    _pattern: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_pattern", _compiled(self.text, _PLAIN))

    def matches(self, text: str) -> bool:
        # Two dots are the way up in a path, and a range for git.
        return self._pattern.fullmatch(text) is not None and (".." not in text or ".." in self.text)


@lru_cache(maxsize=4096)
def _compiled(text: str, one: str) -> re.Pattern[str]:
    """The pattern, whose wildcards stand for characters of the class `one`."""
    first, *rest = re.split(r"\*+", text)
    if not rest:
        return re.compile(_literal(first, one))
    stars = [_star(before, one) for before in (first, *rest)]
    parts = [_literal(part, one) for part in rest]
    # Atomic groups: a part is looked for once, from left to right. Without them the time would be exponential.
    middle = "".join(f"(?>{star}?{part})" for star, part in zip(stars[:-2], parts[:-1], strict=True))
    return re.compile(f"{_literal(first, one)}{middle}{stars[-2]}{parts[-1]}")


def _star(before: str, one: str) -> str:
    """What a `*` behind this text stands for, with its last repetition at the end."""
    if one != _PLAIN:
        return f"{one}*"
    return f"{one}+" if before and re.match(one, before[-1]) else rf"\w{one}*"


def _literal(part: str, one: str) -> str:
    any_one = r"\w" if one == _PLAIN else one
    return "".join(any_one if character == "?" else re.escape(character) for character in part)
