"""A Computer in an office: it answers what agents ask, remembers their calls, and announces what has changed.

Knows requests and replies; what tools there are and how they run is the Computer's. Answering one more event is one
more method in `_handlers`, announcing one more change is one more `AnnouncedEvent`.
"""

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Any, Final, Self, get_args

import anyio
from mcp_types import CallToolResult

from a2c_smcp.computer.calls.memory import CallKey, CallMemory, Finished, Running
from a2c_smcp.computer.calls.progress import PROGRESS_SECONDS
from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.decisions.approvals import CALLING_AGENT, CALLING_OFFICE
from a2c_smcp.computer.redaction import discreet_config, discreet_error
from a2c_smcp.computer.watching.events import AnnouncedEvent, EventsLost, ServerStatus
from a2c_smcp.errors import (
    BadRequestError,
    ConnectionLostError,
    InternalError,
    NotFoundError,
    PayloadTooLargeError,
    SMCPError,
    TooManyRequestsError,
    error_from_payload,
)
from a2c_smcp.link.interface import Joined, LinkEvent, LinkOptions, Membership
from a2c_smcp.link.office_link import OfficeLink
from a2c_smcp.link.ways import Way
from a2c_smcp.results import cancelled_result, error_result, to_wire
from a2c_smcp.smcp import (
    CANCEL_TOOL_CALL_NOTIFICATION,
    EVENTS,
    GET_CONFIG_EVENT,
    GET_DESKTOP_EVENT,
    GET_FINDER_EVENT,
    GET_TOOLS_EVENT,
    READ_RESOURCE_EVENT,
    TOOL_CALL_EVENT,
    TOOL_PROGRESS_EVENT,
    UPDATE_CONFIG_EVENT,
    AgentCallData,
    GetComputerConfigReq,
    GetComputerConfigRet,
    GetDeskTopReq,
    GetDeskTopRet,
    GetFinderReq,
    GetFinderRet,
    GetToolsReq,
    GetToolsRet,
    Kind,
    ReadResourceReq,
    ReadResourceRet,
    ToolCallReq,
    ToolProgress,
    UpdateComputerConfigReq,
)
from a2c_smcp.utils.latest import LatestOnly
from a2c_smcp.utils.limited_log import LimitedLog
from a2c_smcp.utils.text import in_log, on_one_line, req_id_in_log
from a2c_smcp.wire import DEFAULT_MAX_TIMEOUT, PACKET_OVERHEAD, Encoded, checked_size, codec, parse, size_of

__all__ = ["SMCPComputerClient"]

logger = logging.getLogger(__name__)

_ANNOUNCED: Final = get_args(AnnouncedEvent)
_ANNOUNCEMENTS: Final = frozenset(kind.announced_by for kind in _ANNOUNCED)
_FOLLOWED: Final = (*_ANNOUNCED, ServerStatus)
#: How the log calls what it says only so much about: an agent may give itself many names.
_AGENTS: Final = "what agents asked for"
#: How many characters the names of a tool call may have: its `agent`, its `req_id` and its `tool_name`.
_MAX_NAME: Final = 1000


