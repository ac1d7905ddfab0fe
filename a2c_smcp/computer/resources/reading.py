"""What agents ask for besides the Desktop and the Finder: to read a resource, to use a prompt, to hear of changes.

`routing` decides which server is asked, and `SharedResources` knows what is shared. MCP's errors become ours here.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

from mcp_types import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    CompleteRequest,
    CompleteRequestParams,
    GetPromptRequest,
    GetPromptRequestParams,
    ReadResourceResult,
    Request,
)
from pydantic import ValidationError

from a2c_smcp.computer.asker import Asker
from a2c_smcp.computer.mcp_clients.elicitation.asking import NO_MODES, QuestionMode
from a2c_smcp.computer.mcp_clients.mcp_connection import MCPConnection
from a2c_smcp.computer.mcp_clients.mcp_error import MCPError
from a2c_smcp.computer.mcp_clients.protocol_requests import passed_meta
from a2c_smcp.computer.redaction import Redaction, discreet
from a2c_smcp.computer.resources.completions import completed_of, shown_completion
from a2c_smcp.computer.resources.links import LinkedResources
from a2c_smcp.computer.resources.prompt_rounds import PromptAnswer, PromptRound, asked_by
from a2c_smcp.computer.resources.read_guard import AgentSight
from a2c_smcp.computer.resources.routing import Readable, Target, find_target, refusal
from a2c_smcp.computer.resources.shared_lists import SharedCounts, SharedItems, SharedPage, page_of, uris_of
from a2c_smcp.computer.resources.shown import ShownResources
from a2c_smcp.computer.rules.reads import ReadKind, kind_of
from a2c_smcp.errors import BadRequestError, ForbiddenError, InternalError, NotFoundError, SMCPError, ToolError
from a2c_smcp.types import SERVER_NAME
from a2c_smcp.utils.limited_log import LimitedLog
from a2c_smcp.utils.text import cut, on_one_line
from a2c_smcp.utils.validation import first_problem
from a2c_smcp.wire import DEFAULT_MAX_MESSAGE

__all__ = ["ResourceReader"]

logger = logging.getLogger(__name__)

_READERS: Final = "what agents read"
#: The least time for a read after a person was asked about it.
_LEAST_SECONDS: Final = 2.0
#: How long a request waits for lists of prompts that are being read.
_LIST_SECONDS: Final = 2.0


class ResourceReader:
    """Answers agents from `shown` and what is shared beside it. `order` returns the servers that run, in config order.
    `seconds` is the longest wait for a server.

    Every method raises errors without secrets. One that names a server raises `NotFoundError` if it does not run.
    """

    def __init__(
        self,
        shown: ShownResources,
        order: Callable[[], Iterable[SERVER_NAME]],
        seconds: float,
        redaction: Redaction,
    ) -> None:
        self._shown = shown
        self._order = order
        self._seconds = seconds
        self._redaction = redaction
        self._links = LinkedResources()
        self._failures = LimitedLog(logger, per_second=20)

    # --- lists

    async def resources(
        self,
        server: SERVER_NAME | None = None,
        cursor: str | None = None,
        room: int = DEFAULT_MAX_MESSAGE,
        sight: AgentSight | None = None,
    ) -> SharedPage:
        """A page of the resources and templates that all servers share, or one of them, in about `room` bytes of JSON.

        Raises `BadRequestError` if the cursor is not one of a page before.
        """
        await self._shown.current()
        return await self._page(server, ("resources", "templates"), cursor, room, sight)

    async def prompts(
        self,
        server: SERVER_NAME | None = None,
        cursor: str | None = None,
        room: int = DEFAULT_MAX_MESSAGE,
        sight: AgentSight | None = None,
    ) -> SharedPage:
        """A page of the prompts, like `resources`."""
        await self._shown.shared.prompts_current(_LIST_SECONDS)
        return await self._page(server, ("prompts",), cursor, room, sight)

    async def _page(
        self,
        server: SERVER_NAME | None,
        kinds: tuple[str, ...],
        cursor: str | None,
        room: int,
        sight: AgentSight | None,
    ) -> SharedPage:
        wanted = [name for name in self._order() if server is None or name == server]
        if server is not None and not wanted:
            raise NotFoundError("no MCP server that runs has this name")
        items = self._shown.shared.items(wanted)
        if sight is None:
            return page_of(items, kinds, cursor, room)
        async with sight.listing(kinds[0]):
            return page_of(await sight.items(items), kinds, cursor, room)

    @property
    def counts(self) -> dict[SERVER_NAME, SharedCounts]:
        """How much each server that runs shares."""
        order = list(self._order())
        items = self._shown.shared.items(order)
        return {server: items.get(server, SharedItems()).counts(self._shown.share(server)) for server in order}

    # --- resources

    async def read(
        self,
        uri: str,
        caller: Asker | None = None,
        meta: Mapping[str, Any] | None = None,
        sight: AgentSight | None = None,
    ) -> ReadResourceResult:
        """Read a resource from the first server that has it. Raises as `Computer.read_resource` says. `caller` may
        also read what a tool gave it a link to. `meta` becomes the `_meta` of MCP's request. `sight` is what the caller
        may see.
        """
        began = _now()
        await self._shown.current()
        if sight is None:
            return await self._read(uri, self._seconds, caller, meta)
        async with sight.reading(kind_of(uri), self._server_of(uri, caller), uri):
            # A person may have been asked before. The server of the office waits for both.
            left = max(_LEAST_SECONDS, self._seconds - (_now() - began))
            return await self._read(uri, left, caller, meta)

    async def check(self, uri: str, caller: Asker, sight: AgentSight) -> None:
        """Raise if the agent may not read this; a person may be asked."""
        async with sight.reading(kind_of(uri), self._server_of(uri, caller), uri):
            pass

    def _server_of(self, uri: str, caller: Asker | None) -> SERVER_NAME:
        """The server that would be asked; empty if there is none. Then a rule may deny the read all the same: that
        something does not exist is told only to those who may read it.
        """
        try:
            return self._find(uri, caller).server
        except (SMCPError, ValueError):
            return ""

    async def _read(
        self, uri: str, seconds: float, caller: Asker | None, meta: Mapping[str, Any] | None
    ) -> ReadResourceResult:
        with self._veiled():
            target = self._find(uri, caller)
            try:
                return await self._shown.connection(target.server).read_resource(uri, seconds, meta)
            except MCPError as error:
                refused = refusal(target, error, self._shown.page_count(target))
                raise self._told(target.server, error, refused) from error
            except ToolError as error:
                raise InternalError(error.message, error.details) from error

    @contextmanager
    def _veiled(self) -> Iterator[None]:
        try:
            yield
        except SMCPError as error:
            raise self._redaction.error(error) from error.__cause__

    def _find(self, uri: str, caller: Asker | None) -> Target:
        order = list(self._order())
        linked = [server for server in self._links.servers(caller, uri, _now()) if self._shares_links(server)]
        readable = Readable(self._shown.watch, self._shown.shared.items(order), linked)
        target = find_target(uri, readable, order)
        if target.document is not None and not target.listed:
            return replace(target, listed=self._shown.unlisted_documents(target.server, uri))
        return target

    def _shares_links(self, server: SERVER_NAME) -> bool:
        return self._shown.share(server) != "none"

    def remember_links(self, server: SERVER_NAME, caller: Asker, uris: Iterable[str]) -> None:
        """A tool or a prompt of this server gave an agent links to resources."""
        self._links.remember(server, caller, uris, _now())

    async def watch(
        self,
        uri: str,
        caller: Asker | None,
        callback: Callable[[str], None],
        sight: AgentSight | None = None,
    ) -> SERVER_NAME:
        """Call back whenever this resource changes, and return its server. Raises as `read` does, and
        `BadRequestError` if the server does not say what changes.
        """
        await self._shown.current()
        if sight is not None and caller is not None:
            await self.check(uri, caller, sight)
        with self._veiled():
            server = self._find(uri, caller).server
        connection = self._shown.connection(server)
        if not connection.can_subscribe:
            raise BadRequestError(f"Server {server} does not say when a resource changes")
        self._shown.shared.watch(server, uri, callback)
        self._shown.subscribe(server)
        try:
            async with asyncio.timeout(self._seconds):
                await connection.subscribed()
        except (TimeoutError, SMCPError):
            pass  # it is told when it is back, or when it has read what came before
        except BaseException:
            self.unwatch(server, uri, callback)
            raise
        return server

    def unwatch(self, server: SERVER_NAME, uri: str, callback: Callable[[str], None]) -> None:
        """Stop calling back."""
        if self._shown.shared.unwatch(server, uri, callback):
            self._shown.subscribe(server)

    # --- prompts

    async def get_prompt(
        self,
        server: SERVER_NAME,
        name: str,
        arguments: Mapping[str, Any],
        meta: Mapping[str, Any] | None = None,
        asking: PromptRound | None = None,
        sight: AgentSight | None = None,
    ) -> PromptAnswer:
        """MCP's result of a prompt, or its questions for the agent.

        Raises `ForbiddenError` if the server does not share its prompts, `NotFoundError` if it has none of this name,
        `BadRequestError` if it does not accept the arguments, `RequestTimeoutError`, and `InternalError` if it fails.
        """
        if sight is not None:
            async with sight.reading(ReadKind.PROMPT, server, name):
                return await self.get_prompt(server, name, arguments, meta, asking)
        connection = self._sharing(server)
        await self._shown.shared.prompts_current(_LIST_SECONDS, server)
        items = self._shown.shared.items([server]).get(server)
        if items is None or name not in items.prompt_names:
            raise NotFoundError(f"Server {server} does not have this prompt", {"name": cut(name, 500)})
        if not all(isinstance(value, str) for value in arguments.values()):
            raise BadRequestError("field 'arguments': the values must be texts", {"field": "arguments"})
        asking = asking if asking is not None and connection.asks_agents else PromptRound()
        params = {"name": name, "arguments": dict(arguments), "_meta": passed_meta(meta) or None, **asking.fields}
        request = GetPromptRequest(params=GetPromptRequestParams.model_validate(params))
        said = await self._ask(connection, request, asking.modes)
        if "inputRequests" not in said and "requestState" not in said:
            return PromptAnswer(said)
        try:
            return PromptAnswer({}, *asked_by(said, asking, self._redaction.quote))
        except MCPError as error:
            raise self._told(server, error, _refused(server, error)) from error

    async def complete(
        self,
        server: SERVER_NAME,
        asked: Mapping[str, Any],
        meta: Mapping[str, Any] | None = None,
        sight: AgentSight | None = None,
    ) -> dict[str, Any]:
        """MCP's completion of an argument. `asked` has MCP's `ref`, `argument` and perhaps `context`. Raises as
        `get_prompt` does.
        """
        if sight is not None:
            kind, name = completed_of(asked)
            async with sight.reading(kind, server, name):
                templates = (
                    uris_of(items.templates) if (items := self._shown.shared.items([server]).get(server)) else []
                )
                known = templates is None or name in templates
                return shown_completion(await self.complete(server, asked, meta), asked, server, sight, known=known)
        connection = self._sharing(server)
        if not connection.has_capability("completions"):
            raise BadRequestError(f"Server {server} does not complete arguments")
        try:
            params = CompleteRequestParams.model_validate({**asked, "_meta": passed_meta(meta) or None}, by_name=False)
        except ValidationError as error:
            field, message = first_problem(error)
            raise BadRequestError(f"field {field!r}: {message}", {"field": field}) from None
        said = await self._ask(connection, CompleteRequest(params=params))
        return dict(said.get("completion") or {})

    def _sharing(self, server: SERVER_NAME) -> MCPConnection:
        try:
            connection = self._shown.connection(server)
        except SMCPError:
            raise NotFoundError("no MCP server that runs has this name") from None
        if connection.share != "all":
            raise ForbiddenError(f"this computer does not share the prompts of server {server}")
        return connection

    async def _ask(
        self, connection: MCPConnection, request: Request[Any, Any], modes: frozenset[QuestionMode] = NO_MODES
    ) -> dict[str, Any]:
        with self._veiled():
            try:
                return await connection.ask(request, self._seconds, modes)
            except MCPError as error:
                raise self._told(connection.name, error, _refused(connection.name, error)) from error
            except ToolError as error:
                raise InternalError(error.message, error.details) from error

    def _told(self, server: SERVER_NAME, error: MCPError, refused: SMCPError) -> SMCPError:
        """The error for the agent. It has a part of what the server said; the log gets all of it."""
        if isinstance(refused, InternalError):
            said = on_one_line(self._redaction.quote(error))
            self._failures.warn(_READERS, "MCP server %s: a read failed: %s", server, said)
        return refused


def _refused(server: SERVER_NAME, error: MCPError) -> SMCPError:
    """The error of a prompt or a completion."""
    said = cut(discreet(error.message), 500)
    details = {"server_name": server, "mcp_code": error.code, "mcp_message": said}
    if error.code in (INVALID_PARAMS, METHOD_NOT_FOUND):
        return BadRequestError(f"Server {server} refused the request: {said}", details)
    return InternalError(f"Server {server} failed to answer", details)


def _now() -> float:
    return asyncio.get_running_loop().time()
