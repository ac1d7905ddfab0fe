"""What goes wrong while the seat changes hands: processes that stall, are slow, or are killed, and connections that
break.
"""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

import aiohttp
import pytest

from a2c_smcp.agent import AsyncSMCPAgentClient, LinkOptions, text_of
from a2c_smcp.agent.seat.lending import Seat
from a2c_smcp.agent.seat.pipe import SeatPipe
from a2c_smcp.agent.seat.place import place_of
from a2c_smcp.link.interface import Disconnected, Joined, Membership
from a2c_smcp.link.office_link import OfficeLink
from a2c_smcp.server import OpenAuthentication
from a2c_smcp.smcp import ENTER_OFFICE_NOTIFICATION, LEAVE_OFFICE_NOTIFICATION, TOOL_CALL_EVENT
from a2c_smcp.wire import codec
from tests.agent.conftest import LIMITS, MakeComputer
from tests.agent.harness import FakeComputer
from tests.agent.seat.conftest import MakeShared, holding
from tests.agent.seat.test_lending import AT_ONCE, alone, comings, echo, link_of
from tests.server.harness import async_server, eventually


class Line:
    """A way to the server that can be held up: what is to connect waits until the line is open again."""

    def __init__(self) -> None:
        self.is_open = asyncio.Event()
        self.is_open.set()
        self.waiting = 0

    def through(self, link: LinkOptions) -> LinkOptions:
        return replace(link, connector=lambda: _HeldUp(self))


class _HeldUp(aiohttp.TCPConnector):
    def __init__(self, line: Line) -> None:
        super().__init__()
        self._line = line

    async def connect(self, *args: Any, **more: Any) -> Any:
        self._line.waiting += 1
        await self._line.is_open.wait()
        self._line.waiting -= 1
        return await super().connect(*args, **more)


def told_of(agent: AsyncSMCPAgentClient) -> list[Any]:
    told: list[Any] = []
    agent.on("connection")(told.append)
    return told


def losses(told: list[Any]) -> list[Disconnected]:
    return [event for event in told if isinstance(event, Disconnected)]


async def cut(agent: AsyncSMCPAgentClient) -> None:
    """End the agent's own connection."""
    link = link_of(agent)._own._link
    assert link is not None and link._connection is not None
    await link._connection.eio.ws.close()


async def test_an_offer_and_its_end_that_arrive_together_leave_the_seat_with_the_holder(
    make_shared: MakeShared, make_computer: MakeComputer, link: LinkOptions, office: str
) -> None:
    computer = await make_computer()
    async with holding(link, office, **AT_ONCE) as holder:
        ada = await make_shared("ada")
        told, pipe = told_of(ada), link_of(ada)._pipe
        assert pipe is not None and pipe._transport is not None
        pipe._transport.pause_reading()  # a busy moment
        running = asyncio.create_task(ada.call_tool("laptop", "wait"))
        await eventually(lambda: holder._lending.seat is Seat.OFFERED)
        bob = await make_shared("bob")
        pipe._transport.resume_reading()
        await eventually(lambda: holder._lending.seat is Seat.HELD and holder._link.joined)
        await asyncio.gather(*(echo(agent, str(n)) for n in range(10) for agent in (ada, bob)))
        computer.release.set()
        assert text_of(await running) == "released"
        assert link_of(ada)._has is Seat.HELD and not link_of(ada)._own.is_used and not losses(told)


async def test_a_process_that_is_slow_to_take_the_seat_takes_it_once(
    make_shared: MakeShared, make_computer: MakeComputer, link: LinkOptions, office: str
) -> None:
    await make_computer()
    line = Line()
    async with holding(link, office, **AT_ONCE) as holder:
        ada = await make_shared("ada", take_over=False, options=line.through(link))
        told = told_of(ada)
        line.is_open.clear()
        await echo(ada, "the seat is offered")
        await eventually(lambda: line.waiting)
        await (await make_shared("bob")).close()
        await eventually(lambda: len(holder._sharers) == 1)
        holder._lending.failures = 0
        await echo(ada, "and not offered again")
        assert holder._lending.seat is Seat.UNWANTED and line.waiting == 1
        line.is_open.set()
        await eventually(lambda: holder._lending.seat is Seat.HELD and holder._link.joined)
        await eventually(lambda: not link_of(ada)._own.is_used)
        holder._lending.failures = 0
        await alone(ada)
        assert not losses(told)


async def test_a_process_that_cannot_take_the_seat_says_so_and_is_asked_again_later(
    make_shared: MakeShared, make_computer: MakeComputer, link: LinkOptions, office: str
) -> None:
    await make_computer()
    line = Line()
    async with holding(link, office, lend_after=0.01) as holder:
        ada = await make_shared("ada", take_over=False, options=replace(line.through(link), connect_timeout=0.05))
        line.is_open.clear()
        async with asyncio.timeout(20):
            while not holder._lending.failures:
                await echo(ada, "through the holder")
            assert holder._link.joined
            line.is_open.set()
            link_of(ada)._own._options = link
            while not link_of(ada)._own.is_used:
                await echo(ada, "through the holder")


