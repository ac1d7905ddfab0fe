"""Release 0.4.2 and ours in every mix of server, computer and agent, over the wire."""

import base64
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

import anyio
import anyio.to_thread
import pytest
from mcp_types import ImageContent

from a2c_smcp.agent import AsyncSMCPAgentClient, Deadlines, LinkOptions, text_of
from a2c_smcp.errors import NotFoundError, SMCPError
from a2c_smcp.server import OpenAuthentication
from tests.interop.conftest import StartPeer
from tests.interop.generations import OFFICE, PICTURES, Peer04, our_computer, peer_04
from tests.server.harness import async_server, eventually

pytestmark = pytest.mark.interop

OURS, THEIRS = "ours", "theirs"
SIZE = 5_000_000
#: Their server stops waiting when their computer does.
SILENT = {(THEIRS, THEIRS): "no answer"}
SKILL = "---\nname: draw\ndescription: Draws.\n---\nHow to draw.\n"


@dataclass
class Office:
    """A server with a computer of each kind."""

    kind: str
    url: str
    agent: Peer04
    computer: Peer04
    """Their computer."""
    uploads: Path
    skills: Path


@pytest.fixture(scope="module")
def agent_04() -> Iterator[Peer04]:
    with peer_04("agent04.py") as agent:
        agent.ready()
        yield agent


@pytest.fixture(scope="module", params=[OURS, THEIRS])
def office(request: pytest.FixtureRequest, agent_04: Peer04, tmp_path_factory: Any) -> Iterator[Office]:
    with ExitStack() as stack:
        if request.param == OURS:
            url = stack.enter_context(async_server(OpenAuthentication())).url
        else:
            url = stack.enter_context(peer_04("server04.py")).ready()
        home: Path = tmp_path_factory.mktemp("home")
        ours, theirs_user = home / "ours", home / "skills" / "user"
        for folder in (ours, theirs_user):
            (folder / "draw").mkdir(parents=True)
            (folder / "draw" / "SKILL.md").write_text(SKILL)
            (folder / "draw" / "pixels.bin").write_bytes(bytes(range(256)) * 400)
        uploads = home / "uploads"
        uploads.mkdir()
        theirs = stack.enter_context(peer_04("computer04.py", url, OFFICE, THEIRS, str(home), sys.executable, PICTURES))
        stack.enter_context(our_computer(url, OURS, skills=ours, uploads=uploads))
        theirs.ready()
        yield Office(request.param, url, agent_04, theirs, uploads, ours)


@pytest.fixture
def agent(office: Office) -> Iterator[Peer04]:
    """Their agent, in the office."""
    office.agent.do("connect", office.url, OFFICE)
    yield office.agent
    office.agent.do("leave", OFFICE)


@pytest.fixture
async def our_agent(office: Office) -> AsyncIterator[AsyncSMCPAgentClient]:
    deadlines = Deadlines(reply=20, tool_call_grace=10)
    async with AsyncSMCPAgentClient(office.url, name="ada", api_key="secret", deadlines=deadlines) as agent:
        await agent.join_office(OFFICE)
        yield agent
        await agent.leave_office()


def tool(office: Office, computer: str, name: str) -> str:
    """The name of a tool for our agent: only at our server do our own peers speak their own dialect."""
    return name if office.kind == computer == OURS else f"pictures__{name}"


computers = pytest.mark.parametrize("computer", [OURS, THEIRS])
_Test = TypeVar("_Test", bound=Callable[..., Any])


@dataclass(frozen=True)
class Topic:
    """What a test shows, for the table in docs/interop.md."""

    name: str
    agent: str
    computers: tuple[str, ...]
    excepted: Mapping[tuple[str, str], str]
    """What is said instead of yes, by server and computer."""


TOPICS: list[Topic] = []


def shows(
    topic: str,
    agent: str,
    only: tuple[str, ...] = (OURS, THEIRS),
    excepted: Mapping[tuple[str, str], str] | None = None,
) -> Callable[[_Test], _Test]:
    """Put a test into the table."""
    TOPICS.append(Topic(topic, agent, only, excepted or {}))
    return lambda test: test


