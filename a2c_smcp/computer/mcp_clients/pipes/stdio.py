"""One MCP server that talks over the stdin and stdout of a process. Knows no MCP beyond its framing.

Leaving a `StdioTransport` has a fixed order, shielded from cancellation, with a time limit for each step: flush what
was accepted, close stdin, SIGTERM the group, SIGKILL the group, reap, join the pumps. If even that is interrupted, the
group is killed at once. POSIX only: on Windows `transports` uses mcp's own.
"""

import asyncio
import codecs
import json
import logging
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from types import TracebackType
from typing import IO, Any, Final

import anyio
from mcp_types import PARSE_ERROR

from a2c_smcp.computer.mcp_clients.item_limits import largest_answer
from a2c_smcp.computer.mcp_clients.log_messages import MAX_LOG_LINE
from a2c_smcp.computer.mcp_clients.model import StdioParameters
from a2c_smcp.computer.mcp_clients.pipes.dispatcher import PipeDispatcher
from a2c_smcp.computer.mcp_clients.pipes.guardian import Guardian
from a2c_smcp.computer.mcp_clients.pipes.long_lines import answered_by
from a2c_smcp.computer.mcp_clients.pipes.process import Process, ServerProcess, StdioTimings
from a2c_smcp.computer.mcp_clients.pipes.server_initiated import Pipe
from a2c_smcp.computer.mcp_clients.probe import Probe
from a2c_smcp.computer.utils.callbacks import ignore
from a2c_smcp.errors import PayloadTooLargeError
from a2c_smcp.utils.pipes import Line, LineReader, LineSplitter, LongLine, Writer, read
from a2c_smcp.wire import DEFAULT_MAX_MESSAGE, codec

__all__ = ["StdioTransport"]

logger = logging.getLogger(__name__)

#: How many bad lines of each kind are logged.
_LOGGED: Final = 3


