"""The NATS servers that other tests rely on."""

from pathlib import Path

import nats

from tests.nats_server import running_cluster, running_nats


async def test_one_server_keeps_what_was_stored_over_a_restart(tmp_path: Path) -> None:
    with running_nats(tmp_path) as server:
        async with await nats.connect(server.url) as client:
            bucket = await client.jetstream().create_key_value(bucket="b")
            await bucket.put("k", b"v")
        server.restart()
        async with await nats.connect(server.url) as client:
            bucket = await client.jetstream().key_value("b")
            assert (await bucket.get("k")).value == b"v"


async def test_three_servers_are_one_cluster(tmp_path: Path) -> None:
    with running_cluster(tmp_path) as servers:
        async with await nats.connect([server.url for server in servers]) as client:
            bucket = await client.jetstream().create_key_value(bucket="b", replicas=3)
            assert (await bucket.status()).stream_info.config.num_replicas == 3
