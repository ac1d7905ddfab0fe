"""The core scenarios over real sockets: both agents, both servers, the same answers."""

import threading
from typing import Any

import anyio
import pytest

from a2c_smcp.agent import AgentHandler, Deadlines, DocumentPicture
from a2c_smcp.errors import (
    BadRequestError,
    ConnectionLostError,
    DocumentNotFoundError,
    InvalidDPEURIError,
    NotFoundError,
    NotInRoomError,
    PayloadTooLargeError,
    RequestTimeoutError,
    RoomFullError,
    SMCPError,
    ToolNotFoundError,
)
from a2c_smcp.smcp import (
    ENTER_OFFICE_NOTIFICATION,
    GET_CONFIG_EVENT,
    GET_DESKTOP_EVENT,
    GET_FINDER_EVENT,
    GET_TOOLS_EVENT,
    READ_RESOURCE_EVENT,
    STAMP_FIELD,
    TOOL_CALL_EVENT,
    UPDATE_CONFIG_EVENT,
    UPDATE_DESKTOP_EVENT,
    UPDATE_FINDER_EVENT,
    UPDATE_TOOL_LIST_EVENT,
)
from tests.agent.conftest import LIMITS, MakeAgent, MakeComputer
from tests.agent.harness import DOCUMENT, NOT_JSON, PAGES, a_tool
from tests.server.harness import Running, eventually

pytestmark = pytest.mark.parametrize("kind", ["async", "blocking"])


@pytest.fixture(params=["async-server", "sync-server"])
def server(request: pytest.FixtureRequest) -> Running:
    running: Running = request.getfixturevalue(f"agents_{request.param.split('-')[0]}_server")
    return running


def text(result: Any) -> str:
    return "".join(item.text for item in result.content)


async def test_join_look_around_call_leave(make_agent: MakeAgent, make_computer: MakeComputer, kind: str) -> None:
    computer = await make_computer()
    agent = await make_agent(kind)
    assert agent.joined
    assert {(s["role"], s["name"]) for s in await agent.list_room()} == {("agent", "ada"), ("computer", "laptop")}
    (tool,) = await agent.get_tools("laptop")
    assert tool == a_tool("echo")
    assert agent.tool_meta(tool)["tags"] == ["t"]
    result = await agent.call_tool("laptop", "echo", {"text": "你好"}, timeout=7)
    assert text(result) == "你好"
    assert not result.is_error
    (request,) = computer.requests(TOOL_CALL_EVENT)
    assert request["agent"] == "ada"
    assert request["timeout"] == 7
    await agent.leave_office()
    assert agent.office_id is None
    assert agent.computers == {}
    with pytest.raises(NotInRoomError):
        await agent.list_room()
    with pytest.raises(NotInRoomError):
        await agent.call_tool("laptop", "echo")


@pytest.mark.parametrize("live", [True, False])
async def test_tools_that_are_not_there_yet_are_waited_for(
    make_agent: MakeAgent, make_computer: MakeComputer, kind: str, live: bool
) -> None:
    agent = await make_agent(kind, live=live)
    found: list[Any] = []

    async def wait(method: str, *args: Any) -> None:
        found.append(await getattr(agent, method)("laptop", *args, timeout=30))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait, "wait_for_tools")
        computer = await make_computer("laptop", lambda fake: setattr(fake, "tools", []))
        await eventually(lambda: computer.requests(GET_TOOLS_EVENT))
        assert found == []
        computer.tools = [a_tool("echo")]
        await computer.announce(UPDATE_TOOL_LIST_EVENT)
    assert found == [[a_tool("echo")]]
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait, "wait_for_tool", "sleep")
        asked = len(computer.requests(GET_TOOLS_EVENT))
        await eventually(lambda: len(computer.requests(GET_TOOLS_EVENT)) > asked)
        computer.tools = [a_tool("echo"), a_tool("sleep")]  # without a word: older computers are silent about some
    assert found[-1] == a_tool("sleep")
    assert await agent.wait_for_tools("laptop", ["sleep", "echo"]) == computer.tools


