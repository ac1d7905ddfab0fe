"""What one file may cost, and what is said of a file that cannot be read. Pure."""

from dataclasses import asdict, dataclass
from typing import Any, Final

from a2c_smcp.errors import InternalError, PayloadTooLargeError, RequestTimeoutError, SMCPError
from a2c_smcp.utils.distribution import install_command

__all__ = ["FORMATS", "DocumentLimits", "FormatBounds", "Unreadable", "missing_library"]

_ERRORS: Final[dict[int, type[InternalError] | type[PayloadTooLargeError] | type[RequestTimeoutError]]] = {
    408: RequestTimeoutError,
    413: PayloadTooLargeError,
    500: InternalError,
}


@dataclass(frozen=True, slots=True)
class DocumentLimits:
    """Bounds of one folder's server. Seconds and bytes."""

    file_bytes: int = 256 * 2**20
    unpacked_bytes: int = 384 * 2**20
    """How many bytes a ZIP archive may hold in all, unpacked."""
    page_count: int = 50_000
    seconds: float = 20.0
    """How long a file may take to be described, and a page to be read."""
    memory_bytes: int = 512 * 2**20
    """The address space of one worker process."""
    files: int = 50_000
    cached_bytes: int = 32 * 2**20
    """Pages that are kept in memory."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


class Unreadable(Exception):  # noqa: N818 - what a file is, not what went wrong in ours
    """A file that cannot be read, with a code of the protocol: 413 too large, 408 too slow, 500 broken.

    `lasting` is whether the file will still be unreadable the next time, if it stays the same. `costly` is whether a
    worker died of the file or took too long: then it is not tried again soon with the same limits.
    """

    def __init__(self, reason: str, code: int = 500, *, lasting: bool = True, costly: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.code = code
        self.lasting = lasting
        self.costly = costly

    def to_json(self) -> dict[str, Any]:
        return {"reason": self.reason, "code": self.code, "lasting": self.lasting, "costly": self.costly}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Unreadable":
        return cls(value["reason"], value["code"], lasting=value["lasting"], costly=value["costly"])

    def as_error(self) -> SMCPError:
        return _ERRORS[self.code](self.reason)


def missing_library(what: str) -> Unreadable:
    """A format whose library is not installed."""
    return Unreadable(f"{what} needs an extra that is not installed: {install_command('docs')}", lasting=False)


@dataclass(frozen=True, slots=True)
class FormatBounds:
    """How much of a file the formats read. So a hostile file cannot occupy a worker for long."""

    archive_entries: int = 20_000
    """Files in an archive, as Office files are."""
    suspicious_bytes: int = 16 * 2**20
    """An archive that unpacks to more than this, and to more than `suspicious_ratio` times its size, is not read."""
    suspicious_ratio: int = 300
    encoding_sample: int = 64 * 1024
    """Bytes by which the encoding of a text is told."""
    paragraphs: int = 60
    """A text with more is shown as one block."""
    markdown: int = 4 * 2**20
    """Characters of a Markdown file."""
    html: int = 16 * 2**20
    """Characters of an HTML file."""
    html_levels: int = 200
    html_blocks: int = 1000
    """Blocks within blocks that the parser gets."""
    csv_field: int = 4 * 2**20
    """Characters of a field, and of a line."""
    csv_sample: int = 16 * 1024
    """Bytes by which the delimiter is told."""
    heading_ratio: float = 1.15
    """How much larger than the other text a heading of a PDF is."""
    heading: int = 200
    """Characters of a heading of a PDF, and of the name of a column."""
    pdf_objects: int = 50_000
    """Objects of a page that are looked at."""
    pdf_characters: int = 56_000
    """Characters of a page. A sheet with more becomes several pages, each cut at the end of a line."""
    pdf_line: int = 4000
    """Characters before the place of a cut within which the end of a line is looked for."""
    pdf_split_sheets: int = 8
    """Sheets of a file that may become several pages: all sheets must be looked at before the first one is read.
    In a file with more sheets, a page that is too long says what is left out."""
    pdf_parts: int = 100
    """Pages that one sheet may become."""
    pdf_links: int = 200
    pdf_images: int = 50
    pdf_notes: int = 1000
    """Notes and fields of a page."""
    pdf_note_bytes: int = 64 * 1024
    pdf_rulings: int = 20_000
    """Straight lines of a page that may be the lines of a table."""
    pdf_crossings: int = 1_000_000
    """Level lines times upright lines. A page with more is a drawing."""
    pdf_cells: int = 5000
    """Cells of one table."""
    ruling_length: float = 3.0
    """Points that the line of a table has at least."""
    ruling_slant: float = 0.8
    """Points by which it may be off its direction."""
    table_cells: int = 3
    """Cells with text that a table has at least. A grid with fewer is a drawing."""
    table_filled: float = 0.4
    """The part of its cells that has text. A form with many boxes has less."""
    table_row_lines: int = 4
    """Lines of text that a row has on average. A grid with more has no lines between its rows."""
    table_pitch: float = 1.8
    """Sizes of the letters from a line of a cell to the next. With more they are no text that goes on."""
    table_odd_cells: float = 0.05
    """The part of its cells that may be no rectangle. In a drawing more of them are."""
    table_cut_words: float = 0.1
    """Words that a line may run through, by the number of cells. In a drawing it runs through more."""
    table_cell: int = 1500
    """Characters of a cell. A grid with a longer text is the layout of the page."""
    column_gap: float = 0.8
    """How wide the gap between two columns is at least, in sizes of the letters."""
    column_lines: int = 5
    """Lines that two columns share at least."""
    column_characters: int = 18
    """Characters that a line has in each column. With fewer it is a row of a table without lines."""
    column_prose: float = 0.7
    """The part of the pieces of lines that must be like that."""
    columns_nested: int = 4
    sheet_cells: int = 2_000_000
    """Cells of a workbook that hold something. The sheet says which rows are not read."""
    sheet_formulas: int = 100_000
    sheet_remarks: int = 10_000
    """Comments on the cells of a sheet."""
    notebook_bytes: int = 64 * 2**20
    mail_parts: int = 10_000
    mail_levels: int = 20
    """Messages within messages, and parts within parts."""
    mail_header: int = 64_000
    """Characters of a header."""
    office_levels: int = 20
    """Tables within tables, text boxes within text boxes, groups within groups of shapes."""
    layout_cell: int = 2000
    """Characters of a cell of a text. A table with a longer one only places what is in it."""
    drawing_levels: int = 60
    """Elements of XML within each other, in one drawing."""
    rtf_groups: int = 10_000
    """Groups within groups of an RTF file."""
    chart_points: int = 200
    """Points of a chart that are shown as data."""
    chart_values: int = 10_000
    """Points of a chart that are read."""
    chart_summary: int = 4000
    """Characters of a chart in words."""


FORMATS: Final = FormatBounds()
