"""The whole server against mcp's own client: in memory, over a pipe and over HTTP, in both eras."""

import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.client import Client
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from a2c_smcp.errors import NotFoundError
from a2c_smcp.mcp_server import (
    Completions,
    ContextServer,
    Document,
    Listing,
    Page,
    ToolCall,
    UnknownResourceError,
    Window,
)
from a2c_smcp.mcp_server import elements as e
from tests.mcp_server.clients import (
    ERAS,
    LEGACY,
    MODERN,
    Listening,
    call,
    connected,
    data,
    eventually,
    http_shop,
    stdio,
    subscribe,
    text,
    unsubscribe,
    uris,
    watching,
)
from tests.mcp_server.fakes.shop import CATALOGUE, CLOCK, DOOR, HOST, STOCK, make_server

Step = Callable[[Client, Listening, str], Awaitable[None]]

both_eras = pytest.mark.parametrize("era", ERAS)


@pytest.fixture(scope="module")
def http_address() -> Iterator[str]:
    with http_shop() as address:
        yield address


# --- what any client does; each step leaves the shop as it was, but for windows and tools of its own


async def a_client_lists_reads_and_completes(client: Client, listening: Listening, era: str) -> None:
    capabilities = client.server_capabilities
    assert capabilities.resources is not None and capabilities.tools is not None
    assert capabilities.resources.subscribe and capabilities.resources.list_changed
    assert capabilities.tools.list_changed and capabilities.completions is not None
    assert {DOOR, CLOCK, STOCK} <= set(await uris(client))
    assert await text(client, DOOR) == "The door is open."
    assert (await data(client, CATALOGUE))["documents"][0]["doc_ref"] == "stock"
    assert (await data(client, f"{STOCK}/elements/fruit"))["page_index"] == 0
    shown = "# Fruit\n\n| kind | left |\n| --- | --- |\n| apples | 3 |\n| pears | 0 |"
    assert await text(client, f"{STOCK}/pages/0?format=markdown") == shown
    templates = (await client.list_resource_templates()).resource_templates
    assert [each.name for each in templates] == ["document", "page", "element"]
    template = types.ResourceTemplateReference(type="ref/resource", uri=templates[1].uri_template)
    found = await client.complete(template, {"name": "page_index", "value": ""}, {"doc_ref": "stock"})
    assert found.completion.values == ["0", "1"] and found.completion.has_more is False
    prompt = types.PromptReference(type="ref/prompt", name="x")
    assert (await client.complete(prompt, {"name": "x", "value": ""})).completion.values == []


async def a_client_hears_of_what_it_watches(client: Client, listening: Listening, era: str) -> None:
    page = f"{STOCK}/pages/1?format=text"
    async with watching(client, listening, DOOR, page, CATALOGUE):
        await call(client, "show", path="door", text="shut", priority=10)
        await listening.of(DOOR)
        assert await text(client, DOOR) == "shut"
        await call(client, "show", path=f"{era}/new", text="new")
        await listening.of("resources")
        assert f"window://{HOST}/{era}/new" in await uris(client)
        await call(client, "close", path=f"{era}/new")
        await listening.of("resources")
        await call(client, "put", doc_ref="stock", title=f"Stock {era}")
        await listening.of("resources", page, CATALOGUE)  # whoever reads a page hears of its document
        await call(client, "put", doc_ref=f"{era}-memo", title="Memo")
        await listening.of("resources", CATALOGUE)
        await call(client, "remove", doc_ref=f"{era}-memo")
        await listening.of("resources")
        await call(client, "put", doc_ref="stock", title="Stock")
        await call(client, "learn", name=f"a-{era}-{id(client)}")
        await listening.of("tools")
    listening.heard.clear()
    await call(client, "show", path="door", text="The door is open.", priority=10)
    async with watching(client, listening):
        await call(client, "learn", name=f"b-{era}-{id(client)}")
        await listening.of("tools")
    assert DOOR not in listening.heard  # it no longer watched


