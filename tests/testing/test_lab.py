"""An office inside a test: real code, no ports, people by a script, and faults."""

import asyncio
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel

from a2c_smcp.agent import AsyncSMCPAgentClient, SMCPAgentClient, text_of
from a2c_smcp.computer.decisions.book import Confirmation
from a2c_smcp.computer.mcp_clients.server_state import ServerState
from a2c_smcp.errors import ConnectionLostError, NotFoundError, SMCPError, UnauthorizedError
from a2c_smcp.mcp_server import ContextServer, ToolCall, Window
from a2c_smcp.server import APIKeyAuthentication
from a2c_smcp.testing import NO_ANSWER, Lab, ScriptEndedError, blocking_office, in_process, office
from tests.computer.fakes.computers import code
from tests.server.harness import eventually


def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


async def sleep(call: ToolCall, seconds: float = 60) -> str:
    """Sleeps."""
    await call.progress(1, 2, "asleep")
    await asyncio.sleep(seconds)
    return "awake"


async def test_an_agent_calls_a_function_and_everybody_is_really_there() -> None:
    async with office(mcp_servers=[add]) as lab:
        result = await lab.agent.call_tool("pc", "add", {"a": 1, "b": 2})
        assert text_of(result) == "3"
        assert [tool["description"] for tool in await lab.agent.get_tools("pc")] == ["Adds two numbers."]
        assert list(lab.agent.computers) == list(lab.computers) == ["pc"]
        assert [call["tool"] for call in lab.computers["pc"].computer.history] == ["add"]
        assert lab.server.namespace.pending_relays == 0


async def test_no_port_is_opened_and_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_address(*_: object) -> None:
        raise AssertionError("a port was opened, or an address was looked up")

    before = asyncio.all_tasks()
    with monkeypatch.context() as patched:
        for method in ("bind", "connect", "connect_ex", "listen"):
            patched.setattr(socket.socket, method, no_address)
        async with office(mcp_servers=[add]) as lab:
            await lab.agent.call_tool("pc", "add", {"a": 1, "b": 2})
    await eventually(lambda: asyncio.all_tasks() == before)


async def test_servers_of_every_kind() -> None:
    kit = ContextServer("kit", host="com.example.kit", windows={"door": Window("The door is open.")})
    sdk = MCPServer("sdk")
    sdk.tool(name="sdk_add")(add)
    shut = ContextServer("shut", host="com.example.shut")
    shut.tool(name="secret")(lambda: "no")
    async with office(mcp_servers=[add, kit, sdk, in_process(shut, forbidden_tools=["secret"])]) as lab:
        assert {tool["name"] for tool in await lab.agent.get_tools("pc")} == {"add", "sdk_add"}
        assert text_of(await lab.agent.call_tool("pc", "sdk_add", {"a": 2, "b": 2})) == "4"
        assert code(await lab.agent.call_tool("pc", "secret")) == 4002
        [window] = await lab.agent.get_desktop("pc")
        assert "The door is open." in window
        kit.windows["door"] = Window("The door is shut.")
        await eventually(lambda: "shut" in str(lab.agent.computers["pc"].desktop))


async def test_two_computers_and_one_that_comes_later() -> None:
    async with office(computers={"pc": [add], "desk": []}) as lab:
        assert set(lab.agent.computers) == {"pc", "desk"}
        await lab.add_computer("late", [add])
        assert text_of(await lab.agent.call_tool("late", "add", {"a": 1, "b": 1})) == "2"
    with pytest.raises(ValueError, match="several"):
        async with office([add], computers={"pc": []}):
            pass
    with pytest.raises(ValueError, match="two MCP servers"):
        async with office([in_process(ContextServer("x", host="a.b")), in_process(ContextServer("x", host="a.b"))]):
            pass


# --- people


async def test_a_person_answers_by_a_script() -> None:
    async with office([add], approvals=[True, False, "not on a Friday", NO_ANSWER]) as lab:
        run = [await lab.agent.call_tool("pc", "add", {"a": 1, "b": n}, approval_timeout=1) for n in range(4)]
        assert [code(result) for result in run] == [None, 4005, 4005, 4005]
        meta: Any = [result.meta or {} for result in run]
        assert [each.get("outcome") for each in meta] == [None, "refused", "refused", "unanswered"]
        assert meta[2]["reason"] == "not on a Friday"
        asked = [each for each in lab.computers["pc"].person.asked if isinstance(each, Confirmation)]
        assert [each.call.arguments["b"] for each in asked] == [0, 1, 2, 3]


