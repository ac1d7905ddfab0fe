"""What a page asks and does about calls: its own calls, cancels, results, the history, and the export of it."""

import logging
import uuid
from collections.abc import AsyncGenerator, Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import anyio.to_thread
from anyio.abc import TaskGroup
from starlette.requests import Request
from starlette.routing import Route

from a2c_smcp.computer.calls.log import EndedCall
from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.console.call_search import CallQuery, call_query, matching
from a2c_smcp.computer.console.feed import FeedResponse
from a2c_smcp.computer.console.limits import CONSOLE_LIMITS
from a2c_smcp.computer.console.page_json import PageResponse
from a2c_smcp.computer.console.recorded_calls import (
    export_recorded,
    recorded_calls,
    recorded_result,
    recorded_view,
    story_of,
)
from a2c_smcp.computer.console.requests import query_field, read_routes, text_field, visitor, write_routes
from a2c_smcp.computer.console.views import ended_view, export_view, result_view
from a2c_smcp.errors import BadRequestError, NotFoundError, TooManyRequestsError
from a2c_smcp.record.rows import StoredRow
from a2c_smcp.record.schema import RecordFileError

__all__ = ["CallsAPI"]

logger = logging.getLogger(__name__)

T = TypeVar("T")


class CallsAPI:
    """The routes about calls. `tasks` runs the calls of the page; `exports` has the exports that are under way."""

    def __init__(self, computer: Computer) -> None:
        self._computer = computer
        self._running = 0
        self.exports: set[FeedResponse] = set()
        self.tasks: TaskGroup | None = None
        # While the writer has the record open, SQLite keeps the descriptor of a reader that has ended, for the next
        # one. So as many stay open as there were readers at one time.
        self._one_reader = anyio.CapacityLimiter(1)

    @property
    def routes(self) -> list[Route]:
        reads = {"/result": self._result, "/history": self._history, "/export": self._export, "/story": self._story}
        return [*read_routes(reads), *write_routes({"/call": self._call, "/cancel": self._cancel})]

    async def _call(self, request: Request, body: dict[str, Any]) -> Any:
        """Start a call of the person's own. Its end is an event like that of every other call."""
        tool, arguments, timeout = text_field(body, "tool"), body.get("arguments"), body.get("timeout")
        if not isinstance(arguments, dict):
            raise BadRequestError("field 'arguments' must be an object", {"field": "arguments"})
        if timeout is not None and (not isinstance(timeout, int | float) or not 0 < timeout <= 86400):
            raise BadRequestError("field 'timeout' must be a number of seconds", {"field": "timeout"})
        if self._running >= CONSOLE_LIMITS.calls or self.tasks is None:
            raise TooManyRequestsError(f"{CONSOLE_LIMITS.calls} calls of this console run already", {"says": "calls"})
        req_id = f"console-{uuid.uuid4().hex}"
        self._running += 1
        self.tasks.start_soon(self._run, req_id, tool, arguments, timeout, visitor(request).name)
        return {"req_id": req_id}

    async def _run(self, req_id: str, tool: str, arguments: dict[str, Any], timeout: float | None, by: str) -> None:
        try:
            await self._computer.execute_tool(req_id, tool, arguments, timeout, confirmed_by=by)
        finally:
            self._running -= 1

    async def _cancel(self, request: Request, body: dict[str, Any]) -> Any:
        return {"cancelled": self._computer.cancel_call(text_field(body, "id"), by=visitor(request).name)}

    async def _result(self, request: Request) -> Any:
        call_id = query_field(request, "id")
        if (ended := self._computer.ended_call(call_id)) is None:
            if (file := self._computer.record_file) is not None:
                found = await self._read_record(_if_recorded, recorded_result, file, call_id)
                if found is not None:
                    return PageResponse(found)
            raise NotFoundError("this call is not remembered any more", {"says": "result"})
        return await anyio.to_thread.run_sync(lambda: PageResponse(result_view(ended)))

    async def _history(self, request: Request) -> Any:
        """The next calls that match, newest first. With `before`, an id, those that ended before that call."""
        query, most = call_query(request.query_params), CONSOLE_LIMITS.listed_calls
        before = request.query_params.get("before")
        calls = iter(()) if query.reads else self._computer.past_calls(before)
        # Megabytes are searched and shown: not on the event loop.
        found = await anyio.to_thread.run_sync(_found, calls, query, most + 1, ended_view)
        if len(found) <= most:
            earlier = self._recorded(query, before)
            found += await self._read_record(_taken, earlier, most + 1 - len(found), recorded_view)
        return {"calls": found[:most], "more": len(found) > most}

    async def recorded_rows(self, most: int) -> list[StoredRow]:
        """The newest calls of the record that are not in memory any more."""
        return await self._read_record(_taken, self._recorded(CallQuery()), most, _as_it_is)

    def _recorded(self, query: CallQuery, before: str | None = None) -> Iterator[StoredRow]:
        """The calls of the record that are not in memory any more; none if there is no record."""
        if (file := self._computer.record_file) is None:
            return iter(())
        remembered = self._computer.past_call_ids
        # A call in memory ended after all those that are not.
        return recorded_calls(file, query, None if before in remembered else before, remembered.__contains__)

    async def _story(self, request: Request) -> Any:
        """What happened to one call, step by step, as the record has it."""
        call_id = query_field(request, "id")
        if (file := self._computer.record_file) is None:
            return {"steps": []}
        return {"steps": await self._read_record(_if_recorded, story_of, file, call_id) or []}

    async def _export(self, request: Request) -> Any:
        """All ended calls that match, whole, one JSON object a line, newest first."""
        query = call_query(request.query_params)
        if len(self.exports) >= CONSOLE_LIMITS.exports:
            raise TooManyRequestsError("too many exports are under way; wait until one is done")
        return FeedResponse(self._exported(query), visitor(request), self.exports)

    async def _exported(self, query: CallQuery) -> AsyncGenerator[dict[str, Any], None]:
        calls = iter(()) if query.reads else self._computer.past_calls()
        earlier = self._recorded(query)
        while found := await anyio.to_thread.run_sync(_found, calls, query, 1, export_view):
            yield found[0]
        while found := await self._read_record(_taken, earlier, 100, export_recorded):
            for each in found:
                yield each

    async def _read_record(self, read: Callable[..., T], *args: Any) -> T:
        return await anyio.to_thread.run_sync(read, *args, limiter=self._one_reader)


def _as_it_is(row: StoredRow) -> StoredRow:
    return row


def _taken(rows: Iterator[StoredRow], most: int, view: Callable[[StoredRow], T]) -> list[T]:
    try:
        return [view(row) for row in islice(rows, most)]
    except RecordFileError as error:
        # The log of the writer says what is wrong; the calls in memory are still worth showing.
        logger.warning("the record was not read for a page: %s", error)
        return []


def _if_recorded(read: Callable[[Path, str], T], file: Path, call_id: str) -> T | None:
    try:
        return read(file, call_id)
    except RecordFileError:
        return None


def _found(
    calls: Iterator[EndedCall], query: CallQuery, most: int, view: Callable[[EndedCall], dict[str, Any]]
) -> list[dict[str, Any]]:
    return [view(ended) for ended in matching(calls, query, most)]
