"""What is taken out of a server's list of resources, and what is only counted."""

from typing import Any

import pytest
from mcp_types import Resource

from a2c_smcp.computer.mcp_clients import resource_lists
from a2c_smcp.computer.mcp_clients.resource_lists import ListedDocument, Pages, ResourceList
from a2c_smcp.computer.utils.pool import for_each, slices
from tests.computer.fakes.computers import listed, running, server
from tests.computer.fakes.processes import eventually


def item(uri: Any, **more: Any) -> dict[str, Any]:
    return {"uri": uri, "name": "n", **more}


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource_lists, "_MOST", {"windows": 2, "documents": 3})


async def test_windows_and_documents_are_taken_in_order_and_nothing_else() -> None:
    listed = ResourceList()
    await listed.add([item("file:///x"), item("dpe://h/1", description="d", size=4), item("window://h", title="t")])
    await listed.add([item("http://h"), item("dpe://not/valid/at/all")])
    assert listed.resources == [
        ListedDocument("dpe://h/1", "n", "d"),
        Resource(uri="window://h", name="n", title="t"),
        ListedDocument("dpe://not/valid/at/all", "n"),
    ]
    assert listed.ignored is None
    assert not listed.is_full


async def test_what_is_over_the_bounds_is_counted(few: None) -> None:
    listed = ResourceList()
    await listed.add([item(f"window://h/{n}") for n in range(4)])
    assert not listed.is_full
    await listed.add([item(f"dpe://h/{n}") for n in range(8)])
    assert [resource.uri for resource in listed.resources] == [
        *("window://h/0", "window://h/1"),
        *("dpe://h/0", "dpe://h/1", "dpe://h/2"),
    ]
    assert listed.ignored == "2 windows over the first 2 and 5 documents over the first 3"
    assert listed.is_full


@pytest.mark.parametrize(
    "wrong",
    [
        *(None, 1, [], {}, item(5), item(None)),
        *({"uri": "window://h"}, {"uri": "dpe://h/d"}, item("dpe://h/d", description=7), item("window://h", size="x")),
    ],
)
async def test_what_is_no_resource_is_counted_and_spoils_nothing(wrong: Any) -> None:
    listed = ResourceList()
    await listed.add([wrong, item("window://h")])
    assert listed.resources == [Resource(uri="window://h", name="n")]
    assert listed.ignored == "1 items that are not valid MCP resources"


def test_a_page_is_taken_out_of_its_answer_and_found_again() -> None:
    pages = Pages()
    taken = pages.take_out("resources/list", {"resources": [1, 2], "nextCursor": "c", "_meta": {"k": "v"}})
    assert taken["resources"] == []
    assert (taken["nextCursor"], taken["_meta"]["k"]) == ("c", "v")
    assert pages.of(taken["_meta"]) == [1, 2]
    assert pages.of(taken["_meta"]) == []
    assert pages.of(None) == []


def test_other_answers_stay_as_they_are_and_pages_that_nobody_asks_for_are_forgotten() -> None:
    pages = Pages()
    other = {"tools": [], "resources": "none"}
    assert pages.take_out("resources/list", other) is other
    assert pages.take_out("tools/call", {"resources": [1]}) == {"resources": [1]}
    prompts = pages.take_out("prompts/list", {"prompts": [1]})
    assert (prompts["prompts"], pages.of(prompts["_meta"])) == ([], [1])
    first, *_ = [pages.take_out("resources/list", {"resources": [n]})["_meta"] for n in range(6)]
    assert pages.of(first) == []
    assert len(pages._waiting) == 4


async def test_slices_are_whole_and_work_is_done_by_a_few() -> None:
    assert [piece async for piece in slices(range(250))] == [range(100), range(100, 200), range(200, 250)]
    assert [piece async for piece in slices(range(0))] == []
    done: list[int] = []

    async def work(number: int) -> None:
        done.append(number)

    await for_each(range(50), work, 3)
    assert sorted(done) == list(range(50))


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
async def test_what_is_ignored_is_logged_once_and_has_a_place_in_the_statuses(
    few: None, era: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(server("a", protocol=era, resources=5, documents=4, page=3)) as (computer, _):
        said = "3 windows over the first 2 and 1 documents over the first 3"
        await eventually(lambda: computer.statuses[0].ignored == said, 20)
        await listed(computer)
        assert len(await computer.get_desktop()) == 2
        documents = computer._resources._finder._shelves
        await eventually(lambda: "a" in documents and bool(documents["a"].documents) and not documents["a"].warming)
        assert (await computer.get_finder())[1] == 3
        await computer._manager.book.connections["a"].list_resources()
        computer._resources._refresh_soon(computer._resources._shelves["a"])
        await eventually(lambda: computer._resources._shelves["a"].refresher.running is None, 20)
    assert caplog.text.count(said) == 1


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
async def test_a_long_list_is_subscribed_to_as_a_whole(era: str) -> None:
    async with running(server("a", protocol=era, resources=300)) as (computer, _):
        connection = computer._manager.book.connections["a"]
        await listed(computer)
        await connection.subscribed()
        assert len(await computer.get_desktop()) == 300
        stats = await computer.execute_tool("1", "a.stats", {}, 20)
        assert stats.content[0].text.count("window://fake/") >= 600  # type: ignore[union-attr]  # read and watched
