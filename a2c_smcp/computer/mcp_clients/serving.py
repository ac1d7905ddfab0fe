"""The connections that serve: their tools in one catalogue, which follows every change on the servers.

Starts and stops nothing, but closes a connection that came back and cannot list its tools.
"""

import asyncio
import logging
from functools import partial

from mcp_types import Tool

from a2c_smcp.computer.mcp_clients.catalogue import Catalogue, ShownTool, ToolListing, clashes
from a2c_smcp.computer.mcp_clients.change_feed import ChangeKind, ServerChange
from a2c_smcp.computer.mcp_clients.mcp_connection import MCPConnection
from a2c_smcp.computer.mcp_clients.mcp_error import MCPError
from a2c_smcp.computer.mcp_clients.remembered_tools import RememberedTools
from a2c_smcp.computer.mcp_clients.server_book import DOWN, ManagedConnection, ManagedServer, RawConfig, ServerBook
from a2c_smcp.computer.mcp_clients.server_state import ServerState, StateChange
from a2c_smcp.computer.watching.events import ToolHidden, ToolInvalid, ToolListChanged
from a2c_smcp.errors import (
    ServerNotActiveError,
    ServerStartError,
    SMCPError,
    ToolNameDuplicatedError,
    ToolNotFoundError,
)
from a2c_smcp.types import SERVER_NAME, TOOL_NAME

__all__ = ["ServingConnections", "list_tools"]

logger = logging.getLogger(__name__)


