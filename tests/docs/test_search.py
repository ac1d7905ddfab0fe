"""The index: Chinese by pairs, kept up to date, shared by processes, made again when it is broken."""

import asyncio
import os
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from a2c_smcp.docs.index import Index
from a2c_smcp.docs.library import Library
from a2c_smcp.docs.queries import parse_query
from a2c_smcp.docs.walking import FoundFile
from tests.docs.libraries import by_uri, running, words_known

FACTS: dict[str, Any] = {"title": "t", "page_count": 1, "keywords": [], "summary": "", "problem": None}


def index_of(pages: dict[str, list[str]], title: str = "t") -> Index:
    """An index in memory, of files with these pages."""
    index = Index("/x", None)
    for path, texts in pages.items():
        file = FoundFile(path, 1, 1)
        assert index.remember([(file, {**FACTS, "title": title})])
        index.add_pages(file, 0, [[(0, text)] for text in texts], last=True)
    return index


def found_by(index: Index, query: str) -> list[str]:
    """The documents that have all words of a query."""
    return [hit.path for hit in index.search(parse_query(query), 100).hits if hit.whole]


async def titles(library: Library, query: str) -> list[str]:
    return [place.document.title for place in (await library.search(query, 10)).places]


async def test_words_are_found_in_every_format_with_their_page_and_element(samples: Path) -> None:
    async with running(samples) as (library, _):
        await words_known(library)
        for query, title in {
            "财务": "年度报告",
            "收": "年度报告",
            "租金": "Lease of the garden",
            "灌溉": "Water",
            "apples": "The year in the garden",
            "Slowly": "The year in the garden",
            "valve": "The pump",
            "旧的笔记": "旧笔记.txt",
            "basil": "The garden handbook",
            "return len": "count.py",
        }.items():
            assert title in await titles(library, query), query
        [found, *_] = (await library.search('"page 137"', 3)).places
        assert (found.document.title, found.page_index) == ("A long book", 136)
        assert found.element_id is not None
        page = await library.page(found.document.doc_ref, found.page_index)
        assert "of page 137 speaks" in str(page.elements[int(found.element_id.partition("-")[2])].content)
        assert "page 137" in found.snippet
        assert await titles(library, "zebra") == []
        assert await titles(library, "zebra basil") == ["The garden handbook"]


