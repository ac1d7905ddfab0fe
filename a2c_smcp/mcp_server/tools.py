"""Tools as typed functions, and tables of tools that are passed through unchanged."""

import asyncio
import inspect
import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeAlias

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from a2c_smcp.errors import SMCPError
from a2c_smcp.mcp_server.changes import Changes
from a2c_smcp.mcp_server.mcp_server_internals import FuncMetadata, func_metadata
from a2c_smcp.mcp_server.threads import in_thread
from a2c_smcp.utils.text import well_formed
from a2c_smcp.utils.validation import sentence

__all__ = ["ToolCall", "ToolFunction", "ToolResult", "ToolTable", "Tools"]

logger = logging.getLogger(__name__)

ToolFunction: TypeAlias = Callable[..., Any]
ToolResult: TypeAlias = types.CallToolResult | types.InputRequiredResult

_NAME = re.compile(r"[A-Za-z0-9_.\-]{1,128}")


class CallCancelledError(Exception):
    """Ends a function whose call was cancelled."""


class ToolCall:
    """One call of a tool. A function with a parameter of this type gets it: to report progress, or to notice that
    the call was cancelled.
    """

    def __init__(self, context: ServerRequestContext[Any, Any], params: types.CallToolRequestParams) -> None:
        self.context = context
        """mcp's own context of the request: session, protocol version, HTTP request."""
        self.params = params
        self.name = params.name
        self.arguments: Mapping[str, Any] = params.arguments or {}
        self.cancelled = False
        self._loop = asyncio.get_running_loop()

    @property
    def wants_progress(self) -> bool:
        """Whether the caller asked for progress."""
        return (self.context.meta or {}).get("progress_token") is not None

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Report progress, if the caller asked for it. `progress` must grow."""
        await self.context.session.report_progress(progress, total, message and well_formed(message))

    def progress_from_thread(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """`progress` for a function that is not async, and runs in a thread. Raises like `check_cancelled`."""
        self.check_cancelled()
        asyncio.run_coroutine_threadsafe(self.progress(progress, total, message), self._loop).result()

    def check_cancelled(self) -> None:
        """Raise if the call was cancelled. A function that is not async should call this now and then, and not catch
        the error: a thread cannot be ended from outside.
        """
        if self.cancelled:
            raise CallCancelledError


class ToolTable(Protocol):
    """Tools that are passed through with their own schemas, such as those of other servers.

    A table may also have `input_schema(name)`: the schema that a tool was listed with, or `None`. Then the HTTP headers
    `Mcp-Param-…` of a call are compared with its arguments.
    """

    async def list_tools(self, context: ServerRequestContext[Any, Any]) -> Sequence[types.Tool]:
        """The tools for this client. `context` is mcp's own context of the request."""
        ...

    async def call_tool(self, call: ToolCall) -> ToolResult:
        """The result of one of these tools. Raise an `SMCPError` for a failure that the caller should read."""
        ...


@dataclass(frozen=True, slots=True)
class _FunctionTool:
    tool: types.Tool
    function: ToolFunction
    reading: FuncMetadata
    call_parameter: str | None

    async def run(self, call: ToolCall) -> ToolResult:
        try:
            arguments = self.reading.validate_arguments(dict(call.arguments))
        except ValidationError as error:
            return failed(_sentence(self.tool.name, error))
        if self.call_parameter is not None:
            arguments[self.call_parameter] = call
        if _is_async(self.function):
            value = await self.function(**arguments)
        else:
            value = await self._run_in_thread(call, arguments)
        return self.reading.convert_result(value)

    async def _run_in_thread(self, call: ToolCall, arguments: dict[str, Any]) -> Any:
        """A thread cannot be stopped. The cancelled call ends, and the thread has to notice by itself."""
        try:
            return await in_thread(partial(self.function, **arguments), call.context.lifespan_context.threads)
        except anyio.get_cancelled_exc_class():
            call.cancelled = True
            raise


