"""Workbooks in Excel's XML, by a walk of our own: values as they are shown, formulas, comments, text boxes.

Excel's own reader forgives much. So does this one: a part that is missing or broken costs what stands in it, and the
sheet says so.
"""

import re
from dataclasses import dataclass, field
from itertools import pairwise
from typing import BinaryIO, Final

from a2c_smcp.docs.formats.number_formats import BUILT_IN, shown_number
from a2c_smcp.docs.formats.packages import BROKEN_PART, Package
from a2c_smcp.docs.formats.workbooks import (
    CellBudgetSpent,
    Remark,
    RowStore,
    Sheet,
    as_number,
    column_name,
    column_of,
)
from a2c_smcp.docs.limits import Unreadable
from a2c_smcp.mcp_server.elements import Cell

__all__ = ["read_text_boxes", "read_workbook"]

_ESCAPED: Final = re.compile(r"_x([0-9A-Fa-f]{4})_")


@dataclass(slots=True)
class _XlsxBook:
    package: Package
    sheets: list[tuple[Sheet, str, str]] = field(default_factory=list)
    """Each with the kind and the name of its part."""
    since_1904: bool = False
    strings: list[str] = field(default_factory=list)
    formats: list[str] = field(default_factory=list)
    """The number format of each style."""
    people: dict[str, str] = field(default_factory=dict)


def read_workbook(file: BinaryIO) -> list[Sheet]:
    """The sheets of a workbook. Raises `Unreadable` if the file is not a workbook."""
    try:
        package = Package(file)
        part = next((to for kind, to in package.relations("").values() if kind == "officeDocument"), "xl/workbook.xml")
        book = _book(package, part if part in package else "xl/workbook.xml")
    except BROKEN_PART as error:
        raise Unreadable(f"the file is broken: {error}") from None
    store = RowStore()
    for sheet, kind, place in book.sheets:
        if kind == "worksheet":
            _fill(sheet, book, place, store)
        else:
            sheet.gaps.append(f"This sheet is a {kind or 'part that is missing'}, and has no cells.")
    return [sheet for sheet, _, _ in book.sheets]


def _book(package: Package, part: str) -> _XlsxBook:
    book = _XlsxBook(package)
    relations = package.relations(part)

    def start(name: str, facts: dict[str, str]) -> None:
        if name == "sheet":
            relation = next((facts[key] for key in facts if key.endswith(":id")), "")
            kind, place = relations.get(relation, ("", ""))
            hidden = facts.get("state", "visible") != "visible"
            book.sheets.append((Sheet(facts.get("name", ""), hidden=hidden), kind, place))
        elif name == "workbookPr":
            book.since_1904 = facts.get("date1904") in ("1", "true")

    package.parse(part, start)
    for kind, place in relations.values():
        try:
            if kind == "sharedStrings":
                _read_strings(book, place)
            elif kind == "styles":
                _read_styles(book, place)
            elif kind == "person":
                _read_people(book, place)
        except BROKEN_PART as error:
            for sheet, _, _ in book.sheets:
                sheet.gaps.append(f"A part of the workbook cannot be read ({kind}): {error}")
    return book


def _read_strings(book: _XlsxBook, part: str) -> None:
    pieces: list[str] = []
    in_text = phonetic = False

    def start(name: str, facts: dict[str, str]) -> None:
        nonlocal in_text, phonetic
        if name == "t":
            in_text = not phonetic
        elif name == "rPh":
            phonetic = True
        elif name == "si":
            pieces.clear()

    def end(name: str) -> None:
        nonlocal in_text, phonetic
        if name == "t":
            in_text = False
        elif name == "rPh":
            phonetic = False
        elif name == "si":
            book.strings.append(_unescaped("".join(pieces)))

    def text(words: str) -> None:
        if in_text:
            pieces.append(words)

    book.package.parse(part, start, end, text, one_vocabulary=True)


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text) if "_x" in text else text


def _read_styles(book: _XlsxBook, part: str) -> None:
    codes = dict(BUILT_IN)
    inside = ""

    def start(name: str, facts: dict[str, str]) -> None:
        nonlocal inside
        if name == "numFmt" and inside != "dxf":
            codes[int(facts.get("numFmtId", 0))] = facts.get("formatCode", "")
        elif name in ("cellXfs", "dxf"):
            inside = name
        elif name == "xf" and inside == "cellXfs":
            book.formats.append(codes.get(int(facts.get("numFmtId", 0) or 0), ""))

    def end(name: str) -> None:
        nonlocal inside
        if name == inside:
            inside = ""

    book.package.parse(part, start, end)


def _read_people(book: _XlsxBook, part: str) -> None:
    def start(name: str, facts: dict[str, str]) -> None:
        if name == "person":
            book.people[facts.get("id", "")] = facts.get("displayName", "")

    book.package.parse(part, start)


def _fill(sheet: Sheet, book: _XlsxBook, part: str, store: RowStore) -> None:
    reader = _CellReader(sheet, book, store)
    try:
        book.package.parse(part, reader.start, reader.end, reader.text, one_vocabulary=True)
    except CellBudgetSpent:
        pass
    except BROKEN_PART as error:
        reader.end_row()
        sheet.gaps.append(f"What follows in this sheet cannot be read: {error}")
    try:
        relations = list(book.package.relations(part).values())
        threads = [place for kind, place in relations if kind == "threadedComment"]
        for place in threads or [place for kind, place in relations if kind == "comments"]:
            _read_remarks(sheet, book, place)
        for kind, place in relations:
            if kind == "drawing":
                read_text_boxes(sheet, book.package, place)
    except BROKEN_PART as error:
        sheet.gaps.append(f"The comments or text boxes of this sheet cannot be read: {error}")