async def test_an_error_of_a_script_reaches_the_test() -> None:
    async def two_calls_and_one_answer() -> None:
        async with office([add], approvals=[True]) as lab:
            run = [await lab.agent.call_tool("pc", "add", {"a": 1, "b": n}) for n in range(2)]
            assert (run[1].meta or {})["outcome"] == "nobody"

    with pytest.raises(ScriptEndedError):
        await two_calls_and_one_answer()
    with pytest.raises(TypeError, match="not int"), blocking_office([add], approvals=[7]) as blocking:
        blocking.agent.call_tool("pc", "add", {"a": 1, "b": 2})


async def test_a_person_may_take_longer_than_the_tool() -> None:
    async def slow(_: Confirmation) -> bool:
        await asyncio.sleep(1.5)
        return True

    async with office([add, sleep], approvals=slow) as lab:
        one = {"a": 1, "b": 1}
        assert text_of(await lab.agent.call_tool("pc", "add", one, timeout=1, approval_timeout=60)) == "2"
        assert code(await lab.agent.call_tool("pc", "sleep", {}, timeout=1, approval_timeout=60)) == 4004
        late = await lab.agent.call_tool("pc", "add", one, timeout=1)
        assert late.is_error, "without a limit of its own, the person's time is the tool's"


async def test_each_person_has_the_whole_list() -> None:
    async with office(computers={"pc": [add], "desk": [add]}, approvals=[False, True]) as lab:
        run = [await lab.agent.call_tool(name, "add", {"a": 1, "b": 1}) for name in ("pc", "desk", "pc", "desk")]
    assert [code(result) for result in run] == [4005, 4005, None, None]


async def test_a_person_answers_what_tools_ask() -> None:
    class Size(BaseModel):
        size: int

    async def order(ctx: Context) -> str:
        """Asks for a size."""
        said = await ctx.elicit("How large?", Size)
        return f"{said.action} {said.data.size}" if said.action == "accept" else said.action

    shop = MCPServer("shop")
    shop.tool()(order)
    servers = [in_process(shop, protocol="legacy")]
    async with office(servers, questions=[{"size": 7}, False, lambda asked: {"size": len(asked.message)}]) as lab:
        assert [text_of(await lab.agent.call_tool("pc", "order")) for _ in range(3)] == [
            "accept 7",
            "decline",
            "accept 10",
        ]
        assert [each.kind for each in lab.computers["pc"].person.asked] == ["question"] * 3


async def test_an_office_starts_as_fast_as_it_makes_a_few_calls() -> None:
    # The page says 10 ms, and a call takes 2: on a slow machine both take longer.
    starts, calls = list[float](), list[float]()
    for _ in range(5):
        began = time.process_time()
        async with office([add]) as lab:
            starts.append(time.process_time() - began)
            began = time.process_time()
            for _ in range(10):
                await lab.agent.call_tool("pc", "add", {"a": 1, "b": 2})
            calls.append((time.process_time() - began) / 10)
    assert min(starts) < 25 * min(calls)


async def test_a_script_may_be_a_function_of_what_is_asked() -> None:
    def careful(asked: Confirmation) -> bool:
        return bool(asked.call.arguments["a"] < 10)

    async with office([add], approvals=careful) as lab:
        assert text_of(await lab.agent.call_tool("pc", "add", {"a": 1, "b": 1})) == "2"
        assert code(await lab.agent.call_tool("pc", "add", {"a": 10, "b": 1})) == 4005


# --- faults


async def test_a_lost_connection_comes_back_by_itself() -> None:
    async with office([add]) as lab:
        lab.computers["pc"].lose_connection()
        await _until_it_works(lab)
        lab.lose_connection()
        await _until_it_works(lab)


