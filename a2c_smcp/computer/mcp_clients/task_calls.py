"""Tool calls that an MCP server runs as tasks, in both designs of MCP: from the server's handle to the result.

    until 2025-11-25    the caller asks for a task, polls `tasks/get`, and fetches the result with `tasks/result`; while
                        `tasks/result` waits, the task may ask a person
    since 2026-07-28    the server decides; `tasks/get` has the questions of the task and its result, and `tasks/update`
                        takes the answers

For everybody else it is an ordinary call: one request, progress, one result. Knows one session.
"""

import itertools
import math
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final, Literal

import anyio
import mcp_types as types
from pydantic import AliasChoices, BaseModel, Field

from a2c_smcp.computer.calls.progress import CallProgress
from a2c_smcp.computer.mcp_clients.elicitation.asking import AskedCall, Questions
from a2c_smcp.computer.mcp_clients.mcp_error import InvalidAnswerError, MCPError
from a2c_smcp.computer.mcp_clients.protocol_client import ProtocolClient, ServerSaid
from a2c_smcp.utils.backoff import backoff

__all__ = ["ClaimedTask", "TaskCalls", "TaskNews", "poll_pause"]


@dataclass(frozen=True, slots=True)
class _TaskBounds:
    """How a task is followed, in seconds unless it says otherwise."""

    shortest_pause: float = 0.05
    longest_pause: float = 10.0
    keep: float = 60.0
    """How much longer than the call the server is asked to keep the task."""
    longest_keep: float = 86_400.0
    """What a call without a time limit asks for."""
    cancel: float = 1.0
    """How long the server has to take the cancel of a task."""
    rounds: int = 10
    """How many times a task may ask questions."""


_MOST: Final = _TaskBounds()


def poll_pause(asked_ms: float | None, number: int) -> float:
    """How many seconds to wait before the next poll. The server may ask for a pause, within bounds."""
    if asked_ms is None or not math.isfinite(asked_ms):
        return backoff(number, first=0.1, longest=2.0)
    return min(max(asked_ms / 1000, _MOST.shortest_pause), _MOST.longest_pause)


# --- what a server says


class ClaimedTask(types.Result):
    """The answer to a call since 2026-07-28: the server runs it as a task."""

    result_type: Literal["task"] = "task"
    task_id: str = Field(min_length=1, max_length=1024)


class _TaskState(BaseModel):
    """A task, as both designs write it."""

    task_id: str = Field(validation_alias="taskId", min_length=1, max_length=1024)
    status: types.TaskStatus
    message: str | None = Field(None, validation_alias="statusMessage")
    pause: float | None = Field(None, validation_alias=AliasChoices("pollIntervalMs", "pollInterval"))

    @property
    def has_ended(self) -> bool:
        return self.status in ("completed", "failed", "cancelled")


class TaskNews:
    """What a server says of its tasks by itself."""

    def __init__(self) -> None:
        self._reports: dict[str, CallProgress] = {}
        self._tokens = itertools.count(1)
        self._changed: dict[str, anyio.Event] = {}

    def on_message(self, message: ServerSaid) -> None:
        """A task has changed; or it reports progress over HTTP, where no request waits for that."""
        match message:
            case types.TaskStatusNotification(params=task):
                if (changed := self._changed.get(task.task_id)) is not None:
                    changed.set()
            case types.ProgressNotification(params=said):
                self.report(said.progress_token, said.progress, said.total, said.message)

    def report(self, token: object, progress: float, total: float | None, message: str | None) -> None:
        """Take the progress that no request waits for. It may be that of a task."""
        if isinstance(token, str) and (listener := self._reports.get(token)) is not None:
            listener.report(progress, total, message)

    @contextmanager
    def reporting(self, progress: CallProgress | None) -> Iterator[dict[str, Any]]:
        """The `_meta` of a request for a task whose reports go to `progress` inside the block."""
        if progress is None:
            yield {}
            return
        token = f"task-{next(self._tokens)}"
        self._reports[token] = progress
        try:
            yield {"_meta": {"progressToken": token}}
        finally:
            del self._reports[token]

    async def pause(self, task_id: str, seconds: float) -> None:
        """Wait so long, or until the server says that the task has changed."""
        changed = self._changed[task_id] = anyio.Event()
        try:
            with anyio.move_on_after(seconds):
                await changed.wait()
                await anyio.sleep(_MOST.shortest_pause)  # a server may say so without end
        finally:
            self._changed.pop(task_id, None)


# --- the calls


