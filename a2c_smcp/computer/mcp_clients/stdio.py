"""One MCP server that talks over the stdin and stdout of a process. Knows no MCP beyond its framing.

`StdioTransport` is what mcp's `Client` takes as a transport. Leaving it follows a fixed order, shielded from
cancellation and bounded at every step: flush what was accepted, close stdin, SIGTERM the group, SIGKILL the group,
reap, join the pumps. If even that is interrupted, the group is killed on the spot. POSIX only: on Windows `transports`
uses mcp's own.
"""

import asyncio
import json
import logging
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from types import TracebackType
from typing import IO, Any, Final

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCMessage, JSONRPCRequest, jsonrpc_message_adapter
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from a2c_smcp.computer.mcp_clients.lane import Lane
from a2c_smcp.computer.mcp_clients.long_lines import answered_by
from a2c_smcp.computer.mcp_clients.model import StdioParameters
from a2c_smcp.computer.mcp_clients.pipes import Line, LineReader, Lines, LongLine, Writer, read
from a2c_smcp.computer.mcp_clients.probe import Probe
from a2c_smcp.computer.mcp_clients.process import Process, StdioTimings
from a2c_smcp.errors import PayloadTooLargeError
from a2c_smcp.wire import DEFAULT_MAX_MESSAGE, codec

__all__ = ["StdioTransport"]

logger = logging.getLogger(__name__)

#: What is kept of a line, and what is looked at before it is cut: half a secret would not be found.
_MAX_STDERR_LINE: Final = 4096
_MAX_STDERR_LOOKED_AT: Final = 64 * 1024
_STDERR_LINES: Final = 200
_NOISE_LOGGED: Final = 3
#: One would do for either MCP era; with none, every other answer overtakes its announcement.
_TURNS_TO_SETTLE: Final = 3
#: Messages that may wait for their turn before nothing more is read.
_MOST_WAITING: Final = 64

_Streams = tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]


