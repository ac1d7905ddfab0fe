"""Waiting for tools that are not there yet: asks again with every word from their computer, until they are listed.

Knows nothing of the connection: what to ask is handed in, and `News` is told of what was heard.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from a2c_smcp.errors import RequestTimeoutError, SMCPError, ToolNotFoundError
from a2c_smcp.relay.passing import RETRY_SECONDS, Passing, passing_of
from a2c_smcp.smcp import SMCPTool

__all__ = ["News", "wait_for_tools"]

#: How many times the time that the answer took the next question waits at least.
_TIMES: Final = 4


class News:
    """Who waits for a word from which computer."""

    def __init__(self) -> None:
        self._waiting: set[tuple[str, asyncio.Event]] = set()

    def heard(self, computer: str | None = None) -> None:
        """Wake those who wait for this computer, or for any."""
        for name, event in self._waiting:
            if computer in (None, name):
                event.set()

    @contextmanager
    def of(self, computer: str) -> Iterator[asyncio.Event]:
        waiting = (computer, asyncio.Event())
        self._waiting.add(waiting)
        try:
            yield waiting[1]
        finally:
            self._waiting.discard(waiting)


async def wait_for_tools(
    list_tools: Callable[[], Awaitable[list[SMCPTool]]],
    heard: asyncio.Event,
    names: Collection[str],
    timeout: float,
    *,
    check: Callable[[], None],
) -> list[SMCPTool]:
    """What is listed once all `names` are in it; with no names, once anything is.

    `check` raises when there is nothing to wait for any more.

    After `timeout` seconds raises why it could not be asked, or `ToolNotFoundError` for the first name that is missing.
    """
    failure: SMCPError | None = None
    with suppress(TimeoutError):
        async with asyncio.timeout(timeout):
            while True:
                heard.clear()
                check()
                began = time.monotonic()
                try:
                    tools = await list_tools()
                except SMCPError as error:
                    if passing_of(error) is Passing.BY_A_PERSON:
                        raise
                    failure = error
                else:
                    missing = _missing(names, tools)
                    if missing is None:
                        return tools
                    failure = ToolNotFoundError(missing)
                # A computer that tells of changes all the time is not asked all the time.
                await asyncio.sleep(min(_TIMES * (time.monotonic() - began), RETRY_SECONDS[Passing.SOON]))
                # Not every computer announces each change of its tools. But every server tells who enters, and logs
                # each request for a computer that is not there.
                passing = Passing.SOON if isinstance(failure, ToolNotFoundError) else passing_of(failure)
                pause = RETRY_SECONDS[passing]
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await heard.wait()
    raise failure or RequestTimeoutError(f"the computer did not list its tools within {timeout:g} s")


def _missing(names: Collection[str], tools: list[SMCPTool]) -> str | None:
    """The first of the names that is not listed; any tool will do where none is named."""
    listed = {tool["name"] for tool in tools}
    if not names:
        return None if listed else "any tool"
    return next((name for name in names if name not in listed), None)
