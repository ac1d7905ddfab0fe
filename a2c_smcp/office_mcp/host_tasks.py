"""MCP's extension for tasks, for hosts of 2026-07-28: a call that takes long is answered with a task, which the host
polls. So a call that outlives the host's own time limit can be picked up again.

A task belongs to the owner of the request that began it. Its id cannot be guessed, and nothing lists tasks.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Literal, cast

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import Field

from a2c_smcp.mcp_server.tools import ToolResult
from a2c_smcp.office_mcp.hosted_calls import HostedCall, elicit_params, read_answer
from a2c_smcp.smcp import ToolQuestion
from a2c_smcp.utils.bounded import BoundedDict
from a2c_smcp.utils.json_sizes import weight

__all__ = ["TASKS", "HostTasks", "TaskTimes"]

logger = logging.getLogger(__name__)

#: MCP's name of the extension.
TASKS: Final = "io.modelcontextprotocol/tasks"

_Context = ServerRequestContext[Any, Any]


@dataclass(frozen=True, slots=True)
class TaskTimes:
    """When a call becomes a task, how long the task is kept, and how often to poll it, in seconds."""

    patience: float = 3.0
    """Less than any host's own limit that we know of."""
    keep: float = 3600.0
    """From its beginning. A call that still runs then is cancelled."""
    poll: float = 1.0


@dataclass(frozen=True, slots=True)
class _HostTaskBounds:
    tasks: int = 64
    results: int = 64 * 1024 * 1024
    """About how many bytes of results are kept."""


_MOST: Final = _HostTaskBounds()


class _TaskParams(types.RequestParams):
    task_id: str = Field(max_length=256)


class _UpdateParams(_TaskParams):
    input_responses: dict[str, Any] = Field(max_length=1000)


class _CreatedTask(types.Result):
    """What a call is answered with instead of its result."""

    result_type: Literal["task"] = "task"
    task_id: str
    status: str
    status_message: str | None
    created_at: str
    last_updated_at: str
    ttl_ms: int
    poll_interval_ms: int


@dataclass(slots=True, eq=False)
class _HostTask:
    running: HostedCall
    owner: str | None
    expiry: asyncio.TimerHandle
    created: str = field(default_factory=lambda: _now())
    updated: str = field(default_factory=lambda: _now())
    seen: str = ""
    """The state at the last poll, to say when it changed."""


