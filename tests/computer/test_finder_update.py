"""Summaries that follow their documents: what is read, when, and how often."""

import json
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from mcp_types import ReadResourceResult, TextResourceContents

from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.finder.aggregator import FRESH_SECONDS, FinderAggregator
from a2c_smcp.computer.mcp_clients.connection_options import ConnectionOptions
from a2c_smcp.computer.mcp_clients.mcp_connection import MCPConnection
from a2c_smcp.computer.mcp_clients.model import parse_server
from a2c_smcp.computer.mcp_clients.resource_lists import ListedDocument
from a2c_smcp.computer.mcp_clients.server_state import ServerState
from a2c_smcp.computer.resources.shown import ResourceTimings
from a2c_smcp.computer.watching.events import DesktopChanged, FinderChanged
from a2c_smcp.errors import (
    BadRequestError,
    DocumentNotFoundError,
    ForbiddenError,
    InvalidDPEURIError,
    PageOutOfRangeError,
)
from tests.computer.fakes.computers import DEADLINE, FAST, Record, call, from_now_on, server, text
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


async def put(computer: Computer, uri: str, content: str, name: str = "a", **more: Any) -> None:
    await call(computer, f"{name}.set_resource", uri=uri, text=content, **more)


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


async def test_what_catalogues_say_of_themselves_is_passed_on_and_bounded() -> None:
    some = server("a", documents=2, resources=0, catalogue=1, note="Not served:\n 3 files.")
    endless = server("b", documents=2, resources=0, catalogue=1, note="x" * 9000)
    silent = server("c", documents=2, resources=0, catalogue=1)
    async with running(some, endless, silent) as (computer, _):
        await computer.get_finder()
        lines = computer.finder_note.splitlines()
        assert sorted(lines) == ["a: Not served: 3 files.", f"b: {'x' * 500}…"]
        await computer.stop_server("b")
        assert computer.finder_note == "a: Not served: 3 files."


async def test_what_a_catalogue_does_not_say_comes_from_the_documents() -> None:
    async with running(server("a", documents=30, resources=0, catalogue="titles")) as (computer, _):
        found, total = await computer.get_finder(file_type="pdf", keywords=["k7"])
        assert (total, [item["title"] for item in found]) == (3, [f"listed as {DOC.format(n)}" for n in (27, 17, 7)])
        first = found[0]
        assert (first["page_count"], first["file_uri"]) == (1, "file:///27")
        assert first["summary"].startswith("a summary of some length")


async def test_empty_fields_of_a_catalogue_hide_nothing_that_the_documents_say() -> None:
    async with running(server("a", documents=3, resources=0, catalogue="empty")) as (computer, _):
        found, _ = await computer.get_finder()
        assert "dpe://fake" in (await stats(computer))["reads"]
        plain = {"server": "a", "uri": DOC.format(2), **json.loads(document(2))}
        assert (len(found), found[0]) == (3, plain)


@both_eras
async def test_a_list_that_changed_without_other_uris_is_read_again_and_not_announced(era: str) -> None:
    async with running(server("a", documents=2, resources=0, protocol=era)) as (computer, record):
        assert await titles(computer) == ["document 1", "document 0"]
        await all_is_read(computer)
        await record.of(FinderChanged)
        before = len(record.now(FinderChanged))
        await put(computer, DOC.format(0), titled("another title"), silently=True)
        with anyio.fail_after(DEADLINE):
            while "another title" not in await titles(computer):
                pass
        assert len(record.now(FinderChanged)) == before


# --- servers that list something else than their documents


@both_eras
@pytest.mark.parametrize("catalogue", ["1", "titles"])
async def test_a_server_that_lists_only_its_catalogue_has_the_documents_that_this_tells_of(
    era: str, catalogue: str
) -> None:
    lists: dict[str, Any] = {
        "documents": 130,
        "resources": 0,
        "catalogue": catalogue,
        "lists": "catalogue",
        "protocol": era,
    }
    async with running(server("a", **lists)) as (computer, record):
        found, total = await computer.get_finder(limit=5000)
        assert (total, {item["uri"] for item in found}) == (130, {DOC.format(number) for number in range(130)})
        assert {item["page_count"] for item in found} == {1}
        await record.of(FinderChanged)  # the server started
        await put(computer, DOC.format("new"), json.dumps({"doc_ref": "new", "title": "a new one"}))
        await call(computer, "a.remove_resource", uri=DOC.format(7))
        title = "a new one" if catalogue == "1" else f"listed as {DOC.format('new')}"
        with anyio.fail_after(DEADLINE):
            while title not in (now := await titles(computer, limit=5000)) or len(now) != 130:
                pass
        assert len(record.now(FinderChanged)) == 1  # what it lists is the same


