"""How a long text becomes pages: sections by headings, blocks of rows, blocks of lines. Pure, but for reading lines."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import BinaryIO, Final

from a2c_smcp.mcp_server.documents import Page
from a2c_smcp.mcp_server.elements import Cell, Element, Heading, List, Table, Text

__all__ = ["PAGE", "PageBounds", "blocks_of_lines", "sections", "split_table"]


@dataclass(frozen=True, slots=True)
class PageBounds:
    """How much one page of a document has."""

    rows: int = 200
    lines: int = 200
    line_bytes: int = 64 * 1024  # A page of lines ends here too: some files are one line
    elements: int = 60
    columns: int = 256
    cell: int = 2000  # characters
    text: int = 16_000  # characters of one element


PAGE: Final = PageBounds()


def sections(elements: Iterable[Element]) -> list[Page]:
    """Pages from one heading of level 1 or 2 to the next, with at most 60 elements each. No element is lost."""
    found: list[tuple[str, list[Element]]] = [("", [])]
    for element in _bounded(elements):
        if isinstance(element, Heading) and element.level <= 2:
            found.append((element.text, []))
        found[-1][1].append(element)
    pages: list[Page] = []
    for title, section in found:
        for number, start in enumerate(range(0, len(section), PAGE.elements)):
            shown = f"{title} ({number + 1})".strip() if number else title
            pages.append(Page(shown or f"Page {len(pages) + 1}", section[start : start + PAGE.elements]))
    return pages


def _bounded(elements: Iterable[Element]) -> Iterator[Element]:
    """The same elements. One that is too long for a page is cut into several."""
    for element in elements:
        match element:
            case Table():
                yield from split_table(element)
            case Text() if len(element.text) > PAGE.text:
                for start in range(0, len(element.text), PAGE.text):
                    yield replace(element, text=element.text[start : start + PAGE.text])
            case List() if len(element.items) > PAGE.rows:
                for start in range(0, len(element.items), PAGE.rows):
                    yield replace(element, items=element.items[start : start + PAGE.rows])
            case _:
                yield element


def split_table(table: Table) -> Iterator[Table]:
    """Tables of at most 200 rows, each under the same headers."""
    for start in range(0, max(1, len(table.rows)), PAGE.rows):
        yield bounded_table(table.headers, table.rows[start : start + PAGE.rows])


def bounded_table(headers: Sequence[str], rows: Sequence[Sequence[Cell]], **facts: object) -> Table:
    """A table whose columns and cells are within bounds; what is left out is said in its metadata."""
    columns = max((len(headers), *map(len, rows)))
    metadata = {**facts, **({"columns": columns, "columns_shown": PAGE.columns} if columns > PAGE.columns else {})}
    return Table(
        [header[: PAGE.cell] for header in headers[: PAGE.columns]],
        [[_short(cell) for cell in row[: PAGE.columns]] for row in rows],
        metadata=metadata,
    )


def _short(cell: Cell) -> Cell:
    return f"{cell[: PAGE.cell - 1]}…" if isinstance(cell, str) and len(cell) > PAGE.cell else cell


def blocks_of_lines(file: BinaryIO) -> list[tuple[int, int]]:
    """Where each page of a text starts, and the number of its first line: 200 lines, or 64 KiB if that is less."""
    starts: list[tuple[int, int]] = []
    at = line_number = lines = size = 0
    for line in _lines(file):
        if not starts or lines >= PAGE.lines or size + len(line) > PAGE.line_bytes:
            starts.append((at, line_number))
            lines = size = 0
        at += len(line)
        size += len(line)
        lines += 1
        line_number += line.endswith(b"\n")
    return starts


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Lines of at most 64 KiB; a longer one in pieces that do not cut a UTF-8 character."""
    while line := file.readline(PAGE.line_bytes):
        if len(line) == PAGE.line_bytes and line[-1] >= 0x80:
            lead = next((back for back in range(1, 5) if line[-back] >= 0xC0), 0)
            line = line[: len(line) - lead]
            file.seek(-lead, 1)
        yield line
