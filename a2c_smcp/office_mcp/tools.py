"""The tools of an office as one MCP server lists and calls them: the tools of its computers, or a search for them."""

import asyncio
import json
import logging
import time
from collections.abc import Mapping
from functools import partial
from typing import Any, Final, Literal, TypeAlias

import mcp_types as types
from mcp.server.context import ServerRequestContext

from a2c_smcp.errors import BadRequestError, ConnectionLostError, SMCPError
from a2c_smcp.mcp_server.mcp_server_internals import connection_of, was_taken_back
from a2c_smcp.mcp_server.passed_meta import passed_meta
from a2c_smcp.mcp_server.tools import ToolCall, ToolResult
from a2c_smcp.office_mcp.argument_check import argument_problem
from a2c_smcp.office_mcp.host_calls import HostCalls
from a2c_smcp.office_mcp.hosted_calls import HostSide
from a2c_smcp.office_mcp.model_answers import answered, failed_on_the_way, for_model, refused
from a2c_smcp.office_mcp.own_tools import OwnTool, context_tools, own_tool
from a2c_smcp.office_mcp.sizing import MODEL_SIZE
from a2c_smcp.office_mcp.tool_directory import described
from a2c_smcp.office_mcp.watching import WatchedOffice
from a2c_smcp.utils.text import cut, in_log

__all__ = ["OfficeTools", "SearchMode"]

logger = logging.getLogger(__name__)

SearchMode: TypeAlias = Literal["auto", "always", "never"]

_DECIDED: Final = "a2c_smcp.office.search"


