"""`ContextServer`: windows, documents, tools and prompts as one MCP server, in both eras, over stdio and HTTP."""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, overload

import anyio
import mcp_types as types
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions

from a2c_smcp.mcp_server.answers import DocumentRoom
from a2c_smcp.mcp_server.changes import Changes
from a2c_smcp.mcp_server.documents import DocumentShelf, DocumentSource
from a2c_smcp.mcp_server.mcp_requests import Instructions, McpRequests
from a2c_smcp.mcp_server.prompts import AskingPromptTable, PromptTable
from a2c_smcp.mcp_server.resources import ResourceRoom
from a2c_smcp.mcp_server.sessions import Serving, Sessions
from a2c_smcp.mcp_server.tools import ToolFunction, Tools, ToolTable
from a2c_smcp.mcp_server.windows import Window, WindowPath, Windows
from a2c_smcp.utils.uri import URIProblem, check_host

if TYPE_CHECKING:
    from a2c_smcp.mcp_server.http import HttpApp

__all__ = ["ContextServer"]

F = TypeVar("F", bound=ToolFunction)
W = TypeVar("W", bound=Callable[[], Any])


class ContextServer:
    """An MCP server with windows, documents and tools.

        server = ContextServer("shop", host="com.example.shop")
        server.windows["door"] = Window("The door is open.", priority=10)
        server.run()

    `host` is the host of its `window://` and `dpe://` URIs: a reversed domain of yours. `documents` is a
    `DocumentSource`; without one `server.documents` is a `DocumentShelf` to put them on. `tools` is a table of tools
    that are passed through; functions become tools with `@server.tool`. `resources` are rooms for resources of other
    kinds; they are asked first. `prompts` is a table of prompts. `instructions` say to a model what the server is for:
    a text, or an async function that returns it whenever a client comes. `lifespan` is entered when the server starts
    to serve, and left when it stops. What cannot work raises `ValueError` or `TypeError` here, in a sentence.
    """

    def __init__(
        self,
        name: str,
        *,
        host: str,
        version: str = "",
        title: str | None = None,
        instructions: Instructions = None,
        icons: Sequence[types.Icon] = (),
        windows: Mapping[WindowPath, Window] | None = None,
        documents: DocumentSource | None = None,
        tools: ToolTable | None = None,
        resources: Sequence[ResourceRoom] = (),
        prompts: PromptTable | AskingPromptTable | None = None,
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
        rooms: list[ResourceRoom] = [*resources, self.windows, self._documents]
        self._own_lifespan = lifespan
        requests = McpRequests(rooms, self.tools, prompts, instructions, page_size)
        self.sessions = Sessions(self.changes, requests.topic)
        self.mcp = self._build(requests, version, title, None if callable(instructions) else instructions, icons)

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

    def _build(
        self,
        requests: McpRequests,
        version: str,
        title: str | None,
        instructions: str | None,
        icons: Sequence[types.Icon],
    ) -> "Server[Any]":
        server: Server[Any] = _LowLevelServer(
            self.name,
            version=version,
            title=title,
            instructions=instructions,
            icons=list(icons) or None,
            lifespan=self._lifespan,
            get_tool_input_schema=self.tools.input_schema,
            on_subscribe_resource=self.sessions.subscribe,
            on_unsubscribe_resource=self.sessions.unsubscribe,
            on_subscriptions_listen=self.sessions.listen,
            **requests.handlers(),
        )
        server.middleware.append(requests.around)
        server.add_notification_handler(
            "notifications/initialized", types.NotificationParams, self.sessions.initialized
        )
        return server

    @asynccontextmanager
    async def _lifespan(self, _: "Server[Any]") -> AsyncIterator[Serving]:
        own = self._own_lifespan(self) if self._own_lifespan else nullcontext()
        async with own, self.sessions.running() as serving:
            yield serving


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
        promised = notification_options or NotificationOptions(
            prompts_changed=True, resources_changed=True, tools_changed=True
        )
        return super().create_initialization_options(promised, experimental_capabilities, extensions)


def _check(name: str, host: str, page_size: int) -> None:
    if not isinstance(name, str) or not name:
        raise ValueError("a server needs a name")
    try:
        check_host(host)
    except URIProblem as problem:
        raise ValueError(f"{host!r} cannot be the host of a window or a document: {problem}") from None
    if type(page_size) is not int or page_size < 1:
        raise ValueError(f"page_size is an integer from 1 up, not {page_size!r}")
