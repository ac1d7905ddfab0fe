"""PDF, by pypdfium2: a page a page, read when it is asked for. Headings are found by the size of their letters.

What its documentation calls the raw API (text objects, links) is used here only: its helpers give the text of a page
without sizes, and no links.
"""

import ctypes
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import pypdfium2
import pypdfium2.raw as raw

from a2c_smcp.docs.formats import Properties
from a2c_smcp.docs.limits import FORMATS, DocumentLimits, Unreadable
from a2c_smcp.mcp_server.documents import Page
from a2c_smcp.mcp_server.elements import Element, Heading, Image, Link, Text

__all__ = ["open_document"]


@dataclass(slots=True)
class _Piece:
    """A run of letters of one size, where it stands: `bottom` and `left` as PDF counts, from the lower left corner."""

    text: str
    size: float
    left: float
    right: float
    bottom: float


class PdfDocument:
    def __init__(self, document: pypdfium2.PdfDocument) -> None:
        self._document = document
        self.page_count = len(document)
        told = document.get_metadata_dict(skip_empty=True)
        keywords = [word.strip() for word in told.get("Keywords", "").replace(";", ",").split(",") if word.strip()]
        self.properties = Properties(told.get("Title", ""), keywords, told.get("Subject", ""))

    def page(self, index: int) -> Page:
        page = self._document[index]
        try:
            text_page = page.get_textpage()
            try:
                pieces = list(_pieces(page, text_page))
                elements = list(_paragraphs(pieces)) or _plain(text_page)
                elements += _links(self._document, page, text_page)
            finally:
                text_page.close()
            elements += _images(page)
        finally:
            page.close()
        heading = next((element.text for element in elements if isinstance(element, Heading)), "")
        return Page(heading or f"Page {index + 1}", elements)

    def close(self) -> None:
        self._document.close()


def open_document(file: BinaryIO, name: str, limits: DocumentLimits) -> PdfDocument:
    try:
        return PdfDocument(pypdfium2.PdfDocument(file))
    except pypdfium2.PdfiumError as error:
        if getattr(error, "err_code", None) == raw.FPDF_ERR_PASSWORD or "assword" in str(error):
            raise Unreadable("it is encrypted") from None
        raise Unreadable(f"the file is broken: {error}") from None


def _pieces(page: Any, text_page: Any) -> Iterator[_Piece]:
    objects = page.get_objects(filter=[raw.FPDF_PAGEOBJ_TEXT], textpage=text_page)
    for _, each in zip(range(FORMATS.pdf_objects), objects, strict=False):
        text = _object_text(each.raw, text_page.raw)
        if not text.strip():
            continue
        size = ctypes.c_float()
        raw.FPDFTextObj_GetFontSize(each.raw, size)
        left, bottom, right, _ = each.get_bounds()
        matrix = each.get_matrix()
        yield _Piece(text, round(size.value * max(abs(matrix.d), abs(matrix.b)), 1), left, right, matrix.f or bottom)


def _object_text(text_object: Any, text_page: Any) -> str:
    length = raw.FPDFTextObj_GetText(text_object, text_page, None, 0)
    buffer = ctypes.create_string_buffer(length)
    raw.FPDFTextObj_GetText(text_object, text_page, ctypes.cast(buffer, ctypes.POINTER(ctypes.c_ushort)), length)
    return buffer.raw[: max(0, length - 2)].decode("utf-16-le", "replace").replace("\0", "")


def _paragraphs(pieces: list[_Piece]) -> Iterator[Element]:
    """Lines that stand close together, in the order of the file, which is nearly always the order of reading."""
    if not pieces:
        return
    sizes: Counter[float] = Counter()
    for piece in pieces:
        sizes[piece.size] += len(piece.text)
    body = sizes.most_common(1)[0][0]
    larger = sorted((size for size in sizes if size >= body * FORMATS.heading_ratio), reverse=True)
    paragraph: list[_Piece] = []
    for line in _lines(pieces):
        if paragraph and not _continues(paragraph[-1], line):
            yield _element(paragraph, larger)
            paragraph = []
        paragraph.append(line)
    yield _element(paragraph, larger)


def _lines(pieces: list[_Piece]) -> Iterator[_Piece]:
    """Pieces that stand on one line, joined."""
    line: _Piece | None = None
    for piece in pieces:
        if line is not None and abs(piece.bottom - line.bottom) < 0.5 * max(line.size, piece.size, 1.0):
            gap = piece.left - line.right
            blank = " " if gap > 0.15 * line.size and not line.text.endswith(" ") else ""
            size = line.size if len(line.text) >= len(piece.text) else piece.size
            line = _Piece(f"{line.text}{blank}{piece.text}", size, line.left, piece.right, line.bottom)
        else:
            if line is not None:
                yield line
            line = piece
    if line is not None:
        yield line


def _continues(line: _Piece, following: _Piece) -> bool:
    """Whether a line belongs to the paragraph of the one before."""
    down = line.bottom - following.bottom
    return abs(line.size - following.size) < 0.5 and 0 < down < 1.7 * max(line.size, 1.0)


def _element(paragraph: list[_Piece], larger: list[float]) -> Element:
    text = ""
    for line in paragraph:
        words = line.text.strip()
        # Chinese needs no blank where a line ends, and neither does a word that was divided there.
        joint = "" if not text or ord(text[-1]) > 0x2E80 else " "
        text = text[:-1] + words if text.endswith("-") and words[:1].islower() else f"{text}{joint}{words}"
    size = paragraph[0].size
    if size in larger and len(text) <= FORMATS.heading:
        return Heading(text, min(6, larger.index(size) + 1))
    return Text(text)


def _plain(text_page: Any) -> list[Element]:
    """Text that stands inside forms is in no object of the page itself."""
    text = text_page.get_text_range().replace("\r\n", "\n").strip()
    return [Text(text)] if text else []


def _links(document: Any, page: Any, text_page: Any) -> Iterator[Element]:
    position = ctypes.c_int(0)
    link = raw.FPDF_LINK()
    for _ in range(FORMATS.pdf_links):
        if not raw.FPDFLink_Enumerate(page.raw, position, link):
            return
        action = raw.FPDFLink_GetAction(link)
        if not action or raw.FPDFAction_GetType(action) != raw.PDFACTION_URI:
            continue
        length = raw.FPDFAction_GetURIPath(document.raw, action, None, 0)
        buffer = ctypes.create_string_buffer(length)
        raw.FPDFAction_GetURIPath(document.raw, action, buffer, length)
        url = buffer.raw[: max(0, length - 1)].decode("utf-8", "replace")
        if url:
            yield Link(_text_under(link, text_page), url)


def _text_under(link: Any, text_page: Any) -> str:
    box = raw.FS_RECTF()
    if not raw.FPDFLink_GetAnnotRect(link, box):
        return ""
    text = text_page.get_text_bounded(left=box.left, bottom=box.bottom, right=box.right, top=box.top)
    return " ".join(text.split())


def _images(page: Any) -> Iterator[Element]:
    objects = page.get_objects(filter=[raw.FPDF_PAGEOBJ_IMAGE])
    for _, each in zip(range(FORMATS.pdf_images), objects, strict=False):
        width, height = each.get_px_size()
        yield Image(description=f"{width} × {height} pixels", width=width, height=height)
