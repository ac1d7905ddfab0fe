"""`ContextServer`: windows, documents and tools as one MCP server, in both eras, over stdio and streamable HTTP."""

import logging
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, overload

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from a2c_smcp.errors import SMCPError
from a2c_smcp.mcp_server.answers import DocumentRoom
from a2c_smcp.mcp_server.changes import Changes
from a2c_smcp.mcp_server.documents import DocumentShelf, DocumentSource
from a2c_smcp.mcp_server.resources import BadCursorError, ResourceRoom, UnknownResourceError, list_page
from a2c_smcp.mcp_server.sessions import Serving, Sessions
from a2c_smcp.mcp_server.tools import ToolCall, ToolFunction, ToolResult, Tools, ToolTable
from a2c_smcp.mcp_server.windows import Window, WindowPath, Windows
from a2c_smcp.utils.uri import URIProblem, check_host

if TYPE_CHECKING:
    from a2c_smcp.mcp_server.http import HttpApp

__all__ = ["ContextServer"]

logger = logging.getLogger(__name__)

F = TypeVar("F", bound=ToolFunction)
W = TypeVar("W", bound=Callable[[], Any])

Context = ServerRequestContext[Any, Any]

_RESOURCE_NOT_FOUND = -32002
"""MCP's error code for an unknown resource until 2025-11-25. Since then the code is that of a wrong parameter."""


