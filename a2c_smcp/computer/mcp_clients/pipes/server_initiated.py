"""The requests and notifications that an MCP server sends by itself over its pipes. Knows JSON-RPC and no MCP.

A notification is handled in the callback that read it. A request has a task of its own; the tasks start in the order of
the messages. If a server sends faster than that, or does not read our answers, nothing more is read from it for a
while.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import anyio
from anyio.abc import TaskGroup
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, ErrorData, RequestId
from pydantic import ValidationError
from pydantic_core import to_jsonable_python

from a2c_smcp.computer.mcp_clients.dispatching import OnNotify, OnRequest, cancelled_request, coerce_request_id
from a2c_smcp.computer.mcp_clients.mcp_error import MCPError
from a2c_smcp.errors import BadRequestError
from a2c_smcp.relay.errands import Errand, ErrandTable
from a2c_smcp.wire import codec

__all__ = ["Pipe", "ServerInitiated", "encode"]

logger = logging.getLogger(__name__)

#: The notifications of one turn of the loop, and the answers that wait for room in the pipe. Reading pauses at this
#: number.
_MOST_UNDER_WAY: Final = 64


@dataclass(frozen=True, slots=True)
class Pipe:
    """The pipes to a server, as a dispatcher uses them."""

    write: Callable[[bytes], None]
    """Write one line of JSON in UTF-8, without waiting."""
    is_full: Callable[[], bool]
    flushed: Callable[[], Awaitable[None]]
    """Wait until the pipe has taken everything, or is broken."""
    pause: Callable[[], None]
    """Read nothing more until `resume`."""
    resume: Callable[[], None]


@dataclass(slots=True)
class ServerInitiated:
    """Calls the handlers; those of requests in tasks of `tasks`."""

    pipe: Pipe
    tasks: TaskGroup
    on_request: OnRequest
    on_notify: OnNotify

    _errands: "ErrandTable[RequestId, _ServersRequest]" = field(default_factory=ErrandTable, init=False)
    _under_way: int = field(default=0, init=False)
    _told: int = field(default=0, init=False)
    """The notifications of this turn of the loop."""

    def take_request(self, request_id: RequestId, method: str, params: dict[str, Any] | None) -> None:
        request = _ServersRequest()
        try:
            self._errands.take(Errand(coerce_request_id(request_id), request))
        except BadRequestError as error:
            refusal = {"error": {"code": INVALID_REQUEST, "message": error.message}}
            self.tasks.start_soon(self._write, encode({"jsonrpc": "2.0", "id": request_id, **refusal}, None))
        else:
            self.tasks.start_soon(self._answer, request, request_id, method, params)

    def take_notification(self, method: str, params: dict[str, Any] | None) -> None:
        if method == "notifications/cancelled":
            request_id = cancelled_request(params)
            errand = None if request_id is None else self._errands.withdraw(coerce_request_id(request_id))
            if errand is not None:
                errand.work.cancel()
        self._pace()
        try:
            self.on_notify(method, params)
        except Exception:
            # A boundary: what a server says costs at most this message, and the session goes on.
            logger.exception("the handler of a notification of an MCP server failed")

    def _pace(self) -> None:
        if not self._told:
            asyncio.get_running_loop().call_soon(self._end_turn)
        self._told += 1
        self._under_way += 1
        if self._under_way >= _MOST_UNDER_WAY:
            self.pipe.pause()

    def _end_turn(self) -> None:
        told, self._told = self._told, 0
        self._under_way -= told
        if self._under_way < _MOST_UNDER_WAY:
            self.pipe.resume()

    async def _answer(
        self, request: "_ServersRequest", request_id: RequestId, method: str, params: dict[str, Any] | None
    ) -> None:
        answer = {}
        with anyio.CancelScope() as request.scope:
            if request.is_withdrawn:
                request.scope.cancel()
            try:
                answer = {"result": await self.on_request(method, params)}
            except Exception as error:  # a boundary: the server waits for an answer, whatever the handler raises
                answer = {"error": _refusal(error, method)}
            finally:
                # A request that was withdrawn is not in the table, and another one may have its id now.
                is_wanted = not request.is_withdrawn and self._errands.finished(coerce_request_id(request_id))
        if is_wanted:
            await self._write(encode({"jsonrpc": "2.0", "id": request_id, **answer}, None))

    async def _write(self, text: bytes) -> None:
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


class _ServersRequest:
    """A request of the server that is being answered."""

    __slots__ = ("is_withdrawn", "scope")

    def __init__(self) -> None:
        self.is_withdrawn = False
        self.scope: anyio.CancelScope | None = None
        """Made in the task that answers: where sniffio is installed, anyio makes none in the callback of a reader."""

    def cancel(self) -> None:
        """The server has withdrawn its request, and must get no answer."""
        self.is_withdrawn = True
        if self.scope is not None:
            self.scope.cancel()


def encode(message: dict[str, Any], params: Mapping[str, Any] | None) -> bytes:
    """A message of ours, with its parameters if it has any, as a line.

    Half a character (a lone surrogate) becomes U+FFFD: servers on mcp's Python SDK drop a line that has one.
    """
    if params:
        message["params"] = params
    try:
        return codec.line(message)
    except TypeError:  # a call from this process may have a value that only pydantic can write, such as a path
        return codec.line(to_jsonable_python(message))


def _refusal(error: Exception, method: str) -> dict[str, Any]:
    if isinstance(error, MCPError):
        data = error.error
    elif isinstance(error, ValidationError):  # without pydantic's words: they quote what was sent
        data = ErrorData(code=INVALID_PARAMS, message="Invalid request parameters", data="")
    else:
        # A boundary: the server must get an answer.
        logger.error("the handler of %s failed", method, exc_info=error)
        data = ErrorData(code=INTERNAL_ERROR, message="Internal error")
    return data.model_dump(mode="json", exclude_none=True)
