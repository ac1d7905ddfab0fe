"""One agent's office for the APIs of models: its tools, and the calls that a model asked for.

The state that is kept for an agent is made at its first use, and lives as long as the agent.
"""

import asyncio
import inspect
import json
import logging
import secrets
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeAlias

import anyio.to_thread
import mcp_types as types

from a2c_smcp.agent.client import AsyncSMCPAgentClient
from a2c_smcp.agent.for_models.model_answers import CallLimit, answered, refused
from a2c_smcp.agent.for_models.model_calls import MANY_TOOLS, ModelCalls, ToAnswer, ToRun
from a2c_smcp.agent.for_models.own_tools import OwnTool, own_tool
from a2c_smcp.agent.for_models.sizing import text_piece
from a2c_smcp.agent.for_models.watching import WatchedOffice
from a2c_smcp.agent.llm.blocks import result_messages, shown_results
from a2c_smcp.agent.llm.replies import read_reply
from a2c_smcp.agent.llm.styles import Style, ToolRequest, tool_in_style
from a2c_smcp.agent.questions import QuestionCallback
from a2c_smcp.smcp import WAITING_FOR_PERSON
from a2c_smcp.utils.bounded import BoundedDict
from a2c_smcp.utils.text import cut, in_log

__all__ = [
    "DEFAULT_APPROVAL_SECONDS",
    "DEFAULT_TOOL_SECONDS",
    "CallEvents",
    "ModelOffice",
    "TurnOptions",
    "model_office",
]

logger = logging.getLogger(__name__)

_TOO_LONG: Final = (
    "this is the limit of the program that runs you. For work that takes long ask for less at a time, or tell the user."
)
#: How many seconds a tool may take, and a person who has to agree to the call, unless the program says otherwise.
DEFAULT_TOOL_SECONDS: Final = 300
DEFAULT_APPROVAL_SECONDS: Final = 600
#: How many results that were cut are kept for `read_more`, and how many characters all of them have.
_KEPT: Final = 100
_KEPT_CHARACTERS: Final = 20_000_000
#: All results of one message together have at most this many budgets.
_SHARED_BUDGETS: Final = 4
#: Characters of one result, at least.
_LEAST_BUDGET: Final = 500
#: Characters of a budget that are kept free for the note about the rest.
_NOTE: Final = 200
_READ_MORE: Final = "read_more"

#: Characters that the result of the call in this task may have.
_budget: ContextVar[int] = ContextVar("a2c_smcp_result_budget")

#: A function of the program that a model may call, too: it gets the arguments by name, and returns what JSON can say.
Function: TypeAlias = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class CallEvents:
    """What a program may hear of calls while they run. Each function may be `def` or `async def`. A function that is
    not async runs in a worker thread. Its errors are logged, `SystemExit` too, and harm no call.
    """

    on_start: Callable[[ToolRequest], Any] | None = None
    """A call begins: its computer and its tool are known now."""
    on_progress: Callable[[ToolRequest, float, float | None, str | None], Any] | None = None
    """A tool reports its progress, the total of it, and a message; the last two may be `None`."""
    on_waiting: Callable[[ToolRequest], Any] | None = None
    """A call waits for the person at the computer, who has to agree to it or to answer a question."""
    on_end: Callable[[ToolRequest, types.CallToolResult], Any] | None = None
    """A call has ended, with this result. It is whole: what the model gets may be cut."""


@dataclass(frozen=True, slots=True)
class TurnOptions:
    """How the calls of one message run."""

    style: Style | None
    budget: int
    timeout: int
    approval_timeout: int | None
    functions: Mapping[str, Function]
    events: CallEvents
    on_question: QuestionCallback | None
    images: bool = True

    def __post_init__(self) -> None:
        if self.budget < _LEAST_BUDGET:
            raise ValueError(f"a result needs a budget of at least {_LEAST_BUDGET} characters, not {self.budget}")


