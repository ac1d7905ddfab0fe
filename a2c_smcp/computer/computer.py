"""The Computer: MCP servers, inputs, approvals and history under one roof, behind one lifecycle.

Knows nothing of prompts, terminals or sockets. The code that shows or serves a Computer follows its `events`, and hands
in a callback that confirms calls and a resolver that asks for inputs.
"""

import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from types import TracebackType
from typing import Any, Final, Self, TypeAlias

import anyio
import anyio.to_thread
from mcp_types import CallToolResult, ReadResourceResult

from a2c_smcp.computer.approvals import Ask, Refuse, Run, approve, approve_answer, approve_silence
from a2c_smcp.computer.desktop.cutting import MAX_WINDOW, DesktopLimits
from a2c_smcp.computer.events import (
    BUFFERED_EVENTS,
    ConfigChanged,
    EventHub,
    EventStream,
    RestartOffered,
    ServerStatus,
)
from a2c_smcp.computer.history import remember
from a2c_smcp.computer.inputs import BaseInputResolver, InputResolver, InputStore, servers_referencing
from a2c_smcp.computer.mcp_clients.catalogue import ShownTool, tool_meta_object
from a2c_smcp.computer.mcp_clients.manager import MCPServerManager
from a2c_smcp.computer.mcp_clients.masking import config_view
from a2c_smcp.computer.mcp_clients.mcp_connection import Timings
from a2c_smcp.computer.mcp_clients.model import BaseServerConfig, MCPServerConfig, MCPServerInput, wire_server
from a2c_smcp.computer.progress import CallProgress, OnProgress
from a2c_smcp.computer.shown_resources import ResourceTimings, ShownResources
from a2c_smcp.computer.types import ToolCallRecord
from a2c_smcp.errors import (
    PayloadTooLargeError,
    ServerNotActiveError,
    SMCPError,
    ToolError,
    ToolExecutionTimeoutError,
    ToolNameDuplicatedError,
)
from a2c_smcp.results import TOOL_META_MARKER, error_result, text_of, with_markers
from a2c_smcp.smcp import DPEDocumentSummary, GetComputerConfigRet, SMCPTool
from a2c_smcp.types import SERVER_NAME, TOOL_NAME, Desktop
from a2c_smcp.wire import DEFAULT_MAX_MESSAGE

__all__ = ["Computer", "ConfirmCallback"]

logger = logging.getLogger(__name__)

#: A confirmation ends this long before the call's deadline: past the deadline it would be a timeout of the tool.
_CONFIRM_MARGIN: Final = 0.1

#: Called with `(req_id, server, tool, params)`; `True` runs the call. A callback that is not async runs in a thread. It
#: has until just before the call's deadline, then it is cancelled. It raises `TimeoutError` if no person answered.
ConfirmCallback: TypeAlias = Callable[[str, SERVER_NAME, TOOL_NAME, dict[str, Any]], bool | Awaitable[bool]]


