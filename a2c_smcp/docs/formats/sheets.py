"""Workbooks: 200 rows of a sheet a page, fewer where they are long. Values are as the sheet shows them.

Each kind of workbook has a walk of our own, which keeps only cells that hold something. What such a walk does not read
goes to python-calamine, which knows more old and odd files, but no number formats.
"""

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, Final

from a2c_smcp.docs.formats import OpenDocument, Properties, check_archive, suffix_of
from a2c_smcp.docs.formats.delimited import DelimitedDocument, looks_like_headers
from a2c_smcp.docs.formats.packages import Package
from a2c_smcp.docs.formats.workbooks import Row, Sheet, column_name
from a2c_smcp.docs.limits import FORMATS, DocumentLimits, Unreadable
from a2c_smcp.docs.paging import PAGE, bounded_tables, row_size
from a2c_smcp.mcp_server.documents import Page
from a2c_smcp.mcp_server.elements import Annotation, Cell, Element, Heading, Text

__all__ = ["SheetsDocument", "open_document"]

_OLE: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_EMPTY_LINES: Final = 20
"""So many empty rows in a row are shown as empty. More of them end a table, and so do columns of a wide sheet."""


@dataclass(frozen=True, slots=True)
class _Block:
    """Rows of a sheet that are one page."""

    sheet: Sheet
    headers: dict[int, str]
    """By column."""
    start: int
    end: int
    """Indices of the sheet's rows."""

    @property
    def rows(self) -> Sequence[Row]:
        return self.sheet.rows[self.start : self.end]

    @property
    def is_last(self) -> bool:
        return self.end >= len(self.sheet.rows)


class SheetsDocument:
    def __init__(self, name: str, sheets: Sequence[Sheet]) -> None:
        self._name = name
        self._sheets = sheets
        self._blocks = [block for sheet in sheets for block in _blocks(sheet)]

    @property
    def page_count(self) -> int:
        return len(self._blocks)

    @property
    def properties(self) -> Properties:
        headers = {id(block.sheet): list(block.headers.values()) for block in self._blocks}
        about = [
            f"{_shown_name(sheet)} ({', '.join([f'{_row_count(sheet, headers)} rows', *headers[id(sheet)][:12]])})"
            for sheet in self._sheets
        ]
        return Properties(
            self._name, summary=f"Sheets: {'; '.join(about[:10])}", keywords=[s.name for s in self._sheets][:3]
        )

    def page(self, index: int) -> Page:
        block = self._blocks[index]
        name = _shown_name(block.sheet)
        elements: list[Element] = [Heading(name, 2), *_tables(block)]
        elements += _remarks(block)
        if block.is_last:
            elements += [Text(text) for text in [*block.sheet.texts, *block.sheet.gaps]]
        if len(elements) == 1 and not block.headers:
            elements.append(Text("This sheet is empty."))
        rows = block.rows
        return Page(f"{name}, rows {rows[0].number} to {rows[-1].number}" if rows else name, elements)


def _row_count(sheet: Sheet, headers: dict[int, list[str]]) -> int:
    return len(sheet.rows) - bool(headers[id(sheet)])


def _shown_name(sheet: Sheet) -> str:
    return f"{sheet.name} (hidden)" if sheet.hidden else sheet.name


def _blocks(sheet: Sheet) -> Iterator[_Block]:
    """The pages of a sheet: at least one."""
    headers = _headers(sheet)
    start = first = 1 if headers else 0
    size = 0
    for index in range(first, len(sheet.rows)):
        more = row_size(sheet.rows[index].values)
        if index > start and (index - start == PAGE.rows or size + more > PAGE.characters):
            yield _Block(sheet, headers, start, index)
            start, size = index, 0
        size += more
    yield _Block(sheet, headers, start, len(sheet.rows))


def _headers(sheet: Sheet) -> dict[int, str]:
    """The names of the columns, by column, if the first row has any. Some columns may have none."""
    if len(sheet.rows) < 2:
        return {} if not sheet.rows or not _names_all(sheet.rows[0]) else dict(_texts(sheet.rows[0]))
    first, second = sheet.rows[:2]
    width = len({*first.columns, *second.columns})
    if second.number - first.number > 1 or len(first.columns) * 2 < width or not _names_all(first):
        return {}
    return dict(_texts(first))


def _names_all(row: Row) -> bool:
    return all(isinstance(value, str) for value in row.values) and looks_like_headers([*map(str, row.values)])


def _texts(row: Row) -> Iterator[tuple[int, str]]:
    return ((column, str(value).strip()) for column, value in zip(row.columns, row.values, strict=True))


def _tables(block: _Block) -> Iterator[Element]:
    """The rows of a page as tables, without large areas that are empty."""
    if not block.rows and block.headers:
        yield from _rectangle(block, [], sorted(block.headers))
    last = 0
    for rows in _near([row.number for row in block.rows]):
        chosen = block.rows[rows.start : rows.stop]
        if last:
            yield Text(f"Rows {last + 1} to {chosen[0].number - 1} are empty.")
        last = chosen[-1].number
        used = {column for row in chosen for column in row.columns}
        if len(used | block.headers.keys()) > len(used) and len(block.headers) <= PAGE.columns:
            used |= block.headers.keys()
        columns = sorted(used)
        far = columns[-1] - columns[0] >= PAGE.columns
        groups = [columns[each.start : each.stop] for each in _near(columns)] if far else [columns]
        for number, group in enumerate(groups):
            if len(groups) > 1:
                more = "The same rows, columns" if number else "Columns"
                yield Text(f"{more} {column_name(group[0])} to {column_name(group[-1])}:")
            yield from _rectangle(block, chosen, group)


