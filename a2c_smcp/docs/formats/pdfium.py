"""What pdfium says of a page: its characters, its lines and its images.

The raw API of pypdfium2 is used here and in `pdfium_marks` only. Its helpers give the text of a page without boxes and
sizes, and neither links nor notes. Everything is told in points, as the page is shown: the origin is the top left
corner.
"""

import ctypes
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import pypdfium2.raw as raw
from PIL import Image as Picture

from a2c_smcp.docs.formats.pdf_areas import Area, seen_edges
from a2c_smcp.docs.formats.pdf_text import DIVIDED, Box, Glyph
from a2c_smcp.docs.formats.pdfium_marks import PageMarks, ShownPage
from a2c_smcp.docs.limits import FORMATS
from a2c_smcp.mcp_server.elements import Image

__all__ = ["PdfPage", "is_locked"]

_BLANKS: Final = {0x20: " ", 0xA0: " ", 0x0D: "\n", 0x0A: "\n"}
_MARGIN: Final = 2.0
"""Points that are shown around an element."""
_MOST_SCALE: Final = 8.0
"""Pixels for a point. More would show nothing that is not there already."""
_MOST_NESTED: Final = 4
"""Forms within forms whose lines are looked at."""
_LEAST_SPACING: Final = 0.08
"""The gap between letters that are spaced out, in heights of a line."""
_MOST_SPACING: Final = 1.2
"""How much wider than the gap before it a gap may be, and still be one between letters."""
_MOST_SEGMENTS: Final = 4000
"""Segments of one path. A path with more is a drawing."""

_Place = Callable[[float, float], tuple[float, float]]


def is_locked(error: Exception) -> bool:
    """Whether a file could not be opened because it needs a password."""
    return getattr(error, "err_code", None) == raw.FPDF_ERR_PASSWORD or "assword" in str(error)


