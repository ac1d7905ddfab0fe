"""One MCP server, kept connected: opened, watched, restarted and closed by one task of its own.

Calls come from any task; none of them can take the connection down with it. Knows one server's config; nothing of
other servers, of tool names, of what an agent may do.

    stopped ──► starting ──► running ──► backing_off ──► starting …
                   │            │             │
                   └────────────┴──► failed   └──► (any of these) ──► stopping ──► stopped

mcp insists that a session is closed by the task that opened it, so a `MCPConnection` has an owner task from `connect`
to `disconnect`, and a new `Client` for every life of the server.
"""

import asyncio
import logging
import math
import random
from collections.abc import Awaitable, Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from functools import partial
from pathlib import PurePath
from typing import Any, Final, TypeVar

import anyio
import anyio.lowlevel
from mcp import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    METHOD_NOT_FOUND,
    CallToolResult,
    Implementation,
    LoggingMessageNotificationParams,
    ReadResourceResult,
    Resource,
    ServerCapabilities,
    Tool,
)
from pydantic import ValidationError

from a2c_smcp import __version__
from a2c_smcp.computer.calls.progress import CallProgress
from a2c_smcp.computer.mcp_clients.change_feed import ChangeFeed, ChangeFeedTimings, ServerChange
from a2c_smcp.computer.mcp_clients.elicitation.asking import Asker, Questions
from a2c_smcp.computer.mcp_clients.log_messages import MAX_LOG_LINE, log_lines
from a2c_smcp.computer.mcp_clients.mcp_internals import (
    MODERN_PROTOCOL_VERSIONS,
    IncomingMessage,
    client_over,
    discover,
    lacks_back_channel,
    ping,
)
from a2c_smcp.computer.mcp_clients.mcp_session import MCPSession
from a2c_smcp.computer.mcp_clients.model import MCPServerConfig, SSEServerConfig, StdioServerConfig
from a2c_smcp.computer.mcp_clients.pipes.dispatcher import InvalidAnswerError
from a2c_smcp.computer.mcp_clients.pipes.process import StdioTimings, describe_exit
from a2c_smcp.computer.mcp_clients.probe import ProbeTimeouts
from a2c_smcp.computer.mcp_clients.resource_lists import ListedResource, ResourceList
from a2c_smcp.computer.mcp_clients.server_state import TRANSITIONS, ServerState, StateChange
from a2c_smcp.computer.mcp_clients.transports import ServerTransport
from a2c_smcp.computer.redaction import Redaction
from a2c_smcp.errors import (
    PayloadTooLargeError,
    RequestTimeoutError,
    ServerNotActiveError,
    ServerStartError,
    SMCPError,
    ToolExecutionError,
    ToolExecutionTimeoutError,
)
from a2c_smcp.utils.backoff import backoff
from a2c_smcp.utils.distribution import DISTRIBUTION
from a2c_smcp.utils.text import cut
from a2c_smcp.wire import DEFAULT_MAX_MESSAGE

__all__ = ["MCPConnection", "Timings", "client_factory"]

logger = logging.getLogger(__name__)

_T = TypeVar("_T")

#: Commands that download what they run, if it is not there yet.
_DOWNLOADERS: Final = frozenset({"bunx", "docker", "npx", "pipx", "pnpx", "podman", "uvx"})
_STDERR_LINES_IN_A_REASON: Final = 5
_FELL_BACK: Final = "it asks the person as in MCP's older era, and needs a start with that handshake"
_MAY_ASK_NOW: Final = "somebody can answer its questions now, which it was not told at its start"
_CLIENT_INFO: Final = Implementation(name=DISTRIBUTION, version=__version__)


