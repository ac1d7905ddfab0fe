"""Folders as a source of documents: the catalogue, pages, what happens when files change, and what cannot be read."""

import asyncio
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from a2c_smcp.docs.describing import NOT_READ
from a2c_smcp.docs.library import Library
from a2c_smcp.docs.limits import DocumentLimits
from a2c_smcp.errors import SMCPError
from a2c_smcp.mcp_server.rendering import elements_markdown
from tests.docs.libraries import DEADLINE, Heard, by_uri, running, words_known


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


async def test_the_catalogue_has_every_document_with_its_pages_and_an_instant(samples: Path) -> None:
    async with running(samples) as (library, _):
        documents = await by_uri(library)
    assert {uri: document.page_count for uri, document in documents.items()} == {
        "budget.xlsx": 4,
        "handbook.md": 3,
        "harvest.csv": 3,
        "long.pdf": 300,
        "notes.txt": 3,
        "plan.png": 1,
        "pump.html": 2,
        "short.pdf": 2,
        "src/count.py": 1,
        "talk.pptx": 2,
        "%E5%90%88%E5%90%8C.docx": 2,
        "%E5%B9%B4%E5%BA%A6%E6%8A%A5%E5%91%8A.md": 3,
        "%E6%97%A7%E7%AC%94%E8%AE%B0.txt": 1,
    }
    book = documents["long.pdf"]
    assert (book.title, book.file_type, book.doc_ref[:9]) == ("A long book", "pdf", "long-pdf-")
    assert (book.modified or "").endswith("+00:00")


async def test_a_second_start_describes_nothing_again(tmp_path: Path) -> None:
    write(tmp_path / "docs" / "a.md", "# One")
    write(tmp_path / "docs" / "blob", "\0binary")
    cache = tmp_path / "cache"
    async with running(tmp_path / "docs", cache=cache) as (library, _):
        before = await by_uri(library)
        await words_known(library)
        assert library.workers.pids
    async with running(tmp_path / "docs", cache=cache) as (library, _):
        assert await by_uri(library) == before
        await words_known(library)
        assert not library.workers.pids
        assert [place.document.title for place in (await library.search("one", 5)).places] == ["One"]


async def test_pages_are_read_and_kept_and_summaries_need_no_pages(samples: Path) -> None:
    async with running(samples) as (library, _):
        book = (await by_uri(library))["long.pdf"].doc_ref
        page = await library.page(book, 299)
        assert page is await library.page(book, 299)
        assert page.title == "Section 299"
        summaries = await library.page_summaries(book, 9, 2)
        assert [(each.title, each.element_count) for each in summaries] == [("Section 9", 2), ("Chapter 2", 2)]
        with pytest.raises(SMCPError) as caught:
            await library.page(book, 300)
        assert caught.value.code == 4202


async def test_a_saved_file_is_updated_and_new_and_removed_ones_change_the_list(tmp_path: Path) -> None:
    write(tmp_path / "a.txt", "one")
    write(tmp_path / "b.txt", "two")
    async with running(tmp_path) as (library, heard):
        documents = await by_uri(library)
        ref = documents["a.txt"].doc_ref
        heard.events.clear()
        write(tmp_path / "a.txt", "line\n" * 201)
        await heard.until(lambda: ref in heard.events)
        assert (await by_uri(library))["a.txt"].page_count == 2
        assert "line" in elements_markdown((await library.page(ref, 1)).elements)
        heard.events.clear()
        write(tmp_path / "deep" / "er" / "c.txt", "three")
        await heard.until(lambda: "list" in heard.events)
        assert "deep/er/c.txt" in await by_uri(library)
        heard.events.clear()
        (tmp_path / "b.txt").unlink()
        await heard.until(lambda: "list" in heard.events)
        assert set(await by_uri(library)) == {"a.txt", "deep/er/c.txt"}
        assert ref not in heard.events