async def tools_report_progress_and_are_cancelled(client: Client, listening: Listening, era: str) -> None:
    seen: list[tuple[float, float | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total))

    assert await call(client, "count", steps=1) == "counted"
    for tool in ("count", "count_in_thread"):
        seen.clear()
        result = await client.call_tool(tool, {"steps": 5}, progress_callback=note)
        if isinstance(client.server, Server) and era == MODERN:
            pass  # in one process mcp sends no token to ask with
        else:
            assert result.content == [types.TextContent(type="text", text="counted aloud")]
        await eventually(_true(lambda: len(seen) == 5))
        assert seen == [(step, 5) for step in range(1, 6)]
    waiting: list[tuple[str, dict[str, Any]]] = [("wait", {"seconds": 600}), ("work", {})]
    for tool, arguments in waiting:
        started, cancelled = [int(word) for word in (await text(client, CLOCK)).split() if word.isdigit()]

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, tool, arguments)
            await eventually(_shows(client, f"{started + 1} started, {cancelled} cancelled"))
            tasks.cancel_scope.cancel()
        await eventually(_shows(client, f"{started + 1} started, {cancelled + 1} cancelled"))
    assert await call(client, "wait", seconds=0) == "waited"


async def tools_answer_as_they_are_typed(client: Client, listening: Listening, era: str) -> None:
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert tools["add"].title == "A sum"
    assert tools["show"].description is not None and tools["show"].description.startswith("Opens a window")
    assert tools["count"].input_schema["required"] == ["steps"]  # and no `call`
    assert tools["show"].output_schema is None and tools["add"].output_schema is not None
    result = await client.call_tool("add", {"a": 2})
    assert result.structured_content == {"sum": 3}

    async def failure(tool: str, **arguments: Any) -> tuple[str, Any]:
        result = await client.call_tool(tool, arguments)
        assert result.is_error and isinstance(result.content[0], types.TextContent)
        return result.content[0].text, result.meta

    said, _meta = await failure("add", a="x")
    assert said.startswith("The arguments do not fit the tool add: a: Input should be a valid integer")
    said, _meta = await failure("show", path="x", text="y", priority=200)
    assert "less than or equal to 100" in said
    said, meta = await failure("refuse")
    assert said == "There are no apples." and meta["error_code"] == 4003 and meta["left"] == 0
    said, _meta = await failure("crash")
    assert said == "The tool crash failed; the log of its server says why."
    with pytest.raises(MCPError, match="Unknown tool: nothing"):
        await client.call_tool("nothing", {})


async def what_is_not_there_has_its_code(client: Client, listening: Listening, era: str) -> None:
    not_found = -32602 if era == MODERN else -32002
    wrong: dict[str, tuple[int, Any]] = {
        f"window://{HOST}/nothing": (not_found, {"uri": f"window://{HOST}/nothing"}),
        "file:///etc/passwd": (not_found, {"uri": "file:///etc/passwd"}),
        f"{CATALOGUE}/nothing": (4201, {"doc_ref": "nothing"}),
        f"{STOCK}/pages/7": (4202, {"page_index": 7, "page_count": 2}),
        f"{STOCK}/elements/x": (4203, {"element_id": "x"}),
        f"{STOCK}?limit=0": (4204, {"uri": f"{STOCK}?limit=0"}),
    }
    for uri, (code, details) in wrong.items():
        with pytest.raises(MCPError) as caught:
            await client.read_resource(uri)
        assert (caught.value.code, caught.value.data) == (code, details)
    for cursor in ("x", "9.9"):
        with pytest.raises(MCPError) as caught:
            await client.list_resources(cursor=cursor)
        assert caught.value.code == -32602
    with pytest.raises(MCPError, match="did not give out this cursor"):
        await client.list_tools(cursor="x")


STEPS = (
    a_client_lists_reads_and_completes,
    a_client_hears_of_what_it_watches,
    tools_report_progress_and_are_cancelled,
    tools_answer_as_they_are_typed,
    what_is_not_there_has_its_code,
)


@both_eras
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
async def test_in_memory(step: Step, era: str) -> None:
    async with connected(make_server().mcp, era) as (client, listening):
        await step(client, listening, era)


@both_eras
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
async def test_over_http(step: Step, era: str, http_address: str) -> None:
    async with connected(http_address, era) as (client, listening):
        await step(client, listening, era)


