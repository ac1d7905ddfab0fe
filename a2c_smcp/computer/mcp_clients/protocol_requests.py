"""Tool calls and reads of resources as MCP has them, in both eras: what is sent, and in how many rounds.

A `ProtocolClient` sends them.
"""

import itertools
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import anyio
from mcp_types import (
    INTERNAL_ERROR,
    URL_ELICITATION_REQUIRED,
    CallToolResult,
    ElicitRequest,
    InputRequiredResult,
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
    """The tool calls and reads of one session, at most `max_calls` calls at a time.

    `within` gives up what waits for more than one answer when the session ends. Then the dispatcher fails calls itself.
    """

    def __init__(
        self,
        client: ProtocolClient,
        questions: Questions,
        tasks: TaskCalls,
        max_calls: int,
        within: Callable[[Awaitable[Any]], Awaitable[Any]],
    ) -> None:
        self._within = within
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
        first: dict[str, Any] = {"name": name, "arguments": params}
        if meta and (passed := passed_meta(meta)):
            first["_meta"] = passed
        try:
            self._limit.acquire_nowait()
        except anyio.WouldBlock:
            await self._limit.acquire()
        try:
            if ongoing is not None and (may_start := ongoing.may_start) is not None and not may_start():
                return None
            call = self._questions.begin(progress, ongoing)
            if ongoing is not None:
                call.ends = ongoing.tool_ends
            try:
                if name in self._tasks.required:
                    return await self._within(self._tasks.call(first, call, progress))  # type: ignore[no-any-return]
                return await self._until_answered(first, call, progress)
            finally:
                self._questions.end(call)
        finally:
            self._limit.release()

    async def _until_answered(
        self, first: dict[str, Any], call: AskedCall, progress: CallProgress | None
    ) -> CallToolResult:
        name, request = first["name"], first
        on_report = None if progress is None else progress.report
        for number in itertools.count(1):
            modes = self._questions.modes(call.call) if self.is_modern else NO_MODES
            said: InputRequiredResult | MCPError
            try:
                answer = await self._client.send("tools/call", request, modes, on_report)
            except MCPError as error:
                if error.code != URL_ELICITATION_REQUIRED or self.is_modern:
                    raise
                said = error
            else:
                kind = answer.get("resultType")
                if kind == "task" and self.is_modern:
                    claimed = ClaimedTask.model_validate(answer, by_name=False)
                    return await self._within(self._tasks.finish(name, claimed, call, progress))  # type: ignore[no-any-return]
                if kind != "input_required":
                    result = CallToolResult.model_validate(answer, by_name=False)
                    if result.is_error or name in self._client.schemas.unchecked:
                        return result
                    if name not in self._client.schemas:
                        await self._within(self._client.list_tools())
                    self._client.schemas.check(name, result)
                    return result
                said = InputRequiredResult.model_validate(answer, by_name=False)
            if number > _MOST_ROUNDS:
                break
            request = {**first, **await self._within(self._answer(said, call, number))}
        raise MCPError(INTERNAL_ERROR, f"the tool asked {_MOST_ROUNDS} times, and wants to ask again")

    async def _answer(self, said: InputRequiredResult | MCPError, call: AskedCall, number: int) -> dict[str, Any]:
        """Do what a tool wants before it is called again. Returns what that call says besides."""
        if isinstance(said, MCPError):
            await self._questions.visit_required(said, call)
            return {}
        more: dict[str, Any] = {} if said.request_state is None else {"requestState": said.request_state}
        if not said.input_requests:
            # The tool asks nothing and wants to be called again: pause before that.
            await anyio.sleep(backoff(number, first=0.05, longest=0.25))
            return more
        answers = await self._questions.answer(said.input_requests, call)
        written = {key: each.model_dump(mode="json", by_alias=True, exclude_none=True) for key, each in answers.items()}
        return {**more, "inputResponses": written}

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