class TaskCalls:
    """The tasks of one session."""

    def __init__(self, client: ProtocolClient, questions: Questions, news: TaskNews) -> None:
        self._client = client
        self._questions = questions
        self._news = news
        self.required: frozenset[str] = frozenset()
        """The tools that can only be run as tasks that the caller asks for. Since 2026-07-28 no tool says so."""

    def listed(self, tools: Iterable[types.Tool]) -> None:
        """Note which of the server's tools can only be run as tasks."""
        capability: object = self._client.server_capabilities
        for part in ("tasks", "requests", "tools", "call"):
            capability = getattr(capability, part, None)
        self.required = frozenset(
            tool.name
            for tool in tools
            if capability is not None and tool.execution is not None and tool.execution.task_support == "required"
        )

    async def call(
        self, wanted: Mapping[str, Any], call: AskedCall, progress: CallProgress | None
    ) -> types.CallToolResult:
        """Run a tool as a task, as until 2025-11-25. `wanted` are the parameters of an ordinary call."""
        name = wanted["name"]
        with self._news.reporting(progress) as meta:
            request = {**wanted, "task": {"ttl": _keep_ms(call.ends)}, **meta}
            if passed := wanted.get("_meta"):
                request["_meta"] = {**passed, **meta.get("_meta", {})}
            answer = await self._client.send("tools/call", request)
            if "task" not in answer:
                return await self._checked(name, answer)
            task_id = _TaskState.model_validate(answer["task"]).task_id
            async with self._following(task_id, call), aclosing(self._states(task_id, call, progress)) as states:
                async for state, _ in states:
                    if state.has_ended or state.status == "input_required":
                        break
                # This waits for the end of the task. The task asks its questions meanwhile.
                return await self._checked(name, await self._send("tasks/result", task_id, call))

    async def finish(
        self, name: str, claimed: ClaimedTask, call: AskedCall, progress: CallProgress | None
    ) -> types.CallToolResult:
        """The result of a call that the server runs as a task, as since 2026-07-28."""
        task_id, answered, rounds = claimed.task_id, set[str](), 0
        async with self._following(task_id, call), aclosing(self._states(task_id, call, progress)) as states:
            async for state, answer in states:
                if state.has_ended:
                    return await self._outcome(name, state, answer)
                asked = {key: request for key, request in _questions_in(answer).items() if key not in answered}
                if not asked:
                    continue
                rounds += 1
                if rounds > _MOST.rounds:
                    break
                answers = await self._questions.answer(asked, call)
                given = {
                    key: each.model_dump(mode="json", by_alias=True, exclude_none=True) for key, each in answers.items()
                }
                await self._send("tasks/update", task_id, call, inputResponses=given)
                answered |= asked.keys()
            raise MCPError(types.INTERNAL_ERROR, f"the task asked {_MOST.rounds} times, and wants to ask again")

    async def _states(
        self, task_id: str, call: AskedCall, progress: CallProgress | None
    ) -> AsyncGenerator[tuple[_TaskState, dict[str, Any]], None]:
        """What the server says about the task, again and again. `progress` is told what it says in words."""
        message = None
        for number in itertools.count(1):
            answer = await self._send("tasks/get", task_id, call)
            state = _TaskState.model_validate(answer)
            if state.task_id != task_id:
                raise InvalidAnswerError
            if progress is not None and state.message is not None and state.message != message:
                message = state.message
                progress.status(message)
            yield state, answer
            await self._news.pause(task_id, poll_pause(state.pause, number))

    async def _outcome(self, name: str, state: _TaskState, answer: Mapping[str, Any]) -> types.CallToolResult:
        match state.status, answer.get("result"):
            case "completed", dict() as result:
                return await self._checked(name, result)
            case "failed", _:
                raise MCPError.of(types.ErrorData.model_validate(answer.get("error")))
            case "cancelled", _:
                raise MCPError(types.INTERNAL_ERROR, "the server cancelled the task")
        raise InvalidAnswerError

    async def _checked(self, name: str, answer: Mapping[str, Any]) -> types.CallToolResult:
        result = types.CallToolResult.model_validate(answer, by_name=False)
        if not result.is_error:
            await self._client.check_tool_result(name, result)
        return result

    @asynccontextmanager
    async def _following(self, task_id: str, call: AskedCall) -> AsyncGenerator[None, None]:
        """Cancel the task if the block ends with an error, or is cancelled."""
        call.task_id = task_id
        try:
            yield
        except BaseException:
            with anyio.move_on_after(_MOST.cancel, shield=True), suppress(Exception):
                # Whatever keeps the server from taking it, the call has ended.
                await self._send("tasks/cancel", task_id, call)
            raise

    async def _send(self, method: str, task_id: str, call: AskedCall, **more: Any) -> dict[str, Any]:
        return await self._client.request(method, {"taskId": task_id, **more}, self._questions.modes(call.call))


def _questions_in(answer: Mapping[str, Any]) -> types.InputRequests:
    if answer.get("status") != "input_required":
        return {}
    asked = {"resultType": "input_required", "inputRequests": answer.get("inputRequests")}
    return types.InputRequiredResult.model_validate(asked, by_name=False).input_requests or {}


def _keep_ms(ends: float) -> int:
    """How long the server is asked to keep the task of a call that ends by then: longer than the call may take."""
    left = ends - anyio.current_time() + _MOST.keep
    return int(min(max(left, _MOST.keep), _MOST.longest_keep) * 1000)
