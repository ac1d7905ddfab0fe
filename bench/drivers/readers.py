"""Other people's readers of documents, in an environment of their own (`.venv-readers`).

Reads lines of JSON, `{"reader": …, "path": …}`, and answers each with one line: `{"text": …, "seconds": …}` or
`{"error": …}`. `bench.documents` ends this process if an answer takes too long.
"""

import json
import os
import sys
import time
from functools import cache

_OUT = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)  # a library that prints would otherwise answer in our place


@cache
def _markitdown():
    from markitdown import MarkItDown

    return MarkItDown()


def markitdown(path):
    return _markitdown().convert(path).text_content


def pdfplumber(path):
    import pdfplumber as library

    with library.open(path) as file:
        return "\n".join(page.extract_text() or "" for page in file.pages)


def pymupdf(path):
    import pymupdf as library

    with library.open(path) as file:
        return "\n".join(page.get_text(sort=False) for page in file)


def pypdf(path):
    from pypdf import PdfReader

    return "\n".join(page.extract_text() for page in PdfReader(path).pages)


def docx2python(path):
    from docx2python import docx2python as read

    with read(path) as content:
        return content.text


def mammoth(path):
    import mammoth as library

    with open(path, "rb") as file:
        return library.extract_raw_text(file).value


def docx2txt(path):
    import docx2txt as library

    return library.process(path)


def python_pptx(path):
    from pptx import Presentation

    def texts(shapes):
        for shape in shapes:
            if shape.shape_type == 6:
                yield from texts(shape.shapes)
            if shape.has_text_frame:
                yield shape.text_frame.text
            if getattr(shape, "has_table", False):
                for row in shape.table.rows:
                    yield from (cell.text for cell in row.cells)

    found = []
    for slide in Presentation(path).slides:
        found += texts(slide.shapes)
        if slide.has_notes_slide:
            found.append(slide.notes_slide.notes_text_frame.text)
    return "\n".join(found)


def _rows(rows):
    return "\n".join(" ".join(str(cell) for cell in row if cell not in (None, "")) for row in rows)


def openpyxl(path):
    from openpyxl import load_workbook

    with open(path, "rb") as file:
        book = load_workbook(file, read_only=True, data_only=True)
        return "\n".join(_rows(sheet.iter_rows(values_only=True)) for sheet in book.worksheets)


def calamine(path):
    from python_calamine import CalamineWorkbook

    book = CalamineWorkbook.from_path(path)
    return "\n".join(_rows(book.get_sheet_by_name(name).to_python()) for name in book.sheet_names)


def xlrd(path):
    import xlrd as library

    def value(book, cell):
        if cell.ctype == library.XL_CELL_DATE:
            return library.xldate_as_datetime(cell.value, book.datemode)
        if cell.ctype == library.XL_CELL_BOOLEAN:
            return bool(cell.value)
        return library.error_text_from_code.get(cell.value) if cell.ctype == library.XL_CELL_ERROR else cell.value

    book = library.open_workbook(path, logfile=sys.stderr)
    return "\n".join(_rows([value(book, cell) for cell in row] for row in sheet.get_rows()) for sheet in book.sheets())


def pyxlsb(path):
    from pyxlsb import open_workbook

    with open_workbook(path) as book:
        return "\n".join(_rows([cell.v for cell in row] for row in book.get_sheet(name).rows()) for name in book.sheets)


def lxml(path):
    from lxml import html

    with open(path, "rb") as file:
        tree = html.parse(file).getroot()
    for unseen in tree.xpath("//script|//style|//template|//noscript|//head|//comment()"):
        unseen.drop_tree()
    return "\n".join(tree.itertext())


def html2text(path):
    from html2text import HTML2Text

    reader = HTML2Text(bodywidth=0)
    reader.ignore_links = reader.ignore_images = reader.ignore_emphasis = True
    return reader.handle(_decoded(path))


def _decoded(path):
    from charset_normalizer import from_bytes

    with open(path, "rb") as file:
        data = file.read()
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return str(from_bytes(data).best() or "")


def odfpy(path):
    from odf import teletype, text
    from odf.opendocument import load

    document = load(path)
    nodes = document.getElementsByType(text.P) + document.getElementsByType(text.H)
    return "\n".join(map(teletype.extractText, nodes))


def odf_text(path):
    """Every text of the content, whatever it stands in."""
    import re
    import zipfile

    from lxml import etree

    with zipfile.ZipFile(path) as archive:
        tree = etree.fromstring(archive.read("content.xml"), etree.XMLParser(resolve_entities=False, huge_tree=True))
    blocks = tree.xpath("//*[local-name()='p' or local-name()='h']")
    return "\n".join(re.sub(r"\s+", " ", "".join(block.itertext())) for block in blocks)


READERS = {
    "markitdown": markitdown,
    "pdfplumber": pdfplumber,
    "pymupdf": pymupdf,
    "pypdf": pypdf,
    "docx2python": docx2python,
    "mammoth": mammoth,
    "docx2txt": docx2txt,
    "python-pptx": python_pptx,
    "openpyxl": openpyxl,
    "calamine": calamine,
    "xlrd": xlrd,
    "pyxlsb": pyxlsb,
    "lxml": lxml,
    "html2text": html2text,
    "odfpy": odfpy,
    "odf_text": odf_text,
}


def answer(request):
    started = time.perf_counter()
    try:
        text = READERS[request["reader"]](request["path"])
    except Exception as error:  # a measure takes whatever a reader raises
        return {"error": f"{type(error).__name__}: {error}"[:300]}
    text = (text or "").encode("utf-8", "replace").decode()
    return {"text": text, "seconds": time.perf_counter() - started}


for line in sys.stdin:
    _OUT.write(json.dumps(answer(json.loads(line))) + "\n")
    _OUT.flush()
