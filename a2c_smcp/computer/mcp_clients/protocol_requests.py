"""Tool calls and reads of resources as MCP has them, in both eras: what is sent, and in how many rounds.

mcp's client makes the requests, over the dispatcher of its transport. Over a pipe, tool calls and reads go to that
dispatcher directly: the models that mcp makes of a call would cost half as much as all the rest of it.
"""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, cast

import anyio
from mcp import MCPError
from mcp.client.client import Client
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    PROTOCOL_VERSION_META_KEY,
    URL_ELICITATION_REQUIRED,
    CallToolResult,
    InputRequiredResult,
    InputResponses,
    ReadResourceResult,
    RequestParamsMeta,
)

from a2c_smcp.computer.calls.progress import CallProgress, OngoingCall
from a2c_smcp.computer.mcp_clients.elicitation.asking import ALL_MODES, NO_MODES, AskedCall, QuestionMode, Questions
from a2c_smcp.computer.mcp_clients.elicitation.declaring import capability
from a2c_smcp.computer.mcp_clients.mcp_internals import MODERN_PROTOCOL_VERSIONS, check_tool_result
from a2c_smcp.computer.mcp_clients.pipes.dispatcher import PipeDispatcher
from a2c_smcp.computer.mcp_clients.task_calls import TASKS, ClaimedTask, TaskCalls
from a2c_smcp.utils.backoff import backoff
from a2c_smcp.wire import codec

__all__ = ["ProtocolRequests", "passed_meta", "trace_context"]

_OWN_META: Final = frozenset({"progressToken", "progress_token"})
_RESERVED_META: Final = "io.modelcontextprotocol/"
_TRACE: Final = ("traceparent", "tracestate", "baggage")

_EVERY: Final[tuple[frozenset[QuestionMode], ...]] = (NO_MODES, frozenset({"form"}), frozenset({"url"}), ALL_MODES)


class ProtocolRequests:
    """The tool calls and reads of one session, at most `max_calls` calls at a time."""

    def __init__(
        self,
        client: Client,
        dispatcher: PipeDispatcher | None,
        questions: Questions,
        tasks: TaskCalls,
        max_calls: int,
    ) -> None:
        self._client = client
        self._tasks = tasks
        self._dispatcher = dispatcher
        self._questions = questions
        self._limit = anyio.Semaphore(max_calls, fast_acquire=True)
        self.is_modern = questions.is_modern = client.protocol_version in MODERN_PROTOCOL_VERSIONS
        self._stamps = {modes: _stamp(client, capability(modes)) if self.is_modern else {} for modes in _EVERY}
        self._stamp = self._stamps[NO_MODES]

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
                    if number > 10:
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
        if self._dispatcher is None:
            return await self._send_by_mcp(call, answers, state)
        on_report = call.progress.report if call.progress is not None else None
        stamp = self._stamps[self._questions.modes]
        request = {"name": call.name, "arguments": call.params, **_with_meta(stamp, call.meta)}
        if answers is not None:
            request["inputResponses"] = {
                key: answer.model_dump(mode="json", by_alias=True, exclude_none=True) for key, answer in answers.items()
            }
        if state is not None:
            request["requestState"] = state
        answer = await self._dispatcher.send_raw_request("tools/call", request, on_report=on_report)
        if answer.get("resultType") == "input_required":
            return InputRequiredResult.model_validate(answer, by_name=False)
        if self.is_modern and answer.get("resultType") == "task":
            return ClaimedTask.model_validate(answer, by_name=False)
        result = CallToolResult.model_validate(answer, by_name=False)
        if not result.is_error:
            await check_tool_result(self._client, call.name, result)
        return result

    async def _send_by_mcp(
        self, call: "_SentCall", answers: InputResponses | None, state: str | None, *, is_again: bool = False
    ) -> CallToolResult | InputRequiredResult | ClaimedTask:
        try:
            said = await self._client.session.call_tool(
                call.name,
                call.params,
                progress_callback=call.progress.take if call.progress is not None else None,
                input_responses=answers,
                request_state=state,
                meta=cast("RequestParamsMeta", dict(call.meta)) if call.meta else None,
                allow_input_required=True,
                allow_claimed=True,
            )
            assert isinstance(said, CallToolResult | InputRequiredResult | ClaimedTask), "nothing else is claimed"
            return said
        except UnicodeEncodeError:
            # pydantic cannot write half a character (a lone surrogate) in the name of a nested field. So it is
            # replaced.
            mended = codec.loads(codec.dumps_well_formed({"params": call.params, "meta": dict(call.meta)}))
            return await self._send_by_mcp(replace(call, **mended), answers, state, is_again=is_again)
        except MCPError as error:
            if error.code != HEADER_MISMATCH or is_again:
                raise
        # The headers of a call follow the schema of its tool. The schema has changed, so mcp must list it again.
        await self._list_until(call.name)
        return await self._send_by_mcp(call, answers, state, is_again=True)

    async def _list_until(self, tool: str) -> None:
        cursor: str | None = None
        for _ in range(100):  # pages: a server may list without end
            page = await self._client.list_tools(cursor=cursor)
            cursor = page.next_cursor
            if cursor is None or any(listed.name == tool for listed in page.tools):
                return

    async def read_resource(self, uri: str, meta: Mapping[str, Any] | None = None) -> ReadResourceResult:
        passed = passed_meta(meta)
        typed = cast("RequestParamsMeta", dict(passed)) if passed else None
        with self._questions.reading():
            if self._dispatcher is None:
                return await self._client.read_resource(uri, meta=typed)
            request = {"uri": uri, **_with_meta(self._stamp, passed)}
            answer = await self._dispatcher.send_raw_request("resources/read", request)
            if answer.get("resultType") == "input_required":
                # Reading changes nothing, so mcp may begin again.
                return await self._client.read_resource(uri, meta=typed)
            # Without the cache hints of the answer: they are of no use here, and some servers get them wrong.
            wanted = {key: answer[key] for key in ("contents", "_meta") if key in answer}
            return ReadResourceResult.model_validate(wanted, by_name=False)


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


def _with_meta(stamp: Mapping[str, Any], meta: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"_meta": {**meta, **stamp.get("_meta", {})}} if meta else stamp


def _stamp(client: Client, capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """What each request carries besides its parameters since 2026-07-28: who asks, in which version, with which
    capabilities.
    """
    info = client.client_info
    return {
        "_meta": {
            PROTOCOL_VERSION_META_KEY: client.protocol_version,
            CLIENT_INFO_META_KEY: info.model_dump(mode="json", by_alias=True, exclude_none=True) if info else {},
            CLIENT_CAPABILITIES_META_KEY: {**capabilities, "extensions": {TASKS: {}}},
        }
    }
