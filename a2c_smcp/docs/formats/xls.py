"""Workbooks of Excel 5 to 2003, by a walk of our own over their records. Of formulas it reads the results."""

import codecs
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO, Final

import olefile

from a2c_smcp.docs.formats.number_formats import BUILT_IN, shown_number
from a2c_smcp.docs.formats.workbooks import ERRORS, CellBudgetSpent, Remark, RowStore, Sheet, column_name, unpacked
from a2c_smcp.docs.limits import Unreadable
from a2c_smcp.mcp_server.elements import Cell

__all__ = ["read_workbook"]

_BOF, _EOF, _CONTINUE = 0x809, 0x0A, 0x3C
_KINDS: Final = {1: "macro sheet", 2: "chart", 6: "module of Visual Basic"}


def read_workbook(file: BinaryIO) -> list[Sheet]:
    """The sheets of a workbook. Raises `Unreadable` if the file is not a workbook, or is encrypted."""
    try:
        with olefile.OleFileIO(file) as container:
            if container.exists("EncryptedPackage"):
                raise Unreadable("it is encrypted")
            names = {"/".join(path).lower(): path for path in container.listdir()}
            found = names.get("workbook") or names.get("book")
            if found is None:
                raise Unreadable("it is not a workbook")
            data = container.openstream(found).read()
    except (OSError, ValueError, IndexError, struct.error) as error:
        raise Unreadable(f"the file is broken: {error}") from None
    try:
        book = _book(data)
    except (struct.error, IndexError, ValueError) as error:
        raise Unreadable(f"the file is broken: {error}") from None
    store = RowStore()
    for sheet, kind, offset in book.sheets:
        if kind in _KINDS and kind != 1:
            sheet.gaps.append(f"This sheet is a {_KINDS[kind]}, and has no cells.")
            continue
        try:
            _fill(sheet, book, data, offset, store)
        except CellBudgetSpent:
            continue  # the other sheets say so, too
    return [sheet for sheet, kind, _ in book.sheets if kind != 6]


@dataclass(slots=True)
class _XlsBook:
    eight: bool
    """Whether it is of 1997 or later."""
    encoding: str = "cp1252"
    since_1904: bool = False
    sheets: list[tuple[Sheet, int, int]] = field(default_factory=list)
    """Each with its kind and where it starts."""
    strings: list[str] = field(default_factory=list)
    formats: list[int] = field(default_factory=list)
    """The number of the format of each style."""
    codes: dict[int, str] = field(default_factory=lambda: dict(BUILT_IN))

    def code(self, style: int) -> str:
        return self.codes.get(self.formats[style], "") if style < len(self.formats) else ""


def _records(data: bytes, start: int) -> Iterator[tuple[int, bytes, list[bytes]]]:
    """Number and body of each record, and the bodies of those that continue it."""
    at = start
    waiting: tuple[int, bytes, list[bytes]] | None = None
    while at + 4 <= len(data):
        number, length = struct.unpack_from("<HH", data, at)
        body = data[at + 4 : at + 4 + length]
        at += 4 + length
        if number == _CONTINUE and waiting is not None:
            waiting[2].append(body)
            continue
        if waiting is not None:
            yield waiting
        waiting = number, body, []
    if waiting is not None:
        yield waiting


def _book(data: bytes) -> _XlsBook:
    number, _, version = struct.unpack_from("<HHH", data)
    if number != _BOF or version not in (0x500, 0x600):
        raise Unreadable("it is of the time before 1993")
    book = _XlsBook(version == 0x600)
    for number, body, more in _records(data, 0):
        match number:
            case 0x2F:
                raise Unreadable("it is encrypted")
            case 0x42:
                book.encoding = _encoding(int.from_bytes(body[:2], "little"))
            case 0x22:
                book.since_1904 = body[:1] == b"\1"
            case 0x85:
                offset, state, kind = struct.unpack_from("<IBB", body)
                name, _ = _text(book, body, 6, 1)
                book.sheets.append((Sheet(name, hidden=state & 3 != 0), kind & 15, offset))
            case 0xFC:
                book.strings = _ChunkReader([body, *more]).shared_strings()
            case 0x41E:
                code, _ = _text(book, body, 2, 2 if book.eight else 1)
                book.codes[int.from_bytes(body[:2], "little")] = code
            case 0xE0:
                book.formats.append(int.from_bytes(body[2:4], "little"))
            case 0x0A:
                break
    return book


