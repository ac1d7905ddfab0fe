"""Each program of examples/ runs, in an office inside this process where it can, and has at most 60 lines.

The programs are imported by their tests: LangGraph, pydantic-ai, Flask and FastAPI take seconds to import, and every
worker imports this file.
"""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from a2c_smcp.agent import AsyncSMCPAgentClient, LinkOptions, text_of
from a2c_smcp.errors import BadRequestError
from a2c_smcp.mcp_server import ContextServer, Page, PagedDocument, Window
from a2c_smcp.mcp_server.elements import Text
from a2c_smcp.server import APIKeyAuthentication, OpenAuthentication
from a2c_smcp.smcp import TOOL_CALL_EVENT
from a2c_smcp.testing import blocking_office, office
from tests.agent.harness import FakeComputer, a_tool
from tests.nats_server import free_ports
from tests.server.harness import async_server, eventually

EXAMPLES = Path(__file__).parents[2] / "examples"
PROGRAMS = sorted(path for path in EXAMPLES.iterdir() if path.suffix in (".py", ".sh") and path.stem != "__init__")


def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


def test_there_are_eight_and_the_page_names_each_and_none_is_long() -> None:
    page = (EXAMPLES / "README.md").read_text()
    assert len(PROGRAMS) == 9, "the web service is there twice"
    for path in PROGRAMS:
        assert f"[`{path.name}`]({path.name})" in page
        assert len(path.read_text().splitlines()) <= 60, path.name


async def test_watch_a_desktop() -> None:
    from examples import watch_desktop

    kit = ContextServer("kit", host="com.example.kit", windows={"door": Window("The door is open.")})
    async with office([kit]) as lab:
        seen = watch_desktop.desktops(lab.agent, "pc")
        with anyio.fail_after(20):
            assert "open" in (await anext(seen))[0]
            kit.windows["door"] = Window("The door is shut.")
            while "shut" not in (await anext(seen))[0]:
                pass
        await seen.aclose()  # type: ignore[attr-defined]


async def test_a_web_service_on_fastapi() -> None:
    from examples import web_fastapi

    async with office([add], agent=None) as lab:
        app = web_fastapi.create_app(lab.link(), lab.office)
        async with app.router.lifespan_context(app):
            await eventually(lambda: app.state.agent.computers.get("pc") and app.state.agent.computers["pc"].tools)
            transport = httpx2.ASGITransport(app=app)
            async with httpx2.AsyncClient(transport=transport, base_url="http://test") as client:
                assert (await client.get("/computers")).json() == {"pc": ["add"]}
                said = await client.post("/computers/pc/tools/add", json={"a": 1, "b": 2})
                assert said.json()["text"] == "3"
                assert (await client.post("/computers/nobody/tools/add", json={})).status_code == 404


def test_a_web_service_on_flask() -> None:
    from examples import web_flask

    with blocking_office([add]) as lab:
        client = web_flask.create_app(lab.agent).test_client()
        assert client.get("/computers").json == {"pc": ["add"]}
        said: Any = client.post("/computers/pc/tools/add", json={"a": 1, "b": 2}).json
        assert said["text"] == "3"
        assert client.post("/computers/nobody/tools/add", json={}).status_code == 404


async def test_an_agent_on_langgraph() -> None:
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage, ToolMessage

    from examples import langgraph_agent

    class FakeModel(GenericFakeChatModel):
        """Says what a test says, whatever tools it has."""

        def bind_tools(self, tools: Iterable[Any], **_: Any) -> Any:
            assert "pc__add" in str(tools)
            return self

    call = {"name": "pc__add", "args": {"a": 1, "b": 2}, "id": "call-1"}
    model = FakeModel(messages=iter([AIMessage("", tool_calls=[call]), AIMessage("It is 3.")]))
    async with office([add]) as lab:
        done = await langgraph_agent.office_graph(lab.agent, model).ainvoke({"messages": [("user", "1 + 2?")]})
    answers = [message for message in done["messages"] if isinstance(message, ToolMessage)]
    assert [(answer.tool_call_id, "3" in str(answer.content)) for answer in answers] == [("call-1", True)]
    assert done["messages"][-1].content == "It is 3."


async def test_an_agent_on_pydantic_ai() -> None:
    from pydantic_ai import Agent, UnexpectedModelBehavior
    from pydantic_ai.models.test import TestModel

    from examples import pydantic_ai_agent

    def fail() -> str:
        """Fails."""
        raise ValueError("the tool is broken")

    async with office([add, fail]) as lab:
        tools = await pydantic_ai_agent.office_toolset(lab.agent)
        assert {"pc__add", "pc__fail", "see_desktop", "read_document"} <= {tool.name for tool in tools}
        done = await Agent(TestModel(call_tools=["pc__add"]), tools=tools).run("Add something.")
        assert done.output == '{"pc__add":"0"}'
        assert [call["tool"] for call in lab.computers["pc"].computer.history] == ["add"]
        with pytest.raises(UnexpectedModelBehavior, match="pc__fail"):
            await Agent(TestModel(call_tools=["pc__fail"]), tools=tools).run("Fail.")


