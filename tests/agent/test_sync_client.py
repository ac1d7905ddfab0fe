"""What is particular to threads: many of them, handlers that call back in, none left over."""

import inspect
import logging
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import anyio
import anyio.to_thread
import pytest
from anyio.from_thread import BlockingPortal

from a2c_smcp.agent import AsyncSMCPAgentClient, SMCPAgentClient
from a2c_smcp.agent.types import Joined
from a2c_smcp.errors import ConnectionLostError
from a2c_smcp.smcp import TOOL_CALL_EVENT, TOOL_PROGRESS_EVENT
from tests.agent.conftest import MakeComputer
from tests.agent.harness import DOCUMENT, FakeComputer
from tests.server.harness import Running, eventually

CALLS, THREADS = 100, 8


def ours() -> set[threading.Thread]:
    return set(threading.enumerate())


def test_both_agents_have_the_same_methods() -> None:
    def signatures(client: type) -> dict[str, Any]:
        members = inspect.getmembers(client, lambda member: inspect.isfunction(member) or isinstance(member, property))
        return {
            name: list(inspect.signature(member).parameters.values()) if callable(member) else "property"
            for name, member in members
            if not name.startswith("_")
        }

    blocking = signatures(SMCPAgentClient)
    assert blocking.pop("name") == "property"  # a plain attribute there
    assert blocking == signatures(AsyncSMCPAgentClient)


async def test_eight_hundred_calls_from_eight_threads_and_no_thread_left_over(
    server: Running, office: str, make_computer: MakeComputer
) -> None:
    await make_computer()

    def work() -> None:
        before = ours()
        with SMCPAgentClient(server.url, name="ada") as agent:
            agent.join_office(office)

            def calls(thread: int) -> list[Any]:
                texts = [f"{thread}/{n}" for n in range(CALLS)]
                return [(text, agent.call_tool("laptop", "echo", {"text": text})) for text in texts]

            with ThreadPoolExecutor(THREADS) as pool:
                done = [pair for pairs in pool.map(calls, range(THREADS)) for pair in pairs]
        assert len(done) == CALLS * THREADS
        assert all(result.content[0].text == text and not result.is_error for text, result in done)
        for thread in ours() - before:
            thread.join(60)
        assert ours() <= before

    await anyio.to_thread.run_sync(work)


async def test_a_handler_calls_back_in_while_others_call(
    server: Running, office: str, make_computer: MakeComputer
) -> None:
    answers: list[Any] = []

    async def bring_a_computer() -> None:
        await make_computer()

    def work() -> None:
        with SMCPAgentClient(server.url, name="ada") as agent:
            done = threading.Event()

            @agent.on("enter_office")
            def on_enter(notice: Any) -> None:
                answers.append(agent.call_tool(notice["computer"], "echo", {"text": "from a handler"}))
                done.set()

            agent.join_office(office)
            anyio.from_thread.run(bring_a_computer)
            assert done.wait(60)

    await anyio.to_thread.run_sync(work)
    assert answers[0].content[0].text == "from a handler"


async def test_a_handler_may_close_the_agent(server: Running, office: str, make_computer: MakeComputer) -> None:
    before = ours()
    agent = SMCPAgentClient(server.url, name="ada")
    closed = threading.Event()

    @agent.on("enter_office")
    def on_enter(_: Any) -> None:
        agent.close()
        closed.set()

    await anyio.to_thread.run_sync(agent.open)
    await anyio.to_thread.run_sync(agent.join_office, office)
    await make_computer()
    await eventually(closed.is_set)
    await eventually(lambda: not {thread for thread in ours() - before if "AnyIO" not in thread.name})


async def test_a_handler_or_a_callback_that_calls_exit_ends_neither_the_client_nor_the_program(
    server: Running, office: str, make_computer: MakeComputer, caplog: pytest.LogCaptureFixture
) -> None:
    computer, joined = await make_computer(), threading.Event()

    def raised() -> int:
        return caplog.text.count("a callback raised SystemExit(3)")

    async def report_and_answer(data: dict[str, Any]) -> Any:
        before = raised()
        report = {"computer": "laptop", "agent": data["agent"], "req_id": data["req_id"], "progress": 1}
        await computer.peer.emit(TOOL_PROGRESS_EVENT, report)
        await eventually(lambda: raised() > before)  # a result waits a second for its callback, and no longer
        return computer.result("done")

    computer.override[TOOL_CALL_EVENT] = report_and_answer

    def exits(*_: Any) -> None:
        sys.exit(3)

    async def exits_too(*_: Any) -> None:
        exits()

    def work() -> None:
        with SMCPAgentClient(server.url, name="ada") as agent:
            agent.on("connection")(exits)
            agent.on("connection")(exits_too)
            agent.on("connection")(lambda event: joined.set() if isinstance(event, Joined) else None)
            agent.join_office(office)
            assert joined.wait(60)
            for callback in (exits, exits_too):
                assert not agent.call_tool("laptop", "copy", on_progress=callback).is_error
            assert agent.list_room()

    with caplog.at_level(logging.ERROR, "a2c_smcp.agent"):
        await anyio.to_thread.run_sync(work)
    assert raised() >= 4


