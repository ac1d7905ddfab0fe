"""Starts child processes that have nothing to save, and ends them in bounded time. MCP servers are ended with more
care (`process`).

We use one undocumented thing of asyncio, and `test_children.py` names it: a `Process` has its pipes in `_transport`,
which can be closed. The reason: `Process.wait` also waits for the pipes, and a process that left the group may hold
them open.
"""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import Process
from contextlib import suppress
from typing import Any, Final

import anyio

__all__ = ["kill_group", "let_go", "start_group"]

_REAP_SECONDS: Final = 5.0


async def start_group(*arguments: str, **options: Any) -> Process:
    """`asyncio.create_subprocess_exec` in a session of its own. When this is cancelled, everything that was started
    is killed. asyncio itself would kill only the process, which may already have started others.
    """
    starting = asyncio.ensure_future(asyncio.create_subprocess_exec(*arguments, start_new_session=True, **options))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        with anyio.CancelScope(shield=True):
            # In a task of its own: who cancels once may do so again.
            await asyncio.shield(asyncio.ensure_future(_kill_when_started(starting)))
        raise


async def _kill_when_started(starting: asyncio.Future[Process]) -> None:
    with suppress(OSError, ValueError):
        await kill_group(await starting)


async def kill_group(process: Process) -> None:
    """Kill a process that leads a session of its own, and everything that it started there. A cancellation does not
    stop this.
    """
    ending = asyncio.ensure_future(_end_group(process))
    with anyio.CancelScope(shield=True):
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError:  # of asyncio, which knows nothing of the scope
            await ending
            raise


async def _end_group(process: Process) -> None:
    try:
        with suppress(ProcessLookupError):
            if sys.platform == "win32":
                process.kill()
            else:
                os.killpg(process.pid, signal.SIGKILL)
        with anyio.move_on_after(_REAP_SECONDS):
            # Not before it has ended: closing looks whether it has, and takes its exit status away from asyncio, which
            # then says 255.
            while process.returncode is None:  # noqa: ASYNC110 - `wait` would wait for the pipes, too
                await anyio.sleep(0.002)
    finally:
        let_go(process)
    with anyio.move_on_after(_REAP_SECONDS):
        await process.wait()


def let_go(process: Process) -> None:
    """Close what asyncio has of a process that has ended. asyncio does it itself when nobody has the pipes open any
    more and it has read them to their end; if its loop ends before, Python complains much later.
    """
    process._transport.close()  # type: ignore[attr-defined]
