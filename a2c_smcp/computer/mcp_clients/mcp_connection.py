"""The connection to one MCP server, for callers in any task: requests, and what is known of the server.

A request that fails or is cancelled does not take the connection down. Starts, restarts and stops are those of
`KeptServer`. Knows nothing of other servers, of tool names, or of what an agent may do.
"""

from collections.abc import Coroutine, Iterable, Mapping
from typing import Any

from mcp_types import CallToolResult, Implementation, ReadResourceResult, Request, ServerCapabilities, Tool

from a2c_smcp.computer.calls.progress import CallProgress, OngoingCall
from a2c_smcp.computer.mcp_clients.elicitation.asking import NO_MODES, QuestionMode
from a2c_smcp.computer.mcp_clients.item_lists import ItemKind, ItemList
from a2c_smcp.computer.mcp_clients.kept_server import KeptServer
from a2c_smcp.computer.mcp_clients.mcp_session import MCPSession
from a2c_smcp.computer.mcp_clients.resource_lists import DOCUMENTS, WINDOWS, ListedResource, ResourceList, Share
from a2c_smcp.errors import ServerNotActiveError

__all__ = ["MCPConnection"]


class MCPConnection(KeptServer):
    """A server's connection: `connect`, make requests, `disconnect`.

    Every request raises `ServerNotActiveError` while the server does not run.
    """

    listed: ResourceList | None = None
    """What its list of resources had when it was read last."""

    async def call_tool(
        self,
        name: str,
        params: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        progress: CallProgress | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> CallToolResult:
        """Call a tool by its own name. Cancelling this call, or its timeout, cancels the tool. `meta` becomes the
        `_meta` of the request.

        Raises `ToolExecutionError` when the server fails, dies or breaks the tool's output schema,
        `ToolExecutionTimeoutError` after `timeout` seconds, `PayloadTooLargeError` when the result was too large to be
        kept.
        """
        result = await self.call_ongoing(name, dict(params or {}), timeout, progress, meta)
        assert result is not None, "only an ongoing call may be kept from starting"
        return result

    def call_ongoing(
        self,
        name: str,
        params: dict[str, Any],
        timeout: float | None = None,
        progress: CallProgress | None = None,
        meta: Mapping[str, Any] | None = None,
        ongoing: OngoingCall | None = None,
    ) -> Coroutine[Any, Any, CallToolResult | None]:
        """The same for a call that was decided about. `None` if it may not start any more when it has its turn."""
        return self._serving().call_tool(name, params, timeout, progress, meta, ongoing)

    async def list_tools(self) -> list[Tool]:
        """All tools, paged to the end. Raises as `read_resource`.

        A tool with an invalid definition is left out, and `invalid_tools` says why.
        """
        return await self._serving().list_tools()

    async def list_resources(self) -> list[ListedResource]:
        """The windows and documents that are shown, from the server's list of resources, paged to the end. Raises as
        `read_resource`.

        `listed` has the whole list. If there are too many, the last ones are left out, and `ignored_resources` says so.
        """
        listed = ResourceList(self.share, self.shown_kinds)
        await self._serving().fill(listed)
        self.listed = listed
        return listed.resources

    async def list_items(self, kind: ItemKind) -> ItemList:
        """All templates or all prompts of the server. Raises as `read_resource`."""
        listed = ItemList(kind)
        await self._serving().fill(listed)
        return listed

    async def read_resource(
        self, uri: str, timeout: float | None = None, meta: Mapping[str, Any] | None = None
    ) -> ReadResourceResult:
        """Read a resource. Raises `MCPError` with what the server answered, `ToolExecutionError` when the server dies,
        `RequestTimeoutError` when it takes too long, `PayloadTooLargeError` when the answer was too large to be kept.
        """
        return await self._serving().read_resource(uri, timeout, meta)

    async def ask(
        self, request: Request[Any, Any], timeout: float | None = None, modes: frozenset[QuestionMode] = NO_MODES
    ) -> dict[str, Any]:
        """The result of another request, as the server sent it. Raises as `read_resource`.

        With `modes`, a server of 2026-07-28 may answer with questions of these kinds.
        """
        return await self._serving().ask(request, timeout, modes)

    def subscribe(self, uris: Iterable[str]) -> None:
        """Set the resources whose content is watched, now and after every restart."""
        self.watched = frozenset(uris)
        if (session := self.session) is not None:
            session.feed.watch(self.watched)

    async def subscribed(self) -> None:
        """Wait until the server has been told what is watched: what is read afterwards misses no change."""
        if (session := self.session) is not None:
            await session.subscribed()

    def _serving(self) -> MCPSession:
        # As `session`, which is asked for less often.
        if (life := self.life) is None or (session := life.opened) is None or session.ending is not None:
            raise ServerNotActiveError(self.name)
        return session

    # --- what is known of the server

    @property
    def capabilities(self) -> ServerCapabilities | None:
        """What the running server can do; `None` while it does not run."""
        return self.session.client.server_capabilities if self.session else None

    @property
    def protocol_version(self) -> str | None:
        return self.session.client.protocol_version if self.session else None

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
    def asks_agents(self) -> bool:
        """Whether its questions may go to the agent."""
        return self.config.questions in ("agent", "both")

    @property
    def share(self) -> Share:
        """What agents may read of the server."""
        return self.config.share or "shown"

    @property
    def shown_kinds(self) -> tuple[str, ...]:
        """The kinds of resources that are shown: those of which the server says when they change. Windows can be
        polled instead.
        """
        if self.can_subscribe:
            return (WINDOWS, DOCUMENTS)
        return (WINDOWS,) if self.config.poll is not None else ()

    @property
    def ignored_resources(self) -> str | None:
        """Which resources of the server's list are ignored, in words."""
        return self.listed.ignored if self.listed is not None else None

    @property
    def introduction(self) -> tuple[Implementation | None, str | None]:
        """What the running server says of itself: its name, title and version, and how it is to be used."""
        if (session := self.session) is None:
            return None, None
        return session.client.server_info, session.client.instructions

    @property
    def invalid_tools(self) -> Mapping[str, str]:
        """The tools with an invalid definition in the server's last list, and what is wrong with each."""
        return dict(self.life.transport.invalid_tools) if self.life is not None else {}

    @property
    def pid(self) -> int | None:
        """The process that runs, or that ran last."""
        return self.life.pid if self.life is not None else None

    @property
    def stderr_tail(self) -> tuple[str, ...]:
        """The last stderr lines of the process that runs, or that ran last."""
        return self.life.stderr_tail if self.life is not None else ()
