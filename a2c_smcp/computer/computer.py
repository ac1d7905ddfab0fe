"""The Computer: MCP servers, inputs, decisions and calls behind one class and one lifecycle.

It knows no prompts, no terminals and no sockets. A program that shows or serves a Computer follows its `events`, and
answers its `decisions`.
"""

import os
import time
import weakref
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import anyio
from mcp_types import CallToolResult, ReadResourceResult

from a2c_smcp.computer.asker import ASKER, Asker
from a2c_smcp.computer.calls.log import CallLog, EndedCall, LoggedCall, RunningCall
from a2c_smcp.computer.calls.progress import OnProgress
from a2c_smcp.computer.calls.time_limits import TimeLimits
from a2c_smcp.computer.calls.tool_calls import ToolCalls
from a2c_smcp.computer.decisions.book import (
    CALLBACK,
    Accepted,
    MissingInput,
    ToolDefinition,
    weight_of_decision,
)
from a2c_smcp.computer.decisions.callbacks import ConfirmCallback, confirming, resolving
from a2c_smcp.computer.decisions.questions import QuestionDesk
from a2c_smcp.computer.decisions.sign_ins import SignInDesk
from a2c_smcp.computer.decisions.store import Attendance, DecisionStore
from a2c_smcp.computer.decisions.tool_definitions import ToolDefinitions
from a2c_smcp.computer.decisions.tool_marks import ToolMarks
from a2c_smcp.computer.desktop.cutting import MAX_WINDOW, DesktopLimits
from a2c_smcp.computer.inputs import BaseInputResolver, InputResolver, InputStore, servers_referencing
from a2c_smcp.computer.inputs.asked import AskedInputResolver
from a2c_smcp.computer.mcp_clients.connection_options import ConnectionOptions, ServerWay, Timings
from a2c_smcp.computer.mcp_clients.manager import MCPServerManager
from a2c_smcp.computer.mcp_clients.masking import config_view
from a2c_smcp.computer.mcp_clients.model import BaseServerConfig, MCPServerConfig, MCPServerInput, wire_server
from a2c_smcp.computer.mcp_clients.pipes.guardian import Guardian
from a2c_smcp.computer.mcp_clients.remembered_tools import RememberedTools
from a2c_smcp.computer.mcp_clients.server_state import ServerState
from a2c_smcp.computer.redaction import Redaction
from a2c_smcp.computer.resources.read_guard import AgentSight, ReadGuard
from a2c_smcp.computer.resources.reading import ResourceReader
from a2c_smcp.computer.resources.shown import ResourceTimings, ShownResources
from a2c_smcp.computer.rules.deciding import RuledTool, RuleVerdict
from a2c_smcp.computer.sign_in.sign_ins import SignIns
from a2c_smcp.computer.sign_in.token_store import SignInStore
from a2c_smcp.computer.types import ToolCallRecord
from a2c_smcp.computer.watching.change_journal import ChangeFanOut
from a2c_smcp.computer.watching.events import (
    BUFFERED_BYTES,
    BUFFERED_EVENTS,
    ConfigChanged,
    ConsoleSignIn,
    DecisionAsked,
    DecisionEvent,
    EventHub,
    EventStream,
    OfficeStatus,
    RestartOffered,
    RulesChanged,
    ServerStatus,
    ToolListChanged,
)
from a2c_smcp.computer.watching.office_states import OfficeStates
from a2c_smcp.computer.watching.paced_events import PacedEvents
from a2c_smcp.computer.watching.snapshot import ComputerSnapshot
from a2c_smcp.dialects.bundle_ids import BundleIds
from a2c_smcp.errors import BadRequestError, ToolNameDuplicatedError
from a2c_smcp.link.interface import LinkEvent
from a2c_smcp.smcp import DPEDocumentSummary, GetComputerConfigRet, SMCPTool
from a2c_smcp.types import SERVER_NAME, TOOL_NAME, Desktop
from a2c_smcp.utils.system import HAS_GUARDIANS
from a2c_smcp.wire import DEFAULT_MAX_MESSAGE

