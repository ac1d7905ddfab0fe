"""Tables of a PDF page, found by the lines that are ruled around their cells. Pure.

Lines that touch each other are one grid. A grid is cut where its lines are; where the line between two cells is
missing, they are one cell. A grid with little text is a drawing, and one with long texts is the layout of a page.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from a2c_smcp.docs.formats.pdf_text import Box, Glyph, lines_of, running_text
from a2c_smcp.docs.limits import FORMATS

__all__ = ["Grid", "RuledTable", "filled", "grids"]

_NEAR: Final = 3.0
"""Points within which two lines are one, and within which lines touch each other."""


@dataclass(frozen=True, slots=True)
class _Ruling:
    """A straight line: `at` across its direction, from `start` to `end` along it."""

    at: float
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Grid:
    """Columns and rows by their edges. `cell_of` has, by row and column, the number of the cell that is there."""

    xs: tuple[float, ...]
    ys: tuple[float, ...]
    cell_of: tuple[tuple[int, ...], ...]

    @property
    def box(self) -> Box:
        return Box(self.xs[0], self.ys[0], self.xs[-1], self.ys[-1])

    def cell_at(self, box: Box) -> int | None:
        """The cell in which the middle of a box is."""
        x, y = (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2
        column, row = bisect_right(self.xs, x) - 1, bisect_right(self.ys, y) - 1
        inside = 0 <= column < len(self.xs) - 1 and 0 <= row < len(self.ys) - 1
        return self.cell_of[row][column] if inside else None


@dataclass(frozen=True, slots=True)
class RuledTable:
    """The texts of a grid. A merged cell has its text once, in its first place."""

    box: Box
    rows: list[list[str]]


def grids(rulings: Iterable[Box]) -> list[Grid]:
    """The grids that these lines make, those with at least two rows and two columns."""
    level: list[_Ruling] = []
    upright: list[_Ruling] = []
    for box in rulings:
        if box.x1 - box.x0 >= box.y1 - box.y0:
            level.append(_Ruling((box.y0 + box.y1) / 2, box.x0, box.x1))
        else:
            upright.append(_Ruling((box.x0 + box.x1) / 2, box.y0, box.y1))
    level, upright = _merged(level), _merged(upright)
    if len(level) < 3 or len(upright) < 2 or len(level) * len(upright) > FORMATS.pdf_crossings:
        return []
    found = [_grid(rows, columns) for rows, columns in _touching(level, upright)]
    return [grid for grid in found if grid is not None]


def _merged(rulings: Sequence[_Ruling]) -> list[_Ruling]:
    """Lines on the same height that touch each other, as one line."""
    tracks: list[list[_Ruling]] = []
    for ruling in sorted(rulings, key=lambda each: each.at):
        if tracks and ruling.at - tracks[-1][0].at <= _NEAR:
            tracks[-1].append(ruling)
        else:
            tracks.append([ruling])
    merged: list[_Ruling] = []
    for track in tracks:
        at = sum(each.at for each in track) / len(track)
        runs: list[_Ruling] = []
        for ruling in sorted(track, key=lambda each: each.start):
            if runs and ruling.start - runs[-1].end <= _NEAR:
                runs[-1] = _Ruling(at, runs[-1].start, max(runs[-1].end, ruling.end))
            else:
                runs.append(_Ruling(at, ruling.start, ruling.end))
        merged += runs
    return merged


class _Sets:
    """Numbers that are put together into sets."""

    def __init__(self, count: int) -> None:
        self._parent = list(range(count))

    def root(self, number: int) -> int:
        while self._parent[number] != number:
            self._parent[number] = number = self._parent[self._parent[number]]
        return number

    def join(self, one: int, other: int) -> None:
        one, other = self.root(one), self.root(other)
        self._parent[max(one, other)] = min(one, other)


def _touching(level: Sequence[_Ruling], upright: Sequence[_Ruling]) -> list[tuple[list[_Ruling], list[_Ruling]]]:
    """Sets of lines that hang together, the level ones and the upright ones of each."""
    sets = _Sets(len(level) + len(upright))
    for row, one in enumerate(level):
        for column, other in enumerate(upright, len(level)):
            crosses = one.start - _NEAR <= other.at <= one.end + _NEAR
            if crosses and other.start - _NEAR <= one.at <= other.end + _NEAR:
                sets.join(row, column)
    found: dict[int, tuple[list[_Ruling], list[_Ruling]]] = defaultdict(lambda: ([], []))
    for index, ruling in enumerate([*level, *upright]):
        found[sets.root(index)][index >= len(level)].append(ruling)
    return list(found.values())


def _grid(level: Sequence[_Ruling], upright: Sequence[_Ruling]) -> Grid | None:
    if not level or not upright:
        return None
    xs, ys = _edges(upright, level), _edges(level, upright)
    columns, rows = len(xs) - 1, len(ys) - 1
    if rows < 2 or columns < 2 or rows * columns > FORMATS.pdf_cells:
        return None
    left_of, above = _ruled(upright, xs, ys), _ruled(level, ys, xs)
    cells = _Sets(rows * columns)
    for row in range(rows):
        for column in range(columns):
            number = row * columns + column
            if column and (column, row) not in left_of:
                cells.join(number, number - 1)
            if row and (row, column) not in above:
                cells.join(number, number - columns)
    numbers = tuple(tuple(cells.root(row * columns + column) for column in range(columns)) for row in range(rows))
    return Grid(tuple(xs), tuple(ys), numbers)


def _ruled(rulings: Sequence[_Ruling], edges: Sequence[float], along: Sequence[float]) -> set[tuple[int, int]]:
    """The parts of a grid's edges that are drawn: the number of the edge, and the number of the part along it."""
    middles = [(start + end) / 2 for start, end in pairwise(along)]
    found: set[tuple[int, int]] = set()
    for ruling in rulings:
        edge = min(range(len(edges)), key=lambda index: abs(edges[index] - ruling.at))
        found.update((edge, part) for part, at in enumerate(middles) if ruling.start <= at <= ruling.end)
    return found


