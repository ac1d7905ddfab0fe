"""Markdown, by markdown-it-py: sections as pages. Words keep their Markdown, which is how agents read them."""

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO

from markdown_it import MarkdownIt
from markdown_it.token import Token

from a2c_smcp.docs.formats import OpenDocument, Properties
from a2c_smcp.docs.formats.media import part_picture
from a2c_smcp.docs.formats.text import TextDocument, read_text
from a2c_smcp.docs.limits import FORMATS, DocumentLimits
from a2c_smcp.docs.paging import sections
from a2c_smcp.mcp_server.documents import Page
from a2c_smcp.mcp_server.elements import Code, Diagram, Element, Heading, Image, List, Separator, Table, Text

__all__ = ["ReadDocument", "SectionedDocument", "open_document"]

_FRONT_MATTER = re.compile(r"---\r?\n(.*?)\r?\n(?:---|\.\.\.)\r?\n", re.DOTALL)
_IMAGE_ONLY = re.compile(r'!\[([^\]]*)\]\((\S+?)(?:\s+"[^"]*")?\)')
_DIAGRAMS = ("mermaid", "plantuml", "dot", "graphviz")


class ReadDocument:
    """A document whose pages are all in memory. `read_part` unpacks the images of an archive."""

    def __init__(
        self,
        pages: Sequence[Page],
        properties: Properties,
        read_part: Callable[[str], bytes | None] = lambda part: None,
    ) -> None:
        self._pages = pages or [Page("Page 1")]
        self._read_part = read_part
        self.properties = properties

    @property
    def page_count(self) -> int:
        return len(self._pages)

    def page(self, index: int) -> Page:
        return self._pages[index]

    def picture(self, index: int, element: Element | None, longest: int) -> bytes | None:
        return part_picture(self._read_part, element, longest)


class SectionedDocument(ReadDocument):
    """Elements in a row, as pages from heading to heading."""

    def __init__(
        self,
        elements: Sequence[Element],
        properties: Properties,
        read_part: Callable[[str], bytes | None] = lambda part: None,
    ) -> None:
        super().__init__(sections(elements), properties, read_part)


def open_document(file: BinaryIO, name: str, limits: DocumentLimits) -> OpenDocument:
    text = read_text(file)
    if len(text) > FORMATS.markdown:
        file.seek(0)
        return TextDocument(file, name)
    properties, text = _front_matter(text)
    return SectionedDocument(list(elements_of(text)), properties)


def _front_matter(text: str) -> tuple[Properties, str]:
    """Title, description and keywords from the lines between `---`, if the file starts so; and the rest."""
    match = _FRONT_MATTER.match(text.removeprefix("\ufeff"))
    if match is None:
        return Properties(), text
    facts = {}
    for line in match[1].splitlines():
        key, colon, value = line.partition(":")
        if colon and not key[:1].isspace():
            facts[key.strip().lower()] = value.strip().strip("\"'")
    words = (facts.get("keywords") or facts.get("tags") or "").strip("[]")
    keywords = [word.strip().strip("\"'") for word in words.split(",") if word.strip()]
    summary = facts.get("description") or facts.get("summary") or ""
    return Properties(facts.get("title", ""), keywords, summary), text[match.end() :]


def elements_of(text: str) -> Iterator[Element]:
    """The blocks of a Markdown text, in order."""
    lines = text.splitlines()
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    at = 0
    while at < len(tokens):
        end = _closing(tokens, at)
        yield from _block(tokens[at : end + 1], lines)
        at = end + 1


def _closing(tokens: Sequence[Token], at: int) -> int:
    """The token that ends the block which this one starts."""
    if tokens[at].nesting != 1:
        return at
    return next(other for other in range(at + 1, len(tokens)) if tokens[other].level == tokens[at].level)


def _block(tokens: Sequence[Token], lines: Sequence[str]) -> Iterator[Element]:
    first = tokens[0]
    match first.type:
        case "heading_open":
            yield Heading(tokens[1].content, int(first.tag[1]))
        case "paragraph_open":
            yield _paragraph(tokens[1].content)
        case "bullet_list_open" | "ordered_list_open":
            yield List(list(_items(tokens)), first.type == "ordered_list_open")
        case "fence" | "code_block":
            language = (first.info.split() or [""])[0]
            code = first.content.rstrip("\n")
            if language.lower() in _DIAGRAMS:
                yield Diagram(f"{language} diagram", code, language.lower())
            else:
                yield Code(code, language)
        case "table_open":
            yield _table(tokens)
        case "hr":
            yield Separator()
        case _ if first.map is not None:
            if raw := "\n".join(lines[first.map[0] : first.map[1]]).strip("\n"):
                yield Text(raw)


def _paragraph(content: str) -> Element:
    image = _IMAGE_ONLY.fullmatch(content.strip())
    return Text(content) if image is None else Image(image[1], image[2])


def _items(tokens: Sequence[Token]) -> Iterator[str]:
    """One text an item; items of inner lists stand on lines of their own."""
    item: list[str] = []
    for token in tokens:
        if token.type == "list_item_open" and token.level == 1:
            if item:
                yield "\n".join(item)
            item = []
        elif token.type in ("inline", "fence", "code_block") and token.content.strip():
            depth = max(0, (token.level - 3) // 2) if token.type == "inline" else 0
            item.append("  " * depth + token.content.strip("\n"))
    if item:
        yield "\n".join(item)


def _table(tokens: Sequence[Token]) -> Table:
    headers: list[str] = []
    rows: list[list[str]] = []
    for token, inner in itertools.pairwise(tokens):
        if token.type == "th_open":
            headers.append(inner.content)
        elif token.type == "tr_open":
            rows.append([])
        elif token.type == "td_open":
            rows[-1].append(inner.content)
    return Table(headers, [row for row in rows if row])