if TYPE_CHECKING:
    from a2c_smcp.computer.recording.recorder import Recorder
    from a2c_smcp.record.writer import RecordWriter

__all__ = ["Computer", "ConfirmCallback"]


class Computer:
    """MCP servers under one roof: `async with Computer("laptop", mcp_servers=[...]) as computer` runs them.

    Then call its tools with `execute_tool`, or let an agent do so: `SMCPComputerClient` puts the Computer into an
    office. A server is a config model, or a dictionary as in config files, with `${input:id}` in place;
    `load_config_files` reads such files. An invalid config raises `InvalidConfigError`. The attribute `inputs` has the
    definitions and values of the inputs. The attribute `decisions` has the questions that wait for a person. The
    attribute `shared` has the resources and prompts that servers share (`share` in their configs).

    - `auto_connect=False` starts no server by itself; use `start_server`.
    - `auto_reconnect=False` leaves a server that has died stopped. Otherwise it is restarted, up to `max_restarts`
      times in a row, with growing pauses.
    - `confirm_callback` is asked `(req_id, server, tool, params)` before a tool without `auto_apply` runs. It
      answers `decisions`, as a terminal or a page does. If nobody answers `decisions`, these calls are refused (4005).
    - `input_resolver` asks a person for the value of an input. It answers `decisions`, too. If nobody does, values come
      from variables, commands and defaults only.
    - `max_calls` calls run at a time on one server; the others wait.
    - `max_message` is how many bytes a message with a result may have, `max_window` how many bytes of a window's text
      the desktop shows.
    - `ways` has servers that are reached in another way than their configs say, such as inside this process.
    - `skills` is a folder of skills, which agents may list and read. `uploads` is the folder into which agents may put
      files; without it they cannot.
    - `sign_in_store` keeps the sign-ins at remote servers, such as a `TokenStore`. Without one they end with the
      program.
    - `remembered_tools` knows from earlier runs which server has which tool, for calls of tools whose server is down.
    - `record` writes what happens into `record_file`; with `record_results`, what tools answer, too.
      With `record_required`, no call and no read of an agent happens that cannot be recorded: they fail with 500.
      With `tell_record_head`, servers that keep a record are told how far it goes.
    """

    _confirm_callback: ConfirmCallback | None = None
    _confirming: Attendance | None = None

    def __init__(
        self,
        name: str,
        *,
        inputs: Iterable[MCPServerInput] = (),
        mcp_servers: Iterable[MCPServerConfig | dict[str, Any]] = (),
        auto_connect: bool = True,
        auto_reconnect: bool = True,
        confirm_callback: ConfirmCallback | None = None,
        input_resolver: BaseInputResolver | None = None,
        max_restarts: int = 10,
        max_calls: int = 64,
        max_message: int = DEFAULT_MAX_MESSAGE,
        max_window: int = MAX_WINDOW,
        timings: Timings | None = None,
        remembered_tools: RememberedTools | None = None,
        resource_timings: ResourceTimings | None = None,
        record: "RecordWriter | None" = None,
        record_results: bool = False,
        record_required: bool = False,
        tell_record_head: bool = False,
        ways: Mapping[SERVER_NAME, ServerWay] | None = None,
        skills: str | os.PathLike[str] | None = None,
        uploads: str | os.PathLike[str] | None = None,
        sign_in_store: SignInStore | None = None,
    ) -> None:
        self.name = name
        self.skills = None if skills is None else Path(skills)
        self.uploads = None if uploads is None else Path(uploads)
        self.inputs = InputStore(inputs)
        self._limits = DesktopLimits(max_window, max_message)
        self._events = EventHub()
        self._happened = PacedEvents(self._events.publish)
        self._log, self._offices = CallLog(), OfficeStates()
        self.decisions = DecisionStore(partial(_publish_decision, weakref.ref(self), self._events))
        self.confirm_callback = confirm_callback
        if input_resolver is not None:
            self.decisions.attend(CALLBACK, {"input"}, resolving(input_resolver)).begin()
        resolver = InputResolver(self.inputs, AskedInputResolver(self.decisions, self._servers_of))
        resource_timings = resource_timings or ResourceTimings()
        self._resources = ShownResources(self._happened, resource_timings, resolver.redaction.quote)
        redaction = resolver.redaction
        self._sign_ins = SignIns(
            SignInDesk(self.decisions), sign_in_store, partial(redaction.learn_value, "a sign-in's secret")
        )
        self._manager = MCPServerManager(
            resolver,
            ConnectionOptions(
                auto_reconnect=auto_reconnect,
                max_restarts=max_restarts,
                max_calls=max_calls,
                max_message=max_message,
                timings=timings or Timings(),
                redaction=resolver.redaction,
                asker=QuestionDesk(self.decisions),
                ways=dict(ways or {}),
                guardian=Guardian(name) if HAS_GUARDIANS else None,
                sign_ins=self._sign_ins,
            ),
            on_event=self._happened,
            on_resources=self._resources.changed,
            auto_connect=auto_connect,
            remembered=remembered_tools,
        )
        self.record_file = None if record is None else record.file
        self.told_record = self.record_file if tell_record_head else None
        """The record whose head is told to servers, if one is."""
        if record is None and record_required:
            raise ValueError("record_required needs a record")
        self._recorder = (
            None
            if record is None
            else self._recorded(record, resolver.redaction, with_results=record_results, is_required=record_required)
        )
        self._manager.load(map(_as_written, mcp_servers))
        running = self._manager.book
        self.shared = ResourceReader(
            self._resources, lambda: running.connections, resource_timings.read, resolver.redaction
        )
        self._read_seconds = resource_timings.read
        definitions = ToolDefinitions(running)
        self.tool_calls = ToolCalls(
            self._manager,
            self.decisions,
            self._events,
            self._log,
            resolver.redaction,
            definitions,
            self.shared.remember_links,
            self._recorder,
        )
        """Runs calls for those who keep a record and limits of their own, such as `SMCPComputerClient`."""
        self._marks = ToolMarks(self._manager.serving, definitions, self.decisions)
        self._shown_config = self._configs()
        self.inputs.subscribe(self._input_changed)

    def _recorded(self, record: "RecordWriter", redaction: Redaction, **options: bool) -> "Recorder":
        # Imported here: most programs that use a Computer keep no record.
        from a2c_smcp.computer.recording.recorder import Recorder

        recorder = Recorder(record, redaction, **options)
        self._events.open(recorder)
        return recorder

    # --- lifecycle

    async def boot_up(self) -> None:
        """Start every enabled server. Returns when each runs or has failed; a server that fails raises nothing.

        Look at `statuses` next: it has the state of each server. If this is cancelled, nothing is left running.
        """
        if self._recorder is not None:
            self._recorder.computer("started", self.name)
            self.decisions.rules.recall(self._recorder.rule_counts)
        try:
            await self._manager.start_all()
            await self._resources.listed()
        except BaseException:
            await self.shutdown()
            raise

    async def ready(self) -> None:
        """Call this while `boot_up` runs. It waits until each server runs, has failed, or waits for a person to give
        an input.

        `boot_up` itself also waits for that person. `ready` does not return before `boot_up` is called.
        """
        await self._manager.settled()
        await self._resources.listed()

    async def shutdown(self) -> None:
        """Stop every server and its running calls, in bounded time, and withdraw all pending decisions.

        Safe to call twice, and before `boot_up`.
        """
        for decision in self.decisions.pending:
            self.decisions.withdraw(decision.id)
        await self._manager.stop_all()
        with anyio.CancelScope(shield=True):
            await self._sign_ins.aclose()
            await self._resources.aclose()
            await self.decisions.rules.aclose()
            self._happened.flush()
            if self._recorder is not None:
                self._recorder.computer("stopped", self.name)
                await self._recorder.aclose()

    async def __aenter__(self) -> Self:
        await self.boot_up()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.shutdown()

    def events(self, limit: int = BUFFERED_EVENTS, *, kinds: Collection[type] | None = None) -> EventStream:
        """The events from now on, for one reader: `async with computer.events() as events`, then `async for`.

        `a2c_smcp.computer.watching.events` has the classes. At most `limit` events wait for a slow reader; older ones
        are lost. With `kinds`, the reader gets only events of these classes. An event that nobody reads is not made. If
        somebody reads `CallProgressed`, servers are asked to report their progress.
        """
        return self._events.subscribe(limit, kinds)

    def snapshot(self) -> ComputerSnapshot:
        """The state now, with the number of the last event. A watcher needs it at its start, and when it has lost
        events.
        """
        return ComputerSnapshot(
            number=self._events.number,
            name=self.name,
            servers=tuple(self.statuses),
            tools=tuple(self.get_available_tools()),
            tool_servers=self.tool_servers,
            conflicts=tuple(self.tool_conflicts),
            config=self.get_config(),
            inputs={input_id: input_id in self.inputs.values for input_id in self.inputs.definitions},
            offices=self.offices,
            running_calls=self.running_calls,
            ended_calls=self.ended_calls,
            decisions=self.decisions.pending,
            answerers=self.decisions.answerers,
            rules=tuple(self.decisions.rules.listed()),
            recorded=self.record_file is not None,
        )

    # --- what there is

    @property
    def statuses(self) -> list[ServerStatus]:
        """The state of every server, in config order."""
        return self._manager.book.statuses

    @property
    def history(self) -> tuple[ToolCallRecord, ...]:
        """The last ten calls that reached a server, oldest first."""
        return self._log.history

    @property
    def running_calls(self) -> tuple[RunningCall, ...]:
        """The calls that have no result yet, oldest first. Some may wait for a confirmation."""
        return self._log.running

    @property
    def ended_calls(self) -> tuple[EndedCall, ...]:
        """The last hundred calls that ended, oldest first. Large arguments and results are cut."""
        return self._log.ended

    def ended_call(self, call_id: str) -> EndedCall | None:
        """One of the `past_calls` by its id, without building the others."""
        return self._log.find_ended(call_id)

    def past_calls(self, before: str | None = None) -> Iterator[EndedCall]:
        """The last thousand calls that ended, newest first; with `before`, an id, those that ended before that call.

        Each is built when the iterator reaches it, in any thread.
        """
        return self._log.past(before)

    @property
    def past_call_ids(self) -> frozenset[str]:
        """The ids of the `past_calls`, without building them."""
        return self._log.past_ids

    @property
    def offices(self) -> tuple[OfficeStatus, ...]:
        """The state of each connection to a server, with its office."""
        return self._offices.statuses

    def get_available_tools(self) -> list[SMCPTool]:
        """The tools that can be called now, as agents see them. Do not change them."""
        return self._marks.tools()

    @property
    def tool_servers(self) -> dict[TOOL_NAME, SERVER_NAME]:
        """The server of each tool that can be called now, by the tool's name."""
        return self._manager.serving.tool_servers

    def get_config(self) -> GetComputerConfigRet:
        """The configs of all servers and inputs as agents see them: with placeholders, and with secrets masked.

        `server_info` has the state of each server.
        """
        return {**self._configs(), "server_info": self._manager.book.server_info}

    def _configs(self) -> GetComputerConfigRet:
        return config_view(self._manager.book.configs.values(), self.inputs.definitions.values())

    def server_config(self, name: SERVER_NAME) -> dict[str, Any] | None:
        """A server's config as it was written, with its secrets in clear text; `None` for an unknown server."""
        return deepcopy(self._manager.book.configs.get(name))

    @property
    def bundle_ids(self) -> BundleIds:
        """The ids by which peers of `a2c-smcp` 0.4 know the servers."""
        return BundleIds(self._manager.book.configs.values())

    def read_guard(self) -> ReadGuard:
        """What decides for one connection to an office what its agent may read."""
        return ReadGuard(self.decisions, self._recorder, self._read_seconds)

    @property
    def changes(self) -> ChangeFanOut:
        """Tells which windows, documents and resources the announced changes are about."""
        return self._resources.journals

    async def get_desktop(
        self,
        size: int | None = None,
        window: str | None = None,
        *,
        max_bytes: int | None = None,
        sight: AgentSight | None = None,
    ) -> list[Desktop]:
        """The windows of all servers as agents see them, at most `size`; or the one with exactly the URI `window`.

        Encoded, all windows together have at most `max_bytes`, by default as many as a message may have. Large windows
        are cut, and the least important ones are left out. A window that is asked for by its URI is never cut. If it is
        too large to be read, this raises `PayloadTooLargeError`. `sight` is what an agent may see, if one asks.
        """
        limits = self._limits if max_bytes is None else replace(self._limits, message=max_bytes)
        return await self._resources.desktop(size, window, self._log.used_servers, limits, sight)

    async def get_finder(
        self,
        keywords: Sequence[str] | None = None,
        file_type: str | None = None,
        offset: int = 0,
        limit: int = 20,
        *,
        by_file_name: bool = False,
        sight: AgentSight | None = None,
    ) -> tuple[list[DPEDocumentSummary], int]:
        """A page of the matching documents, and how many match in all. Do not change the documents.

        With `by_file_name`, the keywords are also looked for in the names of files; requests of agents do not do that.
        A negative `offset` or `limit` raises `BadRequestError`. `sight` is what an agent may see, if one asks.
        """
        used = self._log.used_servers
        return await self._resources.finder(
            keywords, file_type, used, offset, limit, by_file_name=by_file_name, sight=sight
        )

    @property
    def finder_note(self) -> str:
        """What the servers say of their catalogues, such as which files they do not serve; empty if they say nothing.

        It is as old as the catalogues that were read last.
        """
        return self.finder_note_for(None)

    def finder_note_for(self, sight: AgentSight | None) -> str:
        """The `finder_note` for an agent: of the catalogues that it may read whole."""
        return self._resources.finder_note(sight)

    async def read_resource(self, uri: str) -> ReadResourceResult:
        """Read a window, a document, a part of a document, or anything else that a server shares, by its URI.

        Raises `InvalidWindowURIError` or `InvalidDPEURIError` for an invalid URI, `ForbiddenError` for a listed
        resource that is not shared, `NotFoundError` or a `FinderError` if nothing has this URI, `RequestTimeoutError`
        after 10 seconds, and `InternalError` with the server's answer if the server fails.
        """
        return await self.shared.read(uri)

    @property
    def tool_conflicts(self) -> list[ToolNameDuplicatedError]:
        """The clashes of tool names. Each keeps a server from running, or a tool from being shown."""
        return self._manager.serving.conflicts

    def server_logs(self, name: SERVER_NAME) -> tuple[str, ...]:
        """The last lines that a server wrote to its stderr, without secrets; `NotFoundError` for an unknown server."""
        return self._manager.book.stderr(name)

    # --- servers

    async def add_or_update_server(self, config: MCPServerConfig | dict[str, Any], *, keeps_new: bool = False) -> None:
        """Add a server, or change the server that has this name. A running server is restarted if the change needs
        it.

        With `auto_connect` this returns once the server runs. Raises `InvalidConfigError`, `VRLSyntaxError` or
        `InputNotFoundError` if the config is wrong, `ToolExecutionError` if the server does not start, or
        `ToolNameDuplicatedError`. After an error everything is as before. But with `keeps_new`, a new server that does
        not start stays, and is started again later.
        """
        with self._announcing_config():
            await self._manager.add_or_update_server(_as_written(config), keeps_new=keeps_new)

    async def remove_server(self, name: SERVER_NAME, *, sign_out: bool = False) -> None:
        """Stop a server and forget it, or raise `NotFoundError`. With `sign_out`, forget the sign-in at it, too."""
        if sign_out:
            await self.sign_out(name)
        with self._announcing_config():
            await self._manager.remove_server(name)

    async def start_server(self, name: SERVER_NAME) -> None:
        """Start a server. Returns once it runs, or raises an `SMCPError` that says why it does not."""
        await self._manager.start_server(name)

    async def stop_server(self, name: SERVER_NAME) -> None:
        """Stop a server. It stays stopped until `start_server`; its calls fail."""
        await self._manager.stop_server(name)

    async def restart_server(self, name: SERVER_NAME) -> None:
        """Stop a server and start it with its config and inputs as they are now. Raises like `start_server`."""
        await self._manager.restart_server(name)

    def begin_sign_in(self, name: SERVER_NAME) -> None:
        """Ask again for a sign-in that a server waits for. It becomes one of the `decisions`.

        Raises `NotFoundError`, or `BadRequestError` if the server does not wait for one.
        """
        if self._manager.book.server(name).state is not ServerState.SIGN_IN:
            raise BadRequestError(f"the server {name!r} does not wait for a sign-in")
        if not self.decisions.can_answer("sign_in"):
            raise BadRequestError("nobody can be asked to sign in")
        self._sign_ins.begin(name)

    async def is_signed_in(self, name: SERVER_NAME) -> bool:
        """Whether a token for this server is kept. Raises `NotFoundError`, or `InputNotFoundError`."""
        sign_in = self._sign_ins.of(await self._manager.rendered(name))
        return sign_in is not None and await sign_in.is_kept()

    async def sign_out(self, name: SERVER_NAME) -> bool:
        """Stop a server and delete what is kept of the sign-in at it. Returns whether there was something."""
        await self._manager.stop_server(name)
        return await self._sign_ins.forget(await self._manager.rendered(name))

    @contextmanager
    def _announcing_config(self) -> Iterator[None]:
        try:
            yield
        finally:
            self._announce_config()

    def _announce_config(self) -> None:
        before, self._shown_config = self._shown_config, self._configs()
        if self._shown_config != before:
            self._happened(ConfigChanged())

    def _input_changed(self, input_id: str) -> None:
        self._announce_config()
        self._answer_with_value(input_id)
        running = self._manager.book.connections
        for name in servers_referencing(input_id, self._manager.book.configs):
            if name in running:
                self._events.publish(RestartOffered(name, f"the input {input_id!r} changed"))

    def _servers_of(self, input_id: str) -> tuple[SERVER_NAME, ...]:
        return tuple(servers_referencing(input_id, self._manager.book.configs))

    def _answer_with_value(self, input_id: str) -> None:
        """Answer the decision about an input that has been given a value meanwhile."""
        definition = self.inputs.definitions.get(input_id)
        for decision in self.decisions.pending if input_id in self.inputs.values else ():
            if isinstance(decision, MissingInput) and decision.definition is definition:
                self.decisions.answer(decision.id, Accepted(self.inputs.values[input_id]), by="inputs")

    # --- decisions and offices

    async def test_rules(
        self,
        tool_name: TOOL_NAME,
        params: Mapping[str, Any],
        *,
        agent: str = "",
        office: str = "",
        key: str | None = None,
        claimed: bool = False,
    ) -> RuleVerdict | None:
        """What the rules say about such a call, which is not made; `None` if no rule matches. Raises as a call does if
        there is no such tool. Without `agent`, `office` and `key` it is a call that no agent makes. `claimed` says that
        no key is bound to the agent's name.
        """
        asker = Asker(agent, key, bool(agent) and not claimed, office) if agent or office or key else None
        return await self.tool_calls.test_rules(self._manager.validate_tool_call(tool_name), params, asker)

    def ruled_tool(self, tool_name: TOOL_NAME) -> tuple[RuledTool, ToolDefinition]:
        """A tool as rules see it, and as a person is shown it. Raises as a call does if there is no such tool."""
        tool = self._manager.validate_tool_call(tool_name)
        return self.tool_calls.as_ruled(tool), self.tool_calls.definition(tool)

    def sleeping_rules(self) -> frozenset[str]:
        """The ids of the rules that hold for a tool that has changed since they were made."""
        return self._marks.asleep()

    def rules_changed(self) -> None:
        """Tell agents that the answers for their tools have changed, if any has."""
        if self._marks.have_changed():
            self._happened(ToolListChanged())

    @property
    def confirm_callback(self) -> ConfirmCallback | None:
        """The function that is asked before a tool without `auto_apply` runs. Other places may answer the same
        decision.
        """
        return self._confirm_callback

    @confirm_callback.setter
    def confirm_callback(self, callback: ConfirmCallback | None) -> None:
        if self._confirming is not None:
            self._confirming.end()
        self._confirm_callback, self._confirming = callback, None
        if callback is not None:
            self._confirming = self.decisions.attend(CALLBACK, {"confirmation"}, confirming(callback))
            self._confirming.begin()

    def office_heard(self, connection: str, url: str, event: LinkEvent) -> None:
        """A client that connects this Computer to a server tells its events here. Watchers of the Computer then see
        them.
        """
        self._events.publish(self._offices.hear(connection, url, event, time.time()))

    def office_closed(self, connection: str) -> None:
        """Such a client says here that it was closed on purpose."""
        if (status := self._offices.close(connection)) is not None:
            self._events.publish(status)

    def console_heard(self, event: ConsoleSignIn) -> None:
        """A console tells here who comes to it."""
        self._events.publish(event)

    # --- calls

    async def execute_tool(
        self,
        req_id: str,
        tool_name: TOOL_NAME,
        params: Mapping[str, Any],
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        *,
        confirmed_by: str | None = None,
        meta: Mapping[str, Any] | None = None,
        approval_timeout: float | None = None,
    ) -> CallToolResult:
        """Run a tool and return its result. A failure is a result, too, with its code (4001 to 4005, 413) in `meta`.

        `req_id` is any text that names the call in logs, events and history. The timeout, in seconds, includes the wait
        for a confirmation; `None` means no limit. With an `approval_timeout` a person has that many seconds to confirm,
        and the timeout counts from the start of the tool. Cancelling the task that waits here cancels the tool.

        `on_progress` is called with `(progress, total, message)` when the tool reports its progress, and when the call
        waits for its confirmation. It is a plain function that must not block. With `confirmed_by`, nobody is asked: it
        names the place where a person made or confirmed this call already. `meta` becomes the `_meta` of the MCP
        request, without MCP's own keys.
        """
        limits = TimeLimits(timeout, approval_timeout)
        call = LoggedCall(
            *(req_id, ASKER.get(None), tool_name, dict(params), timeout, time.time(), limits.began, limits.cancel),
            *(confirmed_by, None, limits.tool_ends),
        )
        return await self.tool_calls.run(call, limits, on_progress, meta)

    def cancel_call(self, call_id: str, *, by: str | None = None) -> bool:
        """Cancel one of the `running_calls` by its id. Returns whether it was still running.

        Its caller gets a result with `a2c_cancelled` in its `meta`. `by` names the place where a person did this.
        """
        return self.tool_calls.cancel(call_id, by)


def _as_written(config: MCPServerConfig | dict[str, Any]) -> dict[str, Any]:
    return wire_server(config) if isinstance(config, BaseServerConfig) else deepcopy(config)


def _publish_decision(owner: "weakref.ref[Computer]", events: EventHub, event: DecisionEvent) -> None:
    # Not a method: connections hold the decisions, and must not keep a Computer alive that its owner has dropped.
    computer = owner()
    if computer is not None and isinstance(event, RulesChanged):
        computer.rules_changed()
    size = weight_of_decision(event.decision, BUFFERED_BYTES) if isinstance(event, DecisionAsked) else 0
    events.publish(event, size)