class Computer:
    """MCP servers under one roof: `async with Computer("laptop", mcp_servers=[...]) as computer` runs them.

    Then call its tools with `execute_tool`, or let an agent do so: `SMCPComputerClient` puts the Computer into an
    office. A server is given as a config model, or as a dictionary like those in config files, with `${input:id}` in
    place; `load_config_files` reads such files. One that is invalid raises `InvalidConfigError`. The attribute `inputs`
    holds the definitions and values of the inputs.

    - `auto_connect=False` starts no server by itself; use `start_server`.
    - `auto_reconnect=False` leaves a server stopped that has died. Otherwise it is restarted, up to `max_restarts`
      times in a row, with growing pauses.
    - `confirm_callback` is asked `(req_id, server, tool, params)` before a tool runs that has no `auto_apply`. Without
      a callback such calls are refused (4005).
    - `input_resolver` asks a person for the value of an input. Without one, only variables, commands and defaults
      count.
    - `max_calls` is how many calls run at a time on one server; the others wait.
    - `max_message` is how many bytes a message may have where the results go, `max_window` how many bytes of a
      window's text show on the desktop.
    """

    def __init__(
        self,
        name: str,
        *,
        inputs: Iterable[MCPServerInput] = (),
        mcp_servers: Iterable[MCPServerConfig | dict[str, Any]] = (),
        auto_connect: bool = True,
        auto_reconnect: bool = True,
        confirm_callback: ConfirmCallback | None = None,
        input_resolver: BaseInputResolver | None = None,
        max_restarts: int = 10,
        max_calls: int = 64,
        max_message: int = DEFAULT_MAX_MESSAGE,
        max_window: int = MAX_WINDOW,
        timings: Timings | None = None,
        resource_timings: ResourceTimings | None = None,
    ) -> None:
        self.name = name
        self.inputs = InputStore(inputs)
        self.confirm_callback = confirm_callback
        self._limits = DesktopLimits(max_window, max_message)
        self._events = EventHub()
        resolver = InputResolver(self.inputs, input_resolver)
        self._redaction = resolver.redaction
        self._resources = ShownResources(self._events.publish, resource_timings, self._redaction.quote)
        self._manager = MCPServerManager(
            resolver,
            on_event=self._events.publish,
            on_resources=self._resources.changed,
            auto_connect=auto_connect,
            auto_reconnect=auto_reconnect,
            max_restarts=max_restarts,
            max_calls=max_calls,
            max_message=max_message,
            timings=timings,
        )
        self._manager.load(map(_as_written, mcp_servers))
        self._history: tuple[ToolCallRecord, ...] = ()
        self._shown_config = self.get_config()
        self.inputs.subscribe(self._input_changed)

    # --- lifecycle

    async def boot_up(self) -> None:
        """Start every enabled server. Returns when the slowest one runs or has failed, and raises for no server.

        Look at `statuses` next: it says how each server does. If this is cancelled, nothing is left running.
        """
        try:
            await self._manager.start_all()
            await self._resources.listed()
        except BaseException:
            await self.shutdown()
            raise

    async def shutdown(self) -> None:
        """Stop every server and the calls that run there, in bounded time. Safe to call twice, and before `boot_up`."""
        await self._manager.stop_all()
        with anyio.CancelScope(shield=True):
            await self._resources.aclose()

    async def __aenter__(self) -> Self:
        await self.boot_up()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.shutdown()

    def events(self, limit: int = BUFFERED_EVENTS) -> EventStream:
        """What happens from now on, for one reader: `async with computer.events() as events`, then `async for`.

        `a2c_smcp.computer.events` has the classes. At most `limit` events wait for a slow reader; older ones are lost.
        """
        return self._events.subscribe(limit)

    # --- what there is

    @property
    def statuses(self) -> list[ServerStatus]:
        """The state of every server, in config order."""
        return self._manager.statuses

    @property
    def history(self) -> tuple[ToolCallRecord, ...]:
        """The last ten calls that reached a server, oldest first."""
        return self._history

    def get_available_tools(self) -> list[SMCPTool]:
        """The tools that can be called now, as agents see them. Do not change them."""
        return self._manager.tools

    @property
    def tool_servers(self) -> dict[TOOL_NAME, SERVER_NAME]:
        """The server of each tool that can be called now, by the tool's name."""
        return self._manager.tool_servers

    def get_config(self) -> GetComputerConfigRet:
        """The configs of all servers and inputs as agents see them: with placeholders, and with secrets masked."""
        return config_view(self._manager.configs.values(), self.inputs.definitions.values())

    async def get_desktop(
        self, size: int | None = None, window: str | None = None, *, max_bytes: int | None = None
    ) -> list[Desktop]:
        """The windows of all servers as agents see them, at most `size`; or the one with exactly the URI `window`.

        All windows together have at most `max_bytes`, encoded, or what a message may have: large windows are cut, and
        the least important ones are left out. The one with the URI `window` is never cut; if it is too large to be
        read, this raises `PayloadTooLargeError`.
        """
        limits = self._limits if max_bytes is None else replace(self._limits, message=max_bytes)
        return await self._resources.desktop(size, window, self._history, limits)

    async def get_finder(
        self,
        keywords: Sequence[str] | None = None,
        file_type: str | None = None,
        offset: int = 0,
        limit: int = 20,
    ) -> tuple[list[DPEDocumentSummary], int]:
        """A part of the documents that match, and how many match in all; `BadRequestError` for an impossible part.

        Do not change the documents.
        """
        return await self._resources.finder(keywords, file_type, self._history, offset, limit)

    async def read_resource(self, uri: str) -> ReadResourceResult:
        """Read a window, a document or a part of a document by its URI.

        Raises `InvalidWindowURIError` or `InvalidDPEURIError` for a URI that is none, `ForbiddenError` for another kind
        of URI, `NotFoundError` or a `FinderError` for what does not exist, `RequestTimeoutError` after 10 seconds, and
        `InternalError` with what the server answered when it fails.
        """
        try:
            return await self._resources.read(uri, self._manager.connections)
        except SMCPError as error:
            raise self._manager.redacted(error) from error.__cause__

    @property
    def tool_conflicts(self) -> list[ToolNameDuplicatedError]:
        """The clashes of tool names that keep a server from running, or a tool from being shown."""
        return self._manager.conflicts

    def server_logs(self, name: SERVER_NAME) -> tuple[str, ...]:
        """The last lines that a server wrote to its stderr, without secrets; `NotFoundError` for an unknown server."""
        return self._manager.stderr(name)

    # --- servers

    async def add_or_update_server(self, config: MCPServerConfig | dict[str, Any]) -> None:
        """Add a server, or change the one of that name; a server that runs is restarted if it must be.

        With `auto_connect` this returns once the server runs. Raises what is wrong with the config
        (`InvalidConfigError`, `VRLSyntaxError`, `InputNotFoundError`), why the server does not start
        (`ToolExecutionError`), or `ToolNameDuplicatedError`. A refused config leaves everything as it was.
        """
        with self._announcing_config():
            await self._manager.add_or_update_server(_as_written(config))

    async def remove_server(self, name: SERVER_NAME) -> None:
        """Stop a server and forget it, or raise `NotFoundError`."""
        with self._announcing_config():
            await self._manager.remove_server(name)

    async def start_server(self, name: SERVER_NAME) -> None:
        """Start a server. Returns once it runs, or raises the `SMCPError` that says why it does not."""
        await self._manager.start_server(name)

    async def stop_server(self, name: SERVER_NAME) -> None:
        """Stop a server. It stays stopped until `start_server`; its calls fail."""
        await self._manager.stop_server(name)

    async def restart_server(self, name: SERVER_NAME) -> None:
        """Stop a server and start it with its config and inputs as they are now. Raises like `start_server`."""
        await self._manager.restart_server(name)

    @contextmanager
    def _announcing_config(self) -> Iterator[None]:
        try:
            yield
        finally:
            self._announce_config()

    def _announce_config(self) -> None:
        before, self._shown_config = self._shown_config, self.get_config()
        if self._shown_config != before:
            self._events.publish(ConfigChanged())

    def _input_changed(self, input_id: str) -> None:
        self._announce_config()
        running = self._manager.connections
        for name in servers_referencing(input_id, self._manager.configs):
            if name in running:
                self._events.publish(RestartOffered(name, f"the input {input_id!r} changed"))

    # --- calls

    async def execute_tool(
        self,
        req_id: str,
        tool_name: TOOL_NAME,
        params: Mapping[str, Any],
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> CallToolResult:
        """Run a tool and return its result. A failure is a result too, with its code (4001 to 4005, 413) in `meta`.

        `req_id` is any text that names the call in logs, events and history. The timeout, in seconds, covers the
        confirmation as well; `None` means no limit. Cancelling the task that waits here cancels the tool.

        `on_progress` is called with `(progress, total, message)` whenever the tool reports its progress, and when the
        call waits for its confirmation. It is a plain function that must not block.
        """
        progress = CallProgress(on_progress, self._redaction) if on_progress is not None else None
        try:
            with anyio.move_on_after(timeout):
                tool = self._manager.validate_tool_call(tool_name)
                return await self._execute(req_id, tool, dict(params), timeout, progress)
            raise ToolExecutionTimeoutError(timeout or 0)
        except (ToolError, PayloadTooLargeError) as error:
            logger.warning("tool call %s failed: %s", req_id, error)
            return error_result(error)
        finally:
            if progress is not None:
                progress.end()

    async def _execute(
        self, req_id: str, tool: ShownTool, params: dict[str, Any], timeout: float | None, progress: CallProgress | None
    ) -> CallToolResult:
        approval = approve(tool.meta, can_ask=self.confirm_callback is not None)
        if isinstance(approval, Ask):
            if progress is not None:
                progress.waiting()
            approval = await self._confirm(req_id, tool, params)
        if isinstance(approval, Refuse):
            raise approval.error(tool.name)
        result = await self._call(req_id, tool, params, timeout, progress)
        return with_markers(result, {TOOL_META_MARKER: tool_meta_object(tool.meta)} if tool.meta is not None else {})

    async def _confirm(self, req_id: str, tool: ShownTool, params: dict[str, Any]) -> Run | Refuse:
        """What the callback decides, or its silence until just before the call's deadline."""
        with anyio.CancelScope(deadline=anyio.current_effective_deadline() - _CONFIRM_MARGIN):
            try:
                return approve_answer(await self._ask(req_id, tool, params))
            except TimeoutError:
                return approve_silence()
            except Exception as error:
                # A boundary: the callback is not ours.
                logger.exception("the confirmation callback failed for tool call %s", req_id)
                raise Refuse("asking for it failed").error(tool.name) from error
        return approve_silence()

    async def _ask(self, req_id: str, tool: ShownTool, params: dict[str, Any]) -> object:
        assert self.confirm_callback is not None
        ask = partial(self.confirm_callback, req_id, tool.server, tool.original, params)
        if inspect.iscoroutinefunction(self.confirm_callback):
            answer = ask()
        else:
            # It may block on a person; the loop, and the call's deadline, must not wait for that.
            answer = await anyio.to_thread.run_sync(ask, abandon_on_cancel=True)
        return await answer if inspect.isawaitable(answer) else answer

    async def _call(
        self, req_id: str, tool: ShownTool, params: dict[str, Any], timeout: float | None, progress: CallProgress | None
    ) -> CallToolResult:
        record = partial(self._remember, req_id, tool, params, timeout, datetime.now(UTC).isoformat())
        try:
            result = await self._manager.call_tool(tool, params, progress=progress)
        except ServerNotActiveError:
            raise  # it never reached the server
        except (ToolError, PayloadTooLargeError) as error:
            record(error.message)
            raise
        except anyio.get_cancelled_exc_class():
            record("cancelled, or out of time")
            raise
        record(self._redaction.quote(text_of(result)) if result.is_error else None)
        return result

    def _remember(
        self,
        req_id: str,
        tool: ShownTool,
        params: dict[str, Any],
        timeout: float | None,
        timestamp: str,
        error: str | None,
    ) -> None:
        record: ToolCallRecord = {
            "timestamp": timestamp,
            "req_id": req_id,
            "server": tool.server,
            "tool": tool.original,
            "parameters": params,
            "timeout": timeout,
            "success": error is None,
            "error": error,
        }
        self._history = remember(self._history, record)


def _as_written(config: MCPServerConfig | dict[str, Any]) -> dict[str, Any]:
    return wire_server(config) if isinstance(config, BaseServerConfig) else deepcopy(config)
