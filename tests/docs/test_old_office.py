"""Word and PowerPoint files of the time before 2007, made here record by record."""

import struct

import pytest

from a2c_smcp.docs.limits import Unreadable
from a2c_smcp.mcp_server.elements import Element, Heading, List, Text
from tests.docs.foreign_files import compound_file
from tests.docs.office_files import word_file
from tests.docs.test_formats import opened, pages


def old_word(*texts: str, flags: int = 0x200) -> bytes:
    """A file whose text is in pieces: those of Latin letters have one byte a letter, the others two."""
    main = bytearray(2048)
    ends, places = [0], []
    for text in texts:
        narrow = text.isascii()
        places.append(struct.pack("<HIH", 0, len(main) * 2 | 0x40000000 if narrow else len(main), 0))
        main += text.encode("cp1252" if narrow else "utf-16-le")
        ends.append(ends[-1] + len(text))
    plan = b"".join(struct.pack("<I", end) for end in ends) + b"".join(places)
    table = b"\x01\x02\x00??" + b"\x02" + struct.pack("<I", len(plan)) + plan
    struct.pack_into("<H", main, 10, flags)
    struct.pack_into("<II", main, 0x1A2, 0, len(table))
    return compound_file({"WordDocument": bytes(main), "1Table": table})


def record(kind: int, body: bytes, flags: int = 0) -> bytes:
    return struct.pack("<HHI", flags, kind, len(body)) + body


def old_slides(*, folder: str = "") -> bytes:
    place, letters, narrow = 1011, 4000, 4008
    outline = (
        record(place, b"")
        + record(letters, "年度".encode("utf-16-le"))
        + record(narrow, b"one\rtwo")
        + record(place, b"")
    )
    lists = record(4080, outline, 0xF) + record(4080, record(place, b"") + record(narrow, b"master"), 0x1F)
    shape = record(0xF00D, record(narrow, b"drawn"), 0xF)
    data = record(1000, lists, 0xF) + record(1006, shape, 0xF) + record(1006, b"", 0xF)
    return compound_file({folder: {"PowerPoint Document": data}} if folder else {"PowerPoint Document": data})


def test_the_pieces_of_a_word_file_are_its_paragraphs() -> None:
    [page] = pages(
        opened("a.doc", old_word("One \x13 HYPERLINK x \x14link\x15\r", "年度报告\r", "a\x07b\x07\x07end\x0bline\r"))
    )
    assert page.elements == [Text("One link"), Text("年度报告"), Text("a\tb"), Text("end\nline")]


def test_a_word_file_of_1995_has_its_text_in_one_place() -> None:
    main = bytearray(2048) + "Caf\xe9\rfield\r".encode("cp1252")
    struct.pack_into("<II", main, 0x18, 2048, len(main))
    [page] = pages(opened("a.doc", compound_file({"WordDocument": bytes(main)})))
    assert page.elements == [Text("Café"), Text("field")]
    words = "Четыре балла и семь лет назад отцы наши создали на этом континенте новую нацию"
    main[2048:] = words.encode("cp1251")
    struct.pack_into("<II", main, 0x18, 2048, len(main))
    assert pages(opened("a.doc", compound_file({"WordDocument": bytes(main)})))[0].elements == [Text(words)]
    struct.pack_into("<II", main, 0x18, 2048, len(main) + 10**6)
    with pytest.raises(Unreadable, match="no text that can be found"):
        opened("a.doc", compound_file({"WordDocument": bytes(main)}))


def test_a_word_file_that_is_encrypted_or_cut_says_so() -> None:
    with pytest.raises(Unreadable, match="encrypted"):
        opened("a.doc", old_word("x", flags=0x300))
    with pytest.raises(Unreadable):
        opened("a.doc", compound_file({"WordDocument": b"\0" * 20}))
    with pytest.raises(Unreadable):
        opened("a.ppt", b"words")


@pytest.mark.parametrize("folder", ["", "PP97_DUALSTORAGE"])
def test_slides_have_their_outlines_and_their_shapes(folder: str) -> None:
    first, second = pages(opened("a.ppt", old_slides(folder=folder)))
    assert (first.title, second.title) == ("年度", "Slide 2")
    assert first.elements == [Heading("年度", 1), List(["one", "two"]), Text("drawn")]
    assert second.elements == []


def test_a_newer_file_with_the_old_ending_is_read_as_what_it_is() -> None:
    [page] = pages(opened("a.doc", word_file("<w:p><w:r><w:t>new</w:t></w:r></w:p>")))
    assert page.elements == [Text("new")]
    [page] = pages(opened("a.doc", rb"{\rtf1 rich\par}"))
    assert page.elements == [Text("rich")]


def test_a_file_that_is_called_a_word_file_and_is_text_is_read() -> None:
    def elements(data: str) -> list[Element]:
        return [element for page in pages(opened("a.doc", data.encode())) for element in page.elements]

    box = "<w:txbxContent><w:p><w:r><w:t> in a box</w:t></w:r></w:p></w:txbxContent>"
    body = f"<w:body><w:p><w:r><w:t>One</w:t></w:r>{box}</w:p><w:p><w:r><w:t>Two</w:t></w:r></w:p></w:body>"
    flat = f'<?xml version="1.0"?><w:wordDocument xmlns:w="http://schemas.example/word">{body}</w:wordDocument>'
    assert elements(flat) == [Text("One in a box"), Text("Two")]
    assert elements("<html><body><p>A page</p></body></html>") == [Text("A page")]
    assert elements('{"kind": "JSON"}') == [Text('{"kind": "JSON"}')]
