"""Summaries that follow their documents: what is read, when, and how often."""

import json
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio
import pytest

from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.events import DesktopChanged, FinderChanged
from a2c_smcp.computer.finder import aggregator
from a2c_smcp.computer.finder.aggregator import FRESH_SECONDS, FinderAggregator
from a2c_smcp.computer.mcp_clients.mcp_connection import MCPConnection
from a2c_smcp.computer.mcp_clients.model import parse_server
from a2c_smcp.computer.mcp_clients.resource_lists import ListedDocument
from a2c_smcp.computer.mcp_clients.server_state import ServerState
from a2c_smcp.computer.shown_resources import ResourceTimings
from a2c_smcp.errors import BadRequestError
from tests.computer.fakes.computers import DEADLINE, FAST, Record, call, server, text
from tests.computer.fakes.computers import running as running_within
from tests.computer.fakes.misbehaving import document
from tests.computer.fakes.processes import eventually, nothing_left_over

#: However late a server lists its documents, takes a subscription or answers.
PATIENT = ResourceTimings(list=30, subscribe=30, warm=30)

both_eras = pytest.mark.parametrize("era", ["legacy", "2026-07-28"])

DOC = "dpe://fake/{}"


def running(*servers: dict[str, Any], **options: Any) -> AbstractAsyncContextManager[tuple[Computer, Record]]:
    return running_within(*servers, **{"resource_timings": PATIENT, **options})


def titled(title: str) -> str:
    return json.dumps({"title": title})


async def stats(computer: Computer, name: str = "a") -> Any:
    return json.loads(text(await call(computer, f"{name}.stats")))


async def put(computer: Computer, uri: str, content: str, name: str = "a") -> None:
    await call(computer, f"{name}.set_resource", uri=uri, text=content)


async def titles(computer: Computer, **more: Any) -> list[str]:
    documents, _ = await computer.get_finder(**more)
    return [found["title"] for found in documents]


# --- on a computer


@both_eras
async def test_a_document_that_comes_changes_and_goes_is_announced_and_current(era: str) -> None:
    async with running(server("a", documents=2, resources=0, protocol=era)) as (computer, record):
        assert await titles(computer) == ["document 1", "document 0"]
        assert len(record.now(FinderChanged)) == 1  # the server started
        await put(computer, DOC.format("x"), titled("one"))
        await record.of(FinderChanged, 2)
        assert await titles(computer, keywords=["one"]) == ["one"]
        await put(computer, DOC.format("x"), titled("two"))
        await record.of(FinderChanged, 3)
        assert await titles(computer, keywords=["two"]) == ["two"]
        await call(computer, "a.remove_resource", uri=DOC.format("x"))
        await record.of(FinderChanged, 4)
        assert await titles(computer) == ["document 1", "document 0"]
        assert record.now(DesktopChanged) == []


async def all_is_read(computer: Computer) -> None:
    """All is subscribed to, too: what was read before that, because subscribing took long, is read again."""
    resources = computer._resources
    await eventually(lambda: not resources._tasks and not resources._finder._tasks, 180)


async def test_a_single_update_reads_one_document() -> None:
    async with running(server("a", documents=300, resources=0)) as (computer, record):
        assert (await computer.get_finder())[1] == 300
        await all_is_read(computer)
        before = len((await stats(computer))["reads"])
        record.events.clear()
        await put(computer, DOC.format(7), titled("changed"))
        await record.of(FinderChanged)
        assert await titles(computer, keywords=["changed"]) == ["changed"]
        assert (await stats(computer))["reads"][before:] == [DOC.format(7)]
        await computer.get_finder()
        assert len((await stats(computer))["reads"]) == before + 1


async def test_a_catalogue_is_read_in_pages_where_there_is_one() -> None:
    async with running(server("a", documents=450, resources=0, catalogue=1)) as (computer, _):
        assert (await computer.get_finder())[1] == 450
        assert sorted((await stats(computer))["reads"]) == [
            "dpe://fake",
            *(f"dpe://fake?offset={offset}&limit=100" for offset in (120, 20, 220, 320, 420)),
        ]


