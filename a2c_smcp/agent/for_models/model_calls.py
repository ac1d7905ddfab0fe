"""The tool calls of a model: what is meant by a call, running it, and an answer in words that help a model."""

import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import mcp_types as types

from a2c_smcp.agent.for_models.argument_check import argument_object, argument_problem, misnamed_arguments
from a2c_smcp.agent.for_models.model_answers import (
    CallLimit,
    answered,
    failed_on_the_way,
    for_model,
    refused,
    unusable_office,
)
from a2c_smcp.agent.for_models.own_tools import OwnAnswer, OwnTool, context_tools, own_tool
from a2c_smcp.agent.for_models.sizing import MODEL_SIZE
from a2c_smcp.agent.for_models.tool_directory import SEARCH_BYTES, described
from a2c_smcp.agent.for_models.watching import WatchedOffice
from a2c_smcp.errors import BadRequestError, ConnectionLostError, SMCPError
from a2c_smcp.terminal.suggestions import near_names
from a2c_smcp.utils.text import cut

__all__ = ["MANY_TOOLS", "ModelCalls", "ToAnswer", "ToRun"]

logger = logging.getLogger(__name__)

#: From this many tools on, a list costs a model more than a search.
MANY_TOOLS: Final = 40
#: How many names a mistyped one may have meant.
_MOST_NEAR: Final = 5


@dataclass(frozen=True, slots=True)
class ToRun:
    """The tool of a computer that a model wants to run, by the tool's own name."""

    computer: str
    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToAnswer:
    """An own tool of the office that a model wants to use; `ModelCalls.answer` answers it."""

    own: OwnAnswer
    arguments: Mapping[str, Any]


