"""Starting and stopping one MCP server of a Computer. The manager decides whose turn it is.

A new connection is opened beside the one that serves. It takes that place when its tools are admitted, and is closed
otherwise: a start that fails leaves the old connection serving.
"""

import asyncio
import logging
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final

from a2c_smcp.computer.inputs import InputResolver
from a2c_smcp.computer.mcp_clients.connection_options import ConnectionHooks, ConnectionOptions
from a2c_smcp.computer.mcp_clients.mcp_connection import MCPConnection
from a2c_smcp.computer.mcp_clients.model import parse_unrendered
from a2c_smcp.computer.mcp_clients.server_book import ManagedConnection, ManagedServer, RawConfig, ServerBook
from a2c_smcp.computer.mcp_clients.server_state import ServerState, StateChange
from a2c_smcp.computer.mcp_clients.server_turns import ServerTurns
from a2c_smcp.computer.mcp_clients.serving import ServingConnections, list_tools
from a2c_smcp.computer.utils.callbacks import weakly
from a2c_smcp.computer.vrl.syntax import check_vrl
from a2c_smcp.computer.watching.events import RestartOffered
from a2c_smcp.errors import ServerStartError, SignInNeededError, SMCPError
from a2c_smcp.types import SERVER_NAME

__all__ = ["FailedStart", "ServerStarts"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FailedStart:
    """What becomes of a server that did not start."""

    reason: str
    failure: SMCPError | None
    is_tried_again: bool
    state: ServerState = ServerState.FAILED
    """Its state, if it is not tried again."""

    @classmethod
    def of(cls, error: Exception, tries: int, options: ConnectionOptions) -> "FailedStart":
        """`tries` is how many times in a row it did not start before. It is tried again only if the failure may pass
        by itself.
        """
        failure = error if isinstance(error, SMCPError) else None
        reason = failure.message if failure else "internal error"
        passes = False
        if isinstance(error, ServerStartError):
            reason, passes = error.why, not error.is_lasting
        if isinstance(error, SignInNeededError):
            return cls(reason, failure, False, ServerState.SIGN_IN)
        return cls(reason, failure, passes and options.auto_reconnect and tries < options.max_restarts)


class ServerStarts:
    """Call its methods in the turn of the server. `try_again` is called when a failed start is to be repeated.

    When it is dropped while servers run, they are stopped.
    """

    def __init__(
        self,
        resolver: InputResolver,
        options: ConnectionOptions,
        book: ServerBook,
        serving: ServingConnections,
        turns: ServerTurns,
        try_again: Callable[[SERVER_NAME], None],
    ) -> None:
        self._resolver = resolver
        self._options = options
        self._book = book
        self._serving = serving
        self._turns = turns
        self._try_again = try_again
        self._old_handshakes: dict[SERVER_NAME, RawConfig] = {}
        """The servers that turned out to need the older handshake of MCP, with the configs that they had."""
        self.connections: dict[MCPConnection, asyncio.AbstractEventLoop] = {}
        """The connections that were not stopped yet."""
        weakref.finalize(self, _abandon, self.connections).atexit = False

    async def start(self, server: ManagedServer) -> None:
        """Start a server that does not run, unless it is disabled. If this raises, the status says why; a start that
        may succeed later is tried again.
        """
        try:
            # A config that is disabled as written needs no input, and is not even shown as starting.
            disabled = parse_unrendered(server.raw).disabled is True
            if not disabled:
                server.last_line = None
                self._book.set_state(server, ServerState.STARTING)
                disabled = await self._resolver.is_disabled(server.raw)
            if disabled:
                self._book.set_state(server, ServerState.DISABLED)
            else:
                await self.replace(server.name, server.raw)
        except Exception as error:
            self._not_started(server, FailedStart.of(error, server.tries, self._options))
            raise
        except BaseException:
            self._book.set_state(server, ServerState.STOPPED)
            raise

    def _not_started(self, server: ManagedServer, failed: FailedStart) -> None:
        if not failed.is_tried_again:
            self._book.set_state(server, failed.state, failed.reason, failure=failed.failure)
            return
        server.tries += 1
        self._book.set_state(server, ServerState.BACKING_OFF, failed.reason, server.tries)
        pause = self._options.timings.backoff(server.tries)
        server.timer = asyncio.get_running_loop().call_later(pause, self._try_again, server.name)

    async def stop(self, server: ManagedServer) -> None:
        if server.current is not None:
            await server.current.close()
        elif server.did_not_start:
            self._book.set_state(server, ServerState.STOPPED)
        server.tries = 0

    def forget(self, name: SERVER_NAME) -> None:
        self._old_handshakes.pop(name, None)

    async def replace(self, name: SERVER_NAME, raw: RawConfig) -> None:
        """Start a server beside the one that runs under its name, then let it take that place. If this raises, nothing
        has changed.
        """
        new = await self._open(raw)
        try:
            await self._turns.wait_for_earlier(name)
            if new.connection.state in (ServerState.BACKING_OFF, ServerState.STARTING):
                await new.connection.connect()  # it died while it waited
            old = self._serving.admit(name, new, raw)
        except BaseException:
            await new.close()
            raise
        if old is not None:
            await old.close()

    async def _open(self, raw: RawConfig) -> ManagedConnection:
        """A running connection with its tools listed, not yet admitted."""
        config = await self._resolver.config(raw)
        if config.vrl is not None:
            try:
                check_vrl(config.vrl)
            except SMCPError as error:
                raise self._book.redaction.error(error) from None
        new = ManagedConnection(config)
        # Weak: the owner task of a connection must not keep a Computer alive that a program has dropped.
        hooks = ConnectionHooks(
            on_state=partial(weakly(self._moved), new),
            on_change=partial(weakly(self._serving.changed), new),
            on_stderr=partial(weakly(self._book.hear), config.name),
            on_old_handshake=partial(self._old_handshakes.__setitem__, config.name, raw),
            on_restart_wanted=partial(weakly(self._offer_restart), config.name),
        )
        is_old = self._old_handshakes.get(config.name) == raw
        new.connection = MCPConnection(config, self._options, hooks, old_handshake=is_old)
        try:
            await new.connection.connect()
            new.refresher.is_stale = False
            new.tools = await list_tools(new.connection)
        except BaseException:
            await new.close()
            raise
        return new

    def _moved(self, current: ManagedConnection, change: StateChange) -> None:
        if change.new is ServerState.STARTING:
            self.connections[current.connection] = asyncio.get_running_loop()
        elif change.new in (ServerState.STOPPED, ServerState.FAILED, ServerState.SIGN_IN):
            self.connections.pop(current.connection, None)
        self._serving.moved(current, change)

    def _offer_restart(self, name: SERVER_NAME, why: str) -> None:
        self._book.on_event(RestartOffered(name, why))


_abandoned: Final[set[asyncio.Task[None]]] = set()


def _abandon(connections: Mapping[MCPConnection, asyncio.AbstractEventLoop]) -> None:
    """Stop servers whose Computer was dropped while they ran, in any thread."""
    for connection, loop in list(connections.items()):
        with suppress(RuntimeError):  # the loop is closed, and the servers with it
            loop.call_soon_threadsafe(_stop_abandoned, connection)


def _stop_abandoned(connection: MCPConnection) -> None:
    logger.warning("MCP server %s is stopped: its Computer was dropped without being shut down", connection.name)
    stopping = asyncio.get_running_loop().create_task(connection.disconnect())
    _abandoned.add(stopping)
    stopping.add_done_callback(_abandoned.discard)
