"""Pages that are pictures: their words are read in the background, and marked."""

import asyncio
import io
import os
from functools import partial
from pathlib import Path

import pytest
from PIL import Image as Picture
from PIL import ImageDraw, ImageFont

from a2c_smcp.docs.library import Library
from a2c_smcp.docs.ocr_child import engine_name, lines_of_tsv
from a2c_smcp.docs.recognition import Recognition, ScannedPage, is_picture_only, with_words
from a2c_smcp.mcp_server.documents import Page
from a2c_smcp.mcp_server.elements import Annotation, Image, Text
from tests.docs.libraries import DEADLINE, by_uri, running, words_known
from tests.docs.test_pictures import illustrated

FAKE = ("-m", "tests.docs.fake_ocr")
SCAN = Page("Page 1", [Image(width=1, height=1)])


def test_only_a_page_that_is_nothing_but_images_is_read() -> None:
    assert is_picture_only(SCAN)
    assert not is_picture_only(Page("Page 1", [Image(), Text("words")]))
    assert not is_picture_only(Page("Page 1"))


def test_words_stand_behind_the_image_and_are_marked() -> None:
    image, note, text = with_words(SCAN, ["one", "two"], "tesseract").elements
    assert image == SCAN.elements[0]
    assert isinstance(note, Annotation) and "OCR" in note.text
    assert isinstance(text, Text) and (text.text, text.metadata) == ("one\ntwo", {"ocr": "tesseract"})


def test_the_words_of_tesseract_are_put_together_to_lines() -> None:
    names = ("level", "page_num", "block_num", "par_num", "line_num", "word_num", "left", "top", "width", "height")
    rows = [
        (*names, "conf", "text"),
        (1, 1, 0, 0, 0, 0, 0, 0, 200, 100, -1, ""),
        (5, 1, 1, 1, 1, 1, 20, 10, 40, 10, 95, "Two"),
        (5, 1, 1, 1, 1, 2, 70, 10, 50, 12, 95, '"words"'),
        (5, 1, 1, 1, 2, 1, 20, 30, 40, 10, 95, "below"),
    ]
    table = "\n".join("\t".join(map(str, row)) for row in rows)
    assert lines_of_tsv(table) == [('Two "words"', 0.1, 0.1, 0.6, 0.22), ("below", 0.1, 0.3, 0.3, 0.4)]


async def test_a_picture_is_read_in_the_background_and_its_document_is_updated(tmp_path: Path) -> None:
    Picture.new("RGB", (80, 40)).save(tmp_path / "scan.png")
    library = Library([tmp_path], recognition=Recognition("fake", FAKE))
    updated = asyncio.Event()

    class Listener:
        def documents_changed(self) -> None:
            pass

        def document_updated(self, doc_ref: str) -> None:
            updated.set()

    library.announce_to(Listener())
    async with library.running(), asyncio.timeout(DEADLINE):
        await library.folders[0].first_pass.wait()
        doc_ref = (await by_uri(library))["scan.png"].doc_ref
        first = await library.page(doc_ref, 0)
        assert "read the page again" in first.elements[-1].content["text"]
        await updated.wait()
        assert (await library.page(doc_ref, 0)).elements[-1].content["text"] == "A scanned line\nand another"


async def test_words_of_a_picture_are_searched_and_known_after_a_restart_until_the_file_changes(tmp_path: Path) -> None:
    folder = tmp_path / "served"
    folder.mkdir()
    Picture.new("RGB", (80, 40)).save(folder / "page.png")
    fake = Recognition("fake", FAKE)
    async with running(folder, cache=tmp_path / "cache", recognition=fake) as (library, heard):
        await words_known(library)
        doc_ref = (await by_uri(library))["page.png"].doc_ref
        assert (await library.search("scanned line", 5)).places == ()
        await library.page(doc_ref, 0)
        await heard.until(lambda: doc_ref in heard.events)
        [place] = (await library.search("scanned line", 5)).places
        assert (place.element_id, place.engine, place.snippet.split()[:3]) == ("p0-2", "fake", ["A", "scanned", "line"])
    never = Recognition("another", ("-c", "raise SystemExit(1)"))
    async with running(folder, cache=tmp_path / "cache", recognition=never) as (library, heard):
        words = (await library.page(doc_ref, 0)).elements[2]
        assert (words.content["text"], words.metadata) == ("A scanned line\nand another", {"ocr": "fake"})
        Picture.new("RGB", (90, 40)).save(folder / "new.png")
        os.replace(folder / "new.png", folder / "page.png")
        await heard.until(lambda: doc_ref in heard.events)
        assert (await library.search("scanned line", 5)).places == ()
        assert "read the page again" in (await library.page(doc_ref, 0)).elements[-1].content["text"]


async def test_the_one_image_of_a_page_without_a_picture_is_read(tmp_path: Path) -> None:
    scan = io.BytesIO()
    Picture.new("RGB", (80, 40)).save(scan, "PNG")
    name, data = illustrated("docx", scan.getvalue())
    (tmp_path / name).write_bytes(data)
    async with running(tmp_path, recognition=Recognition("fake", FAKE)) as (library, heard):
        doc_ref = (await by_uri(library))[name].doc_ref
        await library.page(doc_ref, 0)
        await heard.until(lambda: doc_ref in heard.events)
        assert (await library.page(doc_ref, 0)).elements[-1].metadata == {"ocr": "fake"}


async def test_a_picture_that_kills_the_reader_costs_only_itself() -> None:
    recognition = Recognition("fake", FAKE)
    done = [asyncio.Event(), asyncio.Event()]

    async def picture(data: bytes) -> bytes:
        return data

    async with recognition.running(), asyncio.timeout(DEADLINE):
        for number, data in enumerate((b"die", b"good")):
            await recognition.page(number, SCAN, ScannedPage(partial(picture, data), done[number].set))
        for each in done:
            await each.wait()
        unused = ScannedPage(partial(picture, b""), lambda: None)
        pages = [await recognition.page(number, SCAN, unused) for number in range(2)]
    assert "found no words" in pages[0].elements[-1].content["text"]
    assert pages[1].elements[-1].metadata == {"ocr": "fake"}


@pytest.mark.skipif(engine_name() is None, reason="neither rapidocr (the extra ocr) nor tesseract is installed")
async def test_the_real_reader_reads_printed_words(tmp_path: Path) -> None:
    scan = Picture.new("RGB", (900, 200), "white")
    ImageDraw.Draw(scan).text((40, 60), "Harvest report 2025", "black", ImageFont.load_default(64))
    scan.save(tmp_path / "scan.png")
    engine = engine_name()
    assert engine is not None
    recognition = Recognition(engine)
    done = asyncio.Event()

    async def picture() -> bytes:
        return (tmp_path / "scan.png").read_bytes()

    async with recognition.running(), asyncio.timeout(150):
        await recognition.page(0, SCAN, ScannedPage(picture, done.set))
        await done.wait()
        page = await recognition.page(0, SCAN, ScannedPage(picture, done.set))
    assert page.elements[-1].content["text"].split() == ["Harvest", "report", "2025"]