class PdfPage:
    """One page that is open. Close it when everything was asked."""

    def __init__(self, document: Any, index: int) -> None:
        self._document = document
        self._page = document[index]
        self._text = self._page.get_textpage()
        self._rect = raw.FS_RECTF()
        left, bottom, right, top = self._page.get_bbox()
        self._shown = ShownPage(left, bottom, right, top, self._page.get_rotation())
        self.marks = PageMarks(document, self._page, self._text, self._shown)

    def close(self) -> None:
        self._text.close()
        self._page.close()

    @property
    def character_count(self) -> int:
        return int(self._text.count_chars())

    @property
    def part_count(self) -> int:
        """How many pages the characters of this sheet fill."""
        return min(max(1, -(-self.character_count // FORMATS.pdf_characters)), FORMATS.pdf_parts)

    def part(self, number: int) -> range:
        """The characters of one of the pages that this sheet fills."""
        return range(self._start(number), self._start(number + 1))

    def _start(self, number: int) -> int:
        """Where a part starts: behind the last end of a line that is near, if there is one."""
        place = min(number * FORMATS.pdf_characters, self.character_count)
        if not 0 < place < self.character_count:
            return place
        for index in range(place, place - FORMATS.pdf_line, -1):
            if _BLANKS.get(raw.FPDFText_GetUnicode(self._text.raw, index - 1)) == "\n":
                return index
        return place

    def glyphs(self, part: range, *, by_character: bool) -> list[Glyph]:
        """The words of a part in the order of the file, with the blanks and the ends of lines that pdfium puts in.

        With `by_character` each character is a glyph of its own. That is slower, and needed only inside tables.
        """
        found: list[Glyph] = []
        word = ""
        first = 0
        for index in part:
            code = raw.FPDFText_GetUnicode(self._text.raw, index)
            if not code or 0xFFFE <= code <= 0xFFFF or code > sys.maxunicode:
                continue
            if code == 0x20 and self._is_spacing(index):
                continue
            character = _BLANKS.get(code) or chr(code)
            if word and (by_character or code in _BLANKS or character == DIVIDED):
                found.append(self._glyph(word, first, index - 1))
                word = ""
            if code in _BLANKS or character == DIVIDED:
                found.append(Glyph(character, None, 0.0))
                continue
            first = first if word else index
            word += character
        if word:
            found.append(self._glyph(word, first, index))
        return found

    def _is_spacing(self, index: int) -> bool:
        """Whether a blank that pdfium put in is as wide as the gap between the two letters before it.

        In letters that are spaced out, pdfium takes some of the gaps for blanks.
        """
        if index < 2 or raw.FPDFText_IsGenerated(self._text.raw, index) != 1:
            return False
        one, other = self._box(index - 2), self._box(index - 1)
        # Most letters are not spaced out: so much is found out for every blank, and the rest for few.
        if one is None or other is None or other.x0 - one.x1 < _LEAST_SPACING * (other.y1 - other.y0):
            return False
        if any(raw.FPDFText_GetUnicode(self._text.raw, near) in _BLANKS for near in (index - 2, index - 1, index + 1)):
            return False
        after = self._box(index + 1)
        if after is None or not (one.y0 < other.y1 and other.y0 < after.y1 and after.y0 < other.y1):
            return False
        return 0 < after.x0 - other.x1 <= _MOST_SPACING * (other.x0 - one.x1)

    def _glyph(self, text: str, first: int, last: int) -> Glyph:
        """Some characters from one number to another. They stand in one line, so the first and the last are enough."""
        box = self._box(first)
        if last != first and box is not None and (end := self._box(last)) is not None:
            box = Box.around((box, end))
        return Glyph(text, box, self._size_of(first))

    def _box(self, index: int) -> Box | None:
        rect = self._rect
        if not raw.FPDFText_GetLooseCharBox(self._text.raw, index, rect):
            return None
        return self._shown.box(rect.left, rect.bottom, rect.right, rect.top)

    def _size_of(self, index: int) -> float:
        """How large a character is on the page: its font may be scaled where it is used."""
        size = raw.FPDFText_GetFontSize(self._text.raw, index)
        matrix = raw.FS_MATRIX()
        if raw.FPDFText_GetMatrix(self._text.raw, index, matrix):
            size *= max(abs(matrix.d), abs(matrix.b))
        return float(round(size, 1))

    def picture(self, part: Box | None, longest: int) -> Picture.Image:
        """The page as it is shown, or a part of it. The longest side has at most so many pixels."""
        width, height = self._page.get_size()
        shown = Box(0, 0, width, height)
        if part is not None and (inside := part.grown(_MARGIN).within(shown)) is not None:
            shown = inside
        scale = min(longest / max(shown.x1 - shown.x0, shown.y1 - shown.y0, 1.0), _MOST_SCALE)
        crop = (shown.x0, height - shown.y1, width - shown.x1, shown.y0)
        bitmap = self._page.render(scale=scale, crop=crop, may_draw_forms=True)
        try:
            picture: Picture.Image = bitmap.to_pil().copy()
            return picture
        finally:
            bitmap.close()

    def rulings(self) -> list[Box]:
        """The straight lines of the page, upright or level, and the edges of its rectangles that can be seen."""
        found: list[Box] = []
        areas: list[Area] = []
        for path, place in self._objects(raw.FPDF_PAGEOBJ_PATH):
            edges = list(_edges(path, place))
            if (area := _area(path, edges)) is not None:
                areas.append(area)
            else:
                found += edges
            if len(found) + 4 * len(areas) > FORMATS.pdf_rulings:
                break
        return found + seen_edges(areas)

    def images(self) -> list[Image]:
        found: list[Image] = []
        width, height = ctypes.c_uint(), ctypes.c_uint()
        for image, place in self._objects(raw.FPDF_PAGEOBJ_IMAGE):
            if len(found) == FORMATS.pdf_images:
                break
            raw.FPDFImageObj_GetImagePixelSize(image, width, height)
            # An image fills the unit square of its own space.
            corners = [place(0, 0), place(0, 1), place(1, 0), place(1, 1)]
            about = f"{width.value} × {height.value} pixels"
            box = Box.around([Box(x, y, x, y) for x, y in corners])
            found.append(Image(description=about, width=width.value, height=height.value, bbox=box.rounded))
        return found

    def _objects(self, wanted: int) -> Iterator[tuple[Any, _Place]]:
        """The objects of a kind, those inside forms too, and where what is drawn by them comes to stand."""
        todo: list[tuple[Any, _Place, int]] = [(self._page.raw, self._shown.place, 0)]
        seen = 0
        while todo:
            holder, place, depth = todo.pop()
            total = raw.FPDFFormObj_CountObjects(holder) if depth else raw.FPDFPage_CountObjects(holder)
            get = raw.FPDFFormObj_GetObject if depth else raw.FPDFPage_GetObject
            for index in range(min(total, FORMATS.pdf_objects - seen)):
                seen += 1
                each = get(holder, index)
                kind = raw.FPDFPageObj_GetType(each)
                if kind == wanted:
                    yield each, _moved(each, place)
                elif kind == raw.FPDF_PAGEOBJ_FORM and depth < _MOST_NESTED:
                    todo.append((each, _moved(each, place), depth + 1))


def _moved(each: Any, place: _Place) -> _Place:
    """The same as `place`, for what is drawn inside this object."""
    matrix = raw.FS_MATRIX()
    if not raw.FPDFPageObj_GetMatrix(each, matrix):
        return place
    a, b, c, d, e, f = matrix.a, matrix.b, matrix.c, matrix.d, matrix.e, matrix.f
    return lambda x, y: place(a * x + c * y + e, b * x + d * y + f)


def _edges(path: Any, place: _Place) -> Iterator[Box]:
    """The straight edges of a path, each as a box without width or without height."""
    count = raw.FPDFPath_CountSegments(path)
    if not 2 <= count <= _MOST_SEGMENTS:
        return
    x, y = ctypes.c_float(), ctypes.c_float()
    last = start = (0.0, 0.0)
    for index in range(count):
        segment = raw.FPDFPath_GetPathSegment(path, index)
        raw.FPDFPathSegment_GetPoint(segment, x, y)
        point = place(x.value, y.value)
        kind = raw.FPDFPathSegment_GetType(segment)
        if kind == raw.FPDF_SEGMENT_MOVETO:
            start = point
        elif kind == raw.FPDF_SEGMENT_LINETO:
            yield from _edge(last, point)
        last = point
        if raw.FPDFPathSegment_GetClose(segment):
            yield from _edge(last, start)
            last = start


def _area(path: Any, edges: Sequence[Box]) -> Area | None:
    """The rectangle that a path fills; `None` if it is another shape, or fills nothing."""
    fill, stroke = ctypes.c_int(), ctypes.c_int()
    # The short edges of a rectangle that is a line are left out already.
    if (
        len(edges) not in (2, 4)
        or raw.FPDFPath_CountSegments(path) not in (4, 5)
        or not raw.FPDFPath_GetDrawMode(path, fill, stroke)
        or not fill.value
    ):
        return None
    red, green, blue, cover = (ctypes.c_uint() for _ in range(4))
    if not raw.FPDFPageObj_GetFillColor(path, red, green, blue, cover):
        return None
    return Area(Box.around(edges), (red.value, green.value, blue.value), bool(stroke.value))


def _edge(one: tuple[float, float], other: tuple[float, float]) -> Iterator[Box]:
    across, down = abs(one[0] - other[0]), abs(one[1] - other[1])
    if min(across, down) <= FORMATS.ruling_slant and max(across, down) >= FORMATS.ruling_length:
        yield Box(min(one[0], other[0]), min(one[1], other[1]), max(one[0], other[0]), max(one[1], other[1]))
