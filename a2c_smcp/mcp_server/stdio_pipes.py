"""stdin and stdout as mcp's streams of messages, read and written by the event loop without a thread.

mcp's own transport hands every line to a thread and takes it back, three times per call.
"""

import asyncio
import json
import os
import stat
import sys
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError, RequestId, jsonrpc_message_adapter

from a2c_smcp.utils.pipes import Line, LineReader, Writer
from a2c_smcp.utils.system import IS_UNIX
from a2c_smcp.utils.text import well_formed

__all__ = ["are_pipes", "piped"]


def are_pipes() -> bool:
    """Whether stdin and stdout are pipes or sockets, as a host makes them. Files, terminals and Windows need
    threads.
    """
    return IS_UNIX and all(_is_pipe(fd) for fd in (0, 1))


def _is_pipe(fd: int) -> bool:
    mode = os.fstat(fd).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


@asynccontextmanager
async def piped() -> AsyncIterator[tuple["ReceivedMessages", "SentMessages"]]:
    """The streams for incoming and outgoing messages. Meanwhile tools and their child processes see an empty stdin,
    and their output goes to stderr.
    """
    private = [os.dup(0), os.dup(1)]
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    for fd in private:
        os.set_blocking(fd, False)
    outgoing = SentMessages(private[1], lambda: incoming.close())
    incoming = ReceivedMessages(private[0], outgoing.send)
    try:
        yield incoming, outgoing
        with suppress(TimeoutError):
            async with asyncio.timeout(2.0):
                await outgoing.flushed()
    finally:
        incoming.close()
        outgoing.close()
        for fd, copy in enumerate(private):
            os.set_blocking(copy, True)
            os.dup2(copy, fd)
            os.close(copy)


class ReceivedMessages:
    """The messages of a client, as mcp's server reads them. An exception stands for a line that is not a message.

    mcp drops such a line without an answer, and the client would wait for ever. So `answer` is called with an error.
    """

    def __init__(self, fd: int, answer: Callable[[SessionMessage], Awaitable[None]]) -> None:
        self._answer = answer
        self._lines: deque[bytes] = deque()
        self._some = asyncio.Event()
        self._reader = LineReader(fd, sys.maxsize, self._take, self._some.set)

    def _take(self, line: Line) -> None:
        assert isinstance(line, bytes)
        self._lines.append(line)
        self._some.set()
        # How many lines may wait. After that the pipe fills up.
        if len(self._lines) >= 64:
            self._reader.pause()

    def __aiter__(self) -> "ReceivedMessages":
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        while not self._lines:
            if self._reader.ended:
                raise StopAsyncIteration
            self._some.clear()
            await self._some.wait()
        line = self._lines.popleft()
        self._reader.resume()
        try:
            return _message(line)
        except ValueError as error:
            return await self._repaired(line, error)

    async def _repaired(self, line: bytes, error: ValueError) -> SessionMessage | Exception:
        """Read a message that pydantic refuses: it accepts no lone surrogates, and only UTF-8."""
        try:
            value = json.loads(line.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            if line.strip():
                await self._answer(_refusal(None, PARSE_ERROR, "Parse error: this line is not readable JSON"))
            return error
        try:
            return _message(well_formed(json.dumps(value, ensure_ascii=False)))
        except (ValueError, RecursionError):
            if (request_id := _asked_in(value)) is not None:
                problem = "Invalid request: it does not fit JSON-RPC, or is nested too deeply"
                await self._answer(_refusal(request_id, INVALID_REQUEST, problem))
            return error

    async def receive(self) -> SessionMessage | Exception:
        return await self.__anext__()

    def close(self) -> None:
        self._reader.close()
        self._some.set()

    async def aclose(self) -> None:
        self.close()

    async def __aenter__(self) -> "ReceivedMessages":
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()


def _message(line: str | bytes) -> SessionMessage:
    return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))


def _asked_in(value: Any) -> RequestId | None:
    """The id of a request whose sender waits for an answer."""
    request_id = value.get("id") if isinstance(value, dict) and "method" in value else None
    if isinstance(request_id, str):
        return well_formed(request_id)
    return request_id if isinstance(request_id, int) and not isinstance(request_id, bool) else None


def _refusal(request_id: RequestId | None, code: int, message: str) -> SessionMessage:
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=request_id, error=ErrorData(code=code, message=message)))


class SentMessages:
    """The messages of the server, as mcp's server writes them: at once. A writer waits while the pipe is full."""

    def __init__(self, fd: int, on_broken: Callable[[], None]) -> None:
        self._writer = Writer(fd, on_broken)

    async def send(self, item: SessionMessage) -> None:
        text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        self._writer.write(text.encode("utf-8", "replace") + b"\n")
        if self._writer.is_blocked:
            await self._writer.flushed()

    async def flushed(self) -> None:
        await self._writer.flushed()

    def close(self) -> None:
        self._writer.close()

    async def aclose(self) -> None:
        """Written messages still go out; `piped` closes the pipe."""

    async def __aenter__(self) -> "SentMessages":
        return self

    async def __aexit__(self, *_: object) -> None:
        pass
