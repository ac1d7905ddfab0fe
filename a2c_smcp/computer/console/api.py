"""What a page may ask and do: a thin layer over the Computer's public methods, its decisions and its events.

What is said here goes to programs, in English. `says` in the details of an error names the page's own text for it.
"""

import json
import uuid
from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import anyio.to_thread
from anyio.abc import TaskGroup
from mcp_types import ReadResourceResult, TextResourceContents
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from a2c_smcp.computer.calls.log import EndedCall
from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.console.attendance import BrowserAttendance
from a2c_smcp.computer.console.call_search import CallQuery, call_query, matching
from a2c_smcp.computer.console.decision_views import whole_call_view
from a2c_smcp.computer.console.feed import FeedResponse, messages
from a2c_smcp.computer.console.home_api import Endpoint, HomeAPI
from a2c_smcp.computer.console.markdown import to_html
from a2c_smcp.computer.console.page_json import PageResponse
from a2c_smcp.computer.console.requests import number_field, object_body, text_field, visitor
from a2c_smcp.computer.console.views import ended_view, export_view, result_view, table_view, tool_view
from a2c_smcp.computer.console.visitors import PageSession
from a2c_smcp.computer.decisions.book import (
    MAX_REASON,
    Accepted,
    AlreadyDecidedError,
    Confirmation,
    DecisionAnswer,
    DecisionChangedError,
    Declined,
    Dismissed,
)
from a2c_smcp.computer.decisions.shown_text import as_text, visible
from a2c_smcp.computer.finder.organize import file_name
from a2c_smcp.computer.home import ComputerHome
from a2c_smcp.computer.mcp_clients.masking import input_view
from a2c_smcp.errors import BadRequestError, NotFoundError, TooManyRequestsError
from a2c_smcp.utils.dpe_uri import element_uri, page_uri, with_params

__all__ = ["MAX_STREAMS", "ConsoleAPI"]

#: Pages that follow at a time; the tabs of one browser share a stream.
MAX_STREAMS: Final = 16


@dataclass(frozen=True, slots=True)
class _ApiBounds:
    """How much the pages may ask for."""

    calls: int = 32  # of this console, running
    listed_calls: int = 100  # calls that ended, in one answer
    exports: int = 2  # files of calls that are written at a time
    page_characters: int = 400_000  # of a document's page that are rendered
    pages: int = 50  # of a document, listed in one answer


_MOST: Final = _ApiBounds()