class StdioTransport:
    """An async context manager that runs a server and yields the stream pair of its session. Entered once.

    `veil` takes secrets out of what it writes to stderr. `probe` follows the first requests, where they are a probe. A
    line of its stdout may have a quarter more than `max_message`, because the same JSON can be written longer than we
    write it. Of a longer one nothing is kept, and the request that it answers fails with an error of code 413.

    Entering raises `OSError` when the command cannot be run, `ValueError` when its parameters are impossible.
    """

    def __init__(
        self,
        parameters: StdioParameters,
        *,
        timings: StdioTimings | None = None,
        on_stderr: Callable[[str], None] | None = None,
        veil: Callable[[str], str] = str,
        probe: Probe | None = None,
        max_message: int = DEFAULT_MAX_MESSAGE,
    ) -> None:
        self._parameters = parameters
        self._veil = veil
        self._probe = probe
        self._max_line = max_message + max_message // 4
        self._timings = timings or StdioTimings()
        self._on_stderr = on_stderr
        self._stderr: deque[str] = deque(maxlen=_STDERR_LINES)
        self._process: Process | None = None
        self._noise = 0
        self._long_lines = 0
        self._asked: set[str | int] = set()
        """The ids of the session's requests that were not answered."""
        self.lane = Lane(self._write_line, self._is_full, self._flushed)
        """For requests beside the session, once that has shaken hands."""
        self._stdin: Writer | None = None
        self._context: AbstractAsyncContextManager[_Streams] | None = None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def exit_code(self) -> int | None:
        """The server's exit code, negative for a signal; `None` while it runs."""
        return self._process.exit_code if self._process else None

    @property
    def stderr_tail(self) -> tuple[str, ...]:
        """The last lines that the server wrote to stderr, oldest first."""
        return tuple(self._stderr)

    async def __aenter__(self) -> _Streams:
        self._context = self._run()
        return await self._context.__aenter__()

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        assert self._context is not None
        return await self._context.__aexit__(exc_type, exc, traceback)

    @asynccontextmanager
    async def _run(self) -> AsyncGenerator[_Streams, None]:
        if "\n".encode(self._parameters.encoding) != b"\n":
            raise ValueError("the encoding of an MCP server must contain ASCII")
        # From here to the `try` nothing is awaited: a cancellation in between would leak the process.
        process = self._process = Process(self._parameters)
        to_session, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        from_session, to_server = anyio.create_memory_object_stream[SessionMessage](0)
        writer = self._stdin = Writer(process.stdin.fileno(), on_broken=to_session.close)
        stdin = _Pump(lambda: self._write_stdin(writer, to_server))
        incoming = _Incoming(self.lane, to_session)
        stdout = _Pump(lambda: self._read_stdout(process.stdout, to_session, incoming))
        stderr = _Pump(lambda: self._read_stderr(process.stderr))
        watch = _Pump(lambda: self._watch(process, stdout, to_session))
        pumps = [stdin, stdout, stderr, watch]
        if (probe := self._probe) is not None:
            pumps.append(
                _Pump(lambda: probe.watch(lambda: not (writer.is_blocked or process.has_unread), incoming.add))
            )
        try:
            async with anyio.create_task_group() as tasks:
                for pump in pumps:
                    tasks.start_soon(pump.run)
                try:
                    yield from_server, from_session
                finally:
                    try:
                        with anyio.CancelScope(shield=True):
                            from_server.close()  # the stdout pump goes on draining, so that the server can go on
                            from_session.close()
                            await stdin.join(self._timings.flush)
                            writer.close()
                            process.stdin.close()
                            await process.stop(self._timings)
                            await stdout.join(self._timings.drain)
                            await stderr.join(self._timings.drain)
                    finally:
                        for pump in pumps:
                            pump.cancel()
        finally:
            self.lane.close()
            writer.close()
            process.destroy()
            for stream in (to_session, from_server, from_session, to_server):
                stream.close()

    async def _watch(
        self,
        process: Process,
        stdout: "_Pump",
        to_session: MemoryObjectSendStream[SessionMessage | Exception],
    ) -> None:
        """Ends the session when the server exits, even if a child that it left behind holds its stdout open."""
        await process.wait()
        await stdout.join(self._timings.drain)
        to_session.close()

    async def _write_stdin(self, writer: Writer, messages: MemoryObjectReceiveStream[SessionMessage]) -> None:
        with messages:
            async for message in messages:
                if self._probe is not None:
                    self._probe.sent(message.message)
                if isinstance(message.message, JSONRPCRequest):
                    self._asked.add(message.message.id)
                writer.write(self._encode(message.message))
                await writer.flushed()
        await writer.flushed()

    def _write_line(self, text: str) -> None:
        if self._stdin is not None:
            self._stdin.write(self._encode_text(text))

    def _is_full(self) -> bool:
        return self._stdin is not None and self._stdin.is_blocked

    async def _flushed(self) -> None:
        if self._stdin is not None:
            await self._stdin.flushed()

    def _encode(self, message: JSONRPCMessage) -> bytes:
        try:
            return self._encode_text(message.model_dump_json(by_alias=True, exclude_unset=True))
        except PydanticSerializationError:  # a lone surrogate in an argument
            return self._encode_text(codec.dumps(message.model_dump(by_alias=True, exclude_unset=True)))

    def _encode_text(self, text: str) -> bytes:
        encoding, errors = self._parameters.encoding, self._parameters.encoding_error_handler
        try:
            return (text + "\n").encode(encoding, errors)
        except UnicodeEncodeError:
            # A character that the encoding lacks: escaped, it is fine.
            return (json.dumps(json.loads(text), separators=(",", ":")) + "\n").encode(encoding, errors)

    async def _read_stdout(
        self,
        pipe: IO[bytes],
        to_session: MemoryObjectSendStream[SessionMessage | Exception],
        incoming: "_Incoming",
    ) -> None:
        def on_line(line: Line) -> None:
            for message in self._messages(line):
                if self._probe is not None:
                    self._probe.heard()
                if incoming.add(message) >= _MOST_WAITING:
                    reader.pause()

        reader = LineReader(pipe.fileno(), self._max_line, on_line, on_end=incoming.end)
        try:
            with to_session:
                while await incoming.deliver():
                    reader.resume()  # it may have paused meanwhile, and nothing would stir again
                    await incoming.stirred()
        finally:
            reader.close()
            self.lane.close()

    def _messages(self, line: Line) -> list[dict[str, Any]]:
        """What a line says, or what stands for a line that was too long."""
        if isinstance(line, LongLine):
            return self._failures(line)
        message = self._decode(line)
        if message is None:
            return []
        if message.get("method") is None and isinstance(answered := message.get("id"), str | int):
            self._asked.discard(answered)
        return [message]

    def _failures(self, line: LongLine) -> list[dict[str, Any]]:
        """An error for the request that a line answers; for all that wait, when it does not show which that is."""
        answered = answered_by(line)
        if not answered.is_answer:
            failed = []
        elif answered.request_id is None:
            failed = [*self.lane.pending, *self._asked]
        else:
            failed = [self._own_id(answered.request_id)]
        self._asked.difference_update(failed)
        self._long_lines += 1
        if self._long_lines <= _NOISE_LOGGED:
            text = "MCP server %s wrote a line of %d bytes, and may write %d: %d requests fail with it%s"
            last = "; further ones are not logged" if self._long_lines == _NOISE_LOGGED else ""
            logger.warning(text, self.pid, line.size, self._max_line, len(failed), last)
        text = f"the server wrote {line.size} bytes on one line, and may write {self._max_line}"
        error = {"code": PayloadTooLargeError.default_code, "message": text}
        return [{"jsonrpc": "2.0", "id": request_id, "error": error} for request_id in failed]

    def _own_id(self, request_id: str | int) -> str | int:
        """The id of a request as it was sent; some servers write ids as text, whatever they were."""
        if isinstance(request_id, str) and len(request_id) < 19 and request_id.isdecimal():
            return int(request_id) if int(request_id) in self._asked else request_id
        return request_id

    def _decode(self, line: bytes) -> dict[str, Any] | None:
        """The object in a line, or `None`. Servers print what they should log."""
        line = line.strip()
        if line.startswith(b"{"):
            with suppress(ValueError, RecursionError):
                text = line.decode(self._parameters.encoding, self._parameters.encoding_error_handler)
                message: dict[str, Any] = _loads(text)
                if message.get("jsonrpc") == "2.0":
                    return message
        if line:
            self._noise += 1
            if self._noise <= _NOISE_LOGGED:
                last = "; further ones are skipped silently" if self._noise == _NOISE_LOGGED else ""
                logger.warning("MCP server %s wrote a line to stdout that is no JSON-RPC message%s", self.pid, last)
        return None

    async def _read_stderr(self, pipe: IO[bytes]) -> None:
        lines = Lines(_MAX_STDERR_LOOKED_AT, ends=_MAX_STDERR_LOOKED_AT)
        while chunk := await read(pipe.fileno()):
            for line in lines.feed(chunk):
                self._note_stderr(line)
        if rest := lines.rest():
            self._note_stderr(rest)

    def _note_stderr(self, line: Line) -> None:
        said = line.head if isinstance(line, LongLine) else line
        text = self._veil(said.decode("utf-8", "replace").rstrip())[:_MAX_STDERR_LINE]
        self._stderr.append(text)
        if self._on_stderr is not None:
            try:
                self._on_stderr(text)
            except Exception:
                # A boundary: the callback is not ours, and a dead pump would block the server.
                logger.exception("the stderr callback failed")