@dataclass(frozen=True, slots=True)
class Timings:
    """Every wait of a connection, in seconds."""

    start: float = 30.0
    download: float = 180.0
    """For the start of a command that may download the server first, such as `npx`."""
    order: float = 5.0
    """How long servers that start together wait for those before them in the config, so that the earlier one wins."""
    patience: ProbeTimeouts = field(default_factory=ProbeTimeouts)
    """How long to wait for a process that is probed for its MCP era and says nothing."""
    request: float = 30.0
    """For lists and reads; a tool call has the timeout of its caller."""
    idle_probe: float = 30.0
    """How long an HTTP server may be silent before it is asked whether it is there, and how long that may take."""
    backoff_first: float = 0.5
    backoff_most: float = 30.0
    healthy: float = 60.0
    """A server that ran this long counts as new when it dies."""
    steady: float = 5.0
    """One that ran this long is back after the first pause: only lives that are shorter make the pauses longer."""
    cancel: float = 1.0
    """For running calls to tell the server that they are cancelled, before a stop closes its stdin."""
    close: float = 10.0
    """For closing a session, the subprocess's own shutdown not included."""
    stdio: StdioTimings = field(default_factory=StdioTimings)
    feed: ChangeFeedTimings = field(default_factory=ChangeFeedTimings)

    def start_of(self, config: MCPServerConfig) -> float:
        """How long the start of a server may take."""
        if config.start_timeout is not None:
            return config.start_timeout
        return self.download if _may_download(config) else self.start

    def backoff(self, short_lives: int) -> float:
        """How long to wait after so many short lives in a row; with jitter: servers should not come back in step."""
        pause = backoff(short_lives, self.backoff_first, self.backoff_most)
        return min(self.backoff_most, pause * random.uniform(1, 1.25))

    def is_steady(self, lasted: float | None) -> bool:
        """Whether a life of so many seconds was long enough; `None` is one that never began."""
        return lasted is not None and lasted >= self.steady


@dataclass(frozen=True, slots=True)
class _Ending:
    """How a life of the server ended."""

    reason: str
    lasted: float | None
    """How long it ran; `None` when it never did."""
    asks_for_the_old_handshake: bool = False
    is_planned: bool = False
    """It was ended to be started anew."""
    is_lasting: bool = False
    """It never ran, and trying again is of no use."""


