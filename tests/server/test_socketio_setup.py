"""What the libraries' sockets do with hostile, large, slow and late messages, and that others keep working."""

import asyncio
import logging
import threading
import time
from typing import Any

import anyio
import anyio.to_thread
import pytest
import socketio

from a2c_smcp.server import (
    APIKeyAuthentication,
    Limits,
    OpenAuthentication,
    SyncOpenAuthentication,
    SyncSMCPNamespace,
    sync_server_options,
)
from tests.server.conftest import LIMITS, MakePeer
from tests.server.harness import AsyncPeer, Peer, Running, async_server, eventually, heard
from tests.server.raw import raw_websocket, receive_until, send_text


async def join(peer: Peer, role: str, name: str, office: str) -> Any:
    return await peer.call("server:join_office", {"role": role, "name": name, "office_id": office})


async def assert_works(peer: Peer, office: str) -> None:
    reply = await peer.call("server:list_room", {"agent": "a", "req_id": "1", "office_id": office})
    assert reply["sessions"]


@pytest.mark.parametrize("transport", ["websocket", "polling"])
async def test_binary_is_answered_with_400(server: Running, office: str, make_peer: MakePeer, transport: str) -> None:
    agent = await make_peer(server)
    await join(agent, "agent", "a", office)
    # A client with the library's own packets, which can carry bytes.
    peer = AsyncPeer(serializer="default")
    try:
        await peer.connect(server.url, transports=[transport])
        reply = await peer.call("client:tool_call", {"params": {"data": b"\x00\x01"}})
        assert reply["error"]["code"] == 400
        assert "binary" in reply["error"]["message"]
        await assert_works(agent, office)
    finally:
        await peer.disconnect()


async def test_a_message_over_the_limit_closes_its_sender_alone_with_a_log_line(
    own_server: Running, office: str, make_peer: MakePeer, caplog: pytest.LogCaptureFixture
) -> None:
    agent, other = await make_peer(own_server), await make_peer(own_server)
    await join(agent, "agent", "a", office)
    with caplog.at_level(logging.WARNING):
        await other.emit("server:update_config", {"computer": "x" * (LIMITS.max_message + 10)})
        await eventually(lambda: not other.connected)
        await eventually(lambda: "more than 1000000 bytes" in caplog.text)
    await assert_works(agent, office)


async def test_a_request_too_large_for_the_computer_is_413(server: Running, office: str, make_peer: MakePeer) -> None:
    agent, computer = await make_peer(server), await make_peer(server)
    await join(agent, "agent", "a", office)
    await join(computer, "computer", "c", office)
    await eventually(lambda: heard(agent, "notify:enter_office"))  # another process may hear of it later
    request = {"agent": "a", "req_id": "1", "computer": "c", "uri": ""}
    # The server's ack id is longer than the client's, so a message just under the limit grows over it on the way.
    overhead = len('42/smcp,1["client:read_resource",{"agent":"a","req_id":"1","computer":"c","uri":""}]') + 1
    reply = await agent.call("client:read_resource", {**request, "uri": "x" * (LIMITS.max_message - overhead - 3)})
    assert reply["error"]["code"] == 413
    await eventually(lambda: server.namespace.pending_relays == 0)
    assert computer.connected
    await assert_works(agent, office)


@pytest.mark.parametrize(
    "frame",
    [
        "",
        "x",
        "9",
        "4",
        "4x",
        "42/smcp,{",
        '42/smcp,["a"',
        '42/smcp,{"a":1}',
        "42/smcp,[]",
        "42/smcp,5",
        '42/smcp,[{"a":1},2]',
        "42/smcp,1[7]",
        '43/smcp,999["ack of nothing"]',
        "43/smcp,0[]",
        "44/smcp,[]",
        "451-/other,[]",
        "4" + "7" * 90,
    ],
)
async def test_a_frame_that_makes_no_sense_harms_nobody_else(
    open_async_server: Running, office: str, make_peer: MakePeer, frame: str, caplog: pytest.LogCaptureFixture
) -> None:
    agent = await make_peer(open_async_server)
    await join(agent, "agent", "a", office)

    def blocking() -> None:
        with raw_websocket(open_async_server.url) as sock:
            receive_until(sock, b'"sid"')
            send_text(sock, "40/smcp,")
            receive_until(sock, b"40/smcp")
            send_text(sock, frame)
            send_text(sock, '42/smcp,7["client:dance",{}]')
            receive_until(sock, b"43/smcp,7", b"400")

    await anyio.to_thread.run_sync(blocking)
    await assert_works(agent, office)


