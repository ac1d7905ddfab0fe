"""Patterns for names and texts: `*` is any text, `?` is one character, everything else is itself. Pure."""

import re
from dataclasses import dataclass, field

__all__ = ["Glob"]


@dataclass(frozen=True, slots=True)
class Glob:
    """A pattern. It takes no longer than the text times the pattern, whatever both are."""

    text: str
    _pattern: re.Pattern[str] | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # A pattern without wildcards is compared as a text: most rules have such names.
        object.__setattr__(self, "_pattern", _compiled(self.text) if self.is_wide else None)

    @property
    def is_wide(self) -> bool:
        """Whether it can match more than one text."""
        return "*" in self.text or "?" in self.text

    def matches(self, text: str) -> bool:
        return text == self.text if self._pattern is None else self._pattern.fullmatch(text) is not None


def _compiled(text: str) -> re.Pattern[str]:
    first, *rest = (_literal(part) for part in re.split(r"\*+", text))
    if not rest:
        return re.compile(first, re.DOTALL)
    # Atomic groups: a part is looked for once, from left to right. Without them the time would be exponential.
    middle = "".join(f"(?>.*?{part})" for part in rest[:-1])
    return re.compile(f"{first}{middle}.*{rest[-1]}", re.DOTALL)


def _literal(part: str) -> str:
    return "".join("." if character == "?" else re.escape(character) for character in part)
