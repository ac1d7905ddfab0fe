"""How background tasks end that wait for NATS."""

import asyncio
from collections.abc import Iterable
from typing import Any

from a2c_smcp.server.cluster import tuning

__all__ = ["end_tasks"]


async def end_tasks(tasks: Iterable["asyncio.Task[Any]"]) -> None:
    """Cancel tasks, and wait until they have ended.

    nats-py waits with `asyncio.wait_for`, which in Python 3.11 forgets a cancellation that comes together with the
    result: once is not enough.
    """
    pending = set(tasks)
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=tuning.TIMES.retry)