async def test_search_follows_changes(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# One\n\nold words")
    async with running(tmp_path, cache=tmp_path / ".cache") as (library, heard):
        await words_known(library)
        assert await titles(library, "old") == ["One"]
        heard.events.clear()
        (tmp_path / "a.md").write_text("# One\n\nnew words")
        await heard.until(lambda: heard.events)
        async with asyncio.timeout(60):
            while await titles(library, "new") != ["One"]:  # noqa: ASYNC110 - nothing says which words are known
                await asyncio.sleep(0.02)
        assert await titles(library, "old") == []
        (tmp_path / "a.md").unlink()
        heard.events.clear()
        await heard.until(lambda: heard.events)
        assert await titles(library, "new") == []


async def test_a_large_file_from_the_future_is_read_at_once(tmp_path: Path) -> None:
    large = tmp_path / "a.txt"
    large.write_text("basil\n" + " " * 2**20)
    tomorrow = time.time() + 86400
    os.utime(large, (tomorrow, tomorrow))
    async with running(tmp_path) as (library, _):
        await words_known(library)
        assert await titles(library, "basil") == ["a.txt"]


async def test_words_that_could_not_be_kept_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mock: another process would have to hold the index for twenty seconds."""
    keep, tries = Index.add_pages, []

    def locked_once(*args: Any, **options: Any) -> int | None:
        tries.append(1)
        if len(tries) == 1:
            raise sqlite3.OperationalError("database is locked")
        return keep(*args, **options)

    monkeypatch.setattr(Index, "add_pages", locked_once)
    monkeypatch.setattr("a2c_smcp.docs.indexing._AGAIN_SECONDS", 0.01)
    (tmp_path / "a.md").write_text("# One\n\nbasil")
    async with running(tmp_path) as (library, _):
        await words_known(library)
        assert await titles(library, "basil") == ["One"]


async def test_a_broken_index_is_made_again(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# One\n\nwords")
    cache = tmp_path / ".cache"
    for damage in (b"this is no database" * 1000, b""):
        async with running(tmp_path, cache=cache) as (library, _):
            assert len(await by_uri(library)) == 1
            await words_known(library)
            assert await titles(library, "words") == ["One"]
        [path] = (cache / "index").glob("*.sqlite")
        path.write_bytes(damage)
    async with running(tmp_path, cache=cache) as (library, _):
        await words_known(library)
        assert await titles(library, "words") == ["One"]


def test_an_index_that_breaks_while_it_is_open_is_made_again(tmp_path: Path) -> None:
    index = Index("/x", tmp_path)
    file = FoundFile("a.md", 1, 1)
    index.remember([(file, FACTS)])
    index._database.execute("DROP TABLE words")
    assert found_by(index, "words") == []
    assert index.rebuilt == 1
    index.remember([(file, FACTS)])
    assert index.add_pages(file, 0, [[(0, "words")]], last=True) == 1
    assert found_by(index, "words") == ["a.md"]
    index.close()


def test_a_folder_that_cannot_be_written_to_leaves_the_index_in_memory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    index = Index("/x", tmp_path / "file" / "below")
    index.remember([(FoundFile("a.md", 1, 1), FACTS)])
    assert index.unfinished() == {"a.md": 0}
    index.close()


def test_two_indexes_on_one_file_share_what_they_know(tmp_path: Path) -> None:
    one, other = Index("/x", tmp_path), Index("/x", tmp_path)
    files = [FoundFile(f"{number}.md", 1, 1) for number in range(50)]

    def fill(index: Index) -> None:
        for file in files:
            if file.path not in index.known({file.path: file}):
                index.remember([(file, FACTS)])
            index.add_pages(file, 0, [[(0, f"word {file.path}")]], last=True)

    threads = [threading.Thread(target=fill, args=[index]) for index in (one, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert one.known({file.path: file for file in files}).keys() == {file.path for file in files}
    assert len(found_by(other, "word")) == 50
    one.forget_others(["1.md"])
    assert found_by(other, "word") == ["1.md"]
    one.close()
    other.close()


def test_what_another_version_wrote_is_thrown_away(tmp_path: Path) -> None:
    index = Index("/x", tmp_path)
    index.remember([(FoundFile("a.md", 1, 1), FACTS)])
    index._database.execute("PRAGMA user_version = 99")
    index.close()
    again = Index("/x", tmp_path)
    assert again.known({"a.md": FoundFile("a.md", 1, 1)}) == {}
    again.close()


# --- what is found


def test_names_titles_and_folders_are_searched_and_count_more_than_text() -> None:
    index = index_of({"a.md": ["the harvest report of the year"], "Harvest/BeansOf2024.md": ["nothing else"]})
    assert found_by(index, "harvest") == ["Harvest/BeansOf2024.md", "a.md"]
    assert found_by(index, "beans 2024") == ["Harvest/BeansOf2024.md"]
    assert found_by(index, "harvest nothing") == ["Harvest/BeansOf2024.md"], "a word of the name and one of the page"
    assert found_by(index_of({"a.md": ["x"]}, "The garden handbook"), "gardens") == ["a.md"]


def test_every_grammatical_form_of_a_word_is_found() -> None:
    index = index_of({"a.md": ["Engines are checked after reporting."], "b.md": ["nothing"]})
    for query in ("engine", "checks", "reported", "engine check reports"):
        assert found_by(index, query) == ["a.md"], query


def test_words_of_a_query_may_stand_in_several_elements_of_a_page() -> None:
    index = Index("/x", None)
    file = FoundFile("a.md", 1, 1)
    index.remember([(file, FACTS)])
    index.add_pages(file, 0, [[(0, "seeds"), (3, "rain and roots")], [(0, "seeds only")]], last=True)
    [hit] = index.search(parse_query("seeds rain roots"), 5).hits
    assert (hit.page, hit.number, hit.snippet) == (0, 3, "rain and roots")


def test_a_typo_finds_what_was_meant_and_the_answer_says_so() -> None:
    index = index_of({"a.md": ["the photodetector"], "b.md": ["Résumé of a teacher"], "c.md": ["other"]})
    found = index.search(parse_query("photodetecter"), 5)
    assert ([hit.path for hit in found.hits], found.corrected) == (["a.md"], {"photodetecter": ("photodetector",)})
    assert found_by(index, "reusme teacher") == ["b.md"]
    assert index.search(parse_query("zzzzzz"), 5).hits == ()
    index.forget_others(["c.md"])
    assert index.search(parse_query("photodetecter"), 5).corrected == {}, "the words of a file go with it"


def test_where_few_documents_have_all_words_some_that_have_any_follow() -> None:
    index = index_of({"a.md": ["rain roots trees"], "b.md": ["rain rain rain"], "c.md": ["rain roots"], "d.md": ["x"]})
    found = index.search(parse_query("rain roots trees"), 5).hits
    assert [(hit.path, hit.whole) for hit in found] == [("a.md", True), ("c.md", False), ("b.md", False)]
    assert [hit.whole for hit in index.search(parse_query("trees zebras"), 5).hits] == [False]
    assert {hit.path for hit in index.search(parse_query('"rain roots" zebras'), 5).hits} == {"a.md", "c.md"}


def test_a_phrase_is_verified_against_the_text() -> None:
    index = index_of({"a.md": ["the annual reports of 2024"], "b.md": ["an annual report"], "c.md": ["report, annual"]})
    assert found_by(index, '"annual report"') == ["b.md"]
    assert found_by(index, '"no such phrase"') == []
    assert found_by(index_of({"a.md": ["见年度报告。"], "b.md": ["年度的报告"]}), '"年度报告"') == ["a.md"]


def test_filters_choose_documents_and_alone_they_list_them() -> None:
    index = index_of({"x/a.md": ["rain"], "x/b.txt": ["rain"], "y/a.md": ["rain"]})
    assert found_by(index, "rain type:txt") == ["x/b.txt"]
    assert found_by(index, "rain path:x/ type:md") == ["x/a.md"]
    assert found_by(index, "type:md") == ["x/a.md", "y/a.md"]
    assert found_by(index, "rain after:2001") == []


def test_one_document_does_not_take_all_places() -> None:
    index = index_of({"long.md": ["rain and rain"] * 50, "short.md": ["a word about the rain, among many other words"]})
    assert "short.md" in found_by(index, "rain")[:4]
    assert len(found_by(index, "rain")) == 51


def test_every_page_and_every_character_is_indexed() -> None:
    index = Index("/x", None)
    file = FoundFile("a.md", 1, 1)
    index.remember([(file, FACTS)])
    assert index.add_pages(file, 0, [[(0, f"page{number}")] for number in range(6000)], last=False) == 6000
    assert index.unfinished() == {"a.md": 6000}, "the rest is added later, by another process too"
    assert index.add_pages(file, 0, [[(0, "again")]], last=False) == 6000, "another process was faster"
    assert index.add_pages(file, 6000, [[(0, "x " * 100_000 + "lastword")], None], last=True) == 6002
    assert (index.unfinished(), index.missed()) == ({}, {"a.md": 1})
    assert [hit.page for hit in index.search(parse_query("lastword"), 5).hits] == [6000]
    assert [hit.page for hit in index.search(parse_query("page5999"), 5).hits] == [5999]


async def test_an_answer_says_what_was_not_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mock: a document that is being indexed cannot be held there."""
    monkeypatch.setattr(Index, "add_pages", lambda *args, **options: None)
    (tmp_path / "a.md").write_text("# Beans\n\nbasil")
    (tmp_path / "b.pdf").write_bytes(b"%PDF-1.4 broken")
    (tmp_path / ".hidden").write_text("")
    os.utime(tmp_path / "b.pdf", (0, 0))
    async with running(tmp_path) as (library, _):
        answer = await library.search("basil zebra", 5)
        assert not answer.complete
        assert {document.title for document in answer.not_indexed} == {"Beans", "b.pdf"}
        assert any(note.startswith("2 documents are not in the index yet: ") for note in answer.notes)
        assert "1 documents cannot be read. Only their names are searched." in answer.notes
        assert "No page has all words. These have some of them." in answer.notes
        assert [place.document.title for place in (await library.search("beans", 5)).places] == ["Beans"], "by its name"
        nothing = await library.search("zebra", 5)
        assert any(note.startswith("Not served: 1 files or folders (hidden: 1).") for note in nothing.notes)


# --- where it is kept


def test_nobody_else_can_read_the_index(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "index").mkdir(mode=0o755)
    index = Index("/x", tmp_path)
    index.remember([(FoundFile("a.md", 1, 1), FACTS)])
    files = list((tmp_path / "index").iterdir())
    assert len(files) >= 2, "the database, and what SQLite keeps beside it"
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    assert (tmp_path / "index").stat().st_mode & 0o777 == 0o700
    index.close()


def test_an_index_behind_a_link_is_kept_in_memory(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "index").symlink_to("elsewhere")
    index = Index("/x", tmp_path)
    assert (index.path, list((tmp_path / "elsewhere").iterdir())) == (":memory:", [])
    index.close()


async def test_a_full_disk_is_said_once_and_what_was_not_kept_is_kept_later(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("a2c_smcp.docs.indexing._AGAIN_SECONDS", 0.05)
    (tmp_path / "a.md").write_text("# One\n\nbasil " + " ".join(f"word{number}" for number in range(50_000)))
    library = Library([tmp_path], cache=tmp_path / ".cache")
    index = library.folders[0]._index
    index._database.execute("PRAGMA max_page_count = 1").fetchall()  # SQLite's way to have no room left
    async with library.running(), asyncio.timeout(60):
        await library.folders[0].first_pass.wait()
        assert [document.title for document in library.folders[0].documents] == ["One"]
        while index.problem is None:  # noqa: ASYNC110 - nothing says that the disk is full
            await asyncio.sleep(0.02)
        answer = await library.search("basil", 5)
        assert not answer.complete
        assert [document.title for document in answer.not_indexed] == ["One"]
        assert any("full" in note and index.path in note for note in answer.notes)
        index._database.execute("PRAGMA max_page_count = 1000000").fetchall()
        await library.folders[0].indexer.known.wait()
        answer = await library.search("basil", 5)
        assert (answer.complete, [place.document.title for place in answer.places]) == (True, ["One"])
    said = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert [index.path in line for line in said] == [True, True], said
