"""How much an MCP server may send us over HTTP, counted before it is kept. Knows HTTP and the ids of JSON-RPC.

mcp's HTTP clients read any answer into memory, and some failures in the middle of an answer end their session with all
its calls. So the answers pass through `BoundedTransport`. It replaces an answer that is too large, or cut short, with a
JSON-RPC error for the same request. Then mcp fails only that call. If the transport does not know the request, it
raises `RefusedAnswerError`.
"""

import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextvars import ContextVar
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, TypeVar
from weakref import WeakValueDictionary

import anyio
import anyio.lowlevel
import httpx2
from mcp_types import INTERNAL_ERROR, PARSE_ERROR, RequestId

from a2c_smcp.computer.mcp_clients.http.event_streams import EventPace, EventSplitter, as_event, message_in
from a2c_smcp.computer.mcp_clients.http.failures import LostSessionError
from a2c_smcp.computer.mcp_clients.pipes.long_lines import answered_by, request_in
from a2c_smcp.errors import PayloadTooLargeError
from a2c_smcp.utils.pipes import LongLine

__all__ = ["AnswerBounds", "BoundedTransport", "RefusedAnswerError"]

logger = logging.getLogger(__name__)

_T = TypeVar("_T")

_EVENTS: Final = "text/event-stream"
_SESSION_HEADER: Final = "mcp-session-id"
_TOO_LARGE: Final = PayloadTooLargeError.default_code
#: mcp has a task for each request. If the stream of the answer ends too early, that task resumes it with a GET.
_exchange: ContextVar["_Exchange | None"] = ContextVar("_exchange", default=None)


@dataclass(frozen=True, slots=True)
class _Costs:
    """What the answers of one server may cost."""

    small: int = 1024 * 1024  # bytes; a larger answer needs one of the places below
    large_answers: int = 4  # places: if all are taken, a large answer waits
    # Opening a stream and reading an event cost time, too. The pace counts each as this many bytes.
    event: int = 16 * 1024
    stream: int = 1024 * 1024
    reads_a_turn: int = 16  # pieces of one body that are read before other tasks get a turn: a piece may be one byte
    ends: int = 4096  # bytes at each end of a request that are searched for its id
    logged: int = 3  # how many refusals are logged


_COSTS: Final = _Costs()


@dataclass(frozen=True, slots=True)
class AnswerBounds:
    """How much one server may send."""

    body: int
    """Bytes of an answer that is not a stream of events."""
    event: int
    """Bytes of one event."""
    events_per_second: int = 32 * 1024 * 1024
    """Bytes of events, on average over all streams. Faster events wait."""
    resumptions: int = 500
    """How many times the stream of one answer may be resumed. After a thousand times mcp's session would die."""
    answers_posts: bool = True
    """Whether a server answers a POST in its response. With SSE all answers come on one stream instead."""


class RefusedAnswerError(httpx2.StreamError):
    """An answer that is not read. On a `StreamError` mcp fails only one call; on other errors it fails the whole
    session.
    """

    def __init__(self, message: str, code: int = _TOO_LARGE) -> None:
        super().__init__(message)
        self.code = code


class _WithdrawnError(RefusedAnswerError):
    """The request was withdrawn: nobody waits for its answer any more."""

    def __init__(self) -> None:
        super().__init__("the request was withdrawn", INTERNAL_ERROR)


