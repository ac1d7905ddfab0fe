"""Workbooks in Excel's binary parts, by a walk of our own over their records. Of formulas it reads the results."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO, Final

from a2c_smcp.docs.formats.number_formats import BUILT_IN, shown_number
from a2c_smcp.docs.formats.packages import BROKEN_PART, Package
from a2c_smcp.docs.formats.workbooks import ERRORS, CellBudgetSpent, Remark, RowStore, Sheet, column_name, unpacked
from a2c_smcp.docs.formats.xlsx import read_text_boxes
from a2c_smcp.docs.limits import Unreadable
from a2c_smcp.mcp_server.elements import Cell

__all__ = ["read_workbook"]

_BROKEN: Final = (*BROKEN_PART, struct.error, IndexError)


@dataclass(slots=True)
class _XlsbBook:
    package: Package
    since_1904: bool = False
    sheets: list[tuple[Sheet, str, str]] = field(default_factory=list)
    """Each with the kind and the name of its part."""
    strings: list[str] = field(default_factory=list)
    formats: list[str] = field(default_factory=list)


def read_workbook(file: BinaryIO) -> list[Sheet]:
    """The sheets of a workbook. Raises `Unreadable` if the file is not a workbook."""
    try:
        book = _book(Package(file))
    except _BROKEN as error:
        raise Unreadable(f"the file is broken: {error}") from None
    store = RowStore()
    for sheet, kind, part in book.sheets:
        try:
            if kind == "worksheet":
                _fill(sheet, book, part, store)
                _read_beside(sheet, book, part)
            else:
                sheet.gaps.append(f"This sheet is a {kind or 'part that is missing'}, and has no cells.")
        except CellBudgetSpent:
            continue
        except _BROKEN as error:
            sheet.gaps.append(f"What follows in this sheet cannot be read: {error}")
    return [sheet for sheet, _, _ in book.sheets]


def _records(package: Package, part: str) -> Iterator[tuple[int, bytes]]:
    """Number and body of each record. Both numbers before it have seven bits a byte, the lowest first."""
    with package.open(part) as file:
        data = file.read()
    at = 0
    while at < len(data):
        number = data[at]
        at += 1
        if number & 0x80:
            number = number & 0x7F | (data[at] & 0x7F) << 7
            at += 1
        length = 0
        for shift in range(0, 28, 7):
            length |= (data[at] & 0x7F) << shift
            at += 1
            if not data[at - 1] & 0x80:
                break
        yield number, data[at : at + length]
        at += length


def _text(body: bytes, at: int) -> tuple[str, int]:
    """A text that starts with its length, and where it ends."""
    [length] = struct.unpack_from("<I", body, at)
    if length == 0xFFFFFFFF:
        return "", at + 4
    end = at + 4 + length * 2
    return body[at + 4 : end].decode("utf-16-le", "replace"), end


def _book(package: Package) -> _XlsbBook:
    book = _XlsbBook(package)
    part = "xl/workbook.bin"
    relations = package.relations(part)
    for number, body in _records(package, part):
        if number == 0x9C:
            [state] = struct.unpack_from("<I", body)
            relation, at = _text(body, 8)
            name, _ = _text(body, at)
            book.sheets.append((Sheet(name, hidden=state != 0), *relations.get(relation, ("", ""))))
        elif number == 0x99:
            book.since_1904 = bool(body[0] & 1)
    for kind, place in relations.values():
        if kind == "sharedStrings":
            book.strings = [_text(body, 1)[0] for number, body in _records(package, place) if number == 0x13]
        elif kind == "styles":
            book.formats = list(_formats(package, place))
    return book


def _formats(package: Package, part: str) -> Iterator[str]:
    codes = dict(BUILT_IN)
    of_cells = False
    for number, body in _records(package, part):
        match number:
            case 0x2C:
                codes[int.from_bytes(body[:2], "little")] = _text(body, 2)[0]
            case 0x269 | 0x26A:
                of_cells = number == 0x269
            case 0x2F if of_cells:
                yield codes.get(int.from_bytes(body[2:4], "little"), "")


def _fill(sheet: Sheet, book: _XlsbBook, part: str, store: RowStore) -> None:
    row = -1
    cells: dict[int, Cell] = {}

    def end_row() -> None:
        ordered = dict(sorted(cells.items()))
        store.add(sheet, row + 1, list(ordered), list(ordered.values()))
        cells.clear()

    try:
        for number, body in _records(book.package, part):
            if number == 0:
                end_row()
                [row] = struct.unpack_from("<I", body)
            elif 1 <= number <= 11 and row >= 0:
                value = _value(book, number, body)
                if value not in (None, ""):
                    cells[int.from_bytes(body[:4], "little")] = value
            elif number == 0x92:
                break
    finally:
        end_row()


def _value(book: _XlsbBook, number: int, body: bytes) -> Cell:
    match number:
        case 2 | 5 | 9:
            value = (
                unpacked(*struct.unpack_from("<I", body, 8)) if number == 2 else struct.unpack_from("<d", body, 8)[0]
            )
            style = int.from_bytes(body[4:7], "little")
            code = book.formats[style] if style < len(book.formats) else ""
            return shown_number(value, code, since_1904=book.since_1904)
        case 3 | 11:
            return ERRORS.get(body[8], "#N/A")
        case 4 | 10:
            return bool(body[8])
        case 6 | 8:
            return _text(body, 8)[0]
        case 7:
            index = int.from_bytes(body[8:12], "little")
            return book.strings[index] if index < len(book.strings) else None
        case _:
            return None


def _read_beside(sheet: Sheet, book: _XlsbBook, part: str) -> None:
    """Comments and text boxes."""
    for kind, place in book.package.relations(part).values():
        if kind == "drawing":
            read_text_boxes(sheet, book.package, place)
        elif kind == "comments":
            _read_remarks(sheet, book, place)


def _read_remarks(sheet: Sheet, book: _XlsbBook, part: str) -> None:
    authors: list[str] = []
    place = (0, 0, 0)
    for number, body in _records(book.package, part):
        match number:
            case 0x278:
                authors.append(_text(body, 0)[0])
            case 0x27B:
                author, row, _, column = struct.unpack_from("<IIII", body)
                place = author, row, column
            case 0x27D:
                author, row, column = place
                name = authors[author] if author < len(authors) else ""
                sheet.add_remark(Remark(row + 1, f"{column_name(column)}{row + 1}", _text(body, 1)[0], name))