async def test_waiting_for_tools_ends_with_what_is_missing(
    make_agent: MakeAgent, make_computer: MakeComputer, kind: str
) -> None:
    agent = await make_agent(kind)

    async def why(tool: str) -> SMCPError:
        """Why the wait ended; where not even one answer came in its time, it says that, and a longer one is made."""
        for timeout in (0.5, 5, 30):
            with pytest.raises(SMCPError) as caught:
                await agent.wait_for_tool("laptop", tool, timeout=timeout)
            if not isinstance(caught.value, RequestTimeoutError):
                break
        return caught.value

    assert isinstance(await why("echo"), NotFoundError)
    await make_computer()
    missing = await why("sing")
    assert isinstance(missing, ToolNotFoundError) and "sing" in str(missing)
    await agent.leave_office()
    with pytest.raises(NotInRoomError):
        await agent.wait_for_tools("laptop")


@pytest.mark.parametrize("live", [True, False])
@pytest.mark.parametrize("end", ["close", "leave_office"])
async def test_waiting_ends_when_the_agent_is_closed_or_leaves(
    make_agent: MakeAgent, make_computer: MakeComputer, kind: str, end: str, live: bool
) -> None:
    silent = await make_computer("silent")

    async def never(_: Any) -> Any:
        await silent.release.wait()
        return {"tools": []}

    silent.override[GET_TOOLS_EVENT] = never
    agent = await make_agent(kind, live=live)
    why = ConnectionLostError if end == "close" else NotInRoomError
    begun: list[str] = []

    async def wait(method: str, *args: Any) -> None:
        begun.append(method)
        with pytest.raises(why):
            await getattr(agent, method)(*args, timeout=600)

    with anyio.fail_after(40):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait, "wait_for_tool", "laptop", "echo")
            if live:  # without a view there is nothing to settle
                tasks.start_soon(wait, "settled")
            await eventually(lambda: len(begun) == 1 + live)
            await getattr(agent, end)()
        await wait("wait_for_tools", "laptop")
        await wait("settled")


async def test_without_an_office_there_is_nothing_to_wait_for(make_agent: MakeAgent, kind: str) -> None:
    agent = await make_agent(kind, join=False)
    with anyio.fail_after(40):
        with pytest.raises(NotInRoomError):
            await agent.settled(600)
        with pytest.raises(NotInRoomError):
            await agent.wait_for_tools("laptop", timeout=600)


async def test_a_failed_tool_is_a_result_and_a_failed_route_raises(
    make_agent: MakeAgent, make_computer: MakeComputer, kind: str
) -> None:
    await make_computer()
    agent = await make_agent(kind)
    result = await agent.call_tool("laptop", "fail")
    assert result.is_error
    assert result.meta == {"error_code": 4003}
    with pytest.raises(NotFoundError):
        await agent.call_tool("nobody", "echo")
    with pytest.raises(NotFoundError):
        await agent.get_tools("nobody")
    with pytest.raises(PayloadTooLargeError):
        await agent.call_tool("laptop", "echo", {"text": "x" * LIMITS.max_message})
    assert text(await agent.call_tool("laptop", "echo", {"text": "still here"})) == "still here"


async def test_arguments_that_json_cannot_say_are_refused_before_they_are_sent(
    make_agent: MakeAgent, make_computer: MakeComputer, kind: str
) -> None:
    computer = await make_computer()
    agent = await make_agent(kind, live=False)
    for params in NOT_JSON:
        with pytest.raises(BadRequestError):
            await agent.call_tool("laptop", "echo", params)
    for keywords in ("report", 5):
        with pytest.raises(BadRequestError, match="keywords"):
            await agent.get_finder("laptop", keywords)
    assert computer.asked == []
    assert text(await agent.call_tool("laptop", "echo", {"text": "still here"})) == "still here"


async def test_one_text_where_several_belong_is_refused_at_once(
    make_agent: MakeAgent, make_computer: MakeComputer, kind: str
) -> None:
    await make_computer()
    agent = await make_agent(kind)
    with pytest.raises(BadRequestError, match="tool_names"):
        await agent.wait_for_tools("laptop", "echo")
    with pytest.raises(BadRequestError, match="categories"):
        await agent.read_page("laptop", DOCUMENT, 0, categories="text")


