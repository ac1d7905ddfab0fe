"""What is particular to asyncio: cancelled tasks, bursts, the end of everything."""

import asyncio
import json
import logging
import socket
import sys
from typing import Any

import anyio
import anyio.to_thread
import pytest

from a2c_smcp.agent import AsyncSMCPAgentClient, Deadlines, LinkOptions, client
from a2c_smcp.errors import ConnectionLostError, NotFoundError, RequestTimeoutError, UnauthorizedError
from a2c_smcp.server import APIKeyAuthentication, OpenAuthentication
from a2c_smcp.smcp import (
    GET_DESKTOP_EVENT,
    GET_TOOLS_EVENT,
    LIST_ROOM_EVENT,
    TOOL_CALL_EVENT,
    UPDATE_DESKTOP_EVENT,
)
from tests.agent.conftest import LIMITS, MakeAgent, MakeComputer
from tests.agent.harness import FakeComputer
from tests.server.harness import Running, async_server, eventually


@pytest.mark.parametrize("how", ["task", "scope"])
async def test_cancelling_the_task_that_waits_cancels_the_call_at_the_computer(
    make_agent: MakeAgent, make_computer: MakeComputer, how: str
) -> None:
    computer = await make_computer()
    agent = await make_agent(live=False)

    async def call() -> None:
        await agent.call_tool("laptop", "slow", req_id="unwanted")

    if how == "task":
        task = asyncio.create_task(call())
        await eventually(lambda: computer.requests(TOOL_CALL_EVENT))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    else:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await eventually(lambda: computer.requests(TOOL_CALL_EVENT))
            tasks.cancel_scope.cancel()
    await eventually(lambda: computer.cancelled("unwanted"))


async def test_giving_up_is_bounded_when_the_cancel_cannot_be_sent(
    make_agent: MakeAgent, make_computer: MakeComputer, monkeypatch: pytest.MonkeyPatch
) -> None:
    computer = await make_computer()
    agent = await make_agent(live=False, deadlines=Deadlines(cancel=0.2))
    task = asyncio.create_task(agent.call_tool("laptop", "slow"))
    await eventually(lambda: computer.requests(TOOL_CALL_EVENT))

    async def stuck(*_: Any) -> None:
        await asyncio.sleep(60)

    monkeypatch.setattr(agent._link, "request", stuck)
    task.cancel()
    with anyio.fail_after(20), pytest.raises(asyncio.CancelledError):
        await task


async def test_many_calls_at_once_each_get_their_own_answer(make_agent: MakeAgent, make_computer: MakeComputer) -> None:
    await make_computer()
    agent = await make_agent(live=False)
    results = await asyncio.gather(*(agent.call_tool("laptop", "echo", {"text": str(n)}) for n in range(200)))
    assert [result.content[0].text for result in results] == [str(n) for n in range(200)]


