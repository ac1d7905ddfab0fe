"""Health, readiness, metrics, and what a server leaves behind."""

import asyncio
import json
import urllib.error
import urllib.request
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from a2c_smcp.server import Limits, OpenAuthentication
from a2c_smcp.server.app import create_app
from a2c_smcp.server.port import DISCONNECT_REASONS
from a2c_smcp.server.registry import Counts, LocalRegistry
from a2c_smcp.smcp import PROTOCOL_VERSION
from a2c_smcp.web.asgi import ASGIMessage
from tests.server.conftest import MakePeer
from tests.server.harness import Running, async_server, counts_nobody, eventually
from tests.server.raw import joined, receive_until, send_text


async def fetch(server: Running, path: str, method: str = "GET") -> tuple[int, str]:
    def blocking() -> tuple[int, str]:
        try:
            request = urllib.request.Request(server.url + path, method=method)
            with urllib.request.urlopen(request, timeout=30) as reply:
                return reply.status, reply.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    return await anyio.to_thread.run_sync(blocking)


def sample(text: str, name: str) -> float:
    return float(next(line for line in text.splitlines() if line.startswith(name + " ")).rpartition(" ")[2])


async def test_health_and_readiness(open_async_server: Running) -> None:
    assert await fetch(open_async_server, "/healthz") == (200, "ok\n")
    assert await fetch(open_async_server, "/readyz") == (200, "ready\n")
    assert await fetch(open_async_server, "/healthz", "HEAD") == (200, "")
    assert (await fetch(open_async_server, "/nothing"))[0] == 404


async def test_a_query_that_is_no_text_is_refused_without_a_traceback(
    open_async_server: Running, caplog: pytest.LogCaptureFixture
) -> None:
    for query in ("sid=%ff", "EIO=4&transport=polling&sid=%ff", "EIO=%c3%28"):
        assert (await fetch(open_async_server, f"/socket.io/?{query}", "POST"))[0] == 400
    assert "Traceback" not in caplog.text


async def test_metrics_count_members_relays_and_refusals(make_peer: MakePeer) -> None:
    with async_server(OpenAuthentication()) as server:
        agent = await make_peer(server)
        computer = await make_peer(server, setup=lambda peer: peer.answer("client:get_tools", lambda _: {"tools": []}))
        await agent.call("server:join_office", {"role": "agent", "name": "a", "office_id": "o"})
        await computer.call("server:join_office", {"role": "computer", "name": "c", "office_id": "o"})
        await agent.call("client:get_tools", {"agent": "a", "req_id": "1", "computer": "c"})
        await agent.call("client:get_tools", {"agent": "a", "req_id": "1", "computer": "nobody"})
        await agent.call("client:dance", {})
        status, text = await fetch(server, "/metrics")
        assert status == 200
        assert sample(text, 'a2c_members{role="agent"}') == 1
        assert sample(text, 'a2c_members{role="computer"}') == 1
        assert sample(text, "a2c_offices") == 1
        assert sample(text, "a2c_sessions") == 2
        relays = 'a2c_relay_seconds_count{event="client:get_tools",outcome="%s"}'
        assert sample(text, relays % "answered") == 1
        assert sample(text, relays % "404") == 1
        assert sample(text, 'a2c_join_seconds_count{outcome="joined"}') == 2
        assert sample(text, 'a2c_refusals_total{code="400"}') == 1


async def test_metrics_tell_a_computer_that_has_gone_from_one_that_was_never_there(make_peer: MakePeer) -> None:
    asked = anyio.Event()

    async def never(_: Any) -> None:
        asked.set()
        await anyio.sleep_forever()

    with async_server(OpenAuthentication()) as server:
        agent = await make_peer(server)
        computer = await make_peer(server, setup=lambda peer: peer.answer("client:get_tools", never))
        await agent.call("server:join_office", {"role": "agent", "name": "a", "office_id": "o"})
        taken = {"role": "computer", "name": "c", "office_id": "o"}
        await computer.call("server:join_office", taken)
        async with anyio.create_task_group() as tasks:
            request = {"agent": "a", "req_id": "1", "computer": "c"}
            answers: list[Any] = []

            async def call() -> None:
                answers.append(await agent.call("client:get_tools", request))

            tasks.start_soon(call)
            await asked.wait()
            await computer.disconnect()
        assert answers[0]["error"]["details"] == {"gone": "computer"}
        text = (await fetch(server, "/metrics"))[1]
        assert sample(text, 'a2c_relay_seconds_count{event="client:get_tools",outcome="computer_gone"}') == 1
        # The connection may be closed before the word that it will be.
        ends = [sample(text, f'a2c_disconnects_total{{reason="{reason}"}}') for reason in DISCONNECT_REASONS]
        assert sum(ends) == 1
        assert sample(text, "process_open_fds") > 0 and sample(text, "process_cpu_seconds_total") > 0
        assert sample(text, "a2c_queued_bytes") == 0 and sample(text, "a2c_pending_relays") == 0
        assert f'a2c_build_info{{protocol="{PROTOCOL_VERSION}",' in text
        assert sample(text, "a2c_loop_lag_seconds_count") >= 0


