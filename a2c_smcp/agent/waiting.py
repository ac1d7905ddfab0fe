"""Waiting for tools that are not there yet: asks again after every message from their computer.

It knows nothing of the connection: the function that asks is handed in, and `News` is told of each message.
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

#: The next question waits at least this many times as long as the last answer took.
_TIMES: Final = 4


class News:
    """The callers that wait for a message from a computer."""

    def __init__(self) -> None:
        self._waiting: set[tuple[str, asyncio.Event]] = set()

    def heard(self, computer: str | None = None) -> None:
        """Wake the callers that wait for this computer; without a computer, all of them."""
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
    """The listed tools, once all `names` are among them; without names, once there is any tool.

    `check` raises if waiting is useless. After `timeout` seconds this raises the error of the last question, or
    `ToolNotFoundError` for the first missing name.
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
                # A computer that announces changes all the time is not asked all the time.
                await asyncio.sleep(min(_TIMES * (time.monotonic() - began), RETRY_SECONDS[Passing.SOON]))
                # Not every computer announces each change of its tools, so it is asked from time to time. But every
                # server tells who enters, and logs each request for an absent computer.
                passing = Passing.SOON if isinstance(failure, ToolNotFoundError) else passing_of(failure)
                pause = RETRY_SECONDS[passing]
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await heard.wait()
    raise failure or RequestTimeoutError(f"the computer did not list its tools within {timeout:g} s")


def _missing(names: Collection[str], tools: list[SMCPTool]) -> str | None:
    """The first name that is not listed. Without names any tool is enough."""
    listed = {tool["name"] for tool in tools}
    if not names:
        return None if listed else "any tool"
    return next((name for name in names if name not in listed), None)