class ConsoleAPI:
    """The routes below `/api`, for those who are in. `run` names this run of the console; `tasks` owns the calls."""

    def __init__(self, computer: Computer, run: str, home: ComputerHome | None = None) -> None:
        self._computer = computer
        self._home = HomeAPI(computer, home or ComputerHome())
        self._run = run
        self._streams: dict[FeedResponse, PageSession] = {}
        self._exports: dict[FeedResponse, PageSession] = {}
        self._attendance = BrowserAttendance(computer.decisions)
        self._calls = 0
        self.tasks: TaskGroup | None = None

    @property
    def routes(self) -> list[Route]:
        """Each path, its method and what answers it."""
        reads: Mapping[str, Endpoint] = {
            "/feed": self._feed,
            "/decision": self._decision,
            "/tools": self._tools,
            "/desktop": self._desktop,
            "/finder": self._finder,
            "/document": self._document,
            "/page": self._page,
            "/element": self._element,
            "/inputs": self._inputs,
            "/log": self._log,
            "/result": self._result,
            "/history": self._history,
            "/export": self._export,
            **self._home.reads,
        }
        writes: Mapping[str, Endpoint] = {
            "/answer": self._answer,
            "/refuse-all": self._refuse_all,
            "/ask-again": self._ask_again,
            "/call": self._call,
            "/cancel": self._cancel,
            "/server": self._server,
            "/input": self._input,
            **self._home.writes,
        }
        return [
            *(Route(f"/api{path}", endpoint, methods=["GET"]) for path, endpoint in reads.items()),
            *(Route(f"/api{path}", endpoint, methods=["POST"]) for path, endpoint in writes.items()),
        ]

    async def end_streams(self) -> None:
        """Close every stream, so that a stop need not wait for them."""
        for stream in (*self._streams, *self._exports):
            stream.end()
        self._attendance.leave()

    def end_streams_of(self, sessions: Collection[PageSession]) -> None:
        """Close the streams of these sessions."""
        for stream in [stream for stream, owner in (self._streams | self._exports).items() if owner in sessions]:
            stream.end()

    # --- live

    async def _feed(self, request: Request) -> Response:
        if len(self._streams) >= MAX_STREAMS:
            raise TooManyRequestsError(f"{MAX_STREAMS} pages follow this computer already; close one")
        feed = FeedResponse(messages(self._computer, self._run))
        return _Following(self._streams, visitor(request), self._attendance, feed)

    # --- decisions

    async def _answer(self, request: Request) -> Response:
        """Decide. The digest is that of what was shown: another call under the same id is not answered."""
        body = await object_body(request)
        self._computer.decisions.answer(
            text_field(body, "id"), _answer_of(body), by=visitor(request).name, digest=text_field(body, "digest")
        )
        return PageResponse({})

    async def _decision(self, request: Request) -> Response:
        """All arguments of a call that waits for its confirmation, with the digest that they are shown under."""
        decision_id = _query(request, "id")
        for decision in self._computer.decisions.pending:
            if decision.id == decision_id and isinstance(decision, Confirmation):
                # Megabytes are shown: not on the event loop.
                return await anyio.to_thread.run_sync(_whole_call, decision)
        raise NotFoundError("this call does not wait any more")

    async def _refuse_all(self, request: Request) -> Response:
        """Refuse the calls that the page shows, and no other: one that came meanwhile was not seen."""
        body = await object_body(request)
        shown = body.get("shown")
        if not isinstance(shown, list) or not all(isinstance(each, dict) for each in shown):
            raise BadRequestError("field 'shown' must be a list of objects", {"field": "shown"})
        refused, by = 0, visitor(request).name
        for each in shown:
            with suppress(AlreadyDecidedError, DecisionChangedError, NotFoundError):
                digest = text_field(each, "digest")
                self._computer.decisions.answer(text_field(each, "id"), Declined(), by=by, digest=digest)
                refused += 1
        return PageResponse({"refused": refused})

    async def _ask_again(self, request: Request) -> Response:
        body = await object_body(request)
        self._computer.decisions.ask_again(text_field(body, "server"), text_field(body, "tool"))
        return PageResponse({})

    # --- calls

    async def _call(self, request: Request) -> Response:
        """Start a call of the person's own. Its end is an event like that of every other call."""
        body = await object_body(request)
        tool, arguments, timeout = text_field(body, "tool"), body.get("arguments"), body.get("timeout")
        if not isinstance(arguments, dict):
            raise BadRequestError("field 'arguments' must be an object", {"field": "arguments"})
        if timeout is not None and (not isinstance(timeout, int | float) or not 0 < timeout <= 86400):
            raise BadRequestError("field 'timeout' must be a number of seconds", {"field": "timeout"})
        if self._calls >= _MOST.calls or self.tasks is None:
            raise TooManyRequestsError(f"{_MOST.calls} calls of this console run already", {"says": "calls"})
        req_id = f"console-{uuid.uuid4().hex}"
        self._calls += 1
        self.tasks.start_soon(self._run_call, req_id, tool, arguments, timeout, visitor(request).name)
        return PageResponse({"req_id": req_id})

    async def _run_call(
        self, req_id: str, tool: str, arguments: dict[str, Any], timeout: float | None, by: str
    ) -> None:
        try:
            await self._computer.execute_tool(req_id, tool, arguments, timeout, confirmed_by=by)
        finally:
            self._calls -= 1

    async def _cancel(self, request: Request) -> Response:
        body = await object_body(request)
        return PageResponse({"cancelled": self._computer.cancel_call(text_field(body, "id"), by=visitor(request).name)})

    async def _result(self, request: Request) -> Response:
        if (ended := self._computer.ended_call(_query(request, "id"))) is None:
            raise NotFoundError("this call is not remembered any more", {"says": "result"})
        return await anyio.to_thread.run_sync(lambda: PageResponse(result_view(ended)))

    async def _history(self, request: Request) -> Response:
        """The next calls that match, newest first; with `before`, an id, those that ended before that call."""
        query = call_query(request.query_params)
        calls = self._computer.past_calls(request.query_params.get("before"))
        # Megabytes are searched and shown: not on the event loop.
        found = await anyio.to_thread.run_sync(_found, calls, query, _MOST.listed_calls + 1, ended_view)
        return PageResponse({"calls": found[: _MOST.listed_calls], "more": len(found) > _MOST.listed_calls})

    async def _export(self, request: Request) -> Response:
        """All calls that ended and match, whole, one JSON object a line, newest first."""
        query = call_query(request.query_params)
        if len(self._exports) >= _MOST.exports:
            raise TooManyRequestsError("an export is under way already; wait until it is there")
        feed = FeedResponse(_exported(self._computer.past_calls(), query))
        return _Counted(self._exports, visitor(request), feed)

    # --- servers and inputs

    async def _server(self, request: Request) -> Response:
        body = await object_body(request)
        actions = {
            "start": self._computer.start_server,
            "stop": self._computer.stop_server,
            "restart": self._computer.restart_server,
        }
        action = actions.get(text_field(body, "action"))
        if action is None:
            raise BadRequestError(f"field 'action' must be one of {', '.join(actions)}", {"field": "action"})
        await action(text_field(body, "server"))
        return PageResponse({})

    async def _log(self, request: Request) -> Response:
        return PageResponse({"lines": self._computer.server_logs(_query(request, "server"))})

    async def _inputs(self, request: Request) -> Response:
        inputs = self._computer.inputs
        shown = [
            {**input_view(definition), "has_value": input_id in inputs.values}
            for input_id, definition in inputs.definitions.items()
        ]
        return PageResponse({"inputs": shown})

    async def _input(self, request: Request) -> Response:
        """Give an input a value, or forget it. Values go in, and never come out."""
        body = await object_body(request)
        if "value" in body:
            self._computer.inputs.set_value(text_field(body, "id"), body["value"])
        else:
            self._computer.inputs.clear_value(text_field(body, "id"))
        return PageResponse({})

    # --- what the agent sees

    async def _tools(self, request: Request) -> Response:
        servers = self._computer.tool_servers
        tools = [tool_view(tool, servers.get(tool["name"], "")) for tool in self._computer.get_available_tools()]
        conflicts = [{"tools": each.tool_names, "servers": each.servers} for each in self._computer.tool_conflicts]
        allowed = sorted([server, tool] for server, tool in self._computer.decisions.allowed)
        return PageResponse({"tools": tools, "conflicts": conflicts, "allowed": allowed})

    async def _desktop(self, request: Request) -> Response:
        windows = [desktop.partition("\n\n") for desktop in await self._computer.get_desktop()]
        return PageResponse({"windows": [{"uri": uri, "text": text} for uri, _, text in windows]})

    async def _finder(self, request: Request) -> Response:
        query = request.query_params
        documents, total = await self._computer.get_finder(
            query.get("keywords", "").split(),
            query.get("type") or None,
            number_field(query.get("offset"), "offset", 0, 10**8),
            number_field(query.get("limit"), "limit", 20, 100),
            by_file_name=True,
        )
        shown = [{**document, "file_name": file_name(document)} for document in documents]
        return PageResponse({"documents": [_visible_words(each) for each in shown], "total": total})

    async def _document(self, request: Request) -> Response:
        """What a document says of itself, and a part of the index of its pages."""
        offset = number_field(request.query_params.get("offset"), "offset", 0, 10**8)
        params = {"depth": "pages", "offset": str(offset), "limit": str(_MOST.pages)}
        found = await self._computer.read_resource(with_params(_query(request, "uri"), params))
        return PageResponse(_object(found))

    async def _page(self, request: Request) -> Response:
        """A page, rendered, and its elements."""
        uri = page_uri(_query(request, "uri"), number_field(_query(request, "page"), "page", 0, 10**8))
        text = _text_of(await self._computer.read_resource(with_params(uri, {"format": "markdown"})))
        page = _object(await self._computer.read_resource(uri))
        html = await anyio.to_thread.run_sync(to_html, text[: _MOST.page_characters])
        return PageResponse({"html": html, "cut": len(text) > _MOST.page_characters, "page": page})

    async def _element(self, request: Request) -> Response:
        """An element of a document: as text, and a table as its cells."""
        uri = element_uri(_query(request, "uri"), _query(request, "id"))
        found = _object(await self._computer.read_resource(uri))
        return PageResponse({"text": as_text(found), "table": table_view(found.get("content"))})


