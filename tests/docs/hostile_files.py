"""Files that are small and made to cost much: a few bytes that stand for many, deep nesting, lengths that lie."""

import struct
from collections.abc import Iterator
from typing import Final

from tests.docs.corrupt import LAUGHS, nested_mail
from tests.docs.foreign_files import compound_file, outlook_message
from tests.docs.office_files import archive, odf_file
from tests.docs.test_old_office import old_slides, old_word, record

_LONG: Final = 2**20


def hostile_files() -> Iterator[tuple[str, bytes]]:
    """Names and contents."""
    yield "deep.odt", odf_file("text", "<text:section>" * 20_000 + "<text:p>deep</text:p>" + "</text:section>" * 20_000)
    yield "spans.odt", odf_file("text", f"<text:p>{'<text:span>' * 20_000}deep{'</text:span>' * 20_000}</text:p>")
    yield "blanks.odt", odf_file("text", "<text:p>a<text:s text:c='999999999'/>b</text:p>" * 100)
    cell = "<table:table-cell table:number-columns-repeated='99999999'><text:p>x</text:p></table:table-cell>"
    rows = f"<table:table-row table:number-rows-repeated='99999999'>{cell}</table:table-row>"
    yield "cells.odt", odf_file("text", f"<table:table>{rows * 100}</table:table>")
    yield "laughs.odt", archive({"content.xml": f"{LAUGHS}<a>&j;</a>"})
    yield "cut.odt", odf_file("text", "<text:p>words</text:p>" * 1000)[:-200]
    yield "deep.rtf", b"{\\rtf1 " + b"{\\b " * 300_000 + b"deep"
    yield "rows.rtf", b"{\\rtf1 " + b"\\trowd\\cellx1\\intbl x\\cell\\row" * 50_000
    yield "binary.rtf", b"{\\rtf1 \\bin2147483647 x\\u-99999999999999999999 y\\bin-1 }"
    yield "pieces.doc", _many_pieces()
    yield "fields.doc", old_word("\x13" * 300_000 + "\x15" * 300_000)
    yield "cut.doc", old_word("words " * 10_000)[:4000]
    deep = b""
    for _ in range(5000):
        deep = record(1000, deep, 0xF)
    yield "deep.ppt", compound_file({"PowerPoint Document": deep})
    yield "liar.ppt", compound_file({"PowerPoint Document": struct.pack("<HHI", 0xF, 1000, 2**32 - 1) * 5000})
    yield "cut.ppt", old_slides()[:1500]
    yield "again.epub", _book("<p>words</p>" * 50_000, times=20_000)
    yield "deep.epub", _book("<div>" * 10_000, times=1)
    yield "nested.eml", nested_mail(3000)
    yield "header.eml", b"Subject: " + b"=?utf-8?q?x?= " * 300_000 + b"\n\nwords"
    yield "types.eml", b"Content-Type: text/plain; " + b"a*0=x; " * 50_000 + b"\n\nwords"
    yield "cut.msg", outlook_message()[:3000]
    yield "circle.msg", _circle(outlook_message())
    yield "deep.ipynb", b'{"cells":' + b"[" * 100_000
    yield (
        "outputs.ipynb",
        b'{"cells": [' + b",".join([b'{"cell_type":"code","outputs":[{"text":[]}]}'] * 50_000) + b"]}",
    )
    yield "strings.xlsx", _same_string()
    yield "bomb.xlsx", archive({"xl/workbook.xml": bytes(40 * 2**20)})


def _many_pieces() -> bytes:
    """A Word file whose one long text stands in it two thousand times."""
    main = bytearray(2048) + b"x" * _LONG
    count = 2000
    places = struct.pack("<HIH", 0, 2048 * 2 | 0x40000000, 0) * count
    plan = b"".join(struct.pack("<I", number * _LONG) for number in range(count + 1)) + places
    table = b"\x02" + struct.pack("<I", len(plan)) + plan
    struct.pack_into("<H", main, 10, 0x200)
    struct.pack_into("<II", main, 0x1A2, 0, len(table))
    return compound_file({"WordDocument": bytes(main), "1Table": table})


def _book(chapter: str, times: int) -> bytes:
    """A book with one chapter, which is read so many times."""
    spine = '<itemref idref="a"/>' * times
    return archive(
        {
            "META-INF/container.xml": '<container><rootfile full-path="b.opf"/></container>',
            "b.opf": f'<package><item id="a" href="a.html"/>{spine}</package>',
            "a.html": chapter,
        }
    )


def _circle(message: bytes) -> bytes:
    """An OLE file whose sectors follow each other in a circle."""
    (first,) = struct.unpack_from("<I", message, 76)
    start = 512 * (first + 1)
    return message[:start] + struct.pack("<I", 0) * 128 + message[start + 512 :]


def _same_string() -> bytes:
    """A workbook with one long text that stands in every cell."""
    space = "http://schemas.openxmlformats.org"
    cells = "".join(f'<row r="{row}"><c r="A{row}" t="s"><v>0</v></c></row>' for row in range(1, 50_001))
    relation = f'<Relationship Id="{{0}}" Type="{space}/officeDocument/2006/relationships/{{1}}" Target="{{2}}"/>'

    def relations(*each: tuple[str, str, str]) -> str:
        inner = "".join(relation.format(*one) for one in each)
        return f'<Relationships xmlns="{space}/package/2006/relationships">{inner}</Relationships>'

    main = f'xmlns="{space}/spreadsheetml/2006/main"'
    named = f'xmlns:r="{space}/officeDocument/2006/relationships"'
    sheets = '<sheets><sheet name="s" sheetId="1" r:id="a"/></sheets>'
    parts = {
        "_rels/.rels": relations(("a", "officeDocument", "xl/workbook.xml")),
        "xl/workbook.xml": f"<workbook {main} {named}>{sheets}</workbook>",
        "xl/_rels/workbook.xml.rels": relations(("a", "worksheet", "s.xml"), ("b", "sharedStrings", "t.xml")),
        "xl/s.xml": f"<worksheet {main}><sheetData>{cells}</sheetData></worksheet>",
        "xl/t.xml": f"<sst {main}><si><t>{'words ' * 5000}</t></si></sst>",
    }
    return archive(parts)
