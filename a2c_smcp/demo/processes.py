"""Runs the tour's server and computer as processes. They are stopped however the tour ends."""

import asyncio
import re
import sys
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

from a2c_smcp.utils.children import let_go

__all__ = ["DemoError", "started"]

_READY_SECONDS = 60


class DemoError(RuntimeError):
    """A process of the tour failed. The message has the last lines that it printed."""


@asynccontextmanager
async def started(title: str, args: Sequence[str], ready: str, env: dict[str, str]) -> AsyncIterator[str]:
    """Run `a2c …` and wait until its output matches `ready`. Yields the first group. Stops the process at the end."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "a2c_smcp.cli", *args),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env=env,
    )
    assert process.stderr is not None
    last: deque[str] = deque(maxlen=20)
    reader: asyncio.Task[None] | None = None
    try:
        try:
            async with asyncio.timeout(_READY_SECONDS):
                while line := (await process.stderr.readline()).decode(errors="replace"):
                    last.append(line)
                    if match := re.search(ready, "".join(last)):
                        break
                else:
                    raise DemoError(f"the {title} ended at once:\n{''.join(last)}")
        except TimeoutError:
            raise DemoError(f"the {title} was not ready within {_READY_SECONDS} s:\n{''.join(last)}") from None
        reader = asyncio.create_task(_read_on(process.stderr))
        yield match[match.lastindex or 0]
    finally:
        await _stop(process)
        if reader is not None:
            await asyncio.wait({reader}, timeout=1)


async def _read_on(stream: asyncio.StreamReader) -> None:
    """Read the rest of the output, so that it does not fill the pipe."""
    while await stream.readline():
        pass


async def _stop(process: asyncio.subprocess.Process) -> None:
    try:
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            async with asyncio.timeout(10):
                await process.wait()
        except TimeoutError:
            with suppress(ProcessLookupError):
                process.kill()
            # `wait` also waits for the pipe, which a process that is left over may hold open.
            with suppress(TimeoutError):
                async with asyncio.timeout(5):
                    await process.wait()
    finally:
        let_go(process)
