"""RTF files, piece by piece."""

import pytest

from a2c_smcp.docs.limits import Unreadable
from a2c_smcp.mcp_server.elements import Annotation, Element, Footer, Header, Heading, Link, Table, Text
from tests.docs.test_formats import opened, pages


def read(text: str) -> list[Element]:
    document = opened("a.rtf", f"{{\\rtf1\\ansi\\ansicpg1252 {text}}}".encode("latin-1"))
    return [element for page in pages(document) for element in page.elements]


def test_letters_of_code_pages_fonts_and_unicode() -> None:
    fonts = r"{\fonttbl{\f0 A;}{\f1\fcharset128 B;}{\f2\fcharset204 C;}}"
    body = r"caf\'e9 \f1\'93\'fa\'96\'7b \f2\'cf\'f0 \f0\u8364? \u-10179?\u-8704? \uc0\u20320 ok\par"
    assert read(fonts + body) == [Text("café 日本 Пр € 😀 你ok")]


def test_what_is_not_text_is_left_out() -> None:
    hidden = r"{\*\unknown x}{\pict 0102}{\info{\title Lease}{\author y}}{\deleted gone}{\*\generator z}{\bin3 {}}}"
    assert read(hidden + r"shown\line here\tab\{x\}\par") == [Text("shown\nhere\t{x}")]
    assert opened("a.rtf", rb"{\rtf1{\info{\title Lease}{\keywords a, b}}x}").properties.title == "Lease"


def test_headings_tables_links_and_notes() -> None:
    styles = r"{\stylesheet{\s0 Normal;}{\s1 heading 1;}}"
    field = r'{\field{\*\fldinst HYPERLINK "https://example.com/"}{\fldrslt there}}'
    table = r"\trowd\pard\intbl a\cell b\cell\row\trowd\pard\intbl 1\cell 2\cell\row\pard"
    notes = r"{\footnote see}{\*\atnauthor Ann}{\*\annotation why}"
    body = rf"\pard\s1 Rent\par\pard go {field}{notes}\par {table} end\par"
    assert read(styles + body) == [
        Heading("Rent", 1),
        Text("go there[^1]"),
        Table(["a", "b"], [["1", "2"]]),
        Text("end"),
        Link("there", "https://example.com/"),
        Text("[^1]: see"),
        Annotation("why", "Ann"),
    ]


def test_edges_of_the_page_are_there_once() -> None:
    assert read(r"{\header Draft}{\footer Page}{\header Draft}x\par") == [Header("Draft"), Text("x"), Footer("Page")]


def test_files_that_are_broken_or_deep_end() -> None:
    assert read("cut {\\b here \\par {\\i") == [Text("cut here")]
    with pytest.raises(Unreadable):
        read("{" * 20_000)
    with pytest.raises(Unreadable):
        opened("a.rtf", b"just words")