class _Call:
    """A tool call that runs in the task of its first request, and what repeats of that request wait on."""

    def __init__(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.task = task
        self.is_cancelled = False
        self._runs = True
        self._replied: asyncio.Future[Encoded | None] | None = None

    def cancel(self) -> None:
        """Have `result` return a cancelled call's result, unless the call has ended."""
        if self._runs and not self.is_cancelled:
            self.is_cancelled = True
            self.task.cancel()

    async def result(self, running: Awaitable[CallToolResult]) -> CallToolResult:
        # Not under a cancel scope: that takes a tenth of the time of a small call.
        try:
            return await running
        except asyncio.CancelledError:
            if not self.is_cancelled or self.task.uncancel():
                raise  # the client disconnects
            return cancelled_result()
        finally:
            self._runs = False

    async def reply(self) -> Encoded:
        """The reply, for a repeat of the request. A repeat that stops waiting does not disturb the others."""
        if self._replied is None:
            self._replied = asyncio.get_running_loop().create_future()
        reply = await asyncio.shield(self._replied)
        if reply is None:
            raise InternalError("the call that this one repeats was broken off")
        return reply

    def end(self, reply: Encoded | None) -> None:
        if self._replied is not None:
            self._replied.set_result(reply)


def _ignore(_: LinkEvent) -> None:
    pass


class SMCPComputerClient:
    """Puts a Computer into an office: `async with SMCPComputerClient(computer, url, api_key=…) as client`.

    Then `await client.join_office("lab")`: from now on the client answers the requests of the office's agent, and
    announces what changes. It neither starts nor stops the Computer, which has its own `async with`. After a lost
    connection the client connects and joins again by itself; `on_event` is called for each of these events.
    """

    def __init__(
        self,
        computer: Computer,
        url: str | LinkOptions,
        *,
        api_key: str | None = None,
        max_timeout: int = DEFAULT_MAX_TIMEOUT,
        on_event: Callable[[LinkEvent], None] = _ignore,
    ) -> None:
        self._computer = computer
        self._max_timeout = max_timeout
        self._on_event = on_event
        options = url if isinstance(url, LinkOptions) else LinkOptions(url)
        if api_key is not None:
            options = replace(options, api_key=api_key)
        self._link = OfficeLink(options, self._handlers(), on_event=self._heard, leaving=discreet_error)
        self._id = uuid.uuid4().hex
        #: Known before the server says yes: an agent may ask before that answer is here.
        self._office = ""
        self._calls: CallMemory[_Call, Encoded] = CallMemory()
        self._refusals = LimitedLog(logger, per_second=20)
        self._to_announce: set[str] = set()
        self._wake = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    # --- lifecycle

    async def connect(self) -> None:
        """Connect, or raise: `UnauthorizedError`, another refusal's class, or `ConnectionLostError`."""
        await self._link.open()
        if not self._tasks:
            self._tasks = {asyncio.create_task(self._follow()), asyncio.create_task(self._announce())}

    async def disconnect(self) -> None:
        """Disconnect for good, and cancel the calls that still run. Safe to call twice."""
        with anyio.CancelScope(shield=True):
            tasks: set[asyncio.Task[Any]] = {*self._tasks, *(call.task for call in self._calls.all_running())}
            self._tasks = set()
            for task in tasks:
                task.cancel()
            await self._link.close()
            if tasks:
                # For running calls to end once the client is disconnected.
                await asyncio.wait(tasks, timeout=5.0)
            self._computer.office_closed(self._id)

    async def __aenter__(self) -> Self:
        await self.connect()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.disconnect()

    async def join_office(self, office_id: str) -> None:
        """Join an office under the Computer's name, and leave the one before; every reconnect joins again.

        A refusal raises `NameTakenError`, `ForbiddenError` (the key does not allow it) or `BadRequestError` (a name or
        an id that breaks a rule).
        """
        before, self._office = self._office, office_id
        self._to_announce.clear()  # an agent that hears of the enter fetches everything anyway
        try:
            await self._link.join(Membership("computer", self._computer.name, office_id))
        except BaseException:
            self._office = before
            raise
        if before != office_id:
            self._give_up(before)

    async def leave_office(self) -> None:
        """Leave the office, and cancel the calls of its agent that still run. Without an office this does nothing."""
        await self._link.leave()
        self._give_up(self._office)

    def _give_up(self, office: str) -> None:
        """Cancel what the agent of an office that was left has called: it was told that the computer has gone."""
        for call in self._calls.all_running(office):
            call.cancel()

    @property
    def joined(self) -> bool:
        """Whether the server has this computer in its office right now."""
        return self._link.joined

    @property
    def way(self) -> Way | None:
        """How the computer is connected, or was the last time: by which transport, through which proxy."""
        return self._link.way

    # --- answering

    def _handlers(self) -> dict[str, Callable[[Any], Awaitable[Any]]]:
        answers: dict[str, Callable[[Any], Awaitable[Any]]] = {
            GET_TOOLS_EVENT: self._get_tools,
            GET_CONFIG_EVENT: self._get_config,
            GET_DESKTOP_EVENT: self._get_desktop,
            GET_FINDER_EVENT: self._get_finder,
            READ_RESOURCE_EVENT: self._read_resource,
        }
        return {
            **{name: _not_ours for name, event in EVENTS.items() if event.kind is Kind.NOTIFICATION},
            **{event: self._answering(event, answer) for event, answer in answers.items()},
            TOOL_CALL_EVENT: self._tool_call,
            CANCEL_TOOL_CALL_NOTIFICATION: self._cancel,
        }

    def _answering(self, event: str, answer: Callable[[Any], Awaitable[Any]]) -> Callable[[Any], Awaitable[Any]]:
        async def handle(data: Any) -> Any:
            return await answer(self._request(event, data))

        return handle

    def _request(self, event: str, data: Any) -> Any:
        """The request, if it is one and is for this computer."""
        request = parse(event, data, max_timeout=self._max_timeout)
        if request["computer"] != self._computer.name:
            raise NotFoundError("this is another computer than the one that the request names")
        return request

    async def _get_tools(self, request: GetToolsReq) -> GetToolsRet:
        return {"tools": self._computer.get_available_tools(), "req_id": request["req_id"]}

    async def _get_config(self, _: GetComputerConfigReq) -> GetComputerConfigRet:
        return discreet_config(self._computer.get_config())

    async def _get_desktop(self, request: GetDeskTopReq) -> GetDeskTopRet:
        req_id = request["req_id"]
        around: GetDeskTopRet = {"desktops": [], "req_id": req_id}
        room = self._link.options.max_message - PACKET_OVERHEAD - size_of(codec.dumps(around))
        desktops = await self._computer.get_desktop(
            request.get("desktop_size"), request.get("window"), max_bytes=max(0, room)
        )
        return {"desktops": desktops, "req_id": req_id}

    async def _get_finder(self, request: GetFinderReq) -> GetFinderRet:
        documents, total_count = await self._computer.get_finder(
            request.get("keywords"), request.get("file_type"), request.get("offset", 0), request.get("limit", 20)
        )
        return {"documents": documents, "total_count": total_count, "req_id": request["req_id"]}

    async def _read_resource(self, request: ReadResourceReq) -> ReadResourceRet:
        result = await self._computer.read_resource(request["uri"])
        contents = [content.model_dump(mode="json", by_alias=True, exclude_none=True) for content in result.contents]
        return {"contents": contents, "req_id": request["req_id"]}

    # --- tool calls

    async def _tool_call(self, data: Any) -> Any:
        try:
            return await self._result(self._request(TOOL_CALL_EVENT, data), data)
        except SMCPError as error:
            self._refusals.warn(_AGENTS, "refused tool call %s: %s", req_id_in_log(data), on_one_line(error))
            return discreet_error(error).tool_call_payload()
        except Exception:
            # A boundary, as in `OfficeLink`; here because a failed tool call has a shape of its own.
            self._refusals.exception(_AGENTS, "failed to handle tool call %s", req_id_in_log(data))
            return InternalError("this computer failed to handle the call; its log says why").tool_call_payload()

    async def _result(self, request: ToolCallReq, received: dict[str, Any]) -> Encoded:
        _check_names(request)
        key = CallKey(self._office, request["agent"], request["req_id"])
        call = _Call()
        match self._calls.admit(key, request["tool_name"], request["params"], call, _now()):
            case Finished(result=reply):
                return reply
            case Running(entry=running):
                # It may wait for as long as the call runs: the params of the first request are enough.
                received["params"], request["params"] = None, {}
                return await running.reply()
            case _:
                return await self._run(key, request, call)

    async def _run(self, key: CallKey, request: ToolCallReq, call: _Call) -> Encoded:
        """Run a call in this task, which goes on whatever becomes of the connection: the result is remembered."""
        CALLING_AGENT.set(key.agent)  # for this task only
        CALLING_OFFICE.set(key.office)
        reply, progress = None, None
        if request.get("progress"):
            progress = LatestOnly(partial(self._send_progress, key, request), PROGRESS_SECONDS)
        try:
            result = await call.result(
                self._computer.execute_tool(
                    key.req_id,
                    request["tool_name"],
                    request["params"],
                    request["timeout"],
                    progress.put if progress is not None else None,
                )
            )
            if progress is not None:
                await progress.end()
            reply, size = self._encode(key, result)
            self._calls.finish(key, reply, size, _now())
            return reply
        finally:
            if reply is None:
                self._calls.forget(key)
            if progress is not None:
                progress.stop()
            call.end(reply)

    async def _send_progress(
        self, key: CallKey, request: ToolCallReq, progress: float, total: float | None, message: str | None
    ) -> None:
        if key.office != self._office:
            return  # in the office where it is now, somebody else's call may have these ids
        report: ToolProgress = {
            "computer": request["computer"],
            "agent": request["agent"],
            "req_id": request["req_id"],
            "progress": progress,
        }
        if total is not None:
            report["total"] = total
        if message is not None:
            report["message"] = message
        await self._link.send(TOOL_PROGRESS_EVENT, report)

    def _encode(self, key: CallKey, result: CallToolResult) -> tuple[Encoded, int]:
        """The encoded result and its size, or an error result in the place of one that is too large to send."""
        text = codec.dumps(to_wire(result))
        try:
            size = checked_size("the result", text, self._link.options.max_message)
        except PayloadTooLargeError as error:
            self._refusals.warn(_AGENTS, "tool call %s: %s", in_log(key.req_id), error)
            text = codec.dumps(to_wire(error_result(error)))
            size = size_of(text)
        return Encoded(text), size

    async def _cancel(self, data: Any) -> None:
        request: AgentCallData = parse(CANCEL_TOOL_CALL_NOTIFICATION, data)
        call = self._calls.running(CallKey(self._office, request["agent"], request["req_id"]))
        if call is not None:
            call.cancel()

    # --- announcing

    def _heard(self, event: LinkEvent) -> None:
        if isinstance(event, Joined):
            self._wake.set()  # changes during its absence are still to be announced
        self._computer.office_heard(self._id, self._link.options.url, event)
        self._on_event(event)

    async def _follow(self) -> None:
        async with self._computer.events(kinds=_FOLLOWED) as events:
            async for event in events:
                if isinstance(event, EventsLost):
                    self._to_announce.update(_ANNOUNCEMENTS)
                elif isinstance(event, AnnouncedEvent):
                    self._to_announce.add(event.announced_by)
                elif isinstance(event, ServerStatus):
                    self._to_announce.add(UPDATE_CONFIG_EVENT)  # agents read in the config how servers do
                self._wake.set()

    async def _announce(self) -> None:
        """Announce changes one at a time; a change that repeats before its turn is announced once."""
        body: UpdateComputerConfigReq = {"computer": self._computer.name}
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._to_announce and self._link.joined:
                announcement = self._to_announce.pop()
                try:
                    reply = await self._link.request(announcement, body, 5.0)
                    if (refusal := error_from_payload(reply[0] if reply else None)) is not None:
                        raise refusal
                except ConnectionLostError:
                    self._to_announce.add(announcement)  # announced when it is back
                    break
                except TooManyRequestsError:
                    self._to_announce.add(announcement)
                    # Before an announcement is made again that was one too many.
                    await asyncio.sleep(1.0)
                except SMCPError as error:
                    logger.warning("%s was not announced: %s", announcement, error)


def _check_names(request: ToolCallReq) -> None:
    """The names of a call stay in the computer's memory when it has ended."""
    names = {"agent": request["agent"], "req_id": request["req_id"], "tool_name": request["tool_name"]}
    for field, name in names.items():
        if len(name) > _MAX_NAME:
            raise BadRequestError(f"field {field!r}: at most {_MAX_NAME} characters", {"field": field})


async def _not_ours(_: Any) -> None:
    """Ignore a notification: they are for agents, but for one, which has a handler of its own."""


def _now() -> float:
    return asyncio.get_running_loop().time()
