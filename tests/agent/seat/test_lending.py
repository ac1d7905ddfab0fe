"""A process that uses the seat alone goes around the holder, and nobody notices when that begins and when it ends."""

import asyncio
import os
import signal
from typing import Any

import pytest

from a2c_smcp.agent import AsyncSMCPAgentClient, LinkOptions, QuestionAnswer, text_of
from a2c_smcp.agent.seat.lending import Lending, Seat
from a2c_smcp.agent.seat.seat_link import SeatLink
from a2c_smcp.errors import ConnectionLostError
from a2c_smcp.link.interface import Disconnected
from a2c_smcp.smcp import (
    ANSWER_QUESTION_EVENT,
    CANCEL_TOOL_CALL_NOTIFICATION,
    ENTER_OFFICE_NOTIFICATION,
    LEAVE_OFFICE_NOTIFICATION,
    QUESTION_EVENT,
    RESOURCE_UPDATED_EVENT,
    TOOL_CALL_EVENT,
    TOOL_PROGRESS_EVENT,
)
from tests.agent.conftest import MakeComputer
from tests.agent.harness import FakeComputer
from tests.agent.seat.conftest import MakeShared, holder_pid, holding, is_alive
from tests.agent.test_resources import FORM, sharing
from tests.server.harness import eventually, heard

AT_ONCE = {"lend_after": 0.0}


def link_of(agent: AsyncSMCPAgentClient) -> SeatLink:
    assert isinstance(agent._link, SeatLink)
    return agent._link


async def echo(agent: AsyncSMCPAgentClient, text: str) -> None:
    assert text_of(await agent.call_tool("laptop", "echo", {"text": text})) == text


async def alone(agent: AsyncSMCPAgentClient) -> None:
    """Calls a tool, and waits until the agent has a way of its own."""
    await echo(agent, "first")
    await eventually(lambda: link_of(agent)._own.is_used)


def comings(computer: FakeComputer) -> list[str]:
    """Whether an agent came or went, as the computer heard it."""
    return [
        event
        for event, data in computer.peer.received
        if event in (ENTER_OFFICE_NOTIFICATION, LEAVE_OFFICE_NOTIFICATION) and "agent" in data
    ]


async def test_one_that_is_alone_has_its_own_connection_and_gives_it_up_when_another_comes(
    make_shared: MakeShared, make_computer: MakeComputer, link: LinkOptions, office: str
) -> None:
    computer = await make_computer()
    async with holding(link, office, **AT_ONCE) as holder:
        ada, lost = await make_shared("ada"), list[Any]()
        ada.on("connection")(lambda event: lost.append(event) if isinstance(event, Disconnected) else None)
        before = comings(computer)
        await alone(ada)
        # The holder hears a moment later that its place was taken over.
        await eventually(lambda: not (holder._link.connected or holder._past))
        assert ada.joined and ada.connected and ada.problem is None
        assert ada.way is not None and ada.way.transport == "websocket"
        await echo(ada, "around the holder")
        running = asyncio.create_task(ada.call_tool("laptop", "wait"))
        await eventually(lambda: len(computer.requests(TOOL_CALL_EVENT)) == 3)

        bob = await make_shared("bob")
        await asyncio.gather(*(echo(agent, f"{agent.name} {n}") for agent in (ada, bob) for n in range(5)))
        assert not link_of(ada)._own.is_used and holder._link.joined
        computer.release.set()
        assert text_of(await running) == "released"  # by the connection that it went by
        await eventually(lambda: not link_of(ada)._own._others)
        assert sorted(str(each.get("name")) for each in await bob.list_room()) == ["laptop", "seat"]
        assert len(computer.requests(TOOL_CALL_EVENT)) == 13
        assert comings(computer) == before and not lost

        await bob.close()
        await alone(ada)
        await ada.leave_office()
        assert ada.office_id is None
        await ada.join_office(office)
        await echo(ada, "again")