class ContextServer:
    """An MCP server with windows, documents and tools.

        server = ContextServer("shop", host="com.example.shop")
        server.windows["door"] = Window("The door is open.", priority=10)
        server.run()

    `host` is the host of its `window://` and `dpe://` URIs: a reversed domain of yours. `documents` is a
    `DocumentSource`; without one `server.documents` is a `DocumentShelf` to put them on. `tools` is a table of tools
    that are passed through; functions become tools with `@server.tool`. `resources` are rooms for resources of other
    kinds. `lifespan` is entered when the server starts to serve, and left when it stops. What cannot work raises
    `ValueError` or `TypeError` here, in a sentence.
    """

    def __init__(
        self,
        name: str,
        *,
        host: str,
        version: str = "",
        title: str | None = None,
        instructions: str | None = None,
        windows: Mapping[WindowPath, Window] | None = None,
        documents: DocumentSource | None = None,
        tools: ToolTable | None = None,
        resources: Sequence[ResourceRoom] = (),
        lifespan: "Callable[[ContextServer], AbstractAsyncContextManager[Any]] | None" = None,
        page_size: int = 500,
        max_listeners: int = 10_000,
        max_subscriptions: int = 100_000,
    ) -> None:
        _check(name, host, page_size)
        self.name = name
        self.host = host
        self.changes = Changes(max_listeners, max_subscriptions)
        self.windows = Windows(host, self.changes)
        for path, window in (windows or {}).items():
            self.windows.add(path, window)
        self._source = DocumentShelf() if documents is None else documents
        self._documents = DocumentRoom(host, self._source, self.changes)
        self.tools = Tools(tools, self.changes)
        self._rooms: list[ResourceRoom] = [self.windows, self._documents, *resources]
        self._page_size = page_size
        self._own_lifespan = lifespan
        self.sessions = Sessions(self.changes, self._topic)
        self.mcp = self._build(version, title, instructions)

    @property
    def documents(self) -> DocumentShelf:
        """The shelf for documents. A server that was given `documents` has none: this raises `TypeError`."""
        if not isinstance(self._source, DocumentShelf):
            raise TypeError(f"the documents of {self.name} come from a source of its own: it has no shelf for others")
        return self._source

    # --- what is said

    def documents_changed(self) -> None:
        """Tell clients that documents of the source came or went. Any thread may call this."""
        self._documents.documents_changed()

    def document_updated(self, doc_ref: str) -> None:
        """Tell clients that the content of a document of the source changed. Any thread may call this."""
        self._documents.document_updated(doc_ref)

    @overload
    def tool(self, function: F, /) -> F: ...
    @overload
    def tool(
        self,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        annotations: types.ToolAnnotations | None = None,
        meta: dict[str, Any] | None = None,
    ) -> Callable[[F], F]: ...
    def tool(
        self,
        function: ToolFunction | None = None,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        annotations: types.ToolAnnotations | None = None,
        meta: dict[str, Any] | None = None,
    ) -> Any:
        """Offer a function as a tool, as `@server.tool` or `@server.tool(title=…)`.

        Its signature becomes the tool's schema, its docstring the description. A parameter of type `ToolCall` is not an
        argument: it reports progress. Async functions are cancelled with their call; others run in a thread.
        """

        def offer(each: ToolFunction) -> ToolFunction:
            self.tools.add(each, name=name, title=title, description=description, annotations=annotations, meta=meta)
            return each

        return offer if function is None else offer(function)

    def window(
        self,
        path: WindowPath,
        *,
        priority: int | None = None,
        fullscreen: bool | None = None,
        title: str = "",
        description: str = "",
        mime_type: str = "text/plain",
    ) -> Callable[[W], W]:
        """Show what a function returns, with `@server.window("clock")` above it.

        The function is called whenever the window is read. Call `server.windows.changed("clock")` when it would return
        something new.
        """

        def show(text: W) -> W:
            self.windows.add(path, Window(text, priority, fullscreen, title, description, mime_type))
            return text

        return show

    # --- serving

    def run(self) -> None:
        """Serve over stdin and stdout until the client closes them, or SIGINT or SIGTERM comes."""
        from a2c_smcp.mcp_server.stdio import serve

        anyio.run(serve, self.mcp)

    def run_http(
        self,
        port: int = 0,
        *,
        host: str = "127.0.0.1",
        token: str | None = None,
        hosts: Iterable[str] = (),
        path: str = "/mcp",
        ready: Callable[[str], None] | None = None,
    ) -> None:
        """Serve over streamable HTTP until SIGINT or SIGTERM.

        Port 0 means that the system picks one. `ready` gets the address; without `ready` it is printed on stderr. To
        serve other machines, give a `token`, which they show as `Authorization: Bearer …`, and the `hosts` by which
        they reach this one.
        """
        from a2c_smcp.mcp_server.http import serve

        anyio.run(partial(serve, self, port, host=host, token=token, hosts=hosts, path=path, ready=ready))

    def http_app(self, *, path: str = "/mcp", token: str | None = None, hosts: Iterable[str] = ()) -> "HttpApp":
        """The server as an ASGI application, which answers at `path`.

        Mounted in another application it answers below its mount point, and that application's lifespan has to enter
        `app.running()`.
        """
        from a2c_smcp.mcp_server.http import HttpApp

        return HttpApp(self, path=path, token=token, hosts=hosts)

    # --- what mcp's server asks

    def _build(self, version: str, title: str | None, instructions: str | None) -> "Server[Any]":
        server: Server[Any] = _LowLevelServer(
            self.name,
            version=version,
            title=title,
            instructions=instructions,
            lifespan=self._lifespan,
            get_tool_input_schema=self.tools.input_schema,
            on_list_resources=self._list_resources,
            on_read_resource=self._read_resource,
            on_list_resource_templates=self._list_templates,
            on_completion=self._complete,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_subscribe_resource=self.sessions.subscribe,
            on_unsubscribe_resource=self.sessions.unsubscribe,
            on_subscriptions_listen=self.sessions.listen,
        )
        server.add_notification_handler(
            "notifications/initialized", types.NotificationParams, self.sessions.initialized
        )
        return server

    @asynccontextmanager
    async def _lifespan(self, _: "Server[Any]") -> AsyncIterator[Serving]:
        own = self._own_lifespan(self) if self._own_lifespan else nullcontext()
        async with own, self.sessions.running() as serving:
            yield serving

    async def _list_resources(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        with _answering("the resources could not be listed"):
            found, cursor = await list_page(self._rooms, params.cursor if params else None, self._page_size)
        return types.ListResourcesResult(resources=found, next_cursor=cursor)

    async def _read_resource(self, ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        with _answering("the resource could not be read"):
            try:
                if (room := self._room(params.uri)) is None:
                    raise UnknownResourceError(params.uri)
                return types.ReadResourceResult(contents=list(await room.read(params.uri)))
            except UnknownResourceError as error:
                modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
                code = types.INVALID_PARAMS if modern else _RESOURCE_NOT_FOUND
                raise MCPError(code, error.message, {"uri": params.uri}) from None

    async def _list_templates(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        with _answering("the templates could not be listed"):
            templates = [template for room in self._rooms for template in await room.templates()]
        return types.ListResourceTemplatesResult(resource_templates=templates)

    async def _complete(self, ctx: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        values: list[str] = []
        more = False
        if isinstance(params.ref, types.ResourceTemplateReference) and (room := self._room(params.ref.uri)) is not None:
            known = (params.context.arguments if params.context else None) or {}
            with _answering("there is no completion"):
                found = await room.complete(params.ref.uri, params.argument.name, params.argument.value, known)
            values, more = list(found.values), found.more
        return types.CompleteResult(completion=types.Completion(values=values, has_more=more))

    async def _list_tools(self, ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        with _answering("the tools could not be listed"):
            tools = await self.tools.listing(ctx)
        cursor = params.cursor if params else None
        if cursor is not None and not (cursor.isascii() and cursor.isdigit() and len(cursor) < 19):
            raise MCPError(types.INVALID_PARAMS, "this server did not give out this cursor")
        end = int(cursor or 0) + self._page_size
        return types.ListToolsResult(
            tools=tools[end - self._page_size : end], next_cursor=str(end) if end < len(tools) else None
        )

    async def _call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> ToolResult:
        return await self.tools.call(ToolCall(ctx, params))

    def _room(self, uri: str) -> ResourceRoom | None:
        return next((room for room in self._rooms if room.owns(uri)), None)

    def _topic(self, uri: str) -> str:
        room = self._room(uri)
        return uri if room is None else room.topic(uri)


class _LowLevelServer(Server[Any]):
    """mcp's server. Over HTTP it makes its own options, and without this override it would not declare that it tells
    of changes.
    """

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        promised = notification_options or NotificationOptions(resources_changed=True, tools_changed=True)
        return super().create_initialization_options(promised, experimental_capabilities, extensions)


@contextmanager
def _answering(problem: str) -> Iterator[None]:
    """The boundary between the owner of resources and tools, and the clients: an error with a code is passed on, and
    every other error is logged.
    """
    try:
        yield
    except MCPError:
        raise
    except SMCPError as error:
        raise MCPError(error.code, error.message, error.details or None) from None
    except BadCursorError as error:
        raise MCPError(types.INVALID_PARAMS, str(error)) from None
    except Exception:
        logger.exception("%s", problem)
        raise MCPError(types.INTERNAL_ERROR, f"{problem}; the log of the server says why") from None


def _check(name: str, host: str, page_size: int) -> None:
    if not isinstance(name, str) or not name:
        raise ValueError("a server needs a name")
    try:
        check_host(host)
    except URIProblem as problem:
        raise ValueError(f"{host!r} cannot be the host of a window or a document: {problem}") from None
    if type(page_size) is not int or page_size < 1:
        raise ValueError(f"page_size is an integer from 1 up, not {page_size!r}")
