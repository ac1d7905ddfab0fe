"""VRL: a config's program that transforms what its server's tools return. Needs the extra `vrl`.

The library holds the GIL while a program runs, so programs run in a kept worker process, which is killed at the
deadline, aborts when it needs too much memory, and is replaced by the next call. A program that fails never harms a
result: it is logged, and the result stays.
"""

import asyncio
import json
import logging
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import anyio
from mcp_types import CallToolResult

from a2c_smcp.computer.utils.children import kill_group
from a2c_smcp.results import VRL_MARKER, to_wire, with_markers
from a2c_smcp.types import TOOL_NAME

__all__ = ["VRL_MEMORY", "VRL_SECONDS", "VRLWorker"]

logger = logging.getLogger(__name__)

#: How long one run of a program may take.
VRL_SECONDS: Final = 5.0
#: How many bytes of memory the worker may have. A result of 16 MiB that is one text takes 550 MiB there and back.
VRL_MEMORY: Final = 768 * 1024 * 1024

# By its file, not as a module: importing the packages around it would cost the worker a second.
_WORKER: Final = (sys.executable, "-P", str(Path(__file__).with_name("worker.py")))
_MAX_ANSWER: Final = 64 * 1024 * 1024
_END_SECONDS: Final = 1.0


class _VRLFailure(Exception):  # noqa: N818 - never leaves this module
    """Why a program gave no event."""


class VRLWorker:
    """One worker process, started by the first transformation, closed with `async with`; runs one program at a time.

    `quote` is how a program's failure is logged, which may quote the program. `memory` are the bytes of memory that
    the worker may have.
    """

    def __init__(
        self, deadline: float = VRL_SECONDS, quote: Callable[[object], str] = str, memory: int = VRL_MEMORY
    ) -> None:
        self._deadline = deadline
        self._memory = memory
        self._quote = quote
        self._lock = asyncio.Lock()
        self._process: asyncio.subprocess.Process | None = None
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End the worker process; a transformation that runs leaves its result as it was."""
        self._closed = True
        await self._discard()

    async def transform(
        self, program: str, result: CallToolResult, tool_name: TOOL_NAME, parameters: Mapping[str, Any]
    ) -> CallToolResult:
        """The result with what the program made of it in its meta.

        An error result comes back as it was, and so does any result when the program fails.
        """
        if result.is_error:
            return result
        event = {**to_wire(result), "tool_name": tool_name, "parameters": dict(parameters)}
        try:
            transformed = await self._run(program, event)
        except _VRLFailure as failure:
            logger.warning("VRL left the result of %s alone: %s", tool_name, self._quote(failure))
            return result
        return with_markers(result, {VRL_MARKER: json.dumps(transformed, ensure_ascii=False)})

    async def _run(self, program: str, event: Mapping[str, Any]) -> Any:
        request = {"program": program, "event": event, "seconds": self._deadline}
        try:
            async with self._lock:
                with anyio.fail_after(self._deadline):
                    answer = await self._ask(request)
        except TimeoutError:
            raise _VRLFailure(f"it took longer than {self._deadline:g} s") from None
        except (OSError, ValueError, TypeError, RecursionError) as error:
            # The pipe broke, the answer is larger than any result may be, or the event is no JSON.
            raise _VRLFailure(str(error)) from None
        if "error" in answer:
            raise _VRLFailure(_first_line(answer["error"]))
        return answer["event"]

    async def _ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        try:
            answer: dict[str, Any] = json.loads(await self._exchange(await self._started(), request))
        except BaseException:
            # Also when cancelled: the answer that is still to come would be taken for the next one's.
            await self._discard()
            raise
        return answer

    async def _exchange(self, process: asyncio.subprocess.Process, request: Mapping[str, Any]) -> bytes:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(request).encode() + b"\n")
        with suppress(ConnectionError):  # how it ended is found out below
            await process.stdin.drain()
        line = await process.stdout.readline()
        if not line.endswith(b"\n"):
            with anyio.move_on_after(_END_SECONDS):
                await process.wait()
            if process.returncode == -signal.SIGABRT:
                raise OSError(f"it took more than {self._memory // 2**20} MiB of memory")
            raise OSError("the VRL worker ended")
        return line

    async def _started(self) -> asyncio.subprocess.Process:
        if self._process is None or self._process.returncode is not None:
            self._check_open()
            self._process = await asyncio.create_subprocess_exec(
                *_WORKER,
                str(self._memory),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                limit=_MAX_ANSWER,
                # A Ctrl-C at the terminal is the Computer's to handle.
                start_new_session=True,
            )
            self._check_open()
        return self._process

    def _check_open(self) -> None:
        """Before the worker starts, and again after: it may be closed in between."""
        if self._closed:
            raise OSError("the VRL worker is closed")

    async def _discard(self) -> None:
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            await kill_group(process)


def _first_line(text: str) -> str:
    return next(filter(None, map(str.strip, text.splitlines())), "")[:200]
