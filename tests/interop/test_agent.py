"""Our agents, asyncio and blocking, with the existing implementation's servers and computer, over the wire."""

import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from a2c_smcp.agent import Deadlines, LinkOptions, NotSupportedError
from a2c_smcp.errors import RoomFullError, SMCPError
from a2c_smcp.server import OpenAuthentication
from tests.agent.harness import Agent, Asyncio, Blocking
from tests.server.harness import async_server, eventually

pytestmark = [pytest.mark.interop, pytest.mark.parametrize("kind", ["async", "blocking"])]

PEERS = Path(__file__).parent / "peers"
ECHO = Path(__file__).parents[2] / "bench" / "echo_mcp.py"
OFFICE, COMPUTER = "interop-lab", "old-laptop"


@contextmanager
def peer(python: str, script: str, *args: str) -> Iterator[str]:
    """Run a peer until the end of the test, and hand out what it said when it was ready."""
    command = [python, "-I", str(PEERS / script), *args]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        # They log to stdout, before and after they are ready.
        said = next((line for line in process.stdout if line.startswith("READY")), "")
        drain = threading.Thread(target=process.stdout.read)
        drain.start()
        try:
            assert said
            yield said.removeprefix("READY").strip()
        finally:
            process.stdin.close()
            # Their computer does not always end by itself.
            with suppress(subprocess.TimeoutExpired):
                process.wait(1)
            process.kill()
            drain.join()


@pytest.fixture(scope="module", params=["old-async-server", "old-sync-server", "our-server"])
def office(request: pytest.FixtureRequest, interop_python: str) -> Iterator[tuple[str, LinkOptions]]:
    """A server with the existing computer in its office."""
    which: str = request.param
    running: Any
    if which == "our-server":
        running = async_server(OpenAuthentication())
    else:
        running = peer(interop_python, "server.py", which.split("-")[1])
    with running as server:
        url = server if isinstance(server, str) else server.url
        with peer(interop_python, "computer.py", url, OFFICE, COMPUTER, sys.executable, str(ECHO)):
            yield which, LinkOptions(url, api_key="secret")


@asynccontextmanager
async def joined(office: tuple[str, LinkOptions], kind: str, reply: float = 30) -> AsyncIterator[Agent]:
    face: Any = Asyncio if kind == "async" else Blocking
    async with face(office[1], name="ada", deadlines=Deadlines(reply=reply, tool_call_grace=1)) as agent:
        await agent.join_office(OFFICE)
        yield agent
        await agent.leave_office()


@pytest.fixture
async def agent(office: tuple[str, LinkOptions], kind: str) -> AsyncIterator[Agent]:
    async with joined(office, kind) as agent:
        yield agent


async def test_a_call_that_asks_for_progress_works_where_nobody_knows_it(agent: Agent) -> None:
    reports: list[Any] = []
    for text in ("one", "two"):
        result = await agent.call_tool(
            COMPUTER, "echo", {"text": text}, timeout=10, on_progress=lambda *report: reports.append(report)
        )
        assert [item.text for item in result.content] == [text]
    assert reports == []


async def test_it_looks_around_and_calls(agent: Agent) -> None:
    assert {(s["role"], s["name"]) for s in await agent.list_room()} == {("agent", "ada"), ("computer", COMPUTER)}
    tools = await agent.get_tools(COMPUTER)
    assert {tool["name"] for tool in tools} == {"echo", "sleep"}
    assert agent.tool_meta(tools[0])["auto_apply"] is True
    result = await agent.call_tool(COMPUTER, "echo", {"text": "你好"}, timeout=10)
    assert [item.text for item in result.content] == ["你好"]
    assert not result.is_error
    assert isinstance(await agent.get_desktop(COMPUTER), list)


async def test_the_view_is_filled(agent: Agent) -> None:
    await agent.settled()
    assert {tool["name"] for tool in agent.computers[COMPUTER].tools} == {"echo", "sleep"}


async def test_a_failed_tool_is_a_result(agent: Agent) -> None:
    result = await agent.call_tool(COMPUTER, "no-such-tool", {}, timeout=5)
    assert result.is_error


@pytest.mark.parametrize("approval", [None, 600])
async def test_a_call_that_takes_too_long_ends_in_time(agent: Agent, approval: int | None) -> None:
    """Also with time for a person, which these servers and computers do not know."""
    with anyio.fail_after(60):
        result = await agent.call_tool(COMPUTER, "sleep", {"seconds": 8}, timeout=1, approval_timeout=approval)
    assert result.is_error


async def test_what_it_does_not_know_is_said_to_be_unsupported(agent: Agent, office: tuple[str, LinkOptions]) -> None:
    which, _ = office
    for ask in (agent.get_finder(COMPUTER), agent.get_config(COMPUTER)):
        try:
            reply = await ask
        except SMCPError as error:
            if which != "our-server":
                assert isinstance(error, NotSupportedError), error
                assert "not supported by this server" in error.message
        else:
            assert "servers" in reply
            assert which == "our-server"


async def test_it_shares_nothing_else_and_that_is_known_at_once(agent: Agent) -> None:
    with anyio.fail_after(20):  # well before the deadline of a reply, which is 30 s
        assert (await agent.get_resources(COMPUTER))["resources"] == []
        assert (await agent.get_prompts(COMPUTER))["prompts"] == []
    result = await agent.call_tool(
        COMPUTER, "echo", {"text": "x"}, on_question=lambda _: None, meta={"traceparent": "t"}
    )
    assert [item.text for item in result.content] == ["x"]


async def test_a_computer_that_nobody_has_is_an_error_in_time(office: tuple[str, LinkOptions], kind: str) -> None:
    # Their servers do not answer: it is this agent that ends the wait.
    answers = office[0] == "our-server"
    async with joined(office, kind, reply=30 if answers else 3) as agent:
        with pytest.raises(SMCPError) as caught:
            await agent.get_tools("nobody")
    assert caught.value.code == (404 if answers else 408)


async def test_a_second_agent_is_refused(agent: Agent, office: tuple[str, LinkOptions]) -> None:
    async with Asyncio(office[1], name="bob") as late:
        with pytest.raises(SMCPError) as caught:
            await late.join_office(OFFICE)
        assert not late.joined
    if office[0] == "our-server":
        assert isinstance(caught.value, RoomFullError)
    await eventually(lambda: agent.joined)
