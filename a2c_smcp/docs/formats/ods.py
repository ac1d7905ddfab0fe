"""Workbooks in OpenDocument, by a walk of our own: the file itself says what each cell shows."""

import re
from typing import BinaryIO, Final

from a2c_smcp.docs.formats.packages import BROKEN_PART, Package
from a2c_smcp.docs.formats.workbooks import CellBudgetSpent, Remark, RowStore, Sheet, as_number, column_name
from a2c_smcp.docs.limits import Unreadable
from a2c_smcp.mcp_server.elements import Cell

__all__ = ["read_workbook"]

_MANIFEST: Final = "META-INF/manifest.xml"
_MOST_COLUMNS: Final = 16_384
_PLAIN: Final = re.compile(r"[\d.,\s'\u00a0\u202f()+-]*")
"""A number whose text has nothing else says no more than its value."""
_BLANKS: Final = re.compile(r"[ \t\r\n]+")
_DURATION: Final = re.compile(r"(-?)PT(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)[\d.]*S)?")


def read_workbook(file: BinaryIO) -> list[Sheet]:
    """The sheets of a workbook. Raises `Unreadable` if the file is not a workbook, or is encrypted."""
    reader = _ContentReader()
    try:
        package = Package(file)
        if _is_locked(package):
            raise Unreadable("it is encrypted")
        package.parse("content.xml", reader.start, reader.end, reader.text)
    except BROKEN_PART as error:
        if not reader.sheets:
            raise Unreadable(f"the file is broken: {error}") from None
        reader.sheets[-1].gaps.append(f"What follows in this file cannot be read: {error}")
    return reader.sheets


def _is_locked(package: Package) -> bool:
    if _MANIFEST not in package:
        return False
    with package.open(_MANIFEST) as file:
        return b"encryption-data" in file.read()


class _ContentReader:
    """Takes the XML of the content."""

    def __init__(self) -> None:
        self.sheets: list[Sheet] = []
        self._store = RowStore()
        self._hidden_styles: set[str] = set()
        self._style = ""
        self._depth = 0
        """Tables inside tables are parts of a cell."""
        self._row = 0
        self._row_repeats = 1
        self._column = 0
        self._cells: dict[int, Cell] = {}
        self._formulas: dict[int, str] = {}
        self._cell: dict[str, str] | None = None
        self._paragraphs: list[list[str]] = []
        self._annotation: tuple[list[list[str]], list[str]] | None = None
        """The paragraphs and the author of the comment that is being read."""
        self._into: list[str] | None = None
        self._shape: list[list[str]] | None = None
        self._given_up: Sheet | None = None
        """The sheet of which no more rows are read."""

    def start(self, name: str, facts: dict[str, str]) -> None:
        match name:
            case "table-cell" | "covered-table-cell" if self._depth == 1:
                self._cell = _local(facts)
                self._paragraphs = []
            case "p" | "h" if self._annotation is not None:
                self._into = []
                self._annotation[0].append(self._into)
            case "p" | "h" if self._shape is not None or self._cell is not None:
                self._into = []
                (self._paragraphs if self._shape is None else self._shape).append(self._into)
            case "s" if self._into is not None:
                self._into.append(" " * min(int(_local(facts).get("c") or 1), 100))
            case "tab" | "line-break" if self._into is not None:
                self._into.append("\n" if name == "line-break" else " ")
            case "annotation":
                self._annotation = [], []
            case "creator" if self._annotation is not None:
                self._into = self._annotation[1]
            case "table-row" if self._depth == 1:
                self._row_repeats = int(_local(facts).get("number-rows-repeated") or 1)
                self._column = 0
                self._cells, self._formulas = {}, {}
            case "table":
                self._depth += 1
                if self._depth == 1:
                    known = _local(facts)
                    hidden = known.get("style-name") in self._hidden_styles
                    self.sheets.append(Sheet(known.get("name", ""), hidden=hidden))
                    self._row = 0
            case "style":
                self._style = _local(facts).get("name", "")
            case "table-properties" if _local(facts).get("display") == "false":
                self._hidden_styles.add(self._style)
            case "custom-shape" | "text-box" if self._depth == 1 and self._shape is None:
                self._shape = []

    def text(self, words: str) -> None:
        if self._into is not None:
            self._into.append(_BLANKS.sub(" ", words))

    def end(self, name: str) -> None:
        match name:
            case "p" | "h" | "creator":
                self._into = None
            case "annotation" if self._annotation is not None:
                self._end_annotation(*self._annotation)
                self._annotation = None
            case "custom-shape" | "text-box" if self._shape is not None:
                if words := _lines(self._shape):
                    self.sheets[-1].texts.append(words)
                self._shape = None
            case "table-cell" | "covered-table-cell" if self._depth == 1 and self._cell is not None:
                self._end_cell(self._cell)
                self._cell = None
            case "table-row" if self._depth == 1:
                self._end_row()
            case "table":
                self._depth -= 1

    def _end_annotation(self, paragraphs: list[list[str]], author: list[str]) -> None:
        sheet = self.sheets[-1] if self.sheets else None
        words = _lines(paragraphs)
        if sheet is not None and words:
            cell = f"{column_name(self._column)}{self._row + 1}"
            sheet.add_remark(Remark(self._row + 1, cell, words, "".join(author)))

    def _end_cell(self, facts: dict[str, str]) -> None:
        repeats = int(facts.get("number-columns-repeated") or 1)
        value = _shown(facts, _lines(self._paragraphs))
        formula = facts.get("formula", "").partition(":")[2]
        if value is not None or formula:
            for column in range(self._column, min(self._column + repeats, _MOST_COLUMNS)):
                self._cells[column] = formula if value is None else value
                if formula:
                    self._formulas[column] = formula
        self._column += repeats

    def _end_row(self) -> None:
        sheet = self.sheets[-1]
        if self._cells and sheet is not self._given_up:
            self._keep_row(sheet)
        self._row += self._row_repeats

    def _keep_row(self, sheet: Sheet) -> None:
        try:
            for number in range(self._row + 1, self._row + 1 + self._row_repeats):
                self._store.add(sheet, number, list(self._cells), list(self._cells.values()))
                for column, formula in self._formulas.items():
                    self._store.add_formula(sheet, number, f"{column_name(column)}{number}", formula)
        except CellBudgetSpent:
            self._given_up = sheet


def _local(facts: dict[str, str]) -> dict[str, str]:
    """Attributes without the prefixes of their names; of `office:value-type` and another one the first counts."""
    return {key.rpartition(":")[2]: value for key, value in reversed(facts.items())}


def _lines(paragraphs: list[list[str]]) -> str:
    return "\n".join("".join(pieces) for pieces in paragraphs).strip()


def _shown(facts: dict[str, str], text: str) -> Cell:
    match facts.get("value-type"):
        case "float" | "currency":
            number = as_number(facts.get("value", ""))
            if number is None or (text and not _PLAIN.fullmatch(text)):
                return text or None
            if isinstance(number, float) and number.is_integer() and abs(number) < 2**53:
                return int(number)
            return number
        case "percentage" if not text:
            return facts.get("value")
        case "date":
            return facts.get("date-value", text).replace("T", " ").removesuffix(" 00:00:00") or None
        case "time" if not text:
            match = _DURATION.fullmatch(facts.get("time-value", ""))
            if match is None:
                return None
            hours, minutes, seconds = (int(match[each] or 0) for each in (2, 3, 4))
            return f"{match[1]}{hours:02}:{minutes:02}:{seconds:02}"
        case "boolean":
            return facts.get("boolean-value") == "true"
        case _:
            return text or facts.get("string-value") or None