class Tools:
    """The tools of one server: functions, and a table of others."""

    def __init__(self, table: ToolTable | None, changes: Changes) -> None:
        self._functions: dict[str, _FunctionTool] = {}
        self._table = table
        self._changes = changes
        self._warned: set[str] = set()

    def add(
        self,
        function: ToolFunction,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        annotations: types.ToolAnnotations | None = None,
        meta: dict[str, Any] | None = None,
    ) -> None:
        """Offer a function as a tool. Raises `ValueError` or `TypeError`, which says why it cannot be offered."""
        name = name or function.__name__
        if not _NAME.fullmatch(name):
            raise ValueError(f"a tool's name has 1 to 128 letters, digits, _, . and -, not {name!r}")
        if name in self._functions:
            raise ValueError(f"there is a tool {name!r} already")
        signature = inspect.signature(function, eval_str=True)
        for parameter in signature.parameters.values():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
                raise TypeError(f"the tool {name!r} cannot have the parameter {parameter}: arguments come by name")
        call_parameter = next(
            (each.name for each in signature.parameters.values() if each.annotation is ToolCall), None
        )
        reading = func_metadata(
            function,
            skip_names=[call_parameter] if call_parameter else [],
            # A text is for reading. It is not sent a second time as structured content.
            structured_output=False if signature.return_annotation in (str, signature.empty) else None,
        )
        tool = types.Tool(
            name=name,
            title=title,
            description=description or inspect.cleandoc(function.__doc__ or "") or None,
            input_schema=reading.arg_model.model_json_schema(by_alias=True),
            output_schema=reading.output_schema,
            annotations=annotations,
            _meta=meta,
        )
        self._functions[name] = _FunctionTool(tool, function, reading, call_parameter)
        self._changes.tools_changed()

    def remove(self, name: str) -> None:
        del self._functions[name]
        self._changes.tools_changed()

    def changed(self) -> None:
        """Announce that the table lists other tools now."""
        self._changes.tools_changed()

    def __contains__(self, name: object) -> bool:
        return name in self._functions

    def input_schema(self, name: str) -> Mapping[str, Any] | None:
        """The schema of a tool, which mcp needs to check HTTP headers."""
        if (found := self._functions.get(name)) is not None:
            return found.tool.input_schema
        lookup = getattr(self._table, "input_schema", None)
        return None if lookup is None else lookup(name)

    async def listing(self, context: ServerRequestContext[Any, Any]) -> list[types.Tool]:
        own = [entry.tool for entry in self._functions.values()]
        if self._table is None:
            return own
        others = []
        for tool in await self._table.list_tools(context):
            if tool.name not in self._functions:
                others.append(tool)
            elif tool.name not in self._warned:
                self._warned.add(tool.name)
                logger.warning("the tool %r of the table is hidden: a function has this name", tool.name)
        return own + others

    async def call(self, call: ToolCall) -> ToolResult:
        """Run a tool. Everything that it raises becomes a result that a model can read, except MCP's own errors."""
        run: Callable[[ToolCall], Awaitable[ToolResult]]
        if (entry := self._functions.get(call.name)) is not None:
            run = entry.run
        elif self._table is not None:
            run = self._table.call_tool
        else:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {call.name[:200]}")
        try:
            return await run(call)
        except MCPError:
            raise
        except SMCPError as error:
            return failed(error.message, {"error_code": error.code, **error.details})
        except Exception:
            # The boundary between a tool and its caller: the log has the details of the failure.
            logger.exception("the tool %s failed", call.name)
            return failed(f"The tool {call.name} failed; the log of its server says why.")


def failed(text: str, meta: dict[str, Any] | None = None) -> types.CallToolResult:
    """A result that says what went wrong."""
    content: list[types.ContentBlock] = [types.TextContent(type="text", text=well_formed(text))]
    return types.CallToolResult(content=content, is_error=True, _meta=meta)


def _sentence(name: str, error: ValidationError) -> str:
    return f"The arguments do not fit the tool {name}: {sentence(error, 'arguments', most=10)}"


def _is_async(function: ToolFunction) -> bool:
    while isinstance(function, partial):
        function = function.func
    return inspect.iscoroutinefunction(function)
