"""The characters of a PDF page as lines and paragraphs, in the order of reading. Pure.

Which characters make a word is pdfium's decision: it puts in the blanks and the ends of lines. Boxes are used for what
stands where, and never for blanks.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from a2c_smcp.docs.limits import FORMATS
from a2c_smcp.mcp_server.elements import Heading, Text

__all__ = [
    "DIVIDED",
    "Box",
    "Glyph",
    "TextLine",
    "in_reading_order",
    "larger_sizes",
    "lines_of",
    "paragraphs",
    "running_text",
]

DIVIDED: Final = "\x02"
"""What pdfium has instead of the hyphen of a word that goes on in the next line."""
_LIGATURES: Final = str.maketrans(
    {"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st", "\xad": "-"}
)
_HIDDEN_HYPHEN: Final = re.compile("(?<=[^\\W\\d_])\xad(?=[^\\W\\d_])")
"""A soft hyphen within a word. Elsewhere, as in "1-12", it is a hyphen that is shown."""


class Box(NamedTuple):
    """A part of a page in points. The origin is the top left corner."""

    x0: float
    y0: float
    x1: float
    y1: float

    @property
    def rounded(self) -> list[float]:
        return [round(value, 1) for value in self]

    @property
    def area(self) -> float:
        return (self.x1 - self.x0) * (self.y1 - self.y0)

    def grown(self, margin: float) -> "Box":
        return Box(self.x0 - margin, self.y0 - margin, self.x1 + margin, self.y1 + margin)

    def within(self, other: "Box") -> "Box | None":
        """The part of it that is inside another box; `None` if nothing is."""
        box = Box(max(self.x0, other.x0), max(self.y0, other.y0), min(self.x1, other.x1), min(self.y1, other.y1))
        return box if box.x0 < box.x1 and box.y0 < box.y1 else None

    @classmethod
    def around(cls, boxes: Iterable["Box"]) -> "Box":
        lefts, tops, rights, bottoms = zip(*boxes, strict=True)
        return cls(min(lefts), min(tops), max(rights), max(bottoms))


class Glyph(NamedTuple):
    """A word or a character; a blank and the end of a line have no box."""

    text: str
    box: Box | None
    size: float


@dataclass(frozen=True, slots=True)
class TextLine:
    """Words on one line of the page. `pieces` are the parts of it that stand far apart, such as two columns."""

    text: str
    size: float
    box: Box
    divided: bool = False
    """Whether its last word goes on in the next line."""
    pieces: tuple["TextLine", ...] = ()


def lines_of(glyphs: Iterable[Glyph]) -> Iterator[TextLine]:
    """The lines of a page in the order of the file. Those without a visible character are left out."""
    line: list[Glyph] = []
    for glyph in glyphs:
        if glyph.text in ("\n", DIVIDED):
            yield from _line(line, divided=glyph.text == DIVIDED)
            line = []
        else:
            line.append(glyph)
    yield from _line(line)


def _line(glyphs: Sequence[Glyph], *, divided: bool = False) -> Iterator[TextLine]:
    boxes = [glyph.box for glyph in glyphs if glyph.box is not None]
    if not boxes:
        return
    size = _most_common_size(glyphs)
    parts = _far_apart(glyphs, size)
    pieces = [each for part in parts for each in _line(part)] if len(parts) > 1 else []
    yield TextLine(_spelled(glyphs), size, Box.around(boxes), divided, tuple(pieces))


def _most_common_size(glyphs: Sequence[Glyph]) -> float:
    sizes: Counter[float] = Counter()
    for glyph in glyphs:
        if glyph.box is not None:
            sizes[glyph.size] += len(glyph.text)
    return sizes.most_common(1)[0][0]


def _far_apart(glyphs: Sequence[Glyph], size: float) -> list[Sequence[Glyph]]:
    """The glyphs of a line, in parts that have a wide gap between them."""
    starts = [0]
    right: float | None = None
    for index, glyph in enumerate(glyphs):
        if glyph.box is None:
            continue
        if right is not None and glyph.box.x0 - right > FORMATS.column_gap * max(size, 1.0):
            starts.append(index)
        right = glyph.box.x1
    return [glyphs[start:end] for start, end in zip(starts, [*starts[1:], len(glyphs)], strict=True)]


def _spelled(glyphs: Sequence[Glyph]) -> str:
    """The text of a line. A blank between two Chinese or Japanese characters is a gap of the typesetter."""
    parts: list[str] = []
    last: Glyph | None = None
    blank = False
    for glyph in glyphs:
        if glyph.text == " ":
            blank = last is not None
            continue
        if blank and last is not None and not _is_one_run(last, glyph):
            parts.append(" ")
        parts.append(glyph.text)
        last, blank = glyph, False
    text = _HIDDEN_HYPHEN.sub("", "".join(parts)).translate(_LIGATURES)
    # What lies outside the first plane may come as two halves.
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _is_one_run(one: Glyph, other: Glyph) -> bool:
    if not (is_unspaced(one.text[-1]) and is_unspaced(other.text[0])):
        return False
    return one.box is None or other.box is None or abs(other.box.x0 - one.box.x1) < max(one.size, 1.0)


def is_unspaced(character: str) -> bool:
    """Whether a character is of a script that is written without blanks: Han, Kana, and their punctuation."""
    code = ord(character)
    return (
        0x2E80 <= code < 0x3130  # radicals, punctuation, Kana
        or 0x3190 <= code < 0xA000
        or 0xF900 <= code < 0xFB00
        or 0xFE30 <= code < 0xFE50
        or 0xFF00 <= code < 0xFFA0
        or 0x20000 <= code < 0x40000
    )


# --- columns


def in_reading_order(lines: Sequence[TextLine], depth: int = 0) -> list[TextLine]:
    """The same lines. Where two columns of prose share their lines, the left column comes first and then the right."""
    gutter = _gutter(lines) if depth < FORMATS.columns_nested else None
    if gutter is None:
        return list(lines)
    ordered: list[TextLine] = []
    left: list[TextLine] = []
    right: list[TextLine] = []
    shared = False

    def flush() -> None:
        nonlocal shared
        ordered.extend([*in_reading_order(left, depth + 1), *in_reading_order(right, depth + 1)])
        left.clear()
        right.clear()
        shared = False

    for line in lines:
        before, after = _cut(line, gutter)
        if before is None and after is None:
            flush()
            ordered.append(line)
            continue
        shared = shared or (before is not None and after is not None)
        if not shared:
            ordered.append(line)
            continue
        left += [before] if before else []
        right += [after] if after else []
    flush()
    return ordered


def _gutter(lines: Sequence[TextLine]) -> float | None:
    """Where the gap between two columns of prose is; `None` if lines are not shared by columns."""
    gaps = [
        (one.box.x1, other.box.x0)
        for line in lines
        for one, other in zip(line.pieces, line.pieces[1:], strict=False)
        if other.box.x0 > one.box.x1
    ]
    if len(gaps) < FORMATS.column_lines:
        return None
    gutter = max((sum(gap) / 2 for gap in gaps), key=lambda x: sum(left < x < right for left, right in gaps))
    shared = [line for line in lines if line.pieces and all(_cut(line, gutter))]
    pieces = [piece for line in shared for piece in line.pieces]
    prose = sum(map(_is_prose, pieces))
    if len(shared) < FORMATS.column_lines or prose < FORMATS.column_prose * len(pieces):
        return None
    return gutter


def _is_prose(piece: TextLine) -> bool:
    """Whether a part of a line is prose. A table without rules has gaps too, but its cells are short."""
    digits = sum(character.isdigit() for character in piece.text)
    return len(piece.text) >= FORMATS.column_characters and digits * 4 < len(piece.text)


def _cut(line: TextLine, x: float) -> tuple[TextLine | None, TextLine | None]:
    """The parts of a line on both sides of a place; neither if the line runs across it."""
    pieces = line.pieces or (line,)
    before = [piece for piece in pieces if piece.box.x1 <= x]
    after = [piece for piece in pieces if piece.box.x0 >= x]
    if len(before) + len(after) < len(pieces):
        return None, None
    if not after or not before:
        return (line, None) if before else (None, line)
    return _joined(before, divided=False), _joined(after, divided=line.divided)


def _joined(pieces: Sequence[TextLine], *, divided: bool) -> TextLine:
    text = " ".join(piece.text for piece in pieces)
    box = Box.around(piece.box for piece in pieces)
    return TextLine(text, pieces[0].size, box, divided, tuple(pieces) if len(pieces) > 1 else ())


# --- paragraphs


def paragraphs(lines: Sequence[TextLine], larger: Sequence[float]) -> Iterator[Text | Heading]:
    """Lines that stand close together. Those in one of the larger sizes, largest first, are headings."""
    paragraph: list[TextLine] = []
    for line in lines:
        if paragraph and not _continues(paragraph[-1], line):
            yield _element(paragraph, larger)
            paragraph = []
        paragraph.append(line)
    if paragraph:
        yield _element(paragraph, larger)


def larger_sizes(lines: Iterable[TextLine]) -> list[float]:
    """The sizes of letters that are clearly larger than most of the page, largest first."""
    sizes: Counter[float] = Counter()
    for line in lines:
        sizes[line.size] += len(line.text)
    if not sizes:
        return []
    body = sizes.most_common(1)[0][0]
    return sorted((size for size in sizes if size >= body * FORMATS.heading_ratio), reverse=True)


def _continues(line: TextLine, following: TextLine) -> bool:
    """Whether a line belongs to the paragraph of the one before."""
    if line.divided:
        return True
    down = following.box.y1 - line.box.y1
    return abs(line.size - following.size) < 0.5 and 0 < down < 1.7 * max(line.size, 1.0)


def _element(paragraph: Sequence[TextLine], larger: Sequence[float]) -> Text | Heading:
    text = running_text(paragraph)
    size = paragraph[0].size
    box = Box.around(line.box for line in paragraph).rounded
    if size in larger and len(text) <= FORMATS.heading:
        return Heading(text, min(6, larger.index(size) + 1), bbox=box)
    return Text(text, bbox=box)


def running_text(lines: Iterable[TextLine]) -> str:
    """Lines as one text. A word that is divided at the end of a line is joined again."""
    parts: list[str] = []
    last = ""
    divided = False
    for line in lines:
        if not line.text:
            continue
        if divided:
            parts.append("" if line.text[0].islower() else "-")
        elif last.endswith("-") and len(last) > 1 and last[-2].isalpha() and line.text[0].islower():
            parts[-1] = last[:-1]
        elif last and not (is_unspaced(last[-1]) and is_unspaced(line.text[0])):
            parts.append(" ")
        parts.append(line.text)
        last, divided = line.text, line.divided
    return "".join([*parts, "-" if divided else ""])