@pytest.mark.parametrize(
    ("says", "stays"),
    [
        ((), False),
        (("40/nowhere,",), False),
        (("40",), False),
        (('40/smcp,{"token":"wrong"}',), False),
        (('40/smcp,{"token":"right"}', "41/smcp,"), False),
        (('40/smcp,{"token":"right"}',), True),
    ],
    ids=["silent", "elsewhere", "default", "refused", "left", "joined"],
)
async def test_a_connection_that_is_in_no_namespace_is_closed_in_time(
    says: tuple[str, ...], stays: bool, caplog: pytest.LogCaptureFixture
) -> None:
    # Who has something to say is given the time for it; its time is short from then on.
    limits = Limits(connect_timeout=60 if says else 0.3)
    pings: dict[str, Any] = {"ping_interval": 20.0, "ping_timeout": 0.5}
    with async_server(APIKeyAuthentication(["right"]), limits, **pings) as running:

        def stays_open() -> bool:
            with raw_websocket(running.url) as sock:
                receive_until(sock, b'"sid"')
                for text in says:
                    send_text(sock, text)
                    if text.startswith("40"):
                        receive_until(sock, b"40/smcp" if "right" in text else b"44")
                if says:
                    (connection,) = running.sio.connections.values()
                    connection.session.join_by = time.monotonic() + 0.3  # the loop's clock
                    connection._loop.call_soon_threadsafe(connection._set_timer)
                sock.settimeout(3 if stays else 30)
                try:
                    while data := sock.recv(1000):
                        if b"\x88" in data:  # the close frame, which a polite peer would answer
                            return False
                except TimeoutError:
                    # Not by the log: other servers of this process write into it, too.
                    return bool(connection in running.sio.connections.values() and connection.is_open)
                except OSError:
                    pass
                return False

        assert await anyio.to_thread.run_sync(stays_open) is stays
        await eventually(lambda: stays or not running.sio.connections)
    assert stays or "joined no namespace" in caplog.text


async def test_an_event_whose_name_is_no_text_is_answered(open_async_server: Running) -> None:
    def blocking() -> None:
        with raw_websocket(open_async_server.url) as sock:
            receive_until(sock, b'"sid"')
            send_text(sock, "40/smcp,")
            receive_until(sock, b"40/smcp")
            send_text(sock, "42/smcp,3[17,{}]")
            receive_until(sock, b"43/smcp,3", b'"code":400')

    await anyio.to_thread.run_sync(blocking)


async def test_an_ack_of_0_does_not_cut_its_computer_off(own_server: Running, office: str, make_peer: MakePeer) -> None:
    agent, computer = await make_peer(own_server), await make_peer(own_server)
    computer.answer("client:get_tools", lambda data: {"tools": [], "req_id": data["req_id"]})
    await join(agent, "agent", "a", office)
    await join(computer, "computer", "c", office)
    await eventually(lambda: heard(agent, "notify:enter_office"))  # another process may hear of it later
    assert isinstance(computer, AsyncPeer)
    for _ in range(2):
        await computer.sio.eio.send("3/smcp,0[]")
    await computer.call("client:dance")  # so that they have arrived
    reply = await agent.call("client:get_tools", {"agent": "a", "req_id": "1", "computer": "c"})
    assert reply == {"tools": [], "req_id": "1"}


