"""The agent, for threads: a blocking face of the asyncio one, which runs in a thread of its own. No protocol here."""

import asyncio
import functools
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, suppress
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar, cast

import anyio.to_thread
from anyio.from_thread import BlockingPortal, start_blocking_portal

from a2c_smcp.agent.bounds import AnswerLimits
from a2c_smcp.agent.client import AsyncSMCPAgentClient
from a2c_smcp.agent.requests import DEFAULT_LIMIT, DEFAULT_TIMEOUT, DEFAULT_WAIT, Deadlines
from a2c_smcp.agent.types import HAPPENINGS, AgentHandler, Callback, ProgressCallback
from a2c_smcp.agent.view import ComputerView
from a2c_smcp.errors import ConnectionLostError, SMCPError
from a2c_smcp.link.interface import LinkOptions
from a2c_smcp.link.ways import Way
from a2c_smcp.smcp import DPEPageSummary, GetComputerConfigRet, GetFinderRet, SessionInfo, SMCPTool, ToolMeta
from a2c_smcp.types import Desktop

if TYPE_CHECKING:
    from mcp_types import CallToolResult

__all__ = ["SMCPAgentClient"]

_T = TypeVar("_T")
_CallbackT = TypeVar("_CallbackT", bound=Callback)


class SMCPAgentClient:
    """An agent, for threads: `with SMCPAgentClient("https://…", name="ada", api_key=…) as agent`.

    It takes the same arguments and raises the same errors as `AsyncSMCPAgentClient`, and each method blocks. Any number
    of threads may use one client. Handlers run in worker threads, where they may call the client again.
    """

    def __init__(
        self,
        url: str | LinkOptions,
        *,
        name: str,
        api_key: str | None = None,
        handler: AgentHandler | None = None,
        live: bool = True,
        deadlines: Deadlines | None = None,
        limits: AnswerLimits | None = None,
    ) -> None:
        self._client = AsyncSMCPAgentClient(
            url, name=name, api_key=api_key, live=live, deadlines=deadlines, limits=limits
        )
        if handler is not None:
            for short, method in HAPPENINGS.items():
                self.on(short)(getattr(handler, method))
        self._lock = Lock()
        self._portal: BlockingPortal | None = None
        self._thread = ExitStack()
        self._closed = False

    def __enter__(self) -> "SMCPAgentClient":
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self) -> None:
        """Connect, or raise: `UnauthorizedError`, or `ConnectionLostError` when the server does not answer."""
        self._start_thread()
        try:
            self._run(self._client.open)
        except BaseException:
            self.close()
            raise

    def attend(self, office_id: str) -> None:
        """Connect and join the office as soon as it can be done, and try for ever: the server may not be there yet.

        Instead of `open` and `join_office`; returns at once. `problem` says why the agent is not in the office yet, and
        handlers of `connection` hear when it is. Close it in the end.
        """

        async def attend() -> None:
            self._client.attend(office_id)

        self._start_thread()
        self._run(attend)

    def _start_thread(self) -> None:
        with self._lock:
            if self._closed:
                raise ConnectionLostError("this agent is closed; make another")
            if self._portal is None:
                self._portal = self._thread.enter_context(start_blocking_portal("asyncio"))

    def close(self) -> None:
        """Disconnect for good, and end the thread. Safe to call twice, from any thread and from a handler."""
        with self._lock:
            portal, self._portal, self._closed = self._portal, None, True
        if portal is not None:
            with self._thread:
                try:
                    closing = portal.start_task_soon(self._client.close)
                except RuntimeError:
                    return  # its loop has ended: a SystemExit went through it, and has closed everything
                closing.result()
                # Whatever other threads still wait for will not come.
                portal.call(portal.stop, True)

    # --- the office

    @property
    def name(self) -> str:
        """The name of this agent in its office."""
        return self._client.name

    @property
    def connected(self) -> bool:
        """Whether there is a connection to the server right now. A lost one comes back by itself."""
        return self._client.connected

    @property
    def joined(self) -> bool:
        """Whether the server has this agent in its office right now."""
        return self._client.joined

    @property
    def problem(self) -> str | None:
        """Why the office cannot be used right now, in a sentence; `None` if it can. The agent tries again by itself."""
        return self._client.problem

    @property
    def way(self) -> Way | None:
        """How the agent is connected, or was the last time: by which transport, through which proxy."""
        return self._client.way

    @property
    def office_id(self) -> str | None:
        """The office that this agent is in, or will join again after a reconnect; `None` without one."""
        return self._client.office_id

    @property
    def computers(self) -> Mapping[str, ComputerView]:
        """The live view: every computer in the office by its name, with what is known of it now.

        It is a snapshot: read the property again to see later changes. `settled` waits until the view is complete.
        """

        async def snapshot() -> Mapping[str, ComputerView]:
            return self._client.computers

        return self._run(snapshot)

    @property
    def listing_error(self) -> SMCPError | None:
        """Why the last attempt to list the office failed, `None` if it worked. The agent tries again by itself."""
        return self._client.listing_error

    def join_office(self, office_id: str) -> None:
        """Join an office. On return `computers` has its computers; `settled` waits for their tools.

        After every reconnect the agent joins again, and brings the view up to date. A refusal raises `RoomFullError`
        (the office has an agent), `AlreadyInRoomError` (leave the other office first), `ForbiddenError` (the key does
        not allow it) or `BadRequestError` (a name or an id that nothing may have).
        """
        self._run(self._client.join_office, office_id)

    def leave_office(self) -> None:
        """Leave the office. Without one this does nothing."""
        self._run(self._client.leave_office)

    def settled(self, timeout: float = 20.0) -> None:
        """Wait until the live view is complete; `RequestTimeoutError` after `timeout` seconds.

        A part that could not be fetched does not hold it up: the `failures` of its `ComputerView` say why. Without an
        office, or once it is left, this raises `NotInRoomError`.
        """
        self._run(self._client.settled, timeout)

    def list_room(self) -> list[SessionInfo]:
        """The members of the office as the server lists them now, this agent included."""
        return self._run(self._client.list_room)

    # --- tools

    def get_tools(self, computer: str) -> list[SMCPTool]:
        """The tools that a computer lists now, with their schemas; `tool_meta` reads what is configured for one."""
        return self._run(self._client.get_tools, computer)

    def wait_for_tools(
        self, computer: str, tool_names: Collection[str] = (), timeout: float = DEFAULT_WAIT
    ) -> list[SMCPTool]:
        """The tools of a computer, once it is in the office and lists all of `tool_names`, or any tool at all.

        A computer may join before its MCP servers run. After `timeout` seconds this raises `ToolNotFoundError`, or
        `NotFoundError` when the computer is not in the office. Without an office, or once it is left, `NotInRoomError`.
        """
        return self._run(self._client.wait_for_tools, computer, tool_names, timeout)

    def wait_for_tool(self, computer: str, tool_name: str, timeout: float = DEFAULT_WAIT) -> SMCPTool:
        """One tool, once its computer lists it; raises what `wait_for_tools` raises."""
        return self._run(self._client.wait_for_tool, computer, tool_name, timeout)

    def call_tool(
        self,
        computer: str,
        tool_name: str,
        params: Mapping[str, Any] | None = None,
        timeout: int = DEFAULT_TIMEOUT,
        *,
        req_id: str | None = None,
        on_progress: ProgressCallback | None = None,
    ) -> "CallToolResult":
        """Run a tool and return its result, also when the tool failed or took longer than `timeout` seconds.

        Look at `is_error` of the result; `text_of` gives its text, and `meta["error_code"]` the code of a failure: 4001
        for an unknown tool, 4004 after the timeout, 4005 when the call was not confirmed: then
        `meta["outcome"]` is `refused`, `rule`, `unanswered` or `nobody`, and `meta["reason"]` has the words of the
        person who refused, if there are any.

        What fails on the way to the computer raises instead. Ctrl-C while it waits cancels the call at the computer;
        so does `cancel` with its `req_id` from another thread.

        `on_progress` is called with `(progress, total, message)` while the tool reports how far it is, in a worker
        thread, one call at a time; a callback that is slow gets the latest. `total` and `message` may be `None`. What
        it raises is logged, `SystemExit` too. No call begins after the result is here, but for the last report, for
        which the result waits a second at most.
        """
        heard = _blocking(on_progress) if on_progress is not None else None
        return self._run(self._client.call_tool, computer, tool_name, params, timeout, req_id=req_id, on_progress=heard)

    def cancel(self, req_id: str) -> None:
        """Cancel a tool call: it ends with a result that says so. An unknown `req_id` changes nothing."""
        self._run(self._client.cancel, req_id)

    @staticmethod
    def tool_meta(tool: SMCPTool) -> ToolMeta:
        """What is configured for a tool: `auto_apply`, `alias`, `tags`, `ret_object_mapper`; empty without any."""
        return AsyncSMCPAgentClient.tool_meta(tool)

    # --- config, desktop, documents

    def get_config(self, computer: str) -> GetComputerConfigRet:
        """The computer's MCP servers and inputs as configured. Secrets are masked, or are placeholders."""
        return self._run(self._client.get_config, computer)

    def get_desktop(self, computer: str, *, size: int | None = None, window: str | None = None) -> list[Desktop]:
        """The rendered windows, most important first: at most `size` of them, or the one with the URI `window`.

        Windows may be cut so that all fit into one message; a `window` by its URI comes whole, or raises
        `PayloadTooLargeError`.
        """
        return self._run(self._client.get_desktop, computer, size=size, window=window)

    def get_finder(
        self,
        computer: str,
        keywords: Sequence[str] | None = None,
        file_type: str | None = None,
        offset: int = 0,
        limit: int = DEFAULT_LIMIT,
    ) -> GetFinderRet:
        """A part of the catalogue of documents, and how many documents match in all (`total_count`).

        `keywords` and `file_type` filter; `offset` and `limit` (1000 at most) choose the part.
        """
        return self._run(self._client.get_finder, computer, keywords, file_type, offset, limit)

    def read_resource(self, computer: str, uri: str) -> list[dict[str, Any]]:
        """The contents of a `dpe://` or `window://` resource, in MCP's JSON form.

        Raises a `FinderError` for what is not there (`DocumentNotFoundError`, `PageOutOfRangeError`,
        `ElementNotFoundError`) or is no such URI (`InvalidDPEURIError`).
        """
        return self._run(self._client.read_resource, computer, uri)

    def read_document_metadata(self, computer: str, uri: str) -> Any:
        """The fields of a document, as `DPEDocumentSummary` names them. Raises what `read_resource` raises."""
        return self._run(self._client.read_document_metadata, computer, uri)

    def read_document_pages(
        self, computer: str, uri: str, offset: int = 0, limit: int = DEFAULT_LIMIT
    ) -> dict[str, Any]:
        """A document's fields with a part of the index of its pages: `pages`, out of `page_total`."""
        return self._run(self._client.read_document_pages, computer, uri, offset, limit)

    def read_page(
        self,
        computer: str,
        uri: str,
        page_index: int,
        format: str = "json",
        *,
        categories: Sequence[str] | None = None,
    ) -> Any:
        """One page of the document at `uri`: the decoded object, or text for `markdown` and `text`."""
        return self._run(self._client.read_page, computer, uri, page_index, format, categories=categories)

    def read_element(self, computer: str, uri: str, element_id: str, format: str = "json") -> Any:
        """One element of the document at `uri`: a `DPEElementDetail`, or text for `markdown` and `text`."""
        return self._run(self._client.read_element, computer, uri, element_id, format)

    def iter_document_pages(self, computer: str, uri: str, batch: int = DEFAULT_LIMIT) -> Iterator[DPEPageSummary]:
        """Iterate over the index of a document's pages; `batch` of them are read at a time."""
        return self._iterate(self._client.iter_document_pages(computer, uri, batch))

    def iter_pages(self, computer: str, uri: str, format: str = "json") -> Iterator[Any]:
        """Iterate over the pages of a document, as `read_page` gives them; each is read when it is its turn."""
        return self._iterate(self._client.iter_pages(computer, uri, format))

    # --- listening

    def on(self, name: str) -> Callable[[_CallbackT], _CallbackT]:
        """Register a function with `@agent.on("enter_office")`; it runs in a worker thread.

        The names are those of the notifications, with or without `notify:`, and `change` and `connection`; another name
        raises `ValueError`. The function gets what the method of `AgentHandler` with that name gets.
        """

        def register(callback: _CallbackT) -> _CallbackT:
            self._client.on(name)(_in_worker_thread(callback))
            return callback

        return register

    # --- across

    def _run(self, method: Callable[..., Awaitable[_T]], *args: Any, **kwargs: Any) -> _T:
        """Run an asyncio method in the thread of the client. A caller that stops waiting here cancels it."""
        if (portal := self._portal) is None:
            raise ConnectionLostError("this agent is not open")
        try:
            future = portal.start_task_soon(functools.partial(method, *args, **kwargs))
        except RuntimeError:
            raise ConnectionLostError("this agent was closed") from None
        try:
            return future.result()
        except CancelledError:
            raise ConnectionLostError("this agent was closed") from None
        except BaseException:
            future.cancel()
            raise

    def _iterate(self, items: AsyncGenerator[_T, None]) -> Iterator[_T]:
        end = object()

        async def following() -> object:
            return await anext(items, end)

        try:
            while (item := self._run(following)) is not end:
                yield cast("_T", item)
        finally:
            with suppress(ConnectionLostError):
                self._run(items.aclose)


def _blocking(callback: Callable[..., Awaitable[None] | None]) -> Callable[..., None]:
    def call(*args: Any) -> None:
        try:
            outcome = callback(*args)
            if inspect.iscoroutine(outcome):
                asyncio.run(outcome)
        except Exception:
            raise
        except BaseException as error:
            # A SystemExit would end the loop of the client, and with it everything that other threads wait for.
            raise RuntimeError(f"a callback raised {error!r}") from error

    return call


def _in_worker_thread(callback: Callback) -> Callback:
    call = _blocking(callback)

    async def run(data: Any) -> None:
        # Abandoned on cancellation, because the handler may itself be waiting for the agent to close.
        await anyio.to_thread.run_sync(call, data, abandon_on_cancel=True)

    return run
