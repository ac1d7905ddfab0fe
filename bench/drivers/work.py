"""The work that every contestant does, and how it is timed. Standard library only: it runs in either environment.

A driver is a process that reads one JSON command a line and answers with one JSON line; `operations` says how.
"""

import asyncio
import json
import statistics
import sys
import time


def percentile(values, percent):
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1] if len(values) > 1 else values[0]


async def timed(action, count):
    spent = []
    for _ in range(count):
        started = time.perf_counter()
        await action()
        spent.append((time.perf_counter() - started) * 1e3)
    return {"p50_ms": statistics.median(spent), "p99_ms": percentile(spent, 99)}


async def latency(call, size, count):
    text = "x" * size

    async def one():
        assert len(await call(text)) == size

    await one()
    return await timed(one, count)


async def throughput(call, size, count, inflight):
    text = "x" * size
    left = iter(range(count))

    async def worker():
        for _ in left:
            await call(text)

    started = time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(inflight)))
    return {"calls_per_second": count / (time.perf_counter() - started)}


async def serve(operations):
    """Answer commands until stdin closes. `operations` maps a name to a coroutine function of keyword arguments."""
    print("READY", flush=True)
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        command = json.loads(line)
        try:
            result = await operations[command.pop("op")](**command)
        except Exception as error:
            result = {"failed": f"{type(error).__name__}: {error}"[:300]}
        print("RESULT " + json.dumps(result), flush=True)