@shows("tools, calls, config", THEIRS)
@computers
def test_their_agent_lists_and_calls(office: Office, agent: Peer04, computer: str) -> None:
    tools = agent.do("get_tools_from_computer", computer)["tools"]
    assert {tool["name"] for tool in tools} == {f"pictures__{name}" for name in ("echo", "sleep", "image", "text")}
    assert {tool["bundle_id"] for tool in tools} == {"pictures"}
    result = agent.do("emit_tool_call", computer, "pictures__echo", {"text": "你好"}, 20)
    assert (result["isError"], result["content"][0]["text"]) == (False, "你好")
    config = agent.do("get_config_from_computer", computer)
    assert config["servers"]["pictures"]["name"] == "pictures"


@shows("tools, calls, config", OURS)
@computers
async def test_our_agent_lists_and_calls(office: Office, our_agent: AsyncSMCPAgentClient, computer: str) -> None:
    tools = await our_agent.get_tools(computer)
    prefix = "" if office.kind == computer == OURS else "pictures__"
    assert {tool["name"] for tool in tools} == {f"{prefix}{name}" for name in ("echo", "sleep", "image", "text")}
    result = await our_agent.call_tool(computer, f"{prefix}echo", {"text": "你好"}, timeout=20)
    assert text_of(result) == "你好"
    assert list((await our_agent.get_config(computer))["servers"]) == ["pictures"]


# --- images


@shows("an image of 5 MB", THEIRS)
@computers
def test_their_agent_gets_an_image_of_5_mb(agent: Peer04, computer: str) -> None:
    result = agent.do("emit_tool_call", computer, "pictures__image", {"size": SIZE}, 30)
    assert [(item["type"], item.get("size")) for item in result["content"]] == [("image", SIZE)]


@shows("an image of 5 MB", OURS)
@computers
async def test_our_agent_gets_an_image_of_5_mb(office: Office, our_agent: AsyncSMCPAgentClient, computer: str) -> None:
    result = await our_agent.call_tool(computer, tool(office, computer, "image"), {"size": SIZE}, timeout=30)
    [item] = result.content
    assert isinstance(item, ImageContent)
    data = base64.b64decode(item.data)
    assert (len(data), data[:256], item.meta) == (SIZE, bytes(range(256)), None)


@shows("a text that is too large: 413", THEIRS, only=(OURS,))
def test_what_their_server_does_not_take_is_413_and_the_connection_lives(office: Office, agent: Peer04) -> None:
    size = 1_500_000 if office.kind == THEIRS else SIZE
    result = agent.do("emit_tool_call", OURS, "pictures__text", {"size": size}, 30)
    assert result["isError"] is True
    assert "at most" in result["content"][0]["text"]
    assert agent.do("emit_tool_call", OURS, "pictures__echo", {"text": "on"}, 20)["content"][0]["text"] == "on"


# --- what fails


@shows("a timeout, in time", THEIRS, excepted=SILENT)
@computers
def test_their_agent_sees_a_timeout_in_time(agent: Peer04, computer: str, office: Office) -> None:
    if why := SILENT.get((office.kind, computer)):
        pytest.skip(why)
    began = time.monotonic()
    result = agent.do("emit_tool_call", computer, "pictures__sleep", {"seconds": 20}, 2)
    assert result["isError"] is True
    assert time.monotonic() - began < 15


@shows("a timeout, in time", OURS)
@pytest.mark.parametrize("approval", [None, 600])
@computers
async def test_our_agent_sees_a_timeout_in_time(
    office: Office, our_agent: AsyncSMCPAgentClient, computer: str, approval: int | None
) -> None:
    """Also with time for a person, which 0.4 does not know."""
    began, sleep = time.monotonic(), tool(office, computer, "sleep")
    result = await our_agent.call_tool(computer, sleep, {"seconds": 20}, timeout=2, approval_timeout=approval)
    assert result.is_error
    assert (result.meta or {})["a2c_timeout"] is True
    assert time.monotonic() - began < 11  # the deadline of an agent that waits for the server's answer is 12 s


