"""The clients' connection: asking, answering, losing it, coming back."""

import asyncio
import gc
import itertools
import json
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any

import anyio
import pytest
from aiohttp import web

from a2c_smcp.errors import (
    ConnectionLostError,
    NameTakenError,
    PayloadTooLargeError,
    RequestTimeoutError,
    RoomFullError,
    SMCPError,
    TooManyRequestsError,
    UnauthorizedError,
)
from a2c_smcp.link.connection import ANSWERED_ON
from a2c_smcp.link.interface import (
    Connected,
    Disconnected,
    Joined,
    Left,
    LinkEvent,
    LinkOptions,
    Membership,
    RejoinFailed,
)
from a2c_smcp.link.office_link import OfficeLink
from a2c_smcp.relay.passing import RETRY_SECONDS, Passing
from a2c_smcp.server import APIKeyAuthentication, Limits, OpenAuthentication
from a2c_smcp.smcp import GET_TOOLS_EVENT, LIST_ROOM_EVENT
from a2c_smcp.wire import parse
from tests.computer.fakes.cable import Cable
from tests.server import conftest as servers
from tests.server.harness import DEADLINE, Running, async_server, eventually, say

pytestmark = pytest.mark.parametrize("transport", ["websocket", "polling"])

_offices = itertools.count()

#: A computer here shares its thread with a test: on a busy machine it does not always answer within two seconds.
LIMITS = replace(servers.LIMITS, relay_timeout=60.0)


def places() -> tuple[Membership, Membership]:
    """An agent and a computer in an office of their own: the last test's sessions may not be missed yet."""
    office = f"link-office-{next(_offices)}"
    return Membership("agent", "a", office), Membership("computer", "c", office)


GET_TOOLS = {"agent": "a", "req_id": "1", "computer": "c"}


def options(url: str, transport: Any, **more: Any) -> LinkOptions:
    defaults: dict[str, Any] = {"max_message": LIMITS.max_message, "backoff": (0.05, 0.2), "rejoin_every": 0.05}
    return LinkOptions(url, transport=transport, **{**defaults, **more})


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


async def linked(stack: AsyncExitStack, server: Running, transport: str, handlers: Any = None, **more: Any) -> Any:
    events: list[LinkEvent] = []
    link = await stack.enter_async_context(
        OfficeLink(options(server.url, transport, **more), handlers or {}, on_event=events.append)
    )
    return link, events


@pytest.fixture
def server(open_async_server: Running) -> Running:
    return open_async_server


@pytest.fixture(scope="module")
def open_async_server() -> Any:
    # A test may be late to answer a ping by some seconds. One that is closed without a goodbye is missed all the same.
    with async_server(OpenAuthentication(), LIMITS, ping_interval=2, ping_timeout=10) as running:
        yield running


async def cut(link: OfficeLink, server: Running) -> None:
    """As a cable that is pulled: no word to the server."""
    assert link._connection is not None
    eio = link._connection.eio
    if eio.ws is not None:
        await eio.ws.close()
    else:
        await eio.http.close()
        await miss(server, eio.sid)


async def miss(server: Running, sid: str) -> None:
    """What the server does with a client that polls and has not answered a ping in time, without the wait for it."""
    if (connection := server.sio.connections.get(sid)) is not None:

        async def drop() -> None:
            connection.close("ping timeout")

        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(drop(), connection._loop))


async def test_join_request_answer_leave(stack: AsyncExitStack, server: Running, transport: str) -> None:
    ada, laptop = places()

    async def tools(data: Any) -> Any:
        return {"tools": [], "req_id": data["req_id"], "big": 2**70}

    agent, events = await linked(stack, server, transport)
    computer, _ = await linked(stack, server, transport, {GET_TOOLS_EVENT: tools})
    await agent.join(ada)
    await computer.join(laptop)
    assert await agent.request(GET_TOOLS_EVENT, GET_TOOLS, 60) == ({"tools": [], "req_id": "1", "big": 2**70},)
    await agent.leave()
    await agent.leave()
    assert events == [Connected(server.url), Joined(ada, again=False), Left(ada)]
    assert not agent._asks


async def test_a_refused_join_raises_its_class_and_is_not_remembered(
    stack: AsyncExitStack, server: Running, transport: str
) -> None:
    _, laptop = places()
    one, _ = await linked(stack, server, transport)
    two, _ = await linked(stack, server, transport)
    await one.join(laptop)
    with pytest.raises(NameTakenError):
        await two.join(laptop)
    assert two.membership is None


