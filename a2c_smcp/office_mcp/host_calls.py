"""The tool calls of MCP hosts: what a host can be asked while its call runs, and where a call waits for the answer.

before 2026-07-28    the host is asked while its request waits
since 2026-07-28     the answer to its request asks (`input_required`), and the host sends the request again with what
                     its person said. Meanwhile the call waits here. The `requestState` of the answer holds its key:
                     sealed, for this tool, these arguments and this owner, and good for one time
"""

import asyncio
import hashlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity, authenticated_principal
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from a2c_smcp.agent.questions import QuestionAnswer
from a2c_smcp.mcp_server.tools import ToolCall, ToolResult
from a2c_smcp.office_mcp.host_tasks import HostTasks, TaskTimes
from a2c_smcp.office_mcp.hosted_calls import (
    CANCEL,
    CallWork,
    HostedCall,
    HostSide,
    elicit_params,
    read_answer,
)
from a2c_smcp.smcp import ToolQuestion

__all__ = ["HostCalls", "owner_of", "question_modes"]


@dataclass(frozen=True, slots=True)
class _ParkingBounds:
    """How many calls wait for answers of hosts, and for how many seconds."""

    calls: int = 64
    seconds: float = 600.0


_MOST: Final = _ParkingBounds()


def owner_of(context: ServerRequestContext[Any, Any]) -> str | None:
    """Who made a request: the user that the HTTP server knows, or the owner of the credentials; `None` on a pipe, which
    has one client.
    """
    if (principal := authenticated_principal(context)) is not None:
        return principal
    shown = None if context.request is None else context.request.headers.get("authorization")
    return None if shown is None else hashlib.sha256(shown.encode("utf-8", "surrogatepass")).hexdigest()


def question_modes(capabilities: types.ClientCapabilities | None) -> tuple[str, ...]:
    """The questions that a host can put to its person. Without any mode it means forms: the first version had no
    others.
    """
    if capabilities is None or (can := capabilities.elicitation) is None:
        return ()
    modes = [mode for mode, each in (("form", can.form), ("url", can.url)) if each is not None]
    return tuple(modes) or ("form",)


class HostCalls:
    """Runs the calls of hosts. `intro` says in words who asks a question."""

    def __init__(self, intro: Callable[[ToolQuestion], str], times: TaskTimes | None = None) -> None:
        self._intro = intro
        self._tasks = HostTasks(owner_of, intro, times)
        self._parked: dict[str, tuple[HostedCall, asyncio.TimerHandle]] = {}

    def serve(self, server: "Server[Any]") -> None:
        """Let a server seal the states of parked calls, with a key of this process, and open them again. It also
        answers the methods of tasks.
        """
        security = RequestStateSecurity(keys=[secrets.token_bytes(32)], ttl=_MOST.seconds, bind_principal=owner_of)
        server.middleware.append(RequestStateBoundary(security, default_audience=server.name))
        self._tasks.serve(server)

    async def run(self, call: ToolCall, work: CallWork) -> ToolResult:
        """Run a call of a host, to its result or to its next question."""
        context = call.context
        modes = question_modes(context.session.client_capabilities)
        listener = call.progress if call.wants_progress else None
        if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            return await work(HostSide(listener, partial(self._ask_now, context) if modes else None, modes))
        takes_tasks = self._tasks.are_taken_by(context)
        if not modes and not takes_tasks:
            return await work(HostSide(listener))
        running = HostedCall(work, modes, reports=takes_tasks or call.wants_progress)
        context.lifespan_context.tasks.start_soon(running.run)
        return await self._follow(call, running)

    async def resume(self, call: ToolCall) -> ToolResult:
        """Go on with a call that waits for the answers in this request. Raises `MCPError` if there is none."""
        running = self._take(call.params.request_state or "")
        if running is None:
            # In the words of mcp's own refusal of a state: nobody learns which states there were.
            reason = {"reason": "invalid_request_state"}
            raise MCPError(types.INVALID_PARAMS, "Invalid or expired requestState", reason)
        given = call.params.input_responses or {}
        running.answer({key: read_answer(answer) for key, answer in given.items()})
        return await self._follow(call, running)

    async def _follow(self, call: ToolCall, running: HostedCall) -> ToolResult:
        """Wait for the end of a call, for its questions, or until the host is given a task."""
        limit = self._tasks.patience(call.context)
        running.listener = call.progress if call.wants_progress else None
        try:
            while True:
                with anyio.move_on_after(limit):
                    await running.wait()
                if running.has_ended:
                    return running.result()
                if questions := running.questions:
                    if len(self._parked) < _MOST.calls:
                        return self._park(running, questions)
                    running.answer(dict.fromkeys(questions, CANCEL))
                elif (task := self._tasks.create(running, call.context)) is not None:
                    return task
                else:
                    limit = None
        except anyio.get_cancelled_exc_class():
            running.cancel()  # the host has gone, or took its call back
            raise
        finally:
            running.listener = None

    # --- parking

    def _park(self, running: HostedCall, questions: dict[str, ToolQuestion]) -> types.InputRequiredResult:
        key = secrets.token_urlsafe(24)
        timer = asyncio.get_running_loop().call_later(_MOST.seconds, self._expire, key)
        self._parked[key] = (running, timer)
        asked: types.InputRequests = {
            question_id: types.ElicitRequest(params=elicit_params(question, self._intro(question)))
            for question_id, question in questions.items()
        }
        return types.InputRequiredResult(input_requests=asked, request_state=key)

    def _take(self, key: str) -> HostedCall | None:
        if (parked := self._parked.pop(key, None)) is None:
            return None
        running, timer = parked
        timer.cancel()
        return running

    def _expire(self, key: str) -> None:
        if (running := self._take(key)) is not None:
            running.cancel()

    # --- before 2026-07-28

    async def _ask_now(self, context: ServerRequestContext[Any, Any], question: ToolQuestion) -> QuestionAnswer:
        params, session = elicit_params(question, self._intro(question)), context.session
        try:
            if isinstance(params, types.ElicitRequestURLParams):
                answer = await session.elicit_url(
                    params.message, params.url, params.elicitation_id or "", context.request_id
                )
            else:
                answer = await session.elicit_form(params.message, params.requested_schema, context.request_id)
        except (MCPError, ValidationError):
            return CANCEL  # the host cannot ask after all, or answers something else
        return QuestionAnswer(answer.action, answer.content)