async def test_an_agent_whose_loop_has_ended_can_be_closed(server: Running) -> None:
    async def exits() -> None:
        sys.exit(3)

    def work() -> None:
        before = ours()
        with SMCPAgentClient(server.url, name="ada") as agent:
            with pytest.raises(SystemExit):
                agent._run(exits)
            for thread in ours() - before:
                thread.join(20)
            with pytest.raises(ConnectionLostError):
                agent.list_room()

    await anyio.to_thread.run_sync(work)


async def test_closing_from_another_thread_fails_what_waits(
    server: Running, office: str, make_computer: MakeComputer
) -> None:
    computer = await make_computer()
    agent = SMCPAgentClient(server.url, name="ada")
    await anyio.to_thread.run_sync(agent.open)
    await anyio.to_thread.run_sync(agent.join_office, office)
    failures: list[BaseException] = []

    def call() -> None:
        try:
            agent.call_tool("laptop", "never")
        except ConnectionLostError as error:
            failures.append(error)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(anyio.to_thread.run_sync, call)
        await eventually(lambda: computer.requests(TOOL_CALL_EVENT))
        await anyio.to_thread.run_sync(agent.close)
        await anyio.to_thread.run_sync(agent.close)
    assert len(failures) == 1
    for attempt in (agent.list_room, agent.open, lambda: agent.computers):
        with pytest.raises(ConnectionLostError):
            attempt()


async def test_closing_does_not_wait_for_what_will_not_come(server: Running) -> None:
    agent = SMCPAgentClient(server.url, name="ada")
    await anyio.to_thread.run_sync(agent.open)
    waiting = threading.Event()
    failures: list[BaseException] = []

    async def never() -> None:
        waiting.set()
        await anyio.sleep(600)

    def wait() -> None:
        try:
            agent._run(never)
        except ConnectionLostError as error:
            failures.append(error)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.to_thread.run_sync, wait)
            await eventually(waiting.is_set)
            await anyio.to_thread.run_sync(agent.close)
    assert len(failures) == 1


async def test_an_iterator_may_be_left_in_the_middle(server: Running, office: str, make_computer: MakeComputer) -> None:
    await make_computer()

    def work() -> None:
        with SMCPAgentClient(server.url, name="ada", live=False) as agent:
            agent.join_office(office)
            pages = agent.iter_pages("laptop", DOCUMENT)
            assert next(pages)["uri"] == f"{DOCUMENT}/pages/0"
            forgotten = agent.iter_document_pages("laptop", DOCUMENT)
            next(forgotten)
            del pages
        forgotten.close()  # type: ignore[attr-defined]

    await anyio.to_thread.run_sync(work)


_INTERRUPTED = """
import sys
from a2c_smcp.agent import SMCPAgentClient
with SMCPAgentClient(sys.argv[1], name="ada", live=False) as agent:
    agent.join_office(sys.argv[2])
    try:
        agent.call_tool("laptop", "slow", req_id="interrupted")
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        sys.stdin.read()
"""


async def test_ctrl_c_cancels_the_call_at_the_computer(
    server: Running, office: str, make_computer: MakeComputer
) -> None:
    computer: FakeComputer = await make_computer()
    command = [sys.executable, "-W", "error", "-c", _INTERRUPTED, server.url, office]
    process = await anyio.open_process(command, stderr=None)
    assert process.stdin is not None
    assert process.stdout is not None
    async with process:
        try:
            await eventually(lambda: computer.requests(TOOL_CALL_EVENT), 60)
            process.send_signal(signal.SIGINT)
            # The connection is still there: it is the cancel that reaches the computer, not the agent's end.
            await eventually(lambda: computer.cancelled("interrupted"))
            with anyio.fail_after(60):
                assert await process.stdout.receive() == b"interrupted\n"
                await process.stdin.aclose()
                assert await process.wait() == 0
        finally:
            with suppress(ProcessLookupError):
                process.kill()


async def test_ctrl_c_while_a_call_is_started_cancels_it_at_the_computer(
    server: Running, office: str, make_computer: MakeComputer, monkeypatch: pytest.MonkeyPatch
) -> None:
    computer: FakeComputer = await make_computer()
    start = BlockingPortal.start_task_soon

    def call() -> None:
        with SMCPAgentClient(server.url, name="ada", live=False) as agent:
            agent.join_office(office)

            def start_interrupted(portal: BlockingPortal, *args: Any) -> Any:
                monkeypatch.undo()
                start(portal, *args)
                raise KeyboardInterrupt

            monkeypatch.setattr(BlockingPortal, "start_task_soon", start_interrupted)
            with pytest.raises(KeyboardInterrupt):
                agent.call_tool("laptop", "slow", req_id="interrupted")
            left.wait(60)

    left = threading.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(anyio.to_thread.run_sync, call)
        try:
            await eventually(lambda: computer.cancelled("interrupted"))
        finally:
            left.set()


async def test_one_that_attends_is_in_its_office_as_soon_as_it_can_be(
    server: Running, office: str, make_computer: MakeComputer
) -> None:
    await make_computer()
    agent = SMCPAgentClient(server.url, name="ada")
    await anyio.to_thread.run_sync(agent.attend, office)
    try:
        await eventually(lambda: agent.problem is None)
        await anyio.to_thread.run_sync(agent.settled)
        assert await anyio.to_thread.run_sync(lambda: list(agent.computers)) == ["laptop"]
    finally:
        await anyio.to_thread.run_sync(agent.close)
