"""PDF files whose content a test writes itself, so that a defect of real files can be made again in a few lines."""

from collections.abc import Sequence

from a2c_smcp.docs.formats.pdf import PdfDocument, open_document
from a2c_smcp.docs.limits import DocumentLimits
from tests.docs.samples import FONTS, file_of

__all__ = ["drawn_pdf", "opened", "say"]


def say(x: float, y: float, text: str, size: int = 10) -> str:
    """The operators that put a text at a place."""
    latin = text.isascii()
    shown = text.encode("latin-1" if latin else "utf-16-be").hex()
    return f"BT /{'F1' if latin else 'F2'} {size} Tf 1 0 0 1 {x} {y} Tm <{shown}> Tj ET"


def drawn_pdf(
    *contents: str,
    annotations: Sequence[str] = (),
    fields: Sequence[str] = (),
    page: str = "",
    title: str = "",
) -> bytes:
    """A PDF with a page for each content. Annotations and the fields of a form are on the first page."""
    first_note = 3 + 2 * len(contents)
    notes = [*annotations, *fields]
    numbers = [f"{first_note + index} 0 R" for index in range(len(notes))]
    form = f"/AcroForm << /Fields [{' '.join(numbers[len(annotations) :])}] /DA (/F1 10 Tf) >>" if fields else ""
    kids = [f"{4 + 2 * index} 0 R" for index in range(len(contents))]
    objects = [
        f"<< /Type /Catalog /Pages 2 0 R {form} >>",
        f"<< /Type /Pages /Count {len(kids)} /Kids [{' '.join(kids)}] >>",
    ]
    for index, content in enumerate(contents):
        noted = f"/Annots [{' '.join(numbers)}]" if notes and not index else ""
        objects += [
            f"<< /Length {len(content)} >>\nstream\n{content}\nendstream",
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents {3 + 2 * index} 0 R "
            f"/Resources << /Font {FONTS.decode()} >> {noted} {page} >>",
        ]
    about = f"<< /Title <FEFF{title.encode('utf-16-be').hex()}> >>"
    return file_of([each.encode("latin-1") for each in [*objects, *notes, about]])


def opened(data: bytes) -> PdfDocument:
    import io

    return open_document(io.BytesIO(data), "made.pdf", DocumentLimits())