async def test_calls_that_run_at_the_change_report_ask_and_are_cancelled_as_ever(
    make_shared: MakeShared, make_computer: MakeComputer, link: LinkOptions, office: str
) -> None:
    computer, go_on = await make_computer(setup=sharing), {name: asyncio.Event() for name in ("lent", "back")}

    async def answer(data: dict[str, Any]) -> Any:
        name = data["tool_name"]
        if name in go_on:
            await go_on[name].wait()
            ids = {"computer": "laptop", "agent": data["agent"], "req_id": data["req_id"]}
            await computer.peer.emit(TOOL_PROGRESS_EVENT, {**ids, "progress": 0.5})
            assert await computer.peer.call(QUESTION_EVENT, {**ids, "question_id": name, **FORM}) == {}
            await eventually(
                lambda: any(sent["question_id"] == name for sent in computer.requests(ANSWER_QUESTION_EVENT))
            )
        elif name == "slow":
            await eventually(lambda: computer.cancelled(data["req_id"]))
        return computer.result(name)

    computer.override[TOOL_CALL_EVENT] = answer
    told: list[Any] = []

    async def on_question(question: Any) -> QuestionAnswer:
        told.append(question["question_id"])
        return QuestionAnswer("accept", {"sure": True})

    def call(agent: AsyncSMCPAgentClient, name: str) -> Any:
        report = agent.call_tool(
            "laptop", name, on_progress=lambda progress, *_: told.append(progress), on_question=on_question
        )
        return asyncio.create_task(report)

    async with holding(link, office, **AT_ONCE):
        ada = await make_shared("ada")
        first = call(ada, "lent")  # it goes through the holder, and the seat is lent while it runs
        await eventually(lambda: link_of(ada)._own.is_used)
        go_on["lent"].set()
        assert text_of(await first) == "lent" and set(told) == {0.5, "lent"}
        told.clear()
        second, cancelled = call(ada, "back"), call(ada, "slow")
        await eventually(lambda: len(computer.requests(TOOL_CALL_EVENT)) == 3)
        await make_shared("bob")
        await eventually(lambda: not link_of(ada)._own.is_used)
        go_on["back"].set()
        assert text_of(await second) == "back" and set(told) == {0.5, "back"}
        cancelled.cancel()
        await asyncio.wait({cancelled})
        await eventually(lambda: heard(computer.peer, CANCEL_TOOL_CALL_NOTIFICATION))


async def test_subscriptions_and_news_of_the_office_pass_both_ways(
    make_shared: MakeShared, make_computer: MakeComputer, link: LinkOptions, office: str
) -> None:
    computer = await make_computer(setup=sharing)
    async with holding(link, office, **AT_ONCE):
        ada, told = await make_shared("ada"), list[str]()
        ada.on("resource_updated")(lambda news: told.append(news["uri"]))
        await ada.subscribe_resource("laptop", "a")
        await alone(ada)
        await ada.subscribe_resource("laptop", "b")

        async def news_reaches_ada() -> None:
            await ada.settled()
            await eventually(lambda: not ada._subscriptions._renewing)
            told.clear()
            for uri in ("a", "b"):
                await computer.peer.call(RESOURCE_UPDATED_EVENT, {"uri": uri})
            await eventually(lambda: told == ["a", "b"])

        await news_reaches_ada()
        other = await make_computer("desk")
        await eventually(lambda: set(ada.computers) == {"laptop", "desk"})
        bob = await make_shared("bob")
        await echo(ada, "together")
        await news_reaches_ada()
        await other.peer.disconnect()
        await eventually(lambda: list(ada.computers) == list(bob.computers) == ["laptop"])


async def test_one_that_is_killed_while_it_is_alone_leaves_nothing_and_the_holder_is_back(
    make_shared: MakeShared, make_computer: MakeComputer, link: LinkOptions, office: str
) -> None:
    computer = await make_computer()
    async with holding(link, office, **AT_ONCE) as holder:
        ada = await make_shared("ada", take_over=False)
        await alone(ada)
        running = asyncio.create_task(ada.call_tool("laptop", "slow"))
        await eventually(lambda: len(computer.requests(TOOL_CALL_EVENT)) == 2)
        await _as_killed(ada)
        with pytest.raises(ConnectionLostError):
            await running
        [_, slow] = computer.requests(TOOL_CALL_EVENT)
        await eventually(lambda: computer.cancelled(slow["req_id"]))
        await eventually(lambda: holder._link.joined)
        bob = await make_shared("bob")
        await echo(bob, "next")


async def _as_killed(agent: AsyncSMCPAgentClient) -> None:
    link = link_of(agent)
    assert link._pipe is not None and link._own._link is not None
    await link._supervisor.close()
    link._pipe._transport.abort()  # type: ignore[union-attr]
    link._own._link.let_go()
    link._own._link._connection.eio.ws._ws._response.close()  # type: ignore[union-attr]


