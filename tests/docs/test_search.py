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
from a2c_smcp.docs.walking import FoundFile
from tests.docs.libraries import by_uri, running, words_known

FACTS = {"title": "t", "page_count": 1, "keywords": [], "summary": "", "problem": None}


async def titles(library: Library, query: str) -> list[str]:
    return [found.document.title for found in await library.search(query, 10)]


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
        [found, *_] = await library.search("page 137", 3)
        assert (found.document.title, found.page_index) == ("A long book", 136)
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
    keep, tries = Index.add_words, []

    def locked_once(*args: Any) -> bool:
        tries.append(1)
        if len(tries) == 1:
            raise sqlite3.OperationalError("database is locked")
        return keep(*args)

    monkeypatch.setattr(Index, "add_words", locked_once)
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
        [path] = cache.glob("*.sqlite")
        path.write_bytes(damage)
    async with running(tmp_path, cache=cache) as (library, _):
        await words_known(library)
        assert await titles(library, "words") == ["One"]


def test_an_index_that_breaks_while_it_is_open_is_made_again(tmp_path: Path) -> None:
    index = Index("/x", tmp_path)
    file = FoundFile("a.md", 1, 1)
    index.remember([(file, FACTS)])
    index._database.execute("DROP TABLE words")
    assert index.search("words", 5) == []
    assert index.rebuilt == 1
    index.remember([(file, FACTS)])
    assert index.add_words(file, [(0, 0, "words")])
    assert [hit.path for hit in index.search("words", 5)] == ["a.md"]
    index.close()


def test_a_folder_that_cannot_be_written_to_leaves_the_index_in_memory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    index = Index("/x", tmp_path / "file" / "below")
    index.remember([(FoundFile("a.md", 1, 1), FACTS)])
    assert index.without_words() == {"a.md"}
    index.close()


def test_two_indexes_on_one_file_share_what_they_know(tmp_path: Path) -> None:
    one, other = Index("/x", tmp_path), Index("/x", tmp_path)
    files = [FoundFile(f"{number}.md", 1, 1) for number in range(50)]

    def fill(index: Index) -> None:
        for file in files:
            if file.path not in index.known({file.path: file}):
                index.remember([(file, FACTS)])
            index.add_words(file, [(0, 0, f"word {file.path}")])

    threads = [threading.Thread(target=fill, args=[index]) for index in (one, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert one.known({file.path: file for file in files}).keys() == {file.path for file in files}
    assert len(other.search("word", 100)) == 50
    one.forget_others(["1.md"])
    assert [hit.path for hit in other.search("word", 100)] == ["1.md"]
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
