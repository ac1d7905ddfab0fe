"""Workbooks, by python-calamine: 200 rows of a sheet a page. Formulas of small workbooks, by openpyxl."""

import datetime
import math
from dataclasses import dataclass
from typing import Any, BinaryIO, Final

from python_calamine import CalamineError, CalamineSheet, CalamineWorkbook, PasswordError, SheetTypeEnum

from a2c_smcp.docs.formats import Properties, check_archive, suffix_of
from a2c_smcp.docs.formats.delimited import looks_like_headers
from a2c_smcp.docs.limits import FORMATS, DocumentLimits, Unreadable
from a2c_smcp.docs.paging import PAGE, bounded_table
from a2c_smcp.mcp_server.documents import Page
from a2c_smcp.mcp_server.elements import Cell, Element, Heading, Text

__all__ = ["open_document"]

_ARCHIVES: Final = ("xlsx", "xlsm", "xlsb", "ods")


@dataclass(frozen=True, slots=True)
class _Sheet:
    name: str
    headers: list[str]
    rows: list[list[Any]]
    first_row: int
    """The number, in the sheet, of the first of these rows."""

    @property
    def page_count(self) -> int:
        return max(1, math.ceil(len(self.rows) / PAGE.rows))


class SheetsDocument:
    def __init__(self, name: str, sheets: list[_Sheet], formulas: dict[str, dict[str, str]]) -> None:
        self._name = name
        self._sheets = sheets
        self._formulas = formulas
        self._places = [(sheet, block) for sheet in sheets for block in range(sheet.page_count)]

    @property
    def page_count(self) -> int:
        return len(self._places)

    @property
    def properties(self) -> Properties:
        about = [
            f"{sheet.name} ({', '.join([f'{len(sheet.rows)} rows', *sheet.headers[:12]])})" for sheet in self._sheets
        ]
        return Properties(
            self._name, summary=f"Sheets: {'; '.join(about[:10])}", keywords=[s.name for s in self._sheets][:3]
        )

    def page(self, index: int) -> Page:
        sheet, block = self._places[index]
        heading = Heading(sheet.name, 2)
        rows = sheet.rows[block * PAGE.rows : (block + 1) * PAGE.rows]
        if not rows and not sheet.headers:
            return Page(sheet.name, [heading, Text("This sheet is empty.")])
        first = sheet.first_row + block * PAGE.rows
        last = first + len(rows) - 1
        facts: dict[str, Any] = {"sheet": sheet.name, "first_row": first}
        if formulas := _between(self._formulas.get(sheet.name, {}), first, last):
            facts["formulas"] = formulas
        table: Element = bounded_table(sheet.headers, [[*map(_cell, row)] for row in rows], **facts)
        return Page(f"{sheet.name}, rows {first} to {last}" if rows else sheet.name, [heading, table])


def open_document(file: BinaryIO, name: str, limits: DocumentLimits) -> SheetsDocument:
    archive = suffix_of(name) in _ARCHIVES
    if archive:
        if file.read(8) == b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1":
            raise Unreadable("it is encrypted")
        file.seek(0)
        check_archive(file, limits)
    try:
        with CalamineWorkbook.from_filelike(file) as workbook:
            shown = [each.name for each in workbook.sheets_metadata if each.typ is SheetTypeEnum.WorkSheet]
            sheets = [_sheet(workbook.get_sheet_by_name(each)) for each in shown]
    except PasswordError:
        raise Unreadable("it is encrypted") from None
    except CalamineError as error:
        raise Unreadable(f"the file is broken: {error}") from None
    if not sheets:
        raise Unreadable("it has no sheets")
    return SheetsDocument(name.rpartition("/")[2], sheets, _formulas(file, sheets) if archive else {})


def _sheet(sheet: CalamineSheet) -> _Sheet:
    rows: list[list[Any]] = sheet.to_python()
    # The library leaves out the rows above the first one that holds anything.
    first = (sheet.start or (0, 0))[0] + 1
    while rows and not any(cell not in ("", None) for cell in rows[-1]):
        rows.pop()
    if rows and all(isinstance(cell, str) for cell in rows[0]) and looks_like_headers(rows[0]):
        return _Sheet(sheet.name, [cell.strip() for cell in rows[0]], rows[1:], first + 1)
    return _Sheet(sheet.name, [], rows, first)


def _cell(value: Any) -> Cell:
    match value:
        case "" | None:
            return None
        case bool() | int() | str():
            return value
        case float():
            if not math.isfinite(value):
                return str(value)
            return int(value) if value.is_integer() and abs(value) < 2**53 else value
        case datetime.datetime() | datetime.date() | datetime.time():
            return value.isoformat()
        case _:
            return str(value)


def _formulas(file: BinaryIO, sheets: list[_Sheet]) -> dict[str, dict[str, str]]:
    """The formulas of a small workbook by sheet and cell; openpyxl is twenty times as slow as the reader of values."""
    file.seek(0, 2)
    cells = sum(len(sheet.rows) * max(map(len, sheet.rows), default=0) for sheet in sheets)
    if file.tell() > FORMATS.small_sheet_bytes or cells > FORMATS.small_sheet_cells:
        return {}
    file.seek(0)
    try:
        from openpyxl import load_workbook

        book = load_workbook(file, read_only=True)
    except Exception:  # the values are there: a workbook that this library does not read is served without formulas
        return {}
    found: dict[str, dict[str, str]] = {}
    for sheet in book.worksheets:
        for row in sheet.iter_rows():
            for cell in row:
                if cell.data_type == "f" and len(found.get(sheet.title, {})) < FORMATS.sheet_formulas:
                    found.setdefault(sheet.title, {})[cell.coordinate] = str(cell.value)
    book.close()
    return found


def _between(formulas: dict[str, str], first: int, last: int) -> dict[str, str]:
    return {
        cell: text for cell, text in formulas.items() if first <= int(cell.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ")) <= last
    }
