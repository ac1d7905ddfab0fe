"""How a long text becomes pages: sections by headings, blocks of rows, blocks of lines. Pure, but for reading lines."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, BinaryIO, Final, TypeVar

from a2c_smcp.mcp_server.documents import Page
from a2c_smcp.mcp_server.elements import Annotation, Cell, Code, Element, Header, Heading, List, Table, Text

__all__ = [
    "PAGE",
    "PageBounds",
    "blocks_of_lines",
    "bounded",
    "bounded_tables",
    "element_size",
    "pieces_of",
    "row_size",
    "sections",
    "split_table",
    "starts_page",
]


@dataclass(frozen=True, slots=True)
class PageBounds:
    """How much one page of a document has."""

    characters: int = 60_000
    """A page with more is split into several. One row of a table is never split."""
    rows: int = 200
    lines: int = 200
    line_bytes: int = 60_000  # A page of lines ends here too: some files are one line
    elements: int = 60
    columns: int = 256
    """A table with more is split into several tables of the same rows."""
    most_columns: int = 16_384
    """Further columns are left out, and the page says so. No program for sheets has more."""
    cell: int = 32_767  # characters. No program for sheets has more; the page says what was cut
    text: int = 16_000  # characters of one element


PAGE: Final = PageBounds()


def sections(elements: Iterable[Element]) -> list[Page]:
    """Pages from one heading of level 1 or 2 to the next, with at most 60 elements and 60,000 characters each.

    No element is lost. One that is too long for a page becomes several.
    """
    found: list[tuple[str, list[Element]]] = [("", [])]
    for element in bounded(elements):
        if isinstance(element, Heading) and starts_page(element):
            # What stands above every page is no page of its own: it stands above the title.
            above = found.pop()[1] if all(isinstance(each, Header) for each in found[-1][1]) else []
            found.append((element.text, above))
        found[-1][1].append(element)
    pages: list[Page] = []
    for title, section in found:
        for number, part in enumerate(_page_loads(section), 1):
            shown = f"{title} ({number})".strip() if number > 1 else title
            pages.append(Page(shown or f"Page {len(pages) + 1}", part))
    return pages


def starts_page(element: Element) -> bool:
    """Whether this element begins a section that is a page of its own."""
    return isinstance(element, Heading) and element.level <= 2


def _page_loads(elements: Sequence[Element]) -> Iterator[list[Element]]:
    """The elements in runs that fit on a page."""
    return _runs(elements, element_size, PAGE.characters, PAGE.elements)


def element_size(element: Element) -> int:
    """About how many characters an element has when it is read."""
    match element:
        case Table():
            return row_size(element.headers) + sum(map(row_size, element.rows))
        case List():
            return sum(map(len, element.items))
        case Text() | Code() | Heading() | Annotation():
            return len(element.text)
        case _:
            return len(element.brief)


def row_size(row: Sequence[Cell]) -> int:
    """About how many characters a row of a table has."""
    return sum(len(cell) if isinstance(cell, str) else 8 for cell in row) + 3 * len(row)


def bounded(elements: Iterable[Element]) -> Iterator[Element]:
    """The same elements. One that is too long for a page is cut into several."""
    for element in elements:
        match element:
            case Table():
                yield from split_table(element)
            case Text() | Code() if len(element.text) > PAGE.text:
                for piece in pieces_of(element.text, PAGE.text):
                    yield replace(element, text=piece)
            case List() if len(element.items) > PAGE.rows or element_size(element) > PAGE.text:
                for items in _runs(element.items, len, PAGE.text):
                    yield replace(element, items=items)
            case _:
                yield element


def pieces_of(text: str, most: int) -> Iterator[str]:
    """A text in pieces of at most so many characters, cut between lines, else between words, else anywhere."""
    start = 0
    while len(text) - start > most:
        end = start + most
        for blank in ("\n", " "):
            if (found := text.rfind(blank, start + most // 2, end)) > 0:
                end = found + 1
                break
        yield text[start:end].rstrip()
        start = end
    if rest := text[start:].rstrip():
        yield rest


_Item = TypeVar("_Item")


def _runs(
    items: Sequence[_Item], size: Callable[[_Item], int], most: int, most_items: int = PAGE.rows
) -> Iterator[list[_Item]]:
    """Items in runs of at most `most_items` and `most` characters. An item that alone has more is a run of its own."""
    run: list[_Item] = []
    total = 0
    for item in items:
        more = size(item)
        if run and (len(run) == most_items or total + more > most):
            yield run
            run, total = [], 0
        run.append(item)
        total += more
    if run:
        yield run


def split_table(table: Table) -> Iterator[Element]:
    """Tables of at most 200 rows and 256 columns that fit on a page, each under its headers."""
    for rows in list(_runs(table.rows, row_size, PAGE.characters)) or [[]]:
        yield from bounded_tables(table.headers, rows, **table.metadata)


def bounded_tables(
    headers: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    *,
    column_name: Callable[[int], str] = lambda index: str(index + 1),
    **facts: Any,
) -> Iterator[Element]:
    """The same rows as tables of at most 256 columns. What is left out is said after them."""
    columns = max((len(headers), *map(len, rows)))
    cut = 0
    for first in range(0, max(1, min(columns, PAGE.most_columns)), PAGE.columns):
        last = min(first + PAGE.columns, columns)
        cut += sum(isinstance(cell, str) and len(cell) > PAGE.cell for row in rows for cell in row[first:last])
        if first:
            yield Text(f"The same rows, columns {column_name(first)} to {column_name(last - 1)}:")
            facts = {**facts, "first_column": column_name(first)}
        shown = [[_short(cell) for cell in row[first:last]] for row in rows]
        yield Table([_short(header) for header in headers[first:last]], shown, metadata=facts)
    if columns > PAGE.most_columns:
        yield Text(f"Left out here: columns {column_name(PAGE.most_columns)} to {column_name(columns - 1)}.")
    if cut:
        yield Text(f"Left out here: the ends of {cut} cells with more than {PAGE.cell} characters.")


_CellOrText = TypeVar("_CellOrText", Cell, str)


def _short(cell: _CellOrText) -> _CellOrText:
    return f"{cell[: PAGE.cell - 1]}…" if isinstance(cell, str) and len(cell) > PAGE.cell else cell


def blocks_of_lines(file: BinaryIO) -> list[tuple[int, int]]:
    """Where each page of a text starts, and the number of its first line: 200 lines, or 60,000 bytes at most."""
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
    """Lines of at most 60,000 bytes; a longer one in pieces that do not cut a UTF-8 character."""
    while line := file.readline(PAGE.line_bytes):
        if len(line) == PAGE.line_bytes and line[-1] >= 0x80:
            lead = next((back for back in range(1, 5) if line[-back] >= 0xC0), 0)
            line = line[: len(line) - lead]
            file.seek(-lead, 1)
        yield line