async def test_what_answers_are_built_with_is_imported_before_the_call_is_sent(
    make_agent: MakeAgent, make_computer: MakeComputer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the first answer would import it, and the answers of all calls in flight would wait for that."""
    computer = await make_computer()
    agent = await make_agent(live=False)
    sent_before: list[bool] = []
    monkeypatch.setattr(client, "load_types", lambda: sent_before.append(bool(computer.requests(TOOL_CALL_EVENT))))
    await agent.call_tool("laptop", "echo", {"text": "x"})
    assert sent_before == [False]


async def test_a_burst_of_notifications_is_fetched_a_few_times_and_ends_up_to_date(
    make_agent: MakeAgent, make_computer: MakeComputer
) -> None:
    computer = await make_computer()
    agent = await make_agent()
    for n in range(100):
        computer.windows = [f"window://h/{n}"]
        await computer.peer.emit(UPDATE_DESKTOP_EVENT, {"computer": "laptop"})
    await eventually(lambda: agent.computers["laptop"].desktop == ["window://h/99"])
    assert len(computer.requests(GET_DESKTOP_EVENT)) < 100


async def test_an_office_that_cannot_be_listed_is_listed_later(
    make_agent: MakeAgent, make_computer: MakeComputer, office: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make_computer()
    agent = await make_agent(join=False)
    exchange, refusals = agent._link.exchange, [NotFoundError("not now")]

    async def refuse_once(event: str, *given: Any) -> str:
        if event == LIST_ROOM_EVENT and refusals:
            return json.dumps([refusals.pop().payload()])
        return str(await exchange(event, *given))

    monkeypatch.setattr(agent._link, "exchange", refuse_once)
    await agent.join_office(office)
    assert agent.listing_error.code == 404
    assert agent.computers == {}
    await agent.settled()
    assert agent.listing_error is None
    assert agent.computers["laptop"].tools


async def test_without_a_view_nothing_is_fetched(make_agent: MakeAgent, make_computer: MakeComputer) -> None:
    computer = await make_computer()
    agent = await make_agent(live=False)
    await agent.settled()
    await agent.list_room()
    assert agent.computers == {}
    assert computer.asked == []


async def test_waiting_for_the_view_has_a_deadline(make_agent: MakeAgent, make_computer: MakeComputer) -> None:
    async def never(_: Any) -> Any:
        await asyncio.sleep(1)
        return {"tools": []}

    await make_computer(setup=lambda fake: fake.override.update({GET_TOOLS_EVENT: never}))
    agent = await make_agent()
    with pytest.raises(RequestTimeoutError):
        await agent.settled(0.05)


async def test_a_handler_may_ask_and_may_close_the_agent(make_agent: MakeAgent, make_computer: MakeComputer) -> None:
    agent = await make_agent()
    answers: list[Any] = []

    @agent.on("enter_office")  # type: ignore[untyped-decorator]
    async def on_enter(notice: Any) -> None:
        answers.append(await agent.get_tools(notice["computer"]))
        await agent.close()

    await make_computer()
    await eventually(lambda: not agent.connected)
    assert len(answers[0]) == 1
    with pytest.raises(ConnectionLostError):
        await agent.list_room()


async def test_a_handler_that_raises_anything_at_all_is_called_again(
    make_agent: MakeAgent, make_computer: MakeComputer
) -> None:
    agent = await make_agent()
    entered: list[str] = []

    async def on_enter(notice: Any) -> None:
        entered.append(notice["computer"])
        raise asyncio.CancelledError

    agent.on("enter_office")(on_enter)
    await make_computer("one")
    await make_computer("two")
    await eventually(lambda: entered == ["one", "two"])


async def test_a_handler_that_calls_exit_ends_the_program(server: Running) -> None:
    ends: list[str] = []

    async def program() -> None:
        agent = AsyncSMCPAgentClient(server.url, name="ada")
        agent.on("connection")(lambda _: sys.exit(3))
        try:
            async with agent:
                await asyncio.sleep(60)
            ends.append("by itself")
        finally:
            ends.append("connected" if agent.connected else "closed")

    def run() -> None:
        with pytest.raises(SystemExit):
            asyncio.run(program())

    await anyio.to_thread.run_sync(run)
    assert ends == ["closed"]


async def test_closing_leaves_no_task_and_fails_what_is_pending(
    make_agent: MakeAgent, make_computer: MakeComputer
) -> None:
    before = asyncio.all_tasks()
    computer = await make_computer()
    agent = await make_agent()

    async def handler(_: Any) -> None:
        await asyncio.sleep(60)

    agent.on("change")(handler)
    await computer.peer.emit(UPDATE_DESKTOP_EVENT, {})
    call = asyncio.create_task(agent.call_tool("laptop", "never"))
    await eventually(lambda: computer.requests(TOOL_CALL_EVENT))
    await agent.close()
    await agent.close()
    with pytest.raises(ConnectionLostError):
        await call
    computer.release.set()
    await computer.peer.disconnect()
    await eventually(lambda: asyncio.all_tasks() <= before)


async def test_a_wrong_key_is_refused_and_never_shown(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with async_server(APIKeyAuthentication(["right"]), LIMITS) as server:
        before = asyncio.all_tasks()
        with pytest.raises(UnauthorizedError):
            async with AsyncSMCPAgentClient(server.url, name="ada", api_key="hunter2"):
                pass
        async with AsyncSMCPAgentClient(LinkOptions(server.url), name="ada", api_key="right") as agent:
            await agent.join_office("lab")
        await eventually(lambda: asyncio.all_tasks() <= before)
    with pytest.raises(ConnectionLostError, match=server.url):
        await AsyncSMCPAgentClient(server.url, name="ada").open()
    # The server, which runs in this process too, is not meant here.
    names = ("a2c_smcp.agent", "a2c_smcp.utils")
    ours = [record.getMessage() for record in caplog.records if record.name.startswith(names)]
    assert "hunter2" not in "".join(ours)


async def test_after_a_server_restart_it_is_back_with_a_new_view() -> None:
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]
    link = LinkOptions(f"http://127.0.0.1:{port}", backoff=(0.05, 0.2), rejoin_every=0.05)
    agent = AsyncSMCPAgentClient(link, name="ada")
    first, second = FakeComputer("first"), FakeComputer("second")
    try:
        with async_server(OpenAuthentication(), LIMITS, port=port) as server:
            await first.join(server.url, "lab")
            await agent.open()
            await agent.join_office("lab")
            await agent.settled()
            assert list(agent.computers) == ["first"]
        await eventually(lambda: not agent.connected)
        assert list(agent.computers) == ["first"]
        with async_server(OpenAuthentication(), LIMITS, port=port) as server:
            await second.join(server.url, "lab")
            await eventually(lambda: list(agent.computers) == ["second"])
            await agent.settled()
            assert agent.computers["second"].tools
    finally:
        await agent.close()
        await first.peer.disconnect()
        await second.peer.disconnect()


async def test_one_that_attends_says_what_the_problem_is_until_it_has_a_view(
    make_computer: MakeComputer, server: Running, office: str
) -> None:
    await make_computer()
    agent = AsyncSMCPAgentClient(server.url, name="ada")
    agent.attend(office)
    try:
        assert (agent.problem, agent.is_entering) == ("not connected to the server yet", True)
        await eventually(lambda: (agent.problem, agent.is_entering) == (None, False))
        await agent.settled()
        assert list(agent.computers) == ["laptop"]
    finally:
        await agent.close()
    assert agent.problem is not None
    assert not agent.is_entering
