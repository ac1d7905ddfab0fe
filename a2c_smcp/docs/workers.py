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

from a2c_smcp.docs.limits import Limits, Unreadable

__all__ = ["Workers"]

logger = logging.getLogger(__name__)

_WORKER: Final = (sys.executable, "-P", "-m", "a2c_smcp.docs.worker")
_LENGTH: Final = struct.Struct(">I")
_LARGEST_ANSWER: Final = 16 * 2**20
_START_SECONDS: Final = 30.0
_REAP_SECONDS: Final = 5.0


class _Worker:
    """One process, from its first request to its end."""

    def __init__(self, limits: Limits) -> None:
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
    """A few workers, closed with `async with`. Background work never takes the last one: somebody may be waiting."""

    def __init__(self, limits: Limits, count: int = 2) -> None:
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
            answers: list[dict[str, Any]] = []
            ended = False
            try:
                async with asyncio.timeout(_START_SECONDS) as deadline:
                    started = worker.pid is None
                    await worker.send(request)
                    for number in range(units):
                        grace = _START_SECONDS if started and not number else 0.0
                        deadline.reschedule(asyncio.get_running_loop().time() + self._limits.seconds + grace)
                        answers.append(await worker.answer())
                        if ended := bool(answers[-1].get("end")):
                            break
            except TimeoutError:
                ended = True
                problem = Unreadable(f"it took longer than {self._limits.seconds:g} s", 408, lasting=False)
                answers.append({"problem": problem.to_json()})
            except (OSError, EOFError, ValueError):
                if self._closed:
                    raise ConnectionError("the workers are closed") from None
                ended = True
                logger.warning("a worker died of a file, and is replaced")
                problem = Unreadable("its reader died of it", lasting=False)
                answers.append({"problem": problem.to_json()})
            except BaseException:
                # Also when cancelled: what is still to come would be taken for the next answer.
                ended = True
                raise
            finally:
                if ended:
                    await worker.end()
            return answers

    @asynccontextmanager
    async def _borrowed(self, file: Any, background: bool) -> AsyncIterator[_Worker]:
        """A worker of one's own for a while, if possible the one that has this file open."""
        async with self._background if background else nullcontext(), self._free:
            if self._closed:
                raise ConnectionError("the workers are closed")
            same = (worker for worker in self._idle if file is not None and worker.last_file == file)
            worker = next(same, self._idle[0])
            self._idle.remove(worker)
            try:
                yield worker
            finally:
                self._idle.append(worker)
