"""The requests of an MCP session over a server's pipes: what a `ProtocolClient` takes as its dispatcher.

Knows JSON-RPC: ids, answers, cancellation, progress. Knows no MCP beyond that, and no bytes.

A message of the server is handled in the callback that read it: no stream and no task lies between the pipe and the
caller. The event loop runs callbacks in the order in which they were scheduled. So an announcement is handled before
the caller sees an answer that came after it, as long as the handler does not wait for something else.
"""

import asyncio
import itertools
import logging
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

import anyio
from anyio.abc import TaskStatus
from anyio.lowlevel import checkpoint_if_cancelled
from mcp_types import REQUEST_TIMEOUT, ErrorData, RequestId
from pydantic import ValidationError

from a2c_smcp.computer.mcp_clients.dispatching import (
    CallOptions,
    Dispatcher,
    OnNotify,
    OnReport,
    OnRequest,
    as_request_id,
    coerce_request_id,
)
from a2c_smcp.computer.mcp_clients.mcp_error import InvalidAnswerError, MCPError, connection_closed
from a2c_smcp.computer.mcp_clients.pipes.server_initiated import Pipe, ServerInitiated, encode
from a2c_smcp.computer.utils.callbacks import ignore
from a2c_smcp.relay.asks import Ask, AskTable
from a2c_smcp.tracing.switch import TRACING

__all__ = ["PipeDispatcher"]

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Waiter:
    """The caller that waits for the answer to a request."""

    request_id: RequestId
    """As it was sent."""
    method: str
    answer: asyncio.Future[Mapping[str, Any]]
    on_report: OnReport | None
    may_be_cancelled: bool


