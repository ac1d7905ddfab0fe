"""What we rely on in mcp's client and its documentation does not promise: an upgrade of mcp fails here first."""

import ast
import dataclasses
import inspect
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import mcp_types
import pytest
from mcp import MCPError
from mcp.client import _transport, streamable_http
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.client import Client
from mcp.client.session import ClientSession
from mcp.shared import jsonrpc_dispatcher
from mcp.shared._context_streams import ContextReceiveStream
from mcp.shared.dispatcher import Dispatcher
from mcp_types import methods

import a2c_smcp.computer
from a2c_smcp.computer.mcp_clients import mcp_internals
from a2c_smcp.computer.mcp_clients.mcp_internals import NoBackChannelError, client_over, lacks_back_channel, says_gone

#: Every name that is handed on as it is, and where mcp has it.
HANDED_ON = {
    "mcp.client._transport": ("TransportStreams",),
    "mcp.client.session": ("IncomingMessage",),
    "mcp.shared.dispatcher": (
        *("CallOptions", "Dispatcher", "OnNotify", "OnNotifyIntercept", "OnRequest", "Outbound", "ProgressFnT"),
        *("as_request_id", "coerce_request_id", "run_notify_intercept"),
    ),
    "mcp.shared.exceptions": ("NoBackChannelError",),
    "mcp.shared.jsonrpc_dispatcher": (
        *("JSONRPCDispatcher", "cancelled_request_id_from_params", "handler_exception_to_error_data"),
        "progress_token_from_params",
    ),
    "mcp.shared.message": ("SessionMessage",),
    "mcp.shared.transport_context": ("TransportContext",),
    "mcp_types.methods": ("parse_server_result",),
    "mcp_types.version": ("MODERN_PROTOCOL_VERSIONS",),
}
#: What is made of other things, each with a test of its own below.
MADE = {
    *("check_tool_result", "client_over", "discover", "lacks_back_channel", "ping"),
    "says_gone",
}
#: What mcp's documentation offers to clients; the rest goes through `mcp_internals`.
DOCUMENTED = {
    *("mcp", "mcp_types", "mcp.client.client", "mcp.client.sse", "mcp.client.stdio", "mcp.client.streamable_http"),
    *("mcp.client.extension", "mcp.client.subscriptions", "mcp.client.auth", "mcp.shared.auth"),
    "mcp.client.auth.extensions.client_credentials",
}


@pytest.mark.parametrize(("module", "name"), [(module, name) for module, names in HANDED_ON.items() for name in names])
def test_what_is_handed_on_is_where_it_was(module: str, name: str) -> None:
    assert hasattr(import_module(module), name), f"{module} has no {name} any more: see mcp_internals"
    assert getattr(mcp_internals, name) is getattr(import_module(module), name)


def test_every_name_has_its_test() -> None:
    assert {name for names in HANDED_ON.values() for name in names} | MADE == set(mcp_internals.__all__)


def test_the_rest_of_the_computer_imports_what_is_documented() -> None:
    [folder] = a2c_smcp.computer.__path__
    others = [file for file in Path(folder).rglob("*.py") if file.name != "mcp_internals.py"]
    imported = {
        (file.name, module)
        for file in others
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        for module in _modules(node)
        if module.split(".")[0] in ("mcp", "mcp_types")
    }
    assert {module for _, module in imported} & DOCUMENTED, "found no import at all"
    assert [(file, module) for file, module in sorted(imported) if module not in DOCUMENTED] == []


def _modules(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module] if isinstance(node, ast.ImportFrom) and node.module else []


def test_a_machine_still_asks_its_issuer_where_we_put_our_own_grant() -> None:
    assert "await self._perform_authorization()" in inspect.getsource(OAuthClientProvider._auth_flow)
    assert inspect.iscoroutinefunction(ClientCredentialsOAuthProvider._perform_authorization)


