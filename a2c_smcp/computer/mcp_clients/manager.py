"""The MCP servers of one Computer: started together, changed while they run, their tools in one catalogue.

Takes configs as written and has them rendered when a server starts, not before: a person is not asked for what is not
needed. Knows nothing of agents, of approvals, or of what a call is remembered for.

A server's new connection is opened beside the one that serves, takes its place only once its tools are admitted, and
is closed otherwise: whatever is refused leaves the old one running. Operations on one server wait for each other;
stopping and removing interrupt a start that is under way.

Servers that start together are admitted in config order, so that the outcome of a clash does not depend on who is
quicker; but a slow one is not waited for longer than `Timings.order`. A server that runs is never failed for another
one's start: the later one is refused.
"""

import asyncio
import logging
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

import anyio
from mcp import MCPError
from mcp_types import CallToolResult, Tool

from a2c_smcp.computer.calls.progress import CallProgress
from a2c_smcp.computer.config.problems import InvalidConfigError, Problem
from a2c_smcp.computer.inputs import InputResolver
from a2c_smcp.computer.mcp_clients.catalogue import Catalogue, ShownTool, ToolListing, clashes
from a2c_smcp.computer.mcp_clients.change_feed import ChangeKind, ServerChange
from a2c_smcp.computer.mcp_clients.elicitation.asking import Asker
from a2c_smcp.computer.mcp_clients.mcp_connection import MCPConnection, Timings, client_factory
from a2c_smcp.computer.mcp_clients.model import MCPServerConfig, parse_unrendered
from a2c_smcp.computer.mcp_clients.remembered_tools import RememberedTools
from a2c_smcp.computer.mcp_clients.server_state import ServerState, StateChange
from a2c_smcp.computer.mcp_clients.server_turns import ServerTurns
from a2c_smcp.computer.utils.placeholder import holds_placeholder
from a2c_smcp.computer.utils.refresher import Refresher
from a2c_smcp.computer.vrl.programs import VRLWorker
from a2c_smcp.computer.vrl.syntax import check_vrl, check_written_vrl
from a2c_smcp.computer.watching.events import (
    ComputerEvent,
    RestartOffered,
    ServerLogged,
    ServerStatus,
    ToolHidden,
    ToolInvalid,
    ToolListChanged,
)
from a2c_smcp.errors import (
    BadRequestError,
    NotFoundError,
    ServerNotActiveError,
    ServerStartError,
    SMCPError,
    ToolNameDuplicatedError,
    ToolNotFoundError,
)
from a2c_smcp.smcp import ServerInfo, SMCPTool
from a2c_smcp.types import SERVER_NAME, TOOL_NAME
from a2c_smcp.utils.text import cut
from a2c_smcp.wire import DEFAULT_MAX_MESSAGE

__all__ = ["MCPServerManager"]

logger = logging.getLogger(__name__)

#: How often the reason of a server's state becomes what it says while it starts, in seconds.
_SAID_EVERY: Final = 1.0
_LONGEST_SAID: Final = 200

#: How many lines of a server's stderr are kept.
_STDERR_LINES: Final = 200

#: A server that should run, and does not.
_DOWN: Final = (ServerState.FAILED, ServerState.BACKING_OFF)

#: A config as written: our own shape, placeholders in place.
RawConfig = dict[str, Any]


class _Life:
    """One connection, from its start until it is closed; it serves while it is `admitted`."""

    def __init__(self, config: MCPServerConfig) -> None:
        self.config = config
        self.connection: MCPConnection
        self.tools: list[Tool] = []
        self.admitted = False
        self.refresher = Refresher()
        """Reads its tools again; before it is admitted, it is only noted whether that is to be done."""
        self.invalid: dict[TOOL_NAME, str] = {}
        """Which of its tools are hidden because their definitions are invalid, as far as that was logged."""


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@dataclass(slots=True)
class _ManagedServer:
    raw: RawConfig
    status: ServerStatus
    life: _Life | None = None
    failure: SMCPError | None = None
    """Why the state is `failed`, if one of our own errors is the reason."""
    tries: int = 0
    """How many times in a row it did not start."""
    timer: asyncio.TimerHandle | None = None
    """Until it is tried again, or until the state tells what it says while it starts."""
    since: str = field(default_factory=_now)
    """The instant when its state became what it is."""
    last_line: str | None = None
    """What it wrote to stderr last, while it starts."""

    @property
    def name(self) -> SERVER_NAME:
        return self.status.server

    @property
    def did_not_start(self) -> bool:
        return self.life is None and self.status.state in (ServerState.FAILED, ServerState.BACKING_OFF)