async def test_a_file_that_is_read_right_after_it_was_saved_is_the_new_one(tmp_path: Path) -> None:
    write(tmp_path / "a.md", "# Old")
    async with running(tmp_path) as (library, _):
        ref = (await by_uri(library))["a.md"].doc_ref
        write(tmp_path / "a.md", "# New words")
        assert (await library.page(ref, 0)).title == "New words"


async def test_many_files_at_once_are_one_change(tmp_path: Path) -> None:
    write(tmp_path / "a.txt", "one")
    async with running(tmp_path) as (library, heard):
        await by_uri(library)
        heard.events.clear()
        for number in range(500):
            write(tmp_path / "many" / f"{number}.txt", "x")
        await heard.until(lambda: len(library.folders[0].documents) == 501)
        assert heard.events == ["list"]


async def test_many_new_folders_that_somebody_else_fills_are_hardly_more_than_one_change(tmp_path: Path) -> None:
    code = """
import pathlib, sys, time
for number in range(200):
    folder = pathlib.Path(sys.argv[1], "new", str(number // 5))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{number}.txt").write_text("x")
    time.sleep(0.01)
"""
    async with running(tmp_path) as (library, heard):
        heard.events.clear()
        unpacking = await asyncio.create_subprocess_exec(sys.executable, "-c", code, str(tmp_path))
        await heard.until(lambda: len(library.folders[0].documents) == 200)
        await unpacking.wait()
        # One on a quiet machine, and one more for each time that the filling stood still long enough to look finished;
        # forty folders that are announced as they come would be far more.
        assert len(heard.events) <= 20