def test_a_session_still_has_what_we_ask_it_for_past_its_client() -> None:
    def names(method: Any) -> list[str]:
        return list(inspect.signature(method).parameters)

    assert names(ClientSession.send_discover)[:2] == ["self", "version"]
    assert names(ClientSession.adopt)[:2] == ["self", "result"]
    assert names(ClientSession.send_ping)[:1] == ["self"]
    assert names(ClientSession.validate_tool_result)[:3] == ["self", "name", "result"]
    assert names(methods.parse_server_result)[:3] == ["method", "version", "data"]
    assert "last_context" in ContextReceiveStream.__slots__


@pytest.mark.parametrize(
    ("code", "words", "said_in"),
    [
        (mcp_types.CONNECTION_CLOSED, "Connection closed", jsonrpc_dispatcher),
        (mcp_types.CONNECTION_CLOSED, "SSE stream ", streamable_http),
        (mcp_types.INVALID_REQUEST, "Session terminated", streamable_http),
    ],
)
def test_the_end_of_a_session_is_still_said_in_these_words(code: int, words: str, said_in: Any) -> None:
    assert f'"{words}' in inspect.getsource(said_in)
    assert says_gone(MCPError(code, words))
    assert not says_gone(MCPError(code, "no such row"))
    assert not says_gone(MCPError(-1, words))


def test_a_server_without_a_back_channel_still_says_so_in_these_words() -> None:
    assert lacks_back_channel(NoBackChannelError("elicitation/create"))
    assert not lacks_back_channel(MCPError(mcp_types.INVALID_REQUEST, "Session terminated"))
    assert not lacks_back_channel(MCPError(-1, NoBackChannelError("elicitation/create").message))


class Spoken:
    """A dispatcher that answers the handshake by itself."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def send_raw_request(self, method: str, params: Any, opts: Any = None) -> dict[str, Any]:
        self.asked.append(method)
        info = {"name": "a", "version": "1"}
        return {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": info, "tools": []}

    async def notify(self, method: str, params: Any, opts: Any = None) -> None:
        self.asked.append(method)

    async def run(self, *_: Any, task_status: Any) -> None:
        task_status.started()


def test_the_client_still_asks_its_own_connect_for_a_dispatcher() -> None:
    fields = {field.name: field.init for field in dataclasses.fields(Client)}
    assert fields.get("_connect") is False, "mcp's Client has no `_connect` any more: see mcp_internals.client_over"
    assert "dispatcher" in inspect.signature(ClientSession).parameters


def test_the_types_of_transports_are_where_they_were() -> None:
    assert {"ReadStream", "Transport", "TransportStreams", "WriteStream"} <= set(_transport.__all__)


def test_a_dispatcher_still_has_the_methods_that_ours_has() -> None:
    def names(method: Any) -> list[str]:
        return list(inspect.signature(method).parameters)

    assert names(Dispatcher.send_raw_request) == ["self", "method", "params", "opts"]
    assert names(Dispatcher.notify) == ["self", "method", "params", "opts"]
    assert names(Dispatcher.run) == ["self", "on_request", "on_notify", "on_notify_intercept", "task_status"]


@pytest.mark.parametrize("fails", [False, True])
async def test_a_client_speaks_over_the_dispatcher_that_it_is_given_and_leaves_its_way(fails: bool) -> None:
    dispatcher, left = Spoken(), []

    @asynccontextmanager
    async def way() -> AsyncIterator[Any]:
        try:
            yield dispatcher
        finally:
            left.append(True)

    try:
        async with client_over(way(), mode="legacy", cache=None) as client:
            assert (await client.list_tools()).tools == []
            if fails:
                raise LookupError
    except* LookupError:
        assert fails
    assert dispatcher.asked == ["initialize", "notifications/initialized", "tools/list"]
    assert left == [True]


@pytest.mark.parametrize("module", ["session", "sse", "streamable_http"])
def test_the_loggers_of_mcps_client_have_the_names_that_are_kept_brief(module: str) -> None:
    logger = import_module(f"mcp.client.{module}").logger
    assert logger.name in mcp_internals._LOGGERS
    assert any(isinstance(found, mcp_internals._Brief) for found in logger.filters)
