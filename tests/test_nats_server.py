"""The NATS servers that other tests rely on."""

import asyncio
from contextlib import suppress
from pathlib import Path

import nats
from nats.errors import Error as NatsError

from tests.nats_server import running_cluster, running_nats


async def test_one_server_keeps_what_was_stored_over_a_restart(tmp_path: Path) -> None:
    with running_nats(tmp_path) as server:
        async with await nats.connect(server.url) as client:
            bucket = await client.jetstream(timeout=60).create_key_value(bucket="b")
            await bucket.put("k", b"v")
        server.restart()
        async with await nats.connect(server.url) as client:
            bucket = await client.jetstream(timeout=60).key_value("b")
            assert (await bucket.get("k")).value == b"v"


async def test_three_servers_are_one_cluster(tmp_path: Path) -> None:
    with running_cluster(tmp_path) as servers:
        async with await nats.connect([server.url for server in servers]) as client:
            js = client.jetstream()
            async with asyncio.timeout(60):
                while True:
                    with suppress(NatsError):  # three that have just begun may choose another leader meanwhile
                        bucket = await js.create_key_value(bucket="b", replicas=3)
                        assert (await bucket.status()).stream_info.config.num_replicas == 3
                        return
                    await asyncio.sleep(0.2)