def _encoding(codepage: int) -> str:
    name = {1200: "utf-16-le", 10000: "mac-roman", 32768: "mac-roman", 32769: "cp1252"}.get(codepage, f"cp{codepage}")
    try:
        return codecs.lookup(name).name
    except LookupError:
        return "cp1252"


def _text(book: _XlsBook, body: bytes, at: int, length_bytes: int) -> tuple[str, int]:
    """A text that starts with its length, and where it ends."""
    length = int.from_bytes(body[at : at + length_bytes], "little")
    at += length_bytes
    if not book.eight:
        return body[at : at + length].decode(book.encoding, "replace"), at + length
    wide = body[at : at + 1] != b"" and body[at] & 1
    at += 1
    end = at + length * (2 if wide else 1)
    return body[at:end].decode("utf-16-le" if wide else "latin-1", "replace"), end


class _ChunkReader:
    """Reads over the borders of records. A text that crosses one says there anew how it is written."""

    def __init__(self, chunks: Sequence[bytes]) -> None:
        self._chunks = chunks
        self._number = self._at = 0

    def _take(self, count: int) -> bytes:
        out = b""
        while count > 0 and self._number < len(self._chunks):
            part = self._chunks[self._number][self._at : self._at + count]
            out += part
            count -= len(part)
            self._at += len(part)
            if count > 0:
                self._number += 1
                self._at = 0
        return out

    def _skip(self, count: int) -> None:
        while count > 0 and self._number < len(self._chunks):
            room = len(self._chunks[self._number]) - self._at
            step = min(room, count)
            count -= step
            self._at += step
            if count > 0:
                self._number += 1
                self._at = 0

    def characters(self, count: int, wide: bool) -> str:
        pieces: list[str] = []
        while count > 0 and self._number < len(self._chunks):
            chunk = self._chunks[self._number]
            if self._at >= len(chunk):
                self._number += 1
                if self._number >= len(self._chunks):
                    break
                wide = bool(self._chunks[self._number][:1] > b"\0" and self._chunks[self._number][0] & 1)
                self._at = 1
                continue
            size = 2 if wide else 1
            here = min(count, max(1, (len(chunk) - self._at) // size))
            part = chunk[self._at : self._at + here * size]
            pieces.append(part.decode("utf-16-le" if wide else "latin-1", "replace"))
            self._at += here * size
            count -= here
        return "".join(pieces)

    def shared_strings(self) -> list[str]:
        head = self._take(8)
        count = int.from_bytes(head[4:8], "little")
        found: list[str] = []
        while len(found) < count and self._number < len(self._chunks):
            start = self._take(3)
            if len(start) < 3:
                break
            length, flags = int.from_bytes(start[:2], "little"), start[2]
            runs = int.from_bytes(self._take(2), "little") if flags & 8 else 0
            extra = int.from_bytes(self._take(4), "little") if flags & 4 else 0
            found.append(self.characters(length, bool(flags & 1)))
            self._skip(runs * 4 + extra)
        return found


def _fill(sheet: Sheet, book: _XlsBook, data: bytes, offset: int, store: RowStore) -> None:
    rows: dict[int, dict[int, Cell]] = {}
    try:
        _Cells(sheet, book, rows).read(data, offset)
    except (struct.error, IndexError) as error:
        sheet.gaps.append(f"What follows in this sheet cannot be read: {error}")
    for number in sorted(rows):
        cells = dict(sorted(rows[number].items()))
        store.add(sheet, number + 1, list(cells), list(cells.values()))


class _Cells:
    """Takes the records of a sheet."""

    def __init__(self, sheet: Sheet, book: _XlsBook, rows: dict[int, dict[int, Cell]]) -> None:
        self._sheet = sheet
        self._book = book
        self._rows = rows
        self._text_of: tuple[int, int] | None = None
        """The cell whose formula has a text that follows."""
        self._object = (0, 0)
        """Number and kind of the drawing that was last."""
        self._words: dict[int, str] = {}
        """Of comments, by the numbers of their drawings."""
        self._notes: list[tuple[int, int, int, str]] = []

    def read(self, data: bytes, offset: int) -> None:
        depth = 0
        try:
            for number, body, more in _records(data, offset):
                if number == _BOF:
                    depth += 1
                elif number == _EOF:
                    depth -= 1
                    if depth <= 0:
                        break
                elif depth == 1:  # what is deeper belongs to a chart
                    self._take(number, body, more)
        finally:
            self._end()

    def _take(self, number: int, body: bytes, more: list[bytes]) -> None:
        match number:
            case 0x203:
                row, column, style, value = struct.unpack_from("<HHHd", body)
                self._put(row, column, self._number(value, style))
            case 0x27E:
                row, column, style, packed = struct.unpack_from("<HHHI", body)
                self._put(row, column, self._number(unpacked(packed), style))
            case 0xBD:
                row, first = struct.unpack_from("<HH", body)
                for index in range((len(body) - 6) // 6):
                    style, packed = struct.unpack_from("<HI", body, 4 + index * 6)
                    self._put(row, first + index, self._number(unpacked(packed), style))
            case 0xFD:
                row, column, _, index = struct.unpack_from("<HHHI", body)
                self._put(row, column, self._book.strings[index] if index < len(self._book.strings) else None)
            case 0x204 | 0xD6:
                row, column = struct.unpack_from("<HH", body)
                self._put(row, column, _text(self._book, body, 6, 2)[0])
            case 0x205:
                row, column, _, value, error = struct.unpack_from("<HHHBB", body)
                self._put(row, column, ERRORS.get(value, "#N/A") if error else bool(value))
            case 0x06 | 0x206 | 0x406:
                self._formula(body)
            case 0x207:
                if self._text_of is not None:
                    self._put(*self._text_of, self._long_text(body, more))
                    self._text_of = None
            case 0x5D:
                kind, index = struct.unpack_from("<HH", body, 4)
                self._object = index, kind
            case 0x1B6 if more:
                self._drawing_text(body, more)
            case 0x1C:
                self._note(body)

    def _put(self, row: int, column: int, value: Cell) -> None:
        if value not in (None, ""):
            self._rows.setdefault(row, {})[column] = value

    def _number(self, value: float, style: int) -> Cell:
        return shown_number(value, self._book.code(style), since_1904=self._book.since_1904)

    def _formula(self, body: bytes) -> None:
        row, column, style = struct.unpack_from("<HHH", body)
        result = body[6:14]
        if result[6:] != b"\xff\xff":
            self._put(row, column, self._number(struct.unpack("<d", result)[0], style))
        elif result[0] == 0:
            self._text_of = row, column
        elif result[0] == 1:
            self._put(row, column, bool(result[2]))
        elif result[0] == 2:
            self._put(row, column, ERRORS.get(result[2], "#N/A"))

    def _long_text(self, body: bytes, more: list[bytes]) -> str:
        if not self._book.eight or not more:
            return _text(self._book, body, 0, 2)[0]
        return _ChunkReader([body[3:], *more]).characters(int.from_bytes(body[:2], "little"), bool(body[2] & 1))

    def _drawing_text(self, body: bytes, more: list[bytes]) -> None:
        length = int.from_bytes(body[10:12], "little")
        words = _ChunkReader([b"", *more]).characters(length, False).strip()
        index, kind = self._object
        if kind == 0x19:
            self._words[index] = words
        elif words:
            self._sheet.texts.append(words)

    def _note(self, body: bytes) -> None:
        row, column, length_or_flags, index = struct.unpack_from("<HHHH", body)
        if self._book.eight:
            author, _ = _text(self._book, body, 8, 2)
            self._notes.append((row, column, index, author))
            return
        words = body[6 : 6 + length_or_flags].decode(self._book.encoding, "replace")
        cell = f"{column_name(column)}{row + 1}"
        self._sheet.add_remark(Remark(row + 1, cell, words, ""))

    def _end(self) -> None:
        for row, column, index, author in self._notes:
            if words := self._words.get(index):
                self._sheet.add_remark(Remark(row + 1, f"{column_name(column)}{row + 1}", words, author))