async def test_what_a_catalogue_tells_of_can_be_read() -> None:
    lists: dict[str, Any] = {"documents": 2, "resources": 0, "catalogue": 1, "lists": "catalogue"}
    async with running(server("a", **lists)) as (computer, _):
        assert (await computer.get_finder())[1] == 2
        [content] = (await computer.read_resource("dpe://fake")).contents
        assert isinstance(content, TextResourceContents)
        assert json.loads(content.text)["total_count"] == 2
        [content] = (await computer.read_resource(DOC.format(1))).contents
        assert isinstance(content, TextResourceContents)
        assert content.text == document(1)
        with pytest.raises(PageOutOfRangeError) as out_of_range:
            await computer.read_resource(f"{DOC.format(1)}/pages/9")
        assert out_of_range.value.page_count == 1
        with pytest.raises(DocumentNotFoundError):
            await computer.read_resource(f"{DOC.format('nothing')}/pages/9")


@both_eras
async def test_a_server_that_lists_only_pages_has_their_documents(era: str) -> None:
    async with running(server("a", documents=3, resources=0, lists="pages", protocol=era)) as (computer, record):
        found, total = await computer.get_finder()
        assert (total, [item["uri"] for item in found]) == (3, [DOC.format(number) for number in (2, 1, 0)])
        assert [item["title"] for item in found] == ["document 2", "document 1", "document 0"]
        [content] = (await computer.read_resource(DOC.format(0))).contents
        assert isinstance(content, TextResourceContents)
        assert content.text == document(0)
        await from_now_on(computer, record)
        await put(computer, DOC.format("x"), titled("new"))
        await record.of(FinderChanged)
        assert "new" in await titles(computer)
        await call(computer, "a.remove_resource", uri=DOC.format("x"))
        await record.of(FinderChanged, 2)
        assert await titles(computer) == ["document 2", "document 1", "document 0"]


async def test_a_resource_of_another_kind_is_forbidden_if_it_is_listed_and_no_uri_of_ours_otherwise() -> None:
    async with running(server("a", resources=0)) as (computer, _):
        await put(computer, "file:///listed", "secret")
        with anyio.fail_after(DEADLINE):
            while True:
                with pytest.raises((ForbiddenError, InvalidDPEURIError)) as refused:
                    await computer.read_resource("file:///listed")
                if refused.value.code == 403:
                    break
        with pytest.raises(InvalidDPEURIError) as invalid:
            await computer.read_resource("invalid://x")
        assert invalid.value.details == {"uri": "invalid://x"}
        assert invalid.value.message.startswith("Invalid DPE URI")


async def test_more_than_a_thousand_documents_are_never_given_at_once() -> None:
    async with running(server("a", documents=1050, resources=0, catalogue=1)) as (computer, _):
        with anyio.fail_after(DEADLINE):
            while (await computer.get_finder(limit=0))[1] < 1050:
                pass
        found, total = await computer.get_finder(limit=100_000)
        assert (len(found), total) == (1000, 1050)


async def test_a_server_without_a_catalogue_is_asked_for_one_once() -> None:
    async with running(server("a", documents=3, resources=0)) as (computer, record):
        assert len(await titles(computer)) == 3
        await from_now_on(computer, record)
        for number in range(3):
            await put(computer, DOC.format(number), document(number))
        await record.of(FinderChanged)
        await computer.get_finder()
        assert (await stats(computer))["reads"].count("dpe://fake") == 1


async def test_unreadable_documents_are_left_out_with_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    async with running(server("a", documents=2, resources=0)) as (computer, record):
        await from_now_on(computer, record)
        for name in ("x", "y"):
            await put(computer, DOC.format(name), "not JSON")
        assert await titles(computer) == ["document 1", "document 0"]
        await put(computer, DOC.format("x"), titled("mended"))
        await record.of(FinderChanged, 2)
        assert "mended" in await titles(computer)
    assert "documents could not be read; the first is dpe://fake/" in caplog.text


async def test_the_documents_of_a_server_go_with_it_and_are_read_again_when_it_is_back() -> None:
    async with running(server("a", documents=2, resources=0), server("b")) as (computer, record):
        await put(computer, DOC.format(0), titled("changed"))
        await from_now_on(computer, record)
        await call(computer, "a.crash")
        await record.reached("a", ServerState.RUNNING)
        assert await titles(computer) == ["document 1", "document 0"]
        await record.of(FinderChanged)
        record.events.clear()
        await computer.stop_server("a")
        assert await titles(computer) == []
        await record.of(FinderChanged)


