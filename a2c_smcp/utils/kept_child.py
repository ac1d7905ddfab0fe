"""A child process that works for its owner. It starts when it is needed, is kept, and is replaced after it had to be
killed.

Use it for work that can hang, use up the memory or crash its process. The child's side is `serving_child`.
"""

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict
from typing import Any, Final

import anyio

from a2c_smcp.utils.children import kill_group, let_go, start_group
from a2c_smcp.utils.serving_child import LENGTH, ChildBounds

__all__ = ["ChildAnswerTooLargeError", "ChildClosedError", "ChildOutOfMemoryError", "KeptChild"]

_START_SECONDS: Final = 30.0
#: How many seconds may pass between the end of a child's stdout and its exit.
_EXIT_SECONDS: Final = 1.0


class ChildOutOfMemoryError(ConnectionError):
    """The child has aborted because it needed more memory than it may use."""


class ChildClosedError(RuntimeError):
    """The owner has closed the child."""


class ChildAnswerTooLargeError(ValueError):
    """The answer was longer than the bound, and the child did not send it. The next answers can be fetched."""

    def __init__(self, size: int) -> None:
        super().__init__(f"the answer has {size} bytes")
        self.size = size


class KeptChild:
    """Runs Python with `program`, which calls `serve`, and asks it one request at a time. Close it with `aclose`.

    The child gets `arguments` after its bounds. It also ends when this process ends, in any way.
    """

    def __init__(
        self,
        program: Sequence[str],
        bounds: ChildBounds,
        arguments: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._command = (sys.executable, "-P", *program, json.dumps(asdict(bounds)), *arguments)
        self.bounds = bounds
        self._env = env or {}
        self._lock = asyncio.Lock()
        self._process: Process | None = None
        self._closed = False

    @property
    def pid(self) -> int | None:
        """The process that is kept. The next request finds out whether it still lives."""
        return None if self._process is None else self._process.pid

    async def aclose(self) -> None:
        """End the process and start no other. A running request raises `ChildClosedError`."""
        self._closed = True
        await self._end()
        # A request may be starting a process just now, also one that was cancelled. It ends it.
        with anyio.move_on_after(_START_SECONDS, shield=True):
            async with self._lock:
                pass

    @asynccontextmanager
    async def exchange(self, request: Any) -> AsyncIterator[Callable[[], Awaitable[Any]]]:
        """Send a request. Yields a function that waits for the next answer; the block has to fetch all answers.

        If the block fails or is cancelled, the child is killed: a late answer would be taken for the answer to the next
        request. Waiting for an answer raises `ChildAnswerTooLargeError`, which the block may catch and go on;
        `TimeoutError`; `ChildClosedError`; `ChildOutOfMemoryError` or another `OSError` if the child has ended; and
        `ValueError` if the answer is not JSON.
        """
        encoded = json.dumps(request).encode()
        async with self._lock:
            try:
                if self._process is None or self._process.returncode is not None:
                    await self._end()
                    await self._start()
                self._check_open()
                assert self._process is not None
                assert self._process.stdin is not None
                self._process.stdin.writelines((LENGTH.pack(len(encoded)), encoded))
                yield self._answer
            except BaseException:
                await self._end()
                raise

    async def _answer(self) -> Any:
        return json.loads(await self._frame(self.bounds.answer_seconds))

    async def _start(self) -> None:
        self._check_open()
        self._process = await start_group(
            *self._command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env={**os.environ, **self._env}
        )
        await self._frame(_START_SECONDS)

    async def _frame(self, seconds: float) -> bytes:
        """The next answer of the child."""
        self._check_open()
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            async with asyncio.timeout(seconds):
                with suppress(ConnectionError):  # The code below finds out how it ended.
                    await process.stdin.drain()
                (size,) = LENGTH.unpack(await process.stdout.readexactly(LENGTH.size))
                if size > self.bounds.answer_bytes:
                    raise ChildAnswerTooLargeError(size)
                return await process.stdout.readexactly(size)
        except EOFError:
            self._check_open()
        with suppress(TimeoutError):
            async with asyncio.timeout(_EXIT_SECONDS):
                await process.wait()
        raise (ChildOutOfMemoryError if process.returncode == -signal.SIGABRT else ConnectionError)("the worker ended")

    def _check_open(self) -> None:
        """Call this after every wait: the child may have been closed meanwhile."""
        if self._closed:
            raise ChildClosedError("the worker is closed")

    async def _end(self) -> None:
        """Kill the process and reap it. It has nothing to save."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.returncode is None:
            await kill_group(process)
        else:  # perhaps long ago: its number may be somebody else's by now
            let_go(process)
