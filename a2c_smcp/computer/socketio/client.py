"""A Computer in an office: it answers the requests of agents, and announces what has changed.

It knows requests and replies. The Computer knows tools and runs them. To answer one more event, add a method to
`_handlers`; to announce one more change, add an `AnnouncedEvent`.
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

from a2c_smcp.computer.asker import ASKER, Asker, asker_of
from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.mcp_clients.catalogue import with_server_names
from a2c_smcp.computer.redaction import discreet_config
from a2c_smcp.computer.resources.read_guard import READ_ANNOUNCEMENTS
from a2c_smcp.computer.rules.reads import ReadKind
from a2c_smcp.computer.socketio.agent_calls import AgentCalls
from a2c_smcp.computer.socketio.agent_reads import AgentReads
from a2c_smcp.computer.socketio.agent_skills import AgentSkills
from a2c_smcp.computer.socketio.dialect_answers import DialectAnswers
from a2c_smcp.computer.socketio.kept_blobs import KeptBlobs
from a2c_smcp.computer.socketio.record_heads import RecordHeads
from a2c_smcp.computer.socketio.subscriptions import AgentSubscriptions
from a2c_smcp.computer.watching.change_journal import ChangeJournal
from a2c_smcp.computer.watching.events import AnnouncedEvent, EventsLost, RulesChanged, ServerStatus
from a2c_smcp.errors import (
    BadRequestError,
    ConnectionLostError,
    NotFoundError,
    SMCPError,
    TooManyRequestsError,
    error_from_payload,
)
from a2c_smcp.link.connection import ANSWERED_ON
from a2c_smcp.link.interface import Disconnected, Handler, Joined, KeySource, LinkEvent, LinkOptions, Membership
from a2c_smcp.link.office_link import OfficeLink
from a2c_smcp.link.transports import Way
from a2c_smcp.smcp import (
    ANSWER_QUESTION_EVENT,
    CANCEL_TOOL_CALL_NOTIFICATION,
    COMPLETE_EVENT,
    EVENTS,
    GET_BLOB_EVENT,
    GET_CONFIG_EVENT,
    GET_DESKTOP_EVENT,
    GET_FINDER_EVENT,
    GET_PROMPT_EVENT,
    GET_PROMPTS_EVENT,
    GET_RESOURCES_EVENT,
    GET_SKILL_EVENT,
    GET_SKILLS_EVENT,
    GET_TOOLS_EVENT,
    LEAVE_OFFICE_NOTIFICATION,
    PUT_BLOB_EVENT,
    READ_RESOURCE_EVENT,
    RESOURCE_UPDATED_EVENT,
    SUBSCRIBE_RESOURCE_EVENT,
    TOOL_CALL_EVENT,
    UNSUBSCRIBE_RESOURCE_EVENT,
    UPDATE_CONFIG_EVENT,
    UPDATE_PROMPTS_EVENT,
    UPDATE_RESOURCES_EVENT,
    UPDATE_SKILLS_EVENT,
    GetComputerConfigReq,
    GetComputerConfigRet,
    GetDeskTopReq,
    GetDeskTopRet,
    GetFinderReq,
    GetFinderRet,
    GetToolsReq,
    GetToolsRet,
    Kind,
    ResourceUpdatedNotification,
    UpdateComputerConfigReq,
)
from a2c_smcp.wire import DEFAULT_MAX_TIMEOUT, PACKET_OVERHEAD, codec, parse, size_of

__all__ = ["SMCPComputerClient"]

logger = logging.getLogger(__name__)

_ANNOUNCED: Final = get_args(AnnouncedEvent)
_ANNOUNCEMENTS: Final = frozenset(kind.announced_by for kind in _ANNOUNCED)
_FOLLOWED: Final = (*_ANNOUNCED, ServerStatus, RulesChanged)
_EXTENSIONS: Final = frozenset({UPDATE_RESOURCES_EVENT, UPDATE_PROMPTS_EVENT, UPDATE_SKILLS_EVENT})


def _ignore(_: LinkEvent) -> None:
    pass


class SMCPComputerClient:
    """Puts a Computer into an office: `async with SMCPComputerClient(computer, url, api_key=…) as client`.

    Then `await client.join_office("lab")`: from then on the client answers the requests of the office's agent, and
    announces what changes. It neither starts nor stops the Computer, which has its own `async with`. If the connection
    is lost, the client connects and joins again by itself. `on_event` is called when the connection or the office
    changes.
    """

    def __init__(
        self,
        computer: Computer,
        url: str | LinkOptions,
        *,
        api_key: "str | KeySource | None" = None,
        max_timeout: int = DEFAULT_MAX_TIMEOUT,
        on_event: Callable[[LinkEvent], None] = _ignore,
    ) -> None:
        self._computer = computer
        self._max_timeout = max_timeout
        self._on_event = on_event
        options = url if isinstance(url, LinkOptions) else LinkOptions(url)
        if api_key is not None:
            options = replace(options, api_key=api_key)
        self._guard = computer.read_guard()
        self._journal = ChangeJournal()
        self._blobs = KeptBlobs()
        self._dialect = DialectAnswers(computer, lambda: self._link.dialect, self._blobs)
        self._skills = AgentSkills(computer.skills, computer.uploads, self._blobs, self._guard)
        self._calls = AgentCalls(
            computer,
            self._checked,
            lambda *report: self._link.send(*report),
            lambda *event: self._link.request(*event),
            lambda: self._link.max_message,
            self._dialect,
        )
        self._subscriptions = AgentSubscriptions(computer, self._tell_update, self._guard)
        self._reads = AgentReads(
            computer,
            self._subscriptions,
            options.max_message,
            lambda: self._link.max_message,
            self._guard,
        )
        self._link = OfficeLink(options, self._handlers(), on_event=self._heard, refused=self._dialect.refused)
        self._heads = None if computer.told_record is None else RecordHeads(computer.told_record, self._link.request)
        self._id = uuid.uuid4().hex
        self._to_announce: set[str] = set()
        self._told_anyway: set[str] = set()
        """What is announced because other rules decide now what the agent sees."""
        self._wake = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    # --- lifecycle

    async def connect(self) -> None:
        """Connect. Raises `UnauthorizedError`, the error class of another refusal, or `ConnectionLostError`."""
        await self._link.open()
        if not self._tasks:
            self._computer.changes.add(self._journal)
            work = [
                self._follow(),
                self._announce(),
                self._subscriptions.run(),
                self._skills.watch(self._skills_changed),
                *([] if self._heads is None else [self._heads.run()]),
            ]
            self._tasks = {asyncio.create_task(each) for each in work}

    async def disconnect(self) -> None:
        """Disconnect for good, and cancel the calls that still run; they have 5 seconds to end. Safe to call twice."""
        with anyio.CancelScope(shield=True):
            tasks: set[asyncio.Task[Any]] = {*self._tasks, *self._calls.tasks}
            self._tasks = set()
            self._computer.changes.discard(self._journal)
            for task in tasks:
                task.cancel()
            if self._heads is not None and self._link.joined:
                with anyio.move_on_after(1):
                    await self._heads.tell()
            await self._link.close()
            self._forget_office()
            if tasks:
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
        """Join an office under the Computer's name, and leave the one before. Every reconnect joins again.

        A refusal raises `NameTakenError`, `ForbiddenError` (the key does not allow it) or `BadRequestError` (the name
        or the id breaks a rule).
        """
        # Set before the server answers: an agent may ask before that answer is here.
        before, self._calls.office = self._calls.office, office_id
        self._to_announce.clear()  # an agent that hears of the join fetches everything anyway
        try:
            await self._link.join(Membership("computer", self._computer.name, office_id))
        except BaseException:
            self._calls.office = before
            raise
        if before != office_id:
            self._calls.cancel_all(before)
            self._forget_office()

    def keep_trying(self) -> None:
        """From now on no refusal is final, not even that of the key: the client connects and joins again until it
        works. `on_event` hears of each refusal.
        """
        self._link.keep_trying()

    async def leave_office(self) -> None:
        """Leave the office, and cancel the calls of its agent that still run. Without an office this does nothing."""
        await self._link.leave()
        self._calls.cancel_all(self._calls.office)
        self._forget_office()

    @property
    def joined(self) -> bool:
        """Whether the computer is in its office now."""
        return self._link.joined

    @property
    def way(self) -> Way | None:
        """The transport and the proxy of the connection, or of the last one."""
        return self._link.way

    # --- answering

    def _handlers(self) -> dict[str, Handler]:
        """The one table of what is answered."""
        answers: dict[str, Callable[[Any], Awaitable[Any]]] = {
            GET_TOOLS_EVENT: self._get_tools,
            GET_CONFIG_EVENT: self._get_config,
            GET_DESKTOP_EVENT: self._get_desktop,
            GET_FINDER_EVENT: self._get_finder,
            ANSWER_QUESTION_EVENT: self._calls.questions.answer,
            READ_RESOURCE_EVENT: self._reads.read_resource,
            GET_RESOURCES_EVENT: self._reads.get_resources,
            SUBSCRIBE_RESOURCE_EVENT: self._reads.subscribe,
            UNSUBSCRIBE_RESOURCE_EVENT: self._reads.unsubscribe,
            GET_PROMPTS_EVENT: self._reads.get_prompts,
            GET_PROMPT_EVENT: self._reads.get_prompt,
            COMPLETE_EVENT: self._reads.complete,
            GET_SKILLS_EVENT: self._skills.get_skills,
            GET_SKILL_EVENT: self._skills.get_skill,
            GET_BLOB_EVENT: self._skills.get_blob,
            PUT_BLOB_EVENT: self._skills.put_blob,
        }
        return {
            **{name: _not_ours for name, event in EVENTS.items() if event.kind is Kind.NOTIFICATION},
            **{event: partial(self._answer, event, answer) for event, answer in answers.items()},
            TOOL_CALL_EVENT: self._calls.answer,
            CANCEL_TOOL_CALL_NOTIFICATION: self._calls.cancel,
            LEAVE_OFFICE_NOTIFICATION: self._member_left,
        }

    def _answer(self, event: str, answer: Callable[[Any], Awaitable[Any]], data: Any) -> Awaitable[Any]:
        handler = partial(self._answer_ours, event, answer)
        return self._dialect.answer(event, handler, data) if self._dialect.are_for(data) else handler(data)

    async def _answer_ours(self, event: str, answer: Callable[[Any], Awaitable[Any]], data: Any) -> Any:
        """Answer a request in our own dialect, for the agent that asks it."""
        request, asker = self._checked(event, data)
        ASKER.set(asker)  # for this task only
        return await answer(request)

    def _checked(self, event: str, data: Any) -> tuple[Any, Asker]:
        """The request and who asks. Raises if the request is invalid, or for another computer."""
        request = parse(event, data, max_timeout=self._max_timeout)
        if request["computer"] != self._computer.name:
            raise NotFoundError("the request names another computer than this one")
        connection = ANSWERED_ON.get()
        asker = asker_of(data, self._calls.office, stamps=connection is not None and connection.stamps)
        self._guard.last = asker
        return request, asker

    async def _get_tools(self, request: GetToolsReq) -> GetToolsRet:
        tools = self._computer.get_available_tools()
        if (request.get("meta") or {}).get("server_names") is True:
            tools = with_server_names(tools, self._computer.tool_servers)
        return {"tools": tools, "req_id": request["req_id"]}

    async def _get_config(self, _: GetComputerConfigReq) -> GetComputerConfigRet:
        if (sight := self._guard.sight()) is None:
            return discreet_config(self._computer.get_config())
        async with sight.reading(ReadKind.CONFIG, ""):
            return discreet_config(self._computer.get_config())

    async def _get_desktop(self, request: GetDeskTopReq) -> GetDeskTopRet:
        req_id = request["req_id"]
        around: GetDeskTopRet = {"desktops": [], "req_id": req_id}
        room = self._link.max_message - PACKET_OVERHEAD - size_of(codec.dumps(around))
        desktops = await self._computer.get_desktop(
            request.get("desktop_size"), request.get("window"), max_bytes=max(0, room), sight=self._guard.sight()
        )
        return {"desktops": desktops, "req_id": req_id}

    async def _get_finder(self, request: GetFinderReq) -> GetFinderRet:
        asked = request.get("keywords"), request.get("file_type"), request.get("offset", 0), request.get("limit", 20)
        sight = self._guard.sight()
        documents, total_count = await self._computer.get_finder(*asked, sight=sight)
        answer: GetFinderRet = {"documents": documents, "total_count": total_count, "req_id": request["req_id"]}
        if note := self._computer.finder_note_for(sight):
            answer["note"] = note
        return answer

    async def _member_left(self, data: Any) -> None:
        if parse(LEAVE_OFFICE_NOTIFICATION, data).get("agent") is not None:
            self._forget_agent()

    def _forget_agent(self) -> None:
        """The agent has left, or the connection is lost. Then the agent may leave unheard."""
        self._reads.forget()
        self._skills.forget_agent()

    def _forget_office(self) -> None:
        """The Computer has left: nothing that was kept for an agent there is needed any more."""
        self._reads.forget()
        self._skills.forget_all()

    # --- announcing

    def _heard(self, event: LinkEvent) -> None:
        if isinstance(event, Joined):
            self._wake.set()  # announce what changed while the computer was not in the office
            if self._heads is not None:
                self._heads.joined()
        elif isinstance(event, Disconnected):
            self._forget_agent()
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
                    self._to_announce.add(UPDATE_CONFIG_EVENT)  # agents read the servers' states in the config
                elif isinstance(event, RulesChanged) and self._guard.is_news():
                    self._told_anyway |= READ_ANNOUNCEMENTS
                    self._to_announce |= READ_ANNOUNCEMENTS
                self._wake.set()

    def _skills_changed(self) -> None:
        self._to_announce.add(UPDATE_SKILLS_EVENT)
        self._wake.set()

    async def _tell_update(self, uri: str) -> None:
        news: ResourceUpdatedNotification = {"computer": self._computer.name, "uri": uri}
        await self._send_news(RESOURCE_UPDATED_EVENT, news)

    async def _send_news(self, event: str, body: UpdateComputerConfigReq | ResourceUpdatedNotification) -> None:
        """Send an announcement. Raises the server's refusal, or `ConnectionLostError`."""
        reply = await self._link.request(event, body, 5.0)
        if (refusal := error_from_payload(reply[0] if reply else None)) is not None:
            raise refusal

    async def _announce(self) -> None:
        """Announce one change at a time. A change that comes twice before its turn is announced once."""
        body: UpdateComputerConfigReq = {"computer": self._computer.name}
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._to_announce and self._link.joined:
                announcement = self._to_announce.pop()
                if not self._may_tell(announcement):
                    continue
                try:
                    await self._send_news(announcement, body)
                except ConnectionLostError:
                    self._to_announce.add(announcement)  # it is announced when the connection is back
                    break
                except TooManyRequestsError:
                    self._to_announce.add(announcement)
                    await asyncio.sleep(1.0)
                except SMCPError as error:
                    # An older server does not know the extensions of the protocol, and its agents do not, either.
                    is_known = not isinstance(error, BadRequestError) or announcement not in _EXTENSIONS
                    level = logging.WARNING if is_known else logging.DEBUG
                    logger.log(level, "%s was not announced: %s", announcement, error)

    def _may_tell(self, announcement: str) -> bool:
        """Whether the agent may know of what has changed."""
        changed = self._journal.take(announcement)
        if announcement in self._told_anyway:
            self._told_anyway.discard(announcement)
            return True
        sight = self._guard.last_sight()
        return sight is None or sight.tells(announcement, changed)


async def _not_ours(_: Any) -> None:
    """Ignore a notification that is for agents."""