class ModelOffice:
    """An agent's office for models."""

    def __init__(self, agent: AsyncSMCPAgentClient) -> None:
        self.office = WatchedOffice(agent)
        self._calls = ModelCalls(self.office, CallLimit(DEFAULT_TOOL_SECONDS, _TOO_LONG), [self._read_more()])
        self._kept: BoundedDict[str, str] = BoundedDict(_KEPT, heaviest=_KEPT_CHARACTERS, weigh=len)
        self._searches = False
        self.office.look()

    # --- tools

    async def tools(self, style: Style, search: bool | None) -> list[dict[str, Any]]:
        """The tools in the shape of an API, in an order that changes only when the tools do."""
        await self.office.ready()
        # An office that has had many tools once keeps its search: tools that come and go would spoil prompt caches.
        self._searches = self._searches or len(self.office.directory) >= MANY_TOOLS
        own = [each.tool for each in self._calls.context]
        if self._searches if search is None else search:
            shown = [*own, *(each.tool for each in self._calls.finding)]
        else:
            shown = [*own, *sorted(await self._calls.listing(), key=lambda tool: tool.name)]
        return [tool_in_style(tool, style) for tool in shown]

    # --- calls

    async def run(self, message: Any, options: TurnOptions) -> list[Any]:
        """Run what a model asked for. Returns the messages for the next request: its own, and the answers."""
        reply = read_reply(message, options.style)
        if not reply.calls:
            return []
        share = max(min(options.budget, options.budget * _SHARED_BUDGETS // len(reply.calls)), _LEAST_BUDGET)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._answer(call, share, options)) for call in reply.calls]
        shown = shown_results([task.result() for task in tasks], reply.style, images=options.images)
        cut_to_share = [replace(each, text=self._within(each.text, share)) for each in shown]
        return [*reply.messages, *result_messages(reply.style, list(zip(reply.calls, cut_to_share, strict=True)))]

    async def _answer(self, call: ToolRequest, share: int, options: TurnOptions) -> types.CallToolResult:
        _budget.set(share)
        try:
            return await self._result(call, options)
        except (Exception, asyncio.CancelledError):
            me = asyncio.current_task()
            assert me is not None
            if me.cancelling():
                raise
            # Strangers' data reaches many lines of code. One call that fails must not end the others.
            logger.exception("a call of the tool %s failed", in_log(call.name))
            return refused(f"{cut(call.name, 100)} failed in the program that runs you. Tell the user.")

    async def _result(self, call: ToolRequest, options: TurnOptions) -> types.CallToolResult:
        events = options.events
        if call.arguments is None:
            return refused("The arguments are not a JSON object. Call the tool again with a JSON object.")
        if (function := options.functions.get(call.name)) is not None:
            await _tell(events.on_start, call)
            result = await _call_function(function, call.arguments)
        else:
            meant = await self._calls.meant(call.name, call.arguments)
            if isinstance(meant, ToRun):
                call = replace(call, computer=meant.computer, tool=meant.tool, arguments=meant.arguments)
            await _tell(events.on_start, call)
            result = await self._outcome(call, meant, options)
        await _tell(events.on_end, call, result)
        return result

    async def _outcome(
        self, call: ToolRequest, meant: ToRun | ToAnswer | types.CallToolResult, options: TurnOptions
    ) -> types.CallToolResult:
        if isinstance(meant, ToRun):
            return await self._run(call, meant, options)
        if not isinstance(meant, ToAnswer):
            return meant
        try:
            async with asyncio.timeout(options.timeout):
                return await self._calls.answer(meant)
        except TimeoutError:
            return refused(f"It was stopped after {options.timeout} s: {_TOO_LONG}")

    async def _run(self, call: ToolRequest, meant: ToRun, options: TurnOptions) -> types.CallToolResult:
        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            if message == WAITING_FOR_PERSON:
                await _tell(options.events.on_waiting, call)
            else:
                await _tell(options.events.on_progress, call, progress, total, message)

        listened = options.events.on_progress is not None or options.events.on_waiting is not None
        return await self._calls.run(
            meant,
            CallLimit(options.timeout, _TOO_LONG, options.approval_timeout),
            on_progress=on_progress if listened else None,
            on_question=options.on_question,
        )

    # --- reading on

    def _within(self, text: str, budget: int) -> str:
        if len(text) <= budget:
            return text
        key = f"result-{secrets.token_hex(4)}"
        self._kept.put(key, text)
        return _piece_of(text, 0, budget, key)

    def _read_more(self) -> OwnTool:
        return own_tool(
            _READ_MORE,
            "Read more of a result",
            "Read on in a result that was cut, or read what a link in a result leads to. The end of such a result says "
            "how.",
            {
                "source": {"type": "string", "description": "What the result says: result-… or a link, a2c://…"},
                "offset": {"type": "integer", "minimum": 0, "description": "Go on at this character."},
            },
            self._read_on,
            required=["source"],
        )

    async def _read_on(self, arguments: Mapping[str, Any]) -> types.CallToolResult:
        source, offset = arguments["source"], arguments.get("offset") or 0
        more: list[types.ContentBlock] = []
        if (text := self._kept.get(source)) is None:
            if (address := self.office.addresses.parse(source)) is None or address.uri is None:
                return refused(f"Nothing is kept as {cut(source, 200)!r} any more: call the tool again.")
            contents = await self.office.agent.read_large_resource(address.computer, address.uri)
            text = "\n\n".join(item["text"] for item in contents if isinstance(item.get("text"), str))
            more = [_embedded(source, item) for item in contents if isinstance(item.get("blob"), str)]
        result = answered(_piece_of(text, offset, _budget.get(), source))
        return types.CallToolResult(content=[*result.content, *more]) if more else result


def _piece_of(text: str, offset: int, budget: int, source: str) -> str:
    """As much of a text as the budget allows, with a note about the rest."""
    return text_piece(text, offset, budget - _NOTE).with_note(f"{_READ_MORE} with source={source!r}")


def _embedded(uri: str, item: Mapping[str, Any]) -> types.ContentBlock:
    kind = item.get("mimeType")
    blob = types.BlobResourceContents(uri=uri, blob=item["blob"], mime_type=kind if isinstance(kind, str) else None)
    return types.EmbeddedResource(type="resource", resource=blob)


def model_office(agent: AsyncSMCPAgentClient) -> ModelOffice:
    """The models' view of this agent's office, made at the first use. Raises `ValueError` for an agent without a live
    view.
    """
    if not agent.is_live:
        raise ValueError("a model needs the live view of the office: make the agent without live=False")
    kept: ModelOffice | None = agent._for_models
    if kept is None:
        kept = agent._for_models = ModelOffice(agent)
    return kept


# --- the code of the program


async def _call_function(function: Function, arguments: Mapping[str, Any]) -> types.CallToolResult:
    try:
        outcome = await _called(partial(function, **arguments))
        text = outcome if isinstance(outcome, str) else json.dumps(outcome, ensure_ascii=False, default=str)
    except (Exception, SystemExit) as error:
        # This is the program's code. The model hears of the failure, and the other calls go on. A SystemExit would end
        # the event loop of a blocking agent.
        logger.warning("a function of the program failed", exc_info=True)
        return refused(f"{type(error).__name__}: {cut(str(error), 1000)}")
    return answered(text)


async def _tell(callback: Callable[..., Any] | None, *args: Any) -> None:
    if callback is None:
        return
    try:
        await _called(partial(callback, *args))
    except (Exception, SystemExit):
        # This is the program's code. Its mistake harms no call.
        logger.exception("a callback about a tool call failed")


async def _called(function: Callable[[], Any]) -> Any:
    """What a function returns, async or not. One that is not async may block, so it runs in a worker thread."""
    if inspect.iscoroutinefunction(function):
        return await function()
    outcome = await anyio.to_thread.run_sync(function, abandon_on_cancel=True)
    return await outcome if inspect.isawaitable(outcome) else outcome