async def test_a_computer_is_offline_for_a_while() -> None:
    async with office([add, sleep]) as lab:
        running = asyncio.create_task(lab.agent.call_tool("pc", "sleep"))
        await eventually(lambda: lab.computers["pc"].computer.running_calls)
        with lab.computers["pc"].offline():
            with pytest.raises(NotFoundError):
                await running
            assert lab.agent.computers.get("pc") is None or not lab.computers["pc"].client.joined
        await _until_it_works(lab)


async def test_a_killed_mcp_server_is_started_again_or_stays_dead() -> None:
    async with office([add, sleep]) as lab:
        server = lab.computers["pc"].servers["tools"]
        running = asyncio.create_task(lab.agent.call_tool("pc", "sleep"))
        await eventually(lambda: lab.computers["pc"].computer.running_calls)
        await anyio.lowlevel.checkpoint()
        server.kill()
        assert code(await running) == 4003
        await _until_it_works(lab)
        assert server.lives == 2
        server.kill(for_good=True)
        await eventually(lambda: lab.computers["pc"].computer.statuses[0].state is not ServerState.RUNNING)


async def test_delays() -> None:
    async with office([add]) as lab:
        pc = lab.computers["pc"]
        for slow in (pc, pc.servers["tools"]):
            slow.delay = 0.2
            began = time.monotonic()
            await lab.agent.call_tool("pc", "add", {"a": 1, "b": 1})
            assert time.monotonic() - began >= 0.2
            slow.delay = 0


async def test_a_test_that_fails_leaves_nothing_behind() -> None:
    before = asyncio.all_tasks()
    with suppress(ZeroDivisionError):
        async with office([add, sleep]) as lab:
            running = asyncio.create_task(lab.agent.call_tool("pc", "sleep"))
            await eventually(lambda: lab.computers["pc"].computer.running_calls)
            raise ZeroDivisionError
    with pytest.raises(ConnectionLostError):
        await running
    await eventually(lambda: asyncio.all_tasks() == before)


async def _until_it_works(lab: Lab) -> None:
    with anyio.fail_after(20):
        while True:
            with suppress(SMCPError):
                if text_of(await lab.agent.call_tool("pc", "add", {"a": 1, "b": 2})) == "3":
                    return
            await anyio.sleep(0.01)


# --- clients of one's own


async def test_clients_of_one_s_own_and_keys() -> None:
    async with office([add], agent=None) as lab:
        async with AsyncSMCPAgentClient(lab.link(), name="ada") as agent:
            await agent.join_office(lab.office)
            assert text_of(await agent.call_tool("pc", "add", {"a": 1, "b": 1})) == "2"

        def in_a_thread() -> str:
            with SMCPAgentClient(lab.link(), name="bob") as agent:
                agent.join_office(lab.office)
                return text_of(agent.call_tool("pc", "add", {"a": 2, "b": 2}))

        assert await asyncio.to_thread(in_a_thread) == "4"
    with pytest.raises(UnauthorizedError):
        async with office(auth=APIKeyAuthentication(["secret"])):
            pass


@pytest.fixture
def lab() -> "Iterator[Any]":
    with blocking_office([add, sleep], approvals=True) as lab:
        yield lab


def test_a_lab_for_tests_that_are_not_async(lab: Any) -> None:
    assert text_of(lab.agent.call_tool("pc", "add", {"a": 1, "b": 2})) == "3"
    pc = lab.computers["pc"]
    assert [each.call.name for each in pc.asked] == ["add"]
    pc.set_delay(0.01)
    pc.kill("tools")
    pc.lose_connection()
    with pc.offline():
        pass
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        with suppress(SMCPError):
            if text_of(lab.agent.call_tool("pc", "add", {"a": 1, "b": 2})) == "3":
                break
    else:
        raise AssertionError("the computer did not come back")
    lab.run(lab.lab.add_computer, "desk")
    assert set(lab.computers) == {"pc", "desk"}


def test_importing_the_plugin_imports_nothing_of_ours() -> None:
    import subprocess

    heavy = "{'mcp', 'socketio', 'aiohttp', 'pydantic', 'uvicorn'} & set(sys.modules)"
    program = f"import sys; import a2c_smcp.testing.pytest_plugin; print({heavy} or '')"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert found.stdout.strip() == ""