async def test_a_broken_file_that_was_just_written_is_waited_for(
    tmp_path: Path, samples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A worker on a busy machine may need more than two seconds to start: then a file is old once it is known as broken.
    monkeypatch.setattr("a2c_smcp.docs.folder._YOUNG_SECONDS", 60.0)
    whole = (samples / "talk.pptx").read_bytes()
    async with running(tmp_path) as (library, heard):
        (tmp_path / "talk.pptx").write_bytes(whole[: len(whole) // 2])
        async with asyncio.timeout(DEADLINE):
            while not library.folders[0]._unsettled:  # noqa: ASYNC110 - nothing says that a file is waited for
                await asyncio.sleep(0.02)
        assert await by_uri(library) == {}
        (tmp_path / "talk.pptx").write_bytes(whole)
        await heard.until(lambda: heard.events)
        assert (await by_uri(library))["talk.pptx"].title == "The year in the garden"


async def test_a_rewritten_file_with_the_same_words_keeps_its_reference_and_its_element_ids(tmp_path: Path) -> None:
    write(tmp_path / "a.md", "# One\n\nwords")
    async with running(tmp_path) as (library, _):
        document = (await by_uri(library))["a.md"]
        page = await library.page(document.doc_ref, 0)
    (tmp_path / "a.md").unlink()
    write(tmp_path / "a.md", "# One\n\nwords")
    async with running(tmp_path) as (library, _):
        again = (await by_uri(library))["a.md"]
        assert again.doc_ref == document.doc_ref
        assert await library.page(again.doc_ref, 0) == page


async def test_a_file_that_cannot_be_read_is_one_page_that_says_why(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(b"%PDF-1.4 broken")
    write(tmp_path / "b.txt", "x" * 3_000_000)
    os.utime(tmp_path / "a.pdf", (0, 0))
    os.utime(tmp_path / "b.txt", (0, 0))
    async with running(tmp_path, limits=DocumentLimits(file_bytes=2**20)) as (library, _):
        documents = await by_uri(library)
        for uri, code, word in (("a.pdf", 500, "broken"), ("b.txt", 413, "MiB")):
            assert documents[uri].page_count == 1
            assert word in documents[uri].summary
            [element] = (await library.page(documents[uri].doc_ref, 0)).elements
            assert element.metadata == {"error_code": code}
            assert len(await library.page_summaries(documents[uri].doc_ref, 0, 20)) == 1


async def test_two_folders_are_one_catalogue_and_files_of_the_same_name_differ(tmp_path: Path) -> None:
    write(tmp_path / "x" / "docs" / "a.md", "# One")
    write(tmp_path / "y" / "docs" / "a.md", "# Two")
    async with running(tmp_path / "x" / "docs", tmp_path / "y" / "docs") as (library, _):
        documents, total = await library.catalogue(0, 10)
        assert {document.title for document in documents} == {"One", "Two"}
        assert total == len({document.doc_ref for document in documents}) == 2
        assert [(await library.page(document.doc_ref, 0)).title for document in documents] == ["One", "Two"]


def test_folders_that_are_none_or_stand_in_each_other_are_refused(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for roots in ([], [tmp_path / "none"], [tmp_path, tmp_path / "in"]):
        with pytest.raises(ValueError):
            Library(roots)


async def test_file_uris_tell_where_the_folder_is_only_when_asked_to(tmp_path: Path) -> None:
    write(tmp_path / "a b.md", "# One")
    async with running(tmp_path) as (library, _):
        assert list(await by_uri(library)) == ["a%20b.md"]
    async with running(tmp_path, absolute_uris=True) as (library, _):
        assert list(await by_uri(library)) == [(tmp_path / "a b.md").as_uri()]


async def test_a_folder_swapped_for_a_link_serves_nothing_from_there(tmp_path: Path) -> None:
    write(tmp_path / "outside" / "a.md", "# Secret")
    write(tmp_path / "root" / "in" / "a.md", "# Open")
    async with running(tmp_path / "root") as (library, heard):
        ref = (await by_uri(library))["in/a.md"].doc_ref
        heard.events.clear()
        (tmp_path / "root" / "in").rename(tmp_path / "gone")
        (tmp_path / "root" / "in").symlink_to("../outside")
        with pytest.raises(SMCPError):
            await library.page(ref, 0)
        await heard.until(lambda: "list" in heard.events)
        assert await by_uri(library) == {}


async def test_a_folder_that_is_gone_serves_nothing_and_serves_again_when_it_is_back(tmp_path: Path) -> None:
    write(tmp_path / "root" / "in" / "a.md", "# One")
    async with running(tmp_path / "root") as (library, heard):
        heard.events.clear()
        (tmp_path / "root").rename(tmp_path / "away")
        await heard.until(lambda: not library.folders[0].documents)
        shutil.copytree(tmp_path / "away", tmp_path / "root")
        await heard.until(lambda: library.folders[0].documents)
        assert heard.events == ["list", "list"]
        write(tmp_path / "root" / "in" / "b.md", "# Two")
        await heard.until(lambda: len(library.folders[0].documents) == 2)


async def test_a_changed_ignore_file_counts_at_once(tmp_path: Path) -> None:
    write(tmp_path / "a.md", "# One")
    write(tmp_path / "b.md", "# Two")
    async with running(tmp_path) as (library, heard):
        heard.events.clear()
        write(tmp_path / ".gitignore", "a.md\n")
        await heard.until(lambda: heard.events)
        assert set(await by_uri(library)) == {"b.md"}


async def test_names_that_are_no_text_are_served_too(tmp_path: Path) -> None:
    write(tmp_path / os.fsdecode(b"bad\xff.md"), "# Odd name")
    async with running(tmp_path, cache=tmp_path / ".cache") as (library, _):
        [document] = (await by_uri(library)).values()
        assert document.file_uri == "bad%FF.md"
        assert (await library.page(document.doc_ref, 0)).title == "Odd name"


async def test_a_slow_file_does_not_hold_up_the_catalogue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("a2c_smcp.docs.folder._FIRST_LISTED_SECONDS", 0.0)
    monkeypatch.setattr("a2c_smcp.docs.library._FIRST_ANSWER_SECONDS", 0.0)
    write(tmp_path / "Annual report.md", "# Real title\n\n## Two\n\n## Three")
    write(tmp_path / "unknown-kind", "text")
    os.utime(tmp_path / "Annual report.md", (0, 0))
    library = Library([tmp_path])
    heard = Heard()
    library.announce_to(heard)
    held: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    describe = library.workers.describe

    async def hold(*args: Any, background: bool = False, **options: Any) -> Any:
        if background:
            await held
        return await describe(*args, background=background, **options)

    monkeypatch.setattr(library.workers, "describe", hold)
    async with library.running(), asyncio.timeout(DEADLINE):
        await heard.until(lambda: heard.events)
        [document] = (await library.catalogue(0, 10))[0]
        assert (document.title, document.page_count, document.summary) == ("Annual report.md", 1, NOT_READ)
        answer = await library.search("annual", 5)
        assert (answer.complete, [found.doc_ref for found in answer.not_indexed]) == (False, [document.doc_ref])
        assert "2 files are new or were saved, and are being read. Search again later." in answer.notes
        opened = await library.document(document.doc_ref)
        assert opened is not None
        assert (opened.title, opened.page_count) == ("Real title", 3), "it is read when it is opened"
        heard.events.clear()
        held.set_result(None)
        await library.folders[0].first_pass.wait()
        assert {found.title for found in (await library.catalogue(0, 10))[0]} == {"Real title", "unknown-kind"}
        assert document.doc_ref in heard.events


async def test_a_file_that_a_worker_died_of_is_not_tried_at_every_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "large.txt").write_bytes("x".encode("utf-16") + "y".encode("utf-16-le") * 60_000_000)
    os.utime(tmp_path / "large.txt", (0, 0))
    small = DocumentLimits(memory_bytes=150 * 2**20)
    cache = tmp_path / ".cache"
    for tries in (1, 0):
        caplog.clear()
        async with running(tmp_path, limits=small, cache=cache) as (library, _):
            [document] = (await by_uri(library)).values()
            assert "too much memory" in document.summary
            await words_known(library)
        lines = [record.message for record in caplog.records if record.levelname == "WARNING"]
        assert lines == ["'large.txt' cannot be read: it needs too much memory"] * tries
    async with running(tmp_path, cache=cache) as (library, _):
        [document] = (await by_uri(library)).values()
        assert document.page_count > 1, "with other limits it is tried again"


async def test_a_folder_that_is_away_is_said_once_and_its_index_is_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path / "root" / "a.md", "# One\n\nbasil")
    async with running(tmp_path / "root") as (library, heard):
        await words_known(library)
        (tmp_path / "root").rename(tmp_path / "away")
        await heard.until(lambda: not library.folders[0].documents)
        answer = await library.search("basil", 5)
        assert (answer.complete, answer.places) == (False, ())
        assert any(note.startswith(f"The folder {tmp_path / 'root'} cannot be looked at: ") for note in answer.notes)
        (tmp_path / "away").rename(tmp_path / "root")
        await heard.until(lambda: library.folders[0].documents)
        assert [place.document.title for place in (await library.search("basil", 5)).places] == ["One"]
        assert library.folders[0]._index.unfinished() == {}
    said = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert ["cannot be looked at" in said[0], "can be looked at again" in said[-1], len(said)] == [True, True, 2]


async def test_what_is_not_served_is_counted_in_the_catalogue(tmp_path: Path) -> None:
    write(tmp_path / "a.md", "# One")
    async with running(tmp_path) as (library, _):
        assert library.catalogue_note() == ""
    write(tmp_path / "server.pem", "secret")
    write(tmp_path / "blob", "\0binary")
    async with running(tmp_path) as (library, _):
        assert library.catalogue_note() == (
            "Not served: 2 files or folders (may hold a secret: 1, its content is no document: 1). "
            "`a2c docs check` lists them."
        )
    async with running(tmp_path, include=["*.pem"]) as (library, _):
        assert set(await by_uri(library)) == {"a.md", "server.pem"}