class ServingConnections:
    """`admit` lets a connection serve. From then on tell `moved` and `changed` what happens on it. `remembered`
    knows whose tools were there in earlier runs.
    """

    def __init__(self, book: ServerBook, remembered: RememberedTools) -> None:
        self.catalogue = Catalogue()
        self._book = book
        self._remembered = remembered

    @property
    def tool_servers(self) -> dict[TOOL_NAME, SERVER_NAME]:
        """The server of each tool, by the shown name and in the order of the catalogue."""
        return {name: shown.server for name, shown in self.catalogue.shown.items()}

    @property
    def conflicts(self) -> list[ToolNameDuplicatedError]:
        """The clashes of tool names that keep a server from running, or a tool from being shown."""
        failures = [server.failure for server in self._book.servers.values()]
        return [
            *(failure for failure in failures if isinstance(failure, ToolNameDuplicatedError)),
            *clashes(self.catalogue.hidden()),
        ]

    def resolve(self, tool: TOOL_NAME) -> ShownTool:
        """The tool that a shown name means; raises as `Catalogue.resolve`, with the state of a server that is down."""
        try:
            return self.catalogue.resolve(tool)
        except ServerNotActiveError as error:
            raise self._book.inactive(error.server_name or "") from None
        except ToolNotFoundError:
            server = self._book.servers.get(self._remembered.server_of(tool) or "")
            if server is not None and server.state in DOWN:
                raise self._book.inactive(server.name) from None
            raise

    def show(self, catalogue: Catalogue) -> None:
        before, self.catalogue = self.catalogue.tools, catalogue
        if catalogue.tools != before:
            self._remembered.note(self.tool_servers)
            self._book.on_event(ToolListChanged())

    def admit(self, name: SERVER_NAME, new: ManagedConnection, raw: RawConfig) -> ManagedConnection | None:
        """Let a connection serve, and return the one that served before. If it raises a clash, nothing changed."""
        if new.connection.state is not ServerState.RUNNING:
            raise ServerStartError(name, "it ended right after its start")
        servers = self._book.servers
        catalogue = self.catalogue.update(ToolListing(new.config, tuple(new.tools)), [*servers, name])
        server = servers.setdefault(name, ManagedServer.at_rest(raw, name, disabled=False))
        old, server.current, server.raw, server.tries = server.current, new, raw, 0
        if old is not None:
            old.admitted = False
        new.admitted = True
        self.show(catalogue)
        self._book.set_state(server, ServerState.RUNNING)
        self._tell_invalid(new)
        if old is not None:
            self._book.tell_resources(server)
        if new.refresher.is_stale:
            self.relist_soon(new)
        return old

    # --- what happens on a connection

    def moved(self, current: ManagedConnection, change: StateChange) -> None:
        """The state of a connection changed."""
        if not current.admitted:
            current.refresher.is_stale |= change.new is ServerState.RUNNING  # it died and came back before its turn
            return
        server = self._book.servers[current.config.name]
        if change.new is ServerState.RUNNING:
            self.relist_soon(current)  # it came back, and is shown as running when its tools are known
            return
        if change.new in (ServerState.STOPPED, ServerState.FAILED, ServerState.SIGN_IN):
            current.admitted, server.current = False, None
        self.show(self.catalogue.stop(server.name))
        self._book.set_state(server, change.new, change.reason, change.restarts)

    def changed(self, current: ManagedConnection, change: ServerChange) -> None:
        """The server announced a change of its tools or of its resources."""
        if change.kind is not ChangeKind.TOOLS:
            server = self._book.servers.get(current.config.name)
            # The resources of a server are listed only while it serves. Before that there is nothing to list again.
            if server is not None and current.admitted and server.state is ServerState.RUNNING:
                self._book.tell_resources(server, change)
        elif current.admitted:
            self.relist_soon(current)
        else:
            current.refresher.is_stale = True

    # --- reading tools again

    def relist_soon(self, current: ManagedConnection) -> asyncio.Task[None]:
        """Read the tools again, outside the session's receive loop."""
        return current.refresher.soon(partial(self._relist, current), f"tools of MCP server {current.config.name}")

    async def _relist(self, current: ManagedConnection) -> None:
        if not current.admitted:
            return
        try:
            tools = await list_tools(current.connection)
        except SMCPError as error:
            await self._unlisted(current, error)
        else:
            if current.admitted and current.connection.state is ServerState.RUNNING:
                self._relisted(current, tools)

    def _relisted(self, current: ManagedConnection, tools: list[Tool]) -> None:
        server = self._book.servers[current.config.name]
        catalogue, hidden = self.catalogue.refresh(server.name, tools)
        self.show(catalogue)
        self._book.set_state(server, ServerState.RUNNING, restarts=current.connection.restarts)
        for clash in hidden:
            logger.warning("MCP server %s: %s", server.name, clash)
            self._book.on_event(ToolHidden(clash))
        self._tell_invalid(current)

    async def _unlisted(self, current: ManagedConnection, error: SMCPError) -> None:
        """The tools of a server could not be read. If the server serves, its old list stays. If it came back, it has
        no list, and fails.
        """
        if not current.admitted or current.connection.state is not ServerState.RUNNING:
            return  # it died, and its tools are read when it is back
        server = self._book.servers[current.config.name]
        logger.warning("MCP server %s: its tools could not be read again: %s", server.name, error)
        if server.state is not ServerState.RUNNING:
            current.admitted, server.current = False, None
            self._book.set_state(server, ServerState.FAILED, error.message)
            await current.close()

    def _tell_invalid(self, current: ManagedConnection) -> None:
        """Say which tools are hidden because their definition is invalid, each problem once."""
        known, current.invalid = current.invalid, dict(current.connection.invalid_tools)
        quote = self._book.redaction.quote
        for tool, problem in current.invalid.items():
            if known.get(tool) != problem:
                event = ToolInvalid(current.config.name, quote(tool), quote(problem))
                logger.warning("%s", event)
                self._book.on_event(event)


async def list_tools(connection: MCPConnection) -> list[Tool]:
    """The tools of a server. Raises `ServerStartError` if the server cannot list them; its next start may succeed."""
    try:
        return await connection.list_tools()
    except (MCPError, SMCPError) as error:
        raise connection.start_error(f"it cannot list its tools: {error.message}") from error