@pytest.mark.parametrize("turns", [0, 1, 3, 10, 50])
async def test_a_join_that_nobody_waits_for_is_taken_back(
    stack: AsyncExitStack, server: Running, transport: str, turns: int
) -> None:
    ada, _ = places()
    one, events = await linked(stack, server, transport)
    two, _ = await linked(stack, server, transport)
    joining = asyncio.create_task(one.join(ada))
    for _ in range(turns):
        await asyncio.sleep(0)
    if not joining.cancel():
        await one.leave()  # it was quicker
    await asyncio.wait({joining})
    elsewhere, _ = places()
    await one.join(elsewhere)  # after what was under way
    assert (one.membership, one.joined) == (elsewhere, True)
    await two.join(ada)  # nobody has the seat
    assert events[-1] == Joined(elsewhere, again=False)


async def test_a_move_that_nobody_waits_for_is_taken_back(
    stack: AsyncExitStack, server: Running, transport: str
) -> None:
    _, laptop = places()
    _, elsewhere = places()
    one, _ = await linked(stack, server, transport)
    two, _ = await linked(stack, server, transport)
    await one.join(laptop)
    moving = asyncio.create_task(one.join(elsewhere))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    moving.cancel()
    await asyncio.wait({moving})
    await eventually(lambda: not one._attempts)
    assert (one.membership, one.joined) == (laptop, True)
    with pytest.raises(NameTakenError):
        await two.join(laptop)
    await two.join(elsewhere)