class BoundedTransport(httpx2.AsyncBaseTransport):
    """The way to one server, entered once. `unanswered` returns the ids of the requests that wait for an answer."""

    def __init__(self, name: str, bounds: AnswerBounds, unanswered: Callable[[], Iterable[RequestId]]) -> None:
        self.name = name
        self.bounds = bounds
        self.unanswered = unanswered
        self._client: httpx2.AsyncClient | None = None
        #: Weak: an exchange lasts as long as the task of its request.
        self._exchanges: WeakValueDictionary[RequestId, _Exchange] = WeakValueDictionary()
        self._pace = EventPace(bounds.events_per_second)
        self._refusals = 0
        self.failed: int | Exception | None = None
        """The status or the error of the last request, if it failed. The status of a GET counts only with SSE."""
        self.large_answers = anyio.Semaphore(_COSTS.large_answers)

    async def __aenter__(self) -> "BoundedTransport":
        # A client, not a transport: only a client finds the proxies of the environment.
        self._client = await httpx2.AsyncClient().__aenter__()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        assert self._client is not None
        await self._client.__aexit__(exc_type, exc_value, traceback)

    def withdraw(self, request_id: RequestId) -> None:
        """Nobody waits for this request any more: stop reading its answer. Before 2026-07-28 mcp itself would read
        on.
        """
        if (exchange := self._exchanges.get(request_id)) is not None:
            exchange.withdraw()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        assert self._client is not None
        request.headers["accept-encoding"] = "identity"
        exchange = await self._exchange_of(request)
        try:
            if exchange.resumptions > self.bounds.resumptions:
                text = f"the stream of the server's answer ended {exchange.resumptions} times without an answer"
                raise RefusedAnswerError(text, INTERNAL_ERROR)
            if request.method == "GET":
                await exchange.wait(anyio.sleep(self.pause_after(_COSTS.stream)))
            send = self._client.send(request, stream=True, auth=None, follow_redirects=False)
            response = await exchange.wait(send)
        except RefusedAnswerError as refusal:
            content = json.dumps(_error(exchange.request_id, refusal)).encode()
            if request.method == "GET":
                return httpx2.Response(200, headers={"content-type": _EVENTS}, content=as_event(content))
            return httpx2.Response(200, headers={"content-type": "application/json"}, content=content)
        except Exception as error:
            self.failed = error
            raise
        # A server that answers POSTs may refuse the stream of a GET. That is no failure.
        if request.method == "POST" or not self.bounds.answers_posts:
            self.failed = response.status_code if response.status_code >= 400 else None
            if response.status_code == 404 and self._is_of_a_session(request):
                self.failed = LostSessionError()
        body = _Body(self, exchange, response)
        return httpx2.Response(response.status_code, headers=body.headers, stream=body, extensions=response.extensions)

    def _is_of_a_session(self, request: httpx2.Request) -> bool:
        if self.bounds.answers_posts:
            return _SESSION_HEADER in request.headers
        return request.method == "POST"  # the stream of the session told its address

    async def _exchange_of(self, request: httpx2.Request) -> "_Exchange":
        if not self.bounds.answers_posts:
            return _Exchange(None)
        if request.method == "GET" and "last-event-id" in request.headers:
            exchange = _exchange.get() or _Exchange(None)
            exchange.resumptions += 1
            return exchange
        exchange = _Exchange(await _posted(request))
        if exchange.request_id is not None:
            self._exchanges[exchange.request_id] = exchange
            _exchange.set(exchange)
        return exchange

    def pause_after(self, size: int) -> float:
        """Count bytes of an event stream. Returns for how many seconds nothing more of it should be read."""
        return self._pace.spend(size, anyio.current_time())

    def note(self, why: RefusedAnswerError, failed: int) -> None:
        self._refusals += 1
        if self._refusals <= _COSTS.logged:
            last = "; further ones are not logged" if self._refusals == _COSTS.logged else ""
            logger.warning("MCP server %s: %s: %d requests fail with it%s", self.name, why, failed, last)


class _Exchange:
    """A request and its response. It may be withdrawn."""

    def __init__(self, request_id: RequestId | None) -> None:
        self.request_id = request_id
        self.resumptions = 0
        self._withdrawn = False
        self._scope: anyio.CancelScope | None = None

    def withdraw(self) -> None:
        self._withdrawn = True
        if self._scope is not None:
            self._scope.cancel()

    async def wait(self, awaited: Awaitable[_T]) -> _T:
        """Wait for something. Raises `_WithdrawnError` if the request is withdrawn meanwhile."""
        with anyio.CancelScope() as self._scope:
            if self._withdrawn:
                self._scope.cancel()
            return await awaited
        raise _WithdrawnError