async def test_what_a_catalogue_does_not_say_comes_from_the_documents() -> None:
    async with running(server("a", documents=30, resources=0, catalogue="titles")) as (computer, _):
        found, total = await computer.get_finder(file_type="pdf", keywords=["k7"])
        assert (total, [item["title"] for item in found]) == (3, [f"listed as {DOC.format(n)}" for n in (27, 17, 7)])
        first = found[0]
        assert (first["page_count"], first["file_uri"]) == (1, "file:///27")
        assert first["summary"].startswith("a summary of some length")


async def test_a_server_without_a_catalogue_is_asked_for_one_once() -> None:
    async with running(server("a", documents=3, resources=0)) as (computer, record):
        assert len(await titles(computer)) == 3
        record.events.clear()
        for number in range(3):
            await put(computer, DOC.format(number), document(number))
        await record.of(FinderChanged)
        await computer.get_finder()
        assert (await stats(computer))["reads"].count("dpe://fake") == 1


async def test_unreadable_documents_are_left_out_with_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    async with running(server("a", documents=2, resources=0)) as (computer, record):
        record.events.clear()
        for name in ("x", "y"):
            await put(computer, DOC.format(name), "not JSON")
        assert await titles(computer) == ["document 1", "document 0"]
        await put(computer, DOC.format("x"), titled("mended"))
        await record.of(FinderChanged, 2)
        assert "mended" in await titles(computer)
    assert "documents could not be read, the first: dpe://fake/" in caplog.text


async def test_the_documents_of_a_server_go_with_it_and_are_read_again_when_it_is_back() -> None:
    async with running(server("a", documents=2, resources=0), server("b")) as (computer, record):
        await put(computer, DOC.format(0), titled("changed"))
        record.events.clear()
        await call(computer, "a.crash")
        await record.reached("a", ServerState.RUNNING)
        assert await titles(computer) == ["document 1", "document 0"]
        await record.of(FinderChanged)
        record.events.clear()
        await computer.stop_server("a")
        assert await titles(computer) == []
        await record.of(FinderChanged)


async def test_an_answer_comes_in_time_while_documents_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aggregator, "_READ_SECONDS", 60)
    servers = server("a", documents=1, resources=0), server("b", documents=2)
    async with running(*servers, resource_timings=ResourceTimings(list=30, subscribe=30)) as (computer, _):
        with anyio.fail_after(DEADLINE):
            while len(await titles(computer)) < 3:
                pass
        await put(computer, DOC.format("x"), "hang")
        started = time.monotonic()
        assert len(await titles(computer)) == 3
        assert 4 < time.monotonic() - started < 30


@pytest.mark.parametrize("page", [{"offset": -1}, {"limit": -1}, {"limit": 1001}])
async def test_an_impossible_page_is_refused(page: dict[str, Any]) -> None:
    with pytest.raises(BadRequestError):
        await Computer("pc").get_finder(**page)


@pytest.mark.timeout(400)
@both_eras
async def test_ten_thousand_documents_are_listed_subscribed_and_kept(era: str) -> None:
    servers = [
        server(f"s{number}", documents=2500, resources=0, catalogue=number % 2, page=500, protocol=era)
        for number in range(4)
    ]
    async with running(*servers, resource_timings=ResourceTimings()) as (computer, record):
        now = time.monotonic()
        computer._resources._finder._clock = lambda: now  # nothing gets old, however long all of this takes
        with anyio.fail_after(180):
            while (await computer.get_finder())[1] < 10_000:
                pass
        page, total = await computer.get_finder(["document 77"], "pdf", 10, 20)
        assert (len(page), total) == (14, 4 * 6)
        await all_is_read(computer)
        assert len((await stats(computer, "s1"))["watched"]) == 2500
        assert min([await _timed(computer) for _ in range(5)]) < 0.25  # the benchmark says 50 ms
        record.events.clear()
        before = len((await stats(computer, "s1"))["reads"])
        await put(computer, DOC.format(2499), titled("the last one"), "s1")
        await record.of(FinderChanged)
        assert await titles(computer, keywords=["the last one"]) == ["the last one"]
        assert (await stats(computer, "s1"))["reads"][before:] == [DOC.format(2499)]


