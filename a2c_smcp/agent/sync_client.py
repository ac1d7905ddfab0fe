"""The agent for threads: a blocking façade over the asyncio agent, which runs in its own thread. No protocol here."""

import asyncio
import functools
import inspect
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import ExitStack, suppress
from threading import Lock
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, cast

import anyio.to_thread
from anyio.from_thread import BlockingPortal, start_blocking_portal

from a2c_smcp.agent.bounds import AnswerLimits
from a2c_smcp.agent.client import AsyncSMCPAgentClient
from a2c_smcp.agent.questions import QuestionCallback
from a2c_smcp.agent.requests import DEFAULT_LIMIT, DEFAULT_TIMEOUT, Deadlines
from a2c_smcp.agent.typed_events import TypedEvents
from a2c_smcp.agent.types import HAPPENINGS, AgentHandler, Callback, ProgressCallback
from a2c_smcp.agent.view import ComputerView
from a2c_smcp.errors import ConnectionLostError, SMCPError
from a2c_smcp.link.interface import KeySource, LinkOptions
from a2c_smcp.link.transports import Way
from a2c_smcp.smcp import DPEPageSummary

if TYPE_CHECKING:
    from mcp_types import CallToolResult

__all__ = ["SMCPAgentClient"]

_T = TypeVar("_T")
_P = ParamSpec("_P")


