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
        self._places = _places(document)
        self.page_count = len(self._places)
        told = document.get_metadata_dict(skip_empty=True)
        keywords = [word.strip() for word in told.get("Keywords", "").replace(";", ",").split(",") if word.strip()]
        self.properties = Properties(told.get("Title", ""), keywords, told.get("Subject", ""))

    def page(self, index: int) -> Page:
        sheet, part = self._places[index]
        name = f"Page {sheet + 1} ({part + 1})" if part else f"Page {sheet + 1}"
        try:
            page = PdfPage(self._document, sheet)
        except pypdfium2.PdfiumError as error:
            problem = f"This page cannot be read: {error}"
            return Page(name, [Text(problem, metadata={"error_code": 500})])
        try:
            elements = list(_words(page, part))
            if not part:
                elements += _beside(page)
            if (left := _left_out(page, len(self._document))) is not None:
                elements.append(left)
        finally:
            page.close()
        heading = next((element.text for element in elements if isinstance(element, Heading)), "")
        return Page(heading or name, elements)

    def picture(self, index: int, element: Element | None, longest: int) -> bytes | None:
        """The page as it is shown, or the part of it where an element is."""
        if element is not None and element.bbox is None:
            return None
        page = PdfPage(self._document, self._places[index][0])
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


def _places(document: pypdfium2.PdfDocument) -> list[tuple[int, int]]:
    """For each page, the number of its sheet and which part of that sheet it is."""
    sheets = range(len(document))
    if len(sheets) > FORMATS.pdf_split_sheets:
        return [(sheet, 0) for sheet in sheets]
    return [(sheet, part) for sheet in sheets for part in range(_part_count(document, sheet))]


def _part_count(document: pypdfium2.PdfDocument, sheet: int) -> int:
    try:
        page = PdfPage(document, sheet)
    except pypdfium2.PdfiumError:
        return 1
    try:
        return page.part_count
    finally:
        page.close()


def _words(page: PdfPage, number: int) -> Iterator[Element]:
    """The texts and tables of a part of a sheet."""
    found = grids(page.rulings()) if page.character_count else []
    glyphs = page.glyphs(page.part(number), by_character=bool(found))
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


def _left_out(page: PdfPage, sheets: int) -> Annotation | None:
    """What is said of a sheet that has more characters than the pages that it may become."""
    parts = 1 if sheets > FORMATS.pdf_split_sheets else page.part_count
    shown, there = page.part(parts - 1).stop, page.character_count
    return (
        Annotation(f"Left out here: what follows the first {shown:,} of {there:,} characters.")
        if shown < there
        else None
    )


def _beside(page: PdfPage) -> Iterator[Element]:
    """What a sheet has beside its text."""
    if form := page.marks.form():
        yield form
    yield from page.marks.notes()
    yield from page.marks.links()
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