async def test_an_agent_that_is_closed_while_it_is_offered_the_seat_does_not_take_it(
    make_shared: MakeShared, make_computer: MakeComputer, link: LinkOptions, office: str
) -> None:
    await make_computer()
    async with holding(link, office, lend_after=60.0) as holder:
        ada = await make_shared("ada")
        seat = link_of(ada)
        pipe, task = seat._pipe, seat._supervisor._task
        assert pipe is not None and task is not None
        loop, offer = asyncio.get_running_loop(), ["lend", holder._link.resume]
        task.add_done_callback(lambda _: loop.call_soon(seat._take, pipe, offer, b""))  # just before `close` goes on
        await ada.close()
        await asyncio.gather(*seat._working, return_exceptions=True)
        assert not seat._own.is_used and holder._link.joined
        bob = await make_shared("bob")
        await echo(bob, "the seat is the holder's")


async def test_a_connection_that_is_lost_before_the_holder_is_back_is_not_lost_for_good(
    make_shared: MakeShared, make_computer: MakeComputer, link: LinkOptions, office: str
) -> None:
    await make_computer()
    line = Line()
    async with holding(line.through(link), office, **AT_ONCE) as holder:
        ada = await make_shared("ada")
        told = told_of(ada)
        await alone(ada)
        await eventually(lambda: holder._lending.seat is Seat.LENT)
        line.is_open.clear()
        bob = await make_shared("bob", join=False)
        await eventually(lambda: link_of(ada)._has is Seat.RETURNING and line.waiting)
        await echo(ada, "still the own way")
        told.clear()
        await cut(ada)
        await eventually(lambda: losses(told))
        line.is_open.set()
        await eventually(lambda: ada.joined)
        await bob.join_office(office)
        await asyncio.gather(echo(ada, "back"), echo(bob, "together"))
        assert [event.final for event in losses(told)] == [False]
        assert isinstance(told[-1], Joined) and told[-1].again and not link_of(ada)._own.is_used


async def test_two_hosts_that_come_at_once_cost_the_one_that_was_alone_nothing(
    make_shared: MakeShared, make_computer: MakeComputer, link: LinkOptions, office: str
) -> None:
    computer = await make_computer()
    async with holding(link, office, **AT_ONCE):
        ada = await make_shared("ada")
        told = told_of(ada)
        await alone(ada)
        running = asyncio.create_task(ada.call_tool("laptop", "wait"))
        await eventually(lambda: len(computer.requests(TOOL_CALL_EVENT)) == 2)
        others = await asyncio.gather(make_shared("bob"), make_shared("carol"))
        await asyncio.gather(*(echo(agent, str(n)) for n in range(5) for agent in (ada, *others)))
        computer.release.set()
        assert text_of(await running) == "released"
        await eventually(lambda: not link_of(ada)._own.is_used)
        assert not losses(told)


async def test_a_server_that_restarts_while_another_host_comes_finds_both_again(
    make_shared: MakeShared, link: LinkOptions, office: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]
    link = replace(link, url=f"http://127.0.0.1:{port}")
    first, second = FakeComputer(), FakeComputer()
    before = ExitStack()
    server = before.enter_context(async_server(OpenAuthentication(), LIMITS, port=port))
    async with holding(link, office, **AT_ONCE):
        with before:
            await first.join(server.url, office)
            ada = await make_shared("ada", take_over=False, options=link)
            told = told_of(ada)
            await alone(ada)
            bob = await make_shared("bob", take_over=False, options=link, join=False)
        await first.peer.disconnect()
        with async_server(OpenAuthentication(), LIMITS, port=port) as server:
            await second.join(server.url, office)
            await eventually(lambda: ada.joined and link_of(bob)._state.joined)
            await bob.join_office(office)
            await asyncio.gather(echo(ada, "back"), echo(bob, "together"))
            assert not any(event.final for event in losses(told))
            await ada.close()
            await bob.close()
            await second.peer.disconnect()


async def test_links_that_are_not_in_the_office_when_the_seat_changes_hands_are_closed(
    make_shared: MakeShared, make_computer: MakeComputer, link: LinkOptions, office: str
) -> None:
    await make_computer()
    to_holder, to_ada = Line(), Line()
    async with holding(to_holder.through(link), office, **AT_ONCE) as holder:
        ada = await make_shared("ada", take_over=False, options=to_ada.through(link))
        to_ada.is_open.clear()
        await echo(ada, "the seat is offered")
        await eventually(lambda: to_ada.waiting)
        to_holder.is_open.clear()
        before = holder._link
        assert before._connection is not None
        await before._connection.eio.ws.close()
        await eventually(lambda: to_holder.waiting)
        to_ada.is_open.set()
        await eventually(lambda: holder._lending.seat is Seat.LENT)
        to_holder.is_open.set()
        await eventually(lambda: not before._supervisor.is_running)
        assert not holder._past

        # A connection that comes back, and finds that somebody else has the seat.
        own = link_of(ada)._own._link
        assert own is not None
        to_ada.is_open.clear()
        await cut(ada)
        await eventually(lambda: to_ada.waiting)
        async with AsyncSMCPAgentClient(link, name="eve") as eve:
            await eve.join_office(office)
            to_ada.is_open.set()
            await eventually(lambda: own.connected and own.problem)
            bob = await make_shared("bob", join=False)
            await eventually(lambda: not own._supervisor.is_running)
            assert not link_of(ada)._own._others
        await bob.join_office(office)
        await eventually(lambda: ada.joined)
        await asyncio.gather(echo(ada, "back"), echo(bob, "together"))


