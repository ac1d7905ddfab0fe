"""What pdfium says of the marks on a page: its links, its notes and the fields of its form."""

import ctypes
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import pypdfium2.raw as raw

from a2c_smcp.docs.formats.pdf_text import Box
from a2c_smcp.docs.limits import FORMATS
from a2c_smcp.mcp_server.elements import Annotation, Form, Link

__all__ = ["PageMarks", "ShownPage"]

_SILENT_NOTES: Final = frozenset({raw.FPDF_ANNOT_LINK, raw.FPDF_ANNOT_WIDGET, raw.FPDF_ANNOT_POPUP})
"""Links and fields are told as such, and a pop-up repeats the note that it belongs to."""
_BUTTONS: Final = frozenset({raw.FPDF_FORMFIELD_PUSHBUTTON, raw.FPDF_FORMFIELD_SIGNATURE, raw.FPDF_FORMFIELD_UNKNOWN})
_BOXES: Final = frozenset({raw.FPDF_FORMFIELD_CHECKBOX, raw.FPDF_FORMFIELD_RADIOBUTTON})


@dataclass(frozen=True, slots=True)
class ShownPage:
    """Turns a place of the file, which counts from the lower left corner, into a place of the page as it is shown."""

    left: float
    bottom: float
    right: float
    top: float
    rotation: int

    def place(self, x: float, y: float) -> tuple[float, float]:
        match self.rotation:
            case 90:
                return y - self.bottom, x - self.left
            case 180:
                return self.right - x, y - self.bottom
            case 270:
                return self.top - y, self.right - x
            case _:
                return x - self.left, self.top - y

    def box(self, left: float, bottom: float, right: float, top: float) -> Box:
        if not self.rotation:
            return Box(left - self.left, self.top - top, right - self.left, self.top - bottom)
        (x0, y0), (x1, y1) = self.place(left, bottom), self.place(right, top)
        return Box(min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1))


class PageMarks:
    """The marks on an open page. Its text says what stands in the place of a link."""

    def __init__(self, document: Any, page: Any, text: Any, shown: ShownPage) -> None:
        self._document = document
        self._page = page
        self._text = text
        self._shown = shown

    def links(self) -> Iterator[Link]:
        position = ctypes.c_int(0)
        link = raw.FPDF_LINK()
        for _ in range(FORMATS.pdf_links):
            if not raw.FPDFLink_Enumerate(self._page.raw, position, link):
                return
            action = raw.FPDFLink_GetAction(link)
            if not action or raw.FPDFAction_GetType(action) != raw.PDFACTION_URI:
                continue
            length = raw.FPDFAction_GetURIPath(self._document.raw, action, None, 0)
            buffer = ctypes.create_string_buffer(length)
            raw.FPDFAction_GetURIPath(self._document.raw, action, buffer, length)
            url = buffer.raw[: max(0, length - 1)].decode("utf-8", "replace")
            if url:
                yield self._link(link, url)

    def _link(self, link: Any, url: str) -> Link:
        rect = raw.FS_RECTF()
        if not raw.FPDFLink_GetAnnotRect(link, rect):
            return Link("", url)
        text = self._text.get_text_bounded(left=rect.left, bottom=rect.bottom, right=rect.right, top=rect.top)
        box = self._shown.box(rect.left, rect.bottom, rect.right, rect.top)
        return Link(" ".join(text.replace("\x02", "").split()), url, bbox=box.rounded)

    def notes(self) -> Iterator[Annotation]:
        """What people wrote on the page: remarks, and the words of highlights and stamps."""
        for note in self._annotations():
            if raw.FPDFAnnot_GetSubtype(note) in _SILENT_NOTES:
                continue
            text = _words(raw.FPDFAnnot_GetStringValue, note, b"Contents")
            if text:
                yield Annotation(text, _words(raw.FPDFAnnot_GetStringValue, note, b"T"), bbox=self._box_of(note))

    def form(self) -> Form | None:
        """The fields of a form and what is filled in; `None` if the page has none."""
        environment = self._page.formenv
        if environment is None:
            return None
        values: dict[str, Any] = {}
        for field in self._annotations():
            if raw.FPDFAnnot_GetSubtype(field) != raw.FPDF_ANNOT_WIDGET:
                continue
            kind = raw.FPDFAnnot_GetFormFieldType(environment.raw, field)
            if kind in _BUTTONS:
                continue
            name = _words(raw.FPDFAnnot_GetFormFieldAlternateName, environment.raw, field)
            name = name or _words(raw.FPDFAnnot_GetFormFieldName, environment.raw, field)
            if kind == raw.FPDF_FORMFIELD_CHECKBOX:
                values[name] = bool(raw.FPDFAnnot_IsChecked(environment.raw, field))
            elif kind in _BOXES and not raw.FPDFAnnot_IsChecked(environment.raw, field):
                values.setdefault(name, None)
            else:
                values[name] = _words(raw.FPDFAnnot_GetFormFieldValue, environment.raw, field) or None
        return Form("Form", values) if values else None

    def _annotations(self) -> Iterator[Any]:
        for index in range(min(raw.FPDFPage_GetAnnotCount(self._page.raw), FORMATS.pdf_notes)):
            if note := raw.FPDFPage_GetAnnot(self._page.raw, index):
                try:
                    yield note
                finally:
                    raw.FPDFPage_CloseAnnot(note)

    def _box_of(self, note: Any) -> list[float] | None:
        rect = raw.FS_RECTF()
        if not raw.FPDFAnnot_GetRect(note, rect):
            return None
        return self._shown.box(rect.left, rect.bottom, rect.right, rect.top).rounded


def _words(ask: Callable[..., int], *of: Any) -> str:
    """A text that pdfium writes into a buffer, in UTF-16."""
    length = ask(*of, None, 0)
    if not 2 < length <= FORMATS.pdf_note_bytes:
        return ""
    buffer = (ctypes.c_ushort * (length // 2 + 1))()
    ask(*of, buffer, length)
    return " ".join(bytes(buffer)[: length - 2].decode("utf-16-le", "replace").split())