class ModelCalls:
    """The calls of models in one office. Every tool can be called by its name, whether it was listed or found.

    `more` are own tools beside those that every office has. `limit` is how long a tool may take.
    """

    def __init__(self, office: WatchedOffice, limit: CallLimit, more: Iterable[OwnTool] = ()) -> None:
        self._office = office
        self._limit = limit
        self._most_seconds: int | None = None
        """How long the server lets a tool run; `None` until it has refused a longer time."""
        self.context = [*context_tools(office), *more]
        """The office's own tools that are always listed."""
        self.finding = self._search_tools()
        """The own tools that are listed instead of the tools of the computers."""
        self._own = {own.tool.name: own for own in (*self.context, *self.finding)}

    async def listing(self, *, modern: bool = False) -> list[types.Tool]:
        """The tools of all computers as MCP lists them; with `modern` for a host of 2026-07-28."""
        directory = await self._office.listed_directory()
        return directory.whole_listing if modern else directory.listing

    def listed_schema(self, name: str) -> Mapping[str, Any] | None:
        """The schema of a computer's tool as it was listed."""
        return self._office.directory.listed_schema(name)

    # --- what is meant

    async def meant(self, name: str, arguments: Mapping[str, Any]) -> ToRun | ToAnswer | types.CallToolResult:
        """What to run or to answer for a call. A mistake has its result at once."""
        if (found := self._listed(name, arguments)) is not None:
            return found
        if (own := self._own.get(name)) is not None:
            return await self._checked(own, _tidy(arguments))
        # Its computer may not be known yet.
        await self._office.knows(lambda: name in self._office.directory.by_name)
        return self._listed(name, arguments) or refused(self._unknown(name))

    def _listed(self, name: str, arguments: Mapping[str, Any]) -> ToRun | None:
        entry = self._office.directory.by_name.get(name)
        return None if entry is None else ToRun(entry.computer, entry.tool["name"], arguments)

    def _unknown(self, name: str) -> str:
        office = self._office
        if (problem := office.agent.problem) is not None:
            return unusable_office(problem)
        computer, tool = office.known.get(name) or (None, None)
        others = ", ".join(office.computers) or "nobody"
        if computer is None:
            for each in office.computers:
                if name.startswith(prefix := f"{office.label(each)}__"):
                    return self._unknown_of(each, name.removeprefix(prefix))
            return f"{_no_tool(name, office.directory.by_name)} list_computers says more. In the office: {others}."
        if computer not in office.computers:
            return f"{computer} is not in the office now, so {tool} cannot be called. In it: {others}."
        return f"{computer} has no tool {tool!r} any more: look at the list of tools again."

    def _unknown_of(self, computer: str, tool: str) -> str:
        if near := near_names(tool, self._office.directory.names_of(computer), _MOST_NEAR):
            found = [self._office.directory.find(computer, each) for each in near]
            names = [entry.name for entry in found if entry is not None]
            return f"{computer} has no tool {tool[:100]!r}. Did you mean {' or '.join(names)}?"
        return f"{computer} has no such tool now. Its MCP servers may be starting: try again in a few seconds."

    async def _checked(self, own: OwnTool, arguments: Mapping[str, Any]) -> ToRun | ToAnswer | types.CallToolResult:
        # Arguments for another tool are checked against that tool's schema.
        given = {name: value for name, value in arguments.items() if name != "arguments"}
        if (problem := argument_problem(own.tool.input_schema, given)) is not None:
            return refused(f"The arguments do not fit {own.tool.name}: {problem}")
        if own.answer is not None:
            return ToAnswer(own.answer, arguments)
        try:
            return await self._tool_to_run(arguments)
        except SMCPError as error:
            return self._failed(error, arguments)

    async def answer(self, wanted: ToAnswer) -> types.CallToolResult:
        """Answer a call of an own tool. A failure is a result, too."""
        try:
            return await wanted.own(wanted.arguments)
        except SMCPError as error:
            return self._failed(error, wanted.arguments)

    def _failed(self, error: SMCPError, arguments: Mapping[str, Any]) -> types.CallToolResult:
        return failed_on_the_way(error, arguments.get("computer") or "the computer", self._limit)

    # --- running

    async def run(self, wanted: ToRun, limit: CallLimit | None = None, **options: Any) -> types.CallToolResult:
        """Run a tool of a computer, within this limit instead of the usual one. `options` are those of the agent's
        `call_tool`. A failure is a result, too.
        """
        agent = self._office.agent
        if agent.problem is not None:
            await self._office.usable()
        problem, limit = agent.problem, self._allowed(limit or self._limit)
        run = partial(agent.call_tool, wanted.computer, wanted.tool, wanted.arguments, **options)
        try:
            try:
                result = await run(timeout=limit.seconds, approval_timeout=limit.approval_seconds)
            except BadRequestError as error:
                if not self._shorten(error, limit):
                    raise
                limit = self._allowed(limit)
                result = await run(timeout=limit.seconds, approval_timeout=limit.approval_seconds)
        except SMCPError as error:
            if problem is not None and isinstance(error, ConnectionLostError):
                return refused(unusable_office(problem))  # the request was not sent
            return failed_on_the_way(error, wanted.computer, limit)
        if result.is_error and (meant := self._misnamed(wanted)):
            result.content.append(types.TextContent(type="text", text=f"Perhaps the reason: {'; '.join(meant)}"))
        return for_model(result, wanted.computer, limit, self._office.addresses)

    def _misnamed(self, wanted: ToRun) -> list[str]:
        entry = self._office.directory.find(wanted.computer, wanted.tool)
        return [] if entry is None else misnamed_arguments(entry.tool["params_schema"], wanted.arguments)

    def _allowed(self, limit: CallLimit) -> CallLimit:
        return limit if self._most_seconds is None else limit.within(self._most_seconds)

    def _shorten(self, error: BadRequestError, limit: CallLimit) -> bool:
        """Whether the server refused the call because it allows less time. If so, its limit is used from now on."""
        most = error.details.get("maximum") if error.details.get("field") in ("timeout", "approval_timeout") else None
        if not isinstance(most, int) or not 1 <= most < limit.total:
            return False
        logger.warning("the server allows a tool %d s, not %d", most, limit.total)
        self._most_seconds = most
        return True

    # --- searching

    def _search_tools(self) -> list[OwnTool]:
        one = self._office.only is not None
        which = {} if one else {"computer": {"type": "string", "description": "The name of the computer."}}
        arguments = {"type": "object", "description": "The arguments of the tool, as its schema says."}
        return [
            own_tool(
                "search_tools",
                "Search for tools",
                "Find tools of the computers by what they do: the best ten, and the schemas of the first two. "
                "call_tool calls one. Ask in English, or in the language of the tools. Name what is to be done and the "
                "thing to touch, such as a file, a page, a branch or a channel, and the program if you know it.",
                {
                    "query": {
                        "type": "string",
                        "description": "A verb and a thing, such as: create branch; read spreadsheet cells.",
                    },
                    "schemas": {
                        "type": "integer",
                        "minimum": 0,
                        "maximum": 10,
                        "description": "How many tools come with the schemas of their arguments; 2 if absent.",
                    },
                    **which,
                },
                self._search,
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
                required=["tool"] if one else ["computer", "tool"],
                read_only=False,
            ),
        ]

    async def _search(self, arguments: Mapping[str, Any]) -> types.CallToolResult:
        await self._office.usable()
        office, query = self._office, arguments["query"]
        computer = office.computer(arguments["computer"]) if arguments.get("computer") else None
        found = office.directory.find_by_words(query, computer)
        if not found.best:
            if office.agent.problem is not None or not office.computers:
                listing = self._own["list_computers"].answer
                assert listing is not None
                return await listing(arguments)
            return answered(f"No tool has words of {query[:200]!r}. There are:\n{office.directory.overview(computer)}")
        one = office.only is not None
        how = "call_tool(tool, arguments)" if one else "call_tool(computer, tool, arguments)"
        head = f"{len(found.best)} tools, the best first. Call one with {how}."
        names = ", ".join(entry.tool["name"] for entry in found.near)
        near = f"\nNone has most of these words. Less likely, by name: {cut(names, 300)}" if names else ""
        schemas = arguments.get("schemas", 2)
        most = SEARCH_BYTES if schemas <= 2 else MODEL_SIZE
        shown = described(found.best, computers=not one, schemas=schemas, most=most)
        return answered(f"{head}\n{shown}{near}")

    async def _tool_to_run(self, arguments: Mapping[str, Any]) -> ToRun | types.CallToolResult:
        """What the own tool `call_tool` is to run."""
        office, wanted = self._office, arguments["tool"]
        named = office.only or arguments["computer"]
        await office.knows(lambda: office.directory.find(named, wanted))
        computer = office.computer(arguments.get("computer"))
        entry = office.directory.find(computer, wanted)
        if entry is None:
            near = office.directory.near(wanted, computer, _MOST_NEAR)
            return refused(
                f"{computer} has no tool {wanted[:100]!r}." + (f" It has {', '.join(near)}." if near else "")
            )
        given = argument_object(arguments.get("arguments"))
        schema = entry.tool["params_schema"]
        problem = "they are not a JSON object" if given is None else argument_problem(schema, given)
        if given is None or problem is not None:
            shown = cut(json.dumps(schema, ensure_ascii=False), MODEL_SIZE)
            return refused(f"The arguments do not fit {entry.tool['name']}: {problem}. Its schema is:\n{shown}")
        return ToRun(computer, entry.tool["name"], given)


def _tidy(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments as they are meant: some models write null for an absent argument, and 3.0 for 3."""
    return {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in arguments.items()
        if value is not None
    }


def _no_tool(name: str, known: Iterable[str]) -> str:
    near = near_names(name, known, _MOST_NEAR)
    meant = f" Did you mean {' or '.join(near)}?" if near else ""
    return f"There is no tool {name[:100]!r} in the office now.{meant}"