async def test_one_that_takes_the_seat_and_is_killed_before_it_says_so_does_not_keep_it(
    make_shared: MakeShared, make_computer: MakeComputer, link: LinkOptions, office: str
) -> None:
    computer = await make_computer()
    async with holding(link, office, **AT_ONCE) as holder:
        await eventually(lambda: holder._link.joined)
        heads: list[list[Any]] = []
        pipe = SeatPipe(lambda head, _: heads.append(head), 1 << 20)
        path = str(place_of(link, office).socket)
        await asyncio.get_running_loop().create_unix_connection(lambda: pipe, path)
        call = {"agent": "seat", "req_id": "1", "computer": "laptop", "tool_name": "echo", "params": {}, "timeout": 9}
        pipe.send(["ask", 1, TOOL_CALL_EVENT, 9, "seat", "1"], codec.dumps(call).encode())
        [_, secret] = await eventually(lambda: next((head for head in heads if head[0] == "lend"), None))
        holder._lending.after = 60.0  # nobody else is offered it
        bob = await make_shared("bob")
        running = asyncio.create_task(bob.call_tool("laptop", "wait"))
        await eventually(lambda: len(computer.requests(TOOL_CALL_EVENT)) == 2)
        async with OfficeLink(link, {}, resume=secret) as own:
            await own.join(Membership("agent", "seat", office))
            own.let_go()  # who is killed does not come back
            pipe.close()
            await eventually(lambda: len(holder._sharers) == 1)
            # For two seconds: the server serves a session that was taken over for one second.
            until_then = asyncio.get_running_loop().time() + 2.0
            while asyncio.get_running_loop().time() < until_then:
                await echo(bob, "the seat is the holder's")
        computer.release.set()
        assert text_of(await running) == "released"


async def test_who_joins_while_its_own_connection_is_lost_waits_for_it(
    make_shared: MakeShared, make_computer: MakeComputer, link: LinkOptions, office: str
) -> None:
    await make_computer()
    line = Line()
    async with holding(link, office, **AT_ONCE):
        ada = await make_shared("ada", take_over=False, options=line.through(link))
        await alone(ada)
        await ada.leave_office()
        line.is_open.clear()
        await cut(ada)
        await eventually(lambda: line.waiting)
        joining = asyncio.create_task(ada.join_office(office))
        done, _ = await asyncio.wait({joining}, timeout=0.1)
        assert not done
        line.is_open.set()
        await joining
        assert ada.joined
        await echo(ada, "back")


_CHILD = """
import asyncio, sys
from a2c_smcp.agent import AsyncSMCPAgentClient, LinkOptions
from a2c_smcp.agent.seat.seat_link import shared_seat

async def main(url, office, transport, most):
    link = LinkOptions(url, transport=transport, max_message=int(most), connect_timeout=60.0)
    async with AsyncSMCPAgentClient(link, name="ada", link=shared_seat(link, office, "ada")) as agent:
        await agent.join_office(office)
        await agent.call_tool("laptop", "echo", {"text": "x"})
        while not agent._link._own.is_used:
            await asyncio.sleep(0.005)
        print("lent", flush=True)
        await agent.call_tool("laptop", "slow")

asyncio.run(main(*sys.argv[1:]))
"""


@asynccontextmanager
async def child(*args: str) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", _CHILD, *args, stdout=subprocess.PIPE)
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


@pytest.mark.parametrize("transport", ["websocket", "polling"])
async def test_a_killed_process_leaves_the_seat_to_the_next_one_at_once(
    make_shared: MakeShared, make_computer: MakeComputer, link: LinkOptions, office: str, transport: Any
) -> None:
    computer, link = await make_computer(), replace(link, transport=transport)
    async with (
        holding(link, office, **AT_ONCE) as holder,
        child(link.url, office, transport, str(link.max_message)) as ada,
    ):
        assert ada.stdout is not None and await asyncio.wait_for(ada.stdout.readline(), 30) == b"lent\n"
        await eventually(lambda: len(computer.requests(TOOL_CALL_EVENT)) == 2)
        before = len(comings(computer))
        os.kill(ada.pid, signal.SIGKILL)
        # Well before the ping's timeout of 27 seconds.
        await eventually(lambda: len(holder._sharers) == 0 and holder._link.joined, 15)
        await echo(await make_shared("bob", options=link), "next")
        # An agent that leaves has no calls and no subscriptions any more.
        await eventually(lambda: comings(computer)[before:][:1] == [LEAVE_OFFICE_NOTIFICATION])
        assert comings(computer)[-1] == ENTER_OFFICE_NOTIFICATION
        [_, slow, *_] = computer.requests(TOOL_CALL_EVENT)
        await eventually(lambda: computer.cancelled(slow["req_id"]))
