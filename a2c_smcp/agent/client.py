"""The agent for asyncio: it asks, cancels, and keeps a live view of its office.

This is a shell. `requests` decides what to send and how to read the answer, `bounds` how large an answer may be.
`live_view` fetches what the computers have, and `OfficeLink` stays connected.
"""

import asyncio
import inspect
import logging
import os
import time
from collections.abc import AsyncGenerator, Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, suppress
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, cast

import anyio

from a2c_smcp.agent import requests
from a2c_smcp.agent.bounds import AnswerLimits, AnswerTooLargeError, build_answer
from a2c_smcp.agent.happenings import Happenings
from a2c_smcp.agent.live_view import LiveView
from a2c_smcp.agent.pacing import Cost
from a2c_smcp.agent.progress import ProgressListeners
from a2c_smcp.agent.questions import QUESTION_MODES, QuestionCallback
from a2c_smcp.agent.requests import (
    DEFAULT_LIMIT,
    DEFAULT_TIMEOUT,
    DEFAULT_WAIT,
    Deadlines,
    DocumentPicture,
    Request,
    deadlines_at,
)
from a2c_smcp.agent.resource_methods import ResourceMethods
from a2c_smcp.agent.saved_results import SaveBounds, folder_for, saved_result
from a2c_smcp.agent.skill_methods import SkillMethods
from a2c_smcp.agent.typed_events import TypedEvents
from a2c_smcp.agent.types import HAPPENINGS, AgentHandler, Callback, ProgressCallback, happening
from a2c_smcp.agent.view import ComputerView, Part
from a2c_smcp.agent.waiting import News, wait_for_tools
from a2c_smcp.dialects.call_times import approval_seconds
from a2c_smcp.dialects.handshake import Dialect
from a2c_smcp.errors import ConnectionLostError, NotInRoomError, RequestTimeoutError, RoomFullError, SMCPError
from a2c_smcp.link.interface import Disconnected, Joined, KeySource, LinkEvent, LinkFactory, LinkOptions, Membership
from a2c_smcp.link.transports import Way
from a2c_smcp.results import error_result, load_types
from a2c_smcp.smcp import (
    ENTER_OFFICE_NOTIFICATION,
    EVENTS,
    LEAVE_OFFICE_NOTIFICATION,
    QUESTION_NOTIFICATION,
    RESOURCE_UPDATED_NOTIFICATION,
    TOOL_CALL_EVENT,
    TOOL_PROGRESS_NOTIFICATION,
    UPDATE_PROMPTS_NOTIFICATION,
    UPDATE_RESOURCES_NOTIFICATION,
    UPDATE_TOOL_LIST_NOTIFICATION,
    AgentCallData,
    DPEPageSummary,
    GetComputerConfigRet,
    GetFinderRet,
    Kind,
    ResourceUpdatedNotification,
    SessionInfo,
    SMCPTool,
    ToolMeta,
)
from a2c_smcp.tracing.switch import TRACING
from a2c_smcp.types import Desktop
from a2c_smcp.utils.dpe_uri import with_image
from a2c_smcp.wire import codec, parse

if TYPE_CHECKING:
    from mcp_types import CallToolResult

__all__ = ["AsyncSMCPAgentClient"]

logger = logging.getLogger(__name__)

_T = TypeVar("_T")
_Read: TypeAlias = Callable[[Request, tuple[Any, ...]], _T]
#: Reads the JSON of an ack.
_Decode: TypeAlias = Callable[[Request, str, AnswerLimits], _T]

_NO_OFFICE: Final = "join an office first"
#: Contents that never have their bytes elsewhere.
_TEXT_ONLY: Final = frozenset({"text"})
_TYPE_OF: Final = attrgetter("type")


