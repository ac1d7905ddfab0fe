"""mcp's client against the shop, in memory, over a pipe and over HTTP, with one way to hear of changes in both eras."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any
from unittest.mock import patch

import anyio
import mcp_types as types
from mcp.client import Client
from mcp.client import session as client_session
from mcp.client.stdio import StdioServerParameters
from mcp.client.subscriptions import PromptsListChanged, ResourcesListChanged, ResourceUpdated, ToolsListChanged

DEADLINE = 30.0
LEGACY, MODERN = "legacy", "2026-07-28"
ERAS = (LEGACY, MODERN)

_KINDS = {
    "notifications/resources/list_changed": "resources",
    "notifications/tools/list_changed": "tools",
    "notifications/prompts/list_changed": "prompts",
    PromptsListChanged: "prompts",
    ResourcesListChanged: "resources",
    ToolsListChanged: "tools",
}


def stdio() -> StdioServerParameters:
    return StdioServerParameters(
        command=sys.executable, args=["-W", "error", "-m", "tests.mcp_server.fakes.shop", "stdio"]
    )


@contextmanager
def http_shop(*arguments: str) -> Iterator[str]:
    """The address of a shop of one's own; afterwards it has ended as it should."""
    command = [sys.executable, "-W", "error", "-m", "tests.mcp_server.fakes.shop", "http", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=DEADLINE)
        assert process.returncode == 0, errors
        assert errors.count("Traceback") == errors.count("the tool crash failed"), errors  # which is asked to
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


class Listening:
    """What a client heard: `resources`, `tools`, or the URI of what was updated."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self._more = asyncio.Event()

    def add(self, what: str) -> None:
        self.heard.append(what)
        self._more.set()

    async def until(self, happened: Callable[[], Any]) -> None:
        with anyio.fail_after(DEADLINE):
            while not happened():
                self._more.clear()
                await self._more.wait()

    async def of(self, *wanted: str) -> None:
        """Wait until all of these were heard, and forget them."""
        await self.until(lambda: set(wanted) <= set(self.heard))
        self.heard.clear()


@asynccontextmanager
async def connected(target: Any, era: str, **more: Any) -> AsyncIterator[tuple[Client, Listening]]:
    """A client; over the old era it hears of lists at once, in the new one of what it `watches`."""
    listening = Listening()

    async def on_message(message: Any) -> None:
        method = getattr(message, "method", None)
        if era == MODERN:
            return  # what a listen stream brings is heard there
        if method in _KINDS:
            listening.add(_KINDS[method])
        elif method == "notifications/resources/updated":
            listening.add(message.params.uri)

    mode = "auto" if era == MODERN else "legacy"
    async with AsyncExitStack() as stack:
        # mcp gives a process ten seconds to start and say that it is of the new era, and then takes it for an old one.
        with patch.object(client_session, "DISCOVER_TIMEOUT_SECONDS", DEADLINE):
            made = Client(target, mode=mode, message_handler=on_message, cache=None, **more)
            client = await stack.enter_async_context(made)
        yield client, listening


@asynccontextmanager
async def watching(client: Client, listening: Listening, *uris: str) -> AsyncIterator[None]:
    """Hear of these resources and of the lists, whichever way the era has for it."""
    if client.protocol_version < MODERN:
        await subscribe(client, *uris)
        yield
        for uri in uris:
            await unsubscribe(client, uri)
        return

    async def follow(ready: asyncio.Event) -> None:
        async with client.listen(
            tools_list_changed=True,
            resources_list_changed=True,
            prompts_list_changed=True,
            resource_subscriptions=list(uris),
        ) as stream:
            ready.set()
            async for event in stream:
                listening.add(event.uri if isinstance(event, ResourceUpdated) else _KINDS[type(event)])

    ready = asyncio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(follow, ready)
        with anyio.fail_after(DEADLINE):
            await ready.wait()
        yield
        tasks.cancel_scope.cancel()


async def eventually(happened: Callable[[], Awaitable[bool]]) -> None:
    with anyio.fail_after(DEADLINE):
        while not await happened():  # noqa: ASYNC110 - there is no event to wait for on the other side of a wire
            await anyio.sleep(0.02)


async def subscribe(client: Client, *uris: str) -> None:
    for uri in uris:  # not by `subscribe_resource`, which warns that it belongs to the older era
        request = types.SubscribeRequest(params=types.SubscribeRequestParams(uri=uri))
        await client.session.send_request(request, types.EmptyResult)


async def unsubscribe(client: Client, uri: str) -> None:
    request = types.UnsubscribeRequest(params=types.UnsubscribeRequestParams(uri=uri))
    await client.session.send_request(request, types.EmptyResult)


async def text(client: Client, uri: str) -> str:
    [content] = (await client.read_resource(uri)).contents
    assert isinstance(content, types.TextResourceContents)
    return content.text


async def data(client: Client, uri: str) -> Any:
    return json.loads(await text(client, uri))


async def call(client: Client, tool: str, /, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert isinstance(result.content[0], types.TextContent)
    assert not result.is_error, result.content[0].text
    return result.content[0].text


async def uris(client: Client) -> list[str]:
    found: list[str] = []
    cursor = None
    while True:
        page = await client.list_resources(cursor=cursor)
        found += [resource.uri for resource in page.resources]
        if (cursor := page.next_cursor) is None:
            return found