async def test_the_way_back_from_a_move_is_tried_again(
    stack: AsyncExitStack, server: Running, transport: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, laptop = places()
    _, elsewhere = places()
    one, events = await linked(stack, server, transport)
    await one.join(laptop)
    join, refused = one._join, list[Membership]()

    async def fail_once(membership: Membership) -> None:
        if membership == laptop and not refused:
            refused.append(membership)
            raise TooManyRequestsError("one too many")
        await join(membership)

    monkeypatch.setattr(one, "_join", fail_once)
    moving = asyncio.create_task(one.join(elsewhere))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    moving.cancel()
    await asyncio.wait({moving})
    await eventually(lambda: refused == [laptop] and one.joined)
    assert one.membership == laptop
    await eventually(lambda: events[-1] == Joined(laptop, again=True))


async def test_a_second_attempt_to_attend_says_so_and_changes_nothing(
    stack: AsyncExitStack, server: Running, transport: str
) -> None:
    ada, _ = places()
    elsewhere, _ = places()
    link, _ = await linked(stack, server, transport)
    await link.join(ada)
    with pytest.raises(RuntimeError, match="call attend once"):
        link.attend(elsewhere)
    assert link.membership == ada


async def test_another_loop_than_its_own_is_refused(stack: AsyncExitStack, server: Running, transport: str) -> None:
    ada, _ = places()
    link, _ = await linked(stack, server, transport)
    for use in (lambda: link.join(ada), lambda: link.request(GET_TOOLS_EVENT, GET_TOOLS, 60), link.open):
        with pytest.raises(RuntimeError, match="opened in another event loop"):
            await asyncio.to_thread(asyncio.run, use())


async def test_an_unknown_event_and_a_failing_handler_are_answered_and_logged_with_their_req_id(
    stack: AsyncExitStack, server: Running, transport: str, caplog: pytest.LogCaptureFixture
) -> None:
    ada, laptop = places()

    async def broken(_: Any) -> Any:
        raise RuntimeError("secret detail")

    agent, _ = await linked(stack, server, transport)
    computer, _ = await linked(stack, server, transport, {GET_TOOLS_EVENT: broken})
    await agent.join(ada)
    await computer.join(laptop)
    (reply,) = await agent.request(GET_TOOLS_EVENT, GET_TOOLS, 60)
    assert reply["error"]["code"] == 500
    assert "secret" not in str(reply)
    (reply,) = await agent.request("client:get_config", {**GET_TOOLS, "req_id": "the second"}, 60)
    assert reply["error"]["code"] == 400
    lines = [record.getMessage() for record in caplog.records if record.name == "a2c_smcp.link.server_link"]
    said = [line for line in lines if "notify:" not in line]
    assert said[0] == "failed to handle client:get_tools, req_id 1"
    assert said[1].startswith("refused client:get_config, req_id the second: 400 Bad Request")


async def test_too_large_is_refused_on_this_side_and_the_connection_lives(
    stack: AsyncExitStack, server: Running, transport: str
) -> None:
    ada, laptop = places()

    async def huge(_: Any) -> Any:
        return {"tools": ["字" * 400_000]}

    agent, _ = await linked(stack, server, transport)
    computer, _ = await linked(stack, server, transport, {GET_TOOLS_EVENT: huge})
    await agent.join(ada)
    await computer.join(laptop)
    with pytest.raises(PayloadTooLargeError):
        await agent.request(GET_TOOLS_EVENT, {**GET_TOOLS, "padding": "字" * 400_000}, 60)
    (reply,) = await agent.request(GET_TOOLS_EVENT, GET_TOOLS, 60)
    assert reply["error"]["code"] == 413
    assert agent.joined
    assert computer.joined


async def test_a_request_has_a_deadline(stack: AsyncExitStack, server: Running, transport: str) -> None:
    ada, laptop = places()

    async def never(_: Any) -> Any:
        await asyncio.sleep(5)

    agent, _ = await linked(stack, server, transport)
    computer, _ = await linked(stack, server, transport, {GET_TOOLS_EVENT: never})
    await agent.join(ada)
    await computer.join(laptop)
    with pytest.raises(RequestTimeoutError):
        await agent.request(GET_TOOLS_EVENT, GET_TOOLS, 0.2)
    assert not agent._asks


async def test_a_lost_connection_fails_what_is_pending_at_once_and_joins_again(
    stack: AsyncExitStack, server: Running, transport: str
) -> None:
    ada, laptop = places()
    called = asyncio.Event()

    async def never(_: Any) -> Any:
        called.set()
        await asyncio.sleep(5)

    agent, events = await linked(stack, server, transport)
    computer, _ = await linked(stack, server, transport, {GET_TOOLS_EVENT: never})
    await agent.join(ada)
    await computer.join(laptop)
    failures: list[BaseException] = []

    async def ask() -> None:
        try:
            await agent.request(GET_TOOLS_EVENT, GET_TOOLS, 30)
        except SMCPError as error:
            failures.append(error)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await called.wait()
        await cut(agent, server)
    assert isinstance(failures[0], ConnectionLostError)
    await eventually(lambda: Joined(ada, again=True) in events)
    listing = {"agent": "a", "req_id": "1", "office_id": ada.office_id}
    (reply,) = await agent.request(LIST_ROOM_EVENT, listing, 60)
    assert len(reply["sessions"]) == 2


async def test_a_cut_is_noticed_on_both_sides_at_once(stack: AsyncExitStack, transport: str) -> None:
    """By long polling, too: a poll that was cut off is not sent again with what was in its answer lost, and the server
    does not keep the old session, and its name, until the ping timeout.
    """
    ada, laptop = places()
    called = asyncio.Event()

    async def never(_: Any) -> Any:
        called.set()
        await asyncio.sleep(300)

    with async_server(OpenAuthentication(), LIMITS, ping_interval=300, ping_timeout=300) as quiet:
        cable = await stack.enter_async_context(Cable(quiet.url))
        agent, _ = await linked(stack, quiet, transport)
        events: list[LinkEvent] = []
        handlers = {GET_TOOLS_EVENT: never}
        computer = OfficeLink(options(cable.url, transport), handlers, on_event=events.append)
        await stack.enter_async_context(computer)
        await agent.join(ada)
        await computer.join(laptop)

        def has_joined(times: int) -> bool:
            return events.count(Joined(laptop, again=True)) == times

        for times in (1, 2, 3):
            called.clear()
            pending = asyncio.create_task(agent.request(GET_TOOLS_EVENT, GET_TOOLS, 200))
            with anyio.fail_after(DEADLINE):
                await called.wait()
                await cable.cut()
                (reply,) = await pending
            assert reply["error"]["code"] == 404
            await eventually(partial(has_joined, times))
        await stack.aclose()


async def test_a_result_that_comes_after_the_connection_dropped_is_not_acked_on_the_next(
    stack: AsyncExitStack, server: Running, transport: str
) -> None:
    ada, laptop = places()
    release = asyncio.Event()
    calls: list[str] = []

    async def slow(data: Any) -> Any:
        calls.append(data["req_id"])
        if data["req_id"] == "old":
            await release.wait()
        return {"tools": [], "req_id": data["req_id"]}

    agent, _ = await linked(stack, server, transport)
    computer, events = await linked(stack, server, transport, {GET_TOOLS_EVENT: slow})
    await agent.join(ada)
    await computer.join(laptop)
    replies: list[Any] = []

    async def ask_old() -> None:
        replies.append((await agent.request(GET_TOOLS_EVENT, {**GET_TOOLS, "req_id": "old"}, 120))[0])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask_old)
        await eventually(lambda: calls == ["old"])
        await cut(computer, server)
    # The server noticed, or the next session took its place: either way not the answer of another call.
    assert replies[0]["error"]["code"] == 404
    await eventually(lambda: Joined(laptop, again=True) in events)
    release.set()
    (reply,) = await agent.request(GET_TOOLS_EVENT, {**GET_TOOLS, "req_id": "new"}, 60)
    assert reply["req_id"] == "new"


