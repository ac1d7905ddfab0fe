"""Files that are not what they should be, made from the samples."""

import io
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path

from tests.docs.samples import pdf_bytes

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
LAUGHS = (
    '<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY a "ha">'
    + "".join(f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 10}">' for n in range(9))
    + "]>"
)


def corrupt_files(samples: Path) -> Iterator[tuple[str, bytes, int | None]]:
    """Names, contents, and the code that is said of each; `None` where the file is served all the same."""
    for name in ("budget.xlsx", "合同.docx", "talk.pptx", "short.pdf"):
        whole = (samples / name).read_bytes()
        suffix = name.rpartition(".")[2]
        yield f"half.{suffix}", whole[: len(whole) // 2], 500
        yield f"tail.{suffix}", whole[len(whole) // 2 :], 500
        yield f"empty.{suffix}", b"", 500
        yield f"noise.{suffix}", bytes(range(256)) * 40, 500
        yield f"text.{suffix}", b"just words\n", 500
    for suffix in ("md", "html", "csv", "txt", "png"):
        yield f"empty.{suffix}", b"", 500
    yield "png.pdf", (samples / "plan.png").read_bytes(), 500
    yield "slides.docx", (samples / "talk.pptx").read_bytes(), 500
    yield "pdf.md", (samples / "short.pdf").read_bytes(), 500
    yield "binary.txt", b"\x00\x01\x02" * 100, 500
    yield "half.png", (samples / "plan.png").read_bytes()[:20], 500
    yield "locked.pdf", locked_pdf(), 500
    yield "locked.docx", OLE + bytes(4096), 500
    yield "locked.xlsx", OLE + bytes(4096), 500
    yield "bomb.docx", archive({"word/document.xml": bytes(40 * 2**20)}), 413
    yield "bomb.xlsx", archive({"xl/worksheets/sheet1.xml": bytes(40 * 2**20)}), 413
    yield "liar.xlsx", liar(), 500
    yield "laughs.docx", with_part(samples / "合同.docx", "word/document.xml", LAUGHS + "<a>&j;</a>"), 500
    yield "bad-xml.pptx", with_part(samples / "talk.pptx", "ppt/presentation.xml", "<p:presentation"), 500
    yield "wide.csv", (",".join(f"c{number}" for number in range(10_000)) + "\n" + "1," * 9_999 + "1\n").encode(), None
    yield "charset.txt", b"caf\xe9 \xff\xfe\x80 " * 50, None
    yield "half.utf8.txt", "好".encode() * 100 + b"\xe5\xa5", None
    yield "deep.html", b"<div>" * 5_000 + b"deep", None
    yield "deep.md", b"> " * 500 + b"deep", None
    yield "deep.ipynb", b'{"cells":' + b"[" * 100_000, 413
    yield "large.ipynb", b'{"cells": [{"cell_type": "raw", "source": "' + b"x" * (50 * 2**20) + b'"}]}', None
    yield "parts.eml", b"Subject: x\n\n" + b"--b\nContent-Type: text/plain\n\n" * 1_000_000, 413
    yield "nested.eml", nested_mail(3_000), 413
    yield "bomb.epub", archive({"in/a.xhtml": bytes(40 * 2**20)}), 413
    yield "laughs.xlsx", with_part(samples / "budget.xlsx", "xl/workbook.xml", LAUGHS + "<a>&j;</a>"), 500
    yield "laughs.ods", archive({"content.xml": f"{LAUGHS}<a>&j;</a>".encode()}), 500
    yield "far.xlsx", far_cells(), None
    yield "repeated.ods", repeated_cells(), None
    yield "half.xls", OLE + bytes(1000), 500
    yield "noise.msg", OLE + bytes(range(256)) * 40, 500
    yield "lists.html", b"<ul><li>item" * 2_300, None
    yield "spans.html", b"<table><tr>" + b"<td rowspan=999 colspan=999>x" * 900 + b"<tr><td>y" * 900, None
    yield "one-line.json", b"[" + b"1," * 200_000 + b"1]", None


def archive(parts: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for name, data in parts.items():
            made.writestr(name, data)
    return out.getvalue()


def liar() -> bytes:
    """An archive whose directory says that its part is small."""
    data = archive({"xl/worksheets/sheet1.xml": bytes(20 * 2**20)})
    return data.replace(struct.pack("<I", 20 * 2**20), struct.pack("<I", 100))


def with_part(path: Path, name: str, text: str) -> bytes:
    with zipfile.ZipFile(path) as old:
        parts = {each: old.read(each) for each in old.namelist()}
    return archive({**parts, name: text.encode()})


def nested_mail(levels: int) -> bytes:
    """A message in a message in a message."""
    return b"Content-Type: message/rfc822\n\n" * levels + b"Subject: deep\n\nwords\n"


def far_cells() -> bytes:
    """Two cells in opposite corners of the largest sheet."""
    from openpyxl import Workbook

    book = Workbook()
    book.active["A1"], book.active["XFD1048576"] = 1, 2
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def repeated_cells() -> bytes:
    """A few bytes that stand for 17 billion cells."""
    return archive(
        {
            "content.xml": b"""<a><table name="x"><table-row number-rows-repeated="1048576"><table-cell
            value-type="float" value="1" number-columns-repeated="16384"/></table-row></table></a>"""
        }
    )


def locked_pdf() -> bytes:
    """A PDF that asks for a password which nobody knows."""
    encrypt = b"/Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O <%s> /U <%s> >> /ID [<00><00>]" % (
        b"41" * 32,
        b"42" * 32,
    )
    return pdf_bytes([[("secret", 12)]]).replace(b"trailer << ", b"trailer << " + encrypt + b" ")