async def test_a_refused_join_raises_and_leaves_nothing_behind(make_agent: MakeAgent, office: str, kind: str) -> None:
    await make_agent(kind)
    late = await make_agent(kind, join=False, name="bob")
    with pytest.raises(RoomFullError):
        await late.join_office(office)
    assert late.office_id is None
    assert not late.joined


async def test_filters_are_sent_and_defaults_are_not(
    make_agent: MakeAgent, make_computer: MakeComputer, kind: str
) -> None:
    computer = await make_computer()
    agent = await make_agent(kind, live=False)
    assert await agent.get_desktop("laptop") == ["window://h/main\n\nhello"]
    await agent.get_desktop("laptop", size=3, window="window://h/main")
    plain, full = computer.requests(GET_DESKTOP_EVENT)
    assert set(plain) == {"agent", "req_id", "computer", STAMP_FIELD}
    assert (full["desktop_size"], full["window"]) == (3, "window://h/main")
    catalogue = await agent.get_finder("laptop")
    assert catalogue["total_count"] == 1
    assert catalogue["documents"][0]["uri"] == DOCUMENT
    await agent.get_finder("laptop", keywords=["a"], file_type="pdf", offset=1, limit=2)
    await agent.get_finder("laptop", ["a"], "pdf", 1, 2)
    plain, full, positional = computer.requests(GET_FINDER_EVENT)
    assert set(plain) == {"agent", "req_id", "computer", STAMP_FIELD}
    assert (full["keywords"], full["file_type"], full["offset"], full["limit"]) == (["a"], "pdf", 1, 2)
    assert {**positional, "req_id": ""} == {**full, "req_id": ""}
    assert (await agent.get_config("laptop"))["servers"]["s"]["disabled"] == "${input:off}"


async def test_documents_are_read_level_by_level(make_agent: MakeAgent, make_computer: MakeComputer, kind: str) -> None:
    computer = await make_computer()
    agent = await make_agent(kind, live=False)
    assert await agent.read_document_metadata("laptop", DOCUMENT) == {"uri": DOCUMENT}
    index = await agent.read_document_pages("laptop", DOCUMENT, offset=40, limit=10)
    assert [page["page_index"] for page in index["pages"]] == [40, 41, 42, 43, 44]
    assert await agent.read_page("laptop", DOCUMENT, 3) == {"uri": f"{DOCUMENT}/pages/3"}
    assert await agent.read_page("laptop", DOCUMENT, 3, format="markdown") == f"# {DOCUMENT}/pages/3"
    assert await agent.read_element("laptop", DOCUMENT, "t/1") == {"uri": f"{DOCUMENT}/elements/t%2F1"}
    assert [request["uri"] for request in computer.requests(READ_RESOURCE_EVENT)] == [
        DOCUMENT,
        f"{DOCUMENT}?depth=pages&offset=40&limit=10",
        f"{DOCUMENT}/pages/3",
        f"{DOCUMENT}/pages/3?format=markdown",
        f"{DOCUMENT}/elements/t%2F1",
    ]
    with pytest.raises(DocumentNotFoundError) as caught:
        await agent.read_document_metadata("laptop", "dpe://com.example.docs/other")
    assert caught.value.doc_ref == "nothing"


async def test_a_page_and_an_element_can_be_looked_at(
    make_agent: MakeAgent, make_computer: MakeComputer, kind: str
) -> None:
    computer = await make_computer()
    agent = await make_agent(kind, live=False)
    picture = DocumentPicture(b"picture", "image/png")
    assert await agent.read_page_image("laptop", DOCUMENT, 3) == picture
    assert await agent.read_element_image("laptop", DOCUMENT, "t1", longest=300) == picture
    assert await agent.read_page_image("laptop", DOCUMENT, 9) is None
    assert [request["uri"] for request in computer.requests(READ_RESOURCE_EVENT)][:2] == [
        f"{DOCUMENT}/pages/3?a2c_image=1200",
        f"{DOCUMENT}/elements/t1?a2c_image=300",
    ]
    with pytest.raises(InvalidDPEURIError):
        await agent.read_page_image("laptop", DOCUMENT, 3, 5000)


