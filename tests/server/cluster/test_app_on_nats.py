"""The application with `cluster`: readiness, metrics, and what NATS's absence and return do to clients."""

import asyncio
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from a2c_smcp.link.interface import Disconnected, Joined, LinkEvent, LinkOptions, Membership
from a2c_smcp.link.office_link import OfficeLink
from a2c_smcp.server import OpenAuthentication
from a2c_smcp.server.cluster.options import ClusterOptions
from tests.nats_server import NatsServer
from tests.server.conftest import MakePeer
from tests.server.harness import DEADLINE, Running, async_server, eventually, heard

pytestmark = pytest.mark.usefixtures("patient")


def get(server: Running, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(server.url + path, timeout=10) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


async def test_without_nats_it_serves_is_not_ready_and_refuses_joins_at_once_and_all_is_well_when_nats_comes(
    tmp_path: Path, make_peer: MakePeer
) -> None:
    nats = NatsServer(tmp_path)
    with async_server(OpenAuthentication(), cluster=ClusterOptions((nats.url,), lease=12, renewal=0.5)) as server:
        assert get(server, "/healthz")[0] == 200
        status, body = get(server, "/readyz")
        assert status == 503 and "NATS" in body
        assert get(server, "/socket.io/?EIO=4&transport=polling")[0] == 503
        early = OfficeLink(LinkOptions(server.url, connect_timeout=60), {})
        opening = asyncio.create_task(early.open())
        await eventually(lambda: "not ready" in str(early.problem))
        joining = ("server:join_office", {"role": "computer", "name": "c", "office_id": "o"})
        try:
            nats.start()
            await eventually(lambda: get(server, "/readyz")[0] == 200)
            await opening  # a client that came too early is let in now
            await early.close()
            computer = await make_peer(server)
            assert tuple(await computer.call(*joining)) == (True, None)
            text = get(server, "/metrics")[1]
            assert "a2c_processes 1.0" in text and "a2c_lease_age_seconds" in text
            assert 'a2c_members{role="computer"} 1.0' in text

            # Gone for longer than the lease: what is inside this process goes on until then.
            agent = await make_peer(server)
            await agent.call("server:join_office", {"role": "agent", "name": "a", "office_id": "o"})
            nats.kill()
            await eventually(lambda: get(server, "/readyz")[0] == 503)
            room = await agent.call("server:list_room", {"agent": "a", "req_id": "1", "office_id": "o"})
            assert [session["name"] for session in room["sessions"]] == ["a", "c"]
            for change in (("server:leave_office", {"office_id": "o"}), joining):
                done, reason = await computer.call(*change)
                assert done is False and reason.startswith("500 ") and "NATS" in reason
            await eventually(lambda: not agent.connected and not computer.connected)

            nats.start()
            await eventually(lambda: get(server, "/readyz")[0] == 200)
            again = await make_peer(server)
            async with asyncio.timeout(DEADLINE):
                # NATS ends the old lease, and frees its names, a little later than the process itself.
                while tuple(reply := await again.call(*joining)) != (True, None):
                    assert reply[1].startswith("4105 ")
                    await asyncio.sleep(0.05)
        finally:
            nats.kill()


async def test_clients_come_back_by_themselves_after_nats_was_away_for_longer_than_the_lease(tmp_path: Path) -> None:
    nats = NatsServer(tmp_path)
    events: list[LinkEvent] = []
    laptop = Membership("computer", "laptop", "o")
    try:
        nats.start()
        options = ClusterOptions((nats.url,), lease=12, renewal=0.5)
        with async_server(OpenAuthentication(), cluster=options) as server:
            await eventually(lambda: get(server, "/readyz")[0] == 200)
            async with OfficeLink(LinkOptions(server.url), {}, on_event=events.append) as computer:
                await computer.join(laptop)
                await asyncio.to_thread(nats.kill)
                await eventually(lambda: any(isinstance(event, Disconnected) for event in events))
                # It is not let in, which is not the end of it, and knows why.
                await eventually(lambda: "not ready" in str(computer.problem))
                await asyncio.to_thread(nats.start)
                await eventually(lambda: Joined(laptop, again=True) in events)
    finally:
        nats.kill()


async def test_a_restart_of_nats_is_not_noticed_by_clients(tmp_path: Path, make_peer: MakePeer) -> None:
    nats = NatsServer(tmp_path)
    try:
        nats.start()
        with async_server(OpenAuthentication(), cluster=ClusterOptions((nats.url,))) as server:
            await eventually(lambda: get(server, "/readyz")[0] == 200)
            agent, computer = await make_peer(server), await make_peer(server)
            await agent.call("server:join_office", {"role": "agent", "name": "a", "office_id": "o"})
            await computer.call("server:join_office", {"role": "computer", "name": "c", "office_id": "o"})
            client = server.namespace.registry._connection.client
            nats.restart()
            # A server that has not noticed yet is ready, too.
            await eventually(lambda: client.stats["reconnects"])
            await eventually(lambda: get(server, "/readyz")[0] == 200)
            assert tuple(await computer.call("server:leave_office", {"office_id": "o"})) == (True, None)
            await eventually(lambda: heard(agent, "notify:leave_office"))
            assert [event for event, _ in agent.received] == ["notify:enter_office", "notify:leave_office"]
    finally:
        nats.kill()
