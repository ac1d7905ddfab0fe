"""What an MCP server may send us over HTTP, counted before anybody keeps it. Knows HTTP and the ids of JSON-RPC.

mcp's HTTP clients read whatever comes, into memory, and some failures in the middle of an answer end their session
with every call of it. So the answers to requests pass through `BoundedTransport`. An answer that is too large, or cut
short, is replaced there with a JSON-RPC error for the request that it belongs to, which mcp hands to that one call.
Where no request shows, `RefusedAnswerError` is raised.
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
#: mcp has a task for each request. There it also resumes, with a GET, the stream of an answer that ended too early.
_exchange: ContextVar["_Exchange | None"] = ContextVar("_exchange", default=None)


@dataclass(frozen=True, slots=True)
class _Costs:
    """What answers of an MCP server over HTTP may take, in bytes if nothing else is said."""

    # Up to here any number of answers is read at a time; so many larger ones, and the others wait.
    small: int = 1024 * 1024
    large_answers: int = 4
    # What the pace counts for an event besides its bytes, and for the opening of a stream: they cost time, too.
    event: int = 16 * 1024
    stream: int = 1024 * 1024
    # How many pieces of one body are read before others get a turn: a server may send each byte in a chunk of its own.
    reads_a_turn: int = 16
    ends: int = 4096
    logged: int = 3


_COSTS: Final = _Costs()


@dataclass(frozen=True, slots=True)
class AnswerBounds:
    """How much one server may send."""

    body: int
    """Bytes of an answer that is no stream of events."""
    event: int
    """Bytes of one event."""
    events_per_second: int = 32 * 1024 * 1024
    """Bytes of events, on average over all streams; what comes faster waits."""
    resumptions: int = 500
    """How many times the stream of one answer may be resumed; mcp's session dies of a thousand."""
    answers_posts: bool = True
    """Whether a request is answered by the response to its POST; with SSE it is answered on the one stream."""


class RefusedAnswerError(httpx2.StreamError):
    """An answer that is not read. mcp fails one call with a `StreamError`, and the whole session with any other."""

    def __init__(self, message: str, code: int = _TOO_LARGE) -> None:
        super().__init__(message)
        self.code = code


class _WithdrawnError(RefusedAnswerError):
    """Nobody waits for the answer any more."""

    def __init__(self) -> None:
        super().__init__("the request was withdrawn", INTERNAL_ERROR)


class BoundedTransport(httpx2.AsyncBaseTransport):
    """The way to one server, entered once. `unanswered` gives the ids of the requests that wait for it."""

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
        """The status, or the error, of the last request that mattered, if it failed."""
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
        """Nobody waits for this request any more: leave its answer unread, however slowly it comes.

        Before 2026-07-28 mcp reads on.
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
        # The stream that a GET opens beside the answers of POSTs is one that a server may refuse.
        if request.method == "POST" or not self.bounds.answers_posts:
            self.failed = response.status_code if response.status_code >= 400 else None
            if response.status_code == 404 and self._is_of_a_session(request):
                self.failed = LostSessionError()
        body = _Body(self, exchange, response)
        return httpx2.Response(response.status_code, headers=body.headers, stream=body, extensions=response.extensions)

    def _is_of_a_session(self, request: httpx2.Request) -> bool:
        if self.bounds.answers_posts:
            return _SESSION_HEADER in request.headers
        return request.method == "POST"  # to an address that the server has told in the stream of the session

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
        """Count what an event stream brought. Returns how long to wait before more of it is read, in seconds."""
        return self._pace.spend(size, anyio.current_time())

    def note(self, why: RefusedAnswerError, failed: int) -> None:
        self._refusals += 1
        if self._refusals <= _COSTS.logged:
            last = "; further ones are not logged" if self._refusals == _COSTS.logged else ""
            logger.warning("MCP server %s: %s: %d requests fail with it%s", self.name, why, failed, last)


class _Exchange:
    """A request and its response, until somebody withdraws it."""

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
        """Raises `_WithdrawnError` when it is withdrawn."""
        with anyio.CancelScope() as self._scope:
            if self._withdrawn:
                self._scope.cancel()
            return await awaited
        raise _WithdrawnError


class _Body(httpx2.AsyncByteStream):
    """The body of a response as mcp gets it: whole, or whole events, or an error in their place."""

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
        # Nobody wants to know what a redirect says, or, with SSE, the answer to a POST.
        is_answer = self._bounds.answers_posts or response.request.method != "POST"
        self._is_read = is_answer and not 300 <= response.status_code < 400
        self.headers = response.headers.copy()
        for name in ("content-encoding", "content-length", "transfer-encoding"):
            self.headers.pop(name, None)
        if self._has_events:
            self.headers["content-type"] = _EVENTS  # without a charset: it is UTF-8, by its definition

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
                f"the server's answer is encoded as {self._encoding[:40]!a}, and may only have {limit} bytes"
                " that are not encoded"
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
        """The next bytes, or none at the end; when much has come already, after a place for it was found."""
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
        """What mcp is given in the place of an answer; where it must not be answered, the refusal is raised."""
        if self._exchange.request_id is None and self._has_events:
            raise httpx2.SSEError(str(refusal)) from refusal  # which ends a start with these words
        if self._exchange.request_id is None or self._response.status_code >= 400:
            raise refusal  # mcp then goes by the status
        if not isinstance(refusal, _WithdrawnError):
            self._transport.note(refusal, 1)
        message = json.dumps(_error(self._exchange.request_id, refusal)).encode()
        return as_event(message) if self._has_events else message


async def _posted(request: httpx2.Request) -> RequestId | None:
    """The id of the JSON-RPC request that is posted; `None` for anything else."""
    if request.method != "POST" or not request.headers.get("content-type", "").startswith("application/json"):
        return None
    content = await request.aread()
    return request_in(LongLine(content[: _COSTS.ends], content[-_COSTS.ends :], len(content)))


def _error(request_id: RequestId | None, refusal: RefusedAnswerError) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "error": {"code": refusal.code, "message": str(refusal)}}
