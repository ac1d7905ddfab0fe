"""URI templates (RFC 6570) as MCP servers list them, and whether a URI fits one of them. Pure.

MCP servers choose the templates and agents choose the URIs, so no pair of them may take long. No regular expression is
made of a template. All places in the URI up to which a template may reach are the bits of one integer, and each part of
the template moves all of them at once. The longest template and the longest URI take a fifth of a millisecond.

Servers read templates in their own ways. So this is more generous than the RFC: the server that is asked decides.
"""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias

__all__ = ["LONGEST_TEMPLATE", "LONGEST_URI", "MatchedUri", "UriTemplate", "parse_template"]

#: In characters. A longer template fits nothing, and a longer URI fits no template.
LONGEST_TEMPLATE: Final = 1000
LONGEST_URI: Final = 4096

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*+:")
_EXPRESSION: Final = re.compile(r"([+#./;?&]?)([^{}]++)")
_NOT_SLASH: Final = frozenset("/")
_NOT_QUERY: Final = frozenset("?#")
_NOT_FRAGMENT: Final = frozenset("#")
#: For each operator: the character that its value begins with, and the characters that it does not reach over. An
#: operator with such a first character may expand to nothing. A value without one has one character at least.
_OPERATORS: Final = {
    "": ("", _NOT_SLASH),
    "+": ("", frozenset[str]()),
    "#": ("#", frozenset[str]()),
    ".": (".", _NOT_SLASH),
    "/": ("/", _NOT_QUERY),
    ";": (";", _NOT_SLASH),
    "?": ("?", _NOT_FRAGMENT),
    "&": ("&", _NOT_FRAGMENT),
}


@dataclass(frozen=True, slots=True)
class _Gap:
    """A part of a template that stands for any text without the characters in `ends`."""

    begins: str
    ends: frozenset[str]


_TemplatePart: TypeAlias = str | _Gap


@dataclass(frozen=True, slots=True)
class UriTemplate:
    """The parts of a template. The first one is a literal text, with the scheme of the URIs."""

    parts: tuple[_TemplatePart, ...]

    @property
    def prefix(self) -> str:
        """What every URI that fits begins with."""
        first = self.parts[0]
        assert isinstance(first, str)
        return first

    def fits(self, uri: "MatchedUri") -> bool:
        """Whether the template may expand to this URI."""
        if len(uri.text) > LONGEST_URI or not uri.text.startswith(self.prefix):
            return False
        places = 1 << len(self.prefix)
        for part in self.parts[1:]:
            places = uri.after_text(places, part) if isinstance(part, str) else uri.after_gap(places, part)
            if not places:
                return False
        return bool(places >> len(uri.text) & 1)


class MatchedUri:
    """A URI that is compared with templates. What is found out about its characters is kept for the next template."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._masks: dict[str, int] = {}

    @cached_property
    def _all(self) -> int:
        return (1 << len(self.text)) - 1

    def _mask(self, character: str) -> int:
        """The places where this character stands, as bits."""
        if character not in self._masks:
            digits = "".join("1" if each == character else "0" for each in reversed(self.text))
            self._masks[character] = int(digits or "0", 2)
        return self._masks[character]

    def after_text(self, places: int, text: str) -> int:
        """The places after a literal text that begins at one of these places."""
        for character in text:
            places = (places & self._mask(character)) << 1
            if not places:
                break
        return places

    def after_gap(self, places: int, gap: _Gap) -> int:
        """The places after a value that begins at one of these places."""
        allowed = self._all
        for character in gap.ends:
            allowed &= ~self._mask(character)
        if not gap.begins:
            return self._filled((places & allowed) << 1, allowed)
        return places | self._filled((places & self._mask(gap.begins)) << 1, allowed)

    @staticmethod
    def _filled(places: int, allowed: int) -> int:
        """These places, and all that follow each of them over allowed characters: the addition carries each bit to the
        end of its run.
        """
        return (((places & allowed) + allowed) ^ allowed) | places


def parse_template(text: str) -> UriTemplate | None:
    """The template; `None` if it is not one, is too long, or does not begin with the scheme of its URIs.

    A template such as `{+uri}` would fit the URIs of all other servers.
    """
    if len(text) > LONGEST_TEMPLATE:
        return None
    literal, *expressions = text.split("{")
    if not _SCHEME.match(literal) or "}" in literal:
        return None
    parts: list[_TemplatePart] = [literal]
    for expression in expressions:
        inside, closed, after = expression.partition("}")
        found = _EXPRESSION.fullmatch(inside)
        if found is None or not closed or "}" in after:
            return None
        begins, ends = _OPERATORS[found[1]]
        if found[2].endswith("*") and not begins:
            ends = frozenset()  # `{path*}` reaches over slashes for many servers
        parts += [_Gap(begins, ends), *([after] if after else ())]
    return UriTemplate(tuple(parts))