@both_eras
async def test_over_a_pipe(era: str) -> None:
    """All in one session: a process takes a second or two to start."""
    async with connected(stdio(), era) as (client, listening):
        for step in STEPS:
            await step(client, listening, era)


async def test_one_of_two_sessions_hears_of_what_it_subscribed_to(http_address: str) -> None:
    async with (
        connected(http_address, LEGACY) as (client, listening),
        connected(http_address, LEGACY) as (other, silent),
    ):
        await subscribe(client, DOOR)
        await call(other, "show", path="door", text="one", priority=10)
        await listening.of(DOOR)
        await unsubscribe(client, DOOR)
        await call(other, "show", path="door", text="The door is open.", priority=10)
        await call(other, "show", path="end", text="x")
        await listening.of("resources")
        await silent.of("resources")
        assert DOOR not in [*listening.heard, *silent.heard]


# --- sources, tables and rooms of one's own


class Broken:
    """A source that fails, as sources do."""

    async def catalogue(self, offset: int, limit: int) -> tuple[Sequence[Document], int]:
        raise OSError("the folder of the server's machine")

    async def document(self, doc_ref: str) -> Document | None:
        if doc_ref == "later":
            raise NotFoundError("not unpacked yet", {"again": "in a second"})
        raise OSError("a path of the server's machine")

    async def page(self, doc_ref: str, page_index: int) -> Page:
        raise AssertionError

    async def element(self, doc_ref: str, element_id: str) -> tuple[int, e.Element] | None:
        raise AssertionError


async def test_what_fails_inside_is_for_the_log_and_what_is_said_is_passed_on(caplog: pytest.LogCaptureFixture) -> None:
    server = ContextServer("s", host="h", documents=Broken())
    async with connected(server.mcp, LEGACY) as (client, _):
        with pytest.raises(MCPError) as caught:
            await client.read_resource("dpe://h/x")
        assert caught.value.code == -32603 and "path" not in caught.value.message
        with pytest.raises(MCPError) as caught:
            await client.read_resource("dpe://h/later")
        assert (caught.value.code, caught.value.data) == (404, {"again": "in a second"})
        template = types.ResourceTemplateReference(type="ref/resource", uri="dpe://h/{doc_ref}")
        for ask in (
            lambda: client.list_resources(),
            lambda: client.list_resource_templates(),
            lambda: client.complete(template, {"name": "doc_ref", "value": ""}),
        ):
            with pytest.raises(MCPError) as caught:
                await ask()
            assert caught.value.code == -32603 and "folder" not in caught.value.message
    assert "a path of the server's machine" in caplog.text and "the folder of the server's machine" in caplog.text
    with pytest.raises(TypeError, match="come from a source of its own"):
        _ = server.documents


class Table:
    """Somebody else's tools."""

    def __init__(self) -> None:
        self.names = ["far", "near"]

    async def list_tools(self, context: ServerRequestContext[Any, Any]) -> Sequence[types.Tool]:
        return [types.Tool(name=name, input_schema={"type": "object"}) for name in self.names]

    async def call_tool(self, call: ToolCall) -> types.CallToolResult:
        await call.progress(1, 2, "half")
        content: list[types.ContentBlock] = [types.TextContent(type="text", text=f"{call.name} {dict(call.arguments)}")]
        return types.CallToolResult(content=content, structured_content={"also": "this"}, _meta={"x": 1})


@both_eras
async def test_a_table_of_tools_is_passed_through_beside_functions(era: str, caplog: pytest.LogCaptureFixture) -> None:
    table = Table()
    server = ContextServer("s", host="h", tools=table, page_size=2)

    @server.tool
    async def near() -> str:
        return "mine"

    async with connected(server.mcp, era) as (client, listening), watching(client, listening):

        async def names() -> list[list[str]]:
            pages, cursor = [], None
            while True:
                page = await client.list_tools(cursor=cursor)
                pages.append([tool.name for tool in page.tools])
                if (cursor := page.next_cursor) is None:
                    return pages

        assert await names() == [["near", "far"]]
        assert "the tool 'near' of the table is hidden" in caplog.text
        assert await call(client, "near") == "mine"
        seen: list[str | None] = []

        async def note(progress: float, total: float | None, message: str | None) -> None:
            seen.append(message)

        result = await client.call_tool("far", {"a": [1]}, progress_callback=note)
        assert result.content == [types.TextContent(type="text", text="far {'a': [1]}")]
        assert result.structured_content == {"also": "this"} and (result.meta or {})["x"] == 1
        assert seen == ["half"]
        table.names.append("new")
        server.tools.changed()
        await listening.of("tools")
        assert await names() == [["near", "far"], ["new"]]
        server.tools.remove("near")
        await listening.of("tools")
        assert await names() == [["far", "near"], ["new"]]