@shows("cancel", THEIRS)
@computers
def test_their_agent_cancels(agent: Peer04, computer: str) -> None:
    result = agent.do("cancel_soon", computer, "pictures__sleep", {"seconds": 20}, 15)
    assert result["meta"]["a2c_cancelled"] is True


@shows("cancel", OURS)
@computers
async def test_our_agent_cancels(office: Office, our_agent: AsyncSMCPAgentClient, computer: str) -> None:
    async with anyio.create_task_group() as tasks:

        async def cancel_soon() -> None:
            await anyio.sleep(0.5)
            await our_agent.cancel("to-be-cancelled")

        tasks.start_soon(cancel_soon)
        name = tool(office, computer, "sleep")
        result = await our_agent.call_tool(computer, name, {"seconds": 20}, timeout=15, req_id="to-be-cancelled")
    assert (result.meta or {})["a2c_cancelled"] is True


@shows("an unknown computer: 404", THEIRS)
def test_their_agent_hears_of_an_unknown_computer(agent: Peer04) -> None:
    result = agent.do("emit_tool_call", "ghost", "pictures__echo", {}, 5)
    assert result["isError"] is True
    assert "[404]" in result["content"][0]["text"]


@shows("an unknown computer: 404", OURS)
async def test_our_agent_hears_of_an_unknown_computer(our_agent: AsyncSMCPAgentClient) -> None:
    for ask in (our_agent.get_tools, our_agent.get_desktop, partial(our_agent.call_tool, tool_name="x")):
        with pytest.raises(NotFoundError):
            await ask("ghost")


@computers
async def test_an_unknown_tool_is_a_failed_result(
    office: Office, our_agent: AsyncSMCPAgentClient, computer: str
) -> None:
    assert (await our_agent.call_tool(computer, "pictures__nothing", {}, timeout=10)).is_error


@shows("the Finder is empty", OURS)
@computers
async def test_there_are_no_documents_and_that_is_an_answer(our_agent: AsyncSMCPAgentClient, computer: str) -> None:
    found = await our_agent.get_finder(computer)
    assert (found["documents"], found["total_count"]) == ([], 0)


# --- windows and resources


@shows("the order of windows", OURS)
@computers
async def test_windows_have_the_order_of_their_annotations(our_agent: AsyncSMCPAgentClient, computer: str) -> None:
    windows = await our_agent.get_desktop(computer)
    assert [window.partition("\n")[0] for window in windows] == ["window://pictures/high", "window://pictures/low"]


@shows("resources", THEIRS)
@computers
def test_their_agent_lists_resources(agent: Peer04, computer: str) -> None:
    found = agent.do("get_resources", computer, "pictures")["resources"]
    assert {each["uri"] for each in found} >= {"note://one"}
    [note] = [each for each in found if each["uri"] == "note://one"]
    assert (note["mime_type"], note["size"], note["annotations"]) == ("text/plain", 3, {"audience": ["user"]})
    said = agent.ask("get_resources", computer, "nope")
    assert said.get("error") == "SMCPProtocolError", said


@shows("resources", OURS)
@computers
async def test_our_agent_lists_the_resources_of_all_servers_at_once(
    our_agent: AsyncSMCPAgentClient, computer: str
) -> None:
    with anyio.fail_after(10):  # well before the deadline of a reply, which is 20 s
        found = (await our_agent.get_resources(computer))["resources"]
    [note] = [each for each in found if each["uri"] == "note://one"]
    assert (note["mimeType"], note["size"], note["annotations"]) == ("text/plain", 3, {"audience": ["user"]})
    assert note["mcp_server"] == "pictures"


# --- skills and files


