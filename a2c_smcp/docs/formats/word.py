"""Word files, by python-docx: sections as pages; tables, lists, pictures, links, comments, edges as elements."""

from collections.abc import Iterator
from typing import BinaryIO
from zipfile import BadZipFile

import docx
from docx.document import Document as WordFile
from docx.opc.exceptions import OpcError
from docx.oxml.ns import qn
from docx.table import Table as WordTable
from docx.text.paragraph import Paragraph

from a2c_smcp.docs.formats import Properties, check_archive
from a2c_smcp.docs.formats.markdown import SectionedDocument
from a2c_smcp.docs.limits import DocumentLimits, Unreadable
from a2c_smcp.mcp_server.elements import (
    Annotation,
    Code,
    Element,
    Footer,
    Header,
    Heading,
    Image,
    Link,
    List,
    Table,
    Text,
)

__all__ = ["open_document"]


def open_document(file: BinaryIO, name: str, limits: DocumentLimits) -> SectionedDocument:
    check_archive(file, limits)
    try:
        document = docx.Document(file)
    except (OpcError, BadZipFile, KeyError, ValueError) as error:
        raise Unreadable(f"it is not a Word file: {' '.join(str(error).split())[:100]}") from None
    told = document.core_properties
    keywords = [word.strip() for word in (told.keywords or "").replace(";", ",").split(",") if word.strip()]
    properties = Properties(told.title or "", keywords, told.subject or "")
    elements = list(_elements(document))
    # Below the title, so that it is not a page of its own.
    at = 1 if elements and isinstance(elements[0], Heading) else 0
    elements[at:at] = _edges(document, "header")
    return SectionedDocument(elements, properties)


def _elements(document: WordFile) -> Iterator[Element]:
    items: list[str] = []
    ordered = False
    for block in document.iter_inner_content():
        kind = "" if isinstance(block, WordTable) else _list_kind(block)
        if items and kind != ("List Number" if ordered else "List Bullet"):
            yield List(items, ordered)
            items = []
        if isinstance(block, WordTable):
            yield _table(block)
        elif kind:
            ordered = kind == "List Number"
            items.append(block.text)
        else:
            yield from _paragraph(block)
    if items:
        yield List(items, ordered)
    yield from _edges(document, "footer")
    for comment in document.comments:
        yield Annotation(comment.text, comment.author or "")


def _edges(document: WordFile, which: str) -> Iterator[Element]:
    """What stands above or below every page, once."""
    kind = Header if which == "header" else Footer
    seen: set[str] = set()
    for section in document.sections:
        edge = getattr(section, which)
        text = "" if edge.is_linked_to_previous else "\n".join(each.text for each in edge.paragraphs).strip()
        if text and text not in seen:
            seen.add(text)
            yield kind(text)


def _style(paragraph: Paragraph) -> str:
    return (paragraph.style.name or "") if paragraph.style is not None else ""


def _list_kind(paragraph: Paragraph) -> str:
    """`List Bullet`, `List Number` or nothing."""
    style = _style(paragraph)
    if not paragraph.text.strip():
        return ""
    if style.startswith("List Number"):
        return "List Number"
    numbered = paragraph._p.pPr is not None and paragraph._p.pPr.numPr is not None
    return "List Bullet" if style.startswith("List") or (numbered and not style.startswith("Heading")) else ""


def _paragraph(paragraph: Paragraph) -> Iterator[Element]:
    text = paragraph.text.strip()
    style = _style(paragraph)
    if text:
        if style == "Title":
            yield Heading(text, 1)
        elif style.startswith("Heading ") and style[8:].isdigit():
            yield Heading(text, min(6, max(1, int(style[8:]))))
        elif "Code" in style or style in ("HTML Preformatted", "macro"):
            yield Code(paragraph.text)
        else:
            yield Text(text)
    for link in paragraph.hyperlinks:
        if link.url:
            yield Link(link.text, link.url)
    for picture in paragraph._p.iter(qn("wp:docPr")):
        yield Image(description=picture.get("descr") or picture.get("title") or picture.get("name") or "")


def _table(table: WordTable) -> Table:
    rows = [[cell.text for cell in row.cells] for row in table.rows]
    headers, body = (rows[0], rows[1:]) if len(rows) > 1 else ([], rows)
    return Table(headers, body)