class _CellReader:
    """Takes the XML of a sheet. Keeps the cells of the row that is being read."""

    def __init__(self, sheet: Sheet, book: _XlsxBook, store: RowStore) -> None:
        self._sheet = sheet
        self._strings = book.strings
        self._formats = book.formats
        self._since_1904 = book.since_1904
        self._store = store
        self._row = 0
        self._column = -1
        self._columns: list[int] = []
        self._values: list[Cell] = []
        self._kind = ""
        self._style = ""
        self._pieces: list[str] | None = None
        self._value = ""
        self._formula: tuple[str, dict[str, str]] | None = None
        self._shared: dict[str, str] = {}
        """The cell that has the text of each formula which several cells share."""
        self._in_cell = self._phonetic = False

    def start(self, name: str, facts: dict[str, str]) -> None:
        if name == "c":
            place = facts.get("r", "")
            self._column = column_of(place) if place else self._column + 1
            self._kind = facts.get("t", "n")
            self._style = facts.get("s", "")
            self._value = ""
            self._formula = None
            self._in_cell = True
        elif name == "row":
            number = facts.get("r", "")
            self._row = int(number) if number.isdecimal() else self._row + 1
            self._column = -1
        elif self._in_cell:
            if name == "v" or (name == "t" and not self._phonetic):
                self._pieces = []
            elif name == "f":
                self._pieces = []
                self._formula = "", facts
            elif name == "rPh":
                self._phonetic = True

    def text(self, words: str) -> None:
        if self._pieces is not None:
            self._pieces.append(words)

    def end(self, name: str) -> None:
        if name == "c":
            self._in_cell = False
            self._end_cell()
        elif name == "row":
            self.end_row()
        elif self._pieces is not None and self._in_cell:
            words = "".join(self._pieces)
            self._pieces = None
            if name == "f" and self._formula is not None:
                self._formula = words, self._formula[1]
            else:
                self._value += words
        elif name == "rPh":
            self._phonetic = False

    def end_row(self) -> None:
        columns, values = self._columns, self._values
        self._columns, self._values = [], []
        if columns and any(after <= before for before, after in pairwise(columns)):
            ordered = dict(sorted(zip(columns, values, strict=True)))
            columns, values = list(ordered), list(ordered.values())
        self._store.add(self._sheet, self._row, columns, values)

    def _end_cell(self) -> None:
        value = self._shown()
        if self._formula is not None:
            formula = self._formula_text(*self._formula)
            self._store.add_formula(self._sheet, self._row, f"{column_name(self._column)}{self._row}", formula)
            # A program that computes nothing wrote it: the formula is all that there is to see.
            value = formula if value is None and self._kind != "str" else value
        if value is not None and self._column >= 0:
            self._columns.append(self._column)
            self._values.append(value)

    def _formula_text(self, text: str, facts: dict[str, str]) -> str:
        cell = f"{column_name(self._column)}{self._row}"
        if facts.get("t") == "shared":
            first = self._shared.setdefault(facts.get("si", ""), cell)
            if not text:
                return f"as in {first}, moved"
        return f"={text}"

    def _shown(self) -> Cell:
        value = self._value
        if not value:
            return None
        match self._kind:
            case "s":
                index = int(value) if value.strip().isdecimal() else -1
                return (self._strings[index] or None) if 0 <= index < len(self._strings) else None
            case "str" | "inlineStr":
                return _unescaped(value)
            case "b":
                return value.strip() in ("1", "true")
            case "e":
                return value
            case "d":
                return value.replace("T", " ").removesuffix(" 00:00:00").removesuffix("Z")
        number = as_number(value)
        if number is None:
            return value
        style = int(self._style) if self._style.isdecimal() else 0
        code = self._formats[style] if style < len(self._formats) else ""
        return shown_number(number, code, since_1904=self._since_1904)


def _read_remarks(sheet: Sheet, book: _XlsxBook, part: str) -> None:
    authors: list[str] = []
    place = author = ""
    pieces: list[str] | None = None

    def start(name: str, facts: dict[str, str]) -> None:
        nonlocal place, author, pieces
        if name == "author":
            pieces = []
        elif name in ("comment", "threadedComment"):
            place = facts.get("ref", "")
            number = facts.get("authorId", "")
            author = authors[int(number)] if number.isdecimal() and int(number) < len(authors) else ""
            author = book.people.get(facts.get("personId", ""), author)
            pieces = []

    def end(name: str) -> None:
        nonlocal pieces
        if name == "author":
            authors.append("".join(pieces or ()))
            pieces = None
        elif name in ("comment", "threadedComment"):
            row = place.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ$")
            if words := "".join(pieces or ()).strip():
                sheet.add_remark(Remark(int(row) if row.isdecimal() else 0, place, _unescaped(words), author))
            pieces = None

    def text(words: str) -> None:
        if pieces is not None:
            pieces.append(words)

    book.package.parse(part, start, end, text)


def read_text_boxes(sheet: Sheet, package: Package, part: str) -> None:
    """Add the words of a drawing's text boxes."""
    pieces: list[str] = []
    in_text = False
    depth = 0

    def start(name: str, facts: dict[str, str]) -> None:
        nonlocal in_text, depth
        depth += name == "txBody"
        in_text = name == "t" and depth > 0

    def end(name: str) -> None:
        nonlocal in_text, depth
        in_text = False
        if name == "p" and depth:
            pieces.append("\n")
        elif name == "txBody":
            depth -= 1
            if words := "".join(pieces).strip():
                sheet.texts.append(words)
            pieces.clear()

    def text(words: str) -> None:
        if in_text:
            pieces.append(words)

    package.parse(part, start, end, text)