@shows("skills", THEIRS)
@computers
def test_their_agent_reads_skills(agent: Peer04, computer: str) -> None:
    found = {skill["name"]: skill for skill in agent.do("get_skills", computer)["skills"]}
    assert found["draw"]["description"] == "Draws."
    assert agent.do("get_skill", computer, "draw")["body"].strip() == "How to draw."
    for name, rel_path in (("nothing", None), ("draw", "../../x"), ("draw", "nothing.txt")):
        said = agent.ask("get_skill", computer, name, rel_path)
        assert said.get("error") == "SMCPProtocolError", said


@shows("skills", OURS)
@computers
async def test_our_agent_reads_skills(our_agent: AsyncSMCPAgentClient, computer: str) -> None:
    found = {skill["name"]: skill for skill in await our_agent.get_skills(computer)}
    assert found["draw"]["description"] == "Draws."
    assert (await our_agent.read_skill(computer, "draw")).text.strip() == "How to draw."
    assert (await our_agent.read_skill(computer, "draw", "pixels.bin")).data == bytes(range(256)) * 400
    for name, rel_path, code in (("nothing", None, 4014), ("No!", None, 4016), ("draw", "../../x", 4017)):
        with pytest.raises(SMCPError) as caught:
            await our_agent.read_skill(computer, name, rel_path)
        assert caught.value.code == code


@shows("news of skills", OURS)
async def test_our_agent_hears_of_new_skills(office: Office, our_agent: AsyncSMCPAgentClient) -> None:
    heard: list[Any] = []
    our_agent.on("update_skills")(heard.append)
    await anyio.to_thread.run_sync(_add_skill, office.skills)
    await eventually(lambda: {"computer": OURS} in heard)
    assert "other" in {skill["name"] for skill in await our_agent.get_skills(OURS)}
    with anyio.fail_after(40):
        while {"computer": THEIRS} not in heard:
            await anyio.to_thread.run_sync(office.computer.ask, "announce")
            await anyio.sleep(0.5)


@shows("news of skills", THEIRS)
def test_their_agent_hears_of_new_skills(office: Office, agent: Peer04) -> None:
    known, until = len(agent.do("skills_of")), time.monotonic() + 40
    _add_skill(office.skills)
    while not {OURS, THEIRS} <= set(agent.do("skills_of")[known:]):
        assert time.monotonic() < until
        office.computer.ask("announce")  # again: their computer drops one that soon follows another
        time.sleep(0.5)


def _add_skill(folder: Path) -> None:
    (folder / "other").mkdir(exist_ok=True)
    (folder / "other" / "SKILL.md").write_text(SKILL)
    os.utime(folder / "other" / "SKILL.md")


@shows("a file for the computer", THEIRS, only=(OURS,))
def test_their_agent_puts_a_file(office: Office, agent: Peer04) -> None:
    data = bytes(range(256)) * 2000
    said = agent.do("put_blob", OURS, base64.b64encode(data).decode(), "../a b.txt")
    landed = Path(said["landing_path"])
    assert landed.parent == office.uploads
    assert landed.read_bytes() == data
    said = agent.ask("put_blob", THEIRS, base64.b64encode(data).decode(), None)
    assert said.get("error") == "BlobUploadError", "no folder is configured there"


@shows("a file for the computer", OURS, only=(OURS,))
async def test_our_agent_puts_a_file(office: Office, our_agent: AsyncSMCPAgentClient) -> None:
    data = bytes(range(256)) * 2000
    landed = await our_agent.put_blob(OURS, data, "notes.txt")
    assert await anyio.Path(landed).read_bytes() == data
    assert landed.endswith("_notes.txt")
    with pytest.raises(SMCPError) as caught:
        await our_agent.put_blob(THEIRS, data)
    assert (caught.value.code, caught.value.details["reason"]) == (4019, "forbidden")


# --- other versions, all generations at once, and the page


