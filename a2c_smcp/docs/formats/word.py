"""Word files, by a walk of our own over their XML: sections as pages.

What a reader of the printed document sees is read once: tracked insertions and not deletions, results of fields and not
their codes, text boxes, notes, list numbers, equations as LaTeX, and what stands above and below every page.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Final

from a2c_smcp.docs.formats.blocks import EndOfSection, Item, Label, ParagraphContent, flat, list_of, only_formula
from a2c_smcp.docs.formats.drawing import (
    ALTERNATIVES,
    RELATION,
    alternatives,
    integer,
    part_of,
    pixels,
)
from a2c_smcp.docs.formats.markdown import SectionedDocument
from a2c_smcp.docs.formats.media import part_facts
from a2c_smcp.docs.formats.office_xml import Node, OfficePackage, OfficePart, Relationship
from a2c_smcp.docs.formats.omml import EQUATIONS, latex
from a2c_smcp.docs.formats.word_chunks import chunk_elements
from a2c_smcp.docs.formats.word_drawings import WordDrawing
from a2c_smcp.docs.formats.word_styles import (
    WORD,
    ParagraphStyle,
    WordLists,
    WordStyles,
    outline_level,
    value_of,
)
from a2c_smcp.docs.limits import FORMATS, DocumentLimits, Unreadable
from a2c_smcp.docs.paging import PAGE, starts_page
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

__all__ = ["open_document", "open_inner"]

_PLACED: Final = "{http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing}"
_ID: Final = f"{WORD}id"
_TEXT, _RUN, _PARAGRAPH, _TABLE = f"{WORD}t", f"{WORD}r", f"{WORD}p", f"{WORD}tbl"
_ROW, _CELL = f"{WORD}tr", f"{WORD}tc"
#: What is never shown: deleted and moved-away text, codes of fields, and settings.
_UNSEEN: Final = frozenset(
    f"{WORD}{name}"
    for name in re.findall(
        r"\w+",
        "del moveFrom delText delInstrText instrText rPr pPr sdtPr sdtEndPr tblPr tblGrid trPr tcPr sectPr rt",
    )
)
_SIGNS: Final = {
    f"{WORD}tab": "\t",
    f"{WORD}ptab": "\t",
    f"{WORD}br": "\n",
    f"{WORD}cr": "\n",
    f"{WORD}noBreakHyphen": "-",
}
_GRAPHICS: Final = frozenset((f"{WORD}drawing", f"{WORD}pict", f"{WORD}object"))
_SYMBOLS: Final = dict(
    zip(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz\xa3\xb1\xb3\xb4\xb8\xb9\xa5\xae\xac\xb0\xd7\xe5\xf2\xb7",
        "ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖαβχδεφγηιϕκλμνοπθρστυϖωξψζ≤±≥×÷≠∞→←°⋅∑∫•",
        strict=True,
    )
)
_WINGDINGS: Final = dict(zip("\xfc\xfb\xa8o\xfe\xfd\xa7\xd8\xe0\xdfJLlnv\xe8\xf0", "✓✗☐☐☑☒▪➢→←☺☹●■❖➔⇨", strict=True))
_HYPERLINK: Final = re.compile(r'\s*HYPERLINK\s+"([^"]+)"', re.IGNORECASE)


def open_document(file: BinaryIO, name: str, limits: DocumentLimits) -> SectionedDocument:
    return _read(file, lambda part, data: chunk_elements(part, data, limits), limits)


def open_inner(file: BinaryIO, name: str, limits: DocumentLimits) -> SectionedDocument:
    """A Word file that is put into another one. Files that are put into this one are not read."""
    return _read(file, lambda part, data: [], limits)


_ReadChunk = Callable[[str, bytes], list[Element]]
"""Reads a file that is put whole into a Word file, given its name and its bytes."""


def _read(file: BinaryIO, read_chunk: _ReadChunk, limits: DocumentLimits) -> SectionedDocument:
    package = OfficePackage(file, limits)
    main = package.main_part("word/document.xml")
    body = None if main is None else main.root.find(f"{WORD}body")
    if main is None or body is None:
        raise Unreadable("it is not a Word file: it has no text part that can be read")
    file_reader = _WordFile(main, read_chunk)
    elements = file_reader.flow(main.relationships()).read(body)
    if main.is_cut:
        elements.append(Annotation("This file is broken here: the rest of its text cannot be read."))
    elements[:0] = file_reader.edges("header", Header)
    elements += file_reader.edges("footer", Footer)
    elements += file_reader.comments_left()
    return SectionedDocument(elements, package.properties(), package.read)


@dataclass(frozen=True, slots=True)
class _Comment:
    text: str
    author: str


class _WordFile:
    """The parts of a file that its text refers to."""

    def __init__(self, main: OfficePart, read_chunk: _ReadChunk) -> None:
        self.main = main
        self.read_chunk = read_chunk
        self.package = main.package
        kinds = ("styles", "numbering", "comments", "footnotes", "endnotes")
        self._related = {kind: list(main.related(kind)) for kind in kinds}
        self.styles = WordStyles(self._root("styles"))
        self.lists = WordLists.read(self._root("numbering"), self.styles)
        self.notes = {kind: self._texts(f"{kind}s", kind) for kind in ("footnote", "endnote")}
        self._comments = {
            comment_id: _Comment(text, node.get(f"{WORD}author") or "")
            for comment_id, (node, text) in self._nodes("comments", "comment").items()
        }
        self.note_count = 0

    def _root(self, kind: str) -> Node | None:
        return next((part.root for part in self._related[kind]), None)

    def _texts(self, kind: str, tag: str) -> dict[str, str]:
        return {note_id: text for note_id, (_, text) in self._nodes(kind, tag).items()}

    def _nodes(self, kind: str, tag: str) -> dict[str, tuple[Node, str]]:
        """Notes or comments by id, each with its text. The lines that separate notes have none."""
        found = {}
        for part in self._related[kind]:
            relationships = part.relationships()
            for node in part.root.iter(f"{WORD}{tag}"):
                if node.get(f"{WORD}type") in (None, "normal"):
                    found[node.get(_ID) or ""] = node, self.text_of(node, relationships)
        return found

    def flow(self, relationships: Mapping[str, Relationship]) -> "_Flow":
        return _Flow(self, relationships)

    def text_of(self, node: Node, relationships: Mapping[str, Relationship]) -> str:
        """The text of a part of the file that is shown in one piece."""
        return flat(self.flow(relationships).read(node))

    def next_note(self) -> int:
        self.note_count += 1
        return self.note_count

    def take_comment(self, comment_id: str) -> Annotation | None:
        """A comment, when the text that it is about was read. Each is taken once."""
        known = self._comments.pop(comment_id, None)
        return Annotation(known.text, known.author) if known is not None and known.text else None

    def comments_left(self) -> Iterator[Annotation]:
        for comment_id in list(self._comments):
            if (annotation := self.take_comment(comment_id)) is not None:
                yield annotation

    def edges(self, kind: str, element: type[Header] | type[Footer]) -> list[Element]:
        """What stands above or below every page: each text once, in the order of the sections that have it."""
        relationships = self.main.relationships()
        named = [node.get(f"{RELATION}id") or "" for node in self.main.root.iter(f"{WORD}{kind}Reference")]
        texts: dict[str, None] = {}
        for target in dict.fromkeys(relationships[each].target for each in named if each in relationships):
            part = self.package.part(target)
            if part is not None and (text := self.text_of(part.root, part.relationships())):
                texts[text] = None
        return [element(text) for text in texts]


@dataclass(slots=True)
class _Field:
    """A field under way: its code comes first, then what it shows."""

    code: str = ""
    shows: bool = False
    start: int = 0
    """Where what it shows begins, in the parts of the paragraph."""


class _OpenFields:
    """The fields under way, the inner ones last. Text is shown unless it stands in the code of one of them."""

    def __init__(self) -> None:
        self._open: list[_Field] = []

    @property
    def is_shown(self) -> bool:
        return all(each.shows for each in self._open)

    def begin(self) -> None:
        self._open.append(_Field())

    def add_code(self, text: str) -> None:
        if self._open and not self._open[-1].shows:
            self._open[-1].code += text

    def show(self, start: int) -> None:
        """The code of the innermost field has ended. What it shows begins at `start`."""
        if self._open:
            self._open[-1].shows, self._open[-1].start = True, start

    def end(self) -> _Field | None:
        return self._open.pop() if self._open else None

    def end_paragraph(self) -> None:
        """Forget fields whose code has not come to its end, so that they do not swallow what follows."""
        self._open = [each for each in self._open if each.shows]
        for each in self._open:
            each.start = 0


class _Flow:
    """Blocks one after the other: the body, a cell, a text box, a note. Its elements come in the order of the file.

    Links, pictures, notes and comments are put at the end of the page that they belong to, so that they do not cut up
    its text.
    """

    def __init__(self, file: _WordFile, relationships: Mapping[str, Relationship], depth: int = 0) -> None:
        self._file = file
        self._relationships = relationships
        self._depth = depth
        self._elements: list[Element] = []
        self._items: list[Item] = []
        self._code: list[str] = []
        self._fields = _OpenFields()
        self.later = EndOfSection()
        """What belongs to the end of the page."""
        self._inline_handlers: dict[str, Callable[[Node, ParagraphContent], None]] = {
            f"{WORD}fldChar": self._field_sign,
            f"{WORD}hyperlink": self._hyperlink,
            f"{WORD}sym": _symbol,
            f"{WORD}ruby": self._ruby,
            f"{WORD}footnoteReference": self._note,
            f"{WORD}endnoteReference": self._note,
            f"{WORD}commentReference": self._comment,
            **dict.fromkeys(_GRAPHICS, self._graphics),
            **dict.fromkeys(EQUATIONS, _equation),
        }

    def read(self, node: Node) -> list[Element]:
        """All elements, what was kept for later included."""
        self._blocks(node)
        self._flush()
        self._elements += self.later.take()
        return self._elements

    # --- blocks

    def _blocks(self, node: Node) -> None:
        for child in node:
            if child.tag == _PARAGRAPH:
                self._paragraph(child)
            elif child.tag == _TABLE:
                self._flush()
                self._table(child)
            elif child.tag == ALTERNATIVES:
                for form in alternatives(child):
                    self._blocks(form)
                    break
            elif child.tag == f"{WORD}altChunk":
                self._chunk(child)
            elif child.tag in _UNSEEN:
                continue
            elif child.tag == _RUN or child.tag in self._inline_handlers:
                # Not where it should be; some programs write it so.
                self._paragraph_of([child], ParagraphStyle(), None)
            else:
                self._blocks(child)

    def _chunk(self, node: Node) -> None:
        """A file that is put whole into this one. A program shows it as a part of the text."""
        self._flush()
        target = self._relationships.get(node.get(f"{RELATION}id") or "")
        data = None if target is None or target.is_external else self._file.package.read(target.target)
        if target is not None and data is not None:
            self._elements += self._file.read_chunk(target.target, data)

    def _paragraph(self, node: Node) -> None:
        settings = node.find(f"{WORD}pPr")
        style_id = value_of(settings, "pStyle") or self._file.styles.default
        style = self._file.styles.style(style_id)
        direct = None if settings is None else settings.find(f"{WORD}numPr")
        number_id = value_of(direct, "numId") or style.number_id
        label = None
        if number_id and number_id != "0":
            level = value_of(direct, "ilvl")
            by_style = self._file.lists.level_of_style(number_id, style_id) if not level else None
            depth = integer(level) if level else style.number_level if by_style is None else by_style
            label = self._file.lists.next_label(number_id, depth)
        outline = value_of(settings, "outlineLvl")
        if outline and style.level is None:
            style = ParagraphStyle(style.name, outline_level(outline))
        self._paragraph_of(node, style, label)

    def _paragraph_of(self, nodes: Node | Sequence[Node], style: ParagraphStyle, label: Label | None) -> None:
        inline = ParagraphContent()
        self._inline(nodes, inline)
        self._fields.end_paragraph()
        raw = inline.text
        text = raw.strip()
        if not text and not inline.beside:
            return
        if label is None and style.level is None and (style.is_bulleted or style.is_numbered):
            label = Label("", 0, False) if style.is_bulleted else Label("", 0, True)
        if style.is_code and text and style.level is None:
            self._flush_items()
            self._code.append(raw)
        elif style.level is not None and text:
            self._flush()
            words = " ".join(text.split())
            heading = Heading(f"{label.text} {words}" if label is not None and label.text else words, style.level)
            if self._depth == 0 and starts_page(heading):
                self._elements += self.later.take()
            self._elements.append(heading)
        elif label is not None and text:
            self._flush_code()
            self._items.append(Item(label, text))
        elif text:
            self._flush()
            formula = only_formula(text)
            self._elements.append(Formula(formula) if formula else Text(text))
        if inline.beside:
            self._flush()
            self._elements += inline.beside

    def _flush(self) -> None:
        self._flush_items()
        self._flush_code()

    def _flush_code(self) -> None:
        if self._code:
            self._elements.append(Code("\n".join(self._code)))
            self._code = []

    def _flush_items(self) -> None:
        if self._items:
            self._elements.append(list_of(self._items))
            self._items = []

    # --- tables

    def _table(self, node: Node) -> None:
        if self._depth >= FORMATS.office_levels:
            self._elements.append(Text(" ".join("".join(node.itertext()).split())))
            return
        rows: list[list[str]] = []
        contents: list[list[Element]] = []
        for row in _inner(node, _ROW):
            if row.find(f"{WORD}trPr/{WORD}del") is not None:
                continue
            cells = [""] * min(integer(value_of(row, "trPr", "gridBefore")), PAGE.columns)
            for cell in _inner(row, _CELL):
                settings = cell.find(f"{WORD}tcPr")
                merge = None if settings is None else settings.find(f"{WORD}vMerge")
                text = ""
                if merge is None or merge.get(f"{WORD}val") == "restart":
                    contents.append(self._inner_blocks(cell))
                    text = flat(contents[-1])
                width = min(integer(value_of(settings, "gridSpan"), 1), PAGE.columns)
                cells += [text, *[""] * (width - 1)]
            rows.append(cells)
        if len(contents) == 1 or any(len(cell) > FORMATS.layout_cell for row in rows for cell in row):
            # One cell, or pages of text in one: the table only places it.
            self._elements += [element for content in contents for element in content]
            return
        if any(map(any, rows)):
            self._elements.append(Table(rows[0], rows[1:]) if len(rows) > 1 else Table([], rows))
        self._elements += [each for content in contents for each in content if isinstance(each, Chart)]

    def _inner_blocks(self, node: Node) -> list[Element]:
        """The blocks inside a cell or a text box."""
        flow = _Flow(self._file, self._relationships, self._depth + 1)
        flow._blocks(node)
        flow._flush()
        self.later.add(*flow.later.take())
        return flow._elements

    # --- what a paragraph holds

    def _inline(self, nodes: Node | Sequence[Node], inline: ParagraphContent) -> None:
        parts = inline.parts
        for node in nodes:
            tag = node.tag
            if tag == _TEXT:
                if node.text and self._fields.is_shown:
                    parts.append(node.text)
            elif tag == _RUN:
                self._inline(node, inline)
            elif tag in _UNSEEN:
                if tag == f"{WORD}instrText":
                    self._fields.add_code(node.text or "")
            elif tag in _SIGNS:
                if self._fields.is_shown:
                    parts.append(_SIGNS[tag])
            elif tag in self._inline_handlers:
                if self._fields.is_shown or tag == f"{WORD}fldChar":
                    self._inline_handlers[tag](node, inline)
            elif tag == ALTERNATIVES:
                self._alternatives(node, inline)
            else:
                self._inline(node, inline)

    def _alternatives(self, node: Node, inline: ParagraphContent) -> None:
        """The first form that holds anything."""
        before = len(inline.parts), len(inline.beside), len(self.later)
        for form in alternatives(node):
            self._inline(form, inline)
            if (len(inline.parts), len(inline.beside), len(self.later)) != before:
                return

    def _field_sign(self, node: Node, inline: ParagraphContent) -> None:
        match node.get(f"{WORD}fldCharType"):
            case "begin":
                if self._fields.is_shown and (shown := _form_value(node)):
                    inline.parts.append(shown)
                self._fields.begin()
            case "separate":
                self._fields.show(len(inline.parts))
            case "end":
                done = self._fields.end()
                target = None if done is None else _HYPERLINK.match(done.code)
                if done is not None and target is not None:
                    self.later.add_link("".join(inline.parts[done.start :]), target[1])

    def _hyperlink(self, node: Node, inline: ParagraphContent) -> None:
        start = len(inline.parts)
        self._inline(node, inline)
        target = self._relationships.get(node.get(f"{RELATION}id") or "")
        if target is not None and target.is_external:
            self.later.add_link("".join(inline.parts[start:]), target.target)

    def _ruby(self, node: Node, inline: ParagraphContent) -> None:
        """The words, and how they are read in brackets behind them."""
        for child in node.findall(f"{WORD}rubyBase"):
            self._inline(child, inline)
        reading = "".join(each.text or "" for each in node.iterfind(f"{WORD}rt//{_TEXT}"))
        inline.parts.append(f"({reading})" if reading.strip() else "")

    def _note(self, node: Node, inline: ParagraphContent) -> None:
        kind = node.tag.rpartition("}")[2].removesuffix("Reference")
        text = self._file.notes[kind].get(node.get(_ID) or "")
        if text:
            number = self._file.next_note()
            inline.parts.append(f"[^{number}]")
            self.later.add(Text(f"[^{number}]: {text}"))

    def _comment(self, node: Node, inline: ParagraphContent) -> None:
        if (annotation := self._file.take_comment(node.get(_ID) or "")) is not None:
            self.later.add(annotation)

    def _graphics(self, node: Node, inline: ParagraphContent) -> None:
        """Text boxes, charts and SmartArt follow the paragraph that they are placed in, pictures its page."""
        found = WordDrawing(self._file.package, self._relationships, self._inner_blocks)
        if self._depth <= FORMATS.office_levels:
            found.look(node)
        width, height = pixels(node.find(f"*/{_PLACED}extent"))
        if found.picture is not None or (found.told and not found.elements):
            facts = part_facts(part_of(found.picture, self._relationships))
            self.later.add(Image(description="; ".join(found.told), width=width, height=height, metadata=facts))
        inline.beside += found.elements


def _inner(node: Node, tag: str) -> Iterator[Node]:
    """Rows of a table or cells of a row, also those inside content controls and tracked insertions."""
    for child in node:
        if child.tag == tag:
            yield child
        elif child.tag not in _UNSEEN and child.tag not in (_PARAGRAPH, _TABLE, _ROW, _CELL):
            yield from _inner(child, tag)


def _equation(node: Node, inline: ParagraphContent) -> None:
    if formula := latex(node):
        inline.parts.append(f"${formula}$")


def _symbol(node: Node, inline: ParagraphContent) -> None:
    """A sign of a font that has pictures in place of letters."""
    try:
        code = int(node.get(f"{WORD}char") or "", 16)
    except ValueError:
        return
    font = (node.get(f"{WORD}font") or "").lower()
    if code < 0xF000:
        inline.parts.append(chr(code) if code >= 32 else "")
        return
    table = _SYMBOLS if font == "symbol" else _WINGDINGS if font.startswith("wingdings") else {}
    inline.parts.append(table.get(chr(code - 0xF000), ""))


def _form_value(node: Node) -> str:
    """The value of a field of a form that has no text of its own: a checkbox, or a choice from a list."""
    data = node.find(f"{WORD}ffData")
    box = None if data is None else data.find(f"{WORD}checkBox")
    if box is not None:
        state = box.find(f"{WORD}checked")
        state = box.find(f"{WORD}default") if state is None else state
        return "☒" if state is not None and state.get(f"{WORD}val", "1") in ("1", "true", "on") else "☐"
    choice = None if data is None else data.find(f"{WORD}ddList")
    if choice is not None:
        entries = [each.get(f"{WORD}val") or "" for each in choice.findall(f"{WORD}listEntry")]
        chosen = integer(value_of(choice, "result") or value_of(choice, "default"))
        return entries[chosen] if 0 <= chosen < len(entries) else ""
    return ""