def _near(numbers: Sequence[int]) -> Iterator[range]:
    """Ranges of indices in which no number is far from the one before."""
    start = 0
    for index in range(1, len(numbers) + 1):
        if index == len(numbers) or numbers[index] - numbers[index - 1] > _EMPTY_LINES:
            yield range(start, index)
            start = index


def _rectangle(block: _Block, rows: Sequence[Row], columns: Sequence[int]) -> Iterator[Element]:
    """A table from the first to the last of these rows and columns."""
    first, last = columns[0], columns[-1]
    facts: dict[str, Any] = {"sheet": block.sheet.name, "first_column": column_name(first)}
    if rows:
        facts["first_row"] = rows[0].number
    if block.sheet.hidden:
        facts["hidden"] = True
    facts |= _formulas(block.sheet, rows)
    headers = [block.headers.get(column, "") for column in range(first, last + 1)] if block.headers else []
    table: list[list[Cell]] = []
    for row in rows:
        while table and len(table) < row.number - rows[0].number:
            table.append([])
        cells = {
            column: value for column, value in zip(row.columns, row.values, strict=True) if first <= column <= last
        }
        table.append([cells.get(column) for column in range(first, max(cells, default=first - 1) + 1)])
    yield from bounded_tables(headers, table, column_name=lambda index: column_name(first + index), **facts)


def _formulas(sheet: Sheet, rows: Sequence[Row]) -> dict[str, Any]:
    found: dict[str, str] = {}
    size = left_out = 0
    for row in rows:
        for cell, text in sheet.formulas.get(row.number, {}).items():
            size += len(text)
            if size <= PAGE.characters:
                found[cell] = text
            else:
                left_out += 1
    return {**({"formulas": found} if found else {}), **({"formulas_left_out": left_out} if left_out else {})}


def _remarks(block: _Block) -> Iterator[Annotation]:
    rows = block.rows
    first = rows[0].number if block.start > 1 and rows else 0
    last = float("inf") if block.is_last else rows[-1].number
    for remark in block.sheet.remarks:
        if first <= remark.row <= last:
            yield Annotation(f"{remark.cell}: {remark.text}", remark.author)


def open_document(file: BinaryIO, name: str, limits: DocumentLimits) -> OpenDocument:
    head = file.read(512)
    file.seek(0)
    short_name = name.rpartition("/")[2]
    if not head.startswith((_OLE, b"PK")) and b"\0" not in head:
        return _disguised(file, name, head, limits)
    try:
        sheets = _own_walk(file, head, limits)
    except Unreadable as problem:
        if problem.code != 500 or problem.reason == _ENCRYPTED:
            raise
        if head.startswith(_OLE) and suffix_of(name) != "xls":
            raise Unreadable(_ENCRYPTED) from None
        sheets = _by_calamine(file, problem)
    if not sheets:
        raise Unreadable("it has no sheets")
    return SheetsDocument(short_name, sheets)


_ENCRYPTED: Final = "it is encrypted"


def _own_walk(file: BinaryIO, head: bytes, limits: DocumentLimits) -> list[Sheet]:
    if head.startswith(_OLE):
        from a2c_smcp.docs.formats import xls

        return xls.read_workbook(file)
    if not head.startswith(b"PK"):
        raise Unreadable("it is of the time before 1995")
    check_archive(file, limits)
    from a2c_smcp.docs.formats import ods, xlsb, xlsx

    package = Package(file)
    if "content.xml" in package:
        return ods.read_workbook(file)
    return xlsb.read_workbook(file) if "xl/workbook.bin" in package else xlsx.read_workbook(file)


def _disguised(file: BinaryIO, name: str, head: bytes, limits: DocumentLimits) -> OpenDocument:
    """Many programs write HTML or a table of text, and call it a workbook; others open it without a word."""
    if b"<" in head[:64]:
        from a2c_smcp.docs.formats import html

        return html.open_document(file, name, limits)
    if b"\t" not in head and b"," not in head and b";" not in head:
        raise Unreadable("it is not a workbook")
    return DelimitedDocument(file, name)


def _by_calamine(file: BinaryIO, problem: Unreadable) -> list[Sheet]:
    from python_calamine import CalamineWorkbook, PasswordError

    file.seek(0)
    try:
        with CalamineWorkbook.from_filelike(file) as workbook:
            return [_calamine_sheet(workbook.get_sheet_by_name(name)) for name in workbook.sheet_names]
    except PasswordError:
        raise Unreadable(_ENCRYPTED) from None
    except (MemoryError, KeyboardInterrupt):
        raise
    except BaseException:  # a panic in Rust is no `Exception`
        raise problem from None


def _calamine_sheet(found: Any) -> Sheet:
    sheet = Sheet(found.name)
    top, left = found.start or (0, 0)
    for number, cells in enumerate(found.iter_rows(), top + 1):
        if number - top > FORMATS.sheet_cells // max(1, found.width):
            sheet.gaps.append(f"Rows from {number} on are not read: there are too many.")
            break
        row = [(left + at, _plain(cell)) for at, cell in enumerate(cells) if cell not in ("", None)]
        if row:
            sheet.rows.append(Row(number, tuple(column for column, _ in row), [value for _, value in row]))
    return sheet


def _plain(value: Any) -> Cell:
    match value:
        case bool() | int() | str():
            return value
        case float():
            return int(value) if value.is_integer() and abs(value) < 2**53 else value
        case datetime.datetime():
            return value.isoformat(" ").removesuffix(" 00:00:00")
        case _:
            return str(value)