async def test_a_late_ack_answers_nothing_but_its_own_call(
    own_server: Running, office: str, make_peer: MakePeer
) -> None:
    """An older client acks on whatever connection it has now."""
    agent = await make_peer(own_server)
    await join(agent, "agent", "a", office)
    ids: list[int] = []

    class Recorder(AsyncPeer):
        async def answer_by_hand(self, ack_id: int, text: str) -> None:
            await self.sio.eio.send(f'3/smcp,{ack_id}[{{"from":"{text}"}}]')

    def recording(peer: Any) -> None:
        handle = peer.sio._handle_event

        async def record(namespace: str, ack_id: int | None, data: Any) -> None:
            if ack_id is None:
                await handle(namespace, ack_id, data)
            else:
                ids.append(ack_id)

        peer.sio._handle_event = record

    request = {"agent": "a", "req_id": "1", "computer": "c"}
    old, new = Recorder(), Recorder()
    for peer in (old, new):
        recording(peer)
    replies: list[Any] = []

    async def ask() -> None:
        replies.append(await agent.call("client:get_tools", request))

    try:
        await old.connect(own_server.url, transports=["websocket"])
        await join(old, "computer", "c", office)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await eventually(lambda: len(ids) == 1)
            await old.disconnect()
        assert replies[0]["error"]["code"] == 404
        await new.connect(own_server.url, transports=["websocket"])
        await join(new, "computer", "c", office)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await eventually(lambda: len(ids) == 2)
            await new.answer_by_hand(ids[0], "the old call")
            await new.answer_by_hand(ids[1], "the new call")
        assert replies[1] == {"from": "the new call"}
        assert ids[0] != ids[1]
    finally:
        await new.disconnect()


class ByHand(AsyncPeer):
    """A computer that acks every request with this text."""

    def __init__(self, body: str) -> None:
        super().__init__()
        handle = self.sio._handle_event

        async def ack(namespace: str, ack_id: int | None, data: Any) -> None:
            if ack_id is None:
                await handle(namespace, ack_id, data)
            else:
                await self.sio.eio.send(f"3/smcp,{ack_id}{body}")

        self.sio._handle_event = ack


GET_TOOLS = {"agent": "a", "req_id": "1", "computer": "c"}


@pytest.mark.parametrize("transport", ["websocket", "polling"])
async def test_an_answer_is_passed_on_as_it_came(
    open_async_server: Running, office: str, make_peer: MakePeer, transport: str
) -> None:
    agent, computer = await make_peer(open_async_server), ByHand(' [ {"n": 123456789012345678901234567890, "x":1.0} ] ')
    said: list[str] = []
    await join(agent, "agent", "a", office)
    assert isinstance(agent, AsyncPeer)
    take = agent.sio._handle_eio_message

    async def overhear(text: str) -> None:
        said.append(text)
        await take(text)

    agent.sio.eio.on("message", overhear)
    try:
        await computer.connect(open_async_server.url, transports=[transport])
        await join(computer, "computer", "c", office)
        assert await agent.call("client:get_tools", GET_TOOLS) == {"n": 123456789012345678901234567890, "x": 1.0}
        assert any(text.endswith('[ {"n": 123456789012345678901234567890, "x":1.0} ]') for text in said)
    finally:
        await computer.disconnect()


@pytest.mark.parametrize("transport", ["websocket", "polling"])
@pytest.mark.parametrize("body", ["", "[", "[]", "{}", " 7", "[7]", "[null, {}]", "[{]", "[NaN]", "[" * 3000])
async def test_an_ack_that_is_no_answer_ends_its_relay_at_once(
    server: Running, office: str, make_peer: MakePeer, body: str, transport: str
) -> None:
    agent, computer = await make_peer(server), ByHand(body)
    await join(agent, "agent", "a", office)
    try:
        await computer.connect(server.url, transports=[transport])
        await join(computer, "computer", "c", office)
        reply = await agent.call("client:get_tools", GET_TOOLS)
        assert reply["error"]["code"] == 500  # and not 408
        assert computer.connected
        assert server.namespace.pending_relays == 0
    finally:
        await computer.disconnect()


