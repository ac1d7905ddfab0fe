"""The end of a server process: who is told, who is waited for, and what a second signal does."""

import asyncio
import signal
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from a2c_smcp.errors import ConnectionLostError
from a2c_smcp.link.interface import LinkOptions, Membership
from a2c_smcp.link.office_link import OfficeLink
from tests.nats_server import NatsServer
from tests.server.conftest import MakePeer
from tests.server.harness import Running, eventually, heard
from tests.server.test_cli import Process, running
from tests.server.test_scenarios import join, request_for

CALL = {"agent": "a", "req_id": "1", "computer": "c", "tool_name": "t", "params": {}, "timeout": 300}


def status_of(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=20) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def handshake(process: Process, session: str = "") -> int:
    return status_of(f"{process.url}/socket.io/?EIO=4&transport=polling{session}")


async def until_said(process: Process, words: str) -> None:
    """Read what the process says until these words come. It also says who connects."""
    assert process.popen.stderr is not None
    async with asyncio.timeout(60):
        while words not in (line := await asyncio.to_thread(process.popen.stderr.readline)):
            assert line, f"it ended without {words!r}"


@asynccontextmanager
async def a_call_that_runs(url: str) -> AsyncIterator["asyncio.Task[Any]"]:
    """A call that ends when its connection does."""
    called = asyncio.Event()

    async def never(_: Any) -> Any:
        called.set()
        await asyncio.sleep(300)

    async with AsyncExitStack() as exits:
        computer = await exits.enter_async_context(OfficeLink(LinkOptions(url), {"client:tool_call": never}))
        agent = await exits.enter_async_context(OfficeLink(LinkOptions(url), {}))
        await computer.join(Membership("computer", "c", "o"))
        await agent.join(Membership("agent", "a", "o"))
        asking = asyncio.create_task(agent.request("client:tool_call", CALL, 300))
        await eventually(called.is_set)
        yield asking
        await asyncio.gather(asking, return_exceptions=True)


async def test_one_process_waits_for_its_calls_says_so_and_a_second_signal_ends_it_at_once() -> None:
    with running() as process:
        async with a_call_that_runs(process.url) as asking:
            process.popen.send_signal(signal.SIGHUP)
            assert status_of(f"{process.url}/readyz") == 200 and handshake(process) == 200
            process.popen.send_signal(signal.SIGTERM)
            await until_said(process, "1 requests are still running")
            assert status_of(f"{process.url}/readyz") == 503 and status_of(f"{process.url}/healthz") == 200
            assert handshake(process) == 503 and handshake(process, "&sid=nobodys") == 503
            with pytest.raises(ConnectionLostError, match="503"):
                await OfficeLink(LinkOptions(process.url, transport="websocket", connect_timeout=0.5), {}).open()
            assert not asking.done()
            began = time.monotonic()
            status, said = await asyncio.to_thread(process.stop, signal.SIGINT)
            assert time.monotonic() - began < 20, "well before the 30 s of the drain"
    assert status == 0 and "1 requests were lost" in said and "Traceback" not in said


async def test_clients_that_do_not_move_are_served_until_the_drain_ends(
    nats: NatsServer, prefix: str, office: str, make_peer: MakePeer
) -> None:
    options = ("--nats", nats.url, "--nats-prefix", prefix, "--drain", "6")
    with running(*options) as one, running(*options) as other:
        agent = await make_peer(Running(other.url, None, None))
        computer = await make_peer(
            Running(one.url, None, None),
            setup=lambda peer: peer.answer("client:get_tools", lambda _: {"tools": [], "req_id": "1"}),
        )
        await join(agent, "agent", "a", office)
        await join(computer, "computer", "c", office)
        await eventually(lambda: heard(agent, "notify:enter_office"))
        began = time.monotonic()
        stopping = asyncio.create_task(asyncio.to_thread(one.stop))
        (told,) = await eventually(lambda: heard(computer, "notify:moving"))
        assert 0 < told["within"] <= 6
        assert await agent.call("client:get_tools", request_for("client:get_tools")) == {"tools": [], "req_id": "1"}
        status, said = await stopping
        assert status == 0 and "1 clients move" in said and "Traceback" not in said
        assert time.monotonic() - began > 3.9, "it was kept"
        await eventually(lambda: heard(agent, "notify:leave_office"))
    assert not computer.connected


async def test_two_processes_that_stop_together_wait_for_their_calls_and_not_for_each_other(
    nats: NatsServer, prefix: str
) -> None:
    options = ("--nats", nats.url, "--nats-prefix", prefix, "--drain", "45")
    called, go_on = asyncio.Event(), asyncio.Event()

    async def slow(_: Any) -> Any:
        called.set()
        await go_on.wait()
        return {"content": [], "isError": False}

    with running(*options) as one, running(*options) as other:
        async with AsyncExitStack() as exits:
            await exits.enter_async_context(OfficeLink(LinkOptions(other.url), {}))
            computer = await exits.enter_async_context(OfficeLink(LinkOptions(one.url), {"client:tool_call": slow}))
            agent = await exits.enter_async_context(OfficeLink(LinkOptions(one.url), {}))
            await computer.join(Membership("computer", "c", "o"))
            await agent.join(Membership("agent", "a", "o"))
            asking = asyncio.create_task(agent.request("client:tool_call", CALL, 300))
            await eventually(called.is_set)
            began = time.monotonic()
            one.popen.send_signal(signal.SIGTERM)
            await until_said(one, "2 clients move")
            assert (await asyncio.to_thread(other.stop))[0] == 0
            await asyncio.sleep(3)  # longer than the part of a drain in which only running requests are answered
            go_on.set()
            assert (await asking)[0]["isError"] is False
            assert await asyncio.to_thread(one.popen.wait, 60) == 0
            assert time.monotonic() - began < 30, "well before the 45 s of the drain"
