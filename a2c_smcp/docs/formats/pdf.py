"""PDF, by pypdfium2: a page a page, read when it is asked for.

Headings are found by the size of their letters, tables by the lines that are ruled around their cells.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import BinaryIO

import pypdfium2

from a2c_smcp.docs.formats import Properties
from a2c_smcp.docs.formats.pdf_tables import Grid, RuledTable, filled, grids, placed
from a2c_smcp.docs.formats.pdf_text import (
    Box,
    Glyph,
    in_reading_order,
    larger_sizes,
    lines_of,
    paragraphs,
)
from a2c_smcp.docs.formats.pdfium import PdfPage, is_locked
from a2c_smcp.docs.formats.pictures import png_within
from a2c_smcp.docs.limits import FORMATS, DocumentLimits, Unreadable
from a2c_smcp.docs.paging import bounded, bounded_tables
from a2c_smcp.mcp_server.documents import Page
from a2c_smcp.mcp_server.elements import Annotation, Element, Heading, Text

__all__ = ["open_document"]


class PdfDocument:
    def __init__(self, document: pypdfium2.PdfDocument) -> None:
        self._document = document
        document.init_forms()  # pages that are open already would have no fields
        self.page_count = len(document)
        told = document.get_metadata_dict(skip_empty=True)
        keywords = [word.strip() for word in told.get("Keywords", "").replace(";", ",").split(",") if word.strip()]
        self.properties = Properties(told.get("Title", ""), keywords, told.get("Subject", ""))

    def page(self, index: int) -> Page:
        try:
            page = PdfPage(self._document, index)
        except pypdfium2.PdfiumError as error:
            problem = f"This page cannot be read: {error}"
            return Page(f"Page {index + 1}", [Text(problem, metadata={"error_code": 500})])
        try:
            elements = list(_elements(page))
        finally:
            page.close()
        heading = next((element.text for element in elements if isinstance(element, Heading)), "")
        return Page(heading or f"Page {index + 1}", elements)

    def picture(self, index: int, element: Element | None, longest: int) -> bytes | None:
        """The page as it is shown, or the part of it where an element is."""
        if element is not None and element.bbox is None:
            return None
        page = PdfPage(self._document, index)
        try:
            picture = page.picture(None if element is None or element.bbox is None else Box(*element.bbox), longest)
        finally:
            page.close()
        return png_within(picture, longest)

    def close(self) -> None:
        self._document.close()


def open_document(file: BinaryIO, name: str, limits: DocumentLimits) -> PdfDocument:
    try:
        return PdfDocument(pypdfium2.PdfDocument(file))
    except pypdfium2.PdfiumError as error:
        if is_locked(error):
            raise Unreadable("it is encrypted") from None
        raise Unreadable(f"the file is broken: {error}") from None


def _elements(page: PdfPage) -> Iterator[Element]:
    found = grids(page.rulings()) if page.character_count else []
    glyphs = page.glyphs(by_character=bool(found))
    tables = _tables(found, glyphs)
    parts = [
        part if isinstance(part, RuledTable) else in_reading_order(list(lines_of(part)))
        for part in _in_parts(glyphs, tables)
    ]
    larger = larger_sizes(line for part in parts if not isinstance(part, RuledTable) for line in part)
    for part in parts:
        if isinstance(part, RuledTable):
            for each in bounded_tables(part.rows[0], part.rows[1:]):
                yield replace(each, bbox=part.box.rounded)
        else:
            yield from bounded(paragraphs(part, larger))
    if page.character_count > FORMATS.pdf_characters:
        shown, there = FORMATS.pdf_characters, page.character_count
        yield Annotation(f"Left out here: what follows the first {shown:,} of {there:,} characters.")
    if form := page.form():
        yield form
    yield from page.notes()
    yield from page.links()
    yield from page.images()


def _tables(ruled: Sequence[Grid], glyphs: Sequence[Glyph]) -> dict[int, RuledTable]:
    """The tables of a page, by the numbers of the characters that are in them."""
    found: dict[int, RuledTable] = {}
    for grid in sorted(ruled, key=lambda each: each.box.area):  # a table in a cell of another one comes first
        cells, _ = placed(grid, glyphs)
        inside = [number for number, cell in enumerate(cells) if cell is not None and number not in found]
        if inside and (table := filled(grid, [glyphs[number] for number in inside])) is not None:
            found |= dict.fromkeys(inside, table)
    return found


def _in_parts(glyphs: Sequence[Glyph], tables: dict[int, RuledTable]) -> Iterator[Sequence[Glyph] | RuledTable]:
    """The characters of a page without those of its tables, and each table where its first character is."""
    running: list[Glyph] = []
    shown: list[RuledTable] = []
    for number, glyph in enumerate(glyphs):
        table = tables.get(number)
        if table is None:
            running.append(glyph)
        elif not any(table is each for each in shown):
            yield running
            yield table
            shown.append(table)
            running = []
        elif running and running[-1].text != "\n":
            running.append(Glyph("\n", None, glyph.size))  # what follows a table is no part of the line before it
    yield running
