"""The requests and notifications that an MCP server sends by itself over its pipes. Knows JSON-RPC and no MCP.

Every message has a task of its own; the tasks start in the order of the messages. If a server sends faster than the
handlers work, or does not read our answers, nothing more is read from it for a while.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import anyio
from anyio.abc import TaskGroup
from mcp_types import INTERNAL_ERROR, INVALID_REQUEST, ErrorData, RequestId
from pydantic_core import to_jsonable_python

from a2c_smcp.computer.mcp_clients.mcp_internals import (
    CallOptions,
    NoBackChannelError,
    OnNotify,
    OnNotifyIntercept,
    OnRequest,
    Outbound,
    TransportContext,
    cancelled_request_id_from_params,
    coerce_request_id,
    handler_exception_to_error_data,
    progress_token_from_params,
    run_notify_intercept,
)
from a2c_smcp.errors import BadRequestError
from a2c_smcp.relay.errands import Errand, ErrandTable
from a2c_smcp.wire import codec

__all__ = ["Pipe", "ServerInitiated", "encode"]

logger = logging.getLogger(__name__)

#: The notifications that are being handled and the answers that wait for room in the pipe. Reading pauses at this
#: number.
_MOST_UNDER_WAY: Final = 64
_TRANSPORT: Final = TransportContext(kind="stdio", can_send_request=True)


@dataclass(frozen=True, slots=True)
class Pipe:
    """The pipes to a server, as a dispatcher uses them."""

    write: Callable[[str], None]
    """Write one message, without waiting."""
    is_full: Callable[[], bool]
    flushed: Callable[[], Awaitable[None]]
    """Wait until the pipe has taken everything, or is broken."""
    pause: Callable[[], None]
    """Read nothing more until `resume`."""
    resume: Callable[[], None]


@dataclass(slots=True)
class ServerInitiated:
    """Calls the handlers in tasks of `tasks`. `outbound` is how a handler asks the server something."""

    outbound: Outbound
    pipe: Pipe
    tasks: TaskGroup
    on_request: OnRequest
    on_notify: OnNotify
    intercept: OnNotifyIntercept | None

    _errands: "ErrandTable[RequestId, _MessageContext]" = field(default_factory=ErrandTable, init=False)
    _under_way: int = field(default=0, init=False)

    def take_request(self, request_id: RequestId, method: str, params: dict[str, Any] | None) -> None:
        context = _MessageContext(self.outbound, request_id, params)
        try:
            self._errands.take(Errand(coerce_request_id(request_id), context))
        except BadRequestError as error:
            refusal = {"error": {"code": INVALID_REQUEST, "message": error.message}}
            self.tasks.start_soon(self._write, encode({"jsonrpc": "2.0", "id": request_id, **refusal}, None))
        else:
            self.tasks.start_soon(self._answer, context, request_id, method, params)

    def take_notification(self, method: str, params: dict[str, Any] | None) -> None:
        if method == "notifications/cancelled":
            request_id = cancelled_request_id_from_params(params)
            errand = None if request_id is None else self._errands.withdraw(coerce_request_id(request_id))
            if errand is not None:
                errand.work.cancel()
        if not run_notify_intercept(self.intercept, method, params):
            self.start(partial(self.on_notify, _MessageContext(self.outbound, None, None), method, params))

    def start(self, react: Callable[[], Awaitable[None]]) -> None:
        """Call `react` in a task. An error that it raises is logged."""
        self._under_way += 1
        if self._under_way >= _MOST_UNDER_WAY:
            self.pipe.pause()
        self.tasks.start_soon(self._react, react)

    async def _react(self, react: Callable[[], Awaitable[None]]) -> None:
        try:
            await react()
        except Exception:
            # A boundary: the handler is not ours, and the session goes on.
            logger.exception("the handler of a notification of an MCP server failed")
        finally:
            self._done()

    def _done(self) -> None:
        self._under_way -= 1
        if self._under_way < _MOST_UNDER_WAY:
            self.pipe.resume()

    async def _answer(
        self, context: "_MessageContext", request_id: RequestId, method: str, params: dict[str, Any] | None
    ) -> None:
        answer = {}
        with anyio.CancelScope() as context.scope:
            if context.cancel_requested.is_set():
                context.scope.cancel()
            try:
                answer = {"result": await self.on_request(context, method, params)}
            except Exception as error:  # a boundary: the server waits for an answer, whatever the handler raises
                answer = {"error": _refusal(error, method)}
            finally:
                context.close()
                # A request that was withdrawn is not in the table, and another one may have its id now.
                is_wanted = not context.cancel_requested.is_set() and self._errands.finished(
                    coerce_request_id(request_id)
                )
        if is_wanted:
            await self._write(encode({"jsonrpc": "2.0", "id": request_id, **answer}, None))

    async def _write(self, text: str) -> None:
        self._under_way += 1
        try:
            while self.pipe.is_full():
                if self._under_way >= _MOST_UNDER_WAY:
                    self.pipe.pause()
                await self.pipe.flushed()
            self.pipe.write(text)
        finally:
            self._under_way -= 1
            self.pipe.resume()


class _MessageContext:
    """What a handler is told of its message, and how it answers: mcp's `DispatchContext`."""

    transport = _TRANSPORT
    message_metadata = None

    def __init__(self, outbound: Outbound, request_id: RequestId | None, params: dict[str, Any] | None) -> None:
        self._outbound = outbound
        self.request_id = request_id
        self._progress_token = progress_token_from_params(params)
        self.cancel_requested = anyio.Event()
        self.scope: anyio.CancelScope | None = None
        """Made in the task that answers: where sniffio is installed, anyio makes none in the callback of a reader."""
        self._is_open = True

    @property
    def can_send_request(self) -> bool:
        return self._is_open

    def cancel(self) -> None:
        """The server has withdrawn its request, and must get no answer."""
        self.cancel_requested.set()
        if self.scope is not None:
            self.scope.cancel()

    def close(self) -> None:
        self._is_open = False

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        if not self._is_open:
            raise NoBackChannelError(method)
        return await self._outbound.send_raw_request(method, params, opts)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        if self._is_open:
            await self._outbound.notify(method, params, opts)

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        if self._progress_token is not None:
            params = {"progressToken": self._progress_token, "progress": progress, "total": total, "message": message}
            told = {key: value for key, value in params.items() if value is not None}
            await self.notify("notifications/progress", told)


def encode(message: dict[str, Any], params: Mapping[str, Any] | None) -> str:
    """A message of ours, with its parameters if it has any, as a line.

    Half a character (a lone surrogate) becomes U+FFFD: servers on mcp's Python SDK drop a line that has one.
    """
    if params:
        message["params"] = params
    try:
        return codec.dumps_well_formed(message)
    except TypeError:  # a call from this process may have a value that only pydantic can write, such as a path
        return codec.dumps_well_formed(to_jsonable_python(message))


def _refusal(error: Exception, method: str) -> dict[str, Any]:
    data = handler_exception_to_error_data(error)
    if data is None:
        # A boundary: the handler is not ours, and the server must get an answer.
        logger.error("the handler of %s failed", method, exc_info=error)
        data = ErrorData(code=INTERNAL_ERROR, message="Internal error")
    return data.model_dump(mode="json", exclude_none=True)
