"""The MCP servers of one Computer: started together, changed while they run, their tools in one catalogue.

Takes configs as written and renders them when a server starts, not before: nobody is asked for an input that is not
needed. Knows nothing of agents or of approvals, and remembers no call.

What is known of a server is in `server_book`; how one is started and stopped is in `server_starts`; the tools of those
that serve are in `serving`. The manager decides whose turn it is: operations on one server wait for each other, but
stopping and removing interrupt a start that is under way. If a config is refused, the old one goes on running.

Servers that start together are admitted in config order, so that the outcome of a clash does not depend on which one is
quicker. But no server waits longer than `Timings.order` for a slow one. A clash never stops a server that runs: the
server that starts later is refused.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from enum import Enum, auto
from typing import Any

import anyio
from mcp_types import CallToolResult

from a2c_smcp.computer.calls.progress import CallProgress, OngoingCall
from a2c_smcp.computer.inputs import InputResolver
from a2c_smcp.computer.mcp_clients.catalogue import Catalogue, ShownTool
from a2c_smcp.computer.mcp_clients.change_feed import ServerChange
from a2c_smcp.computer.mcp_clients.connection_options import ConnectionOptions
from a2c_smcp.computer.mcp_clients.mcp_connection import MCPConnection
from a2c_smcp.computer.mcp_clients.model import MCPServerConfig, parse_unrendered
from a2c_smcp.computer.mcp_clients.remembered_tools import RememberedTools
from a2c_smcp.computer.mcp_clients.server_book import ManagedServer, RawConfig, ServerBook
from a2c_smcp.computer.mcp_clients.server_starts import ServerStarts
from a2c_smcp.computer.mcp_clients.server_state import ServerState
from a2c_smcp.computer.mcp_clients.server_turns import ServerTurns
from a2c_smcp.computer.mcp_clients.serving import ServingConnections
from a2c_smcp.computer.utils.callbacks import ignore, weakly
from a2c_smcp.computer.utils.placeholder import holds_placeholder
from a2c_smcp.computer.vrl.programs import VRLWorker
from a2c_smcp.computer.vrl.syntax import check_vrl
from a2c_smcp.computer.watching.events import ComputerEvent, RestartOffered
from a2c_smcp.errors import BadRequestError, SignInNeededError, SMCPError, ToolNotFoundError
from a2c_smcp.types import SERVER_NAME, TOOL_NAME

__all__ = ["MCPServerManager", "UpdateAction", "starting_servers", "update_action"]

logger = logging.getLogger(__name__)


class UpdateAction(Enum):
    """What a new config does to a server that has one already."""

    STOP = auto()
    OFFER_RESTART = auto()
    REPLACE = auto()
    KEEP = auto()


def update_action(*, disabled: bool, serves: bool, auto_reconnect: bool, starts: bool) -> UpdateAction:
    """What to do with a new config. `disabled` is about this config; `starts` says whether to start a server that
    does not serve.
    """
    if disabled:
        return UpdateAction.STOP
    if serves and not auto_reconnect:
        return UpdateAction.OFFER_RESTART
    return UpdateAction.REPLACE if serves or starts else UpdateAction.KEEP


class MCPServerManager:
    """`initialize` with configs, change what runs at any time, `stop_all` in the end.

    `options.redaction` and the `resolver` must share one `Redaction`. `on_event` and `on_resources` are called from the
    event loop and must return at once: see `ServerBook`. `remembered` knows whose tools were there in earlier runs. If
    a manager is dropped while its servers run, they are stopped.
    """

    def __init__(
        self,
        resolver: InputResolver,
        options: ConnectionOptions,
        *,
        on_event: Callable[[ComputerEvent], None] = ignore,
        on_resources: Callable[[ServerChange, MCPConnection | None], None] = ignore,
        auto_connect: bool = True,
        remembered: RememberedTools | None = None,
    ) -> None:
        self._resolver = resolver
        self._options = options
        self._auto_connect = auto_connect
        self._remembered = remembered or RememberedTools()
        self.book = ServerBook(options.redaction, on_event, on_resources)
        self.serving = ServingConnections(self.book, self._remembered)
        self._opened = asyncio.Event()
        """Set from the moment when the servers start together, until they are stopped."""
        self._turns = ServerTurns()
        self._starts = ServerStarts(resolver, options, self.book, self.serving, self._turns, weakly(self._try_again))
        self._waiting: set[SERVER_NAME] = set()
        """The servers whose start waits for a person who is to give an input."""
        resolver.on_waiting = weakly(self._wait_for)
        self.book.on_sign_in = weakly(self._wait_for_sign_in)
        if options.sign_ins is not None:
            options.sign_ins.on_end = weakly(self._sign_in_ended)
        self._retrying: set[asyncio.Task[None]] = set()
        self._vrl: VRLWorker | None = None

    # --- all servers

    async def initialize(self, servers: Iterable[RawConfig]) -> None:
        """Stop what runs, then `load` and `start_all`."""
        await self.stop_all()
        self.load(servers)
        await self.start_all()

    def load(self, servers: Iterable[RawConfig]) -> None:
        """Take configs in without starting anything; `InvalidConfigError` if one could never be used."""
        self.book.load(servers)
        self.serving.show(Catalogue())

    async def start_all(self) -> None:
        """Start every enabled server at once; returns when the slowest runs or has failed. A failure is not raised.

        The tools of a server can be called as soon as it runs.
        """
        if self._opened.is_set():
            return
        self._opened.set()
        names = list(self.book.servers) if self._auto_connect else []
        self._turns.begin(names, self._options.timings.order)
        try:
            async with anyio.create_task_group() as tasks:
                if self._options.guardian is not None:
                    tasks.start_soon(self._options.guardian.swept)
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

    async def stop_all(self) -> None:
        """Stop every server and whatever was started for them. Idempotent."""
        self._opened.clear()
        with anyio.CancelScope(shield=True):
            async with anyio.create_task_group() as tasks:
                for name in {*self.book.servers, *self._turns.starting}:
                    tasks.start_soon(self._stop_in_turn, name)
            vrl, self._vrl = self._vrl, None
            if vrl is not None:
                await vrl.aclose()
            if self._options.guardian is not None:
                await self._options.guardian.aclose()
            await asyncio.to_thread(self._remembered.save)

    async def _stop_in_turn(self, name: SERVER_NAME) -> None:
        async with self._turns.take(name):
            if (server := self.book.servers.get(name)) is not None:
                await self._starts.stop(server)

    # --- one server

    async def add_or_update_server(self, raw: RawConfig, *, keeps_new: bool = False) -> None:
        """Take in a config. If servers start by themselves, return once this server runs.

        Raises `InvalidConfigError`, `VRLSyntaxError` or `InputNotFoundError` if the config is wrong,
        `ToolExecutionError` if the server does not start, or `ToolNameDuplicatedError`. If it raises, everything is as
        before, with one exception: if a start of the old config waited for an input, that start was given up. With
        `keeps_new`, a new server that does not start stays, and is tried again like a server of `start_all`.
        """
        written = parse_unrendered(raw)
        if written.vrl is not None and not holds_placeholder(written.vrl):
            check_vrl(written.vrl)
        await self._turns.after_these()
        was_waiting = written.name in self._waiting and raw != self.book.configs.get(written.name)
        if was_waiting:
            self._turns.interrupt(written.name)
        async with self._turns.take(written.name, is_start=True):
            server = self.book.servers.get(written.name)
            if server is None:
                await self._add(raw, written, keeps=keeps_new)
            elif raw != server.raw or server.did_not_start:
                await self._update(server, raw, written, was_waiting=was_waiting)

    async def remove_server(self, name: SERVER_NAME) -> None:
        """Stop a server and forget it, or raise `NotFoundError`."""
        async with self._turns.take(name):
            await self._starts.stop(self.book.server(name))
            self.book.remove(name)
            self._starts.forget(name)
            self.serving.show(self.serving.catalogue.remove(name))

    async def start_server(self, name: SERVER_NAME) -> None:
        """Return once the server runs, or raise an error that says why not. A server that is backing off is started
        now.
        """
        await self._turns.after_these()
        async with self._turns.take(name, is_start=True):
            server = self.book.server(name)
            if server.state is not ServerState.RUNNING:
                await self._start_again(server)

    async def stop_server(self, name: SERVER_NAME) -> None:
        """Stop a server, also one that is being started. It stays stopped until it is started."""
        async with self._turns.take(name):
            await self._starts.stop(self.book.server(name))

    async def restart_server(self, name: SERVER_NAME) -> None:
        """Start a server anew with its config and its inputs as they are now.

        If the rendered config has changed, the new server starts beside the old one. If it cannot be rendered or does
        not start, the old server goes on running.
        """
        await self._turns.after_these()
        async with self._turns.take(name, is_start=True):
            server = self.book.server(name)
            current, resolver = server.current, self._resolver
            if (
                current is None
                or await resolver.is_disabled(server.raw)
                or await resolver.config(server.raw) == current.config
            ):
                await self._start_again(server)
            else:
                await self._starts.replace(name, server.raw)

    async def rendered(self, name: SERVER_NAME) -> MCPServerConfig:
        """The config of a server as it is used. Raises `NotFoundError` or `InputNotFoundError`."""
        return await self._resolver.config(self.book.server(name).raw)

    async def refresh_tool_mapping(self) -> None:
        """Read the tools of every running server again. A server that announces a change needs no such call."""
        current = [server.current for server in self.book.servers.values() if server.current is not None]
        tasks = [self.serving.relist_soon(each) for each in current]
        if tasks:
            await asyncio.wait(tasks)

    # --- calls

    def validate_tool_call(self, tool_name: TOOL_NAME) -> ShownTool:
        """The tool that a shown name means. Raises `ToolDisabledError`, `ServerNotActiveError`, or `ToolNotFoundError`
        with the servers that are still starting and may have the tool.
        """
        try:
            return self.serving.resolve(tool_name)
        except ToolNotFoundError:
            states = {name: server.state for name, server in self.book.servers.items()}
            starting = starting_servers(states, self._turns.starting)
            raise ToolNotFoundError(tool_name, starting, self.book.down) from None

    async def call_tool(
        self,
        tool: ShownTool,
        params: dict[str, Any],
        timeout: float | None = None,
        progress: CallProgress | None = None,
        meta: Mapping[str, Any] | None = None,
        ongoing: OngoingCall | None = None,
    ) -> CallToolResult | None:
        """Call a tool, and transform its result if the config says so. Raises what `MCPConnection.call_tool` raises.
        `None` if the `ongoing` call may not start any more when it has its turn.
        """
        server = self.book.servers.get(tool.server)
        if server is None or server.current is None:
            raise self.book.inactive(tool.server)
        current = server.current
        try:
            result = await current.connection.call_ongoing(tool.original, params, timeout, progress, meta, ongoing)
        except SMCPError as error:
            raise self._options.redaction.error(error) from error.__cause__
        if current.config.vrl is None or result is None:
            return result
        if self._vrl is None:
            self._vrl = VRLWorker(quote=self._options.redaction.quote)
        return await self._vrl.transform(current.config.vrl, result, tool.original, params)

    # --- in a server's turn

    async def _start_by_itself(self, name: SERVER_NAME, *, is_retry: bool = False) -> None:
        """Start a server that nobody waits for; if it does not start, try again later.

        A retry is given up if the server is not backing off any more when its turn comes: it was stopped, for instance.
        """
        try:
            async with self._turns.take(name, is_start=True):
                server = self.book.servers.get(name)
                if not self._opened.is_set() or server is None or server.current is not None:
                    return
                if not is_retry or server.state in (ServerState.BACKING_OFF, ServerState.SIGN_IN):
                    await self._starts.start(server)
        except SMCPError:
            pass  # its status says why
        except Exception:
            # A boundary: one server's fault must not keep the others from starting.
            logger.exception("MCP server %s could not be started", name)
        finally:
            self._turns.settle(name)

    def _try_again(self, name: SERVER_NAME) -> None:
        task = asyncio.create_task(self._start_by_itself(name, is_retry=True), name=f"start of {name}")
        self._retrying.add(task)
        task.add_done_callback(self._retrying.discard)

    async def _start_again(self, server: ManagedServer) -> None:
        if not self._opened.is_set():
            raise BadRequestError("no server can be started before the computer has started, or after it was shut down")
        await self._starts.stop(server)
        await self._starts.start(server)
        if server.state is ServerState.DISABLED:
            raise BadRequestError(f"the server {server.name!r} is disabled")

    async def _add(self, raw: RawConfig, written: MCPServerConfig, *, keeps: bool) -> None:
        starts = self._starts_by_itself
        disabled = await self._resolver.is_disabled(raw) if starts and not keeps else written.disabled is True
        if disabled or not starts or keeps:
            server = self.book.servers[written.name] = ManagedServer.at_rest(raw, written.name, disabled=disabled)
            self.book.on_event(server.status)
            if starts and not disabled:
                await self._starts.start(server)
        else:
            try:
                await self._starts.replace(written.name, raw)
            except SignInNeededError as error:
                server = self.book.servers[written.name] = ManagedServer.at_rest(raw, written.name, disabled=False)
                self.book.set_state(server, ServerState.SIGN_IN, error.why, failure=error)
            except BaseException:
                self.book.remove(written.name)
                raise

    async def _update(
        self, server: ManagedServer, raw: RawConfig, written: MCPServerConfig, *, was_waiting: bool
    ) -> None:
        """`was_waiting` says that a start of the old config was given up for this."""
        serves, starts = server.current is not None, self._starts_by_itself
        disabled = await self._resolver.is_disabled(raw) if serves or starts else written.disabled is True
        match update_action(
            disabled=disabled,
            serves=serves,
            auto_reconnect=self._options.auto_reconnect,
            starts=starts and (was_waiting or server.state is not ServerState.STOPPED),
        ):
            case UpdateAction.STOP:
                await self._starts.stop(server)
                server.raw = raw
                self.book.set_state(server, ServerState.DISABLED)
            case UpdateAction.OFFER_RESTART:
                server.raw = raw
                self.book.on_event(RestartOffered(server.name, "its config was updated"))
            case UpdateAction.REPLACE:
                await self._replace(server, raw)
            case UpdateAction.KEEP:
                server.raw = raw
                self.book.set_state(server, ServerState.STOPPED)

    def _wait_for_sign_in(self, name: SERVER_NAME, waits: bool) -> None:
        if self._options.sign_ins is not None and self._opened.is_set():
            (self._options.sign_ins.begin if waits else self._options.sign_ins.give_up)(name)

    def _sign_in_ended(self, name: SERVER_NAME, problem: str | None) -> None:
        """A person has signed in, or could not: `problem` says why."""
        server = self.book.servers.get(name)
        if server is None or server.state is not ServerState.SIGN_IN:
            return
        if problem is None:
            self._try_again(name)
        else:
            reason = f"it wants a person to sign in; the last try: {problem}"
            self.book.set_state(server, ServerState.SIGN_IN, reason, sign_in_failed=True)

    @property
    def _starts_by_itself(self) -> bool:
        return self._opened.is_set() and self._auto_connect

    async def _replace(self, server: ManagedServer, raw: RawConfig) -> None:
        try:
            await self._starts.replace(server.name, raw)
        except SignInNeededError as error:
            # Nothing is wrong with the new config, so it counts.
            await self._starts.stop(server)
            server.raw = raw
            self.book.set_state(server, ServerState.SIGN_IN, error.why, failure=error)

    def _wait_for(self, name: SERVER_NAME, input_id: str | None) -> None:
        """A server waits for an input that a person is asked for. With `None`, it does not wait any more."""
        if input_id is None:
            self._waiting.discard(name)
        else:
            self._waiting.add(name)
            self._turns.settle(name)
        self.book.wait_for(name, input_id)


def starting_servers(states: Mapping[SERVER_NAME, ServerState], starts: Collection[SERVER_NAME]) -> list[SERVER_NAME]:
    """The servers on their way to `running`: also those that wait for an input, and those that are only being added.

    `starts` are the servers that are being started, or whose start waits for its turn.
    """
    return [
        name
        for name in dict.fromkeys([*states, *starts])
        if (state := states.get(name)) is ServerState.STARTING or (name in starts and state is not ServerState.RUNNING)
    ]
