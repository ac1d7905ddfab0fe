"""OpenDocument texts and presentations, by a walk of our own over their XML: sections or slides as pages.

Also the flat form, which is one XML file. Deleted text is not read, and each note and comment is read once.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Final

from a2c_smcp.docs.formats import OpenDocument, Properties, suffix_of
from a2c_smcp.docs.formats.blocks import EndOfSection, Item, Label, ParagraphContent, flat, list_of
from a2c_smcp.docs.formats.drawing import integer
from a2c_smcp.docs.formats.markdown import SectionedDocument
from a2c_smcp.docs.formats.media import part_facts, part_picture
from a2c_smcp.docs.formats.numbering import Counters, ListLevel
from a2c_smcp.docs.formats.office_xml import Node, OfficePackage, parse_xml
from a2c_smcp.docs.limits import FORMATS, DocumentLimits, Unreadable
from a2c_smcp.docs.paging import PAGE, split_table
from a2c_smcp.mcp_server.documents import Page
from a2c_smcp.mcp_server.elements import (
    Annotation,
    Chart,
    Code,
    Element,
    Footer,
    Formula,
    Header,
    Heading,
    Image,
    Table,
    Text,
)

__all__ = ["open_document"]


def _namespace(name: str) -> str:
    return f"{{urn:oasis:names:tc:opendocument:xmlns:{name}:1.0}}"


_OFFICE, _STYLE, _TEXT, _TABLE = map(_namespace, ("office", "style", "text", "table"))
_DRAW, _SHOW, _VECTOR, _META, _CHART = map(_namespace, ("drawing", "presentation", "svg-compatible", "meta", "chart"))
_DUBLIN: Final = "{http://purl.org/dc/elements/1.1/}"
_XLINK: Final = "{http://www.w3.org/1999/xlink}"
_MATHML: Final = "{http://www.w3.org/1998/Math/MathML}"
_SPACES: Final = re.compile(r"[ \t\r\n]+")
_PARAGRAPH, _HEADING, _LIST, _SHEET = f"{_TEXT}p", f"{_TEXT}h", f"{_TEXT}list", f"{_TABLE}table"
_FRAME: Final = f"{_DRAW}frame"
_FIGURES: Final = {"1": "decimal", "a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman"}
#: What is never shown: deleted text, declarations, and the patterns of directories.
_UNSEEN: Final = frozenset(
    [
        *(f"{_TEXT}{name}" for name in ("tracked-changes", "sequence-decls", "variable-decls", "user-field-decls")),
        *(f"{_TEXT}{name}" for name in ("ruby-text", "note-citation", "hidden-paragraph", "alphabetical-index-mark")),
        *(f"{_OFFICE}{name}" for name in ("forms", "event-listeners", "annotation-end", "scripts", "binary-data")),
        *(f"{_VECTOR}{name}" for name in ("title", "desc")),
        f"{_SHOW}notes",
        f"{_DRAW}image-map",
        f"{_DRAW}glue-point",
    ]
)


def open_document(file: BinaryIO, name: str, limits: DocumentLimits) -> OpenDocument:
    head = file.read(4)
    file.seek(0)
    found = _OdfFile.flat(file.read()) if not head.startswith(b"PK") else _OdfFile.packed(OfficePackage(file, limits))
    body = found.content.find(f".//{_OFFICE}body")
    if body is None or not len(body):
        raise Unreadable("it is not an OpenDocument file: it has no text that can be read")
    if body[0].tag in (f"{_OFFICE}presentation", f"{_OFFICE}drawing"):
        return _OdfSlides(found, body[0])
    flow = _OdfFlow(found)
    elements = flow.read(body[0])
    if found.is_cut:
        elements.append(Annotation("This file is broken here: the rest of its text cannot be read."))
    at = 1 if elements and isinstance(elements[0], Heading) else 0
    elements[at:at] = found.edges("header", Header)
    elements += found.edges("footer", Footer)
    return SectionedDocument(elements, found.properties(), found.read_part)


class _OdfFile:
    """The parts of a file."""

    def __init__(self, content: Node, styles: Node, meta: Node, is_cut: bool, package: OfficePackage | None) -> None:
        self.content = content
        self.is_cut = is_cut
        self.package = package
        self._styles = styles
        self._meta = meta
        self._named: dict[str, Node] = {}
        self.lists: dict[str, dict[int, ListLevel | None]] = {}
        self.outline: dict[int, ListLevel | None] = {}
        for root in (styles, content):
            self._named |= {each.get(f"{_STYLE}name") or "": each for each in root.iter(f"{_STYLE}style")}
            for each in root.iter(f"{_TEXT}list-style"):
                self.lists[each.get(f"{_STYLE}name") or ""] = _list_levels(each)
            for each in root.iter(f"{_TEXT}outline-style"):
                self.outline = _list_levels(each)
        self.note_count = 0

    @classmethod
    def packed(cls, package: OfficePackage) -> "_OdfFile":
        content = package.xml("content.xml")
        if content is None:
            manifest = package.read("META-INF/manifest.xml") or b""
            why = "it is encrypted" if b"encryption-data" in manifest else "it is not an OpenDocument file"
            raise Unreadable(why)
        empty = Node("empty")
        others = [package.xml(name) for name in ("styles.xml", "meta.xml")]
        styles, meta = (empty if other is None else other.root for other in others)
        return cls(content.root, styles, meta, content.is_cut, package)

    @classmethod
    def flat(cls, data: bytes) -> "_OdfFile":
        found = parse_xml(data)
        if found is None or found.root.tag != f"{_OFFICE}document":
            raise Unreadable("it is not an OpenDocument file")
        return cls(found.root, found.root, found.root, found.is_cut, None)

    def style_name(self, name: str) -> str:
        """The name of the style that an author chose, where the file has one of its own for a paragraph."""
        for _ in range(FORMATS.office_levels):
            node = self._named.get(name)
            if node is None or node.get(f"{_STYLE}display-name") or not node.get(f"{_STYLE}parent-style-name"):
                break
            if name in ("Title", "Subtitle"):
                break
            name = node.get(f"{_STYLE}parent-style-name") or ""
        return name.replace("_20_", " ").lower()

    def is_hidden(self, page: Node) -> bool:
        node = self._named.get(page.get(f"{_DRAW}style-name") or "")
        settings = None if node is None else node.find(f"{_STYLE}drawing-page-properties")
        return settings is not None and settings.get(f"{_SHOW}visibility") == "hidden"

    def edges(self, kind: str, element: type[Header] | type[Footer]) -> list[Element]:
        texts: dict[str, None] = {}
        for page in self._styles.iter(f"{_STYLE}master-page"):
            for name in (kind, f"{kind}-left", f"{kind}-first"):
                for node in page.findall(f"{_STYLE}{name}"):
                    texts[flat(_OdfFlow(self).read(node))] = None
        return [element(text) for text in texts if text]

    def properties(self) -> Properties:
        title, subject = (self._meta.findtext(f".//{_DUBLIN}{name}") or "" for name in ("title", "subject"))
        keywords = [(each.text or "").strip() for each in self._meta.iter(f"{_META}keyword")]
        return Properties(title.strip(), [word for word in keywords if word], subject.strip())

    def object(self, reference: str) -> Node | None:
        """An embedded object of the same format: a formula, a chart."""
        name = reference.removeprefix("./").rstrip("/")
        found = None if self.package is None else self.package.xml(f"{name}/content.xml")
        return None if found is None else found.root

    def read_part(self, name: str) -> bytes | None:
        return None if self.package is None else self.package.read(name)


class _OdfSlides:
    def __init__(self, file: _OdfFile, body: Node) -> None:
        self._file = file
        self._pages = body.findall(f"{_DRAW}page")
        self.properties = file.properties()

    @property
    def page_count(self) -> int:
        return max(1, len(self._pages))

    def page(self, index: int) -> Page:
        if not self._pages:
            return Page("No slides")
        page = self._pages[index]
        elements: list[Element] = []
        for element in _OdfFlow(self._file).read(page):
            elements += split_table(element) if isinstance(element, Table) else [element]
        # A title is read first, wherever it is.
        elements.sort(key=lambda each: not isinstance(each, Heading))
        for notes in page.findall(f"{_SHOW}notes"):
            if text := flat([each for each in _OdfFlow(self._file).read(notes) if not isinstance(each, Image)]):
                elements.append(Annotation(text))
        heading = next((each.text for each in elements if isinstance(each, Heading)), "")
        hidden = " (hidden slide)" if self._file.is_hidden(page) else ""
        return Page((heading or page.get(f"{_DRAW}name") or f"Slide {index + 1}") + hidden, elements)

    def picture(self, index: int, element: Element | None, longest: int) -> bytes | None:
        return part_picture(self._file.read_part, element, longest)


@dataclass(frozen=True, slots=True)
class _ListPlace:
    """Where in a list a paragraph stands."""

    key: str
    style: str
    level: int


class _OdfFlow:
    """Blocks one after the other. Links, notes and comments come at the end of the section that refers to them."""

    def __init__(self, file: _OdfFile, depth: int = 0, counters: Counters | None = None) -> None:
        self._file = file
        self._depth = depth
        self._counters = counters or Counters()
        self._elements: list[Element] = []
        self._items: list[Item] = []
        self._code: list[str] = []
        self._is_title = False
        self._list_count = 0
        self._last_list: dict[str, str] = {}
        self.later = EndOfSection()

    def read(self, node: Node) -> list[Element]:
        self._blocks(node, None)
        self._flush()
        return [*self._elements, *self.later.take()]

    def _blocks(self, node: Node, place: _ListPlace | None) -> None:
        for child in node:
            tag = child.tag
            if tag in (_PARAGRAPH, _HEADING):
                self._paragraph(child, place)
                # Only the first paragraph of an item has its number.
                place = None if place is None else _ListPlace("", place.style, place.level)
            elif tag == _LIST:
                self._list(child, place)
            elif tag == _SHEET:
                self._flush()
                self._table(child)
            elif tag == _FRAME or tag.startswith(_DRAW):
                self._flush()
                self._shape(child)
            elif tag == f"{_OFFICE}annotation":
                self._annotation(child)
            elif tag not in _UNSEEN and not tag.endswith("-source"):
                self._blocks(child, place)

    def _paragraph(self, node: Node, place: _ListPlace | None) -> None:
        inline = ParagraphContent()
        self._inline(node, inline)
        text = inline.text.strip()
        style = self._file.style_name(node.get(f"{_TEXT}style-name") or "")
        if node.tag == _HEADING or self._is_title or style == "title":
            level = min(6, max(1, integer(node.get(f"{_TEXT}outline-level"), 1)))
            number = self._outline_number(level) if node.tag == _HEADING and text else ""
            if text:
                self._flush()
                if self._depth == 0:
                    self._elements += self.later.take()
                self._elements.append(Heading(f"{number} {' '.join(text.split())}".strip(), level))
        elif place is not None:
            self._item(text, place)
        elif style in ("preformatted text", "source code", "source text"):
            self._flush_items()
            self._code.append("".join(inline.parts))
        elif text:
            self._flush()
            self._elements.append(Text(text))
        if inline.beside:
            self._flush()
            self._elements += inline.beside

    def _outline_number(self, level: int) -> str:
        levels = {number: known or ListLevel(pattern="") for number, known in self._file.outline.items()}
        if not (known := levels.get(level - 1)) or not known.pattern:
            return ""
        return self._counters.next_label("outline", level - 1, levels, {}, "")

    # --- lists

    def _list(self, node: Node, outer: _ListPlace | None) -> None:
        style = node.get(f"{_TEXT}style-name") or ("" if outer is None else outer.style)
        level = 0 if outer is None else outer.level + 1
        if level > FORMATS.office_levels:
            self._item(" ".join("".join(node.itertext()).split()), _ListPlace("", style, level))
            return
        if outer is not None:
            key = outer.key or self._last_list.get(style, "")
        elif node.get(f"{_TEXT}continue-numbering") == "true" or node.get(f"{_TEXT}continue-list"):
            key = self._last_list.get(style, style)
        else:
            self._list_count += 1
            key = f"{style} {self._list_count}"
        self._last_list[style] = key
        for child in node:
            if child.tag in (f"{_TEXT}list-item", f"{_TEXT}list-header"):
                place_key = key if child.tag == f"{_TEXT}list-item" else ""
                self._blocks(child, _ListPlace(place_key, style, level))

    def _item(self, text: str, place: _ListPlace) -> None:
        levels = self._file.lists.get(place.style, {})
        kind = levels.get(place.level)
        label = Label("", place.level, False)
        if kind is not None and place.key:
            numbered = {number: known or ListLevel(pattern="") for number, known in levels.items()}
            number = self._counters.next_label(place.key, place.level, numbered, {}, "")
            label = Label(number, place.level, True)
        if text:
            self._flush_code()
            self._items.append(Item(label, text))

    def _flush(self) -> None:
        self._flush_items()
        self._flush_code()

    def _flush_items(self) -> None:
        if self._items:
            self._elements.append(list_of(self._items))
            self._items = []

    def _flush_code(self) -> None:
        if self._code:
            self._elements.append(Code("\n".join(self._code)))
            self._code = []

    # --- tables

    def _table(self, node: Node) -> None:
        if self._depth >= FORMATS.office_levels:
            self._elements.append(Text(" ".join("".join(node.itertext()).split())))
            return
        rows: list[list[str]] = []
        contents: list[list[Element]] = []
        for row in _rows(node):
            cells: list[str] = []
            for cell in row:
                if cell.tag not in (f"{_TABLE}table-cell", f"{_TABLE}covered-table-cell"):
                    continue
                text = ""
                if cell.tag == f"{_TABLE}table-cell":
                    flow = self._inner(cell)
                    contents.append(flow)
                    text = flat(flow)
                times = min(integer(cell.get(f"{_TABLE}number-columns-repeated"), 1), PAGE.columns - len(cells))
                cells += [text] * max(1, times)
            rows.append(cells)
        if len(contents) == 1 or any(len(cell) > FORMATS.layout_cell for row in rows for cell in row):
            self._elements += [element for content in contents for element in content]
            return
        if any(map(any, rows)):
            self._elements.append(Table(rows[0], rows[1:]) if len(rows) > 1 else Table([], rows))
        self._elements += [each for content in contents for each in content if isinstance(each, Image | Chart)]

    def _inner(self, node: Node) -> list[Element]:
        """The blocks inside a cell, a text box or a note."""
        flow = _OdfFlow(self._file, self._depth + 1, self._counters)
        flow._blocks(node, None)
        flow._flush()
        self.later.add(*flow.later.take())
        return flow._elements

    # --- shapes

    def _shape(self, node: Node) -> None:
        self._elements += self._shape_elements(node)

    def _shape_elements(self, node: Node) -> list[Element]:
        """A frame, a group, or a drawn shape with its text."""
        if self._depth >= FORMATS.office_levels:
            return []
        told = "; ".join(_words(each) for name in ("title", "desc") for each in node.findall(f"{_VECTOR}{name}"))
        kind = node.get(f"{_SHOW}class") or ""
        found: list[Element] = []
        pictures: list[str] = []
        for child in node:
            tag = child.tag
            if tag == f"{_DRAW}image":
                pictures.append((child.get(f"{_XLINK}href") or "").removeprefix("./"))
            elif tag == f"{_DRAW}object":
                found += self._object(child)
        if not found:
            flow = _OdfFlow(self._file, self._depth + 1, self._counters)
            flow._is_title = self._is_title or kind == "title"
            flow._blocks(node, None)
            flow._flush()
            found = flow._elements
            self.later.add(*flow.later.take())
        if not found and (pictures or told):
            found = [Image(description=told, metadata=part_facts(_with_pixels(pictures)))]
        if kind in ("footer", "date-time", "page-number", "header"):
            return [Footer(text)] if (text := flat(found)) else []
        return found

    def _object(self, node: Node) -> Iterator[Element]:
        inner = node[0] if len(node) else self._file.object(node.get(f"{_XLINK}href") or "")
        if inner is None:
            return
        formula = next((each for each in inner.iter(f"{_MATHML}annotation")), None)
        if inner.tag.startswith(_MATHML) or formula is not None:
            words = _words(formula) if formula is not None else _words(inner)
            if words:
                yield Formula(words)
        elif (chart := inner.find(f".//{_CHART}chart")) is not None:
            yield _chart(chart)
        elif (table := inner.find(f".//{_SHEET}")) is not None:
            flow = _OdfFlow(self._file, self._depth + 1)
            flow._table(table)
            yield from flow._elements

    # --- what a paragraph holds

    def _inline(self, node: Node, inline: ParagraphContent, level: int = 0) -> None:
        if node.text:
            inline.parts.append(_SPACES.sub(" ", node.text))
        for child in node:
            self._inline_child(child, inline, level + 1)
            if child.tail:
                inline.parts.append(_SPACES.sub(" ", child.tail))

    def _inline_child(self, child: Node, inline: ParagraphContent, level: int) -> None:
        tag = child.tag
        if tag == f"{_TEXT}s":
            inline.parts.append(" " * min(80, max(1, integer(child.get(f"{_TEXT}c"), 1))))
        elif tag == f"{_TEXT}tab":
            inline.parts.append("\t")
        elif tag == f"{_TEXT}line-break":
            inline.parts.append("\n")
        elif tag == f"{_TEXT}note":
            self._note(child, inline)
        elif tag == f"{_OFFICE}annotation":
            self._annotation(child)
        elif tag == f"{_TEXT}a":
            start = len(inline.parts)
            self._inline(child, inline, level)
            url = child.get(f"{_XLINK}href") or ""
            if url and not url.startswith("#"):
                self.later.add_link("".join(inline.parts[start:]), url)
        elif tag == f"{_TEXT}ruby":
            self._inline(child, inline, level)
            reading = child.find(f"{_TEXT}ruby-text")
            inline.parts.append(f"({_words(reading)})" if reading is not None and _words(reading) else "")
        elif tag.startswith(_DRAW) and tag != f"{_DRAW}a":
            inline.beside += self._shape_elements(child)
        elif tag in _UNSEEN:
            return
        elif level > FORMATS.drawing_levels:
            inline.parts.append("".join(child.itertext()))
        else:
            self._inline(child, inline, level)

    def _note(self, node: Node, inline: ParagraphContent) -> None:
        body = node.find(f"{_TEXT}note-body")
        text = "" if body is None else flat(self._inner(body))
        if text:
            self._file.note_count += 1
            inline.parts.append(f"[^{self._file.note_count}]")
            self.later.add(Text(f"[^{self._file.note_count}]: {text}"))

    def _annotation(self, node: Node) -> None:
        if text := flat(self._inner(node)):
            self.later.add(Annotation(text, (node.findtext(f"{_DUBLIN}creator") or "").strip()))


def _rows(node: Node) -> Iterator[Node]:
    for child in node:
        if child.tag == f"{_TABLE}table-row":
            yield child
        elif child.tag in (f"{_TABLE}{name}" for name in ("table-header-rows", "table-rows", "table-row-group")):
            yield from _rows(child)


def _with_pixels(pictures: Sequence[str]) -> str | None:
    """Of the forms of one picture, the first that consists of pixels. LibreOffice writes a drawing before that one."""
    return min(pictures, key=lambda name: suffix_of(name) in ("svg", "svm", "emf", "wmf"), default=None)


def _words(node: Node) -> str:
    return " ".join("".join(node.itertext()).split())


def _list_levels(node: Node) -> dict[int, ListLevel | None]:
    """The levels of a list style, from 0. A level with bullets is `None`."""
    levels: dict[int, ListLevel | None] = {}
    for each in node:
        level = integer(each.get(f"{_TEXT}level"), 1) - 1
        figure = each.get(f"{_STYLE}num-format") or ""
        if not each.tag.endswith(("-number", "outline-level-style")):
            levels[level] = None
            continue
        shown = min(level + 1, max(1, integer(each.get(f"{_TEXT}display-levels"), 1)))
        numbers = ".".join(f"%{place + 1}" for place in range(level + 1 - shown, level + 1))
        before, after = each.get(f"{_STYLE}num-prefix") or "", each.get(f"{_STYLE}num-suffix") or ""
        pattern = f"{before}{numbers}{after}" if figure else ""
        start = integer(each.get(f"{_TEXT}start-value"), 1)
        levels[level] = ListLevel(_FIGURES.get(figure, "decimal"), pattern, start)
    return levels


def _chart(node: Node) -> Chart:
    """A chart, whose figures are in a table of its own."""
    title = node.find(f"{_CHART}title")
    rows = [
        [_words(cell) for cell in row.findall(f"{_TABLE}table-cell")]
        for table in node.iter(_SHEET)
        for row in _rows(table)
    ]
    rows = rows[: FORMATS.chart_points + 1]
    told = "; ".join(", ".join(cell for cell in row if cell) for row in rows)
    kind = (node.get(f"{_CHART}class") or "").rpartition(":")[2]
    data: Mapping[str, list[list[str]]] = {"rows": rows}
    return Chart("" if title is None else _words(title), told[: FORMATS.chart_summary], kind, data)
