"""Tool calls and reads of resources as MCP has them, in both eras: what is sent, and in how many rounds.

A `ProtocolClient` sends them.
"""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import anyio
from mcp_types import (
    INTERNAL_ERROR,
    URL_ELICITATION_REQUIRED,
    CallToolResult,
    ElicitRequest,
    InputRequiredResult,
    InputResponses,
    ReadResourceResult,
)

from a2c_smcp.computer.calls.progress import CallProgress, OngoingCall
from a2c_smcp.computer.mcp_clients.elicitation.asking import NO_MODES, AskedCall, Questions
from a2c_smcp.computer.mcp_clients.mcp_error import MCPError
from a2c_smcp.computer.mcp_clients.protocol_client import ProtocolClient, not_supported
from a2c_smcp.computer.mcp_clients.task_calls import ClaimedTask, TaskCalls
from a2c_smcp.utils.backoff import backoff

__all__ = ["ProtocolRequests", "passed_meta", "trace_context"]

_OWN_META: Final = frozenset({"progressToken", "progress_token"})
_RESERVED_META: Final = "io.modelcontextprotocol/"
_TRACE: Final = ("traceparent", "tracestate", "baggage")

#: How many times a tool or a resource may ask before it has an answer.
_MOST_ROUNDS: Final = 10


class ProtocolRequests:
    """The tool calls and reads of one session, at most `max_calls` calls at a time."""

    def __init__(
        self,
        client: ProtocolClient,
        questions: Questions,
        tasks: TaskCalls,
        max_calls: int,
    ) -> None:
        self._client = client
        self._tasks = tasks
        self._questions = questions
        self._limit = anyio.Semaphore(max_calls, fast_acquire=True)
        self.is_modern = questions.is_modern = client.is_modern

    async def call_tool(
        self,
        name: str,
        params: dict[str, Any],
        progress: CallProgress | None,
        meta: Mapping[str, Any] | None = None,
        ongoing: OngoingCall | None = None,
    ) -> CallToolResult | None:
        """Call a tool until it has a result: it may ask something first, or want to be called again.

        Without `progress` the server is not asked to report any. `meta` becomes the `_meta` of the request, without
        the keys that are ours. Returns `None` if the `ongoing` call may not start any more when it has its turn:
        nothing was sent then.
        """
        sent = _SentCall(name, params, progress, passed_meta(meta))
        answers: InputResponses | None = None
        state: str | None = None
        said: CallToolResult | InputRequiredResult | ClaimedTask | MCPError
        async with self._limit:
            if ongoing is not None and ongoing.may_start is not None and not ongoing.may_start():
                return None
            call = self._questions.begin(progress)
            if ongoing is not None:
                call.ends = ongoing.tool_ends
            try:
                if self._tasks.are_required(name):
                    return await self._tasks.call(name, params, call, progress, sent.meta)
                for number in itertools.count(1):
                    try:
                        said = await self._send_call(sent, answers, state)
                    except MCPError as error:
                        if error.code != URL_ELICITATION_REQUIRED or self.is_modern:
                            raise
                        said = error
                    if isinstance(said, CallToolResult):
                        return said
                    if isinstance(said, ClaimedTask):
                        return await self._tasks.finish(name, said, call, progress)
                    if number > _MOST_ROUNDS:
                        break
                    answers, state = await self._answer(said, call, number)
                raise MCPError(INTERNAL_ERROR, "the tool asked 10 times, and wants to ask again")
            finally:
                self._questions.end(call)

    async def _answer(
        self, said: InputRequiredResult | MCPError, call: AskedCall, number: int
    ) -> tuple[InputResponses | None, str | None]:
        """Do what a tool wants before it is called again. Returns the answers and the state for that call."""
        if isinstance(said, MCPError):
            await self._questions.visit_required(said, call)
            return None, None
        if said.input_requests:
            return {**await self._questions.answer(said.input_requests, call)}, said.request_state
        # The tool asks nothing and wants to be called again: pause before that.
        await anyio.sleep(backoff(number, first=0.05, longest=0.25))
        return None, said.request_state

    async def _send_call(
        self, call: "_SentCall", answers: InputResponses | None, state: str | None
    ) -> CallToolResult | InputRequiredResult | ClaimedTask:
        request: dict[str, Any] = {"name": call.name, "arguments": call.params}
        if call.meta:
            request["_meta"] = call.meta
        if answers is not None:
            request["inputResponses"] = {
                key: answer.model_dump(mode="json", by_alias=True, exclude_none=True) for key, answer in answers.items()
            }
        if state is not None:
            request["requestState"] = state
        modes = self._questions.modes if self.is_modern else NO_MODES
        on_report = call.progress.report if call.progress is not None else None
        answer = await self._client.send("tools/call", request, modes, on_report)
        if answer.get("resultType") == "input_required":
            return InputRequiredResult.model_validate(answer, by_name=False)
        if self.is_modern and answer.get("resultType") == "task":
            return ClaimedTask.model_validate(answer, by_name=False)
        result = CallToolResult.model_validate(answer, by_name=False)
        if not result.is_error:
            await self._client.check_tool_result(call.name, result)
        return result

    async def read_resource(self, uri: str, meta: Mapping[str, Any] | None = None) -> ReadResourceResult:
        request: dict[str, Any] = {"uri": uri}
        if passed := passed_meta(meta):
            request["_meta"] = passed
        with self._questions.reading():
            for number in itertools.count(1):
                answer = await self._client.send("resources/read", request)
                if answer.get("resultType") != "input_required":
                    break
                if number > _MOST_ROUNDS:
                    raise MCPError(INTERNAL_ERROR, f"the resource asked {_MOST_ROUNDS} times, and wants to ask again")
                said = InputRequiredResult.model_validate(answer, by_name=False)
                request = {**request, **await self._unasked(said, number)}
        # Without the cache hints of the answer: they are of no use here, and some servers get them wrong.
        wanted = {key: answer[key] for key in ("contents", "_meta") if key in answer}
        return ReadResourceResult.model_validate(wanted, by_name=False)

    async def _unasked(self, said: InputRequiredResult, number: int) -> dict[str, Any]:
        """What a read is sent again with when the server wants to ask something: nobody is asked about it."""
        more: dict[str, Any] = {} if said.request_state is None else {"requestState": said.request_state}
        if not said.input_requests:
            await anyio.sleep(backoff(number, first=0.05, longest=0.25))
            return more
        for request in said.input_requests.values():
            if not isinstance(request, ElicitRequest):
                raise not_supported(request)
        return {**more, "inputResponses": {key: {"action": "cancel"} for key in said.input_requests}}


@dataclass(frozen=True, slots=True)
class _SentCall:
    """What a tool is called with, each time that it is called."""

    name: str
    params: dict[str, Any]
    progress: CallProgress | None
    meta: Mapping[str, Any]


def passed_meta(meta: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The `_meta` of a caller as an MCP server may get it: without the keys that belong to the session with that
    server.
    """
    return {
        key: value for key, value in (meta or {}).items() if key not in _OWN_META and not key.startswith(_RESERVED_META)
    }


def trace_context(meta: Mapping[str, Any] | None) -> Mapping[str, str] | None:
    """The part of a caller's `_meta` that goes on with every kind of request: the trace context of W3C."""
    found = {key: value for key in _TRACE if isinstance(value := (meta or {}).get(key), str) and len(value) <= 8192}
    return found or None
