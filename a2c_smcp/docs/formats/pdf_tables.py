"""Tables of a PDF page, found by the lines that are ruled around their cells. Pure.

Lines that touch each other are one grid. A grid is cut where its lines are; where the line between two cells is
missing, they are one cell. Rows of figures without a line between them are rows all the same. A grid with little text
is a drawing, and one with long texts is the layout of a page.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from a2c_smcp.docs.formats.pdf_text import DIVIDED, Box, Glyph, TextLine, lines_of, running_text
from a2c_smcp.docs.limits import FORMATS

__all__ = ["Grid", "RuledTable", "filled", "grids", "placed"]

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

    @property
    def odd_cells(self) -> AbstractSet[int]:
        """The cells that are not rectangles. Tables have none; boxes and lines of a drawing leave such cells."""
        places: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for row, numbers in enumerate(self.cell_of):
            for column, number in enumerate(numbers):
                places[number].append((row, column))
        return {number for number, found in places.items() if len(found) < _extent(found)}

    def cell_at(self, box: Box) -> int | None:
        """The cell in which the middle of a box is."""
        x, y = (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2
        column, row = bisect_right(self.xs, x) - 1, bisect_right(self.ys, y) - 1
        inside = 0 <= column < len(self.xs) - 1 and 0 <= row < len(self.ys) - 1
        return self.cell_of[row][column] if inside else None


def _extent(places: Sequence[tuple[int, int]]) -> int:
    """How many places the smallest rectangle has that holds these places."""
    rows, columns = zip(*places, strict=True)
    return int((max(rows) - min(rows) + 1) * (max(columns) - min(columns) + 1))


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


def placed(grid: Grid, glyphs: Sequence[Glyph]) -> tuple[list[int | None], int]:
    """The cell of each character, and the number of words that a line of the grid runs through.

    Such a word stays whole: it is in the cell that holds its middle. A blank is in the cell of the character before it.
    """
    cells = [None if glyph.box is None else grid.cell_at(glyph.box) for glyph in glyphs]
    cut = 0
    start = 0
    for index, glyph in enumerate([*glyphs, _END]):
        if index > start and _is_one_word(glyphs[index - 1], glyph) and not _is_gap(grid, glyphs[index - 1], glyph):
            continue
        word = [each.box for each in glyphs[start:index] if each.box is not None]
        if len(set(cells[start:index])) > 1:
            cells[start:index] = [grid.cell_at(Box.around(word))] * len(word)
            cut += 1
        start = index
    for index in range(1, len(cells)):
        if glyphs[index].box is None:
            cells[index] = cells[index - 1]
    return cells, cut


_END: Final = Glyph("\n", None, 0.0)


def _is_one_word(one: Glyph, other: Glyph) -> bool:
    return one.box is not None and other.box is not None


def _is_gap(grid: Grid, one: Glyph, other: Glyph) -> bool:
    """Whether a line of the grid stands in a gap between two characters. There pdfium may have put no blank."""
    if one.box is None or other.box is None or grid.cell_at(one.box) == grid.cell_at(other.box):
        return False
    return abs(other.box.x0 - one.box.x1) > 0.1 * max(one.size, 1.0)


def filled(grid: Grid, glyphs: Sequence[Glyph]) -> RuledTable | None:
    """The table in a grid, given the characters that are inside; `None` if the grid is a drawing or a layout."""
    where, cut_words = placed(grid, glyphs)
    cells = _by_cell(where, glyphs)
    if cut_words > max(1, FORMATS.table_cut_words * len(cells)) or _is_turned(glyphs):
        return None
    odd = grid.odd_cells & cells.keys()
    if len(odd) > FORMATS.table_odd_cells * len(cells):
        return None
    lines = {number: _from_top(list(lines_of(inside))) for number, inside in cells.items()}
    tallest = 0
    rows: list[list[str]] = []
    below_of = [*grid.cell_of[1:], ()]
    for row, below, here in zip(grid.cell_of, below_of, _by_row(grid, lines), strict=True):
        if not here:
            continue
        tallest += max(map(len, here.values()))
        for part in _as_rows(here, frozenset(below)):
            rows.append([running_text(part.pop(number, ())) for number in row])
    if tallest > FORMATS.table_row_lines * len(rows):
        return None  # lines between its columns only: as text its rows stay together
    longest = max((len(text) for row in rows for text in row), default=0)
    rows = [row for row in rows if any(row)]
    used = [index for index in range(len(grid.xs) - 1) if any(row[index] for row in rows)]
    rows = [[row[index] for index in used] for row in rows]
    count = sum(bool(text) for row in rows for text in row)
    if len(rows) < 2 or len(used) < 2 or longest > FORMATS.table_cell:
        return None
    if count < max(FORMATS.table_cells, FORMATS.table_filled * len(rows) * len(used)):
        return None
    return RuledTable(grid.box, rows)


def _by_cell(where: Sequence[int | None], glyphs: Sequence[Glyph]) -> dict[int, list[Glyph]]:
    """The characters of each cell. Where a line of the page ends, the lines of all its cells end."""
    found: dict[int, list[Glyph]] = defaultdict(list)
    in_line: set[int] = set()
    for cell, glyph in zip(where, glyphs, strict=True):
        if cell is None:
            continue
        found[cell].append(glyph)
        if glyph.text in ("\n", DIVIDED):
            for other in in_line - {cell}:
                found[other].append(_END)
            in_line.clear()
        else:
            in_line.add(cell)
    return found


def _is_turned(glyphs: Sequence[Glyph]) -> bool:
    """Whether most words run upwards or downwards. The rows of such a grid are the columns of its table."""
    upright = level = 0
    for one, other in pairwise(glyphs):
        if one.box is not None and other.box is not None:
            across = abs(other.box.x0 + other.box.x1 - one.box.x0 - one.box.x1)
            along = abs(other.box.y0 + other.box.y1 - one.box.y0 - one.box.y1)
            upright += along > across
            level += along <= across
    return upright > level


def _from_top(lines: list[TextLine]) -> list[TextLine]:
    """The lines of a cell from top to bottom, if no two of them stand beside each other."""
    found = _one_a_level(lines)
    return found if len(found) == len(lines) else lines


def _middle(line: TextLine) -> float:
    return (line.box.y0 + line.box.y1) / 2


def _by_row(grid: Grid, lines: dict[int, list[TextLine]]) -> list[dict[int, list[TextLine]]]:
    """The lines of the cells by the ruled row in which the cell starts.

    A column may have no lines between its rows, while others have. It is one tall cell: its lines go to their rows.
    """
    rows_of: dict[int, list[int]] = defaultdict(list)
    for row, numbers in enumerate(grid.cell_of):
        for number in dict.fromkeys(numbers):
            rows_of[number].append(row)
    found: list[dict[int, list[TextLine]]] = [{} for _ in grid.cell_of]
    for number, inside in lines.items():
        rows = rows_of[number]
        places = [bisect_right(grid.ys, _middle(line)) - 1 for line in inside]
        levels = _one_a_level(inside)
        one_each = len(set(places)) == len(levels) >= max(3, 0.8 * len(rows))
        own_rows = (one_each or _is_loose(levels)) and set(places) <= set(rows)
        for row, line in zip(places if own_rows else [rows[0]] * len(inside), inside, strict=True):
            found[row].setdefault(number, []).append(line)
    return found


def _is_loose(levels: Sequence[TextLine]) -> bool:
    """Whether lines stand too far apart to be one text: the labels of several rows, for example."""
    if len(levels) < 3:
        return False
    pitch = (_middle(levels[-1]) - _middle(levels[0])) / (len(levels) - 1)
    return pitch > FORMATS.table_pitch * max(levels[0].size, 1.0)


def _as_rows(here: dict[int, list[TextLine]], below: AbstractSet[int]) -> list[dict[int, list[TextLine]]]:
    """The lines of the cells of one ruled row, as the rows that stand in it. Cells that end `below` are in the first.

    There is more than one if the line between rows was not drawn. The lines of most cells stand side by side then, and
    most of them are figures. A cell with fewer lines that do not is a label. Otherwise a cell is one text.
    """
    cells = {number: lines for number, lines in here.items() if number not in below} or here
    levels = max(map(_one_a_level, cells.values()), key=len)
    full = [lines for lines in cells.values() if len(set(_levels_of(lines, levels) or ())) == len(levels)]
    figures = [lines for lines in full if all(any(map(str.isdigit, line.text)) for line in lines)]
    if len(levels) < 2 or len(full) < max(2, len(cells) / 2) or 2 * len(figures) < len(full):
        return [dict(here)]
    long = any(len(lines) >= len(levels) and _levels_of(lines, levels) is None for lines in cells.values())
    if long or 2 * sum(map(_goes_on, full)) >= len(full):
        return [dict(here)]
    rows: list[dict[int, list[TextLine]]] = [{} for _ in levels]
    for number, lines in here.items():
        found = _levels_of(lines, levels) if number in cells else None
        for level, line in zip(found or [0] * len(lines), lines, strict=True):
            rows[level].setdefault(number, []).append(line)
    return rows


def _goes_on(lines: Sequence[TextLine]) -> bool:
    """Whether a line of a cell is part of the line before it, as "(990 kg)" below "2,170 lb"."""
    ends, starts = tuple("<＜≤=–-/&,("), tuple("([（")
    return any(one.text.endswith(ends) or other.text.startswith(starts) for one, other in pairwise(lines))


def _one_a_level(lines: Sequence[TextLine]) -> list[TextLine]:
    """The lines from top to bottom, without those that stand beside another one."""
    found: list[TextLine] = []
    for line in sorted(lines, key=_middle):
        if not found or _middle(line) - _middle(found[-1]) > 0.5 * max(line.size, 1.0):
            found.append(line)
    return found


def _levels_of(lines: Sequence[TextLine], levels: Sequence[TextLine]) -> list[int] | None:
    """Beside which of the other lines each line stands; `None` if one stands beside none of them."""
    found: list[int] = []
    for line in lines:
        level = min(range(len(levels)), key=lambda index: abs(_middle(levels[index]) - _middle(line)))
        if abs(_middle(levels[level]) - _middle(line)) > 0.5 * max(line.size, 1.0):
            return None
        found.append(level)
    return found
