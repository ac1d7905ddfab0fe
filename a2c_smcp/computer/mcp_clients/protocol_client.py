"""The client's half of MCP over a dispatcher: the handshakes of both eras, requests whose answers are checked, and what
the server says by itself. Knows no transport, no restarts, and no errors of ours.

mcp's own client is not used: it imports mcp's servers, an HTTP server and cryptography. The models are those of
`mcp_types`, which mcp uses, too.
"""

import asyncio
import itertools
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, Final, TypeAlias, get_args

import anyio
import mcp_types as types
from mcp_types import methods
from mcp_types.version import (
    HANDSHAKE_PROTOCOL_VERSIONS,
    LATEST_HANDSHAKE_VERSION,
    LATEST_MODERN_VERSION,
    MODERN_PROTOCOL_VERSIONS,
)
from pydantic import BaseModel, ValidationError

from a2c_smcp.computer.mcp_clients.dispatching import (
    CallOptions,
    Dispatcher,
    OnReport,
    as_request_id,
    cancelled_request,
)
from a2c_smcp.computer.mcp_clients.elicitation.asking import NO_MODES, QuestionMode
from a2c_smcp.computer.mcp_clients.handshakes import AUTO, LEGACY
from a2c_smcp.computer.mcp_clients.mcp_error import MCPError
from a2c_smcp.computer.mcp_clients.output_schemas import OutputSchemas

__all__ = ["TASKS", "ClientHooks", "ProtocolClient", "ServerSaid", "capability"]

logger = logging.getLogger(__name__)

#: MCP's name of the extension for tasks since 2026-07-28. Its handles are understood here, so it is declared.
TASKS: Final = "io.modelcontextprotocol/tasks"
_SUBSCRIPTION: Final = "io.modelcontextprotocol/subscriptionId"
_HEADER: Final = "x-mcp-header"
#: Seconds for the answer to `server/discover`.
_DISCOVER_SECONDS: Final = 10.0
#: Of requests before the handshake, MCP withdraws none.
_HANDSHAKE: Final[CallOptions] = {"cancel_on_abandon": False}
_DISCOVER: Final[CallOptions] = {"cancel_on_abandon": False, "timeout": _DISCOVER_SECONDS}

#: A notification of a server.
ServerSaid: TypeAlias = types.ServerNotification | types.TaskStatusNotification
#: How many notifications that are not valid are logged.
_LOGGED: Final = 3
_stream_numbers: Final = itertools.count(1)


@dataclass(frozen=True, slots=True)
class ClientHooks:
    """Whom a `ProtocolClient` asks and tells."""

    declares: Callable[[str], frozenset[QuestionMode]]
    """The questions for which a request with this method may declare that somebody answers them."""
    elicit: Callable[[types.ElicitRequestParams], Awaitable[types.ElicitResult]]
    """Answers a question of MCP's older era."""
    on_notification: Callable[[ServerSaid], None]


@dataclass(slots=True)
class _ListenStream:
    """A listen stream. What is told of it is told in the order in which the server sent it."""

    on_open: Callable[[], None]
    on_event: Callable[[str, str | None], None]
    give_up: Callable[[], None]
    honored: types.SubscriptionFilter | None = None


