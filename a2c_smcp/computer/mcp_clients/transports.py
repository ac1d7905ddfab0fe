"""Makes a dispatcher for mcp's session from a server's config. Every message passes through this module.

Knows how to reach a server and that it spoke or went silent; nothing of sessions, restarts or states.
"""

import os
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

import anyio
import httpx2
from mcp import MCPError
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse, RequestId

from a2c_smcp.computer.mcp_clients.connection_options import ConnectionOptions
from a2c_smcp.computer.mcp_clients.elicitation.asking import QuestionMode
from a2c_smcp.computer.mcp_clients.elicitation.declaring import DeclaringDispatcher
from a2c_smcp.computer.mcp_clients.http.bounds import AnswerBounds, BoundedTransport
from a2c_smcp.computer.mcp_clients.http.failures import describe_http, is_refusal
from a2c_smcp.computer.mcp_clients.item_limits import largest_answer, too_much
from a2c_smcp.computer.mcp_clients.mcp_internals import (
    Dispatcher,
    JSONRPCDispatcher,
    SessionMessage,
    TransportStreams,
    cancelled_request_id_from_params,
    coerce_request_id,
)
from a2c_smcp.computer.mcp_clients.model import (
    MCPServerConfig,
    SSEParameters,
    SSEServerConfig,
    StdioParameters,
    StdioServerConfig,
    StreamableHttpParameters,
)
from a2c_smcp.computer.mcp_clients.pipes.stdio import StdioTransport
from a2c_smcp.computer.mcp_clients.probe import Probe
from a2c_smcp.computer.mcp_clients.resource_lists import Pages
from a2c_smcp.computer.mcp_clients.tool_lists import without_invalid_tools
from a2c_smcp.computer.sign_in.challenges import Challenge
from a2c_smcp.computer.sign_in.server_sign_in import BearerAuth, ServerSignIn
from a2c_smcp.computer.sign_in.watched_requests import WatchedRequest
from a2c_smcp.computer.utils.callbacks import ignore
from a2c_smcp.errors import PayloadTooLargeError
from a2c_smcp.oidc.sign_in_errors import IssuerSilentError
from a2c_smcp.utils.system import IS_UNIX
from a2c_smcp.wire import codec

__all__ = ["ServerTransport"]