async def test_metrics_that_many_ask_for_at_once_are_rendered_a_few_in_a_turn_of_the_loop() -> None:
    class Counted(LocalRegistry):
        asked = 0

        def counts(self) -> Counts:
            self.asked += 1
            return super().counts()

    registry = Counted()
    app = create_app(OpenAuthentication(), registry=registry)
    answered = 0

    async def send(message: ASGIMessage) -> None:
        nonlocal answered
        answered += message["type"] == "http.response.body"

    async def receive() -> ASGIMessage:
        raise AssertionError("nothing is read")

    headers = [(b"host", b"localhost")]
    scope = {"type": "http", "method": "GET", "path": "/metrics", "query_string": b"", "headers": headers}
    turns: list[int] = []
    async with anyio.create_task_group() as tasks:
        for _ in range(200):
            tasks.start_soon(app, dict(scope), receive, send)
        with anyio.fail_after(60):
            while sum(turns) < 200:
                before = answered
                await anyio.lowlevel.checkpoint()
                turns.append(answered - before)
    assert max(turns) <= 100
    assert registry.asked == 200  # once each


async def test_a_draining_server_is_not_ready_and_refuses_with_a_code(make_peer: MakePeer) -> None:
    with async_server(OpenAuthentication()) as server:
        peer = await make_peer(server)
        server.namespace._draining = True
        reply = await peer.call("client:get_tools", {})
        assert reply["error"]["code"] == 500
        assert "shutting down" in reply["error"]["message"]


async def test_a_drain_waits_until_a_slow_reader_has_its_answer(make_peer: MakePeer) -> None:
    tools = {"tools": [{"name": "x" * 1000}] * 8000}
    with async_server(OpenAuthentication()) as server:
        computer = await make_peer(server, setup=lambda peer: peer.answer("client:get_tools", lambda _: tools))
        await computer.call("server:join_office", {"role": "computer", "name": "c", "office_id": "o"})
        with await anyio.to_thread.run_sync(joined, server.url) as agent:
            for number, event, data in (
                (1, "server:join_office", {"role": "agent", "name": "a", "office_id": "o"}),
                (2, "client:get_tools", {"agent": "a", "req_id": "1", "computer": "c"}),
            ):
                send_text(agent, f"42/smcp,{number}{json.dumps([event, data])}")
            (line,) = await eventually(lambda: server.namespace.unwritten())
            loop = line._connection._loop
            draining = asyncio.run_coroutine_threadsafe(server.namespace.drain(60), loop)
            await eventually(lambda: not server.namespace.pending_relays and not server.namespace._serving)
            await anyio.sleep(0.1)
            assert not draining.done()
            await anyio.to_thread.run_sync(receive_until, agent, b"}]}]")
            await eventually(draining.done)


async def test_nothing_is_left_of_members_that_came_and_went(make_peer: MakePeer) -> None:
    with async_server(OpenAuthentication()) as server:
        for _ in range(3):
            peers = [await make_peer(server, "async", transport) for transport in ("websocket", "polling") * 5]
            for n, peer in enumerate(peers):
                await peer.call("server:join_office", {"role": "computer", "name": str(n), "office_id": "o"})
            for peer in peers:
                await peer.disconnect()
            await eventually(lambda: server.namespace.registry.counts().sessions == 0)
        namespace = server.namespace
        assert namespace._clients == {}
        assert len(namespace._relays) == 0
        # A session ends before the connection that carried it.
        await eventually(lambda: counts_nobody(namespace.admission.addresses))
        assert not namespace.rooms._rooms and not namespace.rooms._rooms_of and not namespace.rooms._undelivered
        await eventually(lambda: not server.sio.connections)


LIMITED = Limits(requests_per_second=5, connections_per_address=3, pending_relays=2)


async def test_every_limit_answers_with_its_code(make_peer: MakePeer) -> None:
    async def never(_: Any) -> None:
        await anyio.sleep(20)

    with async_server(OpenAuthentication(), LIMITED) as server:
        agent = await make_peer(server)
        computer = await make_peer(server, setup=lambda peer: peer.answer("client:get_tools", never))
        third = await make_peer(server)
        with pytest.raises(Exception, match="namespaces failed to connect"):
            await make_peer(server)
        await third.disconnect()
        await eventually(lambda: server.namespace.registry.counts().sessions == 2)
        # Its connection ends after its session; so does that of the one that was refused.
        addresses = server.namespace.admission.addresses
        await eventually(lambda: addresses._joined.total() == 2 and not addresses._knocked)
        third = await make_peer(server)
        joins = [
            ({"role": "computer", "name": "n" * 65, "office_id": "o"}, "400"),
            ({"role": "computer", "name": "n", "office_id": "o" * 129}, "400"),
        ]
        for data, code in joins:
            assert (await third.call("server:join_office", data))[1].startswith(code)
        await agent.call("server:join_office", {"role": "agent", "name": "a", "office_id": "o"})
        await computer.call("server:join_office", {"role": "computer", "name": "c", "office_id": "o"})
        request = {"agent": "a", "req_id": "1", "computer": "c"}
        for _ in range(2):
            await agent.emit("client:get_tools", request)
        await eventually(lambda: server.namespace.pending_relays == 2)
        reply = await agent.call("client:get_tools", request)
        assert reply["error"]["code"] == 429
        assert "waiting" in reply["error"]["message"]
        codes: list[int] = []
        with anyio.fail_after(60):
            while 429 not in codes:  # many at once: one after another they may be slow enough
                replies = await asyncio.gather(*(third.call("client:dance", {}) for _ in range(50)))
                codes += [reply["error"]["code"] for reply in replies]
        assert codes[0] == 400
        assert set(codes) == {400, 429}