async def test_two_computers_work_together() -> None:
    from examples import two_computers

    notes: dict[str, str] = {}

    def save_note(title: str, text: str) -> str:
        notes[title] = text
        return "saved"

    shelf = ContextServer("shelf", host="com.example.shelf")
    pages = [Page(f"Part {n}", [Text(f"Page {n} of it.")]) for n in range(2)]
    shelf.documents["report"] = PagedDocument("The report", pages)
    async with office(computers={"desk": [shelf], "laptop": [save_note]}) as lab:
        with anyio.fail_after(20):
            while not (await lab.agent.get_finder("desk"))["documents"]:
                pass
        assert await two_computers.copy_document(lab.agent, "desk", "report", "laptop", "save_note") == 2
        assert "Page 1 of it." in notes["The report, page 2"]
        with pytest.raises(LookupError):
            await two_computers.copy_document(lab.agent, "desk", "nonsense", "laptop", "save_note")


class Conversation:
    """A chat that a test writes in."""

    def __init__(self) -> None:
        self.shown: list[str] = []
        self._lines: asyncio.Queue[str] = asyncio.Queue()

    async def send(self, line: str) -> None:
        self.shown.append(line)

    async def receive(self) -> str:
        return await self._lines.get()

    async def says(self, line: str, after: int) -> None:
        """Write a line when so many lines have been shown."""
        await eventually(lambda: len(self.shown) >= after)
        self._lines.put_nowait(line)


async def test_a_human_in_the_loop_over_chat() -> None:
    from examples import human_in_the_loop

    chat = Conversation()
    async with office([add], approvals=lambda _: asyncio.Event().wait()) as lab:
        asking = asyncio.create_task(
            human_in_the_loop.confirm_by_chat(lab.computers["pc"].computer, chat.send, chat.receive)
        )
        results = []
        for n, line in enumerate(["1 yes", "2 not today", "3 always"], 1):
            calling = asyncio.create_task(lab.agent.call_tool("pc", "add", {"a": 1, "b": n}))
            await chat.says(line, n)
            results.append(await calling)
        results.append(await lab.agent.call_tool("pc", "add", {"a": 1, "b": 4}))
        await chat.says("", 0)
        await asking
    assert [result.is_error for result in results] == [False, True, False, False]
    assert (results[1].meta or {})["reason"] == "not today"
    assert len(chat.shown) == 3 and chat.shown[0].startswith("1: agent wants add on tools with {'a': 1, 'b': 1}")


async def test_a_late_yes_in_the_chat_does_not_allow_the_next_call() -> None:
    from examples import human_in_the_loop

    chat, runs = Conversation(), list[str]()

    def delete(path: str) -> str:
        runs.append(path)
        return "gone"

    async with office([delete], approvals=lambda _: asyncio.Event().wait()) as lab:
        asking = asyncio.create_task(
            human_in_the_loop.confirm_by_chat(lab.computers["pc"].computer, chat.send, chat.receive)
        )
        late = await lab.agent.call_tool("pc", "delete", {"path": "a"}, approval_timeout=1)
        assert (late.meta or {})["outcome"] == "unanswered"
        calling = asyncio.create_task(lab.agent.call_tool("pc", "delete", {"path": "b"}))
        await chat.says("yes", 2)
        await chat.says("1 yes", 3)
        await chat.says("2 no", 4)
        assert (await calling).is_error and runs == []
        assert chat.shown[2:] == ["Begin with the number of an open question."] * 2
        asking.cancel()


async def test_an_agent_survives_the_loss_of_connections_and_mcp_servers() -> None:
    from examples import survivor

    runs: list[int] = []
    running = asyncio.Event()

    async def measure(n: int) -> str:
        runs.append(n)
        running.set()
        await asyncio.sleep(0.05)
        return f"measured {n}"

    async with office([measure]) as lab:
        pc = lab.computers["pc"]
        faults = [pc.lose_connection, lab.lose_connection, pc.servers["tools"].kill]
        for n in range(6):
            running.clear()
            with anyio.fail_after(30):
                calling = asyncio.create_task(survivor.stubborn_call(lab.agent, "pc", "measure", {"n": n}))
                await running.wait()
                faults[n % 3]()
                assert await calling == f"measured {n}"
    # A computer that was out of reach runs nothing twice. A call runs again if it was cancelled with the agent's
    # connection, or died with its MCP server.
    assert [runs.count(n) for n in (0, 3)] == [1, 1]
    assert all(runs.count(n) <= 2 for n in range(6))