class ServerTransport:
    """One way to a server, entered once. It tells when the server last spoke and when it hung up.

    `probe` says whether the first requests are a probe. `declares` tells for a method whether its request may declare
    that the server's questions are answered.
    """

    def __init__(
        self,
        config: MCPServerConfig,
        options: ConnectionOptions,
        *,
        on_stderr: Callable[[str], None],
        probe: bool,
        declares: Callable[[str], frozenset[QuestionMode]],
    ) -> None:
        self._declares = declares
        self.process: StdioTransport | None = None
        self.dispatcher: Dispatcher[Any]
        """Sends requests as they are; there once the transport is entered."""
        self.heard_at = 0.0
        """When anything last came over HTTP, by the event loop's clock."""
        self.has_ended = False
        self.failure: Exception | None = None
        """The error of the transport itself, if it had one."""
        self.on_stuck: Callable[[], None] = ignore
        """Called when a process has read the probe and the handshake, and answered neither."""
        self.on_end: Callable[[], None] = ignore
        self.protocol_version: str | None = None
        """The version that the handshake agreed on. The server's tools are checked against this version, one by one."""
        self.pages = Pages()
        """The resources, templates and prompts that the server lists, kept away from the session."""
        self.invalid_tools: dict[str, str] = {}
        """The tools that were left out of the server's lists, and what is wrong with each. Its reader clears it."""
        self._waiting: dict[RequestId, str] = {}
        """The methods of the requests over HTTP that were not answered yet, oldest first."""
        self._http: BoundedTransport | None = None
        self.needs_sign_in = False
        """Whether the server refuses requests until a person has signed in."""
        self.on_sign_in_needed: Callable[[], None] = ignore
        self._sign_in: ServerSignIn | None = None
        self._url = "" if isinstance(config, StdioServerConfig) else config.server_parameters.url
        self._way = self._way_to(config, options, on_stderr, probe)

    def _way_to(
        self, config: MCPServerConfig, options: ConnectionOptions, on_stderr: Callable[[str], None], probe: bool
    ) -> AbstractAsyncContextManager[Dispatcher[Any]]:
        if (way := options.ways.get(config.name)) is not None:
            return self._over_streams(way())
        if isinstance(config, StdioServerConfig):
            if not IS_UNIX:
                return self._over_streams(_stdio_of_the_sdk(config.server_parameters))
            self.process = StdioTransport(
                config.server_parameters,
                timings=options.timings.stdio,
                on_stderr=on_stderr,
                on_end=self.note_end,
                screen=self._screen,
                redaction=options.redaction,
                probe=Probe(options.timings.probe, lambda: self.on_stuck()) if probe else None,
                max_message=options.max_message,
                guardian=options.guardian,
                keeps_detached=config.detached == "keep",
            )
            return self.process
        largest = largest_answer(options.max_message)
        if isinstance(config, SSEServerConfig):
            # mcp's SSE client reads at most one mebibyte for one event. A larger event would end the session.
            bounds = AnswerBounds(largest, min(largest, 2**20), answers_posts=False)
            self._http = BoundedTransport(config.name, bounds, lambda: self._waiting)
            return self._over_streams(_sse(config.server_parameters, self._http, self._auth(config, options)))
        self._http = BoundedTransport(config.name, AnswerBounds(largest, largest), lambda: self._waiting)
        return self._over_streams(_streamable(config.server_parameters, self._http, self._auth(config, options)))

    def _auth(self, config: MCPServerConfig, options: ConnectionOptions) -> BearerAuth | None:
        self._sign_in = None if options.sign_ins is None else options.sign_ins.of(config)
        if self._sign_in is None:
            return None
        # mcp's SSE client sends one message at a time: one that waits for a person would stop all others. During the
        # handshake nobody is waited for either: a start has a deadline.
        is_sse = config.type == "sse"
        return BearerAuth(self._sign_in, lambda: not is_sse and self.protocol_version is not None, self._note_sign_in)

    def _note_sign_in(self, challenge: Challenge) -> bool:
        """Note that a person is needed. Returns whether the session ends for it: not if one call needs more rights."""
        if challenge.is_step_up and self.protocol_version is not None:
            return False
        assert self._sign_in is not None
        self._sign_in.challenge = challenge
        if not self.needs_sign_in:
            self.needs_sign_in = True
            self.on_sign_in_needed()
        return True

    async def more_rights(self, refused: WatchedRequest) -> bool:
        """Ask a person for the rights that a refused request needs. Returns whether to send it again."""
        assert self._sign_in is not None
        assert refused.challenge is not None
        return await self._sign_in.more_rights(refused.signed_in_at, refused.challenge) is not None

    async def __aenter__(self) -> Dispatcher[Any]:
        self.dispatcher = DeclaringDispatcher(await self._way.__aenter__(), self._declares)
        return self.dispatcher

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        return await self._way.__aexit__(exc_type, exc, traceback)

    @asynccontextmanager
    async def _over_streams(
        self, transport: AbstractAsyncContextManager[TransportStreams]
    ) -> AsyncGenerator[Dispatcher[Any], None]:
        async with transport as (incoming, outgoing):
            yield JSONRPCDispatcher(_Watched(incoming, self), _WellFormed(outgoing, self))

    def _screen(self, method: str, result: dict[str, Any]) -> dict[str, Any]:
        """The part of a result that the session gets. Raises `MCPError` if the result is so large that it would stop
        the computer.
        """
        if problem := too_much(result):
            raise MCPError(PayloadTooLargeError.default_code, problem)
        if method != "tools/list":
            return self.pages.take_out(method, result)
        usable, left_out = without_invalid_tools(result, self.protocol_version)
        self.invalid_tools.update(left_out)
        return dict(usable)

    def take(self, item: SessionMessage | Exception) -> SessionMessage | Exception:
        """Note what came over HTTP. Returns the part of it that the session gets."""
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
            result = self._screen(method, message.result)
        except MCPError as error:
            return replace(item, message=JSONRPCError(jsonrpc="2.0", id=message.id, error=error.error))
        return (
            item if result is message.result else replace(item, message=message.model_copy(update={"result": result}))
        )

    def sending(self, item: SessionMessage) -> None:
        """Note a request before it goes out over HTTP."""
        if isinstance(item.message, JSONRPCRequest):
            self._waiting[item.message.id] = item.message.method

    def sent(self, item: SessionMessage) -> None:
        """Note the withdrawal of a request, after it was sent over HTTP or could not be sent."""
        message = item.message
        if isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            request_id = cancelled_request_id_from_params(message.params)
            if request_id is not None:
                self._waiting.pop(request_id, None)
                if self._http is not None:
                    self._http.withdraw(request_id)

    def note_end(self) -> None:
        if not self.has_ended:
            self.has_ended = True
            self.on_end()

    def describe(self, failure: Exception | None) -> str | None:
        """Why the server could not be reached, in a few words. `failure` is the error of its session."""
        if self._sign_in is not None and self._sign_in.problem is not None:
            return f"it cannot be signed in: {self._sign_in.problem}"
        if self._http is not None and (said := describe_http(self._http.failed, self._url, os.environ)) is not None:
            return said
        cause = self.failure or failure
        return None if cause is None else _described(cause)

    def is_lasting(self, failure: Exception | None) -> bool:
        """Whether a later try would fail as well: its command is missing, or a key is refused."""
        if self._sign_in is not None and isinstance(self._sign_in.problem, IssuerSilentError):
            return False
        if self._http is not None:
            return is_refusal(self._http.failed)
        return _is_missing(self.failure or failure)


def _described(error: BaseException) -> str:
    """An error of a transport or session in a few words, without URLs: they may carry credentials."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, FileNotFoundError) and error.filename:
        name = str(error.filename)
        advice = "; write the program alone into command, and the rest into args" if " " in name else ""
        return f"{name!r} is not found{advice}"
    text = str(error)
    return type(error).__name__ if not text or "://" in text else f"{type(error).__name__}: {text}"


def _is_missing(error: BaseException | None) -> bool:
    """Whether a command cannot be run."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return isinstance(error, FileNotFoundError | NotADirectoryError | PermissionError)


class _Stream:
    """What both streams of a session share."""

    def __init__(self, inner: Any, transport: ServerTransport) -> None:
        self._inner = inner
        self._transport = transport

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
            self._transport.note_end()
            raise
        return self._transport.take(item)

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
        self._transport.sending(item)
        try:
            await self._inner.send(_well_formed(item))
        finally:
            self._transport.sent(item)


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
