"""What lies between a session and the way to its server: requests in JSON-RPC, and what the server says by itself.

`pipes/dispatcher.py` is such a dispatcher over pipes, `mcp_streams.py` one over the streams of mcp's transports.
"""

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Protocol, TypeAlias, TypedDict

import anyio
from anyio.abc import TaskStatus
from mcp_types import RequestId

__all__ = [
    "CallOptions",
    "Dispatcher",
    "OnNotify",
    "OnReport",
    "OnRequest",
    "as_request_id",
    "cancelled_request",
    "coerce_request_id",
]

#: Called with `(progress, total, message)` for each report of progress, in the order in which they came. It must not
#: wait or raise.
OnReport: TypeAlias = Callable[[float, float | None, str | None], None]
#: Answers a request of the server: its method and its parameters. An `MCPError` that it raises is the answer, too.
OnRequest: TypeAlias = Callable[[str, Mapping[str, Any] | None], Awaitable[dict[str, Any]]]
#: Takes a notification of the server before anything that the server sent after it. It must not wait.
OnNotify: TypeAlias = Callable[[str, Mapping[str, Any] | None], None]


class CallOptions(TypedDict, total=False):
    """What is special about one request."""

    request_id: str
    """Its id, for requests that are named by it later."""
    timeout: float
    """After so many seconds it fails."""
    cancel_on_abandon: bool
    """Whether the server is told when nobody waits for the answer any more. By default it is."""


class Dispatcher(Protocol):
    """Sends requests as they are. `run` runs as long as the session."""

    def send_raw_request(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        opts: CallOptions | None = None,
        on_report: OnReport | None = None,
    ) -> Coroutine[Any, Any, dict[str, Any]]:
        """The result of a request. Raises `MCPError` if it has none. Cancelling this tells the server."""

    async def notify(self, method: str, params: Mapping[str, Any] | None) -> None: ...

    async def run(
        self, on_request: OnRequest, on_notify: OnNotify, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """Hand on what the server says, until it is closed."""


def as_request_id(value: object) -> RequestId | None:
    """The id in a message of a server; `None` if it is none. `True` would be the request 1."""
    return value if isinstance(value, str | int) and not isinstance(value, bool) else None


def coerce_request_id(request_id: RequestId) -> RequestId:
    """The key of a request in a table: some servers write each id as text."""
    if isinstance(request_id, str):
        try:
            return int(request_id)
        except ValueError:
            pass
    return request_id


def cancelled_request(params: Mapping[str, Any] | None) -> RequestId | None:
    """The request that `notifications/cancelled` withdraws."""
    return as_request_id((params or {}).get("requestId"))
