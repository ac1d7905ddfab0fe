"""Ends child processes that have nothing to save, in bounded time. MCP servers are ended with more care (`process`)."""

import os
import signal
import sys
from asyncio.subprocess import Process
from contextlib import suppress
from typing import Final

import anyio

__all__ = ["kill_group"]

_REAP_SECONDS: Final = 5.0


async def kill_group(process: Process) -> None:
    """Kill a process that leads a session of its own, and whatever it started there; also when this is cancelled."""
    with suppress(ProcessLookupError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
    # `wait()` also waits for the pipes, which something that left the group may hold open. asyncio offers no other way.
    process._transport.close()  # type: ignore[attr-defined]
    with anyio.move_on_after(_REAP_SECONDS, shield=True):
        await process.wait()