class _Body(httpx2.AsyncByteStream):
    """The body of a response as mcp gets it: the whole body, or whole events, or an error instead."""

    def __init__(self, transport: BoundedTransport, exchange: _Exchange, response: httpx2.Response) -> None:
        self._transport = transport
        self._bounds = transport.bounds
        self._exchange = exchange
        self._response = response
        self._holds_place = False
        self._reads = 0
        kind = response.headers.get("content-type", "").lower()
        self._has_events = response.status_code < 400 and kind.startswith(_EVENTS)
        self._encoding = response.headers.get("content-encoding", "").strip().lower()
        # The body of a redirect is of no use; with SSE, neither is the answer to a POST.
        is_answer = self._bounds.answers_posts or response.request.method != "POST"
        self._is_read = is_answer and not 300 <= response.status_code < 400
        self.headers = response.headers.copy()
        for name in ("content-encoding", "content-length", "transfer-encoding"):
            self.headers.pop(name, None)
        if self._has_events:
            self.headers["content-type"] = _EVENTS  # without a charset, because a stream of events is always UTF-8

    async def aclose(self) -> None:
        self._leave_place()
        await self._response.aclose()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if not self._is_read:
            return
        try:
            self._check_encoding()
            if self._has_events:
                async for events in self._events():
                    yield events
            else:
                yield await self._whole()
        except RefusedAnswerError as refusal:
            yield self._instead(refusal)
        finally:
            self._leave_place()

    def _check_encoding(self) -> None:
        if self._encoding not in ("", "identity"):
            limit = self._bounds.event if self._has_events else self._bounds.body
            raise RefusedAnswerError(
                f"the server's answer is encoded as {self._encoding[:40]!a}; only answers without an encoding are"
                f" read, up to {limit} bytes"
            )

    async def _whole(self) -> bytes:
        body = bytearray()
        chunks = self._response.aiter_raw()
        try:
            while chunk := await self._next(chunks, len(body)):
                body += chunk
                if len(body) > self._bounds.body:
                    raise RefusedAnswerError(f"the server's answer has more than {self._bounds.body} bytes")
        except httpx2.TransportError as error:
            if self._exchange.request_id is None:
                raise
            text = f"the server's answer was cut short after {len(body)} bytes ({type(error).__name__})"
            raise RefusedAnswerError(text, PARSE_ERROR) from error
        return bytes(body)

    async def _events(self) -> AsyncIterator[bytes]:
        splitter = EventSplitter(self._bounds.event)
        chunks = self._response.aiter_raw()
        while chunk := await self._next(chunks, splitter.size):
            found = splitter.feed(chunk)
            if found:
                yield b"".join(self._passed_on(event) for event in found)
                if splitter.size <= _COSTS.small:
                    self._leave_place()
            if self._exchange.request_id is not None and splitter.size > self._bounds.event:
                raise self._too_long()
            if pause := self._transport.pause_after(len(chunk) + _COSTS.event * len(found)):
                await self._exchange.wait(anyio.sleep(pause))

    async def _next(self, chunks: AsyncIterator[bytes], size: int) -> bytes:
        """The next bytes; none at the end. A large answer waits here for its place."""
        self._reads += 1
        if self._reads % _COSTS.reads_a_turn == 0:
            await anyio.lowlevel.checkpoint()
        if size > _COSTS.small and not self._holds_place:
            await self._exchange.wait(self._transport.large_answers.acquire())
            self._holds_place = True
        return await self._exchange.wait(anext(chunks, b""))

    def _leave_place(self) -> None:
        if self._holds_place:
            self._holds_place = False
            self._transport.large_answers.release()

    def _passed_on(self, event: bytes | LongLine) -> bytes:
        if not isinstance(event, LongLine):
            return event + b"\n\n"
        if self._exchange.request_id is not None:
            return self._instead(self._too_long())
        answered = answered_by(message_in(event))
        if not answered.is_answer:
            failed: list[RequestId] = []
        else:
            failed = list(self._transport.unanswered()) if answered.request_id is None else [answered.request_id]
        refusal = self._too_long()
        self._transport.note(refusal, len(failed))
        return b"".join(as_event(json.dumps(_error(request_id, refusal)).encode()) for request_id in failed)

    def _too_long(self) -> RefusedAnswerError:
        return RefusedAnswerError(f"an event of the server has more than {self._bounds.event} bytes")

    def _instead(self, refusal: RefusedAnswerError) -> bytes:
        """The bytes that mcp gets instead of an answer. If mcp waits for no answer, the refusal is raised."""
        if self._exchange.request_id is None and self._has_events:
            raise httpx2.SSEError(str(refusal)) from refusal  # a start then fails with these words
        if self._exchange.request_id is None or self._response.status_code >= 400:
            raise refusal  # mcp then looks at the status
        if not isinstance(refusal, _WithdrawnError):
            self._transport.note(refusal, 1)
        message = json.dumps(_error(self._exchange.request_id, refusal)).encode()
        return as_event(message) if self._has_events else message


async def _posted(request: httpx2.Request) -> RequestId | None:
    """The id of the JSON-RPC request that is posted; `None` if it is something else."""
    if request.method != "POST" or not request.headers.get("content-type", "").startswith("application/json"):
        return None
    content = await request.aread()
    return request_in(LongLine(content[: _COSTS.ends], content[-_COSTS.ends :], len(content)))


def _error(request_id: RequestId | None, refusal: RefusedAnswerError) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "error": {"code": refusal.code, "message": str(refusal)}}