async def test_an_answer_comes_in_time_while_documents_hang() -> None:
    servers = server("a", documents=1, resources=0), server("b", documents=2)
    async with running(*servers, resource_timings=ResourceTimings(list=30, subscribe=30, read=60)) as (computer, _):
        with anyio.fail_after(DEADLINE):
            while len(await titles(computer)) < 3:
                pass
        await put(computer, DOC.format("x"), "hang")
        started = time.monotonic()
        assert len(await titles(computer)) == 3
        assert 4 < time.monotonic() - started < 30


@pytest.mark.parametrize("page", [{"offset": -1}, {"limit": -1}])
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
        self.finder = FinderAggregator(clock=self.clock)
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
        connection = MCPConnection(parse_server(server("a", resources=0, **more)), ConnectionOptions(timings=FAST))
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


# --- with clients, as the seed has it


class Client:
    """A client of a program, with no more than the seed's sample uses."""

    def __init__(self, *uris: str, can_subscribe: bool = True) -> None:
        self.uris = list(uris)
        self._can_subscribe = can_subscribe
        self.reads: list[str] = []

    def has_capability(self, name: str) -> bool:
        return self._can_subscribe and name == "resources.subscribe"

    async def list_resources(self) -> list[ListedDocument]:
        return [ListedDocument(uri, uri) for uri in self.uris]

    async def read_resource(self, uri: str) -> ReadResourceResult:
        self.reads.append(uri)
        return ReadResourceResult(contents=[TextResourceContents(uri=uri, text=titled(f"title of {uri}"))])


async def test_an_aggregator_collects_the_documents_of_the_clients_that_it_is_given() -> None:
    clients = {"a": Client("dpe://h/1", "file:///x", "dpe://h/1"), "b": Client("dpe://h/2", can_subscribe=False)}
    finder = FinderAggregator(clients)
    try:
        found = await finder.collect_documents()
        assert [(item["server"], item["title"]) for item in found] == [("a", "title of dpe://h/1")]
        await finder.collect_documents()
        assert clients["a"].reads == ["dpe://h/1"]
        clients["a"].uris.append("dpe://h/3")
        clients["c"] = Client("dpe://i/1")
        assert [item["uri"] for item in await finder.collect_documents()] == ["dpe://h/1", "dpe://h/3", "dpe://i/1"]
        del clients["a"]
        assert [item["uri"] for item in await finder.collect_documents()] == ["dpe://i/1"]
    finally:
        await finder.aclose()


async def test_a_running_connection_is_such_a_client() -> None:
    async with shelf(documents=2) as it:
        assert it.connection.has_capability("resources.subscribe")
        assert not it.connection.has_capability("resources.nothing")
        finder = FinderAggregator({"a": it.connection})
        assert len(await finder.collect_documents(DEADLINE)) == 2
        await finder.aclose()


def test_the_uri_cache_says_whether_the_uris_have_changed() -> None:
    finder = FinderAggregator({})
    assert not finder.update_uri_cache(set())
    uris = {"dpe://h/1"}
    assert finder.update_uri_cache(uris)
    assert not finder.update_uri_cache({"dpe://h/1"})
    uris.add("dpe://h/2")
    assert finder.update_uri_cache(uris)
    assert finder.update_uri_cache(set())


async def test_however_often_all_is_to_be_read_one_reading_waits_for_the_one_that_runs() -> None:
    async with shelf(documents=1, read=0.1) as it:
        await it.titles()
        before = len(await it.reads())
        for _ in range(50):
            it.finder.mark_all("a")
            await anyio.lowlevel.checkpoint()
        await it.titles()
        assert len(await it.reads()) - before == 2


async def test_after_all_was_read_it_rests_for_as_long_as_that_took() -> None:
    async with shelf(documents=1) as it:
        await it.titles()
        read = it.connection.read_resource

        async def read_slowly(uri: str, timeout: float | None = None, meta: Any = None) -> ReadResourceResult:
            it.clock.now += 0.2
            return await read(uri, timeout)

        it.connection.read_resource = read_slowly  # type: ignore[method-assign]
        it.finder.mark_all("a")
        await it.titles()
        began = time.monotonic()
        it.finder.mark_all("a")
        await it.titles()
        assert time.monotonic() - began >= 0.19
        assert len(await it.reads()) == 3