def _ignore(*_: object) -> None:
    pass


class MCPServerManager:
    """`initialize` with configs, change what runs at any time, `stop_all` in the end.

    `on_event` is called from the event loop and must return at once. So is `on_resources`: for every change of the
    resources of a server that serves, and when one begins or ceases to serve, with the connection that serves now.
    `asker` puts the servers' questions to a person; without one nobody is asked. `remembered` knows whose tools were
    there in earlier runs. A manager that is dropped while its
    servers run has them stopped.
    """

    def __init__(
        self,
        resolver: InputResolver,
        *,
        on_event: Callable[[ComputerEvent], None] = _ignore,
        on_resources: Callable[[ServerChange, MCPConnection | None], None] = _ignore,
        auto_connect: bool = True,
        auto_reconnect: bool = True,
        max_restarts: int = 10,
        max_calls: int = 64,
        max_message: int = DEFAULT_MAX_MESSAGE,
        timings: Timings | None = None,
        asker: Asker | None = None,
        remembered: RememberedTools | None = None,
    ) -> None:
        self.auto_connect = auto_connect
        self.auto_reconnect = auto_reconnect
        self._remembered = remembered or RememberedTools()
        self._resolver = resolver
        self._redaction = resolver.redaction
        self._on_event = on_event
        self._on_resources = on_resources
        self._timings = timings or Timings()
        self._max_restarts = max_restarts
        self._connection_options = {
            "max_restarts": max_restarts,
            "max_calls": max_calls,
            "max_message": max_message,
            "timings": self._timings,
            "asker": asker,
        }
        #: The servers that need the older handshake of MCP, as it turned out, with the configs that they had.
        self._old_handshakes: dict[SERVER_NAME, RawConfig] = {}
        #: In config order.
        self._servers: dict[SERVER_NAME, _ManagedServer] = {}
        self._catalogue = Catalogue()
        #: Set from the moment when the servers start together, until they are stopped.
        self._opened = asyncio.Event()
        self._turns = ServerTurns()
        #: The servers whose start waits for a person who is to give an input.
        self._waiting: set[SERVER_NAME] = set()
        resolver.on_waiting = partial(_tell_waiting, weakref.ref(self))
        self._stderr: dict[SERVER_NAME, deque[str]] = {}
        self._vrl: VRLWorker | None = None
        #: Starts that are tried again.
        self._retrying: set[asyncio.Task[None]] = set()
        self._connections: dict[MCPConnection, asyncio.AbstractEventLoop] = {}
        weakref.finalize(self, _abandon, self._connections).atexit = False

    # --- what there is

    @property
    def configs(self) -> Mapping[SERVER_NAME, RawConfig]:
        """The configs as written, in order; they may hold secrets."""
        return {name: server.raw for name, server in self._servers.items()}

    @property
    def statuses(self) -> list[ServerStatus]:
        """The state of every server, in config order."""
        return [
            replace(server.status, ignored=server.life.connection.ignored_resources) if server.life else server.status
            for server in self._servers.values()
        ]

    @property
    def server_info(self) -> dict[SERVER_NAME, ServerInfo]:
        """What agents are told of every server beside its config."""
        infos: dict[SERVER_NAME, ServerInfo] = {}
        for name, server in self._servers.items():
            infos[name] = {"state": server.status.state.value, "since": server.since}
            if server.status.reason is not None:
                infos[name]["reason"] = server.status.reason
        return infos

    @property
    def connections(self) -> Mapping[SERVER_NAME, MCPConnection]:
        """The connections that serve, in config order."""
        return {
            name: server.life.connection
            for name, server in self._servers.items()
            if server.life is not None and server.status.state is ServerState.RUNNING
        }

    @property
    def tools(self) -> list[SMCPTool]:
        """What `client:get_tools` returns; not to be changed by its reader."""
        return self._catalogue.tools

    @property
    def tool_servers(self) -> dict[TOOL_NAME, SERVER_NAME]:
        """The server of each tool, by the shown name and in the same order."""
        return {name: shown.server for name, shown in self._catalogue.shown.items()}

    @property
    def conflicts(self) -> list[ToolNameDuplicatedError]:
        """The clashes of tool names that keep a server from running, or a tool from being shown."""
        failures = [server.failure for server in self._servers.values()]
        return [
            *(failure for failure in failures if isinstance(failure, ToolNameDuplicatedError)),
            *clashes(self._catalogue.hidden()),
        ]

    def stderr(self, name: SERVER_NAME) -> tuple[str, ...]:
        """The last stderr lines of a server, over all its lives; or raise `NotFoundError`."""
        return tuple(self._stderr.get(self._server(name).name, ()))

    # --- all servers

    async def initialize(self, servers: Iterable[RawConfig]) -> None:
        """Stop what runs, then `load` and `start_all`."""
        await self.stop_all()
        self.load(servers)
        await self.start_all()

    def load(self, servers: Iterable[RawConfig]) -> None:
        """Take configs in without starting anything; `InvalidConfigError` if one could never be used."""
        loaded: dict[SERVER_NAME, _ManagedServer] = {}
        for raw in servers:
            written = parse_unrendered(raw)
            check_written_vrl(written)
            if written.name in loaded:
                raise InvalidConfigError(
                    [Problem("there is another server with this name", "name", repr(written.name))]
                )
            loaded[written.name] = _ManagedServer(raw, _at_rest(written.name, _is_off(written)))
        self._servers = loaded
        self._show(Catalogue())

    async def start_all(self) -> None:
        """Start every enabled server at once; returns when the slowest runs or has failed. Raises for none of them.

        Their tools can be called as they come.
        """
        if self._is_open:
            return
        self._opened.set()
        names = list(self._servers) if self.auto_connect else []
        self._turns.begin(names, self._timings.order)
        try:
            async with anyio.create_task_group() as tasks:
                for name in names:
                    tasks.start_soon(self._start_by_itself, name)
        finally:
            self._turns.end()
        await asyncio.to_thread(self._remembered.save)

    async def settled(self) -> None:
        """Wait until each server of `start_all` runs, has failed, or waits for a person who is to give an input.

        Before `start_all` is called this does not return.
        """
        await self._opened.wait()
        await self._turns.ended()

    @property
    def _is_open(self) -> bool:
        return self._opened.is_set()

    async def stop_all(self) -> None:
        """Stop every server and whatever was started for them. Idempotent."""
        self._opened.clear()
        with anyio.CancelScope(shield=True):
            async with anyio.create_task_group() as tasks:
                for name in {*self._servers, *self._turns.starting}:
                    tasks.start_soon(self._stop_in_the_end, name)
            vrl, self._vrl = self._vrl, None
            if vrl is not None:
                await vrl.aclose()
            await asyncio.to_thread(self._remembered.save)

    # --- one server

    async def add_or_update_server(self, raw: RawConfig, *, keeps_new: bool = False) -> None:
        """Take a config in; where servers start by themselves, return once it runs.

        Raises what is wrong with it (`InvalidConfigError`, `VRLSyntaxError`, `InputNotFoundError`), why it does not
        start (`ToolExecutionError`), or `ToolNameDuplicatedError`. Whatever it raises, everything is as before; but a
        start of the old config that waits for an input is given up first. With `keeps_new` a server that is new and
        does not start is there all the same, and is tried again as one of `start_all` is.
        """
        written = parse_unrendered(raw)
        if written.vrl is not None and not holds_placeholder(written.vrl):
            check_vrl(written.vrl)
        await self._turns.after_these()
        waited = written.name in self._waiting and raw != self.configs.get(written.name)
        if waited:
            self._turns.interrupt(written.name)
        async with self._turns.take(written.name, is_start=True):
            server = self._servers.get(written.name)
            if server is None:
                await self._add(raw, written, keeps=keeps_new)
            elif raw != server.raw or server.did_not_start:
                await self._update(server, raw, written, starts=waited)

    async def remove_server(self, name: SERVER_NAME) -> None:
        """Stop a server and forget it, or raise `NotFoundError`."""
        async with self._turns.take(name):
            await self._stop(self._server(name))
            del self._servers[name]
            self._stderr.pop(name, None)
            self._old_handshakes.pop(name, None)
            self._show(self._catalogue.remove(name))

    async def start_server(self, name: SERVER_NAME) -> None:
        """Return once the server runs, or raise why it does not; a server that is backing off is started now."""
        await self._turns.after_these()
        async with self._turns.take(name, is_start=True):
            server = self._server(name)
            if server.status.state is not ServerState.RUNNING:
                await self._start_again(server)

    async def stop_server(self, name: SERVER_NAME) -> None:
        """Stop a server, also one that is being started. It stays stopped until it is started."""
        async with self._turns.take(name):
            await self._stop(self._server(name))

    async def restart_server(self, name: SERVER_NAME) -> None:
        """Start a server anew with its config and its inputs as they are now.

        What cannot be rendered, or is another config than the one that runs and does not start, leaves the old one
        running.
        """
        await self._turns.after_these()
        async with self._turns.take(name, is_start=True):
            server = self._server(name)
            life, resolver = server.life, self._resolver
            if (
                life is None
                or await resolver.is_disabled(server.raw)
                or await resolver.config(server.raw) == life.config
            ):
                await self._start_again(server)
            else:
                await self._replace(name, server.raw)

    async def refresh_tool_mapping(self) -> None:
        """Read the tools of every running server again. They are read by themselves when a server says so."""
        lives = [server.life for server in self._servers.values() if server.life is not None]
        tasks = [self._relist_soon(life) for life in lives]
        if tasks:
            await asyncio.wait(tasks)

    # --- calls

    def validate_tool_call(self, tool_name: TOOL_NAME) -> ShownTool:
        """The tool that a shown name means; raises `ToolDisabledError`, `ServerNotActiveError`, or `ToolNotFoundError`
        with the servers that are still starting and may yet have it.
        """
        try:
            return self._catalogue.resolve(tool_name)
        except ServerNotActiveError as error:
            raise self._inactive(error.server_name or "") from None
        except ToolNotFoundError:
            server = self._servers.get(self._remembered.server_of(tool_name) or "")
            if server is not None and server.status.state in _DOWN:
                raise self._inactive(server.name) from None
            raise ToolNotFoundError(tool_name, self._starting(), self._down()) from None

    async def call_tool(
        self,
        tool: ShownTool,
        params: Mapping[str, Any],
        timeout: float | None = None,
        progress: CallProgress | None = None,
    ) -> CallToolResult:
        """Call a tool, and transform its result if the config says so. Raises what `MCPConnection.call_tool` raises."""
        server = self._servers.get(tool.server)
        if server is None or server.life is None:
            raise self._inactive(tool.server)
        life = server.life
        try:
            result = await life.connection.call_tool(tool.original, params, timeout, progress)
        except SMCPError as error:
            raise self.redacted(error) from error.__cause__
        if life.config.vrl is None:
            return result
        if self._vrl is None:
            self._vrl = VRLWorker(quote=self._redaction.quote)
        return await self._vrl.transform(life.config.vrl, result, tool.original, params)

    def redacted(self, error: SMCPError) -> SMCPError:
        """The error as an agent may read it: a server may quote in its own words what was rendered into its config."""
        error.message = self._redaction.quote(error.message)
        error.args = (error.message,)
        error.details = {
            key: value if key == "server_name" else self._redaction.inside(value)
            for key, value in error.details.items()
        }
        return error

    def _inactive(self, name: SERVER_NAME) -> ServerNotActiveError:
        server = self._servers.get(name)
        if server is None:
            return ServerNotActiveError(name)
        return ServerNotActiveError(name, server.status.state.value, server.status.reason)

    def _down(self) -> dict[SERVER_NAME, str]:
        """The servers that should run and do not, and why."""
        return {
            name: server.status.reason or server.status.state.value
            for name, server in self._servers.items()
            if server.status.state in _DOWN
        }

    def _starting(self) -> list[SERVER_NAME]:
        """The servers on their way to `running`, also those that wait for an input or are only being added."""
        names = dict.fromkeys([*self._servers, *self._turns.starting])
        states = {name: server.status.state for name, server in self._servers.items()}
        return [
            name
            for name in names
            if states.get(name) is ServerState.STARTING
            or (name in self._turns.starting and states.get(name) is not ServerState.RUNNING)
        ]

    # --- starting and stopping, in a server's turn

    def _server(self, name: SERVER_NAME) -> _ManagedServer:
        try:
            return self._servers[name]
        except KeyError:
            raise NotFoundError(f"no MCP server is called {name!r}") from None

    async def _start_by_itself(self, name: SERVER_NAME, *, is_retry: bool = False) -> None:
        """Start a server that nobody waits for; if it does not start, try again later.

        A retry is given up when something else has become of the server before its turn, such as a stop.
        """
        try:
            async with self._turns.take(name, is_start=True):
                server = self._servers.get(name)
                if not self._is_open or server is None or server.life is not None:
                    return
                if not is_retry or server.status.state is ServerState.BACKING_OFF:
                    await self._start(server)
        except SMCPError:
            pass  # its state says why
        except Exception:
            # A boundary: one server's fault must not keep the others from starting.
            logger.exception("MCP server %s could not be started", name)
        finally:
            self._turns.settle(name)

    def _not_started(self, server: _ManagedServer, error: Exception) -> None:
        passes = isinstance(error, ServerStartError) and not error.is_lasting
        failure = error if isinstance(error, SMCPError) else None
        reason = failure.message if failure else "internal error"
        if isinstance(error, ServerStartError):
            reason = error.why
        if not passes or not self.auto_reconnect or server.tries >= self._max_restarts:
            self._set(server, ServerState.FAILED, reason, failure=failure)
            return
        server.tries += 1
        self._set(server, ServerState.BACKING_OFF, reason, server.tries)
        self._later(server, self._timings.backoff(server.tries), _try_again)

    async def _start(self, server: _ManagedServer) -> None:
        """Start a server that does not run, unless it is disabled. If this raises, the state says why, and what may
        start later is tried again.
        """
        try:
            if _is_off(parse_unrendered(server.raw)):
                self._set(server, ServerState.DISABLED)
                return
            server.last_line = None
            self._set(server, ServerState.STARTING)
            if await self._resolver.is_disabled(server.raw):
                self._set(server, ServerState.DISABLED)
                return
            await self._replace(server.name, server.raw)
        except Exception as error:
            self._not_started(server, error)
            raise
        except BaseException:
            self._set(server, ServerState.STOPPED)
            raise

    async def _start_again(self, server: _ManagedServer) -> None:
        if not self._is_open:
            raise BadRequestError("no server can be started before the computer is, or after it was shut down")
        await self._stop(server)
        await self._start(server)
        if server.status.state is ServerState.DISABLED:
            raise BadRequestError(f"the server {server.name!r} is disabled")

    async def _stop(self, server: _ManagedServer) -> None:
        if server.life is not None:
            await self._close(server.life)
        elif server.did_not_start:
            self._set(server, ServerState.STOPPED)
        server.tries = 0

    async def _stop_in_the_end(self, name: SERVER_NAME) -> None:
        async with self._turns.take(name):
            if (server := self._servers.get(name)) is not None:
                await self._stop(server)

    async def _add(self, raw: RawConfig, written: MCPServerConfig, *, keeps: bool) -> None:
        disabled = await self._resolver.is_disabled(raw) if self._starts_by_itself and not keeps else _is_off(written)
        if disabled or not self._starts_by_itself or keeps:
            server = self._servers[written.name] = _ManagedServer(raw, _at_rest(written.name, disabled))
            self._on_event(server.status)
            if self._starts_by_itself and not disabled:
                await self._start(server)
        else:
            try:
                await self._replace(written.name, raw)
            except BaseException:
                self._stderr.pop(written.name, None)
                raise

    async def _update(self, server: _ManagedServer, raw: RawConfig, written: MCPServerConfig, *, starts: bool) -> None:
        """`starts` says that a start of the old config was given up for this."""
        serves = server.life is not None
        disabled = await self._resolver.is_disabled(raw) if serves or self._starts_by_itself else _is_off(written)
        if disabled:
            await self._stop(server)
            server.raw = raw
            self._set(server, ServerState.DISABLED)
        elif serves and not self.auto_reconnect:
            server.raw = raw
            self._on_event(RestartOffered(server.name, "its config was updated"))
        elif serves or (self._starts_by_itself and (starts or server.status.state is not ServerState.STOPPED)):
            await self._replace(server.name, raw)
        else:
            server.raw = raw
            self._set(server, ServerState.STOPPED)

    @property
    def _starts_by_itself(self) -> bool:
        return self._is_open and self.auto_connect

    async def _replace(self, name: SERVER_NAME, raw: RawConfig) -> None:
        """Start a server beside the one that runs under its name, then let it take that place. If this raises, nothing
        has changed.
        """
        life = await self._open(raw)
        try:
            await self._turns.wait_for_earlier(name)
            if life.connection.state in (ServerState.BACKING_OFF, ServerState.STARTING):
                await life.connection.connect()  # it died while it waited
            old = self._admit(name, life, raw)
        except BaseException:
            await self._close(life)
            raise
        if old is not None:
            await self._close(old)

    # --- lives

    async def _open(self, raw: RawConfig) -> _Life:
        """A running connection with its tools listed, not yet admitted."""
        config = await self._resolver.config(raw)
        if config.vrl is not None:
            try:
                check_vrl(config.vrl)
            except SMCPError as error:
                raise self.redacted(error) from None
        life = _Life(config)
        stderr = self._stderr.setdefault(config.name, deque(maxlen=_STDERR_LINES))
        # Weak: what a connection's owner task holds must not keep a Computer alive that its owner has dropped.
        this = weakref.ref(self)
        life.connection = client_factory(
            config,
            auto_reconnect=self.auto_reconnect,
            on_state=partial(_tell_state, this, life),
            on_change=partial(_tell_change, this, life),
            on_stderr=partial(_tell_line, this, config.name, stderr),
            redaction=self._redaction,
            old_handshake=self._old_handshakes.get(config.name) == raw,
            on_old_handshake=partial(self._old_handshakes.__setitem__, config.name, raw),
            on_restart_wanted=partial(_tell_restart_wanted, this, config.name),
            **self._connection_options,
        )
        self._connections[life.connection] = asyncio.get_running_loop()
        try:
            await life.connection.connect()
            life.refresher.is_stale = False
            life.tools = await _list_tools(life.connection)
        except BaseException:
            await self._close(life)
            raise
        return life

    async def _close(self, life: _Life) -> None:
        """Close a connection, also when this is cancelled. While it is admitted, its states are those of the server."""
        try:
            with anyio.CancelScope(shield=True):
                await life.connection.disconnect()
                relisting = life.refresher.running
                if relisting is not None and relisting is not asyncio.current_task():
                    await asyncio.wait({relisting})
        finally:
            # Even when the task itself was cancelled, from which no scope shields: its owner goes on stopping it.
            self._connections.pop(life.connection, None)

    def _admit(self, name: SERVER_NAME, life: _Life, raw: RawConfig) -> _Life | None:
        """Let a connection serve, and return the one that served before. If it raises a clash, nothing changed."""
        if life.connection.state is not ServerState.RUNNING:
            raise ServerStartError(name, "it ended right after its start")
        listing = ToolListing(life.config, tuple(life.tools))
        admitted = self._catalogue.update(listing, [*self._servers, name])
        server = self._servers.setdefault(name, _ManagedServer(raw, _at_rest(name, disabled=False)))
        old, server.life, server.raw, server.tries = server.life, life, raw, 0
        if old is not None:
            old.admitted = False
        life.admitted = True
        self._show(admitted)
        self._set(server, ServerState.RUNNING)
        self._tell_invalid(life)
        if old is not None:
            self._tell_resources(server)
        if life.refresher.is_stale:
            self._relist_soon(life)
        return old

    def _state_changed(self, life: _Life, change: StateChange) -> None:
        if not life.admitted:
            life.refresher.is_stale |= change.new is ServerState.RUNNING  # it died and came back before its turn
            return
        server = self._servers[life.config.name]
        if change.new is ServerState.RUNNING:
            self._relist_soon(life)  # it came back; it runs for others once its tools are known
            return
        if change.new in (ServerState.STOPPED, ServerState.FAILED):
            life.admitted, server.life = False, None
            self._connections.pop(life.connection, None)
        self._show(self._catalogue.stop(server.name))
        self._set(server, change.new, change.reason, change.restarts)

    def _resources_changed(self, life: _Life, change: ServerChange) -> None:
        server = self._servers.get(life.config.name)
        # Its resources are listed only while it serves, so before that there is nothing to list again.
        if server is not None and life.admitted and server.status.state is ServerState.RUNNING:
            self._tell_resources(server, change)

    # --- tools

    def _show(self, catalogue: Catalogue) -> None:
        before, self._catalogue = self._catalogue.tools, catalogue
        if catalogue.tools != before:
            self._remembered.note(self.tool_servers)
            self._on_event(ToolListChanged())

    def _relist_soon(self, life: _Life) -> asyncio.Task[None]:
        """Read the tools again, outside the session's receive loop."""
        return life.refresher.soon(partial(self._relist, life), f"tools of MCP server {life.config.name}")

    async def _relist(self, life: _Life) -> None:
        if not life.admitted:
            return
        try:
            tools = await _list_tools(life.connection)
        except SMCPError as error:
            await self._unlisted(life, error)
        else:
            if life.admitted and life.connection.state is ServerState.RUNNING:
                self._relisted(life, tools)

    def _relisted(self, life: _Life, tools: list[Tool]) -> None:
        server = self._servers[life.config.name]
        catalogue, hidden = self._catalogue.refresh(server.name, tools)
        self._show(catalogue)
        self._set(server, ServerState.RUNNING, restarts=life.connection.restarts)
        for clash in hidden:
            logger.warning("MCP server %s: %s", server.name, clash)
            self._on_event(ToolHidden(clash))
        self._tell_invalid(life)

    def _tell_invalid(self, life: _Life) -> None:
        """Say which tools are hidden because their definition is invalid, each problem once."""
        known, life.invalid = life.invalid, dict(life.connection.invalid_tools)
        for tool, problem in life.invalid.items():
            if known.get(tool) != problem:
                event = ToolInvalid(life.config.name, self._redaction.quote(tool), self._redaction.quote(problem))
                logger.warning("%s", event)
                self._on_event(event)

    async def _unlisted(self, life: _Life, error: SMCPError) -> None:
        """Its tools cannot be read. A server that serves keeps its old list; one that came back has none, and fails."""
        if not life.admitted or life.connection.state is not ServerState.RUNNING:
            return  # it died, and its tools are read when it is back
        server = self._servers[life.config.name]
        logger.warning("MCP server %s: its tools could not be read again: %s", server.name, error)
        if server.status.state is not ServerState.RUNNING:
            life.admitted, server.life = False, None
            self._set(server, ServerState.FAILED, error.message)
            await self._close(life)

    # --- states

    def _waits_for(self, name: SERVER_NAME, input_id: str | None) -> None:
        """A server needs an input that a person is being asked for; `None`: not any more."""
        if input_id is None:
            self._waiting.discard(name)
        else:
            self._waiting.add(name)
            self._turns.settle(name)
        server = self._servers.get(name)
        # One that runs goes on with its old config, and one that has failed is shown so, until the new one serves.
        if server is not None and server.status.state is ServerState.STARTING:
            reason = None if input_id is None else f"waits for input {input_id!r}"
            self._set(server, ServerState.STARTING, reason, waits_for=input_id)

    def _tell_start(self, name: SERVER_NAME) -> None:
        """A start may take minutes: the state tells what the server says meanwhile."""
        server = self._servers.get(name)
        if server is not None and server.status.state is ServerState.STARTING:
            said = server.last_line
            self._set(server, ServerState.STARTING, None if said is None else f"it says: {cut(said, _LONGEST_SAID)}")

    def _later(
        self,
        server: _ManagedServer,
        seconds: float,
        what: "Callable[[weakref.ref[MCPServerManager], SERVER_NAME], None]",
    ) -> None:
        """Unless its state changes before."""
        server.timer = asyncio.get_running_loop().call_later(seconds, what, weakref.ref(self), server.name)

    def _set(
        self,
        server: _ManagedServer,
        state: ServerState,
        reason: str | None = None,
        restarts: int = 0,
        failure: SMCPError | None = None,
        waits_for: str | None = None,
    ) -> None:
        if server.timer is not None:
            server.timer.cancel()
            server.timer = None
        if state is ServerState.STARTING and waits_for is None:
            self._later(server, _SAID_EVERY, _tell_start)
        server.failure = failure
        reason = reason and self._redaction(reason)
        status = ServerStatus(server.name, state, reason, restarts, waits_for=waits_for)
        if status != server.status:
            before, server.status = server.status, status
            if before.state is not state:
                server.since = _now()
            level = logging.WARNING if state in _DOWN else logging.INFO
            logger.log(level, "MCP server %s is %s", server.name, _words(status))
            self._on_event(status)
            if (before.state is ServerState.RUNNING) != (state is ServerState.RUNNING):
                self._tell_resources(server)

    def _tell_resources(self, server: _ManagedServer, change: ServerChange | None = None) -> None:
        """When a server begins or stops to serve, its list of resources counts as changed."""
        change = change or ServerChange(server.name, ChangeKind.RESOURCES)
        self._on_resources(change, self.connections.get(server.name))


