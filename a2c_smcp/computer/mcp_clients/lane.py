"""Requests that go straight over a server's pipes, beside mcp's session and under its handshake.

Everything but tool calls and reads is the session's. A request through it passes four streams, three tasks and six
models; here it is one line out and one line in. Measured: 0.8 s of the computer's CPU per 1,000 calls through it and
0.3 s so, and a desktop of a hundred windows in 14 ms instead of 40.
"""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import anyio
from mcp import MCPError
from mcp_types import ErrorData
from pydantic_core import to_jsonable_python

from a2c_smcp.computer.mcp_clients.answers import too_many_items
from a2c_smcp.errors import PayloadTooLargeError
from a2c_smcp.wire import codec

__all__ = ["Lane"]

#: The session counts its own requests from 1. Some servers keep ids in 32 bits.
_FIRST_ID: Final = 2**30


class Lane:
    """Requests and their answers by id. `write` takes a line, `full` is whether the pipe is, `flushed` waits until it
    is not, and `take` is given what the server says.
    """

    def __init__(
        self, write: Callable[[str], None], full: Callable[[], bool], flushed: Callable[[], Awaitable[None]]
    ) -> None:
        self._write = write
        self._full = full
        self._flushed = flushed
        self._ids = itertools.count(_FIRST_ID)
        self._pending: dict[int, asyncio.Future[Mapping[str, Any]]] = {}
        self._unwritten: set[int] = set()
        self._open = True

    async def request(self, method: str, params: Mapping[str, Any]) -> Any:
        """The result of a request. Cancelling this tells the server.

        Raises `MCPError` with what the server answered, `pydantic.ValidationError` when that was no answer, and
        `anyio.ClosedResourceError` when the server has gone.
        """
        if not self._open:
            raise anyio.ClosedResourceError
        request_id = next(self._ids)
        text = _encode({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})
        answered: asyncio.Future[Mapping[str, Any]] = asyncio.get_running_loop().create_future()
        self._pending[request_id] = answered
        try:
            if self._full():
                await self._wait_for_room(request_id, answered)
            if not answered.done():
                self._write(text)
            answer = await answered
        except asyncio.CancelledError:
            self._take_back(request_id, "caller cancelled")
            raise
        finally:
            del self._pending[request_id]
            self._unwritten.discard(request_id)
        if answer.get("error") is not None or "result" not in answer:
            error = ErrorData.model_validate(answer.get("error"))
            raise MCPError(error.code, error.message, error.data)
        if problem := too_many_items(answer["result"]):
            raise MCPError(PayloadTooLargeError.default_code, problem)
        return answer["result"]

    async def _wait_for_room(self, request_id: int, answered: asyncio.Future[Mapping[str, Any]]) -> None:
        """Until the pipe takes more or the lane closes: a server that does not read must not find later, when it does,
        what its callers have given up by then.
        """
        self._unwritten.add(request_id)
        while self._full() and not answered.done():
            flushing: asyncio.Future[Any] = asyncio.ensure_future(self._flushed())
            try:
                await asyncio.wait({flushing, answered}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                flushing.cancel()
        self._unwritten.discard(request_id)

    @property
    def pending(self) -> list[int]:
        """The ids of the requests that wait for an answer."""
        return list(self._pending)

    def owns(self, message: Mapping[str, Any]) -> bool:
        """Whether this answers a request of the lane's."""
        return _request_id(message) is not None

    def take(self, message: Mapping[str, Any]) -> bool:
        """Give an answer to whoever waits for it; `False` if it is not the lane's."""
        request_id = _request_id(message)
        if request_id is None:
            return False
        answered = self._pending.get(request_id)
        if answered is not None and not answered.done() and ("result" in message or "error" in message):
            answered.set_result(message)
        return True  # too late, or no answer at all: nobody else's either

    def close(self) -> None:
        """Take back what waits, and refuse what comes."""
        self._open = False
        for request_id, answered in self._pending.items():
            if not answered.done():
                self._take_back(request_id, "connection closed")
                answered.set_exception(anyio.ClosedResourceError())
                answered.exception()  # whoever waited may have been cancelled in the same moment, and never ask

    def _take_back(self, request_id: int, reason: str) -> None:
        if request_id in self._unwritten:
            return
        params = {"requestId": request_id, "reason": reason}
        self._write(_encode({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}))


def _encode(message: Mapping[str, Any]) -> str:
    try:
        return codec.dumps(message)
    except TypeError:  # a call from this process may have what only pydantic can write, a path for instance
        return codec.dumps(to_jsonable_python(message))


def _request_id(message: Mapping[str, Any]) -> int | None:
    request_id = message.get("id")
    if isinstance(request_id, str) and len(request_id) < 19 and request_id.isdecimal():
        request_id = int(request_id)  # some servers write ids as text, whatever they were
    is_ours = isinstance(request_id, int) and request_id >= _FIRST_ID and message.get("method") is None
    return request_id if is_ours else None
