"""A folder of sample files, one of each format, in English and Chinese: `python -m tests.docs.samples DIR`.

For the tests and the benchmark; some are those of the tour. The same texts every time. PDFs are written here, in a few
lines, so that no library is needed for it; the office formats need the extra `docs`.
"""

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from a2c_smcp import demo
from tests.docs.office_files import slides_file, text_shape, word_file

__all__ = ["FONTS", "PdfLine", "file_of", "make_office_samples", "make_samples", "make_text_samples", "pdf_bytes"]

PdfLine = tuple[str, int]
"""A line of a page, and the size of its letters."""

PAPERS = Path(demo.__file__).parent / "papers"
CODE = '"""Counts things."""\n\n\ndef count(things: list[str]) -> int:\n    return len(things)\n'


def make_samples(folder: Path) -> None:
    """Every sample."""
    make_text_samples(folder)
    make_office_samples(folder)
    (folder / "long.pdf").write_bytes(long_pdf(300))


def make_text_samples(folder: Path) -> None:
    """Those that need no library to be written, nor to be read, but for one short PDF."""
    (folder / "src").mkdir(parents=True, exist_ok=True)
    (folder / "build").mkdir(exist_ok=True)
    for name in ("handbook.md", "pump.html", "short.pdf"):
        shutil.copy(PAPERS / name, folder)
    shutil.copyfile(PAPERS / "annual-report.md", folder / "年度报告.md")
    shutil.copyfile(PAPERS / "old-notes.txt", folder / "旧笔记.txt")
    _write(folder / "src" / "count.py", CODE)
    _write(folder / "notes.txt", "".join(f"Note {number}: the {number % 7}th bed.\n" for number in range(450)))
    rows = "".join(f"{number},bed {number % 5},{number * 1.5}\n" for number in range(450))
    _write(folder / "harvest.csv", f"day,bed,kilograms\n{rows}")
    _write(folder / ".gitignore", "build/\n*.log\n")
    _write(folder / "build" / "made.md", "# Not served\n")
    _write(folder / "debug.log", "not served\n")
    _write(folder / ".hidden.md", "# Not served\n")


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def make_office_samples(folder: Path) -> None:
    _workbook(folder / "budget.xlsx")
    _word_file(folder / "合同.docx")
    _slides(folder / "talk.pptx")
    from PIL import Image

    Image.new("RGB", (320, 200), "green").save(folder / "plan.png")


def _workbook(path: Path) -> None:
    from openpyxl import Workbook

    book = Workbook()
    costs = book.active
    costs.title = "Costs"
    costs.append(["item", "price", "count", "sum"])
    for number in range(1, 251):
        costs.append([f"item {number}", number * 1.25, number % 9, f"=B{number + 1}*C{number + 1}"])
    income = book.create_sheet("收入")
    income.append(["月份", "金额"])
    income.append(["一月", 1200])
    book.create_sheet("Empty")
    book.save(path)


def _word_file(path: Path) -> None:
    def paragraph(text: str, style: str = "") -> str:
        chosen = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
        return f"<w:p>{chosen}<w:r><w:t>{text}</w:t></w:r></w:p>"

    styles = "".join(
        f'<w:style w:type="paragraph" w:styleId="{name.replace(" ", "")}"><w:name w:val="{name}"/></w:style>'
        for name in ("heading 1", "heading 2", "List Bullet")
    )
    rows = (("year", "rent"), ("2024", "1000"), ("2025", "1000"))
    cells = ("".join(f"<w:tc>{paragraph(text)}</w:tc>" for text in row) for row in rows)
    body = (
        paragraph("Lease of the garden", "heading1")
        + paragraph("The garden is leased for ten years.")
        + paragraph("租金", "heading2")
        + paragraph("租金每年支付一次，共计一千元。")
        + paragraph("in spring", "ListBullet")
        + paragraph("in cash", "ListBullet")
        + f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in cells)}</w:tbl>"
        + '<w:sectPr><w:headerReference r:id="header1"/></w:sectPr>'
    )
    parts = {"styles": f"<w:styles>{styles}</w:styles>", "header1": f"<w:hdr>{paragraph('Draft')}</w:hdr>"}
    path.write_bytes(word_file(body, parts, title="Lease of the garden", keywords="lease, garden"))