class AsyncSMCPAgentClient(ResourceMethods, SkillMethods, TypedEvents):
    """An agent for asyncio: `async with AsyncSMCPAgentClient("https://…", name="ada", api_key=…) as agent`.

    Join an office next, then ask its computers. Instead of a URL the client takes `LinkOptions`, which say more about
    the connection. `handler` hears what happens in the office; so do functions that are registered with `on`. With
    `live=False` the client does not fetch what the computers have: `computers` stays empty. `limits` says how large an
    answer of a computer may be. `link` makes the connection to the office; by default the client makes one of its own.

    A tool that ran and failed is a result with `is_error`. Every other failure raises the `SMCPError` of its code:
    `NotFoundError` for a computer that is not in the office, `NotInRoomError` without an office, `RequestTimeoutError`
    if no answer comes in time, `BadRequestError` for a request or an answer that breaks the protocol. A dropped
    connection raises `ConnectionLostError` at once. The client then connects and joins again by itself. It never sends
    a request twice.
    """

    def __init__(
        self,
        url: str | LinkOptions,
        *,
        name: str,
        api_key: "str | KeySource | None" = None,
        handler: AgentHandler | None = None,
        live: bool = True,
        deadlines: Deadlines | None = None,
        limits: AnswerLimits | None = None,
        link: LinkFactory | None = None,
    ) -> None:
        super().__init__()
        self.name = name
        self._deadlines = deadlines or Deadlines()
        self._limits = limits or AnswerLimits()
        self._live = live
        self._view = LiveView(self.list_room, self._get, partial(self._tell, "change"))
        self._closed = False
        self._news = News()
        self._listener: asyncio.Task[None] | None = None
        self._happened = Happenings()
        self._progress = ProgressListeners()
        self._for_models: Any = None
        """What `agent/llm/` keeps for this agent."""
        self._callbacks: dict[str, list[Callback]] = {name: [] for name in HAPPENINGS}
        if handler is not None:
            for short, method in HAPPENINGS.items():
                self._callbacks[short].append(getattr(handler, method))
        options = url if isinstance(url, LinkOptions) else LinkOptions(url)
        if api_key is not None:
            options = replace(options, api_key=api_key)
        notifications = [event.name for event in EVENTS.values() if event.kind is Kind.NOTIFICATION]
        handlers = {name: self._notification_handler(name) for name in notifications}
        handlers[TOOL_PROGRESS_NOTIFICATION] = self._take_progress
        handlers[QUESTION_NOTIFICATION] = self._take_question
        handlers[RESOURCE_UPDATED_NOTIFICATION] = self._take_update
        self._notes: Mapping[str, Callable[[str], None]] = {
            ENTER_OFFICE_NOTIFICATION: self._has_come,
            LEAVE_OFFICE_NOTIFICATION: self._has_gone,
            UPDATE_RESOURCES_NOTIFICATION: self._shares_other_things,
            UPDATE_PROMPTS_NOTIFICATION: self._shares_other_things,
            UPDATE_TOOL_LIST_NOTIFICATION: self._forget_bundles,
        }
        self._has_own_link = link is None
        if link is None:
            # It brings python-socketio and aiohttp, which agents on a shared seat do not need.
            from a2c_smcp.link.office_link import OfficeLink

            link = OfficeLink
        self._link = link(options, handlers, on_event=self._on_link_event)

    async def __aenter__(self) -> "AsyncSMCPAgentClient":
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Connect. Raises `UnauthorizedError`, or `ConnectionLostError` if the server does not answer."""
        self._start_listener()
        try:
            await self._link.open()
        except BaseException:
            await self.close()
            raise

    def attend(self, office_id: str) -> None:
        """Connect and join the office as soon as possible, and keep trying: the server may start later.

        Use it instead of `open` and `join_office`. It returns at once. `problem` says why the agent is not in the
        office yet, and handlers of `connection` hear when it is. Call `close` at the end.
        """
        self._start_listener()
        self._link.attend(Membership("agent", self.name, office_id))

    async def close(self) -> None:
        """Disconnect for good. Requests that still wait raise `ConnectionLostError`. Safe to call twice, and in a
        handler.
        """
        self._closed = True
        self._wake()
        await self._link.close()
        listener, self._listener = self._listener, None
        if listener is not None and listener is not asyncio.current_task():
            listener.cancel()
        tasks = {*self._view.end(), *self._subscriptions.end(), *filter(None, [listener])} - {asyncio.current_task()}
        if tasks:
            # A handler of the caller may ignore its cancellation.
            await asyncio.wait(tasks, timeout=self._deadlines.cancel)

    # --- the office

    @property
    def connected(self) -> bool:
        """Whether there is a connection to the server right now. A lost one comes back by itself."""
        return self._link.connected

    @property
    def joined(self) -> bool:
        """Whether the server has this agent in its office right now."""
        return self._link.joined

    @property
    def problem(self) -> str | None:
        """Why the office cannot be used right now, in a sentence; `None` if it can. The agent tries again by itself."""
        if self.joined:
            return None if self.listing_error is None else self.listing_error.message
        if self._link.problem is not None:
            return self._link.problem.message
        return "not in the office yet" if self.connected else "not connected to the server yet"

    @property
    def is_entering(self) -> bool:
        """Whether the agent is on its way into an office, and nothing has failed so far."""
        return self._link.membership is not None and not self.joined and self._link.problem is None

    @property
    def way(self) -> Way | None:
        """The current or the last connection: its transport and its proxy."""
        return self._link.way

    @property
    def office_id(self) -> str | None:
        """The office that this agent is in, or joins again after a reconnect; `None` without one."""
        return self._link.membership.office_id if self._link.membership else None

    @property
    def computers(self) -> Mapping[str, ComputerView]:
        """The live view: every computer in the office by its name, with everything that is known of it now.

        It is a snapshot: read the property again to see later changes. `settled` waits until the view is complete.
        """
        return self._view.computers

    @property
    def is_live(self) -> bool:
        """Whether the agent keeps a live view: `computers` is filled."""
        return self._live

    @property
    def listing_error(self) -> SMCPError | None:
        """Why the last attempt to list the office failed; `None` if it worked. The agent tries again by itself."""
        return self._view.listing_error

    async def join_office(self, office_id: str) -> None:
        """Join an office. On return `computers` has its computers; `settled` waits for their tools.

        After every reconnect the agent joins again and updates the view. A refusal raises `RoomFullError` (the office
        has an agent), `AlreadyInRoomError` (leave the other office first), `ForbiddenError` (the key does not allow it)
        or `BadRequestError` (the name or the id is not valid).
        """
        await self._join(Membership("agent", self.name, office_id))
        if self._live:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._deadlines.reply):
                    await self._view.listed.wait()

    async def _join(self, membership: Membership) -> None:
        """Join. If the seat is kept by a process of this user that nobody uses any more, take the seat over."""
        try:
            await self._link.join(membership)
        except RoomFullError:
            from a2c_smcp.agent.seat.giving_up import gives_up_seat, join_freed

            if not self._has_own_link or not await gives_up_seat(self._link.options, membership.office_id):
                raise
            await join_freed(partial(self._link.join, membership))

    async def leave_office(self) -> None:
        """Leave the office. Without one this does nothing."""
        try:
            await self._link.leave()
        finally:
            self._view.forget()
            self._subscriptions.clear()
            self._wake()

    async def settled(self, timeout: float = 20.0) -> None:
        """Wait until the live view is complete. Raises `RequestTimeoutError` after `timeout` seconds.

        It does not wait for changes that are announced meanwhile, nor for parts that could not be fetched (see
        `failures` of their `ComputerView`), nor for parts that change all the time and are too costly to fetch again
        soon. Raises `NotInRoomError` without an office, or when the agent leaves it.
        """
        self._check_office()
        if not self._live:
            return
        try:
            async with asyncio.timeout(timeout):
                await self._view.complete(self._check_office)
        except TimeoutError:
            raise RequestTimeoutError(f"the view of the office was not complete within {timeout:g} s") from None

    async def list_room(self) -> list[SessionInfo]:
        """The members of the office as the server lists them now, this agent included."""
        if (office_id := self.office_id) is None:
            raise NotInRoomError(_NO_OFFICE)
        return await self._ask(requests.list_room(self._call(), self._deadlines, office_id), requests.read_sessions)

    async def list_computers(self) -> list[str]:
        """The names of the computers in the office, as the server lists them now."""
        return requests.computers_in(await self.list_room())

    def _check_office(self) -> None:
        """Raise if waiting is useless: this agent is closed, or has no office."""
        if self._closed:
            raise ConnectionLostError("this agent was closed")
        if self.office_id is None:
            raise NotInRoomError(_NO_OFFICE)

    def _wake(self) -> None:
        """Let `settled` and `wait_for_tools` check again whether waiting is useful."""
        self._news.heard()
        self._view.wake()

    # --- tools

    async def get_tools(self, computer: str) -> list[SMCPTool]:
        """The tools that a computer lists now, with their schemas. `tool_meta` reads their configured metadata."""
        return await self._ask_for_tools(computer)

    async def wait_for_tools(
        self, computer: str, tool_names: Collection[str] = (), timeout: float = DEFAULT_WAIT
    ) -> list[SMCPTool]:
        """The tools of a computer, once it is in the office and lists all of `tool_names` (without names: any tool).

        A computer may join before its MCP servers run. After `timeout` seconds this raises `ToolNotFoundError`, or
        `NotFoundError` if the computer is not in the office. Raises `NotInRoomError` without an office, or when the
        agent leaves it.
        """
        names = requests.texts_in("tool_names", tool_names)
        with self._news.of(computer) as heard:
            list_tools = partial(self.get_tools, computer)
            return await wait_for_tools(list_tools, heard, names, timeout, check=self._check_office)

    async def wait_for_tool(self, computer: str, tool_name: str, timeout: float = DEFAULT_WAIT) -> SMCPTool:
        """One tool, once its computer lists it; raises what `wait_for_tools` raises."""
        tools = await self.wait_for_tools(computer, [tool_name], timeout)
        return next(tool for tool in tools if tool["name"] == tool_name)

    async def call_tool(
        self,
        computer: str,
        tool_name: str,
        params: Mapping[str, Any] | None = None,
        timeout: int = DEFAULT_TIMEOUT,
        *,
        approval_timeout: int | None = None,
        req_id: str | None = None,
        on_progress: ProgressCallback | None = None,
        on_question: QuestionCallback | None = None,
        questions: Sequence[str] | None = None,
        meta: Mapping[str, Any] | None = None,
        save_to: str | os.PathLike[str] | None = None,
    ) -> "CallToolResult":
        """Run a tool and return its result, also when the tool failed or took longer than `timeout` seconds.

        Look at `is_error` of the result. `text_of` gives its text, and `meta["error_code"]` the code of a failure: 4001
        for an unknown tool, 4004 after the timeout, 4005 for a call that was not confirmed. With 4005 `meta["outcome"]`
        is `refused`, `rule`, `unanswered` or `nobody`, and `meta["reason"]` has the words of the person who refused, if
        there are any.

        `timeout` covers the wait for a person's confirmation, too. With `approval_timeout` that wait has a limit of its
        own, and `timeout` counts from the moment when the tool starts. Older servers and computers do not know this,
        and end the call after `timeout`.

        A failure on the way to the computer raises an `SMCPError` instead. Cancelling the task that waits here cancels
        the call at the computer; so does `cancel` with its `req_id`.

        `on_progress`, `def` or `async def`, is called with `(progress, total, message)` when the tool reports progress;
        `total` and `message` may be `None`. Calls of it never overlap: a slow callback gets the latest report only. A
        callback that is not async runs in a worker thread. Its errors are logged; only `SystemExit` and
        `KeyboardInterrupt` end the program. The result waits up to a second for the last report; after it the callback
        is not called again.

        `on_question`, `def` or `async def`, is called with a `ToolQuestion` when the tool asks something and the
        computer's owner lets the agent answer. It returns a `QuestionAnswer`, or `None` to leave the question to the
        person at the computer. An async callback is cancelled when the question needs no answer any more. `questions`
        has the modes that the caller can answer: `form` and `url`, unless it says otherwise.

        `meta` becomes the `_meta` of the MCP request; `traceparent` in it is the trace context.

        With `save_to`, a folder, everything that is large becomes a file there: images, sounds, texts of more than
        20,000 characters, and the resources that the result links to, which are read for it. In the result each of
        them is a link with a `file://` URI. What cannot be saved stays as it is, and so does what is more than 1,000
        files or 256 MiB, or cannot be read within another `timeout` seconds. A folder that cannot be written raises
        `BadRequestError` before the call.
        """
        folder = None if save_to is None else folder_for(save_to)
        load_types()
        if questions is None:
            questions = () if on_question is None else QUESTION_MODES
        deadlines = self._deadlines
        if (dialect := self._link.server_dialect) is not Dialect.OURS:
            deadlines = deadlines_at(dialect, deadlines)
            approval_timeout = approval_seconds(dialect, approval_timeout)
        request = requests.tool_call(
            self._call(req_id),
            deadlines,
            computer,
            tool_name,
            params,
            timeout,
            progress=on_progress is not None,
            questions=questions,
            meta=meta,
            approval_timeout=approval_timeout,
        )
        if on_progress is None and not questions:
            result = await self._result(request)
        else:
            async with AsyncExitStack() as listening:
                if on_progress is not None:
                    await listening.enter_async_context(self._progress.listening(computer, request.req_id, on_progress))
                if questions:
                    listening.enter_context(self._questions.listening(computer, request.req_id, on_question))
                result = await self._result(request)
        if folder is None or result.is_error:
            return result
        return await saved_result(result, folder, partial(self.read_large_resource, computer), SaveBounds(timeout))

    async def _result(self, request: Request) -> "CallToolResult":
        exchange = self._exchange if TRACING.spans is None else self._traced_exchange
        try:
            result = await exchange(request, requests.tool_result)
        except AnswerTooLargeError as error:
            return error_result(error)
        except asyncio.CancelledError:
            await self._give_up(request)
            raise
        except RequestTimeoutError as error:
            # Neither the server nor this side got an answer in time, but the tool may still run.
            await self._give_up(request)
            if isinstance(error, requests.UnansweredError):
                return requests.timed_out(request)
            raise
        if _TEXT_ONLY.issuperset(map(_TYPE_OF, result.content)):
            return result
        return await self._filled(request.data["computer"], result)

    async def cancel(self, req_id: str) -> None:
        """Cancel a tool call. It ends with a result that says so. An unknown `req_id` changes nothing."""
        # Older servers do not ack it.
        with suppress(requests.UnansweredError):
            await self._ask(requests.cancel(self._call(req_id), self._deadlines), requests.read_sent)

    @staticmethod
    def tool_meta(tool: SMCPTool) -> ToolMeta:
        """The configured metadata of a tool: `auto_apply`, `alias`, `tags`, `ret_object_mapper`; empty if there is
        none.
        """
        return requests.tool_meta(tool)

    async def _give_up(self, request: Request) -> None:
        """Cancel a call whose caller has stopped waiting. Only the deadline ends this, not a cancellation."""
        with anyio.move_on_after(self._deadlines.cancel, shield=True), suppress(SMCPError):
            await self.cancel(request.req_id)

    # --- config, desktop, documents

    async def get_config(self, computer: str) -> GetComputerConfigRet:
        """The computer's MCP servers and inputs as configured. Secrets are masked, or are placeholders."""
        return await self._ask(requests.get_config(self._call(), self._deadlines, computer), requests.read_config)

    async def get_desktop(self, computer: str, *, size: int | None = None, window: str | None = None) -> list[Desktop]:
        """The rendered windows, most important first: at most `size` of them, or the one with the URI `window`.

        Windows may be cut so that all fit into one message; a `window` by its URI comes whole, or raises
        `PayloadTooLargeError`.
        """
        request = requests.get_desktop(self._call(), self._deadlines, computer, size, window)
        return await self._ask(request, requests.read_desktop)

    async def get_finder(
        self,
        computer: str,
        keywords: Sequence[str] | None = None,
        file_type: str | None = None,
        offset: int = 0,
        limit: int = DEFAULT_LIMIT,
    ) -> GetFinderRet:
        """A part of the catalogue of documents, and how many documents match in all (`total_count`).

        `keywords` and `file_type` filter; `offset` and `limit` (1000 at most) choose the part.
        """
        call = self._call()
        request = requests.get_finder(call, self._deadlines, computer, keywords, file_type, offset, limit)
        return await self._ask(request, partial(requests.read_finder, dialect=self._link.server_dialect))

    async def read_document_metadata(self, computer: str, uri: str) -> Any:
        """The fields of a document, as `DPEDocumentSummary` names them. Raises what `read_resource` raises."""
        return requests.read_document(await self.read_resource(computer, uri), self._limits)

    async def read_document_pages(
        self, computer: str, uri: str, offset: int = 0, limit: int = DEFAULT_LIMIT
    ) -> dict[str, Any]:
        """A document's fields with a part of the index of its pages: `pages`, out of `page_total`."""
        paged = requests.document_pages_uri(uri, offset, limit)
        index = requests.read_document(await self.read_resource(computer, paged), self._limits)
        requests.pages_in(index)
        return cast("dict[str, Any]", index)

    async def read_page(
        self,
        computer: str,
        uri: str,
        page_index: int,
        format: str = "json",
        *,
        categories: Sequence[str] | None = None,
    ) -> Any:
        """One page of the document at `uri`: the decoded object, or text for `markdown` and `text`."""
        page = requests.page_of(uri, page_index, format, categories)
        return requests.read_document(await self.read_resource(computer, page), self._limits)

    async def read_element(self, computer: str, uri: str, element_id: str, format: str = "json") -> Any:
        """One element of the document at `uri`: a `DPEElementDetail`, or text for `markdown` and `text`."""
        element = requests.element_of(uri, element_id, format)
        return requests.read_document(await self.read_resource(computer, element), self._limits)

    async def read_page_image(
        self, computer: str, uri: str, page_index: int, longest: int = 1200
    ) -> DocumentPicture | None:
        """A picture of a page; its longest side has at most `longest` pixels. `None` if the server has no picture."""
        page = requests.page_of(uri, page_index, "json", None)
        return requests.picture_in(await self.read_resource(computer, with_image(page, longest)))

    async def read_element_image(
        self, computer: str, uri: str, element_id: str, longest: int = 1200
    ) -> DocumentPicture | None:
        """A picture of an element, such as an image; otherwise like `read_page_image`."""
        element = requests.element_of(uri, element_id, "json")
        return requests.picture_in(await self.read_resource(computer, with_image(element, longest)))

    async def iter_document_pages(
        self, computer: str, uri: str, batch: int = DEFAULT_LIMIT
    ) -> AsyncGenerator[DPEPageSummary, None]:
        """Iterate over the index of a document's pages; `batch` of them are read at a time."""
        offset: int | None = 0
        while offset is not None:
            index = await self.read_document_pages(computer, uri, offset, batch)
            for page in requests.pages_in(index):
                yield page
            offset = requests.next_offset(index, offset)

    async def iter_pages(self, computer: str, uri: str, format: str = "json") -> AsyncGenerator[Any, None]:
        """Iterate over the pages of a document, as `read_page` gives them. Each page is read when the caller asks for
        it.
        """
        async with aclosing(self.iter_document_pages(computer, uri)) as index:
            async for page in index:
                yield await self.read_page(computer, uri, page["page_index"], format)

    # --- asking

    def _call(self, req_id: str | None = None) -> AgentCallData:
        return {"agent": self.name, "req_id": req_id or os.urandom(16).hex()}

    async def _ask(self, request: Request, read: _Read[_T], cost: Cost | None = None) -> _T:
        exchange = self._exchange if TRACING.spans is None else self._traced_exchange
        return await exchange(request, partial(_read_within, read), cost)

    async def _traced_exchange(self, request: Request, decode: _Decode[_T], cost: Cost | None = None) -> _T:
        if (spans := TRACING.spans) is None or not spans.is_traced(request.event):
            return await self._exchange(request, decode, cost)
        with spans.asking(request.event, request.data) as (span, data):
            answer = await self._exchange(replace(request, data=data), decode, cost)
            if request.event == TOOL_CALL_EVENT and (code := requests.failure_of(answer)) is not None:
                span.failed(code)
            return answer

    async def _exchange(self, request: Request, decode: _Decode[_T], cost: Cost | None = None) -> _T:
        try:
            try:
                body = await self._link.exchange(request.event, request.data, request.deadline)
            except RequestTimeoutError:
                raise requests.UnansweredError(request) from None
            if cost is None:
                return decode(request, body, self._limits)
            began = time.thread_time()
            try:
                return decode(request, body, self._limits)
            finally:
                cost.seconds, cost.size = time.thread_time() - began, len(body)
        except SMCPError as error:
            logger.info("%s failed, req_id %s: %s", request.event, request.req_id, error)
            raise

    async def _get(self, computer: str, part: Part, cost: Cost) -> Any:
        """Fetch one part of the live view."""
        call, deadlines = self._call(), self._deadlines
        match part:
            case Part.TOOLS:
                return await self._ask_for_tools(computer, cost)
            case Part.CONFIG:
                return await self._ask(requests.get_config(call, deadlines, computer), requests.read_config, cost)
            case Part.DESKTOP:
                request = requests.get_desktop(call, deadlines, computer, None, None)
                return await self._ask(request, requests.read_desktop, cost)
            case Part.DOCUMENTS:
                # The most that a computer gives at once.
                request = requests.get_finder(call, deadlines, computer, None, None, 0, 1000)
                read = partial(requests.read_finder, dialect=self._link.server_dialect)
                return await self._ask(request, read, cost)

    # --- listening

    def _register(self, name: str, callback: Callback) -> None:
        self._callbacks[name].append(callback)

    def _tell(self, name: str, data: Any) -> None:
        if self._callbacks[name]:
            self._happened.put(name, data)

    def _start_listener(self) -> None:
        self._closed = False
        if self._listener is None:
            self._listener = asyncio.create_task(self._listen(), name="a2c-agent-handlers")

    async def _listen(self) -> None:
        """Run the handlers, in the order of the events, until the agent is closed."""
        me = asyncio.current_task()
        assert me is not None
        while self._listener is me:
            name, data = await self._happened.get()
            for callback in list(self._callbacks[name]):
                try:
                    outcome = callback(data)
                    if inspect.isawaitable(outcome):
                        await outcome
                except (Exception, asyncio.CancelledError):
                    if me.cancelling():
                        raise
                    # This is the caller's code. Whatever it raises, the next handler is still called.
                    logger.exception("a handler of %s failed", name)

    def _on_link_event(self, event: LinkEvent) -> None:
        self._news.heard()
        if isinstance(event, Joined):
            self._has_come(None)
        if self._live:
            match event:
                case Joined():
                    self._view.joined()
                case Disconnected():
                    self._view.disconnected()
        self._tell("connection", event)

    def _notification_handler(self, event: str) -> Callable[[Any], Coroutine[Any, Any, None]]:
        async def handle(data: Any) -> None:
            # Nothing is awaited here, so notifications are taken in the order they came in.
            notice = parse(event, data)
            if self.office_id is None or notice.get("office_id", self.office_id) != self.office_id:
                return
            computer = notice.get("computer")
            self._news.heard(computer)
            if computer is not None and (note := self._notes.get(event)) is not None:
                note(computer)
            if self._live:
                self._view.take_note(event, notice)
            self._tell(happening(event), notice)

        return handle

    async def _take_progress(self, data: Any) -> None:
        # Nothing is awaited here, so it is taken before the result that comes next.
        self._progress.take(_well_formed(parse(TOOL_PROGRESS_NOTIFICATION, data)))

    async def _take_question(self, data: Any) -> None:
        question = _well_formed(parse(QUESTION_NOTIFICATION, data))
        if self._questions.take(question):
            self._tell("question", question)

    async def _take_update(self, data: Any) -> None:
        notice = parse(RESOURCE_UPDATED_NOTIFICATION, data)
        # A computer may tell anything. Only what this agent asked for reaches its handlers.
        if self._subscriptions.has(notice.get("computer"), notice["uri"]):
            self._tell_updated(notice)

    def _tell_updated(self, notice: ResourceUpdatedNotification) -> None:
        self._tell("resource_updated", notice)


def _read_within(read: _Read[_T], request: Request, body: str, limits: AnswerLimits) -> _T:
    return read(request, build_answer(request.event, body, limits))


def _well_formed(data: Any) -> Any:
    """What a computer says, with U+FFFD for lone surrogates. A host could not read the words that it is to pass on."""
    return codec.loads(codec.dumps_well_formed(data))
