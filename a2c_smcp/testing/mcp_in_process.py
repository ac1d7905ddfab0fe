"""MCP servers inside the test's process: functions, servers of the kit, and servers of mcp's SDK.

A Computer speaks MCP with them over mcp's streams in memory. What we use of mcp beyond its documentation:
`create_client_server_memory_streams`, and `_lowlevel_server` of its `MCPServer`.
`tests/testing/test_undocumented.py` names them.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import anyio
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import MCPServer
from mcp.shared.memory import create_client_server_memory_streams

from a2c_smcp.computer.mcp_clients.mcp_internals import TransportStreams
from a2c_smcp.computer.mcp_clients.model import BaseServerConfig, MCPServerConfig, wire_server
from a2c_smcp.mcp_server.server import ContextServer

__all__ = ["InProcess", "LabServer", "McpInProcess", "configs_of", "in_process"]

AnyServer: TypeAlias = "ContextServer | MCPServer | Server[Any]"
#: What a test may give as an MCP server: a function is a tool, a config starts a real server.
LabServer: TypeAlias = "AnyServer | InProcess | Callable[..., Any] | MCPServerConfig | Mapping[str, Any]"

#: The name of the server that has the functions as its tools.
TOOLS: Final = "tools"
#: How many seconds a server may take to end.
_END_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class InProcess:
    """A server in this process, with keys of its config. `in_process` makes it."""

    server: AnyServer
    name: str
    config: Mapping[str, Any] = field(default_factory=dict)


def in_process(server: AnyServer, name: str | None = None, **config: Any) -> InProcess:
    """A server with keys of its config, such as `tool_meta`, `forbidden_tools`, `share` or `protocol`."""
    return InProcess(server, name or server.name, config)


class McpInProcess:
    """A server in this process, as its computer sees it: it can be killed, and be slow."""

    def __init__(self, server: AnyServer) -> None:
        self.delay = 0.0
        """Seconds that every message to the server waits."""
        self.is_down = False
        """Whether it fails to start."""
        self.lives = 0
        """How many times it was started."""
        if isinstance(server, MCPServer):
            self._server: Server[Any] = server._lowlevel_server
        else:
            self._server = server.mcp if isinstance(server, ContextServer) else server
        self._scopes: set[anyio.CancelScope] = set()

    def kill(self, *, for_good: bool = False) -> None:
        """End the server in the middle of what it does. Its computer starts it again, unless it is `for_good`."""
        self.is_down = for_good
        for scope in self._scopes:
            scope.cancel()

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[TransportStreams]:
        """One life of the server."""
        if self.is_down:
            raise ConnectionError("the test keeps this server down")
        self.lives += 1
        async with (
            create_client_server_memory_streams() as ((reader, writer), ends),
            anyio.create_task_group() as tasks,
        ):
            ended = anyio.Event()
            slow: Any = _Delayed(writer, self)  # mcp's writer has more methods; a session uses these two
            tasks.start_soon(self._serve, *ends, ended)
            try:
                yield reader, slow
            finally:
                await writer.aclose()
                with anyio.move_on_after(_END_SECONDS, shield=True):
                    await ended.wait()
                tasks.cancel_scope.cancel()

    async def _serve(self, reader: Any, writer: Any, ended: anyio.Event) -> None:
        with anyio.CancelScope() as scope:
            self._scopes.add(scope)
            try:
                await self._server.run(reader, writer, self._server.create_initialization_options())
            finally:
                self._scopes.discard(scope)
                # The computer notices the end of its stream, as it notices the end of a process.
                reader.close()
                writer.close()
                ended.set()


class _Delayed:
    """The stream to a server that may be slow."""

    def __init__(self, inner: Any, server: McpInProcess) -> None:
        self._inner = inner
        self._server = server

    async def send(self, item: Any) -> None:
        if self._server.delay:
            await anyio.sleep(self._server.delay)
        await self._inner.send(item)

    async def aclose(self) -> None:
        await self._inner.aclose()


def configs_of(
    servers: Iterable[LabServer], *, auto_apply: bool
) -> tuple[list[dict[str, Any]], dict[str, McpInProcess]]:
    """The configs of a computer's servers, and the servers that run in this process, by name. With `auto_apply` the
    calls of the latter need no confirmation.
    """
    configs: list[dict[str, Any]] = []
    here: dict[str, McpInProcess] = {}
    functions: list[Callable[..., Any]] = []
    for each in servers:
        if isinstance(each, Mapping):
            configs.append(dict(each))
        elif isinstance(each, BaseServerConfig):
            configs.append(wire_server(each))
        elif isinstance(each, InProcess):
            _add(each, configs, here, auto_apply)
        elif isinstance(each, ContextServer | MCPServer | Server):
            _add(in_process(each), configs, here, auto_apply)
        elif callable(each):
            functions.append(each)
        else:
            raise TypeError(f"{type(each).__name__} is not an MCP server: give functions, servers or configs")
    if functions:
        own = ContextServer(TOOLS, host="test.tools")
        for function in functions:
            own.tool(function)
        _add(in_process(own), configs, here, auto_apply)
    return configs, here


def _add(each: InProcess, configs: list[dict[str, Any]], here: dict[str, McpInProcess], auto_apply: bool) -> None:
    if any(config.get("name") == each.name for config in configs):
        raise ValueError(f"two MCP servers are called {each.name!r}: give one of them another name by in_process()")
    here[each.name] = McpInProcess(each.server)
    written = {"name": each.name, "type": "stdio", "server_parameters": {"command": "in-process"}}
    meta = {"default_tool_meta": {"auto_apply": True}} if auto_apply else {}
    configs.append({**written, **meta, **each.config})
