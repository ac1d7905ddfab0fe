"""Ways to a server through mcp's own transports: HTTP, streams that are handed in, and pipes on Windows.

mcp takes a second and forty megabytes to import. So the first server that needs it imports this module, and no other
module of `mcp_clients/` imports mcp.
"""

import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from types import TracebackType
from typing import Any, Final, Protocol, Self, cast

import anyio
import httpx2
from anyio.abc import TaskStatus
from mcp import MCPError as SdkError
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import (
    HEADER_MISMATCH,
    PROTOCOL_VERSION_META_KEY,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)

from a2c_smcp.computer.mcp_clients import mcp_internals
from a2c_smcp.computer.mcp_clients.connection_options import ConnectionOptions
from a2c_smcp.computer.mcp_clients.dispatching import (
    CallOptions,
    Dispatcher,
    OnNotify,
    OnReport,
    OnRequest,
    cancelled_request,
    coerce_request_id,
)
from a2c_smcp.computer.mcp_clients.http.bounds import AnswerBounds, BoundedTransport
from a2c_smcp.computer.mcp_clients.http.failures import describe_http, is_refusal
from a2c_smcp.computer.mcp_clients.item_limits import largest_answer
from a2c_smcp.computer.mcp_clients.mcp_error import MCPError
from a2c_smcp.computer.mcp_clients.mcp_internals import JSONRPCDispatcher, SessionMessage, TransportStreams
from a2c_smcp.computer.mcp_clients.model import (
    MCPServerConfig,
    SSEParameters,
    SSEServerConfig,
    StdioParameters,
    StdioServerConfig,
    StreamableHttpParameters,
)
from a2c_smcp.computer.sign_in.challenges import Challenge
from a2c_smcp.computer.sign_in.server_sign_in import BearerAuth, ServerSignIn
from a2c_smcp.wire import codec

__all__ = ["McpWay"]

#: How many pages of tools are read for the headers of one tool: a server may list without end.
_MOST_PAGES: Final = 100


class Screener(Protocol):
    """What a way tells, and asks for each answer."""

    protocol_version: str | None

    def screen(self, method: str, result: dict[str, Any]) -> dict[str, Any]:
        """The part of a result that the session gets. Raises `MCPError` if it is too much."""

    def note_end(self) -> None: ...

    def note_sign_in(self, challenge: Challenge) -> bool: ...


class McpWay:
    """A way to a server, entered once. Every message of the server passes through it."""

    def __init__(
        self, config: MCPServerConfig, options: ConnectionOptions, owner: Screener, sign_in: ServerSignIn | None
    ) -> None:
        self._owner = owner
        self._sign_in = sign_in
        self._url = "" if isinstance(config, StdioServerConfig) else config.server_parameters.url
        self.heard_at = 0.0
        """When anything last came, by the event loop's clock."""
        self.failure: Exception | None = None
        """The error of the transport itself, if it had one."""
        self._waiting: dict[RequestId, str] = {}
        """The methods of the requests that were not answered yet, oldest first."""
        self._http: BoundedTransport | None = None
        self._way = self._over_streams(self._streams_to(config, options))

    def _streams_to(
        self, config: MCPServerConfig, options: ConnectionOptions
    ) -> AbstractAsyncContextManager[TransportStreams]:
        if (way := options.ways.get(config.name)) is not None:
            return way()
        if isinstance(config, StdioServerConfig):
            return _stdio_of_the_sdk(config.server_parameters)
        largest = largest_answer(options.max_message)
        if isinstance(config, SSEServerConfig):
            # mcp's SSE client reads at most one mebibyte for one event. A larger event would end the session.
            bounds = AnswerBounds(largest, min(largest, 2**20), answers_posts=False)
            self._http = BoundedTransport(config.name, bounds, lambda: self._waiting)
            return _sse(config.server_parameters, self._http, self._auth(is_sse=True))
        self._http = BoundedTransport(config.name, AnswerBounds(largest, largest), lambda: self._waiting)
        return _streamable(config.server_parameters, self._http, self._auth(is_sse=False))

    def _auth(self, *, is_sse: bool) -> BearerAuth | None:
        if self._sign_in is None:
            return None
        # mcp's SSE client sends one message at a time: one that waits for a person would stop all others. During the
        # handshake nobody is waited for either: a start has a deadline.
        return BearerAuth(
            self._sign_in, lambda: not is_sse and self._owner.protocol_version is not None, self._owner.note_sign_in
        )

    async def __aenter__(self) -> Dispatcher:
        return await self._way.__aenter__()

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        return await self._way.__aexit__(exc_type, exc, traceback)

    @asynccontextmanager
    async def _over_streams(
        self, streams: AbstractAsyncContextManager[TransportStreams]
    ) -> AsyncGenerator[Dispatcher, None]:
        async with streams as (incoming, outgoing):
            yield _SdkDispatcher(JSONRPCDispatcher(_Watched(incoming, self), _WellFormed(outgoing, self)))

    def describe(self) -> str | None:
        """Why the server could not be reached over HTTP, if that is known."""
        return None if self._http is None else describe_http(self._http.failed, self._url, os.environ)

    def is_refused(self) -> bool | None:
        """Whether the server refuses the key; `None` if the way does not lead over HTTP."""
        return None if self._http is None else is_refusal(self._http.failed)

    # --- for the streams

    def note_end(self) -> None:
        self._owner.note_end()

    def take(self, item: SessionMessage | Exception) -> SessionMessage | Exception:
        """Note what came. Returns the part of it that the session gets."""
        self.heard_at = anyio.current_time()
        if isinstance(item, Exception):
            self.failure = item
            return item
        message = item.message
        if not isinstance(message, JSONRPCResponse | JSONRPCError) or message.id is None:
            return item
        method = self._waiting.pop(coerce_request_id(message.id), "")
        if isinstance(message, JSONRPCError):
            return item
        try:
            result = self._owner.screen(method, message.result)
        except MCPError as error:
            return replace(item, message=JSONRPCError(jsonrpc="2.0", id=message.id, error=error.error))
        return (
            item if result is message.result else replace(item, message=message.model_copy(update={"result": result}))
        )

    def sending(self, item: SessionMessage) -> None:
        """Note a request before it goes out."""
        if isinstance(item.message, JSONRPCRequest):
            self._waiting[item.message.id] = item.message.method

    def sent(self, item: SessionMessage) -> None:
        """Note the withdrawal of a request, after it was sent or could not be sent."""
        message = item.message
        if isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            request_id = cancelled_request(message.params)
            if request_id is not None:
                self._waiting.pop(request_id, None)
                if self._http is not None:
                    self._http.withdraw(request_id)