def _edges(across: Sequence[_Ruling], along: Sequence[_Ruling]) -> list[float]:
    """Where a grid is cut. A side without a line of its own ends where the lines end that run towards it."""
    found: list[float] = []
    ends = [min(each.start for each in along), max(each.end for each in along)]
    lines = sorted(each.at for each in across)
    open_ends = [end for end in ends if min(abs(end - line) for line in lines) > 2 * _NEAR]
    for value in sorted([*lines, *open_ends]):
        if not found or value - found[-1] > _NEAR:
            found.append(value)
    return found


def filled(grid: Grid, glyphs: Sequence[Glyph]) -> RuledTable | None:
    """The table in a grid, given the characters that are inside; `None` if the grid is a drawing or a layout."""
    cells: dict[int, list[Glyph]] = defaultdict(list)
    cell: int | None = None
    cut_words = 0
    in_word = False
    for glyph in glyphs:
        before = cell
        if glyph.box is not None:
            cell = grid.cell_at(glyph.box)
            cut_words += in_word and cell != before
        if cell is not None:
            cells[cell].append(glyph)
        in_word = glyph.box is not None
    if cut_words > max(1, FORMATS.table_cut_words * len(cells)):
        return None
    lines = {number: list(lines_of(inside)) for number, inside in cells.items()}
    tallest = sum(max(len(lines.get(number, ())) for number in set(row)) for row in grid.cell_of)
    if tallest > FORMATS.table_row_lines * len(grid.cell_of):
        return None  # lines between its columns only: as text its rows stay together
    texts = {number: running_text(inside) for number, inside in lines.items()}
    longest = max((len(text) for text in texts.values()), default=0)
    rows: list[list[str]] = []
    for line in grid.cell_of:
        rows.append([texts.pop(number, "") for number in line])
    rows = [row for row in rows if any(row)]
    used = [index for index in range(len(grid.xs) - 1) if any(row[index] for row in rows)]
    rows = [[row[index] for index in used] for row in rows]
    count = sum(bool(text) for row in rows for text in row)
    if len(rows) < 2 or len(used) < 2 or longest > FORMATS.table_cell:
        return None
    if count < max(FORMATS.table_cells, FORMATS.table_filled * len(rows) * len(used)):
        return None
    return RuledTable(grid.box, rows)
