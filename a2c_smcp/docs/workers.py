"""Worker processes that read files, kept, killed at the deadline and replaced. Knows nothing of what they read."""

import asyncio
import json
import logging
import os
import struct
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress
from typing import Any, Final

import anyio

from a2c_smcp.docs.limits import DocumentLimits, Unreadable

__all__ = ["Workers"]

logger = logging.getLogger(__name__)

_WORKER: Final = (sys.executable, "-P", "-m", "a2c_smcp.docs.worker")
_LENGTH: Final = struct.Struct(">I")
_LARGEST_ANSWER: Final = 16 * 2**20
_START_SECONDS: Final = 30.0
_REAP_SECONDS: Final = 5.0


class _Worker:
    """One process, from its first request to its end."""

    def __init__(self, limits: DocumentLimits) -> None:
        self._limits = limits
        self._process: asyncio.subprocess.Process | None = None
        self.last_file: Any = None

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    async def send(self, request: dict[str, Any]) -> None:
        self.last_file = request.get("file")
        if self._process is None or self._process.returncode is not None:
            self._process = await asyncio.create_subprocess_exec(
                *_WORKER,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                start_new_session=True,  # a Ctrl-C at the terminal is the server's to handle
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            )
            await self._write(self._limits.to_json())
        await self._write(request)

    async def _write(self, value: dict[str, Any]) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        encoded = json.dumps(value).encode()
        self._process.stdin.write(_LENGTH.pack(len(encoded)) + encoded)
        await self._process.stdin.drain()

    async def answer(self) -> dict[str, Any]:
        assert self._process is not None
        assert self._process.stdout is not None
        (size,) = _LENGTH.unpack(await self._process.stdout.readexactly(_LENGTH.size))
        if size > _LARGEST_ANSWER:
            raise ConnectionError("the answer is too large")
        found: dict[str, Any] = json.loads(await self._process.stdout.readexactly(size))
        return found

    async def end(self) -> None:
        """Kill and reap; it has nothing to save."""
        process, self._process = self._process, None
        self.last_file = None
        if process is None:
            return
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
        with anyio.move_on_after(_REAP_SECONDS, shield=True):
            await process.wait()


class Workers:
    """A few workers, closed with `async with`. Background work never takes the last one: a client may be waiting."""

    def __init__(self, limits: DocumentLimits, count: int = 2) -> None:
        self._limits = limits
        self._idle = [_Worker(limits) for _ in range(max(2, count))]
        self._all = list(self._idle)
        self._free = asyncio.Semaphore(len(self._all))
        self._background = asyncio.Semaphore(len(self._all) - 1)
        self._closed = False

    @property
    def background_count(self) -> int:
        """How many requests in the background run side by side."""
        return len(self._all) - 1

    @property
    def pids(self) -> list[int]:
        """The processes that there are."""
        return [worker.pid for worker in self._all if worker.pid is not None]

    async def __aenter__(self) -> "Workers":
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closed = True
        for worker in self._all:
            await worker.end()

    async def describe(self, files: Sequence[Sequence[Any]], *, background: bool = False) -> list[dict[str, Any]]:
        """One answer a file: `facts`, `problem` or `changed`."""
        answers: list[dict[str, Any]] = []
        while len(answers) < len(files):
            rest = [list(file) for file in files[len(answers) :]]
            request = {"do": "describe", "files": rest}
            answers += await self._ask(request, len(rest), background)
        return answers

    async def read(
        self, what: str, file: Sequence[Any], first: int, count: int = 1, *, background: bool = False
    ) -> list[dict[str, Any]]:
        """One answer a page: `page`, `summary` or `texts`, as asked for, or `problem` or `changed`."""
        answers: list[dict[str, Any]] = []
        while len(answers) < count:
            done = len(answers)
            request = {"do": what, "file": list(file), "first": first + done, "count": count - done}
            answers += await self._ask(request, count - done, background)
        return answers

    async def _ask(self, request: dict[str, Any], units: int, background: bool) -> list[dict[str, Any]]:
        """The answers up to the first thing that a worker died of, that one included."""
        async with self._borrowed(request.get("file"), background) as worker:
            kept = worker.pid is not None
            answers, failure = await self._exchange(worker, request, units)
            if kept and not answers and failure is not None and failure.code == 500:
                # A kept worker may have died of something else, long ago. The file is to blame if a new one dies too.
                answers, failure = await self._exchange(worker, request, units)
            if failure is not None:
                logger.warning("a worker was replaced: a file is left out because %s", failure.reason)
                answers.append({"problem": failure.to_json()})
            return answers

    async def _exchange(
        self, worker: _Worker, request: dict[str, Any], units: int
    ) -> tuple[list[dict[str, Any]], Unreadable | None]:
        """What a worker answers, and what is to be said of the thing that it did not answer."""
        answers: list[dict[str, Any]] = []
        whole = False
        clock = asyncio.get_running_loop().time
        try:
            async with asyncio.timeout(_START_SECONDS) as deadline:
                grace = 0.0 if worker.pid is not None else _START_SECONDS
                await worker.send(request)
                for _ in range(units):
                    deadline.reschedule(clock() + self._limits.seconds + grace)
                    grace = 0.0
                    answers.append(await worker.answer())
                    if answers[-1].get("end"):
                        return answers, None
            whole = True
            return answers, None
        except TimeoutError:
            return answers, Unreadable(f"it took longer than {self._limits.seconds:g} s", 408, lasting=False)
        except (OSError, EOFError, ValueError):
            if self._closed:
                raise ConnectionError("the workers are closed") from None
            return answers, Unreadable("its reader died of it", lasting=False)
        finally:
            if not whole:
                # Also when cancelled: what is still to come would be taken for the next answer.
                await worker.end()

    @asynccontextmanager
    async def _borrowed(self, file: Any, background: bool) -> AsyncIterator[_Worker]:
        """A worker of one's own for a while."""
        async with self._background if background else nullcontext(), self._free:
            if self._closed:
                raise ConnectionError("the workers are closed")
            # Best the one that has this file open, else one that runs already.
            worker = max(
                self._idle, key=lambda each: (file is not None and each.last_file == file, each.pid is not None)
            )
            self._idle.remove(worker)
            try:
                yield worker
            finally:
                self._idle.append(worker)