async def test_three_generations_share_an_office(office: Office, start_peer: StartPeer) -> None:
    if office.kind == THEIRS:
        pytest.skip("its server refuses 0.1.2")
    start = partial(start_peer, "computer.py", office.url, OFFICE, "oldest", sys.executable, PICTURES)
    await anyio.to_thread.run_sync(start)
    names = {OURS: "echo", THEIRS: "pictures__echo", "oldest": "echo"}
    async with AsyncSMCPAgentClient(office.url, name="ada", api_key="secret") as ours:
        await ours.join_office(OFFICE)
        for computer, name in names.items():
            assert text_of(await ours.call_tool(computer, name, {"text": computer}, timeout=20)) == computer
        await ours.leave_office()
    office.agent.do("connect", office.url, OFFICE)
    for computer, name in {**names, OURS: "pictures__echo"}.items():
        result = office.agent.do("emit_tool_call", computer, name, {"text": computer}, 20)
        assert result["content"][0]["text"] == computer
    office.agent.do("leave", OFFICE)


def test_the_oldest_agent_calls_the_newest_computers(office: Office, old_agent: Callable[..., dict[str, Any]]) -> None:
    if office.kind == THEIRS:
        pytest.skip("its server refuses 0.1.2")
    for computer, name in ((OURS, "echo"), (THEIRS, "pictures__echo")):
        seen = old_agent("async", office.url, OFFICE, computer, name)
        assert seen["calls"][0]["content"] == ["你好"]
        assert name in {tool["name"] for tool in seen["tools"]}


@shows("a restart of the server", OURS, only=(OURS,))
@pytest.mark.parametrize("kind", [OURS, THEIRS])
async def test_our_clients_come_back_after_a_restart_of_the_server(kind: str) -> None:
    async with AsyncExitStack() as stack:

        async def start(port: int) -> tuple[str, Callable[[], object]]:
            """A server, and how it ends: theirs is killed."""
            if kind == OURS:
                serving = async_server(OpenAuthentication(), port=port)
                url = (await anyio.to_thread.run_sync(serving.__enter__)).url
                return url, lambda: serving.__exit__(None, None, None)
            server = Peer04("server04.py", str(port))
            stack.callback(server.end)
            return await anyio.to_thread.run_sync(server.ready), server.kill

        url, end = await start(0)
        stack.enter_context(our_computer(url, OURS))
        name = "echo" if kind == OURS else "pictures__echo"
        async with AsyncSMCPAgentClient(url, name="ada", api_key="secret") as agent:
            await agent.join_office(OFFICE)
            assert not (await agent.call_tool(OURS, name, {"text": "x"}, timeout=20)).is_error
            await anyio.to_thread.run_sync(end)
            _, end = await start(int(url.rpartition(":")[2]))
            await agent.wait_for_tools(OURS, [name], timeout=40)
            assert text_of(await agent.call_tool(OURS, name, {"text": "back"}, timeout=20)) == "back"
        await anyio.to_thread.run_sync(end)


SIX: list[tuple[str, list[Any], int]] = [
    ("get_skills", ["ghost"], 4017),
    ("get_skill", ["ghost", "x"], 4017),
    ("get_resources", ["ghost", "p"], 4015),
    ("get_blob", ["ghost", "h"], 4018),
    ("put_blob", ["ghost", base64.b64encode(b"x").decode(), None], 4019),
    ("emit_tool_call", ["ghost", "t", {}, 5], 4103),
]
"""The calls in whose answers their agent looks for errors, and the code that stands for 4103 in each."""