class _SdkDispatcher(Dispatcher):
    """mcp's dispatcher, with our errors, and with the headers that MCP wants over HTTP."""

    def __init__(self, inner: "JSONRPCDispatcher[Any]") -> None:
        self._inner = inner
        self._version: str | None = None
        """What the old handshake agreed on."""
        self._parameters: dict[str, dict[tuple[str, ...], str]] = {}
        """The parameters of each tool that are sent as headers, too."""

    async def send_raw_request(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        opts: CallOptions | None = None,
        on_report: OnReport | None = None,
    ) -> dict[str, Any]:
        try:
            return await self._send(method, params, opts, on_report)
        except MCPError as error:
            if error.code != HEADER_MISMATCH or method != "tools/call" or _modern_version(params) is None:
                raise
        # The headers of a call follow the schema of its tool. The schema has changed, so it must be read again.
        await self._list_until(params or {})
        return await self._send(method, params, opts, on_report)

    async def _send(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        opts: CallOptions | None,
        on_report: OnReport | None,
    ) -> dict[str, Any]:
        given = cast(mcp_internals.CallOptions, {**(opts or {}), "headers": self._headers(method, params or {})})
        if on_report is not None:
            given["on_progress"] = _reporting(on_report)
        try:
            said = await self._inner.send_raw_request(method, params, given)
        except SdkError as error:
            raise MCPError.of(error.error) from None
        if method == "initialize" and isinstance(version := said.get("protocolVersion"), str):
            self._version = version
        elif method == "tools/list" and _modern_version(params) is not None:
            self._note_headers(said)
        return said

    async def notify(self, method: str, params: Mapping[str, Any] | None) -> None:
        await self._inner.notify(method, params, {"headers": self._headers(method, params or {})})

    async def run(
        self, on_request: OnRequest, on_notify: OnNotify, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        async def answer(_: object, method: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
            try:
                return await on_request(method, params)
            except MCPError as error:
                raise SdkError.from_error_data(error.error) from None

        def hear(method: str, params: Mapping[str, Any] | None) -> bool:
            on_notify(method, params)
            return True

        await self._inner.run(answer, _nothing_left, hear, task_status=task_status)

    def _headers(self, method: str, params: Mapping[str, Any]) -> dict[str, str]:
        """Those of HTTP that say what a request is about. Other transports ignore them."""
        headers: dict[str, str] = {}
        if (version := _modern_version(params)) is not None:
            headers[mcp_internals.MCP_METHOD_HEADER] = method
            if method == "tools/call":
                headers |= mcp_internals.mcp_param_headers(
                    self._parameters.get(str(params.get("name")), {}), params.get("arguments") or {}
                )
        if (version := version or self._version) is not None:
            headers[mcp_internals.MCP_PROTOCOL_VERSION_HEADER] = version
        key = "taskId" if method.startswith("tasks/") else mcp_internals.NAME_BEARING_METHODS.get(method, "")
        if isinstance(name := params.get(key), str) and (key == "taskId" or _modern_version(params) is not None):
            headers[mcp_internals.MCP_NAME_HEADER] = mcp_internals.encode_header_value(name)
        return headers

    def _note_headers(self, said: Mapping[str, Any]) -> None:
        tools = said.get("tools")
        for tool in tools if isinstance(tools, list) else ():
            if isinstance(tool, dict) and isinstance(name := tool.get("name"), str):
                schema = tool.get("inputSchema")
                is_wrong = mcp_internals.find_invalid_x_mcp_header(schema) is not None
                self._parameters[name] = {} if is_wrong else mcp_internals.x_mcp_header_map(schema)

    async def _list_until(self, call: Mapping[str, Any]) -> None:
        meta = {key: value for key, value in call.get("_meta", {}).items() if key != "progressToken"}
        more: dict[str, Any] = {}
        for _ in range(_MOST_PAGES):
            page = await self._send("tools/list", {**more, "_meta": meta}, None, None)
            tools, cursor = page.get("tools"), page.get("nextCursor")
            names = [tool.get("name") for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []
            if not isinstance(cursor, str) or call.get("name") in names:
                return
            more = {"cursor": cursor}


def _modern_version(params: Mapping[str, Any] | None) -> str | None:
    """The version that a request names, as since 2026-07-28."""
    meta = (params or {}).get("_meta")
    version = meta.get(PROTOCOL_VERSION_META_KEY) if isinstance(meta, Mapping) else None
    return version if isinstance(version, str) else None


def _reporting(on_report: OnReport) -> mcp_internals.ProgressFnT:
    async def report(progress: float, total: float | None, message: str | None) -> None:
        on_report(progress, total, message)

    return report


async def _nothing_left(*_: object) -> None:
    """Every notification is taken where it is read."""


class _Stream:
    """What both streams of a session share."""

    def __init__(self, inner: Any, way: "McpWay") -> None:
        self._inner = inner
        self._way = way

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()


class _Watched(_Stream):
    """The read stream of a session; mcp's dispatcher does not tell when it ends."""

    @property
    def last_context(self) -> Any:
        """An attribute that mcp's own streams have besides their items."""
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        try:
            item = await self._inner.receive()
        except anyio.EndOfStream:
            self._way.note_end()
            raise
        return self._way.take(item)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None


class _WellFormed(_Stream):
    """The write stream of a session. Half a character in a message becomes U+FFFD: mcp's HTTP transports fail to encode
    it, and the connection ends with all its calls.
    """

    async def send(self, item: SessionMessage) -> None:
        self._way.sending(item)
        try:
            await self._inner.send(_well_formed(item))
        finally:
            self._way.sent(item)


def _well_formed(item: SessionMessage) -> SessionMessage:
    message = item.message
    try:
        message.model_dump_json()
    except ValueError:
        text = codec.dumps_well_formed(message.model_dump(by_alias=True, exclude_unset=True))
        return replace(item, message=type(message).model_validate(codec.loads(text)))
    return item


@asynccontextmanager
async def _stdio_of_the_sdk(parameters: StdioParameters) -> AsyncGenerator[TransportStreams, None]:
    with open(os.devnull, "w") as nowhere:  # noqa: ASYNC230  # it does not block
        server = StdioServerParameters.model_validate(parameters.model_dump())
        async with stdio_client(server, errlog=nowhere) as streams:
            yield streams


def _sse(
    parameters: SSEParameters, way: BoundedTransport, auth: BearerAuth | None
) -> AbstractAsyncContextManager[TransportStreams]:
    def client(
        headers: dict[str, str] | None = None, timeout: httpx2.Timeout | None = None, auth: httpx2.Auth | None = None
    ) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(headers=headers, timeout=timeout, auth=auth, transport=way)

    return sse_client(
        parameters.url,
        headers=dict(parameters.headers or {}),
        timeout=parameters.timeout,
        sse_read_timeout=parameters.sse_read_timeout,
        httpx_client_factory=client,
        auth=auth,
    )


@asynccontextmanager
async def _streamable(
    parameters: StreamableHttpParameters, way: BoundedTransport, auth: BearerAuth | None
) -> AsyncGenerator[TransportStreams, None]:
    timeout = httpx2.Timeout(parameters.timeout.total_seconds(), read=parameters.sse_read_timeout.total_seconds())
    async with (
        httpx2.AsyncClient(headers=parameters.headers, timeout=timeout, transport=way, auth=auth) as http,
        streamable_http_client(
            parameters.url,
            http_client=http,
            terminate_on_close=parameters.terminate_on_close,
            max_sse_event_size=None,  # by default a result over 1 MiB kills the session; `way` has a limit of its own
        ) as streams,
    ):
        yield streams
