"""The tools of an office as one MCP server lists and calls them: the tools of its computers, or a search for them."""

import asyncio
import logging
import time
from collections.abc import Mapping
from functools import partial
from typing import Any, Final, Literal, TypeAlias

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from a2c_smcp.agent.for_models.model_answers import CallLimit
from a2c_smcp.agent.for_models.model_calls import MANY_TOOLS, ModelCalls, ToAnswer, ToRun
from a2c_smcp.agent.for_models.watching import WatchedOffice
from a2c_smcp.mcp_server.mcp_server_internals import connection_of, was_taken_back
from a2c_smcp.mcp_server.passed_meta import passed_meta
from a2c_smcp.mcp_server.tools import ToolCall, ToolResult
from a2c_smcp.office_mcp.host_calls import HostCalls
from a2c_smcp.office_mcp.hosted_calls import HostSide
from a2c_smcp.results import REQUIRED_MARKER, text_of
from a2c_smcp.utils.text import in_log

__all__ = ["OfficeTools", "SearchMode"]

logger = logging.getLogger(__name__)

SearchMode: TypeAlias = Literal["auto", "always", "never"]

_DECIDED: Final = "a2c_smcp.office.search"
_TOO_LONG: Final = (
    "this is the limit of `a2c mcp`, which --timeout raises. The host has a limit of its own, which is often lower (5 "
    "s by default in the OpenAI Agents SDK): for work that takes long raise both, or ask for less at a time."
)


class OfficeTools:
    """The tools of an office as a `ToolTable`."""

    def __init__(
        self,
        office: WatchedOffice,
        calls: HostCalls,
        search: SearchMode = "auto",
        timeout: int = 300,
        approval_timeout: int | None = None,
    ) -> None:
        self._office = office
        self._calls = calls
        self._search = search
        self._searches: bool | None = None
        self._model_calls = ModelCalls(office, CallLimit(timeout, _TOO_LONG, approval_timeout))

    # --- listing

    @property
    def only_searched(self) -> bool:
        """Whether every host gets a search: then the list never changes."""
        return self._search == "always" or self._searches is True

    async def list_tools(self, context: ServerRequestContext[Any, Any]) -> list[types.Tool]:
        await self._office.ready()
        self._office.tools_given = True
        context_tools = [own.tool for own in self._model_calls.context]
        if self._by_search(context):
            return [*context_tools, *(own.tool for own in self._model_calls.finding)]
        modern = context.protocol_version in MODERN_PROTOCOL_VERSIONS
        return [*context_tools, *await self._model_calls.listing(modern=modern)]

    def input_schema(self, name: str) -> Mapping[str, Any] | None:
        return self._model_calls.listed_schema(name)

    def _by_search(self, context: ServerRequestContext[Any, Any]) -> bool:
        """Whether this client gets a search instead of a list. Decided at the first request of a session. MCP over HTTP
        has no sessions since 2026-07-28: there it is decided for every request.
        """
        if self._search != "auto":
            return self._search == "always"
        many = len(self._office.directory) >= MANY_TOOLS
        if context.request is None:  # a pipe has one client for the whole life of this server
            self._searches = many if self._searches is None else self._searches
            return self._searches
        connection = connection_of(context.session)
        if connection.session_id is None:
            return many
        decided: bool = connection.state.setdefault(_DECIDED, many)
        return decided

    # --- calling

    async def call_tool(self, call: ToolCall) -> ToolResult:
        if call.params.request_state is not None:
            return await self._calls.resume(call)
        meant = await self._model_calls.meant(call.name, call.arguments)
        if isinstance(meant, ToAnswer):
            return await self._model_calls.answer(meant)
        if not isinstance(meant, ToRun):
            return meant
        return await self._calls.run(call, partial(self._call, call, meant))

    async def _call(self, call: ToolCall, wanted: ToRun, host: HostSide) -> types.CallToolResult:
        started = time.monotonic()
        try:
            result = await self._model_calls.run(
                wanted,
                on_progress=host.on_progress,
                on_question=host.on_question,
                questions=host.modes,
                meta=passed_meta(call.context.meta) or None,
            )
        except asyncio.CancelledError:
            self._log_cancelled(call, wanted, time.monotonic() - started)
            raise
        _refuse_what_the_host_cannot(call, result)
        return result

    def _log_cancelled(self, call: ToolCall, wanted: ToRun, seconds: float) -> None:
        if was_taken_back(call.context.session):
            what = "the host took back its call of %s on %s after %.1f s: raise its own limit if that is too soon"
        elif call.context.request is not None:
            # Since 2026-07-28 a client over HTTP takes a call back by closing its stream.
            what = "the host closed its request of %s on %s after %.1f s: it has ended, or its own limit has passed"
        else:
            what = "the host has gone: its call of %s on %s ends after %.1f s"
        logger.warning(what, in_log(wanted.tool), in_log(wanted.computer), seconds)


def _refuse_what_the_host_cannot(call: ToolCall, result: types.CallToolResult) -> None:
    """Raise MCP's own error for a tool that needs what this host has not declared, as the tool's server did."""
    required = (result.meta or {}).get(REQUIRED_MARKER)
    if not result.is_error or not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        return
    can = call.context.session.client_capabilities
    declared = set() if can is None else set(can.model_dump(by_alias=True, exclude_none=True))
    if missing := [name for name in required if name not in declared]:
        data: dict[str, Any] = {"requiredCapabilities": {name: {} for name in missing}}
        raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, text_of(result), data)