def _is_off(written: MCPServerConfig) -> bool:
    """Whether a config as written is disabled; a placeholder there is resolved when the server is to start."""
    return written.disabled is True


def _at_rest(name: SERVER_NAME, disabled: bool) -> ServerStatus:
    return ServerStatus(name, ServerState.DISABLED if disabled else ServerState.STOPPED)


def _words(status: ServerStatus) -> str:
    return status.state.value + (f": {status.reason}" if status.reason else "")


async def _list_tools(connection: MCPConnection) -> list[Tool]:
    """Its tools. Whatever keeps it from listing them may be over at its next start."""
    try:
        return await connection.list_tools()
    except (MCPError, SMCPError) as error:
        raise connection.start_error(f"it cannot list its tools: {error.message}") from error


# --- between a connection and its manager, which may be gone


def _tell_state(manager: weakref.ref[MCPServerManager], life: _Life, change: StateChange) -> None:
    if (this := manager()) is not None:
        this._state_changed(life, change)


def _tell_line(manager: weakref.ref[MCPServerManager], server: SERVER_NAME, lines: deque[str], line: str) -> None:
    lines.append(line)
    if (this := manager()) is not None:
        this._on_event(ServerLogged(server, line))
        if (managed := this._servers.get(server)) is not None:
            managed.last_line = line