async def test_a_documents_pages_are_iterated_to_the_last(
    make_agent: MakeAgent, make_computer: MakeComputer, kind: str
) -> None:
    computer = await make_computer()
    agent = await make_agent(kind, live=False)
    pages = await agent.collect("iter_document_pages", "laptop", DOCUMENT)
    assert [page["page_index"] for page in pages] == list(range(PAGES))
    assert len(computer.requests(READ_RESOURCE_EVENT)) == 3
    texts = await agent.collect("iter_pages", "laptop", DOCUMENT, "markdown")
    assert texts == [f"# {DOCUMENT}/pages/{n}" for n in range(PAGES)]


async def test_the_view_has_the_members_and_their_tools_and_follows_every_notification(
    make_agent: MakeAgent, make_computer: MakeComputer, kind: str
) -> None:
    laptop = await make_computer()
    agent = await make_agent(kind)
    assert list(agent.computers) == ["laptop"]
    await agent.settled()
    assert agent.computers["laptop"].tools == [a_tool("echo")]
    assert agent.computers["laptop"].desktop is None
    laptop.tools = [a_tool("echo"), a_tool("more")]
    await laptop.announce(UPDATE_TOOL_LIST_EVENT)
    await eventually(lambda: len(agent.computers["laptop"].tools) == 2)
    await laptop.announce(UPDATE_DESKTOP_EVENT)
    await eventually(lambda: agent.computers["laptop"].desktop == laptop.windows)
    await laptop.announce(UPDATE_FINDER_EVENT)
    await eventually(lambda: agent.computers["laptop"].documents)
    assert agent.computers["laptop"].documents["documents"] == laptop.documents
    laptop.tools = []
    await laptop.announce(UPDATE_CONFIG_EVENT)
    await eventually(lambda: agent.computers["laptop"].config and agent.computers["laptop"].tools == [])
    desk = await make_computer("desk")
    await eventually(lambda: "desk" in agent.computers and agent.computers["desk"].tools)
    await desk.peer.disconnect()
    await eventually(lambda: "desk" not in agent.computers)
    assert laptop.requests(GET_CONFIG_EVENT)


async def test_a_failed_fetch_is_visible_and_retried(
    make_agent: MakeAgent, make_computer: MakeComputer, kind: str
) -> None:
    broken = SMCPError(500, "not now").payload()
    computer = await make_computer(setup=lambda fake: fake.override.update({GET_TOOLS_EVENT: lambda _: broken}))
    agent = await make_agent(kind)
    await agent.settled()
    (failure,) = agent.computers["laptop"].failures.values()
    assert failure.code == 500
    computer.override.clear()
    await eventually(lambda: agent.computers["laptop"].tools)
    assert agent.computers["laptop"].failures == {}


