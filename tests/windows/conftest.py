"""A server with terminals in the test's own process, and mcp's own client in front of it."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError
from mcp_types import TextContent, TextResourceContents

from a2c_smcp.windows.server import WindowsOptions, windows_server

#: A prompt that is the same on every machine, and no files of the person's.
ENVIRONMENT = {
    **{name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ},
    "LC_ALL": "C.UTF-8",
    "SHELL": "/bin/sh",
    "PS1": "$ ",
    "ENV": "",
}


async def eventually(check: Callable[[], Awaitable[bool]]) -> None:
    """Wait until something is so."""
    async with asyncio.timeout(60):
        while not await check():  # noqa: ASYNC110 - what is looked at tells nobody
            await asyncio.sleep(0.05)


def running_with(word: str) -> list[Path]:
    """The processes, as folders of /proc, that were started with a word and run."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if word.encode() in (process / "cmdline").read_bytes() and " Z " not in (process / "stat").read_text():
                found.append(process)
    return found


class Desk:
    """What an agent does: call tools, and read windows."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def call(self, tool: str, **arguments: Any) -> str:
        result = await self.client.call_tool(tool, arguments)
        [content] = result.content
        assert isinstance(content, TextContent)
        if result.is_error:
            raise AssertionError(content.text)
        return content.text

    async def refused(self, tool: str, **arguments: Any) -> str:
        result = await self.client.call_tool(tool, arguments)
        [content] = result.content
        assert isinstance(content, TextContent) and result.is_error
        return content.text

    async def uris(self) -> list[str]:
        return [each.uri for each in (await self.client.list_resources()).resources]

    async def until(self, path: str, *texts: str) -> str:
        """The window, once it is there and holds the texts."""
        shown = "no such window"

        async def is_there() -> bool:
            nonlocal shown
            if any(uri.split("?")[0].endswith(path) for uri in await self.uris()):
                shown = await self.window(path)
            return all(text in shown for text in texts)

        try:
            await eventually(is_there)
        except TimeoutError:
            raise AssertionError(f"{texts} did not come: {shown}") from None
        return shown

    async def window(self, path: str) -> str:
        while True:
            [uri] = [uri for uri in await self.uris() if uri.split("?")[0].endswith(path)]
            try:
                [content] = (await self.client.read_resource(uri)).contents
            except MCPError:
                if uri in await self.uris():
                    raise
                continue  # its priority, which is in its URI, changed meanwhile
            assert isinstance(content, TextResourceContents)
            return content.text


MakeDesk = Callable[..., AbstractAsyncContextManager[Desk]]


@pytest.fixture
def make_desk(tmp_path: Path) -> MakeDesk:
    @asynccontextmanager
    async def make(**options: Any) -> AsyncIterator[Desk]:
        chosen: dict[str, Any] = {"folder": tmp_path, "environment": ENVIRONMENT} | options
        server = windows_server(WindowsOptions(**chosen))
        async with Client(server.mcp) as client:
            yield Desk(client)

    return make
