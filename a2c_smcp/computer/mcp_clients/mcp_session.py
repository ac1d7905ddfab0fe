"""A session with a running MCP server: requests from any task, what their errors become, and how they all end.

Knows nothing of starts and restarts: `server_life` makes a session.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final, TypeVar

import anyio
from mcp_types import (
    INTERNAL_ERROR,
    METHOD_NOT_FOUND,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    CallToolResult,
    ReadResourceResult,
    Request,
    Tool,
)
from pydantic import ValidationError

from a2c_smcp.computer.calls.progress import CallProgress, OngoingCall
from a2c_smcp.computer.mcp_clients.change_feed import ChangeFeed
from a2c_smcp.computer.mcp_clients.connection_options import ConnectionOptions
from a2c_smcp.computer.mcp_clients.elicitation.asking import NO_MODES, QuestionMode, Questions
from a2c_smcp.computer.mcp_clients.item_lists import ItemList
from a2c_smcp.computer.mcp_clients.mcp_error import InvalidAnswerError, MCPError, says_gone
from a2c_smcp.computer.mcp_clients.protocol_client import ProtocolClient
from a2c_smcp.computer.mcp_clients.protocol_requests import ProtocolRequests
from a2c_smcp.computer.mcp_clients.resource_lists import ResourceList
from a2c_smcp.computer.mcp_clients.task_calls import TaskCalls, TaskNews
from a2c_smcp.computer.mcp_clients.transports import ServerTransport
from a2c_smcp.computer.sign_in.watched_requests import WATCHED_REQUEST, WatchedRequest
from a2c_smcp.computer.utils.callbacks import ignore
from a2c_smcp.errors import (
    PayloadTooLargeError,
    RequestTimeoutError,
    ServerNotActiveError,
    ToolExecutionError,
    ToolExecutionTimeoutError,
)
from a2c_smcp.results import REQUIRED_MARKER

__all__ = ["MCPSession"]

_T = TypeVar("_T")

#: How many pages of a list are read: a server may send pages without end.
_MOST_PAGES: Final = 10_000


#: The methods of the lists that are read without their items.
_LISTS: Final = {"resources": "resources/list", "templates": "resources/templates/list", "prompts": "prompts/list"}


class _RightsMissingError(ToolExecutionError):
    """The server wants more rights for a request, and has not executed it."""

    def __init__(self, server: str, request: WatchedRequest) -> None:
        super().__init__(
            f"Server {server} wants more rights for this than the sign-in has, and nobody has given them",
            {"server_name": server},
        )
        self.request = request


class MCPSession:
    """A session with the server `name`. It takes requests until it ends.

    `advise` is given the error of a tool call and the call, and returns what the caller is told besides the error's own
    words.
    """

    def __init__(
        self,
        name: str,
        client: ProtocolClient,
        transport: ServerTransport,
        questions: Questions,
        news: TaskNews,
        feed: ChangeFeed,
        options: ConnectionOptions,
        advise: "Callable[[MCPSession, MCPError, object | None], str]",
    ) -> None:
        self.name = name
        self.client = client
        self.transport = transport
        self.questions = questions
        self.feed = feed
        self._pipe = None if transport.process is None else transport.process.dispatcher
        """Over pipes a call without a time limit needs nothing but its answer."""
        if self._pipe is not None:
            self._pipe.on_other_report = news.report
        self._tasks = TaskCalls(client, questions, news)
        self._requests = ProtocolRequests(
            client, questions, self._tasks, options.max_calls, lambda answer: self._request(answer, None)
        )
        self.is_modern = self._requests.is_modern
        self._redaction = options.redaction
        self._timeout = options.timings.request
        self._advise = advise
        self.since: float | None = None
        """Since when it takes requests."""
        self.over = anyio.Event()
        self.ending: str | None = None
        """What ended it."""
        self._retiring: str | None = None
        self._limits: set[asyncio.Timeout] = set()
        """The timeout of each request that runs and has one."""
        self._calls = 0
        """How many calls run, with a timeout or without."""
        self._drained = anyio.Event()

    # --- requests

    async def call_tool(
        self,
        name: str,
        params: dict[str, Any],
        timeout: float | None,
        progress: CallProgress | None,
        meta: Mapping[str, Any] | None = None,
        ongoing: OngoingCall | None = None,
    ) -> CallToolResult | None:
        """As `MCPConnection.call_ongoing`."""
        self._calls += 1
        try:
            if timeout is None and self._pipe is not None:
                return await self._requests.call_tool(name, params, progress, meta, ongoing)
            return await self._bounded_call(name, params, timeout, progress, meta, ongoing)
        except TimeoutError:
            raise ToolExecutionTimeoutError(timeout or 0) from None
        except (InvalidAnswerError, ValidationError) as error:
            raise self._failed(f"tool {name} answered with something that is not an MCP result") from error
        except MCPError as error:
            if self._is_ended_by(error):
                raise self._failed(f"Server {self.name} {self.ending}") from None
            said = error.message + self._advise(self, error, ongoing)
            raise self._too_large(error) or self._failed(said, mcp_code=error.code, **_required_by(error)) from None
        except RuntimeError as error:  # a result that breaks the output schema; the first line says how
            raise self._failed(str(error).partition("\n")[0]) from error
        finally:
            self._calls -= 1
            if self._retiring is not None or self.ending is not None:
                self._leave()

    async def _bounded_call(
        self,
        name: str,
        params: dict[str, Any],
        timeout: float | None,
        progress: CallProgress | None,
        meta: Mapping[str, Any] | None,
        ongoing: OngoingCall | None,
    ) -> CallToolResult | None:
        """A call with a time limit, or to a server that may refuse it until a person has given more rights."""
        ends = None if timeout is None else anyio.current_time() + timeout
        try:
            return await self._request(self._requests.call_tool(name, params, progress, meta, ongoing), timeout)
        except _RightsMissingError as missing:
            async with asyncio.timeout_at(ends):
                if not await self.transport.more_rights(missing.request):
                    raise
        left = None if ends is None else ends - anyio.current_time()
        return await self._request(self._requests.call_tool(name, params, progress, meta, ongoing), left)

    async def list_tools(self) -> list[Tool]:
        self.transport.invalid_tools.clear()
        tools: list[Tool] = []

        async def read(cursor: str | None) -> str | None:
            page = await self.client.list_tools(cursor)
            tools.extend(page.tools)
            return page.next_cursor

        await self._ask(_read_pages(read))
        self._tasks.listed(tools)
        return tools

    async def fill(self, listed: ResourceList | ItemList) -> None:
        """Read the list of resources, templates or prompts, page by page."""
        kind = listed.kind if isinstance(listed, ItemList) else "resources"

        async def read(cursor: str | None) -> str | None:
            page = await self.client.page(_LISTS[kind], cursor)
            await listed.add(self.transport.pages.of(page.meta))
            return None if listed.is_full else page.next_cursor

        await self._ask(_read_pages(read))

    async def read_resource(
        self, uri: str, timeout: float | None, meta: Mapping[str, Any] | None = None
    ) -> ReadResourceResult:
        return await self._ask(self._requests.read_resource(uri, meta), timeout)

    async def ask(
        self, request: Request[Any, Any], timeout: float | None, modes: frozenset[QuestionMode] = NO_MODES
    ) -> dict[str, Any]:
        """The result of a request as the server sent it, which is valid; or its questions of these `modes`."""
        modes = modes if self.is_modern else NO_MODES
        written = request.model_dump(by_alias=True, mode="json", exclude_none=True)
        answer = self.client.request(written["method"], written.get("params"), modes)
        said = dict(await self._ask(answer, timeout))
        if said.pop("resultType", None) == "input_required" and not modes:
            raise MCPError(INTERNAL_ERROR, "the server wants to ask something first, and nobody is asked here")
        if not said.get("_meta"):
            said.pop("_meta", None)
        return said

    async def subscribed(self) -> None:
        await self._ask(self.feed.settled())

    async def _ask(self, answer: Awaitable[_T], timeout: float | None = None) -> _T:
        timeout = self._timeout if timeout is None else timeout
        try:
            return await self._request(answer, timeout)
        except TimeoutError:
            raise RequestTimeoutError(f"Server {self.name} did not answer within {timeout:g}s") from None
        except MCPError as error:
            said = self._redaction.quote(error.message)
            raise self._too_large(error) or MCPError(error.code, said, error.data) from None
        except ValidationError as error:
            raise MCPError(INTERNAL_ERROR, "the server answered with something that is not an MCP result") from error

    async def _request(self, answer: Awaitable[_T], timeout: float | None) -> _T:
        watched = WatchedRequest()
        watching = WATCHED_REQUEST.set(watched)
        try:
            async with asyncio.timeout(timeout) as limit:
                watched.give_up = partial(_expire, limit)
                self._limits.add(limit)
                try:
                    return await answer
                finally:
                    watched.give_up = ignore  # a task that this one started may have its context
                    self._end_limit(limit)
        except TimeoutError:
            if self.ending is None and watched.challenge is None:
                raise
        except Exception as error:
            if not self._is_ended_by(error) and watched.challenge is None:
                raise
        finally:
            WATCHED_REQUEST.reset(watching)
        raise self._ended(watched)

    def _ended(self, request: WatchedRequest) -> ToolExecutionError:
        """The error of a request to a server that refused it, or that does not take requests any more."""
        if request.challenge is not None and request.challenge.is_step_up:
            return _RightsMissingError(self.name, request)
        if request.challenge is not None:
            return ServerNotActiveError(self.name, "sign_in", "it wants a person to sign in")
        return self._failed(f"Server {self.name} {self.ending}")

    def _too_large(self, error: MCPError) -> PayloadTooLargeError | None:
        """The error of an answer that was too large to be kept. A server that uses this code itself means the same."""
        if error.code != PayloadTooLargeError.default_code:
            return None
        return PayloadTooLargeError(f"Server {self.name}: {self._redaction.quote(error.message)}")

    def _failed(self, message: str, **details: Any) -> ToolExecutionError:
        return ToolExecutionError(self._redaction.quote(message), {"server_name": self.name, **details})

    # --- ending

    def end(self, how: str) -> None:
        """Refuse new requests and give up those that run. Only the first call counts."""
        if self.ending is None:
            self.ending = how
            self.over.set()
            for limit in self._limits:
                _expire(limit)
            if self._pipe is not None:
                self._pipe.give_up("tools/call")

    def retire(self, why: str) -> None:
        """End as soon as no request runs."""
        self._retiring = why
        self._leave()

    @property
    def has_retired(self) -> bool:
        return self.ending is not None and self.ending == self._retiring

    async def drained(self) -> None:
        """Wait until no request runs."""
        if self._limits or self._calls:
            self._drained = anyio.Event()
            await self._drained.wait()

    def _end_limit(self, limit: asyncio.Timeout) -> None:
        self._limits.discard(limit)
        self._leave()

    def _leave(self) -> None:
        """A request has ended. If it was the last one, whoever waited for that goes on."""
        if not self._limits and not self._calls:
            self._drained.set()
            if self._retiring is not None:
                self.end(self._retiring)

    def _is_ended_by(self, error: Exception) -> bool:
        """Whether the error of a request means that the session is over. If so, it ends now."""
        if isinstance(error, MCPError):
            is_gone = says_gone(error)
        else:
            is_gone = isinstance(error, anyio.ClosedResourceError | anyio.BrokenResourceError)
        if is_gone:
            self.end("ended the connection")
        # When a session is over, mcp's dispatcher raises a RuntimeError: it was closed.
        return is_gone or (isinstance(error, RuntimeError) and self.ending is not None)


def _required_by(error: MCPError) -> dict[str, list[str]]:
    """The capabilities that a server wants of its client: few, and with plain names."""
    data = error.data if error.code == MISSING_REQUIRED_CLIENT_CAPABILITY else None
    required = data.get("requiredCapabilities") if isinstance(data, Mapping) else None
    names = [name for name in required if name.isidentifier()][:10] if isinstance(required, Mapping) else []
    return {REQUIRED_MARKER: names} if names else {}


def _expire(limit: asyncio.Timeout) -> None:
    if not limit.expired():
        limit.reschedule(0)


async def _read_pages(read: Callable[[str | None], Awaitable[str | None]]) -> None:
    """Read a list to its end. `read` takes the cursor of a page and returns the cursor of the next one, or `None`.

    If the server does not have this method, the list is empty. Of a list without an end, the first pages are read.
    """
    cursors: set[int] = set()
    try:
        cursor = await read(None)
        while cursor and len(cursors) < _MOST_PAGES:
            if hash(cursor) in cursors:
                raise MCPError(INTERNAL_ERROR, "the server's list goes round in circles")
            cursors.add(hash(cursor))
            cursor = await read(cursor)
    except MCPError as error:
        if error.code != METHOD_NOT_FOUND:
            raise