@shows(
    "a restart of the server",
    THEIRS,
    only=(THEIRS,),
    excepted={(OURS, THEIRS): "both join no more", (THEIRS, THEIRS): "not tested"},
)
def test_their_clients_do_not_join_again_after_a_restart_of_our_server_and_hear_why(
    agent_04: Peer04, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        first = async_server(OpenAuthentication())
        url = first.__enter__().url
        try:
            theirs = peer_04("computer04.py", url, OFFICE, THEIRS, str(tmp_path), sys.executable, PICTURES)
            stack.enter_context(theirs).ready()
            agent_04.do("connect", url, OFFICE)
            for call, arguments, _ in SIX:
                assert "'ghost' not found" in said_of(agent_04.ask(call, *arguments)), call
        finally:
            first.__exit__(None, None, None)
        again = stack.enter_context(async_server(OpenAuthentication(), port=int(url.rpartition(":")[2])))
        until = time.monotonic() + 40
        while len(list(again.namespace.clients)) < 2 and time.monotonic() < until:
            time.sleep(0.1)
        assert [client.record.office for client in again.namespace.clients] == ["", ""]
        for call, arguments, code in SIX:
            answer = agent_04.ask(call, *arguments)
            assert "join an office first" in said_of(answer), call
            if answer.get("payload"):
                details = answer["payload"]["details"]
                assert (answer["payload"]["code"], details["error_code"]) == (code, 4103)
        agent_04.do("leave", OFFICE)


def said_of(answer: Mapping[str, Any]) -> str:
    """The words in which their agent tells of a failed call."""
    return str(answer["text"] if "error" in answer else answer["value"]["content"][0]["text"])


def test_their_blocking_agent_lists_and_calls(office: Office) -> None:
    for computer in (OURS, THEIRS):
        with peer_04("blocking_agent04.py", office.url, OFFICE, computer) as agent:
            said = agent.result()
        assert "pictures__echo" in said["tools"]
        assert (said["text"], said["size"]) == ("hello", 1_500_000)
        assert "[404]" in said["missing"]


async def test_a_computer_of_theirs_that_is_killed_is_404_at_once(office: Office, tmp_path: Path) -> None:
    if office.kind == THEIRS:
        pytest.skip("its server lets its agent wait")
    computer = Peer04("computer04.py", office.url, OFFICE, "mortal", str(tmp_path), sys.executable, PICTURES)
    try:
        await anyio.to_thread.run_sync(computer.ready)
        async with (
            AsyncSMCPAgentClient(office.url, name="ada", api_key="secret") as agent,
            anyio.create_task_group() as tasks,
        ):
            await agent.join_office(OFFICE)

            async def kill_soon() -> None:
                await anyio.sleep(0.5)
                await anyio.to_thread.run_sync(computer.kill)

            tasks.start_soon(kill_soon)
            with pytest.raises(NotFoundError), anyio.fail_after(25):
                await agent.call_tool("mortal", "pictures__sleep", {"seconds": 60}, timeout=50)
            await agent.leave_office()
    finally:
        computer.end()


async def test_a_server_of_another_version_is_come_back_to() -> None:
    with peer_04("server04.py", "0", "0.5.0") as server:
        url = server.ready()
        for transport in ("auto", "websocket", "polling"):
            options = LinkOptions(url, api_key="secret", transport=cast("Any", transport))
            async with AsyncSMCPAgentClient(options, name="ada") as agent:
                await agent.join_office(OFFICE)
                assert await agent.list_room()
                await agent.leave_office()


def table() -> list[str]:
    """What the tests show, as rows of a table: one column for each mix of server, computer and agent."""
    words = {OURS: "ours", THEIRS: "0.4.2"}
    mixes = [(server, computer, agent) for server in words for computer in words for agent in words]
    heads = [f"{words[server]}, {words[computer]}, {words[agent]}" for server, computer, agent in mixes]
    lines = [f"| server, computer, agent | {' | '.join(heads)} |", f"| --- {'| --- ' * len(mixes)}|"]
    for name in dict.fromkeys(topic.name for topic in TOPICS):
        cells = []
        for server, computer, agent in mixes:
            shown = [it for it in TOPICS if it.name == name and it.agent == agent and computer in it.computers]
            cells.append(shown[0].excepted.get((server, computer), "yes") if shown else "not tested")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def test_the_page_has_the_table_that_these_tests_draw() -> None:
    page = (Path(__file__).parents[2] / "docs" / "interop.md").read_text("utf-8")
    assert "\n".join(table()) in page, "\n".join(table())
