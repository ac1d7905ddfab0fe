"""What a real NATS costs, for the simulation: a few seconds of writes to a bucket, and of looks at it."""

import asyncio
import statistics
import tempfile
import time
from pathlib import Path

from a2c_smcp.server.cluster.bucket import Bucket
from a2c_smcp.server.cluster.connection import NatsConnection
from a2c_smcp.server.cluster.keys import Entry
from a2c_smcp.server.cluster.options import ClusterOptions
from bench.process import cpu_seconds
from bench.simulation.fake_nats import Costs
from tests.nats_server import NatsServer, running_nats

__all__ = ["measured_costs"]

_WRITES, _LOOKS = 4096, 5
_VALUE = b"x" * 200


def measured_costs() -> Costs:
    """The costs on this machine: one NATS server with a bucket in a file, and our own bucket over nats-py."""
    with tempfile.TemporaryDirectory() as folder, running_nats(Path(folder)) as server:
        return asyncio.run(_measure(server))


async def _measure(server: NatsServer) -> Costs:
    async with NatsConnection(ClusterOptions((server.url,))) as connection:
        await connection.connected()
        bucket = Bucket(connection)
        await bucket.open()
        singles = [await _seconds(bucket, f"s.{number}") for number in range(200)]
        nats, ours = cpu_seconds(server.pid), time.process_time()
        for first in range(0, _WRITES, 64):
            await asyncio.gather(*(bucket.write(f"k.{first + number}", _VALUE, 0) for number in range(64)))
        write, send = cpu_seconds(server.pid) - nats, time.process_time() - ours
        nats, ours = cpu_seconds(server.pid), time.process_time()
        for _ in range(_LOOKS):
            await _look(bucket)
        told = _LOOKS * (_WRITES + len(singles))
        deliver, receive = cpu_seconds(server.pid) - nats, time.process_time() - ours
    way = max(0.00005, (statistics.median(singles) - (write + send) / _WRITES) / 2)
    return Costs(way, write / _WRITES, deliver / told, send / _WRITES, receive / told)


async def _seconds(bucket: Bucket, key: str) -> float:
    began = time.perf_counter()
    await bucket.write(key, _VALUE, 0)
    return time.perf_counter() - began


async def _look(bucket: Bucket) -> None:
    """Be told of everything in the bucket."""
    done = asyncio.Event()

    def take(entry: Entry | None, pending: int) -> None:
        if pending == 0:
            done.set()

    watch = await bucket.watch(take, done.set)
    await done.wait()
    await watch.close()