async def _timed(computer: Computer) -> float:
    started = time.process_time()
    await computer.get_finder(["document 77", "no such thing"], offset=10)
    return time.process_time() - started


# --- the aggregator alone


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Shelf:
    """An aggregator with one server, and a clock to turn."""

    def __init__(self, connection: MCPConnection) -> None:
        self.clock = Clock()
        self.finder = FinderAggregator(self.clock)
        self.connection = connection

    async def relist(self) -> None:
        await self.finder.relist("a", self.connection, await self.connection.list_resources())

    async def reads(self) -> list[str]:
        result = await self.connection.call_tool("stats", {}, DEADLINE)
        found: list[str] = json.loads(text(result))["reads"]
        return found

    async def put(self, uri: str, content: str) -> None:
        await self.connection.call_tool("set_resource", {"uri": uri, "text": content}, DEADLINE)

    async def titles(self) -> list[str]:
        return [found["title"] for found in await self.finder.collect_documents(DEADLINE)]


@asynccontextmanager
async def shelf(**more: Any) -> AsyncIterator[Shelf]:
    with nothing_left_over():
        connection = MCPConnection(parse_server(server("a", resources=0, **more)), timings=FAST)
        await connection.connect()
        it = Shelf(connection)
        try:
            await it.relist()
            yield it
        finally:
            await it.finder.aclose()
            await connection.disconnect()


async def test_summaries_are_read_once_and_again_in_the_background_when_they_are_old() -> None:
    async with shelf(documents=1) as it:
        assert await it.titles() == ["document 0"]
        await it.put(DOC.format(0), titled("unsaid"))
        it.clock.now += FRESH_SECONDS - 1
        assert await it.titles() == ["document 0"]
        assert await it.reads() == [DOC.format(0)]
        it.clock.now += 2
        assert await it.titles() == ["document 0"]
        with anyio.fail_after(DEADLINE):
            while len(await it.reads()) < 2:
                pass
        assert await it.titles() == ["unsaid"]
        assert await it.reads() == [DOC.format(0)] * 2


async def test_a_document_that_changes_while_it_is_read_is_read_again() -> None:
    async with shelf(documents=1, read=0.1) as it:
        with anyio.fail_after(DEADLINE):
            while not await it.reads():
                pass
        await it.put(DOC.format(0), titled("newer"))
        it.finder.mark("a", [DOC.format(0)])
        assert await it.titles() == ["newer"]
        assert await it.reads() == [DOC.format(0)] * 2


async def test_marks_of_one_moment_are_read_together_and_what_is_not_listed_is_not_read() -> None:
    async with shelf(documents=250, catalogue=1) as it:
        assert len(await it.titles()) == 250
        before = len(await it.reads())
        for number in range(250):
            it.finder.mark("a", [DOC.format(number), DOC.format("nothing")])
        await it.titles()
        assert len(await it.reads()) - before == 4


async def test_a_document_that_cannot_be_read_is_known_by_what_the_catalogue_says() -> None:
    async with shelf(documents=3, catalogue="titles") as it:
        for number in range(2):
            await it.put(DOC.format(number), "not JSON")
        it.finder.mark("a", map(DOC.format, range(3)))
        documents = await it.finder.collect_documents(DEADLINE)
        assert [(found["title"], found["page_count"]) for found in documents] == [
            *((f"listed as {DOC.format(number)}", 0) for number in range(2)),
            (f"listed as {DOC.format(2)}", 1),
        ]


async def test_a_new_connection_is_read_anew() -> None:
    async with shelf(documents=2) as it:
        await it.titles()
        await it.relist()
        assert len(await it.reads()) == 3  # a catalogue was asked for
        it.finder.drop("a")
        assert await it.titles() == []
        await it.relist()
        assert len(await it.titles()) == 2
        assert len(await it.reads()) == 6


async def test_what_a_server_lists_otherwise_is_read_again() -> None:
    async with shelf(documents=1) as it:
        await it.titles()
        [listed] = await it.connection.list_resources()
        await it.finder.relist("a", it.connection, [ListedDocument(listed.uri, listed.name, "now described")])
        await it.titles()
        assert len(await it.reads()) == 2
