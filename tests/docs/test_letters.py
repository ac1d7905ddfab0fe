"""Mail, messages of Outlook, notebooks and books."""

import json
from email.message import EmailMessage
from typing import Any

import pytest

from a2c_smcp.docs.formats.msg import unpacked_rtf
from a2c_smcp.docs.limits import Unreadable
from a2c_smcp.mcp_server.elements import Code, Heading, Image, Text
from a2c_smcp.mcp_server.rendering import elements_text
from tests.docs.foreign_files import book, outlook_message
from tests.docs.test_formats import opened, pages


def text_of(name: str, data: bytes) -> str:
    return "\n\n".join(elements_text(page.elements) for page in pages(opened(name, data)))


def test_mail_shows_its_headers_its_plain_text_and_the_names_of_what_is_attached() -> None:
    inner = EmailMessage()
    inner["Subject"] = "The first one"
    inner.set_content("It was only words.")
    mail = EmailMessage()
    mail["Subject"] = "年度报告"
    mail["From"], mail["To"], mail["Date"] = (
        "Ada <ada@example.com>",
        "bob@example.com",
        "Wed, 01 Jan 2020 10:00:00 +0000",
    )
    mail.set_content("See the picture, Bob.\n")
    mail.add_alternative("<p>See the <b>picture</b>, Bob.", subtype="html")
    mail.add_attachment(b"x" * 700, maintype="image", subtype="png", filename="Grüße.png")
    mail.add_attachment(inner)
    document = opened("a.eml", mail.as_bytes())
    assert document.properties.title == "年度报告"
    assert text_of("a.eml", mail.as_bytes()) == (
        "年度报告\n\nFrom: Ada <ada@example.com>\nTo: bob@example.com\nDate: Wed, 01 Jan 2020 10:00:00 +0000\n\n"
        "See the picture, Bob.\n\nAttachments:\n\nGrüße.png (image/png, 700 bytes)\n\nAn attached message:\n\n"
        "The first one\n\nIt was only words."
    )


def test_html_of_mail_is_shown_if_the_plain_text_is_only_a_hint() -> None:
    mail = EmailMessage()
    mail["Subject"] = "News"
    mail.set_content("Please use another program.")
    mail.add_alternative("<style>p{}</style><p>Apples are ripe, and the pears will follow soon.", subtype="html")
    assert "Apples are ripe" in text_of("a.eml", mail.as_bytes())
    assert "p{}" not in text_of("a.eml", mail.as_bytes())
    assert text_of("a.msg", mail.as_bytes()) == text_of("a.eml", mail.as_bytes())


def test_mail_with_wrong_headers_and_encodings_is_read_as_far_as_it_goes() -> None:
    data = b"Subject: =?nowhere?B?!!!?= =?utf-8?q?caf=C3=A9?=\nContent-Type: text/plain; charset=nowhere\n\n"
    data += b"caf\xe9 au lait\n"
    assert "au lait" in text_of("a.eml", data)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-16"])
def test_mail_in_utf_16_is_read_with_and_without_a_mark(encoding: str) -> None:
    assert text_of("a.eml", "Subject: News\n\nApples are ripe: 年度.\n".encode(encoding)) == (
        "News\n\nApples are ripe: 年度."
    )


def test_a_message_of_outlook_is_shown_like_mail() -> None:
    assert text_of("a.msg", outlook_message()) == (
        "年度报告\n\nFrom: Ada <ada@example.com>\nTo: Bob\nDate: 2020-01-01 00:00:00 UTC\n\nSee the picture.\n\n"
        "Attachments:\n\nplan.png (image/png, 5,000 bytes)\n\nAn attached message:\n\n"
        "The first one\n\nIt was only words."
    )


def test_packed_rtf_of_outlook_is_unpacked() -> None:
    packed = "2d0000002b0000004c5a4675f1c5c7a703000a007263706731323542320af32068656c090020627705b06c647d0a800fa0"
    assert unpacked_rtf(bytes.fromhex(packed)) == b"{\\rtf1\\ansi\\ansicpg1252\\pard hello world}\r\n"


def notebook(*cells: dict[str, Any]) -> bytes:
    return json.dumps({"cells": cells, "metadata": {"kernelspec": {"language": "julia"}}, "nbformat": 4}).encode()


def test_a_notebook_shows_words_code_and_what_it_printed_and_names_pictures() -> None:
    outputs = [
        {"output_type": "stream", "text": ["one\n", "two\n"]},
        {"output_type": "display_data", "data": {"text/plain": "<Figure>", "image/png": "iVBORw0KGgo=" * 9}},
        {"output_type": "execute_result", "data": {"text/html": "<table><tr><td>a<td>b</table>"}},
        {"output_type": "error", "traceback": ["\x1b[31mValueError\x1b[0m: no"]},
    ]
    data = notebook(
        {"cell_type": "markdown", "source": ["# Beds\n", "Some *words*."]},
        {"cell_type": "code", "source": "x = 1\n", "outputs": outputs},
        {"cell_type": "code", "source": [7], "outputs": [3]},
    )
    [page] = pages(opened("a.ipynb", data))
    assert page.elements[:4] == [
        Heading("Beds", 1),
        Text("Some *words*."),
        Code("x = 1", "julia"),
        Code("one\ntwo", "text"),
    ]
    assert elements_text(page.elements[4:]) == (
        "<Figure>\n\n[图片: A picture that this code made (image/png)]\n\na\tb\n\nValueError: no"
    )


def test_a_notebook_of_an_older_version_is_read() -> None:
    cells = [
        {"cell_type": "heading", "level": 2, "source": ["Old"]},
        {"cell_type": "code", "input": "1+1", "outputs": [{"output_type": "pyout", "text": ["2"], "png": "x"}]},
    ]
    [page] = pages(opened("a.ipynb", json.dumps({"worksheets": [{"cells": cells}]}).encode()))
    assert page.elements[:3] == [Heading("Old", 2), Code("1+1", "python"), Code("2", "text")]
    assert isinstance(page.elements[3], Image)


def test_a_book_is_read_chapter_by_chapter_in_the_order_of_reading() -> None:
    chapters = {"z.xhtml": "<h1>Page by page</h1><p>It is black.", "a b.xhtml": "<p>No heading.", "locked.xhtml": "%&$"}
    data = book(chapters, locked=["locked.xhtml"])
    document = opened("a.epub", data)
    assert (document.properties.title, document.properties.keywords) == ("The garden book", ["soil"])
    assert [(page.title, elements_text(page.elements)) for page in pages(document)] == [
        ("Page by page", "Page by page\n\nIt is black."),
        ("Page 2", "No heading."),
        ("Page 3", "This part of the book is encrypted: in/locked.xhtml"),
        ("Page 4", "This part of the book is missing or broken: in/gone.xhtml"),
    ]


@pytest.mark.parametrize(
    ("name", "data", "code"),
    [
        ("a.eml", b"\n" + b"--b\nContent-Type: text/plain\n\n" * 20_000, 500),
        ("a.eml", b"Subject: x\n\n" + b"--b\nContent-Type: text/plain\n\n" * 20_000, 413),
        ("a.ipynb", b"[1]", 500),
        ("a.ipynb", b"{", 500),
        ("a.msg", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(2000), 500),
        ("a.epub", book({"a.xhtml": "x"}, locked=["a.xhtml", "gone.xhtml"]), 500),
    ],
)
def test_what_is_none_of_these_says_so(name: str, data: bytes, code: int) -> None:
    with pytest.raises(Unreadable) as caught:
        opened(name, data)
    assert caught.value.code == code