class _Counted(Response):
    """A stream that is counted while it is open."""

    def __init__(self, streams: dict[FeedResponse, PageSession], session: PageSession, feed: FeedResponse) -> None:
        super().__init__()
        self._streams, self._session, self._feed = streams, session, feed

    async def __call__(self, *args: Any) -> None:
        self._streams[self._feed] = self._session
        try:
            await self._feed(*args)
        finally:
            del self._streams[self._feed]


class _Following(_Counted):
    """The stream of a page: while it is open, a person may answer there."""

    def __init__(
        self,
        streams: dict[FeedResponse, PageSession],
        session: PageSession,
        attendance: BrowserAttendance,
        feed: FeedResponse,
    ) -> None:
        super().__init__(streams, session, feed)
        self._attendance = attendance

    async def __call__(self, *args: Any) -> None:
        with self._attendance.page():
            await super().__call__(*args)


async def _exported(calls: Iterator[EndedCall], query: CallQuery) -> AsyncGenerator[dict[str, Any], None]:
    while found := await anyio.to_thread.run_sync(_found, calls, query, 1, export_view):
        yield found[0]


def _whole_call(decision: Confirmation) -> Response:
    return PageResponse({**whole_call_view(decision), "digest": decision.digest})


def _found(
    calls: Iterator[EndedCall], query: CallQuery, most: int, view: Callable[[EndedCall], dict[str, Any]]
) -> list[dict[str, Any]]:
    return [view(ended) for ended in matching(calls, query, most)]


