"""What the readers of sheets have in common: sheets of rows that hold only cells with something in them. Pure."""

import math
import struct
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple

from a2c_smcp.docs.limits import FORMATS
from a2c_smcp.mcp_server.elements import Cell

__all__ = [
    "ERRORS",
    "CellBudgetSpent",
    "Remark",
    "Row",
    "RowStore",
    "Sheet",
    "as_number",
    "column_name",
    "column_of",
    "unpacked",
]

#: Errors of cells by their number, which two of the formats have.
ERRORS: Final = {
    0x00: "#NULL!",
    0x07: "#DIV/0!",
    0x0F: "#VALUE!",
    0x17: "#REF!",
    0x1D: "#NAME?",
    0x24: "#NUM!",
    0x2A: "#N/A",
    0x2B: "#GETTING_DATA",
}


class Row(NamedTuple):
    """A row that is not empty."""

    number: int
    """In the sheet, from 1."""
    columns: tuple[int, ...]
    """Those that hold something, from 0."""
    values: list[Cell]


class Remark(NamedTuple):
    """A comment on a cell."""

    row: int
    cell: str
    text: str
    author: str


@dataclass(slots=True)
class Sheet:
    """A sheet as far as it could be read."""

    name: str
    rows: list[Row] = field(default_factory=list)
    hidden: bool = False
    formulas: dict[int, dict[str, str]] = field(default_factory=dict)
    """By the number of the row, then by cell."""
    remarks: list[Remark] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    """The words of text boxes."""
    gaps: list[str] = field(default_factory=list)
    """Sentences about what was given up."""

    def add_remark(self, remark: Remark) -> None:
        if len(self.remarks) < FORMATS.sheet_remarks:
            self.remarks.append(remark)
        elif len(self.remarks) == FORMATS.sheet_remarks:
            self.remarks.append(remark._replace(text="The comments after this one are left out: there are too many."))


class CellBudgetSpent(Exception):  # noqa: N818 - it ends a loop, and is no error
    """The workbook has more cells than are read."""


class RowStore:
    """Takes the cells of a workbook, sheet by sheet, up to a number of them."""

    def __init__(self) -> None:
        self._left = FORMATS.sheet_cells
        self._formulas_left = FORMATS.sheet_formulas
        self._known: dict[tuple[int, ...], tuple[int, ...]] = {}

    def add(self, sheet: Sheet, number: int, columns: list[int], values: list[Cell]) -> None:
        """Add a row. Raises `CellBudgetSpent`, and then the sheet says what it lacks."""
        if not values:
            return
        self._left -= len(values)
        if self._left < 0:
            sheet.gaps.append(
                f"Rows from {number} on are not read: the workbook has more than {FORMATS.sheet_cells:,} cells."
            )
            raise CellBudgetSpent
        key = tuple(columns)
        # Most rows of a sheet have the same columns.
        sheet.rows.append(Row(number, self._known.setdefault(key, key), values))

    def add_formula(self, sheet: Sheet, row: int, cell: str, text: str) -> None:
        self._formulas_left -= 1
        if self._formulas_left >= 0:
            sheet.formulas.setdefault(row, {})[cell] = text
        elif self._formulas_left == -1:
            sheet.gaps.append(
                f"Formulas from {cell} on are left out: the workbook has more than {FORMATS.sheet_formulas:,}."
            )


def column_name(index: int) -> str:
    """`A` for 0, `AA` for 26."""
    name = ""
    index += 1
    while index:
        index, rest = divmod(index - 1, 26)
        name = chr(65 + rest) + name
    return name


def column_of(cell: str) -> int:
    """The column of a cell such as `AB12`, from 0; -1 if it has none."""
    return _column_of_letters(cell.strip("$").rstrip("$0123456789"))


@lru_cache(20_000)
def _column_of_letters(letters: str) -> int:
    column = 0
    for letter in letters[:4]:
        column = column * 26 + ord(letter) - 64 if "A" <= letter <= "Z" else 0
    return column - 1


def as_number(text: str) -> float | int | None:
    """The number in a text of XML; `None` if there is none."""
    if text.isdecimal() and len(text) < 16:
        return int(text)
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def unpacked(packed: int) -> float:
    """A number in 30 bits, with a mark for whole ones and a mark for hundredths."""
    if packed & 2:
        whole = packed >> 2
        value = float(whole - (1 << 30) if whole & (1 << 29) else whole)
    else:
        [value] = struct.unpack("<d", struct.pack("<Q", (packed & 0xFFFFFFFC) << 32))
    return value / 100 if packed & 1 else value