class StdioTransport:
    """An async context manager that runs a server and yields the dispatcher of its session. Entered once.

    `on_end` is called when the server ends the session. `screen` is passed to the dispatcher. `redaction` takes secrets
    out of what the server writes to stderr. `probe` watches the first requests, if they are a probe. `largest_answer`
    of `max_message` is how long a line of stdout may be. A longer line is not kept, and the request that it answers
    fails with code 413. A request whose answer cannot be read fails, too. The `guardian` starts the server, if there is
    one; with `keeps_detached`, processes with sessions of their own may outlive it.

    Entering raises `OSError` if the command cannot be run, `ValueError` if its parameters are impossible.
    """

    def __init__(
        self,
        parameters: StdioParameters,
        *,
        timings: StdioTimings | None = None,
        on_stderr: Callable[[str], None] | None = None,
        on_end: Callable[[], None] = ignore,
        screen: Callable[[str, dict[str, Any]], dict[str, Any]] | None = None,
        redaction: Callable[[str], str] = str,
        probe: Probe | None = None,
        max_message: int = DEFAULT_MAX_MESSAGE,
        guardian: Guardian | None = None,
        keeps_detached: bool = False,
    ) -> None:
        self._parameters = parameters
        self._guardian = guardian
        self._keeps_detached = keeps_detached
        self._redaction = redaction
        self._probe = probe
        self._max_line = largest_answer(max_message)
        self._timings = timings or StdioTimings()
        self._on_stderr = on_stderr
        self._on_end = on_end
        self._screen = screen
        self._stderr: deque[str] = deque(maxlen=200)
        self._process: ServerProcess | None = None
        self._noise = 0
        self._long_lines = 0
        self._stdout_ended = asyncio.Event()
        self.dispatcher: PipeDispatcher | None = None
        """The dispatcher of the running session."""
        self._context: AbstractAsyncContextManager[PipeDispatcher] | None = None
        self._is_utf8 = False

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def exit_code(self) -> int | None:
        """The server's exit code, negative for a signal; `None` while it runs."""
        return self._process.exit_code if self._process else None

    @property
    def exit_reason(self) -> str | None:
        """How the server ended, in words; `None` while it runs."""
        return self._process.exit_reason if self._process else None

    @property
    def stderr_tail(self) -> tuple[str, ...]:
        """The last lines that the server wrote to stderr, oldest first."""
        return tuple(self._stderr)

    async def __aenter__(self) -> PipeDispatcher:
        self._context = self._run()
        return await self._context.__aenter__()

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        assert self._context is not None
        return await self._context.__aexit__(exc_type, exc, traceback)

    @asynccontextmanager
    async def _run(self) -> AsyncGenerator[PipeDispatcher, None]:
        if "\n".encode(self._parameters.encoding) != b"\n":
            raise ValueError("the encoding of an MCP server must be an extension of ASCII")
        self._is_utf8 = codecs.lookup(self._parameters.encoding).name == "utf-8"
        process = self._process = await self._start()
        # Nothing is awaited from here to the `try`: a cancellation in between would leak the process.
        writer = Writer(process.stdin.fileno(), on_broken=self._on_broken)
        reader = LineReader(process.stdout.fileno(), self._max_line, self._on_line, self._on_stdout_end)
        reader.pause()  # until the session runs
        pipe = Pipe(
            write=writer.write if self._is_utf8 else lambda line: writer.write(self._encode(line)),
            is_full=lambda: writer.is_blocked,
            flushed=writer.flushed,
            pause=reader.pause,
            resume=reader.resume,
        )
        dispatcher = self.dispatcher = PipeDispatcher(pipe, self._screen)
        stderr = _Pump(lambda: self._read_stderr(process.stderr))
        watch = _Pump(lambda: self._watch(process))
        pumps = [stderr, watch]
        if (probe := self._probe) is not None:

            def is_read() -> bool:
                return not (writer.is_blocked or process.has_unread)

            pumps.append(_Pump(lambda: probe.watch(lambda: dispatcher.unanswered, is_read, dispatcher.take)))
        try:
            async with anyio.create_task_group() as tasks:
                for pump in pumps:
                    tasks.start_soon(pump.run)
                try:
                    yield dispatcher
                finally:
                    try:
                        with anyio.CancelScope(shield=True):
                            await self._shut_down(process, dispatcher, reader, writer)
                            await stderr.join(self._timings.drain)
                    finally:
                        for pump in pumps:
                            pump.cancel()
        finally:
            dispatcher.close()
            reader.close()
            writer.close()
            process.destroy()

    async def _start(self) -> ServerProcess:
        if self._guardian is None:
            return Process(self._parameters)
        return await self._guardian.spawn(self._parameters, self._timings, keeps=self._keeps_detached)

    async def _shut_down(
        self, process: ServerProcess, dispatcher: PipeDispatcher, reader: LineReader, writer: Writer
    ) -> None:
        dispatcher.close()
        reader.resume()  # what the server still writes is dropped, but a full pipe would block the server
        with anyio.move_on_after(self._timings.flush):
            await writer.flushed()
        writer.close()
        process.stdin.close()
        await process.stop(self._timings)
        await self._drain()
        reader.close()

    async def _watch(self, process: ServerProcess) -> None:
        """End the session when the server exits, even if a child of the server keeps stdout open."""
        await process.wait()
        await self._drain()
        self._end()

    async def _drain(self) -> None:
        """Wait a moment for the server's last words."""
        with anyio.move_on_after(self._timings.drain):
            await self._stdout_ended.wait()

    def _on_stdout_end(self) -> None:
        self._stdout_ended.set()
        self._end()

    def _on_broken(self) -> None:
        """The server does not read any more. Its last answers may still wait in the other pipe."""
        asyncio.get_running_loop().call_later(self._timings.drain, self._end)

    def _end(self) -> None:
        if self.dispatcher is not None and not self.dispatcher.is_closed:
            self._on_end()
            self.dispatcher.close()

    def _on_line(self, line: Line) -> None:
        if self._is_utf8 and type(line) is bytes:
            try:
                message = codec.loads(line)
            except ValueError:
                message = None  # what is wrong with it is found below
            if type(message) is dict and message.get("jsonrpc") == "2.0":
                if self._probe is None and self.dispatcher is not None:
                    self.dispatcher.take(message)
                else:
                    self._take(message)
                return
        if isinstance(line, LongLine):
            for failure in self._failures(line):
                self._take(failure)
        elif (found := self._decode(line)) is not None:
            self._take(found)

    def _take(self, message: dict[str, Any]) -> None:
        if self._probe is not None:
            self._probe.heard()
            self._probe = None
        if self.dispatcher is not None:
            self.dispatcher.take(message)

    def _encode(self, line: bytes) -> bytes:
        """A line in the encoding of the server."""
        encoding, errors = self._parameters.encoding, self._parameters.encoding_error_handler
        try:
            return line.decode().encode(encoding, errors)
        except UnicodeEncodeError:
            # A character that the encoding lacks is written as an escape.
            return (json.dumps(json.loads(line), separators=(",", ":")) + "\n").encode(encoding, errors)

    def _failures(self, line: LongLine) -> list[dict[str, Any]]:
        """An error for the request that a long line answers. If the line does not show which request, an error for
        each that waits.
        """
        answered = answered_by(line)
        if not answered.is_answer or self.dispatcher is None:
            failed = []
        elif answered.request_id is None:
            failed = self.dispatcher.unanswered
        else:
            failed = [answered.request_id]
        self._long_lines += 1
        if self._long_lines <= _LOGGED:
            text = "MCP server %s wrote a line of %d bytes; at most %d are allowed: %d requests fail with it%s"
            last = "; further ones are not logged" if self._long_lines == _LOGGED else ""
            logger.warning(text, self.pid, line.size, self._max_line, len(failed), last)
        text = f"the server wrote {line.size} bytes on one line; at most {self._max_line} are allowed"
        error = {"code": PayloadTooLargeError.default_code, "message": text}
        return [{"jsonrpc": "2.0", "id": request_id, "error": error} for request_id in failed]

    def _decode(self, line: bytes) -> dict[str, Any] | None:
        """The message in a line, or an error instead. `None` for other lines: servers print what they should log."""
        line = line.strip()
        if line.startswith(b"{"):
            message = self._loads(line)
            if message is not None and message.get("jsonrpc") == "2.0":
                return message
        if line:
            self._noise += 1
            if self._noise <= _LOGGED:
                last = "; further ones are not logged" if self._noise == _LOGGED else ""
                logger.warning("MCP server %s wrote a line to stdout that is not a JSON-RPC message%s", self.pid, last)
        return self._failure(line) if line.startswith(b"{") else None

    def _loads(self, line: bytes) -> dict[str, Any] | None:
        """The JSON object in a line; `None` if there is none."""
        with suppress(ValueError, RecursionError):
            text = line.decode(self._parameters.encoding, self._parameters.encoding_error_handler)
            found: dict[str, Any]
            try:
                found = codec.loads(text)
            except ValueError:
                found = json.loads(text)  # which reads NaN, too: servers write it
            return found
        return None

    def _failure(self, line: bytes) -> dict[str, Any] | None:
        """An error for the request that an unreadable line answers: its caller would wait in vain."""
        request_id = answered_by(LongLine(line[:4096], line[-4096:], len(line))).request_id
        if request_id is None:
            return None
        text = f"the server's answer cannot be read: it is not a JSON-RPC message in {self._parameters.encoding}"
        return {"jsonrpc": "2.0", "id": request_id, "error": {"code": PARSE_ERROR, "message": text}}

    async def _read_stderr(self, pipe: IO[bytes]) -> None:
        # More than is kept of a line: a secret that is cut in half would not be found.
        lines = LineSplitter(64 * 1024, ends=64 * 1024)
        while chunk := await read(pipe.fileno()):
            for line in lines.feed(chunk):
                self._note_stderr(line)
        if rest := lines.rest():
            self._note_stderr(rest)

    def _note_stderr(self, line: Line) -> None:
        said = line.head if isinstance(line, LongLine) else line
        text = self._redaction(said.decode("utf-8", "replace").rstrip())[:MAX_LOG_LINE]
        self._stderr.append(text)
        if self._on_stderr is not None:
            try:
                self._on_stderr(text)
            except Exception:
                # A boundary: the callback is not ours, and a dead pump would block the server.
                logger.exception("the stderr callback failed")


# --- the pumps


class _Pump:
    """A task that is not cancelled with its owner, because the shutdown needs it."""

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
        """Wait until it ends. When the time is up, cancel it."""
        with anyio.move_on_after(timeout):
            await self._done.wait()
        self._scope.cancel()
        await self._done.wait()

    def cancel(self) -> None:
        self._scope.cancel()