async def test_it_comes_back_after_the_server_was_restarted(transport: str) -> None:
    _, laptop = places()
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]
    events: list[LinkEvent] = []
    with async_server(OpenAuthentication(), LIMITS, port=port) as server:
        link = OfficeLink(options(server.url, transport), {}, on_event=events.append)
        await link.open()
        await link.join(laptop)
    try:
        await eventually(lambda: any(isinstance(event, Disconnected) for event in events))
        assert not link.connected
        with pytest.raises(ConnectionLostError):
            await link.request(GET_TOOLS_EVENT, GET_TOOLS, 1)
        with async_server(OpenAuthentication(), LIMITS, port=port):
            await eventually(lambda: Joined(laptop, again=True) in events)
            assert link.joined
    finally:
        await link.close()


async def test_one_that_attends_is_there_before_its_server_and_after_it(transport: str) -> None:
    """The first connection is tried for as often as every later one."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    agent, _ = places()
    events: list[LinkEvent] = []
    link = OfficeLink(options(f"http://127.0.0.1:{port}", transport), {}, on_event=events.append)
    link.attend(agent)
    try:
        await eventually(lambda: link.problem is not None)
        assert f"cannot connect to http://127.0.0.1:{port}" in str(link.problem)
        assert not link.joined
        for again in (False, True):
            with async_server(OpenAuthentication(), LIMITS, port=port):
                await eventually(lambda: link.joined)
                assert link.problem is None
                assert events[-1] == Joined(agent, again=again)
            await eventually(lambda: link.problem is not None)
    finally:
        await link.close()


async def test_one_that_attends_is_not_put_off_by_a_refusal(
    stack: AsyncExitStack, server: Running, transport: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(RETRY_SECONDS, Passing.BY_A_PERSON, 0.05)
    agent, _ = places()
    other, _ = await linked(stack, server, transport)
    await other.join(agent)
    link = OfficeLink(options(server.url, transport), {})
    link.attend(agent)
    try:
        await eventually(lambda: isinstance(link.problem, RoomFullError))
        await other.close()
        await eventually(lambda: link.joined)
    finally:
        await link.close()
    with async_server(APIKeyAuthentication(["right"]), LIMITS) as running:
        events: list[LinkEvent] = []
        link = OfficeLink(options(running.url, transport, api_key="wrong"), {}, on_event=events.append)
        link.attend(agent)
        try:
            await eventually(lambda: len(events) >= 2)
            assert {type(event) for event in events} == {Disconnected}
            assert not any(event.final for event in events if isinstance(event, Disconnected))
            assert isinstance(link.problem, UnauthorizedError)
        finally:
            await link.close()


async def test_leaving_while_it_joins_again_leaves(stack: AsyncExitStack, server: Running, transport: str) -> None:
    member = Membership("computer", "c", f"leaving-{transport}")
    link, events = await linked(stack, server, transport)
    await link.join(member)
    connection = link._connection
    await cut(link, server)
    with anyio.fail_after(20):
        while link._connection in (None, connection) or not link._asks:  # noqa: ASYNC110 - this very moment
            await asyncio.sleep(0)
    await link.leave()
    assert not link.joined
    assert link.membership is None
    assert events[-1] == Left(member)


async def test_a_join_elsewhere_ends_the_attempts_to_join_again(
    stack: AsyncExitStack, server: Running, transport: str
) -> None:
    member = Membership("computer", "c", f"moving-{transport}")
    link, events = await linked(stack, server, transport, rejoin_report_after=0.1)
    await link.join(member)
    thief, _ = await linked(stack, server, transport)
    link.membership = Membership("computer", "thief", member.office_id)
    await thief.join(link.membership)
    await cut(link, server)
    await eventually(lambda: any(isinstance(event, RejoinFailed) for event in events))
    elsewhere = Membership("computer", "c", f"elsewhere-{transport}")
    await link.join(elsewhere)
    await asyncio.sleep(0.2)  # several attempts' time
    assert events[-1] == Joined(elsewhere, again=False)
    assert link.joined


async def test_one_that_does_not_come_back_by_itself_can_be_opened_again(
    stack: AsyncExitStack, server: Running, transport: str
) -> None:
    link, events = await linked(stack, server, transport, reconnect=False)
    await cut(link, server)
    await eventually(lambda: any(isinstance(event, Disconnected) and event.final for event in events))
    await eventually(lambda: not link._supervisor.is_running)
    await link.open()
    assert link.connected


async def test_a_listener_that_fails_does_not_end_the_connection(
    server: Running, transport: str, caplog: pytest.LogCaptureFixture
) -> None:
    events: list[LinkEvent] = []

    def fail(event: LinkEvent) -> None:
        events.append(event)
        raise RuntimeError("not our code")

    _, laptop = places()
    async with OfficeLink(options(server.url, transport), {}, on_event=fail) as link:
        await link.join(laptop)
        await cut(link, server)
        await eventually(lambda: Joined(laptop, again=True) in events)
        assert link.joined
    assert "a listener failed to take Connected" in caplog.text


async def test_a_name_that_its_old_session_still_holds_is_tried_for_again_and_reported(
    stack: AsyncExitStack, server: Running, transport: str
) -> None:
    _, laptop = places()
    held, events = await linked(stack, server, transport, rejoin_report_after=0.2)
    await held.join(laptop)
    # Someone else takes the name in the moment of the drop, as an old session would hold it.
    thief, _ = await linked(stack, server, transport)
    held.membership = Membership("computer", "thief", laptop.office_id)
    await thief.join(held.membership)
    await cut(held, server)
    report = await eventually(lambda: next((e for e in events if isinstance(e, RejoinFailed)), None))
    assert report.error.code == 4105
    assert not report.final
    await thief.leave()
    await eventually(lambda: Joined(held.membership, again=True) in events)


async def test_a_connection_that_is_not_waited_for_any_more_leaves_nothing_behind(
    transport: str, caplog: pytest.LogCaptureFixture
) -> None:
    reached = asyncio.Event()

    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reached.set()
        await reader.read()
        writer.close()

    silent = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
    async with silent:
        url = f"http://127.0.0.1:{silent.sockets[0].getsockname()[1]}"
        opening = asyncio.create_task(OfficeLink(options(url, transport), {}).open())
        await asyncio.wait_for(reached.wait(), DEADLINE)
        opening.cancel()
        await asyncio.wait({opening})
        assert opening.cancelled()
        del opening
        gc.collect()
    assert "never retrieved" not in caplog.text


async def test_a_wrong_key_is_a_refusal_and_a_dead_server_is_not(transport: str) -> None:
    with async_server(APIKeyAuthentication(["right"]), LIMITS) as server:
        with pytest.raises(SMCPError) as caught:
            await OfficeLink(options(server.url, transport, api_key="wrong"), {}).open()
        assert caught.value.code == 401
        assert "wrong" not in str(caught.value)
        async with OfficeLink(options(server.url, transport, api_key="right"), {}) as link:
            assert link.connected
    with pytest.raises(ConnectionLostError, match=server.url):
        await OfficeLink(options(server.url, transport), {}).open()


@pytest.mark.parametrize("greeting", ["", "x", "4", "0", "0{}", "0[1]", '0{"sid":"s"}'])
async def test_a_greeting_that_makes_no_sense_is_an_error_and_not_a_wait(greeting: str, transport: str) -> None:
    async def greet(request: web.Request) -> web.StreamResponse:
        if transport == "polling":
            return web.Response(text=greeting)
        answer = web.WebSocketResponse()
        await answer.prepare(request)
        await answer.send_str(greeting)
        await answer.receive()
        return answer

    async with serving(greet) as url:
        with anyio.fail_after(20), pytest.raises(ConnectionLostError, match=url):
            await OfficeLink(options(url, transport), {}).open()


@asynccontextmanager
async def puppet(transport: str) -> AsyncIterator[tuple[str, asyncio.Queue[str], list[str]]]:
    """A server that says what it is told to, and records what it hears; acks of joins included."""
    to_say: asyncio.Queue[str] = asyncio.Queue()
    heard: list[str] = []
    greeting = {"sid": "s", "upgrades": [], "pingInterval": 20000, "pingTimeout": 20000, "maxPayload": 10**6}

    def hear(text: str) -> None:
        heard.append(text)
        if text.startswith("40/smcp"):
            to_say.put_nowait('40/smcp,{"sid":"t"}')
        elif text.startswith("42/smcp,") and "join_office" in text:
            ack_id = text.removeprefix("42/smcp,").partition("[")[0]
            to_say.put_nowait(f"43/smcp,{ack_id}[true,null]")

    async def poll(request: web.Request) -> web.StreamResponse:
        if "sid" not in request.query:
            return web.Response(text="0" + json.dumps(greeting))
        if request.method == "POST":
            for text in (await request.text()).split("\x1e"):
                hear(text)
            return web.Response(text="ok")
        return web.Response(text=await to_say.get())

    async def socket(request: web.Request) -> web.StreamResponse:
        answer = web.WebSocketResponse()
        await answer.prepare(request)
        await answer.send_str("0" + json.dumps(greeting))

        async def speak() -> None:
            while True:
                text = await to_say.get()
                await (answer.send_bytes(b"bytes") if text == "BYTES" else answer.send_str(text))

        speaking = asyncio.create_task(speak())
        try:
            async for message in answer:
                hear(message.data)
        finally:
            speaking.cancel()
        return answer

    async with serving(poll if transport == "polling" else socket) as url:
        yield url, to_say, heard


@pytest.mark.parametrize(
    "nonsense",
    [
        "4",
        "4x",
        "42/smcp,{",
        '42/smcp,{"a":1}',
        "42/smcp,[]",
        "42/smcp,5",
        "43/smcp,1",
        "43/smcp,1{",
        "43/smcp,999[]",
        "43/smcp,[]",
        "42/other,[7]",
        "47",
        "42/smcp," + "9" * 200 + "[]",
    ],
)
async def test_a_message_that_makes_no_sense_is_ignored_and_the_connection_lives(nonsense: str, transport: str) -> None:
    async def tools(data: Any) -> Any:
        return {"heard": data}

    async with (
        puppet(transport) as (url, to_say, heard),
        OfficeLink(options(url, transport), {GET_TOOLS_EVENT: tools}) as link,
    ):
        to_say.put_nowait(nonsense)
        to_say.put_nowait(f'42/smcp,7["{GET_TOOLS_EVENT}",{{"n":1}}]')
        await eventually(lambda: '43/smcp,7[{"heard":{"n":1}}]' in heard)
        assert link.connected


@pytest.mark.parametrize("name", ["5", "null", "[1]", "{}"])
async def test_an_event_whose_name_is_no_text_is_answered_with_400(name: str, transport: str) -> None:
    async with puppet(transport) as (url, to_say, heard), OfficeLink(options(url, transport), {}):
        to_say.put_nowait(f"42/smcp,8[{name},{{}}]")
        await eventually(lambda: any(text.startswith("43/smcp,8") and '"code":400' in text for text in heard))


async def test_an_ack_with_bytes_is_an_error_and_an_event_with_bytes_is_answered_with_one(transport: str) -> None:
    said = "bMTIz" if transport == "polling" else "BYTES"
    async with (
        puppet(transport) as (url, to_say, heard),
        OfficeLink(options(url, transport), {GET_TOOLS_EVENT: _echo}) as link,
    ):
        asking = asyncio.create_task(link.request(GET_TOOLS_EVENT, {}, 60))
        await eventually(lambda: any(GET_TOOLS_EVENT in text for text in heard))
        ack_id = next(text for text in heard if GET_TOOLS_EVENT in text).removeprefix("42/smcp,").partition("[")[0]
        for text in (f'461-/smcp,{ack_id}[{{"_placeholder":true,"num":0}}]', said):
            to_say.put_nowait(text)
        (reply,) = await asking
        assert reply["error"]["code"] == 400
        for text in (f'451-/smcp,9["{GET_TOOLS_EVENT}",{{"_placeholder":true,"num":0}}]', said):
            to_say.put_nowait(text)
        await eventually(lambda: any(text.startswith("43/smcp,9") and '"code":400' in text for text in heard))


async def _echo(data: Any) -> Any:
    return parse(GET_TOOLS_EVENT, data)


async def test_acks_and_events_are_taken_in_the_order_of_their_arrival(transport: str) -> None:
    order: list[str] = []

    async def note(data: Any) -> Any:
        order.append(f"event {data['n']}")
        return {}

    async with (
        puppet(transport) as (url, to_say, heard),
        OfficeLink(options(url, transport), {GET_TOOLS_EVENT: note}) as link,
    ):

        async def ask(number: int) -> None:
            await link.request("ask", {"n": number}, 60)
            order.append(f"ack {number}")

        asking = [asyncio.create_task(ask(number)) for number in range(3)]
        await eventually(lambda: sum('"ask"' in text for text in heard) == 3)
        ids = [text.removeprefix("42/smcp,").partition("[")[0] for text in heard if '"ask"' in text]
        for number, ack_id in enumerate(ids):
            to_say.put_nowait(f'42/smcp,["{GET_TOOLS_EVENT}",{{"n":{number}}}]')
            to_say.put_nowait(f"43/smcp,{ack_id}[{{}}]")
        await asyncio.gather(*asking)
        assert [item for item in order if item.startswith("ack")] == ["ack 0", "ack 1", "ack 2"]
        assert [item for item in order if item.startswith("event")] == ["event 0", "event 1", "event 2"]


async def test_an_ack_that_comes_late_answers_no_other_request(transport: str) -> None:
    ids: list[str] = []

    async def ask(link: OfficeLink, heard: list[str]) -> asyncio.Task[tuple[Any, ...]]:
        asking = asyncio.create_task(link.request("ask", {}, 60))
        asked = await eventually(lambda: next((text for text in heard if '"ask"' in text), None))
        ids.append(asked.removeprefix("42/smcp,").partition("[")[0])
        return asking

    async with puppet(transport) as (url, _, heard), OfficeLink(options(url, transport), {}) as link:
        before = await ask(link, heard)
    with pytest.raises(ConnectionLostError):
        await before
    async with puppet(transport) as (url, to_say, heard), OfficeLink(options(url, transport), {}) as link:
        now = await ask(link, heard)
        to_say.put_nowait(f'43/smcp,{ids[0]}["for a request of the connection before"]')
        to_say.put_nowait(f'43/smcp,{ids[1]}["right"]')
        assert await now == ("right",)


@asynccontextmanager
async def deaf() -> AsyncIterator[str]:
    """A server that greets, and then reads nothing any more."""
    greeting = {"sid": "s", "upgrades": [], "pingInterval": 60000, "pingTimeout": 60000, "maxPayload": 2**26}

    async def socket(request: web.Request) -> web.StreamResponse:
        answer = web.WebSocketResponse()
        await answer.prepare(request)
        await answer.send_str("0" + json.dumps(greeting))
        await answer.receive()
        assert request.transport is not None
        request.transport.pause_reading()
        await answer.send_str('40/smcp,{"sid":"t"}')
        await asyncio.sleep(60)
        return answer

    async with serving(socket) as url:
        yield url


async def test_a_request_has_its_deadline_although_the_server_does_not_read_it(transport: str) -> None:
    if transport == "polling":
        pytest.skip("by polling a message waits in a queue until it is posted")
    large = {"text": "x" * 30_000_000}  # the buffers of the system do not hold it
    async with deaf() as url, OfficeLink(options(url, transport, max_message=2**26), {}) as link:
        patient = asyncio.create_task(link.request("ask", {}, 60))
        with anyio.fail_after(30), pytest.raises(RequestTimeoutError, match="did not take ask within"):
            await link.request("ask", large, 0.3)
        assert not link._stuck
        task = asyncio.current_task()
        assert task is not None
        assert not task.cancelling()
        waiting = asyncio.create_task(link.request("ask", large, 60))
        await asyncio.sleep(0.1)
        waiting.cancel()
        with anyio.fail_after(30), pytest.raises(asyncio.CancelledError):
            await waiting
        assert not patient.done()
        assert len(link._asks) == 1
        patient.cancel()


async def test_closing_ends_an_open_that_still_waits(transport: str) -> None:
    called = asyncio.Event()

    async def silent(_: web.Request) -> web.StreamResponse:
        called.set()
        await asyncio.sleep(60)
        return web.Response()

    async with serving(silent) as url:
        link = OfficeLink(options(url, transport, connect_timeout=60), {})
        opening = asyncio.create_task(link.open())
        await called.wait()
        await link.close()
        with anyio.fail_after(20), pytest.raises(ConnectionLostError):
            await opening


@asynccontextmanager
async def serving(handler: Any) -> AsyncIterator[str]:
    """Something else than a server of ours where one is expected."""
    app = web.Application()
    app.router.add_route("*", "/socket.io/", handler)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def test_closing_leaves_no_task(server: Running, transport: str) -> None:
    before = asyncio.all_tasks()
    async with OfficeLink(options(server.url, transport), {}) as link:
        await link.join(places()[1])
    await link.close()
    await eventually(lambda: asyncio.all_tasks() <= before)


@pytest.mark.parametrize("url", ["http://me:hunter2@127.0.0.1:1", "http://127.0.0.1:1/?token=hunter2"])
async def test_a_secret_in_the_url_is_not_in_the_error(url: str, transport: str) -> None:
    with pytest.raises(ConnectionLostError, match=r"127\.0\.0\.1:1") as caught:
        await OfficeLink(options(url, transport), {}).open()
    assert "hunter2" not in str(caught.value)


def test_a_key_is_not_in_a_repr(transport: str) -> None:
    assert "hunter2" not in repr(LinkOptions("http://h", api_key="hunter2", headers={"a": "hunter2"}))


def test_limits_agree(transport: str) -> None:
    assert Limits().max_message == LinkOptions("http://h").max_message


async def test_a_client_that_closes_is_missed_at_once(transport: str) -> None:
    # Pings that would not tell for a minute.
    with async_server(OpenAuthentication(), LIMITS, ping_interval=60, ping_timeout=60) as server:
        for _ in range(10):
            async with OfficeLink(options(server.url, transport), {}) as link:
                await link.join(places()[1])
            await eventually(lambda: server.namespace.registry.counts().sessions == 0, 40)


async def test_leaving_without_a_connection_forgets_the_office(server: Running, transport: str) -> None:
    _, laptop = places()
    link = OfficeLink(options(server.url, transport), {})
    await link.open()
    await link.join(laptop)
    await link.close()
    await link.leave()
    assert link.membership is None


# --- moving to another connection when the server is about to stop


async def tell_to_move(server: Running, link: OfficeLink, within: float = 60.0) -> None:
    assert link._connection is not None
    sid = link._connection.get_sid("/smcp")
    say(server, sid, "notify:moving", {"within": within})


async def test_a_client_that_is_told_to_moves_and_running_calls_are_answered_where_they_came(
    stack: AsyncExitStack, server: Running, transport: str
) -> None:
    ada, laptop = places()
    asked: list[Any] = []
    go_on = asyncio.Event()

    async def tools(data: Any) -> Any:
        asked.append((computer._connection, ANSWERED_ON.get()))
        if data["req_id"] == "slow":
            await go_on.wait()
        return {"tools": [], "req_id": data["req_id"]}

    agent, events = await linked(stack, server, transport)
    computer, heard = await linked(stack, server, transport, {GET_TOOLS_EVENT: tools})
    await agent.join(ada)
    await computer.join(laptop)
    slow = asyncio.create_task(agent.request(GET_TOOLS_EVENT, {**GET_TOOLS, "req_id": "slow"}, 60))
    await eventually(lambda: asked)
    first = (agent._connection, computer._connection)
    for link in (agent, computer):
        await tell_to_move(server, link)
    await eventually(lambda: agent._connection is not first[0] and computer._connection is not first[1])
    assert (await agent.request(GET_TOOLS_EVENT, GET_TOOLS, 60))[0]["req_id"] == "1"
    assert asked[1] == (computer._connection, computer._connection)
    assert not slow.done()
    go_on.set()
    assert (await slow)[0]["req_id"] == "slow"
    assert asked[0] == (first[1], first[1])
    await eventually(lambda: all(each.dropped.done() for each in first))
    assert events == [Connected(server.url), Joined(ada, again=False)]
    assert heard == [Connected(server.url), Joined(laptop, again=False)]
    assert not agent._asks


async def test_closing_a_client_that_has_just_moved_closes_both_connections(server: Running, transport: str) -> None:
    ada, _ = places()
    async with OfficeLink(options(server.url, transport), {}) as link:
        await link.join(ada)
        first = link._connection
        await tell_to_move(server, link)
        await eventually(lambda: link._connection is not first)
        second = link._connection
    assert first is not None and second is not None
    assert not first.connected and not second.connected
    await eventually(lambda: not server.namespace.registry.members(ada.office_id))


async def test_a_client_that_cannot_move_in_time_stays_where_it_is(transport: str) -> None:
    ada, _ = places()
    events: list[LinkEvent] = []
    with async_server(OpenAuthentication(), replace(LIMITS, connections_per_address=1)) as server:
        async with OfficeLink(options(server.url, transport), {}, on_event=events.append) as link:
            await link.join(ada)
            first = link._connection
            await tell_to_move(server, link, within=0.5)
            assert first is not None
            await first.told_to_move
            await asyncio.sleep(1)  # it has tried until then
            assert link.joined and link._connection is first
            await link.leave()
    assert [type(event) for event in events] == [Connected, Joined, Left, Disconnected]


async def test_a_link_is_closed_although_other_code_swallows_the_cancellation(server: Running, transport: str) -> None:
    is_waiting, told = asyncio.Event(), list[LinkEvent]()

    async def deaf() -> str:
        """As `asyncio.wait_for` of Python 3.11, when the answer comes at the same moment."""
        is_waiting.set()
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return "secret"

    link = OfficeLink(options(server.url, transport, api_key=deaf), {}, on_event=told.append)
    opening = asyncio.create_task(link.open())
    await asyncio.wait_for(is_waiting.wait(), DEADLINE)
    opening.cancel()
    done, _ = await asyncio.wait({opening}, timeout=DEADLINE)
    assert done and opening.cancelled() and not told
