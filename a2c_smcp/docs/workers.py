"""Worker processes that read files, kept, killed at the deadline and replaced. Knows nothing of what they read."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from typing import Any, Final

from a2c_smcp.docs.limits import DocumentLimits, Unreadable
from a2c_smcp.utils.kept_child import ChildAnswerTooLargeError, ChildOutOfMemoryError, KeptChild
from a2c_smcp.utils.serving_child import ChildBounds

__all__ = ["Workers"]

logger = logging.getLogger(__name__)

_WORKER: Final = ("-m", "a2c_smcp.docs.worker")
_LARGEST_ANSWER: Final = 12 * 2**20


class _Worker(KeptChild):
    """A process that reads files, and the file that it has read last."""

    def __init__(self, limits: DocumentLimits) -> None:
        bounds = ChildBounds(limits.memory_bytes, limits.seconds, _LARGEST_ANSWER)
        super().__init__(_WORKER, bounds, [json.dumps(limits.to_json())], {"OPENBLAS_NUM_THREADS": "1"})
        self.last_file: Any = None


class Workers:
    """A few workers, closed with `async with`. Background work never takes the last worker: a client may be waiting."""

    def __init__(self, limits: DocumentLimits, count: int = 2) -> None:
        self._limits = limits
        self._idle = [_Worker(limits) for _ in range(max(2, count))]
        self._all = list(self._idle)
        self._free = asyncio.Semaphore(len(self._all))
        self._background = asyncio.Semaphore(len(self._all) - 1)

    @property
    def background_count(self) -> int:
        """How many requests in the background run side by side."""
        return len(self._all) - 1

    @property
    def pids(self) -> list[int]:
        """The ids of the running processes."""
        return [worker.pid for worker in self._all if worker.pid is not None]

    async def __aenter__(self) -> "Workers":
        return self

    async def __aexit__(self, *_: object) -> None:
        for worker in self._all:
            await worker.aclose()

    async def describe(
        self,
        files: Sequence[Sequence[Any]],
        *,
        background: bool = False,
        told: Callable[[int, dict[str, Any]], None] = lambda number, answer: None,
    ) -> list[dict[str, Any]]:
        """One answer a file: `facts`, `problem` or `changed`. `told` is called with each as soon as it is there."""
        answers: list[dict[str, Any]] = []
        while (done := len(answers)) < len(files):
            rest = [list(file) for file in files[done:]]
            request = {"do": "describe", "files": rest}
            answers += await self._ask(request, len(rest), background, partial(_told_from, done, told))
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

    async def picture(
        self, file: Sequence[Any], page: int, element: dict[str, Any] | None, longest: int
    ) -> dict[str, Any]:
        """A `picture` in base64 (`None` if there is no picture), or `problem`, or `changed`."""
        request = {"do": "picture", "file": list(file), "first": page, "element": element, "longest": longest}
        [answer] = await self._ask(request, 1, background=False)
        return answer

    async def _ask(
        self,
        request: dict[str, Any],
        units: int,
        background: bool,
        told: Callable[[int, dict[str, Any]], None] = lambda number, answer: None,
    ) -> list[dict[str, Any]]:
        """The answers up to the first failure, and that failure."""
        async with self._borrowed(request.get("file"), background) as worker:
            kept = worker.pid is not None
            answers, failure = await self._exchange(worker, request, units, told)
            if kept and not answers and failure is not None and failure.code != 408:
                # A kept worker may have died of something else, long ago. The file is to blame if a new one dies too.
                answers, failure = await self._exchange(worker, request, units, told)
            if failure is not None:
                logger.warning("%s cannot be read: %s", _name_of(request, len(answers)), failure.reason)
                answers.append({"problem": failure.to_json()})
                told(len(answers) - 1, answers[-1])
            return answers

    async def _exchange(
        self, worker: _Worker, request: dict[str, Any], units: int, told: Callable[[int, dict[str, Any]], None]
    ) -> tuple[list[dict[str, Any]], Unreadable | None]:
        """What a worker answers; if it dies or takes too long, also what is wrong with the file that it was reading."""
        answers: list[dict[str, Any]] = []
        worker.last_file = request.get("file")
        try:
            async with worker.exchange(request) as next_answer:
                while len(answers) < units:
                    try:
                        answers.append(await next_answer())
                    except ChildAnswerTooLargeError as error:
                        problem = Unreadable(f"this page has {error.size // 2**20} MiB", 413, lasting=False)
                        answers.append({"problem": problem.to_json()})
                    told(len(answers) - 1, answers[-1])
            return answers, None
        except TimeoutError:
            return answers, Unreadable(
                f"it took longer than {self._limits.seconds:g} s", 408, lasting=False, costly=True
            )
        except ChildOutOfMemoryError:
            return answers, Unreadable("it needs too much memory", 413, lasting=False, costly=True)
        except (OSError, ValueError):
            return answers, Unreadable("its reader died of it", lasting=False, costly=True)

    @asynccontextmanager
    async def _borrowed(self, file: Any, background: bool) -> AsyncIterator[_Worker]:
        """Lend a worker to one request."""
        async with self._background if background else nullcontext(), self._free:
            # Best one that runs already, of those the one that has this file open.
            worker = max(self._idle, key=lambda each: (each.pid is not None, each.last_file == file))
            self._idle.remove(worker)
            try:
                yield worker
            finally:
                self._idle.append(worker)


def _told_from(first: int, told: Callable[[int, dict[str, Any]], None], number: int, answer: dict[str, Any]) -> None:
    told(first + number, answer)


def _name_of(request: dict[str, Any], done: int) -> str:
    """The file that a worker was busy with, and the page, after so many answers."""
    if "files" in request:
        return repr(request["files"][done][1])
    return f"page {request['first'] + done} of {request['file'][1]!r}"
