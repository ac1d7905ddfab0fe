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
    return percentiles(spent)


def percentiles(spent):
    return {"p50_ms": statistics.median(spent), "p99_ms": percentile(spent, 99)}


def arguments(size, objects):
    """What the tool is called with: a text of that size, or as many small objects as are about as long in JSON."""
    if not objects:
        return {"text": "x" * size}
    item = {"id": 123456, "name": "an item", "tags": ["one", "two"], "price": 1.25, "sold": False, "note": None}
    return {"text": "", "items": [item] * (size // len(json.dumps(item)))}


async def latency(call, size, count, objects=False):
    sent = arguments(size, objects)

    async def one():
        text, structured = await call(sent)
        assert (structured["items"] if objects else text) == sent["items" if objects else "text"]

    await one()
    return await timed(one, count)


async def throughput(call, size, count, inflight, objects=False):
    sent = arguments(size, objects)
    left = iter(range(count))
    spent = []

    async def worker():
        for _ in left:
            began = time.perf_counter()
            await call(sent)
            spent.append((time.perf_counter() - began) * 1e3)

    started = time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(inflight)))
    calls_per_second = count / (time.perf_counter() - started)
    return {"calls_per_second": calls_per_second, **percentiles(spent)}


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