async def test_a_call_is_taken_back_by_its_req_id(
    make_agent: MakeAgent, make_computer: MakeComputer, kind: str
) -> None:
    computer = await make_computer()
    agent = await make_agent(kind, live=False)
    results: list[Any] = []

    async def call() -> None:
        results.append(await agent.call_tool("laptop", "slow", req_id="mine"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        await eventually(lambda: computer.requests(TOOL_CALL_EVENT))
        await agent.cancel("mine")
    assert results[0].is_error
    assert results[0].meta == {"a2c_cancelled": True}


async def test_a_call_that_nobody_answers_ends_on_the_agents_own_authority_and_is_cancelled(
    make_agent: MakeAgent, make_computer: MakeComputer, kind: str
) -> None:
    computer = await make_computer()
    agent = await make_agent(kind, live=False, deadlines=Deadlines(tool_call_grace=0.2))
    result = await agent.call_tool("laptop", "never", timeout=1, req_id="late")
    assert result.is_error
    assert result.meta == {"error_code": 4004, "a2c_timeout": True}
    await eventually(lambda: computer.cancelled("late"))


async def test_a_call_that_the_server_gives_up_on_raises_and_is_cancelled(
    make_agent: MakeAgent, make_computer: MakeComputer, kind: str
) -> None:
    computer = await make_computer()
    agent = await make_agent(kind, live=False, deadlines=Deadlines(tool_call_grace=60))
    with pytest.raises(RequestTimeoutError):
        await agent.call_tool("laptop", "never", timeout=1, req_id="late")
    await eventually(lambda: computer.cancelled("late"))


async def test_a_reply_that_does_not_fit_is_an_error(
    make_agent: MakeAgent, make_computer: MakeComputer, kind: str
) -> None:
    computer = await make_computer()
    agent = await make_agent(kind, live=False)
    replies: list[dict[str, Any]] = [{"tools": "none"}, {"tools": [], "req_id": "another"}]
    computer.override[GET_TOOLS_EVENT] = lambda _: replies.pop()
    while replies:
        with pytest.raises(BadRequestError):
            await agent.get_tools("laptop")


async def test_a_lost_connection_fails_what_is_pending_at_once_and_the_view_is_brought_up_to_date(
    make_agent: MakeAgent, make_computer: MakeComputer, kind: str
) -> None:
    laptop = await make_computer()
    desk = await make_computer("desk")
    agent = await make_agent(kind)
    await agent.settled()
    failures: list[SMCPError] = []

    async def call() -> None:
        try:
            await agent.call_tool("laptop", "never", timeout=300)
        except SMCPError as error:
            failures.append(error)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await eventually(lambda: laptop.requests(TOOL_CALL_EVENT))
            await desk.peer.disconnect()
            laptop.tools = [a_tool("other")]
            await agent.cut()
    assert isinstance(failures[0], ConnectionLostError)
    await eventually(lambda: agent.joined)
    await agent.settled()
    await eventually(lambda: list(agent.computers) == ["laptop"])  # the server may list the desk until it has missed it
    assert agent.computers["laptop"].tools == [a_tool("other")]
    assert len(laptop.requests(TOOL_CALL_EVENT)) == 1


class Recorder(AgentHandler):
    def __init__(self) -> None:
        self.heard: list[tuple[str, Any]] = []
        self.threads: set[int] = set()

    def _note(self, name: str, data: Any) -> None:
        self.heard.append((name, data))
        self.threads.add(threading.get_ident())

    def on_enter_office(self, data: Any) -> None:
        self._note("enter", data["computer"])
        raise RuntimeError("a handler may fail")

    async def on_leave_office(self, data: Any) -> None:
        self._note("leave", data["computer"])

    def on_change(self, change: Any) -> None:
        self._note("change", (change.computer, change.part.value))

    def on_connection(self, event: Any) -> None:
        self._note("connection", type(event).__name__)


async def test_handlers_hear_everything_in_order_and_one_that_fails_breaks_nothing(
    make_agent: MakeAgent, make_computer: MakeComputer, office: str, kind: str
) -> None:
    handler = Recorder()
    agent = await make_agent(kind, join=False, handler=handler)
    entered: list[Any] = []
    agent.on(ENTER_OFFICE_NOTIFICATION)(entered.append)
    await agent.join_office(office)
    for name in ("one", "two", "three"):
        computer = await make_computer(name)
        await eventually(lambda: handler.heard and handler.heard[-1][0] == "change")
        await computer.peer.disconnect()
        await eventually(lambda: handler.heard[-1][0] == "leave")
    assert handler.heard[:2] == [("connection", "Connected"), ("connection", "Joined")]
    assert handler.heard[2:] == [
        entry
        for name in ("one", "two", "three")
        for entry in (("enter", name), ("change", (name, "tools")), ("leave", name))
    ]
    assert [notice["computer"] for notice in entered] == ["one", "two", "three"]
    if kind == "blocking":
        assert threading.get_ident() not in handler.threads


async def test_nothing_has_another_name(make_agent: MakeAgent, kind: str) -> None:
    agent = await make_agent(kind, join=False)
    with pytest.raises(ValueError, match="enter_office"):
        agent.on("entered")(print)