def _loads(text: str) -> Any:
    try:
        return codec.loads(text)
    except ValueError:
        return json.loads(text)  # servers write NaN, too


class _Incoming:
    """What a server said, on its way to the session or the lane, in order: whoever has the answer of a tool can count
    on what the server announced before it. An answer that nothing waits before takes no detour.
    """

    def __init__(self, lane: Lane, to_session: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        self._lane = lane
        self._to_session = to_session
        self._waiting: deque[dict[str, Any]] = deque()
        self._idle = True
        """Whether nothing is on its way, so that an answer may go straight to the lane."""
        self._unheard = False
        """Whether the session was given something that it may not have acted on yet."""
        self._stirred = asyncio.Event()
        self._ended = False

    def add(self, message: dict[str, Any]) -> int:
        """Take a message, and tell how many wait."""
        if self._idle and self._lane.take(message):
            return 0
        self._idle = False
        self._waiting.append(message)
        self._stirred.set()
        return len(self._waiting)

    def end(self) -> None:
        self._ended = True
        self._stirred.set()

    async def deliver(self) -> bool:
        """Pass on everything that waits, and tell whether there may be more."""
        while self._waiting:
            if self._lane.owns(self._waiting[0]):
                await self._settle()
                self._lane.take(self._waiting.popleft())
            else:
                await self._send(self._waiting.popleft())
        await self._settle()
        self._idle = not self._waiting
        return bool(self._waiting) or not self._ended

    async def stirred(self) -> None:
        """Wait until there is something to pass on, or nothing more to come."""
        if not self._waiting and not self._ended:
            self._stirred.clear()
            await self._stirred.wait()

    async def _send(self, message: dict[str, Any]) -> None:
        try:
            parsed = jsonrpc_message_adapter.validate_python(message, by_name=False)
        except ValidationError:
            logger.debug("a message that is none of JSON-RPC's was skipped")
            return
        self._unheard = True
        # Closed or broken: the session is over, but the server must not block on a full pipe.
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            await self._to_session.send(SessionMessage(parsed))

    async def _settle(self) -> None:
        """Let the session act on what it has: its reader, the handler that it starts, and whoever that wakes each have
        a turn of the loop.
        """
        if self._unheard:
            self._unheard = False
            for _ in range(_TURNS_TO_SETTLE):
                await asyncio.sleep(0)


# --- the pumps


class _Pump:
    """A task that the owner's cancellation does not reach, because the shutdown needs it."""

    def __init__(self, work: Callable[[], Awaitable[None]]) -> None:
        self._work = work
        self._scope = anyio.CancelScope(shield=True)
        self._done = asyncio.Event()

    async def run(self) -> None:
        try:
            with self._scope:
                await self._work()
        finally:
            self._done.set()

    async def join(self, timeout: float) -> None:
        """Let it come to its end, and when the time is up, put an end to it."""
        with anyio.move_on_after(timeout):
            await self._done.wait()
        self._scope.cancel()
        await self._done.wait()

    def cancel(self) -> None:
        self._scope.cancel()
