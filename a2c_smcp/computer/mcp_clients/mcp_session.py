"""A session with a running server, and the requests inside it. Knows how to ask; who starts and stops servers is the
connection's.

Requests are made by mcp's client, over the dispatcher that the wire gave it. Tool calls and reads over a pipe go to
that dispatcher directly: the models that mcp makes of a call would cost half as much as all the rest of it.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

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
)

from a2c_smcp.computer.calls.progress import CallProgress
from a2c_smcp.computer.mcp_clients.change_feed import ChangeFeed
from a2c_smcp.computer.mcp_clients.elicitation.asking import AskedCall, Questions
from a2c_smcp.computer.mcp_clients.elicitation.declaring import QUESTIONS
from a2c_smcp.computer.mcp_clients.mcp_internals import (
    MODERN_PROTOCOL_VERSIONS,
    ProgressFnT,
    check_tool_result,
    says_gone,
)
from a2c_smcp.computer.mcp_clients.transports import ServerTransport
from a2c_smcp.utils.backoff import backoff
from a2c_smcp.wire import codec

__all__ = ["MCPSession"]

#: How many times a tool may ask before it answers, or want to be called again.
_MOST_ROUNDS: Final = 10
_MOST_PAGES: Final = 100


class MCPSession:
    """A running session. It takes requests until it ends."""

    def __init__(
        self, client: Client, feed: ChangeFeed, wire: ServerTransport, questions: Questions, max_calls: int
    ) -> None:
        self.client = client
        self.questions = questions
        self.feed = feed
        self.wire = wire
        self.over = anyio.Event()
        self.ending: str | None = None
        self.since: float | None = None
        """Since when it takes requests."""
        self._limit = anyio.Semaphore(max_calls, fast_acquire=True)
        self._requests: set[asyncio.Timeout] = set()
        self._drained = anyio.Event()
        self._retiring: str | None = None
        self.dispatcher = wire.process.dispatcher if wire.process else None
        """For requests without mcp's models, over a pipe."""
        self.is_modern = questions.is_modern = client.protocol_version in MODERN_PROTOCOL_VERSIONS
        self._stamp = _stamp(client, {}) if self.is_modern else {}
        self._asking_stamp = _stamp(client, QUESTIONS) if self.is_modern else {}

    # --- asking

    async def call_tool(
        self, name: str, params: dict[str, Any], progress: CallProgress | None = None
    ) -> CallToolResult:
        """Without `progress` the server is not asked to report any."""
        async with self._limit:
            call = self.questions.begin(progress)
            try:
                result = await self._send_call(name, params, progress)
                return result if isinstance(result, CallToolResult) else await self._go_on(name, params, call, result)
            except MCPError as error:
                if error.code != URL_ELICITATION_REQUIRED or self.is_modern:
                    raise
                return await self._go_on(name, params, call, error)
            finally:
                self.questions.end(call)

    async def _go_on(
        self, name: str, params: dict[str, Any], call: AskedCall, said: InputRequiredResult | MCPError
    ) -> CallToolResult:
        """Call a tool until it has a result: it asked something first, or wants to be called again."""
        answers: InputResponses | None = None
        state: str | None = None
        for number in range(_MOST_ROUNDS):
            if isinstance(said, MCPError):
                await self.questions.visit_required(said, call)
            elif said.input_requests:
                state, answers = said.request_state, {**await self.questions.answer(said.input_requests, call)}
            else:
                state, answers = said.request_state, None
                # Before a tool is called again that asked nothing, in seconds.
                await anyio.sleep(backoff(number + 1, first=0.05, longest=0.25))
            try:
                result = await self._send_call(name, params, call.progress, answers, state)
            except MCPError as error:
                if error.code != URL_ELICITATION_REQUIRED or self.is_modern:
                    raise
                said = error
            else:
                if isinstance(result, CallToolResult):
                    return result
                said = result
        raise MCPError(INTERNAL_ERROR, f"the tool asked {_MOST_ROUNDS} times, and wants to ask again")

    async def _send_call(
        self,
        name: str,
        params: dict[str, Any],
        progress: CallProgress | None,
        answers: InputResponses | None = None,
        state: str | None = None,
    ) -> CallToolResult | InputRequiredResult:
        if self.dispatcher is None:
            return await self._send_by_mcp(name, params, progress, answers, state)
        on_report = progress.report if progress is not None else None
        stamp = self._asking_stamp if self.questions.can_ask else self._stamp
        request = {"name": name, "arguments": params, **stamp}
        if answers is not None:
            request["inputResponses"] = {
                key: answer.model_dump(mode="json", by_alias=True, exclude_none=True) for key, answer in answers.items()
            }
        if state is not None:
            request["requestState"] = state
        answer = await self.dispatcher.send_raw_request("tools/call", request, on_report=on_report)
        if answer.get("resultType") == "input_required":
            return InputRequiredResult.model_validate(answer, by_name=False)
        result = CallToolResult.model_validate(answer, by_name=False)
        if not result.is_error:
            await check_tool_result(self.client, name, result)
        return result

    async def _send_by_mcp(
        self,
        name: str,
        params: dict[str, Any],
        progress: CallProgress | None,
        answers: InputResponses | None,
        state: str | None,
        *,
        is_again: bool = False,
    ) -> CallToolResult | InputRequiredResult:
        try:
            return await self.client.session.call_tool(
                name,
                params,
                progress_callback=_listener(progress),
                input_responses=answers,
                request_state=state,
                allow_input_required=True,
            )
        except UnicodeEncodeError:
            # Half a character in the name of a field within another, which pydantic does not write.
            params = codec.loads(codec.dumps_well_formed(params))
            return await self._send_by_mcp(name, params, progress, answers, state, is_again=is_again)
        except MCPError as error:
            if error.code != HEADER_MISMATCH or is_again:
                raise
        # The headers of a call follow the schema of its tool, which is another one by now.
        await self._list_again(name)
        return await self._send_by_mcp(name, params, progress, answers, state, is_again=True)

    async def _list_again(self, tool: str) -> None:
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            page = await self.client.list_tools(cursor=cursor)
            cursor = page.next_cursor
            if cursor is None or any(listed.name == tool for listed in page.tools):
                return

    async def read_resource(self, uri: str) -> ReadResourceResult:
        with self.questions.reading():
            return await self._read(uri)

    async def _read(self, uri: str) -> ReadResourceResult:
        if self.dispatcher is None:
            return await self.client.read_resource(uri)
        answer = await self.dispatcher.send_raw_request("resources/read", {"uri": uri, **self._stamp})
        if answer.get("resultType") == "input_required":
            return await self.client.read_resource(uri)  # reading changes nothing: from the start, as mcp does it
        # The contents without their cache hints: those are of no use here, and some servers get them wrong.
        wanted = {key: answer[key] for key in ("contents", "_meta") if key in answer}
        return ReadResourceResult.model_validate(wanted, by_name=False)

    # --- ending

    def end(self, how: str) -> None:
        """Refuse new requests and give up those that run. The reason of the first call counts."""
        if self.ending is None:
            self.ending = how
            self.over.set()
            for limit in self._requests:
                if not limit.expired():
                    limit.reschedule(0)

    def retire(self, how: str) -> None:
        """End as soon as no request runs."""
        self._retiring = how
        if not self._requests:
            self.end(how)

    @property
    def has_retired(self) -> bool:
        return self.ending is not None and self.ending == self._retiring

    def is_ended_by(self, error: Exception) -> bool:
        """Whether an error of a request means that the session is over, as it is from now on."""
        if isinstance(error, MCPError):
            gone = says_gone(error)
        else:
            gone = isinstance(error, anyio.ClosedResourceError | anyio.BrokenResourceError)
        if gone:
            self.end("ended the connection")
        # Once it is over, mcp complains that its client was closed.
        return gone or (isinstance(error, RuntimeError) and self.ending is not None)

    def enter(self, limit: asyncio.Timeout) -> None:
        self._requests.add(limit)

    def leave(self, limit: asyncio.Timeout) -> None:
        self._requests.discard(limit)
        if not self._requests:
            self._drained.set()
            if self._retiring is not None:
                self.end(self._retiring)

    async def drained(self) -> None:
        if self._requests:
            self._drained = anyio.Event()
            await self._drained.wait()


def _listener(progress: CallProgress | None) -> ProgressFnT | None:
    return progress.take if progress is not None else None


def _stamp(client: Client, capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """What a request must carry besides its parameters, since 2026-07-28: who asks, in which version, and what we can
    do.
    """
    info = client.client_info
    return {
        "_meta": {
            PROTOCOL_VERSION_META_KEY: client.protocol_version,
            CLIENT_INFO_META_KEY: info.model_dump(mode="json", by_alias=True, exclude_none=True) if info else {},
            CLIENT_CAPABILITIES_META_KEY: dict(capabilities),
        }
    }