async def test_a_server_that_restarts_finds_the_one_that_is_alone_again(
    make_shared: MakeShared, make_computer: MakeComputer, link: LinkOptions, office: str
) -> None:
    await make_computer()
    async with holding(link, office, **AT_ONCE) as holder:
        ada, lost = await make_shared("ada"), list[Any]()
        ada.on("connection")(lambda event: lost.append(event) if isinstance(event, Disconnected) else None)
        await alone(ada)
        own = link_of(ada)._own._link
        assert own is not None and own._connection is not None
        await own._connection.eio.ws.close()
        await eventually(lambda: lost and ada.joined)
        await echo(ada, "back")
        assert link_of(ada)._own.is_used and not holder._link.connected


async def test_a_holder_that_is_killed_costs_one_that_goes_around_it_nothing(
    make_shared: MakeShared, make_computer: MakeComputer
) -> None:
    computer = await make_computer()
    ada = await make_shared("ada")
    first = holder_pid(ada)
    assert first is not None
    await asyncio.sleep(1.1)  # the seat is lent after a second
    await alone(ada)
    before = comings(computer)
    running = asyncio.create_task(ada.call_tool("laptop", "wait"))
    await eventually(lambda: len(computer.requests(TOOL_CALL_EVENT)) == 2)
    os.kill(first, signal.SIGKILL)
    await eventually(lambda: not is_alive(first))
    await echo(ada, "still there")
    bob = await make_shared("bob")
    await echo(bob, "and others")
    await eventually(lambda: not link_of(ada)._own.is_used)
    assert holder_pid(ada) == holder_pid(bob) != first
    await echo(ada, "together")
    computer.release.set()
    assert text_of(await running) == "released"
    assert comings(computer) == before


async def test_without_leave_of_the_server_the_seat_stays_with_the_holder(
    make_shared: MakeShared, make_computer: MakeComputer, link: LinkOptions, office: str
) -> None:
    await make_computer()
    async with holding(link, office, lend_after=60.0) as holder:
        ada = await make_shared("ada")
        pipe = link_of(ada)._pipe
        assert pipe is not None
        await link_of(ada)._borrow(pipe, "a secret that is not the holder's")
        assert not link_of(ada)._own.is_used and holder._link.joined
        await echo(ada, "through the holder")


def test_only_one_that_has_been_alone_for_some_time_is_offered_the_seat_and_only_once() -> None:
    lending = Lending[str](after=1.0)
    lending.changed(10.0)
    assert not lending.offer("ada", 1, 10.5)
    assert not lending.offer("ada", 2, 20.0)
    assert lending.offer("ada", 1, 11.0)
    assert not lending.offer("ada", 1, 12.0)
    assert lending.move("taken", "bob") is None  # he was not asked
    assert lending.move("taken", "ada") is Seat.LENT and lending.who == "ada"


def test_the_pause_doubles_with_every_other_that_comes_up_to_a_minute() -> None:
    lending, now, pauses = Lending[str](after=1.0), 0.0, []
    for _ in range(9):
        lending.changed(now)
        pauses.append(next(pause for pause in range(1, 99) if lending.offer("ada", 1, now + pause)))
        assert lending.move("recall", "ada") is Seat.UNWANTED and lending.move("recall", "ada") is None
        assert not lending.offer("ada", 1, now + 999)  # she has not answered
        assert lending.move("declined", "ada") is Seat.HELD and lending.who is None
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60]


async def test_others_that_come_and_go_cost_nobody_a_call(
    make_shared: MakeShared, make_computer: MakeComputer, link: LinkOptions, office: str
) -> None:
    computer, calls, others = await make_computer(), 0, 8
    async with holding(link, office, **AT_ONCE) as holder:
        ada = await make_shared("ada")

        async def call(until: asyncio.Event) -> None:
            nonlocal calls
            while not until.is_set():
                calls += 1
                await echo(ada, str(calls))

        done, lent = asyncio.Event(), 0
        callers = [asyncio.create_task(call(done)) for _ in range(3)]
        for number in range(others):
            holder._lending.failures = 0
            if number % 2:  # the other half of them come while the seat is about to be lent
                await eventually(lambda: link_of(ada)._own.is_used)
                lent += 1
            bob = await make_shared(f"bob {number}")
            await asyncio.gather(*(echo(bob, str(n)) for n in range(3)))
            await bob.close()
        done.set()
        await asyncio.gather(*callers)
    assert lent == others / 2
    asked = computer.requests(TOOL_CALL_EVENT)
    assert len({(data["agent"], data["req_id"]) for data in asked}) == len(asked) == calls + 3 * others