class ProtocolClient:
    """One session. Enter `over` once; in it the session takes requests from any task."""

    def __init__(self, info: types.Implementation, hooks: ClientHooks) -> None:
        self._info = _written(info)
        self._hooks = hooks
        self._dispatcher: Dispatcher
        self.schemas = OutputSchemas()
        self.protocol_version = ""
        """The version that was agreed on; empty before the handshake."""
        self.is_modern = False
        """Whether the server speaks 2026-07-28 or later."""
        self.server_capabilities = types.ServerCapabilities()
        self.server_info: types.Implementation | None = None
        """What the server says of itself. Since 2026-07-28 it need not."""
        self.instructions: str | None = None
        self._metas: dict[frozenset[QuestionMode], dict[str, Any]] = {}
        self._streams: dict[types.RequestId, _ListenStream] = {}
        self._invalid = 0
        """How many notifications were not valid."""

    @asynccontextmanager
    async def over(self, way: AbstractAsyncContextManager[Dispatcher], mode: str) -> AsyncGenerator[None, None]:
        """Enter `way`, and agree with the server on a version. `mode` is `AUTO`, `LEGACY`, or a version since
        2026-07-28.
        """
        async with way as self._dispatcher, anyio.create_task_group() as tasks:
            await tasks.start(self._dispatcher.run, self._answer, self._hear)
            try:
                if mode == LEGACY:
                    await self._initialize()
                elif mode == AUTO:
                    await self._negotiate()
                else:
                    self._adopt(types.DiscoverResult.model_validate(await self._discover(mode)))
                yield
            finally:
                tasks.cancel_scope.cancel()

    # --- the handshakes

    async def _negotiate(self) -> None:
        """Ask what the server can do since 2026-07-28; if it does not say, use the old handshake.

        Every refusal leads to the old handshake but one: a server that names the versions it speaks. A slow server may
        refuse the old handshake because it has taken the question meanwhile, and names them then.
        """
        version = LATEST_MODERN_VERSION
        for is_last in (False, True):
            try:
                said = await self._discover(version)
            except MCPError as refusal:
                named = _versions_in(refusal)
                if not is_last and (newest := _newest(named)) is not None:
                    version = newest
                    continue
                if named is not None and not set(HANDSHAKE_PROTOCOL_VERSIONS).intersection(named):
                    raise
            else:
                found = _discovery(said)
                if found is not None and _newest(found.supported_versions) is not None:
                    self._adopt(found)
                    return
            try:
                await self._initialize()
            except MCPError as refusal:
                newest = _newest(_versions_in(refusal))
                if is_last or newest is None:
                    raise
                version = newest
            else:
                return

    async def _initialize(self) -> None:
        request = {
            "protocolVersion": LATEST_HANDSHAKE_VERSION,
            "capabilities": capability(self._hooks.declares("initialize")),
            "clientInfo": self._info,
        }
        said = await self._dispatcher.send_raw_request("initialize", request, _HANDSHAKE)
        found = types.InitializeResult.model_validate(self._checked("initialize", said), by_name=False)
        if found.protocol_version not in HANDSHAKE_PROTOCOL_VERSIONS:
            raise RuntimeError(f"Unsupported protocol version from the server: {found.protocol_version}")
        self.protocol_version = found.protocol_version
        self.server_info = found.server_info
        self.server_capabilities, self.instructions = found.capabilities, found.instructions
        await self._dispatcher.notify("notifications/initialized", None)

    async def _discover(self, version: str) -> dict[str, Any]:
        """Ask what the server can do in this version. Its answer is not checked."""
        meta = self._meta(version, self._hooks.declares("server/discover"))
        said = await self._dispatcher.send_raw_request("server/discover", {"_meta": meta}, _DISCOVER)
        return _with_hints(said)

    async def ping(self) -> None:
        """Ask whether the server is there, with the request of its era."""
        if self.is_modern:
            await self._discover(self.protocol_version)
        else:
            await self._dispatcher.send_raw_request("ping", None)

    def _adopt(self, found: types.DiscoverResult) -> None:
        version = _newest(found.supported_versions)
        if version is None:
            ours = list(MODERN_PROTOCOL_VERSIONS)
            text = f"No mutually supported modern protocol version (server: {found.supported_versions}, client: {ours})"
            raise RuntimeError(text)
        self.protocol_version, self.is_modern = version, True
        self.server_capabilities, self.instructions = found.capabilities, found.instructions
        try:
            info = (found.meta or {}).get(types.SERVER_INFO_META_KEY)
            self.server_info = None if info is None else types.Implementation.model_validate(info)
        except ValidationError:  # it is only shown
            self.server_info = None

    # --- requests

    def meta(self, modes: frozenset[QuestionMode]) -> dict[str, Any]:
        """What each request carries in `_meta` since 2026-07-28: who asks, in which version, with which capabilities.
        Empty before.
        """
        if not self.is_modern:
            return {}
        if (found := self._metas.get(modes)) is None:
            found = self._metas[modes] = self._meta(self.protocol_version, modes)
        return found

    def _meta(self, version: str, modes: frozenset[QuestionMode]) -> dict[str, Any]:
        return {
            types.PROTOCOL_VERSION_META_KEY: version,
            types.CLIENT_INFO_META_KEY: self._info,
            types.CLIENT_CAPABILITIES_META_KEY: {**capability(modes), "extensions": {TASKS: {}}},
        }

    def send(
        self,
        method: str,
        params: Mapping[str, Any],
        modes: frozenset[QuestionMode] = NO_MODES,
        on_report: OnReport | None = None,
    ) -> Coroutine[Any, Any, dict[str, Any]]:
        """The result of a request as the server sent it. `modes` are the questions that somebody answers."""
        if self.is_modern:
            params = {**params, "_meta": {**params.get("_meta", {}), **self.meta(modes)}}
        return self._dispatcher.send_raw_request(method, params, None, on_report)

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        modes: frozenset[QuestionMode] = NO_MODES,
    ) -> dict[str, Any]:
        """As `send`; but the result is checked against the version of the session. Raises `ValidationError`.

        `modes` are the questions that somebody answers besides those who answer all.
        """
        if self.is_modern:
            modes |= self._hooks.declares(method)
        return self._checked(method, await self.send(method, params or {}, modes))

    def _checked(self, method: str, said: dict[str, Any]) -> dict[str, Any]:
        said = _with_hints(said)
        version = self.protocol_version or LATEST_HANDSHAKE_VERSION
        try:
            methods.validate_server_result(method, version, said)
        except KeyError:  # a method that this version does not know
            return said
        later = _later_fields(method, version)
        return said if later.isdisjoint(said) else {key: value for key, value in said.items() if key not in later}

    async def page(self, method: str, cursor: str | None) -> types.PaginatedResult:
        """A page of a list, without its items."""
        said = await self.request(method, {} if cursor is None else {"cursor": cursor})
        return types.PaginatedResult.model_validate(said, by_name=False)

    async def list_tools(self, cursor: str | None = None) -> types.ListToolsResult:
        """A page of the tools."""
        said = await self.request("tools/list", {} if cursor is None else {"cursor": cursor})
        page = types.ListToolsResult.model_validate(said, by_name=False)
        if self.is_modern and any(_mentions(tool.input_schema, _HEADER) for tool in page.tools):
            await self._drop_wrong_headers(page)
        self.schemas.note(page.tools, are_all=cursor is None and page.next_cursor is None)
        return page

    async def check_tool_result(self, tool: str, result: types.CallToolResult) -> None:
        """Raise `RuntimeError` if a result breaks the output schema of its tool."""
        if tool not in self.schemas:
            await self.list_tools()
        self.schemas.check(tool, result)

    async def _drop_wrong_headers(self, page: types.ListToolsResult) -> None:
        """MCP wants tools left out whose parameters ask for impossible HTTP headers, whatever the transport."""
        headers = await asyncio.to_thread(import_module, "mcp.shared.inbound")  # a server over pipes rarely has any
        kept: list[types.Tool] = []
        for tool in page.tools:
            if (why := headers.find_invalid_x_mcp_header(tool.input_schema)) is None:
                kept.append(tool)
            else:
                logger.warning("dropping tool %r: invalid x-mcp-header (%s)", tool.name, why)
        page.tools = kept

    async def listen(
        self,
        wanted: types.SubscriptionFilter,
        on_open: Callable[[], None],
        on_event: Callable[[str, str | None], None],
    ) -> None:
        """A listen stream, as since 2026-07-28. Returns when the server ends it; raises `MCPError` if it refuses it.

        `on_event` is called with the method of each notification, and with the resource that it names.
        """
        request_id = f"listen-{next(_stream_numbers)}"
        params = {"notifications": _written(wanted), "_meta": self.meta(self._hooks.declares("subscriptions/listen"))}
        with anyio.CancelScope() as scope:
            self._streams[request_id] = _ListenStream(on_open, on_event, scope.cancel)
            try:
                await self._dispatcher.send_raw_request("subscriptions/listen", params, {"request_id": request_id})
            finally:
                del self._streams[request_id]

    # --- what the server says by itself

    async def _answer(self, method: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
        version = self.protocol_version or LATEST_HANDSHAKE_VERSION
        try:
            request = methods.parse_server_request(method, version, params)
        except KeyError:
            raise MCPError(types.METHOD_NOT_FOUND, "Method not found", method) from None
        match request:
            case types.PingRequest():
                return {}
            case types.ElicitRequest(params=asked):
                answer = _written(await self._hooks.elicit(asked))
                methods.validate_client_result(method, version, answer)
                return answer
        raise not_supported(request)

    def _hear(self, method: str, params: Mapping[str, Any] | None) -> None:
        if self._streams and self._is_of_a_stream(method, params or {}):
            return
        try:
            version = self.protocol_version or LATEST_HANDSHAKE_VERSION
            said: Any = methods.parse_server_notification(method, version, params)
        except KeyError:
            if method != "notifications/tasks/status":
                logger.debug("dropped %r, which this version of MCP does not have", method)
                return
            said = _task_status(params)
        except ValidationError:
            said = None
        if said is None:
            self._invalid += 1
            if self._invalid <= _LOGGED:
                last = "; further ones are not logged" if self._invalid == _LOGGED else ""
                logger.warning("Failed to validate notification: %s%s", method, last)
        elif not isinstance(said, types.CancelledNotification):
            self._hooks.on_notification(said)

    def _is_of_a_stream(self, method: str, params: Mapping[str, Any]) -> bool:
        """Whether this belongs to a listen stream. Then it is told there."""
        if method == "notifications/cancelled":
            stream = self._streams.get(cancelled_request(params) or "")
            if stream is not None:  # the server has ended it
                stream.give_up()
            return stream is not None
        meta = params.get("_meta")
        named = as_request_id(meta.get(_SUBSCRIPTION)) if isinstance(meta, Mapping) else None
        stream = None if named is None else self._streams.get(named)
        if stream is None:
            return False
        if method == "notifications/subscriptions/acknowledged":
            return _open(stream, params.get("notifications"))
        uri = params.get("uri")
        if stream.honored is not None and _is_honored(stream.honored, method, uri):
            stream.on_event(method, uri if isinstance(uri, str) else None)
        return True


def capability(modes: frozenset[QuestionMode]) -> dict[str, Any]:
    """What is declared to a server: which of its questions a person answers, while there is such a person.

    This matters, because a server that cannot ask may act without asking. Empty if nobody answers.
    """
    return {"elicitation": {mode: {} for mode in sorted(modes)}} if modes else {}


def not_supported(request: object) -> MCPError:
    """The answer to what servers may ask of clients, and nobody does here."""
    what = "Sampling" if isinstance(request, types.CreateMessageRequest) else "List roots"
    return MCPError(types.INVALID_REQUEST, f"{what} not supported")


def _written(model: BaseModel) -> dict[str, Any]:
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


def _with_hints(said: dict[str, Any]) -> dict[str, Any]:
    """A result whose hint for caches is valid. Some servers send negative ones, and here nothing is cached."""
    ttl = said.get("ttlMs")
    return {**said, "ttlMs": 0} if isinstance(ttl, int | float) and ttl < 0 else said


def _newest(named: Iterable[str] | None) -> str | None:
    """The newest version since 2026-07-28 that both sides speak."""
    return max((version for version in named or () if version in MODERN_PROTOCOL_VERSIONS), default=None)


def _versions_in(refusal: MCPError) -> list[str] | None:
    """The versions that a server names when it refuses another one."""
    if refusal.code != types.UNSUPPORTED_PROTOCOL_VERSION:
        return None
    try:
        return types.UnsupportedProtocolVersionErrorData.model_validate(refusal.data).supported
    except ValidationError:
        return None


def _discovery(said: Mapping[str, Any]) -> types.DiscoverResult | None:
    try:
        return types.DiscoverResult.model_validate(said)
    except ValidationError:
        return None


def _task_status(params: Mapping[str, Any] | None) -> types.TaskStatusNotification | None:
    try:
        return types.TaskStatusNotification(params=types.TaskStatusNotificationParams.model_validate(params or {}))
    except ValidationError:
        return None


def _open(stream: _ListenStream, honored: object) -> bool:
    """Take what the server will tell of. Returns `False` if that is not valid."""
    try:
        found = types.SubscriptionFilter.model_validate(honored)
    except ValidationError:
        return False
    if stream.honored is None:
        stream.honored = found
        stream.on_open()
    return True


def _is_honored(honored: types.SubscriptionFilter, method: str, uri: object) -> bool:
    match method:
        case "notifications/tools/list_changed":
            return honored.tools_list_changed is True
        case "notifications/prompts/list_changed":
            return honored.prompts_list_changed is True
        case "notifications/resources/list_changed":
            return honored.resources_list_changed is True
        case "notifications/resources/updated":
            # The resource may be a part of one that is watched.
            return isinstance(uri, str) and bool(honored.resource_subscriptions)
    return False


def _mentions(schema: object, key: str) -> bool:
    """Whether this key stands anywhere in a schema."""
    left = [schema]
    while left:
        match left.pop():
            case dict() as found:
                if key in found:
                    return True
                left.extend(found.values())
            case list() as found:
                left.extend(found)
    return False


@cache
def _later_fields(method: str, version: str) -> frozenset[str]:
    """The fields that a later version has in the result of this method, and this version has not. They are no part of
    what was agreed on, and models without a version would check them.
    """
    later = methods.SERVER_RESULTS.get((method, LATEST_MODERN_VERSION))
    now = methods.SERVER_RESULTS.get((method, version))
    if later is None or now is None or version in MODERN_PROTOCOL_VERSIONS:
        return frozenset()
    return _fields(later) - _fields(now)


def _fields(target: Any) -> frozenset[str]:
    """The fields of a model, or of all models of a union, as they are written."""
    models = [model for model in get_args(target) or (target,) if hasattr(model, "model_fields")]
    return frozenset(field.alias or name for model in models for name, field in model.model_fields.items())