async def test_an_ack_with_more_than_one_argument_answers_with_the_first(
    server: Running, office: str, make_peer: MakePeer
) -> None:
    agent, computer = await make_peer(server), ByHand('[{"n":123456789012345678901234567890},2]')
    await join(agent, "agent", "a", office)
    try:
        await computer.connect(server.url, transports=["websocket"])
        await join(computer, "computer", "c", office)
        assert await agent.call("client:get_tools", GET_TOOLS) == {"n": 123456789012345678901234567890}
    finally:
        await computer.disconnect()


async def test_a_reader_that_falls_behind_is_disconnected_and_the_others_are_not(make_peer: MakePeer) -> None:
    limits = Limits(queued_bytes=2_000_000)
    with async_server(OpenAuthentication(), limits) as server:
        await _slow_reader(server, make_peer)


async def _slow_reader(server: Running, make_peer: MakePeer) -> None:
    agent = await make_peer(server)
    await join(agent, "agent", "a", "o")
    stop = threading.Event()

    def never_reads() -> None:
        with raw_websocket(server.url) as sock:
            receive_until(sock, b'"sid"')
            send_text(sock, "40/smcp,")
            receive_until(sock, b"40/smcp")
            send_text(sock, '42/smcp,1["server:join_office",{"role":"computer","name":"slow","office_id":"o"}]')
            receive_until(sock, b"43/smcp,1")
            stop.wait(90)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(anyio.to_thread.run_sync, never_reads)
        try:
            await eventually(lambda: heard(agent, "notify:enter_office"))
            large = {"agent": "\1" * 1000, "req_id": "\1" * 1000}  # 12,000 characters of JSON
            with anyio.fail_after(60):
                while not heard(agent, "notify:leave_office"):
                    for _ in range(50):
                        await agent.emit("server:tool_call_cancel", large)
                    await agent.call("server:tool_call_cancel", large)
        finally:
            stop.set()
    assert heard(agent, "notify:leave_office") == [{"office_id": "o", "computer": "slow"}]
    await assert_works(agent, "o")


async def test_a_request_that_does_not_fit_is_429_and_its_slow_computer_stays(
    make_peer: MakePeer, caplog: pytest.LogCaptureFixture
) -> None:
    limits = Limits(queued_bytes=2_000_000, max_message=1_000_000, relay_timeout=120)
    pings: dict[str, Any] = {"ping_interval": 60.0, "ping_timeout": 60.0}
    reads, read, end = threading.Event(), threading.Event(), threading.Event()

    def reads_late(url: str) -> None:
        with raw_websocket(url) as sock:
            receive_until(sock, b'"sid"')
            send_text(sock, "40/smcp,")
            receive_until(sock, b"40/smcp")
            send_text(sock, '42/smcp,1["server:join_office",{"role":"computer","name":"slow","office_id":"o"}]')
            receive_until(sock, b"43/smcp,1")
            reads.wait(60)
            receive_until(sock, b"the last one")
            read.set()
            end.wait(60)

    with async_server(OpenAuthentication(), limits, **pings) as running:
        agent = await make_peer(running)
        await join(agent, "agent", "a", "o")
        assert isinstance(agent, AsyncPeer)
        codes: list[int] = []

        async def ask(uri: str) -> None:
            request = {"agent": "a", "req_id": "1", "computer": "slow", "uri": uri}
            reply = await agent.call("client:read_resource", request, timeout=60)
            codes.append(reply["error"]["code"])

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.to_thread.run_sync, reads_late, running.url)
            try:
                await eventually(lambda: heard(agent, "notify:enter_office"), 30)
                with anyio.fail_after(60):
                    while 429 not in codes:
                        tasks.start_soon(ask, "x" * 900_000)
                        await agent.call("client:dance")  # the request has arrived
                # There is room for what is said to everybody, and the computer is still there to hear it.
                for n in range(200):
                    assert await agent.call("server:tool_call_cancel", {"agent": "a", "req_id": str(n)}) == {}
                assert heard(agent, "notify:leave_office") == []
                reads.set()
                with anyio.fail_after(60):
                    while not read.is_set():
                        tasks.start_soon(ask, "the last one")
                        await anyio.sleep(0.1)
                assert heard(agent, "notify:leave_office") == []
            finally:
                reads.set()
                end.set()
    assert set(codes) == {429, 404}  # refused, and unanswered when the computer went in the end
    assert "fell behind" not in caplog.text


