"""What becomes of memberships when NATS itself is restarted, loses a server, or its quorum."""

import asyncio
import shutil
from contextlib import suppress
from pathlib import Path

import pytest
from nats.errors import Error as NatsError

from a2c_smcp.errors import InternalError, NameTakenError
from a2c_smcp.server.cluster.bucket import Bucket
from a2c_smcp.server.cluster.connection import NatsConnection
from a2c_smcp.server.cluster.options import ClusterOptions
from a2c_smcp.server.offices import Grant
from tests.nats_server import running_cluster, running_nats
from tests.server.cluster.processes import registries, request
from tests.server.harness import eventually


async def test_nats_restarted_while_computers_come_and_go(tmp_path: Path) -> None:
    with running_nats(tmp_path) as nats:
        async with registries(ClusterOptions((nats.url,), lease=60), 2) as processes:
            here, there = processes
            stop = asyncio.Event()
            rounds = [0] * 10

            async def come_and_go(number: int) -> None:
                process, name = processes[number % 2], f"c{number // 2}"
                while not stop.is_set():
                    sid = f"{name}-{rounds[number]}"
                    process.registry.connect(sid, Grant())
                    try:
                        await process.registry.join(sid, request("computer", name, "o"))
                    except (InternalError, NameTakenError):
                        await asyncio.sleep(0.05)
                    await process.registry.disconnect(sid)
                    rounds[number] += 1

            busy = [asyncio.create_task(come_and_go(number)) for number in range(10)]
            await eventually(lambda: min(rounds) > 1)
            await asyncio.to_thread(nats.restart)
            await eventually(lambda: all(each.registry.unavailable() is None for each in processes))
            before = list(rounds)
            await eventually(lambda: all(now > then + 1 for now, then in zip(rounds, before, strict=True)))
            stop.set()
            await asyncio.gather(*busy)
            # What could not be deleted meanwhile is deleted later.
            await eventually(lambda: here.names("o") == there.names("o") == [])
            await eventually(lambda: not here.registry.replica._claims)
            assert here.heard.ended_as == there.heard.ended_as == []
            await here.until_joined("x")
            await eventually(lambda: there.names("o") == ["x"])


async def test_a_nats_that_has_lost_what_was_written_last_makes_all_begin_anew(tmp_path: Path) -> None:
    with running_nats(tmp_path / "nats") as nats:
        async with registries(ClusterOptions((nats.url,), lease=60, renewal=0.5), 2) as processes:
            here, there = processes
            await here.until_joined("kept")
            await asyncio.to_thread(nats.end)
            shutil.copytree(nats.folder / "store", tmp_path / "then")
            await asyncio.to_thread(nats.start)
            for number in range(20):
                await there.until_joined(f"lost{number}")
            await asyncio.to_thread(nats.end)
            shutil.rmtree(nats.folder / "store")
            shutil.copytree(tmp_path / "then", nats.folder / "store")
            await asyncio.to_thread(nats.start)
            await eventually(lambda: all(each.heard.ended_as for each in processes))
            await there.until_joined("new")
            await eventually(lambda: here.registry.unavailable() is None and "new" in here.names("o"))
            assert not any(name.startswith("lost") for name in here.names("o"))


async def lone_bucket(options: ClusterOptions) -> None:
    async with NatsConnection(options) as connection:
        await connection.connected()
        async with asyncio.timeout(60):
            while True:
                with suppress(InternalError):  # three servers that have just begun may still be without a leader
                    return await Bucket(connection)._create(1)
                await asyncio.sleep(0.2)


async def test_one_of_three_nats_servers_is_killed_and_then_a_second(tmp_path: Path) -> None:
    with running_cluster(tmp_path) as servers:
        # One address will do; that server names the others. A bucket from before there were three gets more copies.
        options = ClusterOptions((servers[0].url,), lease=60)
        await lone_bucket(options)
        async with registries(options, 2) as (here, there):
            await here.until_joined("before")
            js, stream = here.connection.client.jetstream(), here.registry._bucket.stream
            leader = None
            async with asyncio.timeout(60):
                while leader is None:
                    await asyncio.sleep(0.1)
                    with suppress(NatsError):  # with more copies another server may come to lead, and none for a while
                        info = await js.stream_info(stream)
                        if info.cluster is not None and len(info.cluster.replicas or ()) == 2:
                            leader = next((each for each in servers if each.name == info.cluster.leader), None)
            assert info.config.num_replicas == 3
            leader.kill()
            await asyncio.gather(here.until_joined("h"), there.until_joined("t"))
            await eventually(lambda: here.names("o") == there.names("o") == ["before", "h", "t"])
            assert here.heard.ended_as == there.heard.ended_as == []

            # Without a quorum nobody can join, and that is said; who is in stays in for the time of a lease.
            other = next(server for server in servers if server is not leader)
            other.kill()
            await eventually(lambda: here.registry.unavailable() is not None)
            with pytest.raises(InternalError, match="NATS"):
                await here.join("x", "computer", "x", "o")
            assert len(here.registry.members("o")) == 3
            await asyncio.to_thread(other.start)
            await here.until_joined("back")
            await eventually(lambda: "back" in there.names("o"))


@pytest.mark.usefixtures("patient")
async def test_a_nats_whose_disk_is_full_says_so_and_recovers_when_there_is_room(tmp_path: Path) -> None:
    config = tmp_path / "nats.conf"

    def give(store: str) -> None:
        config.write_text(f'jetstream {{ store_dir: "{tmp_path / "store"}", max_file_store: {store}, max_mem: 1MB }}\n')

    give("20KB")
    with running_nats(tmp_path / "nats", ["--config", str(config)], jetstream=False) as nats:
        async with registries(ClusterOptions((nats.url,)), 1) as [here]:

            async def fill() -> None:
                for number in range(1000):
                    await here.join(f"s{number}", "computer", f"c{number}", "o")

            with pytest.raises(InternalError, match="resources"):
                await fill()
            await eventually(lambda: "resources" in (here.registry.unavailable() or ""))
            assert "c0" in here.names("o"), "who is in stays in while the lease lasts"

            give("10MB")
            await asyncio.to_thread(nats.restart)
            await eventually(lambda: here.registry.unavailable() is None)
            await here.until_joined("late")
            assert "late" in here.names("o")
