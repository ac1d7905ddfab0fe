"""Which edges of the coloured areas of a PDF page can be seen. Pure.

Programs paint the background of a line of text, of a word and of a cell as rectangles. Where two of them in the same
colour touch each other, nobody sees a line between them. The same holds for a white one on the white page.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from a2c_smcp.docs.formats.pdf_text import Box
from a2c_smcp.docs.limits import FORMATS

__all__ = ["Area", "seen_edges"]

_WHITE: Final = (255, 255, 255)
_BESIDE: Final = 1.0
"""Points from an edge to the places outside whose colour is compared with that of the area."""
_TILE: Final = 64.0
"""Points of a side of the squares by which the area at a place is found."""
_MOST_TILES: Final = 400
"""Squares that one area may lie in: a page has about 120."""
_MOST_IN_TILE: Final = 200
"""Areas that are looked at for one place. A page with more of them is a drawing."""

_Colour = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Area:
    """A rectangle that is filled with a colour. It may have a line around it."""

    box: Box
    colour: _Colour
    is_lined: bool = False


def seen_edges(areas: Sequence[Area]) -> list[Box]:
    """The edges that have a line, or another colour beside them than the area has. Later areas cover earlier ones."""
    tiles: dict[tuple[int, int], list[Area]] = defaultdict(list)
    for area in areas:
        for tile in _tiles(area.box):
            tiles[tile].append(area)
    return [
        edge
        for area in areas
        for edge, places in _edges(area.box)
        if max(edge.x1 - edge.x0, edge.y1 - edge.y0) >= FORMATS.ruling_length
        and (area.is_lined or any(_colour(place, tiles) != area.colour for place in places))
    ]


def _tiles(box: Box) -> Iterable[tuple[int, int]]:
    columns = range(int(box.x0 // _TILE), int(box.x1 // _TILE) + 1)
    rows = range(int(box.y0 // _TILE), int(box.y1 // _TILE) + 1)
    return [(x, y) for x in columns for y in rows] if len(columns) * len(rows) <= _MOST_TILES else []


def _edges(box: Box) -> Iterator[tuple[Box, list[tuple[float, float]]]]:
    """The four edges of a box, each with three places that are just outside the box."""
    x0, y0, x1, y1 = box
    xs, ys = ([start + part * (end - start) for part in (0.25, 0.5, 0.75)] for start, end in ((x0, x1), (y0, y1)))
    for y, outside in ((y0, y0 - _BESIDE), (y1, y1 + _BESIDE)):
        yield Box(x0, y, x1, y), [(x, outside) for x in xs]
    for x, outside in ((x0, x0 - _BESIDE), (x1, x1 + _BESIDE)):
        yield Box(x, y0, x, y1), [(outside, y) for y in ys]


def _colour(place: tuple[float, float], tiles: dict[tuple[int, int], list[Area]]) -> _Colour:
    x, y = place
    for area in reversed(tiles.get((int(x // _TILE), int(y // _TILE)), ())[-_MOST_IN_TILE:]):
        if area.box.x0 <= x <= area.box.x1 and area.box.y0 <= y <= area.box.y1:
            return area.colour
    return _WHITE
