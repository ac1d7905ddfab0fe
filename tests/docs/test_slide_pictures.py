"""Slides to look at, through a program in the place of LibreOffice."""

import asyncio
import os
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from a2c_smcp.docs.limits import DocumentLimits
from a2c_smcp.docs.slide_pictures import OfficeBounds, SlidePictures, has_slides, installed_office
from a2c_smcp.docs.walking import FoundFile
from a2c_smcp.docs.workers import Workers
from tests.docs.libraries import DEADLINE, by_uri, running
from tests.docs.office_files import slides_file, text_shape, word_file
from tests.docs.pdfs import drawn_pdf, say
from tests.docs.test_pictures import size_of


def office(folder: Path, script: str) -> str:
    """A command that is called as LibreOffice is: `$copy` is the presentation, `$out` the folder for the PDF file."""
    program = folder / "soffice"
    heads = 'for last; do case "$before" in --outdir) out=$last;; esac; before=$last; done; copy=$last'
    program.write_text(f'#!/bin/sh\necho run >> "{folder}/runs"\n{heads}\n{script}\n')
    program.chmod(0o755)
    return str(program)


def runs(folder: Path) -> int:
    return len((folder / "runs").read_text().splitlines())


def made(folder: Path, pages: int = 1) -> str:
    """A script that makes a PDF file."""
    (folder / "made.pdf").write_bytes(drawn_pdf(*[say(72, 700, f"Slide {number}") for number in range(pages)]))
    return f'cp "{folder}/made.pdf" "$out/slides.pdf"'


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    (tmp_path / "tools").mkdir()
    return tmp_path / "tools"


@pytest.fixture
def deck(tmp_path: Path) -> Path:
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / "deck.pptx").write_bytes(slides_file([text_shape("one"), text_shape("two")], hidden=[1]))
    return tmp_path / "served" / "deck.pptx"


def found(file: Path) -> FoundFile:
    about = file.stat()
    return FoundFile(file.name, about.st_size, about.st_mtime_ns)


@asynccontextmanager
async def slides(program: str, bounds: OfficeBounds | None = None) -> AsyncIterator[SlidePictures]:
    async with Workers(DocumentLimits()) as workers, asyncio.timeout(DEADLINE):
        pictures = SlidePictures(program, workers, None, bounds)
        async with pictures.running():
            yield pictures


def nothing() -> None:
    pass


def test_only_presentations_have_slides() -> None:
    assert all(map(has_slides, ("a.pptx", "b/a.ODP", "a.ppt")))
    assert not any(map(has_slides, ("a.docx", "a.xlsx", "a.odt", "a.pdf", "pptx")))


def test_the_program_is_looked_for_on_the_path(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tools))
    assert installed_office() is None
    assert office(tools, "") == installed_office()


async def test_a_slide_is_looked_at_and_its_file_is_converted_once(tmp_path: Path, tools: Path, deck: Path) -> None:
    deck.with_name("text.docx").write_bytes(word_file("<w:p><w:r><w:t>words</w:t></w:r></w:p>"))
    program, cache = office(tools, made(tools, pages=2)), tmp_path / "cache"
    for _ in ("first start", "second start"):
        async with running(deck.parent, cache=cache, office=program) as (library, _):
            documents = await by_uri(library)
            for index in (0, 1):
                picture = await library.picture(documents["deck.pptx"].doc_ref, index, None, 421)
                assert size_of(picture) == pytest.approx((298, 421), abs=1)
            assert await library.picture(documents["text.docx"].doc_ref, 0, None, 421) is None
    assert runs(tools) == 1
    [kept] = (cache / "slides").iterdir()
    assert [stat.S_IMODE(each.stat().st_mode) for each in (kept, kept.parent)] == [0o600, 0o700]


async def test_pages_that_are_not_the_slides_are_not_shown(tools: Path, deck: Path) -> None:
    async with slides(office(tools, made(tools, pages=1))) as pictures:
        assert await pictures.picture(str(deck.parent), found(deck), 2, 0, 400, nothing) is None


async def test_a_program_that_hangs_is_killed_with_its_children_and_not_started_again(tools: Path, deck: Path) -> None:
    # The child holds a pipe open for writing. Its reader ends when the child is gone.
    os.mkfifo(tools / "alive")
    program = office(tools, f'(exec sleep 600) > "{tools}/alive" & wait')
    async with slides(program, OfficeBounds(seconds=1.0)) as pictures:
        asking = [pictures.picture(str(deck.parent), found(deck), 2, 0, 400, nothing) for _ in range(2)]
        answers = asyncio.gather(*asking)
        await asyncio.to_thread((tools / "alive").read_bytes)
        assert await answers == [None, None]
        assert await pictures.picture(str(deck.parent), found(deck), 2, 0, 400, nothing) is None
    assert runs(tools) == 1


async def test_a_request_does_not_wait_for_long_and_hears_when_there_is_a_picture(tools: Path, deck: Path) -> None:
    os.mkfifo(tools / "go")
    late = asyncio.Event()
    program = office(tools, f'cat "{tools}/go"; {made(tools, pages=2)}')
    async with slides(program, OfficeBounds(patience_seconds=0.01)) as pictures:
        assert await pictures.picture(str(deck.parent), found(deck), 2, 0, 400, late.set) is None
        assert not late.is_set()
        await asyncio.to_thread((tools / "go").write_bytes, b"")
        await late.wait()
        assert await pictures.picture(str(deck.parent), found(deck), 2, 0, 400, nothing) is not None


async def test_the_oldest_files_go_when_there_are_too_many(tools: Path, deck: Path) -> None:
    other = deck.with_name("other.pptx")
    other.write_bytes(slides_file([text_shape("a"), text_shape("b")]))
    program = office(tools, made(tools, pages=2))
    size = (tools / "made.pdf").stat().st_size
    async with slides(program, OfficeBounds(kept_bytes=size)) as pictures:
        for file in (deck, other, deck):
            assert await pictures.picture(str(deck.parent), found(file), 2, 0, 400, nothing) is not None
    assert runs(tools) == 3