class HostTasks:
    """The tasks of all hosts. `owner` says who made a request, `intro` who asks a question, in words."""

    def __init__(
        self,
        owner: Callable[[_Context], str | None],
        intro: Callable[[ToolQuestion], str],
        times: TaskTimes | None = None,
    ) -> None:
        self._owner = owner
        self._intro = intro
        self._times = times or TaskTimes()
        self._tasks: dict[str, _HostTask] = {}
        self._ended: BoundedDict[str, int] = BoundedDict(heaviest=_MOST.results, weigh=int)
        """The tasks that have ended, oldest first, with the weight of their results."""

    def serve(self, server: "Server[Any]") -> None:
        """Declare the extension, and answer its methods."""
        server.extensions[TASKS] = {}
        server.add_request_handler("tasks/get", _TaskParams, self._get)
        server.add_request_handler("tasks/update", _UpdateParams, self._update)
        server.add_request_handler("tasks/cancel", _TaskParams, self._cancel)

    def are_taken_by(self, context: _Context) -> bool:
        """Whether the host said with this request that it takes tasks."""
        capabilities = context.session.client_capabilities
        return (
            context.protocol_version in MODERN_PROTOCOL_VERSIONS
            and capabilities is not None
            and TASKS in (capabilities.extensions or {})
        )

    def patience(self, context: _Context) -> float | None:
        """After how many seconds this request is answered with a task; `None` for never."""
        return self._times.patience if self.are_taken_by(context) else None

    def create(self, running: HostedCall, context: _Context) -> ToolResult | None:
        """The answer to a call that goes on as a task; `None` if there are too many tasks."""
        if len(self._tasks) >= _MOST.tasks:
            if not len(self._ended):
                return None
            self._forget(self._ended.pop_oldest()[0])
        task_id = secrets.token_urlsafe(24)
        expiry = asyncio.get_running_loop().call_later(self._times.keep, self._forget, task_id)
        task = self._tasks[task_id] = _HostTask(running, self._owner(context), expiry)
        running.on_end = lambda: self._note_end(task_id)
        # mcp passes the results of extensions on, but its types do not know them.
        return cast("ToolResult", _CreatedTask.model_validate(self._shown(task_id, task), by_name=False))

    # --- the methods

    async def _get(self, context: _Context, params: _TaskParams) -> dict[str, Any]:
        task = self._find(context, params.task_id)
        return {**self._shown(params.task_id, task), **self._detail(task)}

    async def _update(self, context: _Context, params: _UpdateParams) -> types.EmptyResult:
        task = self._find(context, params.task_id)
        task.running.answer({key: read_answer(given) for key, given in params.input_responses.items()})
        return types.EmptyResult()

    async def _cancel(self, context: _Context, params: _TaskParams) -> types.EmptyResult:
        self._find(context, params.task_id).running.cancel()
        return types.EmptyResult()

    def _find(self, context: _Context, task_id: str) -> _HostTask:
        if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            raise MCPError(types.METHOD_NOT_FOUND, "Method not found")
        if not self.are_taken_by(context):
            required: dict[str, Any] = {"requiredCapabilities": {"extensions": {TASKS: {}}}}
            raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, "Missing required client capability", required)
        task = self._tasks.get(task_id)
        if task is None or task.owner != self._owner(context):
            raise MCPError(types.INVALID_PARAMS, "Task not found")
        return task

    def _shown(self, task_id: str, task: _HostTask) -> dict[str, Any]:
        status = self._status(task.running)
        if (seen := f"{status} {task.running.message}") != task.seen:
            task.seen, task.updated = seen, _now()
        return {
            "taskId": task_id,
            "status": status,
            "statusMessage": task.running.message,
            "createdAt": task.created,
            "lastUpdatedAt": task.updated,
            "ttlMs": int(self._times.keep * 1000),
            "pollIntervalMs": int(self._times.poll * 1000),
        }

    def _status(self, running: HostedCall) -> str:
        if running.was_cancelled:
            return "cancelled"
        if running.has_ended:
            return "completed" if running.error is None else "failed"
        return "input_required" if running.questions else "working"

    def _detail(self, task: _HostTask) -> dict[str, Any]:
        match self._status(task.running):
            case "completed":
                return {"result": _dumped(task.running.result())}
            case "failed":
                return {"error": _failure(task.running.error)}
            case "input_required":
                asked = task.running.questions.items()
                return {"inputRequests": {key: _dumped(self._request(question)) for key, question in asked}}
        return {}

    def _request(self, question: ToolQuestion) -> types.ElicitRequest:
        return types.ElicitRequest(params=elicit_params(question, self._intro(question)))

    # --- ending

    def _note_end(self, task_id: str) -> None:
        running = self._tasks[task_id].running
        size = 0
        if running.error is None and not running.was_cancelled:
            result = running.result()
            size = weight([result.structured_content, *map(_dumped, result.content)], _MOST.results)
        elif isinstance(running.error, Exception) and not isinstance(running.error, MCPError):
            logger.error("a call that was a task failed", exc_info=running.error)
        for forgotten, _ in self._ended.put(task_id, size):
            self._forget(forgotten)

    def _forget(self, task_id: str) -> None:
        if (task := self._tasks.pop(task_id, None)) is not None:
            self._ended.pop(task_id)
            task.expiry.cancel()
            task.running.on_end = None
            task.running.cancel()


def _failure(error: Exception | None) -> dict[str, Any]:
    if isinstance(error, MCPError):
        return _dumped(error.error)
    return {"code": types.INTERNAL_ERROR, "message": "the call failed; the log of the server says why"}


def _dumped(model: Any) -> dict[str, Any]:
    dumped: dict[str, Any] = model.model_dump(mode="json", by_alias=True, exclude_none=True)
    return dumped


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