class PipeDispatcher(Dispatcher):
    """The requests of one session. While `run` runs, give each message of the server to `take`.

    `screen` takes the method and the result of every request, and returns the result that the session sees.
    """

    def __init__(self, pipe: Pipe, screen: Callable[[str, dict[str, Any]], dict[str, Any]] | None = None) -> None:
        self._pipe = pipe
        self._screen = screen
        # An id is also a progress token. Servers count their own requests from 0 or 1. If a server keeps its ids and
        # ours in one table, it must not mix them up. Some servers keep ids in 32 bits.
        self._ids = itertools.count(2**30)
        self._asks: AskTable[RequestId, _Waiter] = AskTable()
        self._handlers: ServerInitiated | None = None
        self.on_other_report: Callable[[object, float, float | None, str | None], None] = ignore
        """Called with the token of each report of progress that no request waits for, and with the report."""
        self._loop = asyncio.get_running_loop()
        self._over = asyncio.Event()
        self._is_over = False
        self._refused: set[str] = set()
        """The methods that are not sent any more."""

    @property
    def is_closed(self) -> bool:
        return self._is_over

    @property
    def unanswered(self) -> list[RequestId]:
        """The ids of the requests that were sent to the server, and that it has not answered yet."""
        return [ask.waiter.request_id for ask in self._asks.waiting() if ask.was_sent]

    # --- for the session

    def send_raw_request(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        opts: CallOptions | None = None,
        on_report: OnReport | None = None,
    ) -> Coroutine[Any, Any, dict[str, Any]]:
        """The result of a request. If this is cancelled, or its time is up, the server is told.

        `on_report` is called with each report of progress, in the callback that read it. Raises `MCPError` with the
        server's answer, or if the connection is closed or the time is up; `InvalidAnswerError` if it sent something
        else.
        """
        if opts is None and TRACING.spans is None:
            return self._send(next(self._ids), method, params, on_report)
        return self._send_with(opts or {}, method, params, on_report)

    async def _send_with(
        self, opts: CallOptions, method: str, params: Mapping[str, Any] | None, on_report: OnReport | None
    ) -> dict[str, Any]:
        request_id: RequestId = opts.get("request_id") or next(self._ids)
        tells = opts.get("cancel_on_abandon", True)
        try:
            async with asyncio.timeout(opts.get("timeout")):
                if (spans := TRACING.spans) is None:
                    return await self._send(request_id, method, params, on_report, tells)
                # mcp's own dispatcher has a span for each request, too.
                with spans.mcp_request(method, params, request_id) as traced:
                    return await self._send(request_id, method, traced, on_report, tells)
        except TimeoutError:
            raise MCPError(REQUEST_TIMEOUT, f"Request {method!r} timed out") from None

    async def _send(
        self,
        request_id: RequestId,
        method: str,
        params: Mapping[str, Any] | None,
        on_report: OnReport | None,
        may_be_cancelled: bool = True,
    ) -> dict[str, Any]:
        if self._is_over or method in self._refused:
            raise connection_closed()
        topic = None
        key = request_id if type(request_id) is int else coerce_request_id(request_id)
        if on_report is not None:
            topic, params = key, params or {}
            params = {**params, "_meta": {**params.get("_meta", {}), "progressToken": request_id}}
        line = encode({"jsonrpc": "2.0", "id": request_id, "method": method}, params)
        answer: asyncio.Future[Mapping[str, Any]] = self._loop.create_future()
        waiter = _Waiter(request_id, method, answer, on_report, may_be_cancelled)
        ask = Ask(key, waiter, topic=topic)
        self._asks.ask(ask)
        try:
            if self._pipe.is_full():
                await self._wait_for_room(answer)
            if self._asks.sent(key):
                self._pipe.write(line)
            message = await answer
        except MCPError:
            # A cancelled scope may have ended the connection first. Then its caller is cancelled, and has no error.
            await checkpoint_if_cancelled()
            raise
        except BaseException:
            # If this ask has ended, another one may have its id now.
            if self._asks.get(key) is ask and self._asks.withdraw(key):
                self._tell_withdrawn(waiter, "caller cancelled")
            raise
        result = message.get("result")
        if message.get("error") is not None or not isinstance(result, dict):
            raise _refusal_in(message)
        return result if self._screen is None else self._screen(method, result)

    async def notify(self, method: str, params: Mapping[str, Any] | None) -> None:
        if not self._is_over:
            self._pipe.write(encode({"jsonrpc": "2.0", "method": method}, params))

    async def run(
        self, on_request: OnRequest, on_notify: OnNotify, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """Hand on what the server says, until it is closed."""
        async with anyio.create_task_group() as tasks:
            self._handlers = ServerInitiated(self._pipe, tasks, on_request, on_notify)
            task_status.started()
            self._pipe.resume()
            try:
                await self._over.wait()
            finally:
                self.close()
                tasks.cancel_scope.cancel()

    # --- for the pipes

    def take(self, message: Mapping[str, Any]) -> None:
        """Act on a message of the server. A message that is not JSON-RPC is skipped."""
        if (method := message.get("method")) is None:
            request_id = message.get("id")
            key = request_id if type(request_id) is int else _key(request_id)
            if key is None or not ("result" in message or "error" in message):
                return
            ask = self._asks.answer(key)
            if ask is not None and not ask.waiter.answer.done():  # its caller may be cancelled at the same moment
                ask.waiter.answer.set_result(message)
            return
        params = message.get("params")
        if self._handlers is None or self._is_over:
            logger.debug("a message outside the session was skipped")
        elif not isinstance(method, str) or not (params is None or isinstance(params, dict)):
            logger.debug("a message that is not JSON-RPC was skipped")
        elif message.get("id") is None:
            if method == "notifications/progress" and params is not None:
                self._take_progress(params)
            else:
                self._handlers.take_notification(method, params)
        elif (request_id := as_request_id(message["id"])) is not None:
            self._handlers.take_request(request_id, method, params)

    def give_up(self, method: str) -> None:
        """Fail the requests of this method that wait, and refuse new ones, as if the session were closed. The server is
        told.
        """
        self._refused.add(method)
        for ask in self._asks.waiting():
            if ask.waiter.method == method:
                self._fail(ask, self._asks.withdraw(ask.id), "connection closed")

    def close(self) -> None:
        """Fail the requests that wait, and refuse new ones."""
        if self._is_over:
            return
        self._is_over = True
        self._over.set()
        for ask in self._asks.lost_all():
            self._fail(ask, ask.was_sent, "connection closed")

    def _fail(self, ask: "Ask[RequestId, _Waiter]", is_told: bool, why: str) -> None:
        if is_told:
            self._tell_withdrawn(ask.waiter, why)
        if not (answer := ask.waiter.answer).done():
            answer.set_exception(connection_closed())
            answer.exception()  # the caller may be cancelled at the same moment, and then nobody reads it

    # --- requests of ours

    async def _wait_for_room(self, answer: asyncio.Future[Mapping[str, Any]]) -> None:
        """Wait until the pipe takes more, or the session is closed.

        A request is not written before that. Otherwise a server that does not read would find it later, when its caller
        has given up.
        """
        while self._pipe.is_full() and not answer.done():
            flushing: asyncio.Future[Any] = asyncio.ensure_future(self._pipe.flushed())
            try:
                await asyncio.wait({flushing, answer}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                flushing.cancel()

    def _tell_withdrawn(self, waiter: _Waiter, reason: str) -> None:
        """Tell the server that a request needs no answer any more."""
        if waiter.may_be_cancelled:
            params = {"requestId": waiter.request_id, "reason": reason}
            self._pipe.write(encode({"jsonrpc": "2.0", "method": "notifications/cancelled"}, params))

    def _take_progress(self, params: dict[str, Any]) -> None:
        token, progress = as_request_id(params.get("progressToken")), _number(params.get("progress"))
        ask = None if token is None else self._asks.report(coerce_request_id(token))
        if progress is None:
            return
        total, text = _number(params.get("total")), params.get("message")
        message = text if isinstance(text, str) else None
        if ask is None:
            self.on_other_report(token, progress, total, message)
        elif ask.waiter.on_report is not None:
            ask.waiter.on_report(progress, total, message)


def _refusal_in(answer: Mapping[str, Any]) -> MCPError:
    """The error in an answer."""
    try:
        return MCPError.of(ErrorData.model_validate(answer.get("error")))
    except ValidationError:
        return InvalidAnswerError()


def _key(value: object) -> RequestId | None:
    """The key of the request with this id; `None` if it is no id. Some servers write each id as text."""
    request_id = as_request_id(value)
    return None if request_id is None else coerce_request_id(request_id)


def _number(value: object) -> float | None:
    try:
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
    except OverflowError:  # an integer of any size is JSON
        return None
