"""How a long text becomes pages: sections by headings, blocks of rows, blocks of lines. Pure, but for reading lines."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import BinaryIO, Final

from a2c_smcp.mcp_server.documents import Page
from a2c_smcp.mcp_server.elements import Cell, Element, Heading, List, Table, Text

__all__ = ["LINES", "MOST_ELEMENTS", "ROWS", "blocks_of_lines", "sections", "split_table"]

ROWS: Final = 200
LINES: Final = 200
MOST_ELEMENTS: Final = 60
#: A page of lines ends here too: some files are one line.
LINES_BYTES: Final = 64 * 1024
MOST_COLUMNS: Final = 256
LONGEST_CELL: Final = 2000
_LONGEST_TEXT: Final = 16_000
_SECTION_LEVEL: Final = 2


def sections(elements: Iterable[Element]) -> list[Page]:
    """Pages from one heading of level 1 or 2 to the next, with at most 60 elements each. No element is lost."""
    found: list[tuple[str, list[Element]]] = [("", [])]
    for element in _bounded(elements):
        if isinstance(element, Heading) and element.level <= _SECTION_LEVEL:
            found.append((element.text, []))
        found[-1][1].append(element)
    pages: list[Page] = []
    for title, section in found:
        for number, start in enumerate(range(0, len(section), MOST_ELEMENTS)):
            shown = f"{title} ({number + 1})".strip() if number else title
            pages.append(Page(shown or f"Page {len(pages) + 1}", section[start : start + MOST_ELEMENTS]))
    return pages


def _bounded(elements: Iterable[Element]) -> Iterator[Element]:
    """The same elements, those that would be a page of their own in several pieces."""
    for element in elements:
        match element:
            case Table():
                yield from split_table(element)
            case Text() if len(element.text) > _LONGEST_TEXT:
                for start in range(0, len(element.text), _LONGEST_TEXT):
                    yield replace(element, text=element.text[start : start + _LONGEST_TEXT])
            case List() if len(element.items) > ROWS:
                for start in range(0, len(element.items), ROWS):
                    yield replace(element, items=element.items[start : start + ROWS])
            case _:
                yield element


def split_table(table: Table) -> Iterator[Table]:
    """Tables of at most 200 rows, each under the same headers."""
    for start in range(0, max(1, len(table.rows)), ROWS):
        yield bounded_table(table.headers, table.rows[start : start + ROWS])


def bounded_table(headers: Sequence[str], rows: Sequence[Sequence[Cell]], **facts: object) -> Table:
    """A table whose columns and cells are within bounds; what is left out is said in its metadata."""
    columns = max((len(headers), *map(len, rows)))
    metadata = {**facts, **({"columns": columns, "columns_shown": MOST_COLUMNS} if columns > MOST_COLUMNS else {})}
    return Table(
        [header[:LONGEST_CELL] for header in headers[:MOST_COLUMNS]],
        [[_short(cell) for cell in row[:MOST_COLUMNS]] for row in rows],
        metadata=metadata,
    )


def _short(cell: Cell) -> Cell:
    return f"{cell[: LONGEST_CELL - 1]}…" if isinstance(cell, str) and len(cell) > LONGEST_CELL else cell


def blocks_of_lines(file: BinaryIO) -> list[tuple[int, int]]:
    """Where each page of a text starts, and the number of its first line: 200 lines, or 64 KiB if that is less."""
    starts: list[tuple[int, int]] = []
    at = line_number = lines = size = 0
    for line in _lines(file):
        if not starts or lines >= LINES or size + len(line) > LINES_BYTES:
            starts.append((at, line_number))
            lines = size = 0
        at += len(line)
        size += len(line)
        lines += 1
        line_number += line.endswith(b"\n")
    return starts


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Lines of at most 64 KiB; a longer one in pieces that do not cut a UTF-8 character."""
    while line := file.readline(LINES_BYTES):
        if len(line) == LINES_BYTES and line[-1] >= 0x80:
            lead = next((back for back in range(1, 5) if line[-back] >= 0xC0), 0)
            line = line[: len(line) - lead]
            file.seek(-lead, 1)
        yield line