class Far:
    """Resources of another scheme, as somebody passes them through."""

    def owns(self, uri: str) -> bool:
        return uri.startswith("far://")

    def topic(self, uri: str) -> str:
        return uri.partition("?")[0]

    async def listing(self, offset: int, limit: int) -> Listing:
        return Listing([types.Resource(uri="far://pc/a", name="a")][offset : offset + limit])

    async def read(self, uri: str) -> Sequence[types.TextResourceContents]:
        if uri.partition("?")[0] != "far://pc/a":
            raise UnknownResourceError(uri)
        return [types.TextResourceContents(uri=uri, text="from afar")]

    async def templates(self) -> Sequence[types.ResourceTemplate]:
        return [types.ResourceTemplate(name="far", uri_template="far://{computer}/{name}")]

    async def complete(self, template: str, name: str, typed: str, known: Mapping[str, str]) -> Completions:
        return Completions([f"{typed}c"], more=True)


@both_eras
async def test_a_room_for_resources_of_another_kind(era: str) -> None:
    server = ContextServer("s", host="h", windows={"w": Window("x")}, resources=[Far()])
    async with connected(server.mcp, era) as (client, listening):
        assert await uris(client) == ["far://pc/a", "window://h/w"]  # rooms of one's own come first
        assert await text(client, "far://pc/a?x=1") == "from afar"
        with pytest.raises(MCPError, match="Unknown resource: far://pc/b"):
            await client.read_resource("far://pc/b")
        [template] = (await client.list_resource_templates()).resource_templates
        reference = types.ResourceTemplateReference(type="ref/resource", uri=template.uri_template)
        found = (await client.complete(reference, {"name": "computer", "value": "p"})).completion
        assert (found.values, found.has_more) == (["pc"], True)
        async with watching(client, listening, "far://pc/a?x=1"):
            server.changes.updated("far://pc/a")
            server.changes.resources_changed()
            await listening.of("far://pc/a?x=1", "resources")


@pytest.mark.parametrize(
    ("function", "options", "sentence"),
    [
        (lambda: "x", {}, "not '<lambda>'"),
        (lambda: "x", {"name": "a b"}, "not 'a b'"),
        (lambda *args: "x", {"name": "f"}, "arguments come by name"),
        (lambda **rest: "x", {"name": "f"}, "arguments come by name"),
        (lambda x, /: "x", {"name": "f"}, "arguments come by name"),
    ],
)
def test_a_function_that_is_no_tool_is_refused(function: Any, options: Any, sentence: str) -> None:
    server = ContextServer("s", host="h")
    with pytest.raises((ValueError, TypeError), match=sentence):
        server.tool(**options)(function)
    assert "f" not in server.tools


def test_two_tools_alike_are_refused() -> None:
    server = ContextServer("s", host="h")
    server.tool(name="f")(lambda: "x")
    with pytest.raises(ValueError, match="there is a tool 'f' already"):
        server.tool(name="f")(lambda: "y")


async def test_a_lifespan_surrounds_the_serving() -> None:
    steps: list[str] = []

    @asynccontextmanager
    async def lifespan(server: ContextServer) -> AsyncIterator[None]:
        steps.append(f"begin {server.name}")
        yield
        steps.append("end")

    server = ContextServer("s", host="h", lifespan=lifespan)
    async with Client(server.mcp, mode=LEGACY) as client:
        await client.list_tools()
        steps.append("served")
    assert steps == ["begin s", "served", "end"]


# --- many, slow and vanished ones