async def test_mounted_in_a_plain_server_of_the_users_own(make_peer: MakePeer, office: str) -> None:
    """Nothing of ours but the namespace: the library's packets, its manager, its limits."""
    import uvicorn

    from a2c_smcp.server import SMCPNamespace
    from tests.server.harness import serving

    namespace = SMCPNamespace(OpenAuthentication())
    sio = socketio.AsyncServer(async_mode="asgi")
    sio.register_namespace(namespace)
    config = uvicorn.Config(socketio.ASGIApp(sio), log_config=None, lifespan="off", ws="websockets-sansio")
    with serving(config) as url:
        running = Running(url, namespace, sio)
        agent = await make_peer(running)
        computers = [
            await make_peer(
                running, setup=lambda peer: peer.answer("client:get_tools", lambda data: {"for": data["computer"]})
            )
            for _ in range(3)
        ]
        await join(agent, "agent", "a", office)
        for n, computer in enumerate(computers):
            await join(computer, "computer", f"c{n}", office)
        await eventually(lambda: len(heard(agent, "notify:enter_office")) == 3)
        for n in range(3):
            reply = await agent.call("client:get_tools", {"agent": "a", "req_id": "1", "computer": f"c{n}"})
            assert reply == {"for": f"c{n}"}
        assert (await agent.call("client:dance", {}))["error"]["code"] == 400


async def test_notifications_of_a_large_office_arrive_in_order(make_peer: MakePeer) -> None:
    with async_server(OpenAuthentication()) as server:
        peers = [await make_peer(server) for _ in range(80)]
        watcher = peers[0]
        await join(watcher, "computer", "watcher", "big")
        async with asyncio.TaskGroup() as tasks:
            for n, peer in enumerate(peers[1:]):
                tasks.create_task(join(peer, "computer", f"c{n}", "big"))
        await eventually(lambda: len(heard(watcher, "notify:enter_office")) == 79)
        watcher.received.clear()
        for n in range(20):
            await peers[1].call("server:join_office", {"role": "computer", "name": f"r{n}", "office_id": "big"})
        await eventually(lambda: len(heard(watcher, "notify:enter_office")) == 20)
        story = [(event, data["computer"]) for event, data in watcher.received]
        assert story[1::2] == [("notify:enter_office", f"r{n}") for n in range(20)]
        assert story[2::2] == [("notify:leave_office", f"r{n}") for n in range(19)]


async def test_a_peer_cannot_write_lines_of_its_own_into_the_log(
    server: Running, make_peer: MakePeer, caplog: pytest.LogCaptureFixture
) -> None:
    peer = await make_peer(server)
    await peer.call("client:dance\nforged: line", {"req_id": "1\nforged: line"})
    # What an earlier test left to be refused may come now.
    messages = [record.getMessage() for record in caplog.records]
    (refused,) = [message for message in messages if "refused" in message and "client:dance" in message]
    assert "\n" not in refused
    assert "forged: line" not in [line for message in messages for line in message.splitlines()]


def test_a_threaded_server_says_when_it_is_mounted_what_it_leaves_to_its_web_server(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = socketio.Server(async_mode="threading", **sync_server_options(1024))
    server.register_namespace(SyncSMCPNamespace(SyncOpenAuthentication()))
    said = [record.getMessage() for record in caplog.records if record.name == "a2c_smcp.server.sync_namespace"]
    assert len(said) == 1 and "half-open connections" in said[0]