def _answer_of(body: Mapping[str, Any]) -> DecisionAnswer:
    match body.get("answer"):
        case "yes":
            return Accepted(body.get("value"))
        case "always":
            return Accepted(always=True)
        case "no":
            return Declined(_reason(body))
        case "dismiss":
            return Dismissed()
    raise BadRequestError("field 'answer' must be one of yes, always, no, dismiss", {"field": "answer"})


def _reason(body: Mapping[str, Any]) -> str:
    reason = body.get("reason", "")
    if not isinstance(reason, str) or len(reason) > MAX_REASON:
        raise BadRequestError(f"field 'reason' must be a text of at most {MAX_REASON} characters", {"field": "reason"})
    return reason


def _visible_words(document: Mapping[str, Any]) -> dict[str, Any]:
    """A document with nothing hidden in what is read of it. By its URI it is opened: that stays."""
    said = ("title", "summary", "file_name")
    return {key: visible(value) if key in said and isinstance(value, str) else value for key, value in document.items()}


def _query(request: Request, name: str) -> str:
    if (value := request.query_params.get(name)) is None:
        raise BadRequestError(f"{name!r} is missing", {"field": name})
    return value


def _text_of(found: ReadResourceResult) -> str:
    text = next((item.text for item in found.contents if isinstance(item, TextResourceContents)), None)
    if text is None:
        raise NotFoundError("there is no text at this place", {"says": "text"})
    return text


def _object(found: ReadResourceResult) -> dict[str, Any]:
    """The JSON object that a document server sent, or `BadRequestError`."""
    try:
        decoded = json.loads(_text_of(found))
    except (ValueError, RecursionError):
        decoded = None
    if not isinstance(decoded, dict):
        raise BadRequestError("the document server sent something that is no JSON object", {"says": "document"})
    return decoded