def _slides(path: Path) -> None:
    notes = f"<p:notes><p:cSld><p:spTree>{text_shape('Speak slowly.', 'body')}</p:spTree></p:cSld></p:notes>"
    categories, values = (
        "".join(f'<c:pt idx="{place}"><c:v>{point}</c:v></c:pt>' for place, point in enumerate(points))
        for points in (("apples", "pears"), (12, 7))
    )
    chart = (
        "<c:chartSpace><c:chart><c:plotArea><c:barChart><c:ser><c:tx><c:v>2025</c:v></c:tx>"
        f"<c:cat><c:strLit>{categories}</c:strLit></c:cat><c:val><c:numLit>{values}</c:numLit></c:val></c:ser>"
        "</c:barChart></c:plotArea></c:chart></c:chartSpace>"
    )
    rows = "".join(
        "<a:tr>"
        + "".join(f"<a:tc><a:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></a:txBody></a:tc>" for text in row)
        + "</a:tr>"
        for row in (("fruit", "kg"), ("apples", "12"))
    )
    figures = ('<c:chart r:id="chart"/>', f'<a:tbl><a:tblPr firstRow="1"/>{rows}</a:tbl>')
    frames = (
        f'<p:graphicFrame><p:nvGraphicFramePr><p:cNvPr id="{number}" name="Figure {number}"/></p:nvGraphicFramePr>'
        f"<a:graphic><a:graphicData>{inner}</a:graphicData></a:graphic></p:graphicFrame>"
        for number, inner in enumerate(figures, 2)
    )
    first = text_shape("The year in the garden", "title") + text_shape("More rain\nMore apples", "body")
    second = text_shape("收成", "title") + "".join(frames)
    parts = [{"notesSlide": notes}, {"chart": chart}]
    path.write_bytes(slides_file([first, second], parts))


# --- PDF

#: F1 is Helvetica, F2 is a Chinese font that takes UTF-16.
FONTS = (
    b"<< /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> /F2 << /Type /Font /Subtype /Type0 "
    b"/BaseFont /STSong-Light /Encoding /UniGB-UCS2-H /DescendantFonts [<< /Type /Font /Subtype /CIDFontType0 "
    b"/BaseFont /STSong-Light /CIDSystemInfo << /Registry (Adobe) /Ordering (GB1) /Supplement 2 >> "
    b"/FontDescriptor << /Type /FontDescriptor /FontName /STSong-Light /Flags 6 /FontBBox [0 -200 1000 900] "
    b"/ItalicAngle 0 /Ascent 800 /Descent -200 /CapHeight 800 /StemV 80 >> >>] >> >>"
)


def long_pdf(pages: int) -> bytes:
    """A book of so many pages, with a chapter every ten."""
    return pdf_bytes(
        [
            [
                (f"Chapter {number // 10 + 1}", 20) if number % 10 == 0 else (f"Section {number}", 14),
                *((f"Line {line} of page {number + 1} speaks of seeds, roots and rain.", 10) for line in range(30)),
            ]
            for number in range(pages)
        ],
        title="A long book",
    )


def pdf_bytes(pages: Sequence[Sequence[PdfLine]], *, title: str = "", link: str = "") -> bytes:
    """A PDF with these lines: Latin ones in Helvetica, others in a Chinese font. A link is on the first page."""
    objects: list[bytes] = [b"", b""]
    kids: list[bytes] = []
    for number, lines in enumerate(pages):
        stream = _content(lines)
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream))
        annotation = b""
        if link and number == 0:
            action = b"<< /S /URI /URI (%s) >>" % link.encode("ascii")
            annotation = b" /Annots [<< /Type /Annot /Subtype /Link /Rect [70 770 400 800] /A %s >>]" % action
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents %d 0 R /Resources << /Font %s >>%s >>"
            % (len(objects), FONTS, annotation)
        )
        kids.append(b"%d 0 R" % len(objects))
    objects[0] = b"<< /Type /Catalog /Pages 2 0 R >>"
    objects[1] = b"<< /Type /Pages /Count %d /Kids [%s] >>" % (len(kids), b" ".join(kids))
    objects.append(b"<< /Title <FEFF%s> >>" % title.encode("utf-16-be").hex().upper().encode())
    return file_of(objects)


def _content(lines: Sequence[PdfLine]) -> bytes:
    parts = [b"BT"]
    y = 780
    for text, size in lines:
        latin = text.isascii()
        shown = text.encode("latin-1" if latin else "utf-16-be").hex().encode()
        parts.append(b"/%s %d Tf 1 0 0 1 72 %d Tm <%s> Tj" % (b"F1" if latin else b"F2", size, y, shown))
        y -= size + (14 if size > 12 else 4)
    return b"\n".join([*parts, b"ET"])


def file_of(objects: Sequence[bytes]) -> bytes:
    out = bytearray(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n")
    starts = []
    for number, body in enumerate(objects, 1):
        starts.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % start for start in starts)
    out += b"trailer << /Size %d /Root 1 0 R /Info %d 0 R >>\n" % (len(objects) + 1, len(objects))
    return bytes(out + b"startxref\n%d\n%%%%EOF\n" % table)


if __name__ == "__main__":
    make_samples(Path(sys.argv[1]))
