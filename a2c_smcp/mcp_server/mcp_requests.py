"""Answers what clients ask a `ContextServer`: resources, tools, prompts and completions, in both eras."""

import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias, TypeVar

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from a2c_smcp.errors import SMCPError
from a2c_smcp.mcp_server.passed_meta import answering_with_meta
from a2c_smcp.mcp_server.prompts import AskingPromptTable, PromptTable, UnknownPromptError
from a2c_smcp.mcp_server.resources import BadCursorError, Completions, ResourceRoom, UnknownResourceError, list_page
from a2c_smcp.mcp_server.tools import ToolCall, ToolResult, Tools

__all__ = ["Context", "Instructions", "McpRequests"]

logger = logging.getLogger(__name__)

T = TypeVar("T")

Context: TypeAlias = ServerRequestContext[Any, Any]
#: What the server says about its use, or an async function that returns it when a client comes.
Instructions: TypeAlias = str | Callable[[], Awaitable[str | None]] | None

_RESOURCE_NOT_FOUND = -32002
"""MCP's error code for an unknown resource until 2025-11-25. Since then the code is that of a wrong parameter."""
_WITH_INSTRUCTIONS = ("initialize", "server/discover")


class McpRequests:
    """The handlers of one server, by what they answer."""

    def __init__(
        self,
        rooms: Sequence[ResourceRoom],
        tools: Tools,
        prompts: PromptTable | AskingPromptTable | None,
        instructions: Instructions,
        page_size: int,
    ) -> None:
        self._rooms = rooms
        self._tools = tools
        self._prompts = prompts
        self._instructions = instructions
        self._page_size = page_size

    def handlers(self) -> dict[str, Any]:
        """The handlers as mcp's server takes them."""
        found: dict[str, Any] = {
            "on_list_resources": self._list_resources,
            "on_read_resource": self._read_resource,
            "on_list_resource_templates": self._list_templates,
            "on_completion": self._complete,
            "on_list_tools": self._list_tools,
            "on_call_tool": self._call_tool,
        }
        if self._prompts is not None:
            found |= {"on_list_prompts": self._list_prompts, "on_get_prompt": self._get_prompt}
        return found

    async def around(self, ctx: Context, call_next: Callable[[Context], Awaitable[Any]]) -> Any:
        """mcp's middleware: it keeps the `_meta` of the request, and tells a client that comes the instructions."""
        with answering_with_meta(ctx.meta):
            result = await call_next(ctx)
        if ctx.method in _WITH_INSTRUCTIONS and callable(self._instructions):
            with _answering("the instructions are not known"):
                text = await self._instructions()
            return {**result, "instructions": text} if text else result
        return result

    def topic(self, uri: str) -> str:
        """The URI whose changes a client hears of when it subscribes to this one."""
        room = self._room(uri)
        return uri if room is None else room.topic(uri)

    # --- resources

    async def _list_resources(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        with _answering("the resources could not be listed"):
            found, cursor = await list_page(self._rooms, params.cursor if params else None, self._page_size)
        return types.ListResourcesResult(resources=found, next_cursor=cursor)

    async def _read_resource(self, ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        with _answering("the resource could not be read"):
            try:
                if (room := self._room(params.uri)) is None:
                    raise UnknownResourceError(params.uri)
                found = await room.read(params.uri)
            except UnknownResourceError as error:
                modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
                code = types.INVALID_PARAMS if modern else _RESOURCE_NOT_FOUND
                raise MCPError(code, error.message, {"uri": params.uri}) from None
        return found if isinstance(found, types.ReadResourceResult) else types.ReadResourceResult(contents=list(found))

    async def _list_templates(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        with _answering("the templates could not be listed"):
            templates = [template for room in self._rooms for template in await room.templates()]
            page, cursor = self._page(templates, params)
        return types.ListResourceTemplatesResult(resource_templates=page, next_cursor=cursor)

    # --- prompts

    async def _list_prompts(self, ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        assert self._prompts is not None
        with _answering("the prompts could not be listed"):
            page, cursor = self._page(await self._prompts.list_prompts(ctx), params)
        return types.ListPromptsResult(prompts=page, next_cursor=cursor)

    async def _get_prompt(
        self, ctx: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult | types.InputRequiredResult:
        assert self._prompts is not None
        with _answering("there is no answer to the prompt"):
            try:
                if isinstance(self._prompts, AskingPromptTable):
                    return await self._prompts.answer_prompt(ctx, params)
                return await self._prompts.get_prompt(params.name, params.arguments or {})
            except UnknownPromptError as error:
                raise MCPError(types.INVALID_PARAMS, error.message) from None

    # --- completion

    async def _complete(self, ctx: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        known = (params.context.arguments if params.context else None) or {}
        with _answering("there is no completion"):
            found = await self._completions(params.ref, params.argument, known)
        completion = types.Completion(values=list(found.values), total=found.total, has_more=found.more)
        return types.CompleteResult(completion=completion)

    async def _completions(
        self,
        ref: types.ResourceTemplateReference | types.PromptReference,
        argument: types.CompletionArgument,
        known: Mapping[str, str],
    ) -> Completions:
        if isinstance(ref, types.PromptReference):
            if self._prompts is None:
                return Completions()
            return await self._prompts.complete(ref.name, argument.name, argument.value, known)
        if (room := self._room(ref.uri)) is None:
            return Completions()
        return await room.complete(ref.uri, argument.name, argument.value, known)

    # --- tools

    async def _list_tools(self, ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        with _answering("the tools could not be listed"):
            page, cursor = self._page(await self._tools.listing(ctx), params)
        return types.ListToolsResult(tools=page, next_cursor=cursor)

    async def _call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> ToolResult:
        return await self._tools.call(ToolCall(ctx, params))

    # ---

    def _room(self, uri: str) -> ResourceRoom | None:
        return next((room for room in self._rooms if room.owns(uri)), None)

    def _page(self, items: Sequence[T], params: types.PaginatedRequestParams | None) -> tuple[list[T], str | None]:
        """One page of a list, and the cursor of the next page."""
        cursor = params.cursor if params else None
        if cursor is not None and not (cursor.isascii() and cursor.isdigit() and len(cursor) < 19):
            raise BadCursorError("this server did not give out this cursor")
        end = int(cursor or 0) + self._page_size
        return list(items[end - self._page_size : end]), str(end) if end < len(items) else None


@contextmanager
def _answering(problem: str) -> Iterator[None]:
    """The boundary between the owner of resources and tools, and the clients: an error with a code is passed on, and
    every other error is logged.
    """
    try:
        yield
    except MCPError:
        raise
    except SMCPError as error:
        raise MCPError(error.code, error.message, error.details or None) from None
    except BadCursorError as error:
        raise MCPError(types.INVALID_PARAMS, str(error)) from None
    except Exception:
        # The author's code may raise anything. The client gets an answer, and the log has the traceback.
        logger.exception("%s", problem)
        raise MCPError(types.INTERNAL_ERROR, f"{problem}; the log of the server says why") from None
