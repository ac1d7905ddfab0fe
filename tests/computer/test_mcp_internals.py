"""What we rely on in mcp's client and its documentation does not promise: an upgrade of mcp fails here first."""

import ast
import inspect
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import mcp_types
import pytest
from mcp.client import _transport, stdio, streamable_http
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.shared import jsonrpc_dispatcher
from mcp.shared._context_streams import ContextReceiveStream
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.inbound import X_MCP_HEADER_KEY
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY
from mcp_types import methods

import a2c_smcp.computer
from a2c_smcp.computer.mcp_clients import mcp_internals, protocol_client
from a2c_smcp.computer.mcp_clients.mcp_error import MCPError, lacks_back_channel, says_gone
from a2c_smcp.computer.mcp_clients.model import StdioParameters
from a2c_smcp.computer.mcp_clients.pipes.process import INHERITED, environment_of

#: Every name that is handed on as it is, and where mcp has it.
HANDED_ON = {
    "mcp.client._transport": ("TransportStreams",),
    "mcp.shared.dispatcher": ("CallOptions", "ProgressFnT"),
    "mcp.shared.inbound": (
        *("MCP_METHOD_HEADER", "MCP_NAME_HEADER", "MCP_PROTOCOL_VERSION_HEADER", "NAME_BEARING_METHODS"),
        *("encode_header_value", "find_invalid_x_mcp_header", "mcp_param_headers", "x_mcp_header_map"),
    ),
    "mcp.shared.jsonrpc_dispatcher": ("JSONRPCDispatcher",),
    "mcp.shared.message": ("SessionMessage",),
}
#: What mcp's documentation offers to clients; the rest goes through `mcp_internals`.
DOCUMENTED = {
    *("mcp", "mcp_types", "mcp_types.methods", "mcp_types.version"),
    *("mcp.client.sse", "mcp.client.stdio", "mcp.client.streamable_http"),
    *("mcp.client.auth", "mcp.client.auth.extensions.client_credentials", "mcp.shared.auth"),
}


@pytest.mark.parametrize(("module", "name"), [(module, name) for module, names in HANDED_ON.items() for name in names])
def test_what_is_handed_on_is_where_it_was(module: str, name: str) -> None:
    assert hasattr(import_module(module), name), f"{module} has no {name} any more: see mcp_internals"
    assert getattr(mcp_internals, name) is getattr(import_module(module), name)


def test_every_name_has_its_test() -> None:
    assert {name for names in HANDED_ON.values() for name in names} == set(mcp_internals.__all__)


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


def test_streams_and_dispatchers_still_have_what_we_use_of_them() -> None:
    assert list(inspect.signature(methods.parse_server_result).parameters)[:3] == ["method", "version", "data"]
    assert "last_context" in ContextReceiveStream.__slots__


def test_the_keys_of_listen_streams_and_headers_are_mcps() -> None:
    assert protocol_client._SUBSCRIPTION == SUBSCRIPTION_ID_META_KEY
    assert protocol_client._HEADER == X_MCP_HEADER_KEY


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
    said = NoBackChannelError("elicitation/create").error
    assert lacks_back_channel(MCPError.of(said))
    assert not lacks_back_channel(MCPError(mcp_types.INVALID_REQUEST, "Session terminated"))
    assert not lacks_back_channel(MCPError(-1, said.message))


def test_the_types_of_transports_are_where_they_were() -> None:
    assert {"ReadStream", "Transport", "TransportStreams", "WriteStream"} <= set(_transport.__all__)


def test_mcps_dispatcher_still_takes_what_ours_gives_it() -> None:
    def names(method: Any) -> list[str]:
        return list(inspect.signature(method).parameters)

    assert names(JSONRPCDispatcher.send_raw_request)[:4] == ["self", "method", "params", "opts"]
    assert names(JSONRPCDispatcher.notify)[:4] == ["self", "method", "params", "opts"]
    assert names(JSONRPCDispatcher.run) == ["self", "on_request", "on_notify", "on_notify_intercept", "task_status"]
    assert {"cancel_on_abandon", "headers", "on_progress", "request_id", "timeout"} <= set(
        mcp_internals.CallOptions.__annotations__
    )


def test_a_server_gets_the_variables_that_mcps_own_client_gives_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "() { :; }; echo")
    if sys.platform != "win32":
        assert set(INHERITED) == set(stdio.DEFAULT_INHERITED_ENV_VARS)
        assert environment_of(StdioParameters(command="x")) == stdio.get_default_environment()


@pytest.mark.parametrize("module", ["sse", "streamable_http"])
def test_the_loggers_of_mcps_client_have_the_names_that_are_kept_brief(module: str) -> None:
    logger = import_module(f"mcp.client.{module}").logger
    assert logger.name in mcp_internals._LOGGERS
    assert any(isinstance(found, mcp_internals._Brief) for found in logger.filters)
