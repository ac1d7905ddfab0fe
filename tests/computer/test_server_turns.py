"""One operation on a server at a time, and servers that start together in the order of their config."""

import asyncio

import pytest

from a2c_smcp.computer.mcp_clients.server_turns import ServerTurns
from a2c_smcp.errors import ServerNotActiveError


async def test_a_stop_ends_the_start_that_it_would_have_to_wait_for() -> None:
    turns, begun, done = ServerTurns(), asyncio.Event(), list[str]()

    async def start() -> None:
        async with turns.take("a", is_start=True):
            begun.set()
            await asyncio.Event().wait()

    starting = asyncio.create_task(start())
    await begun.wait()
    assert set(turns.starting) == {"a"}
    async with asyncio.timeout(30), turns.take("b", is_start=True), turns.take("a"):
        done.append("stopped")
    with pytest.raises(ServerNotActiveError):
        await starting
    assert done == ["stopped"] and not turns.starting


async def test_a_stop_ends_the_starts_that_wait_before_it_and_none_that_comes_later() -> None:
    turns, order = ServerTurns(), list[str]()

    async def start(name: str) -> None:
        async with turns.take("a", is_start=True):
            order.append(name)
            if name != "later":
                await asyncio.Event().wait()

    async def stop() -> None:
        async with turns.take("a"):
            order.append("stop")

    async with asyncio.timeout(30):
        before = [asyncio.create_task(start(name)) for name in ("first", "second")]
        await asyncio.sleep(0)
        stopping = asyncio.create_task(stop())
        await asyncio.sleep(0)
        later = asyncio.create_task(start("later"))
        await asyncio.wait([*before, stopping, later])
    assert order == ["first", "stop", "later"]
    assert all(isinstance(task.exception(), ServerNotActiveError) for task in before)
    assert not turns.starting


async def test_a_start_waits_for_the_operation_before_it() -> None:
    turns, order = ServerTurns(), list[str]()

    async def start() -> None:
        async with turns.take("a", is_start=True):
            order.append("started")

    async with turns.take("a"):
        starting = asyncio.create_task(start())
        for _ in range(5):
            await asyncio.sleep(0)
        order.append("stopped")
    await starting
    assert order == ["stopped", "started"]


async def test_of_servers_that_start_together_a_later_one_waits_for_the_earlier_ones() -> None:
    turns = ServerTurns()
    turns.begin(["a", "b", "c"], 30)
    await turns.wait_for_earlier("a")
    await turns.wait_for_earlier("another")
    waiting = asyncio.create_task(turns.wait_for_earlier("c"))
    turns.settle("a")
    for _ in range(5):
        await asyncio.sleep(0)
    assert not waiting.done()
    turns.settle("b")
    async with asyncio.timeout(30):
        await waiting
        waiting_for_all = asyncio.create_task(turns.ended())
        turns.settle("c")
        await waiting_for_all
        turns.end()
        await turns.ended()


async def test_the_end_of_starts_together_lets_those_go_on_who_waited_for_one_that_never_settled() -> None:
    turns = ServerTurns()
    turns.begin(["a"], 30)
    waiting = asyncio.create_task(turns.ended())
    await asyncio.sleep(0)
    turns.end()
    turns.settle("a")
    async with asyncio.timeout(30):
        await waiting


async def test_a_later_one_does_not_wait_for_ever() -> None:
    turns = ServerTurns()
    turns.begin(["a", "b"], 0.01)
    async with asyncio.timeout(30):
        await turns.wait_for_earlier("b")
