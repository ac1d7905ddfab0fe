"""What a Computer knows of each of its MCP servers: config as written, state, last words. Starts nothing."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

import anyio
from mcp_types import Tool

from a2c_smcp.computer.config.problems import InvalidConfigError, Problem
from a2c_smcp.computer.mcp_clients.change_feed import ChangeKind, ServerChange
from a2c_smcp.computer.mcp_clients.mcp_connection import MCPConnection
from a2c_smcp.computer.mcp_clients.model import MCPServerConfig, parse_unrendered
from a2c_smcp.computer.mcp_clients.server_state import ServerState
from a2c_smcp.computer.redaction import Redaction
from a2c_smcp.computer.utils.callbacks import ignore, weakly
from a2c_smcp.computer.utils.refresher import Refresher
from a2c_smcp.computer.vrl.syntax import check_written_vrl
from a2c_smcp.computer.watching.events import ComputerEvent, ServerLogged, ServerStatus
from a2c_smcp.errors import NotFoundError, ServerNotActiveError, SMCPError
from a2c_smcp.smcp import ServerInfo
from a2c_smcp.types import SERVER_NAME, TOOL_NAME
from a2c_smcp.utils.text import cut

__all__ = ["DOWN", "ManagedConnection", "ManagedServer", "RawConfig", "ServerBook"]

logger = logging.getLogger(__name__)

#: The states of a server that should run, and does not.
DOWN: Final = (ServerState.FAILED, ServerState.BACKING_OFF, ServerState.SIGN_IN)

#: A config as written: our own shape, placeholders in place.
RawConfig: TypeAlias = dict[str, Any]


class ManagedConnection:
    """One connection, from its start until it is closed. It serves while it is `admitted`."""

    connection: MCPConnection

    def __init__(self, config: MCPServerConfig) -> None:
        self.config = config
        self.tools: list[Tool] = []
        self.admitted = False
        self.refresher = Refresher()
        """Reads its tools again. Before it is admitted, only `is_stale` is set."""
        self.invalid: dict[TOOL_NAME, str] = {}
        """The hidden tools with an invalid definition, and the problem that was logged for each."""

    async def close(self) -> None:
        """Close the connection. A cancellation of this call waits until that is done."""
        with anyio.CancelScope(shield=True):
            await self.connection.disconnect()
            relisting = self.refresher.running
            if relisting is not None and relisting is not asyncio.current_task():
                await asyncio.wait({relisting})


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@dataclass(slots=True)
class ManagedServer:
    raw: RawConfig
    status: ServerStatus
    current: ManagedConnection | None = None
    """The connection that serves."""
    failure: SMCPError | None = None
    """Why the state is `failed`, if one of our own errors is the reason."""
    tries: int = 0
    """How many times in a row it did not start."""
    timer: asyncio.TimerHandle | None = None
    """For the next try, or for showing what the server says while it starts."""
    since: str = field(default_factory=_now)
    """Since when it has this state."""
    last_line: str | None = None
    """What it wrote to stderr last, while it starts."""

    @classmethod
    def at_rest(cls, raw: RawConfig, name: SERVER_NAME, *, disabled: bool) -> "ManagedServer":
        state = ServerState.DISABLED if disabled else ServerState.STOPPED
        return cls(raw, ServerStatus(name, state, is_remote=_is_remote(raw)))

    @property
    def name(self) -> SERVER_NAME:
        return self.status.server

    @property
    def state(self) -> ServerState:
        return self.status.state

    @property
    def did_not_start(self) -> bool:
        return self.current is None and self.state in DOWN


class ServerBook:
    """All servers, in config order.

    `on_event` is told of each new status and each line on stderr. `on_resources` is told when a server begins to serve,
    when it stops to serve, and when its resources change. It also gets the connection that serves now.
    """

    def __init__(
        self,
        redaction: Redaction,
        on_event: Callable[[ComputerEvent], None],
        on_resources: Callable[[ServerChange, MCPConnection | None], None],
    ) -> None:
        self.servers: dict[SERVER_NAME, ManagedServer] = {}
        self.on_event = on_event
        self.redaction = redaction
        self._on_resources = on_resources
        self._stderr: dict[SERVER_NAME, deque[str]] = {}
        self.on_sign_in: Callable[[SERVER_NAME, bool], None] = ignore
        """Told when a server begins to wait for a person who is to sign in, and when it does not wait any more."""

    def load(self, configs: Iterable[RawConfig]) -> None:
        """Replace all entries; `InvalidConfigError` if a config could never be used."""
        loaded: dict[SERVER_NAME, ManagedServer] = {}
        for raw in configs:
            written = parse_unrendered(raw)
            check_written_vrl(written)
            if written.name in loaded:
                raise InvalidConfigError(
                    [Problem("there is another server with this name", "name", repr(written.name))]
                )
            # A placeholder in `disabled` is resolved when the server is to start.
            loaded[written.name] = ManagedServer.at_rest(raw, written.name, disabled=written.disabled is True)
        self.servers = loaded

    def server(self, name: SERVER_NAME) -> ManagedServer:
        """The entry of a server, or `NotFoundError`."""
        try:
            return self.servers[name]
        except KeyError:
            raise NotFoundError(f"no MCP server is called {name!r}") from None

    def remove(self, name: SERVER_NAME) -> None:
        self.servers.pop(name, None)
        self._stderr.pop(name, None)

    # --- what there is

    @property
    def configs(self) -> Mapping[SERVER_NAME, RawConfig]:
        """The configs as written; they may hold secrets."""
        return {name: server.raw for name, server in self.servers.items()}

    @property
    def statuses(self) -> list[ServerStatus]:
        return [
            replace(server.status, ignored=server.current.connection.ignored_resources)
            if server.current
            else server.status
            for server in self.servers.values()
        ]

    @property
    def server_info(self) -> dict[SERVER_NAME, ServerInfo]:
        """What agents are told of every server beside its config."""
        infos: dict[SERVER_NAME, ServerInfo] = {}
        for name, server in self.servers.items():
            infos[name] = {"state": server.state.value, "since": server.since}
            if server.status.reason is not None:
                infos[name]["reason"] = server.status.reason
            if server.current is not None:
                self._introduce(infos[name], server.current.connection)
        return infos

    def _introduce(self, info: ServerInfo, connection: MCPConnection) -> None:
        """Add what the server says of itself, without secrets."""
        server, instructions = connection.introduction
        if server is not None and server.title:
            info["title"] = cut(self.redaction(server.title), 200)
        if server is not None and server.version:
            info["version"] = cut(self.redaction(server.version), 100)
        if instructions:
            info["instructions"] = cut(self.redaction(instructions), 8000)

    @property
    def connections(self) -> Mapping[SERVER_NAME, MCPConnection]:
        """The connections that serve."""
        return {
            name: server.current.connection
            for name, server in self.servers.items()
            if server.current is not None and server.state is ServerState.RUNNING
        }

    @property
    def down(self) -> dict[SERVER_NAME, str]:
        """The servers that should run and do not, and why."""
        return {
            name: server.status.reason or server.state.value
            for name, server in self.servers.items()
            if server.state in DOWN
        }

    def inactive(self, name: SERVER_NAME) -> ServerNotActiveError:
        """The error for a call to a server that does not run."""
        server = self.servers.get(name)
        if server is None:
            return ServerNotActiveError(name)
        return ServerNotActiveError(name, server.state.value, server.status.reason)

    def stderr(self, name: SERVER_NAME) -> tuple[str, ...]:
        """The last stderr lines of a server, over all its lives; or raise `NotFoundError`."""
        return tuple(self._stderr.get(self.server(name).name, ()))

    # --- what happens

    def hear(self, name: SERVER_NAME, line: str) -> None:
        """A server, perhaps one that is only being added, wrote a line to stderr."""
        self._stderr.setdefault(name, deque(maxlen=200)).append(line)
        self.on_event(ServerLogged(name, line))
        if name in self.servers:
            self.servers[name].last_line = line

    def set_state(
        self,
        server: ManagedServer,
        state: ServerState,
        reason: str | None = None,
        restarts: int = 0,
        failure: SMCPError | None = None,
        waits_for: str | None = None,
        sign_in_failed: bool = False,
    ) -> None:
        if server.timer is not None:
            server.timer.cancel()
            server.timer = None
        if state is ServerState.STARTING and waits_for is None:
            # A start may take minutes: every second its status tells what the server says meanwhile.
            server.timer = asyncio.get_running_loop().call_later(1, weakly(self._tell_start), server)
        server.failure = failure
        status = ServerStatus(
            server.name,
            state,
            reason and self.redaction(reason),
            restarts,
            waits_for=waits_for,
            sign_in_failed=sign_in_failed,
            is_remote=_is_remote(server.raw),
        )
        if status == server.status:
            return
        before, server.status = server.state, status
        if before is not state:
            server.since = _now()
        level = logging.WARNING if state in DOWN else logging.INFO
        logger.log(level, "MCP server %s is %s", server.name, _words(status))
        self.on_event(status)
        waits, was_waiting = state is ServerState.SIGN_IN, before is ServerState.SIGN_IN
        if waits != was_waiting or state in (ServerState.STOPPED, ServerState.DISABLED):
            self.on_sign_in(server.name, waits)
        if (before is ServerState.RUNNING) != (state is ServerState.RUNNING):
            self.tell_resources(server)

    def _tell_start(self, server: ManagedServer) -> None:
        said = server.last_line
        self.set_state(server, ServerState.STARTING, None if said is None else f"it says: {cut(said, 200)}")

    def wait_for(self, name: SERVER_NAME, input_id: str | None) -> None:
        """A server that starts waits for an input that a person is asked for. With `None`, it does not wait any
        more.
        """
        server = self.servers.get(name)
        # A server that runs with its old config, or has failed, keeps that state until the new config serves.
        if server is not None and server.state is ServerState.STARTING:
            reason = None if input_id is None else f"waits for input {input_id!r}"
            self.set_state(server, ServerState.STARTING, reason, waits_for=input_id)

    def tell_resources(self, server: ManagedServer, change: ServerChange | None = None) -> None:
        """When a server begins or stops to serve, its list of resources counts as changed."""
        change = change or ServerChange(server.name, ChangeKind.RESOURCES)
        self._on_resources(change, self.connections.get(server.name))


def _is_remote(raw: RawConfig) -> bool:
    return raw.get("type") != "stdio"


def _words(status: ServerStatus) -> str:
    return status.state.value + (f": {status.reason}" if status.reason else "")