def _tell_start(manager: weakref.ref[MCPServerManager], server: SERVER_NAME) -> None:
    if (this := manager()) is not None:
        this._tell_start(server)


def _try_again(manager: weakref.ref[MCPServerManager], server: SERVER_NAME) -> None:
    if (this := manager()) is not None:
        task = asyncio.get_running_loop().create_task(
            this._start_by_itself(server, is_retry=True), name=f"start of {server}"
        )
        this._retrying.add(task)
        task.add_done_callback(this._retrying.discard)


def _tell_waiting(manager: weakref.ref[MCPServerManager], server: SERVER_NAME, input_id: str | None) -> None:
    if (this := manager()) is not None:
        this._waits_for(server, input_id)


def _tell_restart_wanted(manager: weakref.ref[MCPServerManager], server: SERVER_NAME, why: str) -> None:
    if (this := manager()) is not None:
        this._on_event(RestartOffered(server, why))


def _tell_change(manager: weakref.ref[MCPServerManager], life: _Life, change: ServerChange) -> None:
    if (this := manager()) is None:
        return
    if change.kind is not ChangeKind.TOOLS:
        this._resources_changed(life, change)
    elif life.admitted:
        this._relist_soon(life)
    else:
        life.refresher.is_stale = True


_abandoned: Final[set[asyncio.Task[None]]] = set()


def _abandon(connections: Mapping[MCPConnection, asyncio.AbstractEventLoop]) -> None:
    """Stop servers whose manager was dropped while they ran, in any thread."""
    for connection, loop in list(connections.items()):
        with suppress(RuntimeError):  # the loop is closed, and the servers with it
            loop.call_soon_threadsafe(_stop_abandoned, connection)


def _stop_abandoned(connection: MCPConnection) -> None:
    logger.warning("MCP server %s is stopped: its Computer was dropped without being shut down", connection.name)
    stopping = asyncio.get_running_loop().create_task(connection.disconnect())
    _abandoned.add(stopping)
    stopping.add_done_callback(_abandoned.discard)
