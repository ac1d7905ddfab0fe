"""Items of lists and blocks of text, as the office formats put them together. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from a2c_smcp.mcp_server.elements import Element, Formula, Image, Link, List, Table
from a2c_smcp.mcp_server.rendering import plain

__all__ = ["EndOfSection", "Item", "Label", "ParagraphContent", "flat", "list_of", "only_formula"]


@dataclass(frozen=True, slots=True)
class Label:
    """What stands before an item: a number as it is shown, or nothing before an item with a bullet."""

    text: str
    level: int
    is_numbered: bool


@dataclass(frozen=True, slots=True)
class Item:
    label: Label
    text: str

    @property
    def shown(self) -> str:
        number = f"{self.label.text} " if self.label.text else ""
        return f"{'  ' * self.label.level}{number}{self.text}"


@dataclass(slots=True)
class ParagraphContent:
    """What a paragraph holds: its text, and what stands beside it."""

    parts: list[str] = field(default_factory=list)
    beside: list[Element] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.parts).replace("\xad", "")


class EndOfSection:
    """What is shown at the end of a section: links, pictures, notes and comments. Each link is there once."""

    def __init__(self) -> None:
        self._elements: list[Element] = []
        self._links: set[tuple[str, str]] = set()

    def __len__(self) -> int:
        return len(self._elements)

    def add(self, *elements: Element) -> None:
        for element in elements:
            if isinstance(element, Link):
                self.add_link(element.text, element.url)
            else:
                self._elements.append(element)

    def add_link(self, text: str, url: str) -> None:
        words = " ".join(text.split())
        if words and (words, url) not in self._links:
            self._links.add((words, url))
            self._elements.append(Link(words, url))

    def take(self) -> list[Element]:
        """All of it, when the section ends."""
        found, self._elements = self._elements, []
        self._links.clear()
        return found


def list_of(items: Sequence[Item]) -> List:
    """A list. Where its numbers are not 1, 2, 3… they are its labels."""
    counted = [f"{number}." for number in range(1, len(items) + 1)]
    labels = [item.label.text for item in items]
    is_flat = all(item.label.is_numbered and item.label.level == 0 for item in items)
    if is_flat and (labels == counted or not any(labels)):
        return List([item.text for item in items], ordered=True)
    texts = ["  " * item.label.level + item.text for item in items]
    return List(texts, labels=labels) if any(labels) else List(texts)


def flat(elements: Sequence[Element]) -> str:
    """Elements as the text of a cell, a note or an edge of the page."""
    lines: list[str] = []
    for element in elements:
        match element:
            case Table():
                rows = [element.headers, *element.rows] if any(element.headers) else element.rows
                lines += [" | ".join(str(cell) for cell in row) for row in rows]
            case List(ordered=True):
                lines += [f"{number}. {item}" for number, item in enumerate(element.items, 1)]
            case List(labels=labels) if labels:
                lines += [f"{label} {item.lstrip()}" for label, item in zip(labels, element.items, strict=True)]
            case List():
                lines += element.items
            case Formula():
                lines.append(f"${element.latex}$")
            case Image():
                lines.append(element.description)
            case _:
                lines.append(plain(element))
    return "\n".join(line for line in lines if line.strip())


def only_formula(text: str) -> str:
    """The LaTeX of a paragraph that is one formula, else nothing."""
    is_formula = len(text) > 2 and text[0] == text[-1] == "$" and "$" not in text[1:-1].replace("\\$", "")
    return text[1:-1] if is_formula else ""