def _blocking_method(
    method: Callable[Concatenate[AsyncSMCPAgentClient, _P], Awaitable[_T]],
) -> Callable[Concatenate["SMCPAgentClient", _P], _T]:
    """Make a blocking method of a method of the asyncio agent, with the same signature and docstring."""

    @functools.wraps(method)
    def blocking(self: "SMCPAgentClient", /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        return self._run(method, self._client, *args, **kwargs)

    return blocking


class SMCPAgentClient(TypedEvents):
    """An agent for threads: `with SMCPAgentClient("https://…", name="ada", api_key=…) as agent`.

    It takes the same arguments and raises the same errors as `AsyncSMCPAgentClient`, and each method blocks. Any number
    of threads may use one client. Handlers run in worker threads, where they may call the client again.
    """

    def __init__(
        self,
        url: str | LinkOptions,
        *,
        name: str,
        api_key: "str | KeySource | None" = None,
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
        self._start_thread()
        try:
            self._run(self._client.open)
        except BaseException:
            self.close()
            raise

    def attend(self, office_id: str) -> None:
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
                    return  # its loop has ended: a SystemExit ended it, and closed everything
                closing.result()
                # Calls of other threads that still wait are cancelled.
                portal.call(portal.stop, True)

    # --- the office

    @property
    def name(self) -> str:
        """The name of this agent in its office."""
        return self._client.name

    @property
    def connected(self) -> bool:
        return self._client.connected

    @property
    def joined(self) -> bool:
        return self._client.joined

    @property
    def problem(self) -> str | None:
        return self._client.problem

    @property
    def is_entering(self) -> bool:
        return self._client.is_entering

    @property
    def way(self) -> Way | None:
        return self._client.way

    @property
    def office_id(self) -> str | None:
        return self._client.office_id

    @property
    def computers(self) -> Mapping[str, ComputerView]:
        async def snapshot() -> Mapping[str, ComputerView]:
            return self._client.computers

        return self._run(snapshot)

    @property
    def is_live(self) -> bool:
        return self._client.is_live

    @property
    def listing_error(self) -> SMCPError | None:
        return self._client.listing_error

    join_office = _blocking_method(AsyncSMCPAgentClient.join_office)
    leave_office = _blocking_method(AsyncSMCPAgentClient.leave_office)
    settled = _blocking_method(AsyncSMCPAgentClient.settled)
    list_room = _blocking_method(AsyncSMCPAgentClient.list_room)
    list_computers = _blocking_method(AsyncSMCPAgentClient.list_computers)

    # --- tools

    get_tools = _blocking_method(AsyncSMCPAgentClient.get_tools)
    wait_for_tools = _blocking_method(AsyncSMCPAgentClient.wait_for_tools)
    wait_for_tool = _blocking_method(AsyncSMCPAgentClient.wait_for_tool)

    def call_tool(
        self,
        computer: str,
        tool_name: str,
        params: Mapping[str, Any] | None = None,
        timeout: int = DEFAULT_TIMEOUT,
        *,
        approval_timeout: int | None = None,
        req_id: str | None = None,
        on_progress: ProgressCallback | None = None,
        on_question: QuestionCallback | None = None,
        questions: Sequence[str] | None = None,
        meta: Mapping[str, Any] | None = None,
        save_to: str | os.PathLike[str] | None = None,
    ) -> "CallToolResult":
        """Run a tool and return its result, also when the tool failed or took longer than `timeout` seconds.

        Results, codes, errors and `approval_timeout` are those of `AsyncSMCPAgentClient.call_tool`. Ctrl-C while it
        waits cancels the call at the computer; so does `cancel` with its `req_id` from another thread.

        `on_progress` is called with `(progress, total, message)` in a worker thread; `total` and `message` may be
        `None`. Calls of it never overlap: a slow callback gets the latest report only. Its errors are logged,
        `SystemExit` too. The result waits up to a second for the last report; after it the callback is not called
        again. `on_question` is called in a worker thread, too; `questions`, `meta` and `save_to` are as there.
        """
        return self._run(
            self._client.call_tool,
            computer,
            tool_name,
            params,
            timeout,
            req_id=req_id,
            on_progress=_blocking(on_progress) if on_progress is not None else None,
            on_question=_blocking(on_question) if on_question is not None else None,
            questions=questions,
            meta=meta,
            approval_timeout=approval_timeout,
            save_to=save_to,
        )

    cancel = _blocking_method(AsyncSMCPAgentClient.cancel)
    tool_meta = staticmethod(AsyncSMCPAgentClient.tool_meta)

    # --- config, desktop, documents

    get_config = _blocking_method(AsyncSMCPAgentClient.get_config)
    get_desktop = _blocking_method(AsyncSMCPAgentClient.get_desktop)
    get_finder = _blocking_method(AsyncSMCPAgentClient.get_finder)
    read_resource = _blocking_method(AsyncSMCPAgentClient.read_resource)
    read_resource_result = _blocking_method(AsyncSMCPAgentClient.read_resource_result)
    read_large_resource = _blocking_method(AsyncSMCPAgentClient.read_large_resource)
    read_document_metadata = _blocking_method(AsyncSMCPAgentClient.read_document_metadata)
    read_document_pages = _blocking_method(AsyncSMCPAgentClient.read_document_pages)
    read_page = _blocking_method(AsyncSMCPAgentClient.read_page)
    read_element = _blocking_method(AsyncSMCPAgentClient.read_element)
    read_page_image = _blocking_method(AsyncSMCPAgentClient.read_page_image)
    read_element_image = _blocking_method(AsyncSMCPAgentClient.read_element_image)

    def iter_document_pages(self, computer: str, uri: str, batch: int = DEFAULT_LIMIT) -> Iterator[DPEPageSummary]:
        return self._iterate(self._client.iter_document_pages(computer, uri, batch))

    def iter_pages(self, computer: str, uri: str, format: str = "json") -> Iterator[Any]:
        return self._iterate(self._client.iter_pages(computer, uri, format))

    # --- resources, prompts, questions

    get_resources = _blocking_method(AsyncSMCPAgentClient.get_resources)
    subscribe_resource = _blocking_method(AsyncSMCPAgentClient.subscribe_resource)
    unsubscribe_resource = _blocking_method(AsyncSMCPAgentClient.unsubscribe_resource)
    get_prompts = _blocking_method(AsyncSMCPAgentClient.get_prompts)
    get_prompt = _blocking_method(AsyncSMCPAgentClient.get_prompt)
    complete = _blocking_method(AsyncSMCPAgentClient.complete)
    answer_question = _blocking_method(AsyncSMCPAgentClient.answer_question)

    # --- skills and files

    get_skills = _blocking_method(AsyncSMCPAgentClient.get_skills)
    read_skill = _blocking_method(AsyncSMCPAgentClient.read_skill)
    put_blob = _blocking_method(AsyncSMCPAgentClient.put_blob)

    # --- listening

    def _register(self, name: str, callback: Callback) -> None:
        self._client.on(name)(_in_worker_thread(callback))

    # --- across

    def _run(self, method: Callable[..., Awaitable[_T]], *args: Any, **kwargs: Any) -> _T:
        """Run an asyncio method in the thread of the client. If the caller stops waiting, the method is cancelled."""
        if (portal := self._portal) is None:
            raise ConnectionLostError("this agent is not open")
        gave_up: Future[None] = Future()

        async def run() -> _T:
            loop, task = asyncio.get_running_loop(), asyncio.current_task()
            assert task is not None

            def cancel(_: object) -> None:
                with suppress(RuntimeError):  # its loop has ended
                    loop.call_soon_threadsafe(task.cancel)

            gave_up.add_done_callback(cancel)
            return await method(*args, **kwargs)

        try:
            try:
                future = portal.start_task_soon(run)
            except RuntimeError:
                raise ConnectionLostError("this agent was closed") from None
            return future.result()
        except CancelledError:
            raise ConnectionLostError("this agent was closed") from None
        except BaseException:
            # Not `future.cancel`: a Ctrl-C while the portal starts the task leaves the caller without its future.
            gave_up.set_result(None)
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


# A member without a docstring here has that of the asyncio agent.
for _name, _member in vars(SMCPAgentClient).items():
    if not _name.startswith("_") and not _member.__doc__:
        _member.__doc__ = getattr(AsyncSMCPAgentClient, _name).__doc__


def _blocking(callback: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        try:
            outcome = callback(*args)
            return asyncio.run(outcome) if inspect.iscoroutine(outcome) else outcome
        except Exception:
            raise
        except BaseException as error:
            # A SystemExit would end the event loop of the client, and all calls of other threads with it.
            raise RuntimeError(f"a callback raised {error!r}") from error

    return call


def _in_worker_thread(callback: Callback) -> Callback:
    call = _blocking(callback)

    async def run(data: Any) -> None:
        # Abandoned on cancellation, because the handler may itself be waiting for the agent to close.
        await anyio.to_thread.run_sync(call, data, abandon_on_cancel=True)

    return run
