"""PowerPoint files, by python-pptx: a slide a page, shapes from top to bottom, notes as annotations."""

from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO
from zipfile import BadZipFile

import pptx
from pptx.exc import PythonPptxError

from a2c_smcp.docs.formats import Properties, check_archive
from a2c_smcp.docs.limits import FORMATS, DocumentLimits, Unreadable
from a2c_smcp.docs.paging import split_table
from a2c_smcp.mcp_server.documents import Page
from a2c_smcp.mcp_server.elements import Annotation, Chart, Element, Heading, Image, Link, List, Table, Text

__all__ = ["open_document"]


class SlidesDocument:
    def __init__(self, presentation: Any) -> None:
        self._slides = list(presentation.slides)
        told = presentation.core_properties
        keywords = [word.strip() for word in (told.keywords or "").replace(";", ",").split(",") if word.strip()]
        self.properties = Properties(told.title or "", keywords, told.subject or "")

    @property
    def page_count(self) -> int:
        return max(1, len(self._slides))

    def page(self, index: int) -> Page:
        if not self._slides:
            return Page("No slides")
        slide = self._slides[index]
        title = slide.shapes.title
        words = " ".join(title.text_frame.text.split()) if title is not None and title.has_text_frame else ""
        elements: list[Element] = [Heading(words, 1)] if words else []
        elements += _elements(slide.shapes, None if title is None else title.shape_id, 0)
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
            notes = slide.notes_slide.notes_text_frame.text.strip()
            elements += [Annotation(notes)] if notes else []
        return Page(words or f"Slide {index + 1}", elements)


def open_document(file: BinaryIO, name: str, limits: DocumentLimits) -> SlidesDocument:
    check_archive(file, limits)
    try:
        return SlidesDocument(pptx.Presentation(file))
    except (PythonPptxError, BadZipFile, KeyError, ValueError) as error:
        raise Unreadable(f"it is not a PowerPoint file: {' '.join(str(error).split())[:100]}") from None


def _elements(shapes: Iterable[Any], title_id: int | None, depth: int) -> Iterator[Element]:
    for shape in sorted(shapes, key=lambda each: (each.top or 0, each.left or 0)):
        if shape.shape_id == title_id:
            continue
        if hasattr(shape, "shapes"):
            if depth < FORMATS.slide_levels:
                yield from _elements(shape.shapes, title_id, depth + 1)
        elif getattr(shape, "has_table", False):
            yield from split_table(_table(shape.table))
        elif getattr(shape, "has_chart", False):
            yield _chart(shape.chart, shape.name)
        elif hasattr(shape, "image"):
            yield _picture(shape)
        elif shape.has_text_frame:
            yield from _texts(shape.text_frame)


def _texts(frame: Any) -> Iterator[Element]:
    lines = ["".join(run.text for run in each.runs).strip() or each.text.strip() for each in frame.paragraphs]
    lines = [line for line in lines if line]
    if len(lines) == 1:
        yield Text(lines[0])
    elif lines:
        yield List(lines)
    for paragraph in frame.paragraphs:
        for run in paragraph.runs:
            if run.hyperlink.address:
                yield Link(run.text, run.hyperlink.address)


def _table(table: Any) -> Table:
    rows = [[cell.text for cell in row.cells] for row in table.rows]
    return Table(rows[0], rows[1:]) if table.first_row and rows else Table([], rows)


def _picture(shape: Any) -> Image:
    told = shape._element.xpath("./p:nvPicPr/p:cNvPr/@descr")
    try:
        width, height = shape.image.size
    except Exception:  # the picture is broken, or of a kind without pixels; the slide is not
        width = height = None
    return Image(description=(told[0] if told else "") or shape.name, width=width, height=height)


def _chart(chart: Any, name: str) -> Chart:
    title = chart.chart_title.text_frame.text if chart.has_title and chart.chart_title.has_text_frame else name
    kind = str(chart.chart_type).split(".")[-1].split(" ")[0].lower()
    plot = chart.plots[0] if len(chart.plots) else None
    categories = [str(each) for each in plot.categories][: FORMATS.chart_points] if plot is not None else []
    series = {
        str(each.name): [value for value in each.values if value is not None][: FORMATS.chart_points]
        for each in (plot.series if plot is not None else ())
    }
    told = "; ".join(
        f"{name}: {', '.join(f'{category} {value:g}' for category, value in zip(categories, values, strict=False))}"
        for name, values in series.items()
    )
    return Chart(title, told[:1000], kind, {"categories": categories, "series": series})
