"""The Computer: MCP servers, inputs, approvals and history under one roof, behind one lifecycle.

Knows nothing of prompts, terminals or sockets: whoever shows or serves it follows `events`, and hands in a callback
that confirms calls and a resolver that asks for inputs.
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

#: So long before a call's deadline silence counts: past the deadline it would be a timeout of the tool.
_CONFIRM_MARGIN: Final = 0.1

#: Asked `(req_id, server, tool, params)`; `True` runs the call. One that is not async is called in a thread. Until just
#: before the call's deadline it may think, then it is cancelled; `TimeoutError` says that nobody answered.
ConfirmCallback: TypeAlias = Callable[[str, SERVER_NAME, TOOL_NAME, dict[str, Any]], bool | Awaitable[bool]]


class Computer:
    """`async with Computer("laptop", mcp_servers=[...]) as computer`: its servers run inside, and only there.

    Servers may be given as config models or as written in a file, `${input:id}` in place. `inputs` is where inputs are
    defined, changed and given values. `input_resolver` asks a person; without one, defaults are used.
    `max_message` is how many bytes a message may have where its results go, `max_window` how many bytes of a window's
    text show among others.
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
        """Start every enabled server; returns when the slowest runs or has failed, and raises for none of them.

        `statuses` says how each of them does. Cancelled, it leaves nothing running.
        """
        try:
            await self._manager.start_all()
            await self._resources.listed()
        except BaseException:
            await self.shutdown()
            raise

    async def shutdown(self) -> None:
        """Stop every server and whatever runs on it, in bounded time. Idempotent; may be booted again."""
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
        """What happens from now on, for one reader; `limit` events wait for it, older ones are lost."""
        return self._events.subscribe(limit)

    # --- what there is

    @property
    def statuses(self) -> list[ServerStatus]:
        """The state of every server, in config order."""
        return self._manager.statuses

    @property
    def history(self) -> tuple[ToolCallRecord, ...]:
        """The last calls that reached a server, oldest first."""
        return self._history

    def get_available_tools(self) -> list[SMCPTool]:
        """The tools that can be called now, as agents see them; not to be changed."""
        return self._manager.tools

    @property
    def tool_servers(self) -> dict[TOOL_NAME, SERVER_NAME]:
        """The names of these tools, and which server each of them is of."""
        return self._manager.tool_servers

    def get_config(self) -> GetComputerConfigRet:
        """Every config in full, placeholders in place, secrets masked."""
        return config_view(self._manager.configs.values(), self.inputs.definitions.values())

    async def get_desktop(
        self, size: int | None = None, window: str | None = None, *, max_bytes: int | None = None
    ) -> list[Desktop]:
        """The windows of all servers as agents see them, at most `size`; or the one of exactly this URI.

        All of them together have at most `max_bytes`, encoded, or what a message may have: large ones are cut, and the
        least important ones left out. One alone is whole; `PayloadTooLargeError` if it is too large to be read.
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
        """One page of the documents that match, and how many match in all; `BadRequestError` for an impossible page.

        The documents are not to be changed.
        """
        return await self._resources.finder(keywords, file_type, self._history, offset, limit)

    async def read_resource(self, uri: str) -> ReadResourceResult:
        """A window, a document or a part of one; see `ShownResources.read` for what it raises."""
        try:
            return await self._resources.read(uri, self._manager.connections)
        except SMCPError as error:
            raise self._manager.redacted(error) from error.__cause__

    @property
    def tool_conflicts(self) -> list[ToolNameDuplicatedError]:
        """The clashes of tool names that keep a server from running, or a tool from being shown."""
        return self._manager.conflicts

    def server_logs(self, name: SERVER_NAME) -> tuple[str, ...]:
        """The last lines that a server wrote to its stderr, or `NotFoundError`."""
        return self._manager.stderr(name)

    # --- servers

    async def add_or_update_server(self, config: MCPServerConfig | dict[str, Any]) -> None:
        """Add a server, or change one; see `MCPServerManager.add_or_update_server` for what it raises.

        A refused config leaves everything as it was.
        """
        with self._announcing_config():
            await self._manager.add_or_update_server(_as_written(config))

    async def remove_server(self, name: SERVER_NAME) -> None:
        """Stop a server and forget it, or raise `NotFoundError`."""
        with self._announcing_config():
            await self._manager.remove_server(name)

    async def start_server(self, name: SERVER_NAME) -> None:
        """Return once the server runs, or raise why it does not."""
        await self._manager.start_server(name)

    async def stop_server(self, name: SERVER_NAME) -> None:
        """Stop a server until it is started."""
        await self._manager.stop_server(name)

    async def restart_server(self, name: SERVER_NAME) -> None:
        """Start a server anew with its config and its inputs as they are now."""
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
        self, req_id: str, tool_name: TOOL_NAME, params: Mapping[str, Any], timeout: float | None = None
    ) -> CallToolResult:
        """The result of a call; a failure is a result too, with its code (4001 to 4005, 413) in `meta`.

        The timeout covers the confirmation as well; `None` means no limit. Cancelling this cancels the tool.
        """
        try:
            with anyio.move_on_after(timeout):
                return await self._execute(req_id, self._manager.validate_tool_call(tool_name), dict(params), timeout)
            raise ToolExecutionTimeoutError(timeout or 0)
        except (ToolError, PayloadTooLargeError) as error:
            logger.warning("tool call %s failed: %s", req_id, error)
            return error_result(error)

    async def _execute(
        self, req_id: str, tool: ShownTool, params: dict[str, Any], timeout: float | None
    ) -> CallToolResult:
        approval = approve(tool.meta, can_ask=self.confirm_callback is not None)
        if isinstance(approval, Ask):
            approval = await self._confirm(req_id, tool, params)
        if isinstance(approval, Refuse):
            raise approval.error(tool.name)
        result = await self._call(req_id, tool, params, timeout)
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
        self, req_id: str, tool: ShownTool, params: dict[str, Any], timeout: float | None
    ) -> CallToolResult:
        record = partial(self._remember, req_id, tool, params, timeout, datetime.now(UTC).isoformat())
        try:
            result = await self._manager.call_tool(tool, params)
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