class MCPConnection:
    """A server's connection: `connect`, use from any task, `disconnect`. May be connected again afterwards.

    What it says of the server, in errors, reasons and stderr lines, went through `redaction`, and is not longer than
    such things should be.

    `asker` puts the server's questions to a person. `old_handshake` says that this server needs the handshake of MCP's
    older era; `on_old_handshake` is called when that turns out to be so. Where servers are not restarted by themselves,
    `on_restart_wanted` is told why this one should be.

    The callbacks are called from the event loop and must return at once; what they raise is logged.
    """

    def __init__(
        self,
        config: MCPServerConfig,
        *,
        auto_reconnect: bool = True,
        max_restarts: int = 10,
        max_calls: int = 64,
        max_message: int = DEFAULT_MAX_MESSAGE,
        timings: Timings | None = None,
        on_state: Callable[[StateChange], None] | None = None,
        on_change: Callable[[ServerChange], None] | None = None,
        on_stderr: Callable[[str], None] | None = None,
        redaction: Redaction | None = None,
        asker: Asker | None = None,
        old_handshake: bool = False,
        on_old_handshake: Callable[[], None] | None = None,
        on_restart_wanted: Callable[[str], None] | None = None,
    ) -> None:
        self.config = config
        self._asker = asker
        self._on_old_handshake = on_old_handshake
        self._on_restart_wanted = on_restart_wanted
        self._redaction = redaction or Redaction()
        self.auto_reconnect = auto_reconnect
        self._max_restarts = max_restarts
        self._max_calls = max_calls
        self._max_message = max_message
        self._timings = timings or Timings()
        self._on_state = on_state
        self._on_change = on_change
        self._on_stderr = on_stderr

        self._state = ServerState.DISABLED if config.disabled else ServerState.STOPPED
        self._restarts = 0
        self._short_lives = 0
        self._watched: frozenset[str] = frozenset()
        self._old_handshake = self._fell_back = old_handshake
        self._is_modern_only = False
        self._owner: asyncio.Task[None] | None = None
        self._outcome: asyncio.Future[SMCPError | None] | None = None
        self._interrupt: anyio.CancelScope | None = None
        self._wire: ServerTransport | None = None
        self._session: MCPSession | None = None
        self.ignored_resources: str | None = None
        """Which resources of the server's list are ignored, in words."""
        self.other_resources: Set[int] = frozenset()
        """The hashes of the URIs in its list that are neither windows nor documents."""

    @property
    def name(self) -> str:
        return self.config.name

    @property
    def state(self) -> ServerState:
        return self._state

    @property
    def restarts(self) -> int:
        """How many times in a row it had to be started again."""
        return self._restarts

    @property
    def capabilities(self) -> ServerCapabilities | None:
        """What the running server can do; `None` while it does not run."""
        return self._session.client.server_capabilities if self._session else None

    @property
    def protocol_version(self) -> str | None:
        return self._session.client.protocol_version if self._session else None

    @property
    def can_subscribe(self) -> bool:
        """Whether the running server declares `resources.subscribe`: only then has it windows and documents."""
        return self.has_capability("resources.subscribe")

    def has_capability(self, name: str) -> bool:
        """Whether the running server declares this, as in `resources.subscribe`."""
        found: object = self.capabilities
        for part in name.split("."):
            found = getattr(found, part, None)
        return bool(found)

    @property
    def pid(self) -> int | None:
        """The process that runs, or that ran last."""
        process = self._wire and self._wire.process
        return process.pid if process else None

    @property
    def stderr_tail(self) -> tuple[str, ...]:
        """The last stderr lines of the process that runs, or that ran last."""
        process = self._wire and self._wire.process
        return process.stderr_tail if process else ()

    # --- lifecycle, from any task

    async def connect(self) -> None:
        """Return once the server runs, or raise `ServerStartError` that says why it does not.

        While it is backing off, try now. Cancelling this call does not stop the server from starting.
        """
        if self._state is ServerState.STOPPING:
            await self._closed()
        if self._state is ServerState.DISABLED:
            raise ServerNotActiveError(self.name)
        if self._session is not None and self._session.ending is None:
            return
        if self._outcome is None:
            self._outcome = asyncio.get_running_loop().create_future()
        if self._state is ServerState.BACKING_OFF:
            self._interrupt_owner()
        elif self._state in (ServerState.STOPPED, ServerState.FAILED):
            self._restarts = self._short_lives = 0
            self._move(ServerState.STARTING)
            self._owner = asyncio.create_task(self._own(), name=f"MCP server {self.name}")
        error = await asyncio.shield(self._outcome)
        if error is not None:
            raise error

    async def disconnect(self) -> None:
        """Stop the server and whatever runs on it. Idempotent; safe from any task, at any moment."""
        if self._state in (ServerState.STOPPED, ServerState.DISABLED):
            return
        if self._state is not ServerState.STOPPING:
            self._move(ServerState.STOPPING)
            if self._session is not None:
                self._session.end("was stopped")
            else:
                self._interrupt_owner()
        await self._closed()

    def _interrupt_owner(self) -> None:
        """End its start, or its backing off."""
        if self._interrupt is not None:
            self._interrupt.cancel()

    async def _closed(self) -> None:
        owner = self._owner
        if owner is not None and not owner.done():
            # `wait` neither cancels the owner when we are cancelled, nor raises what it raised.
            bound = self._timings.close + self._timings.cancel + 10
            _, late = await asyncio.wait({owner}, timeout=bound)
            if late:
                logger.error("MCP server %s could not be closed in %g s; its task is cancelled", self.name, bound)
                owner.cancel()
                await asyncio.wait({owner}, timeout=bound)
        if self._state is ServerState.STOPPING:
            self._move(ServerState.STOPPED)

    # --- requests, from any task

    async def call_tool(
        self,
        name: str,
        params: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        progress: CallProgress | None = None,
    ) -> CallToolResult:
        """Call a tool by its own name. Cancelling this call, or its timeout, cancels the tool.

        Raises `ToolExecutionError` when the server fails, dies or breaks the tool's output schema,
        `ServerNotActiveError` when it does not run, `ToolExecutionTimeoutError` after `timeout` seconds,
        `PayloadTooLargeError` when the result was too large to be kept.
        """

        arguments = dict(params or {})
        try:
            return await self._request(lambda session: session.call_tool(name, arguments, progress), timeout)
        except TimeoutError:
            raise ToolExecutionTimeoutError(timeout or 0) from None
        except (InvalidAnswerError, ValidationError) as error:
            raise self._failed(f"tool {name} answered with something that is no MCP result") from error
        except MCPError as error:
            said = error.message + self._advise(error)
            raise self._too_large(error) or self._failed(said, mcp_code=error.code) from None
        except RuntimeError as error:  # a result that breaks the output schema; the first line says how
            raise self._failed(str(error).partition("\n")[0]) from error

    async def list_tools(self) -> list[Tool]:
        """All tools, paged to the end. Raises `MCPError` with what the server answered, or as `read_resource`.

        Those whose definition is invalid are left out; `invalid_tools` has them, and why.
        """
        if self._wire is not None:
            self._wire.invalid_tools.clear()
        tools: list[Tool] = []

        async def read(session: MCPSession, cursor: str | None) -> str | None:
            page = await session.client.list_tools(cursor=cursor)
            tools.extend(page.tools)
            return page.next_cursor

        await self._read_pages(read)
        return tools

    @property
    def invalid_tools(self) -> Mapping[str, str]:
        """The tools that the server listed last with a definition that is invalid, and what is wrong with each."""
        return dict(self._wire.invalid_tools) if self._wire is not None else {}

    async def list_resources(self) -> list[ListedResource]:
        """The windows and documents among the server's resources, paged to the end. Raises as `list_tools`.

        Those that are too many are left out; `ignored_resources` says so.
        """
        listed = ResourceList()

        async def read(session: MCPSession, cursor: str | None) -> str | None:
            page = await session.client.list_resources(cursor=cursor)
            await listed.add(session.wire.pages.of(page.meta))
            return None if listed.is_full else page.next_cursor

        await self._read_pages(read)
        self.ignored_resources, self.other_resources = listed.ignored, listed.others
        return listed.resources

    async def read_resource(self, uri: str, timeout: float | None = None) -> ReadResourceResult:
        """Read a resource. Raises `MCPError` with what the server answered, `ToolExecutionError` when it is gone or
        `ServerNotActiveError` when it does not run, `RequestTimeoutError` when it takes too long,
        `PayloadTooLargeError` when the answer was too large to be kept.
        """
        return await self._ask(lambda session: session.read_resource(uri), timeout)

    async def list_windows(self) -> list[Resource]:
        """The resources that claim to be windows; none from a server without `resources.subscribe`."""
        if not self.can_subscribe:
            return []
        return [resource for resource in await self.list_resources() if isinstance(resource, Resource)]

    async def read_window(self, uri: str, timeout: float | None = None) -> ReadResourceResult:
        """Read a window. Raises as `read_resource`."""
        return await self.read_resource(uri, timeout)

    def subscribe(self, uris: Iterable[str]) -> None:
        """Set the resources whose content is watched, now and after every restart."""
        self._watched = frozenset(uris)
        if self._session is not None:
            self._session.feed.watch(self._watched)

    async def subscribed(self) -> None:
        """Wait until the server has been told what is watched: what is read afterwards misses no change."""
        if self._session is not None:
            await self._ask(lambda session: session.feed.settled(), None)

    async def _read_pages(self, read: Callable[[MCPSession, str | None], Awaitable[str | None]]) -> None:
        """Have a list read page by page: `read` is given the place to go on from, and returns the next one."""

        async def read_all(session: MCPSession) -> None:
            cursors: set[str] = set()
            cursor = await read(session, None)
            while cursor:
                if cursor in cursors:
                    raise MCPError(INTERNAL_ERROR, "the server's list goes round in circles")
                cursors.add(cursor)
                cursor = await read(session, cursor)

        try:
            await self._ask(read_all, None)
        except MCPError as error:
            if error.code != METHOD_NOT_FOUND:
                raise

    async def _ask(self, send: Callable[[MCPSession], Awaitable[_T]], timeout: float | None) -> _T:
        timeout = self._timings.request if timeout is None else timeout
        try:
            return await self._request(send, timeout)
        except TimeoutError:
            raise RequestTimeoutError(f"Server {self.name} did not answer within {timeout:g}s") from None
        except MCPError as error:
            said = self._redaction.quote(error.message)
            raise self._too_large(error) or MCPError(error.code, said, error.data) from None
        except ValidationError as error:
            raise MCPError(INTERNAL_ERROR, "the server answered with something that is no MCP result") from error

    async def _request(self, send: Callable[[MCPSession], Awaitable[_T]], timeout: float | None) -> _T:
        session = self._serving()
        try:
            async with asyncio.timeout(timeout) as limit:
                session.enter(limit)
                try:
                    return await send(session)
                finally:
                    session.leave(limit)
        except TimeoutError:
            if session.ending is None:
                raise
        except Exception as error:
            if not session.is_ended_by(error):
                raise
        raise self._failed(f"Server {self.name} {session.ending}")

    def _serving(self) -> MCPSession:
        if self._session is None or self._session.ending is not None:
            raise ServerNotActiveError(self.name)
        return self._session

    def _too_large(self, error: MCPError) -> PayloadTooLargeError | None:
        """The error in the place of an answer that was not kept; a server that uses this code itself means the same."""
        if error.code != PayloadTooLargeError.default_code:
            return None
        return PayloadTooLargeError(f"Server {self.name}: {self._redaction.quote(error.message)}")

    def _failed(self, message: str, **details: Any) -> ToolExecutionError:
        return ToolExecutionError(self._redaction.quote(message), {"server_name": self.name, **details})

    def _advise(self, error: MCPError) -> str:
        """A server may be unable to ask only because of how it was started. Then start it anew once it is idle.

        Returns what its caller is to know of that.
        """
        session = self._session
        if session is None:
            return ""
        if lacks_back_channel(error) and session.is_modern and self._may_fall_back:
            if not self._old_handshake:
                self._old_handshake = self._fell_back = True
                if self._on_old_handshake is not None:
                    self._on_old_handshake()
            why = _FELL_BACK
        elif session.questions.is_missed_by(error):
            why = _MAY_ASK_NOW
        else:
            return ""
        logger.info("MCP server %s: %s", self.name, why)
        if self.auto_reconnect:
            session.retire(why)
            return " (the server is started again so that it can ask; call it again)"
        if self._on_restart_wanted is not None:
            self._on_restart_wanted(why)
        return " (the server can ask after a restart)"

    @property
    def _may_fall_back(self) -> bool:
        return self.config.protocol in (None, "auto") and not self._is_modern_only

    # --- the owner task

    async def _own(self) -> None:
        try:
            while not self._is_stopping():
                ending = await self._life()
                if self._is_stopping():
                    return
                if ending.is_planned:
                    self._move(ServerState.BACKING_OFF, ending.reason)
                    self._move(ServerState.STARTING)
                    continue
                failed = ServerStartError(self.name, self._redaction.quote(ending.reason), is_lasting=ending.is_lasting)
                if not self._may_restart(ending):
                    self._move(ServerState.FAILED, ending.reason)
                    self._resolve(failed)
                    return
                self._restarts += 1
                self._short_lives = 1 if self._timings.is_steady(ending.lasted) else self._short_lives + 1
                self._move(ServerState.BACKING_OFF, ending.reason)
                if ending.lasted is None:
                    self._resolve(failed)
                # A caller that is in `connect` by now wants it at once.
                delay = 0 if self._outcome else self._timings.backoff(self._short_lives)
                with anyio.move_on_after(delay) as self._interrupt:
                    await anyio.sleep_forever()
                if not self._is_stopping():
                    self._move(ServerState.STARTING)
        except Exception:
            # A boundary: no task awaits the result of this one.
            logger.exception("the owner of MCP server %s failed", self.name)
            if not self._is_stopping():
                self._move(ServerState.FAILED, "internal error")
        finally:
            self._settle()

    def _is_stopping(self) -> bool:
        return self._state is ServerState.STOPPING

    def _settle(self) -> None:
        """The owner task ends, for whatever reason: release the callers that wait for it, and set the state."""
        if self._state is not ServerState.FAILED:
            if not self._is_stopping():
                self._move(ServerState.STOPPING, "its event loop ends")
            self._move(ServerState.STOPPED)
        self._resolve(ServerNotActiveError(self.name))

    def _may_restart(self, ending: _Ending) -> bool:
        if ending.lasted is not None and ending.lasted >= self._timings.healthy:
            self._restarts = 0
        never_ran = ending.lasted is None and self._restarts == 0
        return self.auto_reconnect and not never_ran and self._restarts < self._max_restarts

    async def _life(self) -> _Ending:
        ending = await self._hold_session(self._mode())
        if self._fell_back and ending.lasted is None and not self._is_stopping():
            logger.warning("MCP server %s does not start with the old handshake: %s", self.name, ending.reason)
            self._old_handshake, self._fell_back, self._is_modern_only = False, False, True
            ending = await self._hold_session(self._mode())
        if ending.asks_for_the_old_handshake and not self._is_stopping():
            logger.info("MCP server %s cannot take the probe; it is started with the old handshake", self.name)
            ending = await self._hold_session("legacy")
        return ending

    def _mode(self) -> str:
        if self.config.protocol not in (None, "auto"):
            return str(self.config.protocol)
        # SSE is a transport of the old era only.
        return "legacy" if self._old_handshake or isinstance(self.config, SSEServerConfig) else "auto"

    async def _hold_session(self, mode: str) -> _Ending:
        """Open a session, let it be used, close it. The start has its deadline, or ends where the probe cannot."""
        questions = Questions(self.name, self._asker, self._redaction)
        wire = self._wire = ServerTransport(
            self.config,
            stdio_timings=self._timings.stdio,
            on_stderr=self._on_stderr,
            redaction=self._redaction,
            patience=self._timings.patience if mode == "auto" else None,
            declares=questions.declares,
            max_message=self._max_message,
        )
        feed = ChangeFeed(
            self.name, self._on_change or _ignore, self._timings.feed, self._watched, self._redaction.quote
        )

        async def heard(message: IncomingMessage) -> None:
            questions.on_message(message)
            await feed.on_message(message)

        client = client_over(
            wire,
            mode=mode,
            cache=None,
            message_handler=heard,
            elicitation_callback=questions.elicit,
            logging_callback=self._log,
            client_info=_CLIENT_INFO,
        )
        probing = mode == "auto" and wire.process is not None
        session: MCPSession | None = None
        failure: Exception | None = None
        stuck = False
        with anyio.CancelScope(deadline=anyio.current_time() + self._timings.start_of(self.config)) as scope:
            self._interrupt = scope

            def give_up() -> None:
                nonlocal stuck
                stuck = True
                scope.cancel()

            wire.on_stuck = give_up
            try:
                async with client:
                    if mode in MODERN_PROTOCOL_VERSIONS:
                        # mcp takes a given version at its word, and invents a server without capabilities.
                        await discover(client, mode)
                    self._old_handshake = mode == "legacy"
                    wire.protocol_version = client.protocol_version
                    session = MCPSession(client, feed, wire, questions, self._max_calls)
                    wire.on_end = partial(session.end, "ended the connection")
                    await self._serve(session, scope)
            except Exception as error:
                failure = error
        reason = self._reason(wire, session, failure)
        if session is not None and session.has_retired:
            return _Ending(session.ending or "", anyio.current_time() - (session.since or 0), is_planned=True)
        if session is not None and session.since is not None:
            return _Ending(reason, anyio.current_time() - session.since)
        wants_old = probing and (wire.has_ended or stuck) and self.pid is not None
        return _Ending(reason, None, wants_old, is_lasting=wire.is_lasting(failure))

    async def _log(self, params: LoggingMessageNotificationParams) -> None:
        """A log message of the server goes beside what it writes to stderr."""
        if self._on_stderr is not None:
            for line in log_lines(params):
                self._on_stderr(self._redaction(line)[:MAX_LOG_LINE])

    async def _serve(self, session: MCPSession, scope: anyio.CancelScope) -> None:
        """Let others use the session until it is over. Started under `scope`'s deadline, ended under a new one."""
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(session.feed.run, session.client, session.dispatcher)
                # The server should not show before its changes are heard. But one that came back may have to be told
                # of a hundred thousand resources, or answer no subscription at all: it serves all the same.
                with anyio.move_on_after(self._timings.feed.answer):
                    await session.feed.settled()
                await anyio.lowlevel.checkpoint_if_cancelled()  # a disconnect in the last moment
                scope.deadline = math.inf
                session.since = anyio.current_time()
                self._session = session
                self._move(ServerState.RUNNING)
                self._resolve(None)
                if session.wire.process is None:
                    tasks.start_soon(self._probe, session)
                if session.wire.has_ended:
                    session.end("ended the connection")
                await session.over.wait()
                scope.deadline = anyio.current_time() + self._timings.close
                with anyio.move_on_after(self._timings.cancel):
                    await session.drained()
                tasks.cancel_scope.cancel()
        finally:
            self._session = None
            session.end("was lost")

    async def _probe(self, session: MCPSession) -> None:
        """HTTP connections notice nothing by themselves while they are idle."""
        interval = self._timings.idle_probe
        while True:
            await anyio.sleep(max(0.0, session.wire.heard_at + interval - anyio.current_time()))
            if anyio.current_time() < session.wire.heard_at + interval:
                continue
            try:
                with anyio.fail_after(interval):
                    await ping(session.client)
            except (MCPError, TimeoutError) as error:
                if not isinstance(error, MCPError) or error.code != METHOD_NOT_FOUND:
                    session.end("does not answer any more")
                    return

    def _reason(self, wire: ServerTransport, session: MCPSession | None, failure: Exception | None) -> str:
        """Why a session did not start, or ended, for the people at this computer."""
        process = wire.process
        if process is not None and process.exit_code is not None and wire.has_ended:
            why = describe_exit(process.exit_code)
        elif said := wire.describe(failure):
            why = said
        elif session is not None and session.ending is not None:
            why = session.ending
        else:
            why = f"no answer within {self._timings.start_of(self.config):g} s"
        return self._with_stderr(why)

    def start_error(self, why: str) -> ServerStartError:
        """The error of a start that failed after `connect`."""
        return ServerStartError(self.name, self._with_stderr(why))

    def _with_stderr(self, why: str) -> str:
        tail = self.stderr_tail[-_STDERR_LINES_IN_A_REASON:]
        return self._redaction.quote(why) + (f"; stderr: {cut(' | '.join(tail))}" if tail else "")

    def _resolve(self, error: SMCPError | None) -> None:
        """Tell the callers that wait in `connect`."""
        if self._outcome is not None and not self._outcome.done():
            self._outcome.set_result(error)
        self._outcome = None

    def _move(self, new: ServerState, reason: str | None = None) -> None:
        old = self._state
        assert new in TRANSITIONS[old], f"{old} → {new}"
        self._state = new
        if self._on_state is not None:
            try:
                self._on_state(StateChange(self.name, old, new, reason, self._restarts))
            except Exception:
                # A boundary: the callback is not ours.
                logger.exception("the state callback of MCP server %s failed", self.name)


def _may_download(config: MCPServerConfig) -> bool:
    return isinstance(config, StdioServerConfig) and PurePath(config.server_parameters.command).stem in _DOWNLOADERS


def client_factory(config: MCPServerConfig, **options: Any) -> MCPConnection:
    """The connection for a config of any kind; the options are those of `MCPConnection`."""
    return MCPConnection(config, **options)


def _ignore(_: ServerChange) -> None:
    pass
