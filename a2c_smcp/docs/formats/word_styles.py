"""What the styles and the numbering of a Word file say of its paragraphs. Pure, but for the two parts that are read."""

from dataclasses import dataclass, field
from typing import Final

from a2c_smcp.docs.formats.blocks import Label
from a2c_smcp.docs.formats.drawing import integer
from a2c_smcp.docs.formats.numbering import Counters, ListLevel
from a2c_smcp.docs.formats.office_xml import Node

__all__ = ["WORD", "ParagraphStyle", "WordLists", "WordStyles", "outline_level", "value_of"]

WORD: Final = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_VALUE: Final = f"{WORD}val"
_LONGEST_CHAIN: Final = 20
"""Styles that are based on each other."""


@dataclass(frozen=True, slots=True)
class ParagraphStyle:
    """What a style says, with what it takes from the styles that it is based on."""

    name: str = ""
    level: int | None = None
    """Of a heading, from 1 to 6."""
    number_id: str = ""
    number_level: int = 0

    @property
    def is_code(self) -> bool:
        return "code" in self.name or self.name in ("html preformatted", "macro", "verbatim", "preformatted text")

    @property
    def is_bulleted(self) -> bool:
        return self.name.startswith("list bullet")

    @property
    def is_numbered(self) -> bool:
        return self.name.startswith("list number")


class WordStyles:
    """Paragraph styles by id."""

    def __init__(self, root: Node | None) -> None:
        self._nodes = (
            {} if root is None else {node.get(f"{WORD}styleId") or "": node for node in root.iter(f"{WORD}style")}
        )
        self._known: dict[str, ParagraphStyle] = {}
        self.default = next(
            (
                style_id
                for style_id, node in self._nodes.items()
                if node.get(f"{WORD}type") == "paragraph" and node.get(f"{WORD}default") in ("1", "true", "on")
            ),
            "",
        )

    def style(self, style_id: str) -> ParagraphStyle:
        if style_id not in self._known:
            self._known[style_id] = self._resolved(style_id)
        return self._known[style_id]

    def number_id(self, style_id: str) -> str:
        """The list that a list style stands for."""
        return value_of(self._nodes.get(style_id), "pPr", "numPr", "numId")

    def _resolved(self, style_id: str) -> ParagraphStyle:
        chain: list[Node] = []
        while (node := self._nodes.get(style_id)) is not None and len(chain) < _LONGEST_CHAIN:
            chain.append(node)
            style_id = value_of(node, "basedOn")
        name = value_of(chain[0], "name").lower() if chain else style_id.lower()
        outline = next(filter(None, (value_of(node, "pPr", "outlineLvl") for node in chain)), "")
        named = next(filter(None, (_heading_level(value_of(node, "name").lower()) for node in chain)), None)
        number_id = next(filter(None, (value_of(node, "pPr", "numPr", "numId") for node in chain)), "")
        number_level = next(filter(None, (value_of(node, "pPr", "numPr", "ilvl") for node in chain)), "")
        level = named or (_heading_level(name) if not chain else outline_level(outline))
        return ParagraphStyle(name, level, number_id, integer(number_level))


def outline_level(value: str) -> int | None:
    """The level of a heading by its level in the outline, of which 9 means text."""
    number = integer(value, 9)
    return min(6, number + 1) if 0 <= number < 9 else None


def value_of(node: Node | None, *path: str) -> str:
    """The value of a setting inside settings, or an empty text."""
    for name in path:
        node = None if node is None else node.find(f"{WORD}{name}")
    return "" if node is None else node.get(_VALUE) or ""


def _heading_level(name: str) -> int | None:
    if name == "title":
        return 1
    start, _, number = name.partition(" ")
    return min(6, max(1, int(number))) if start == "heading" and number.isdecimal() else None


@dataclass(slots=True)
class _NumberedList:
    abstract_id: str
    levels: dict[int, ListLevel]
    restarts: dict[int, int]


@dataclass(slots=True)
class WordLists:
    """The lists of a file, and how far they have counted."""

    _abstract: dict[str, dict[int, ListLevel]] = field(default_factory=dict)
    _styled: dict[str, dict[str, int]] = field(default_factory=dict)
    _lists: dict[str, _NumberedList] = field(default_factory=dict)
    _counters: Counters = field(default_factory=Counters)

    @classmethod
    def read(cls, root: Node | None, styles: WordStyles) -> "WordLists":
        found = cls()
        if root is None:
            return found
        linked: dict[str, str] = {}
        for node in root.findall(f"{WORD}abstractNum"):
            abstract_id = node.get(f"{WORD}abstractNumId") or ""
            found._abstract[abstract_id] = _levels(node)
            found._styled[abstract_id] = {
                style: integer(level.get(f"{WORD}ilvl"))
                for level in node.findall(f"{WORD}lvl")
                if (style := value_of(level, "pStyle"))
            }
            if style_id := value_of(node, "numStyleLink"):
                linked[abstract_id] = style_id
        abstract_of = {
            node.get(f"{WORD}numId") or "": value_of(node, "abstractNumId") for node in root.findall(f"{WORD}num")
        }
        for node in root.findall(f"{WORD}num"):
            number_id = node.get(f"{WORD}numId") or ""
            abstract_id = abstract_of[number_id]
            if abstract_id in linked:
                abstract_id = abstract_of.get(styles.number_id(linked[abstract_id]), abstract_id)
            levels = dict(found._abstract.get(abstract_id, {}))
            restarts = {}
            for override in node.findall(f"{WORD}lvlOverride"):
                level = integer(override.get(f"{WORD}ilvl"))
                levels |= _levels(override)
                if start := value_of(override, "startOverride"):
                    restarts[level] = integer(start, 1)
            found._lists[number_id] = _NumberedList(abstract_id, levels, restarts)
        return found

    def level_of_style(self, number_id: str, style_id: str) -> int | None:
        """The level that a list keeps for paragraphs of a style."""
        known = self._lists.get(number_id)
        return None if known is None else self._styled.get(known.abstract_id, {}).get(style_id)

    def next_label(self, number_id: str, level: int) -> Label | None:
        """The label of the next item of a list, or `None` if there is no such list."""
        known = self._lists.get(number_id)
        if known is None:
            return None
        kind = known.levels.get(level, ListLevel())
        label = self._counters.next_label(known.abstract_id, level, known.levels, known.restarts, number_id)
        if kind.style == "bullet":
            return Label("", level, False)
        return Label(label, level, True)


def _levels(node: Node) -> dict[int, ListLevel]:
    levels = {}
    for level in node.findall(f"{WORD}lvl"):
        restart = value_of(level, "lvlRestart")
        legal = level.find(f"{WORD}isLgl")
        levels[integer(level.get(f"{WORD}ilvl"))] = ListLevel(
            value_of(level, "numFmt") or "decimal",
            value_of(level, "lvlText"),
            integer(value_of(level, "start"), 1),
            integer(restart) if restart else None,
            legal is not None and legal.get(_VALUE) not in ("0", "false", "off"),
        )
    return levels