@both_eras
async def test_ten_thousand_documents_and_a_thousand_windows(era: str) -> None:
    server = make_server()
    async with connected(server.mcp, era) as (client, listening):
        async with watching(client, listening):
            await call(client, "fill", windows=1000, documents=10_000)
            await listening.of("resources")
            await anyio.sleep(0.05)
            assert len(listening.heard) <= 2  # not eleven thousand
        found = await uris(client)
        assert len(found) == len(set(found)) == 11_003
        watched = [uri for uri in found if uri.startswith("window:")]
        async with watching(client, listening, *watched):
            await call(client, "fill", windows=1000)
            assert listening.heard == []  # nothing is different
            for number in (0, 500, 999):
                await call(client, "show", path=f"w/{number}", text="other")
                await listening.of(f"window://{HOST}/w/{number}")
        assert (await data(client, f"{CATALOGUE}?offset=9990&limit=100"))["total_count"] == 10_001
        template = types.ResourceTemplateReference(type="ref/resource", uri=f"{CATALOGUE}/{{doc_ref}}")
        refs = (await client.complete(template, {"name": "doc_ref", "value": "d999"})).completion
        assert refs.values == ["d999", *(f"d999{number}" for number in range(10))]


async def test_nothing_is_kept_of_a_client_that_has_gone(caplog: pytest.LogCaptureFixture) -> None:
    server = make_server()
    for era in ERAS:
        for _ in range(3):
            async with connected(server.mcp, era) as (client, listening), watching(client, listening, DOOR):
                assert len(server.changes) == 1
        await eventually(_true(lambda: len(server.changes) == 0))
    server.windows["door"] = Window("alone")
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


@both_eras
async def test_a_limit_on_clients_and_subscriptions_is_an_error_and_not_the_end(era: str) -> None:
    server = ContextServer("s", host="h", max_subscriptions=2)
    async with connected(server.mcp, era) as (client, listening):
        wanted = [f"window://h/{number}" for number in range(3)]
        with pytest.raises((MCPError, ExceptionGroup)) as caught:
            async with watching(client, listening, *wanted):
                pass
        assert "may subscribe to 2 resources" in json.dumps(str(caught.getrepr(style="short")))
        async with watching(client, listening, *wanted[:1]):
            server.windows["0"] = Window("x")
            await listening.of("resources")


async def test_a_client_that_reads_nothing_holds_up_no_other() -> None:
    """Two clients of one server: one whose pipe is never read, and one that hears of every change."""
    server = make_server()
    send, receive = anyio.create_memory_object_stream[Any](0)
    out_send, out_receive = anyio.create_memory_object_stream[Any](0)
    from mcp.shared.message import SessionMessage

    async def request(number: int | None, method: str, **params: Any) -> None:
        fields: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
        message = fields if number is None else fields | {"id": number}
        await send.send(SessionMessage(types.jsonrpc_message_adapter.validate_python(message)))

    async with anyio.create_task_group() as tasks, send, out_receive:
        tasks.start_soon(server.mcp.run, receive, out_send, server.mcp.create_initialization_options())
        about = {"name": "deaf", "version": "1"}
        await request(1, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=about)
        await out_receive.receive()
        await request(None, "notifications/initialized")
        await request(2, "resources/subscribe", uri=DOOR)
        await out_receive.receive()
        async with connected(server.mcp, MODERN) as (client, listening), watching(client, listening, DOOR):
            for number in range(200):
                server.windows["door"] = Window(f"text {number}", priority=10)
                server.windows[f"new/{number}"] = Window("x")
                await listening.of(DOOR, "resources")
        late = [(await out_receive.receive()).message.method for _ in range(3)]
        assert late.count("notifications/resources/updated") >= 1
        with anyio.move_on_after(0.1) as waited:
            await out_receive.receive()
        assert waited.cancelled_caught  # all the rest was one and the same
        tasks.cancel_scope.cancel()


def _shows(client: Client, counts: str) -> Callable[[], Awaitable[bool]]:
    async def ask() -> bool:
        return await text(client, CLOCK) == counts

    return ask


def _true(happened: Callable[[], bool]) -> Callable[[], Awaitable[bool]]:
    async def ask() -> bool:
        return happened()

    return ask