class OfficeTools:
    """The tools of an office as a `ToolTable`. Every tool can be called by its name, whether it was listed or found."""

    def __init__(
        self, office: WatchedOffice, calls: HostCalls, search: SearchMode = "auto", timeout: int = 300
    ) -> None:
        self._office = office
        self._calls = calls
        self._search = search
        self._timeout = timeout
        self._searches: bool | None = None
        self._context = context_tools(office)
        self._finding = self._search_tools()
        self._own = {own.tool.name: own for own in (*self._context, *self._finding)}

    # --- listing

    @property
    def only_searched(self) -> bool:
        """Whether every host gets a search: then the list never changes."""
        return self._search == "always" or self._searches is True

    async def list_tools(self, context: ServerRequestContext[Any, Any]) -> list[types.Tool]:
        await self._office.ready()
        self._office.tools_given = True
        context_tools = [own.tool for own in self._context]
        if self._by_search(context):
            return [*context_tools, *(own.tool for own in self._finding)]
        directory = self._office.directory
        while directory.list_some():  # noqa: ASYNC110 - it does work, and lets others run in between
            await asyncio.sleep(0)
        return [*context_tools, *directory.listing]

    def _by_search(self, context: ServerRequestContext[Any, Any]) -> bool:
        """Whether this client gets a search instead of a list. Decided at the first request of a session. MCP over HTTP
        has no sessions since 2026-07-28: there it is decided for every request.
        """
        if self._search != "auto":
            return self._search == "always"
        # From this many tools on, a list costs a model more than a search.
        many = len(self._office.directory) >= 40
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
        if (entry := self._office.directory.by_name.get(call.name)) is not None:
            return await self._run(call, entry.computer, entry.tool["name"], call.arguments)
        if (own := self._own.get(call.name)) is not None:
            return await self._answer(own, call)
        # Its computer may not be known yet.
        await self._office.knows(lambda: call.name in self._office.directory.by_name)
        if (entry := self._office.directory.by_name.get(call.name)) is not None:
            return await self._run(call, entry.computer, entry.tool["name"], call.arguments)
        return refused(self._unknown(call.name))

    def _unknown(self, name: str) -> str:
        office = self._office
        if (problem := office.agent.problem) is not None:
            return _unusable(problem)
        computer, tool = office.known.get(name) or (None, None)
        others = ", ".join(office.computers) or "nobody"
        if computer is None:
            for each in office.computers:
                if name.startswith(f"{office.label(each)}__"):
                    return f"{each} has no such tool now. Its MCP servers may be starting: try again in a few seconds."
            return f"There is no tool {name[:100]!r} in the office now; list_computers says more. In it: {others}."
        if computer not in office.computers:
            return f"{computer} is not in the office now, so {tool} cannot be called. In it: {others}."
        return f"{computer} has no tool {tool!r} any more: look at the list of tools again."

    async def _run(self, call: ToolCall, computer: str, tool: str, arguments: Mapping[str, Any]) -> ToolResult:
        return await self._calls.run(call, partial(self._call, call, computer, tool, arguments))

    async def _call(
        self, call: ToolCall, computer: str, tool: str, arguments: Mapping[str, Any], host: HostSide
    ) -> types.CallToolResult:
        agent = self._office.agent
        if agent.problem is not None:
            await self._office.usable()
        problem = agent.problem
        started = time.monotonic()
        run = partial(
            agent.call_tool,
            on_progress=host.on_progress,
            on_question=host.on_question,
            questions=host.modes,
            meta=passed_meta(call.context.meta) or None,
        )
        try:
            try:
                result = await run(computer, tool, arguments, self._timeout)
            except BadRequestError as error:
                if not self._shorten(error):
                    raise
                result = await run(computer, tool, arguments, self._timeout)
        except asyncio.CancelledError:
            self._log_cancelled(call, computer, tool, time.monotonic() - started)
            raise
        except SMCPError as error:
            if problem is not None and isinstance(error, ConnectionLostError):
                return refused(_unusable(problem))  # it was not sent
            return failed_on_the_way(error, computer, self._timeout)
        return for_model(result, computer, self._timeout, self._office.addresses)

    def _log_cancelled(self, call: ToolCall, computer: str, tool: str, seconds: float) -> None:
        if was_taken_back(call.context.session):
            what = "the host took back its call of %s on %s after %.1f s: raise its own limit if that is too soon"
        elif call.context.request is not None:
            # Since 2026-07-28 a client over HTTP takes a call back by closing its stream.
            what = "the host closed its request of %s on %s after %.1f s: it has ended, or its own limit has passed"
        else:
            what = "the host has gone: its call of %s on %s ends after %.1f s"
        logger.warning(what, in_log(tool), in_log(computer), seconds)

    def _shorten(self, error: BadRequestError) -> bool:
        """Whether the server refused the call because it allows less time. If so, its limit is used from now on."""
        most = error.details.get("maximum") if error.details.get("field") == "timeout" else None
        if not isinstance(most, int) or not 1 <= most < self._timeout:
            return False
        logger.warning("the server allows a tool %d s, not %d", most, self._timeout)
        self._timeout = most
        return True

    async def _answer(self, own: OwnTool, call: ToolCall) -> ToolResult:
        call.arguments = _tidy(call.arguments)
        # Arguments for another tool are checked against that tool's schema.
        given = {name: value for name, value in call.arguments.items() if name != "arguments"}
        if (problem := argument_problem(own.tool.input_schema, given)) is not None:
            return refused(f"The arguments do not fit {own.tool.name}: {problem}")
        try:
            return await own.answer(call)
        except SMCPError as error:
            return failed_on_the_way(error, call.arguments.get("computer") or "the computer", self._timeout)

    # --- searching

    def _search_tools(self) -> list[OwnTool]:
        one = self._office.only is not None
        which = {} if one else {"computer": {"type": "string", "description": "The name of the computer."}}
        arguments = {"type": "object", "description": "The arguments of the tool, as its schema says."}
        return [
            own_tool(
                "search_tools",
                "Search for tools",
                "Find tools of the computers by what they do: the best ten, with the schemas of their arguments. "
                "call_tool calls one. Ask in English, or in the language of the tools. Name what is to be done and the "
                "thing to touch, such as a file, a page, a branch or a channel, and the program if you know it.",
                {
                    "query": {
                        "type": "string",
                        "description": "A verb and a thing, such as: create branch; read spreadsheet cells.",
                    },
                    **which,
                },
                self._find,
                required=["query"],
            ),
            own_tool(
                "call_tool",
                "Call a tool",
                "Call a tool that search_tools has found.",
                {
                    **which,
                    "tool": {"type": "string", "description": "The tool's name, as search_tools gives it."},
                    "arguments": arguments,
                },
                self._call_found,
                required=["tool"] if one else ["computer", "tool"],
                read_only=False,
            ),
        ]

    async def _find(self, call: ToolCall) -> ToolResult:
        await self._office.usable()
        office, query = self._office, call.arguments["query"]
        computer = office.computer(call.arguments["computer"]) if call.arguments.get("computer") else None
        found = office.directory.find_by_words(query, computer)
        if not found.best:
            if office.agent.problem is not None or not office.computers:
                return await self._own["list_computers"].answer(call)
            return answered(f"No tool has words of {query[:200]!r}. There are:\n{office.directory.overview(computer)}")
        one = office.only is not None
        how = "call_tool(tool, arguments)" if one else "call_tool(computer, tool, arguments)"
        head = f"{len(found.best)} tools, the best first. Call one with {how}."
        names = ", ".join(entry.tool["name"] for entry in found.near)
        near = f"\nNone has most of these words. Less likely, by name: {cut(names)}" if names else ""
        return answered(f"{head}\n{described(found.best, computers=not one)}{near}")

    async def _call_found(self, call: ToolCall) -> ToolResult:
        office, wanted = self._office, call.arguments["tool"]
        named = office.only or call.arguments["computer"]
        await office.knows(lambda: office.directory.find(named, wanted))
        computer = office.computer(call.arguments.get("computer"))
        entry = office.directory.find(computer, wanted)
        if entry is None:
            near = described(office.directory.search(wanted, computer, 3), computers=False)
            return refused(f"{computer} has no tool {wanted[:100]!r}." + (f" It has:\n{near}" if near else ""))
        given = _object(call.arguments.get("arguments"))
        schema = entry.tool["params_schema"]
        problem = "they are not a JSON object" if given is None else argument_problem(schema, given)
        if given is None or problem is not None:
            shown = cut(json.dumps(schema, ensure_ascii=False), MODEL_SIZE)
            return refused(f"The arguments do not fit {entry.tool['name']}: {problem}. Its schema is:\n{shown}")
        return await self._run(call, computer, entry.tool["name"], given)


def _unusable(problem: str) -> str:
    return (
        f"The office cannot be used right now: {problem}. It is tried again all the time: try again in a few seconds, "
        "or tell the user."
    )


def _tidy(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments as they are meant: some models write null for an absent argument, and 3.0 for 3."""
    return {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in arguments.items()
        if value is not None
    }


def _object(value: Any) -> dict[str, Any] | None:
    """Arguments as an object. Some models write them as a text that holds one."""
    if value is None or value == "":
        return {}
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return None
    return value if isinstance(value, dict) else None