async def test_an_agent_survives_the_death_of_the_server_and_of_the_computer() -> None:
    from examples import survivor

    [port] = free_ports(1)
    async with AsyncExitStack() as stack:
        link = LinkOptions(f"http://127.0.0.1:{port}", backoff=(0.05, 0.2), rejoin_every=0.05)
        agent = AsyncSMCPAgentClient(link, name="survivor")
        stack.push_async_callback(agent.close)
        agent.attend("o")
        calling = asyncio.create_task(survivor.stubborn_call(agent, "laptop", "wait", {}))
        with anyio.fail_after(60):
            for killed in ("server", "computer", None):
                computer = FakeComputer()
                computer.tools.append(a_tool("wait"))
                stack.push_async_callback(computer.peer.disconnect)
                with async_server(OpenAuthentication(), port=port):
                    await computer.join(link.url, "o")
                    await eventually(lambda computer=computer: computer.requests(TOOL_CALL_EVENT), 30)  # type: ignore[misc]
                    if killed == "computer":
                        await computer.peer.disconnect()
                    if killed is None:
                        computer.release.set()
                        assert await calling == "released"
                        assert len(computer.requests(TOOL_CALL_EVENT)) == 1


async def test_what_lasts_is_not_tried_for_ever() -> None:
    from examples import survivor

    async with office([add]) as lab:
        with anyio.fail_after(20), pytest.raises(BadRequestError):
            await survivor.stubborn_call(lab.agent, "pc", "x" * 10_000, {})


# --- as people run them


@dataclass
class Office:
    """A real server, and computers that a test scripts."""

    env: dict[str, str]
    computers: dict[str, FakeComputer]


@pytest.fixture
async def real() -> AsyncIterator[Office]:
    names = ("desk", "Ada's laptop", "-v *", "laptop")
    with async_server(OpenAuthentication()) as server:
        env = {**_env(server.url), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        async with AsyncExitStack() as stack:
            computers = {name: FakeComputer(name) for name in names}
            for computer in computers.values():
                stack.push_async_callback(computer.peer.disconnect)
                await computer.join(server.url, "o")
            yield Office(env, computers)


def _env(url: str) -> dict[str, str]:
    return {**os.environ, "A2C_URL": url, "A2C_OFFICE": "o", "PYTHONPATH": str(EXAMPLES.parent)}


@asynccontextmanager
async def program(env: dict[str, str], *words: str) -> AsyncIterator[asyncio.subprocess.Process]:
    started = await asyncio.create_subprocess_exec(
        sys.executable, "-W", "error", *words, env=env, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    try:
        with anyio.fail_after(90):
            yield started
    finally:
        if started.returncode is None:
            started.kill()
        await started.wait()


async def line(started: asyncio.subprocess.Process) -> str:
    assert started.stdout is not None
    return (await started.stdout.readline()).decode().strip()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("watch_desktop.py", "laptop"), "--- 1 windows"),
        (("two_computers.py", "desk", "report", "laptop", "echo"), "45 pages copied from desk to laptop"),
        (("survivor.py", "laptop", "echo"), "it is done"),
    ],
)
async def test_a_program_runs_as_its_page_says(words: tuple[str, ...], said: str, real: Office) -> None:
    if words[0] == "survivor.py":
        real.computers["laptop"].override[TOOL_CALL_EVENT] = lambda _: FakeComputer.result("it is done")
    async with program(real.env, str(EXAMPLES / words[0]), *words[1:]) as started:
        assert await line(started) == said


async def test_the_program_with_a_human_runs_as_its_page_says(tmp_path: Path) -> None:
    config = {"mcpServers": {"demo": {"command": sys.executable, "args": ["-m", "a2c_smcp.demo.mcp_server"]}}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    words = (str(EXAMPLES / "human_in_the_loop.py"), str(tmp_path / "config.json"))
    with async_server(APIKeyAuthentication(["a-key"])) as server:
        async with (
            program({**_env(server.url), "A2C_API_KEY": "a-key"}, *words) as started,
            AsyncSMCPAgentClient(server.url, name="ada", api_key="a-key") as agent,
        ):
            await agent.join_office("o")
            await eventually(lambda: "desk" in agent.computers and agent.computers["desk"].tools, 60)
            calling = asyncio.create_task(agent.call_tool("desk", "greet", {"text": "Ada"}))
            assert (await line(started)).startswith("1: ada wants greet on demo with {'text': 'Ada'}.")
            assert started.stdin is not None
            started.stdin.write(b"1 yes\n")
            assert text_of(await calling) == "Hello, Ada!"


async def test_a_nightly_job(real: Office) -> None:
    def run(tool: str) -> "subprocess.CompletedProcess[str]":
        command = ["sh", str(EXAMPLES / "nightly_job.sh"), tool]
        return subprocess.run(command, env=real.env, capture_output=True, text=True, timeout=110, check=False)

    failing = real.computers["-v *"]
    failing.override[TOOL_CALL_EVENT] = lambda _: FakeComputer.result("it broke", isError=True)
    done = await asyncio.to_thread(run, "echo")
    assert done.returncode == 1
    assert {"desk: done", "Ada's laptop: done", "laptop: done"} <= set(done.stdout.splitlines())
    assert "-v *: echo failed" in done.stderr.splitlines()
    for computer in real.computers.values():
        [asked] = computer.requests(TOOL_CALL_EVENT)
        assert (asked["tool_name"], asked["timeout"], asked["approval_timeout"]) == ("echo", 3000, 60)
    del failing.override[TOOL_CALL_EVENT]
    done = await asyncio.to_thread(run, "echo")
    assert done.returncode == 0, done.stderr
