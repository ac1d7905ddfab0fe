"""What we use of mcp that its documentation does not promise: each is still there."""

import ast
import inspect
from importlib import import_module
from pathlib import Path

import pytest
from mcp.server.connection import Connection
from mcp.server.lowlevel import Server
from mcp.server.session import ServerSession

from a2c_smcp.mcp_server import mcp_server_internals
from a2c_smcp.mcp_server.mcp_server_internals import FuncMetadata, func_metadata, is_cancelled_answer

#: What is handed on as it is, and where mcp has it.
HANDED_ON = {
    "Connection": "mcp.server.connection",
    "FuncMetadata": "mcp.server.mcpserver.utilities.func_metadata",
    "func_metadata": "mcp.server.mcpserver.utilities.func_metadata",
    "SUBSCRIPTION_ID_META_KEY": "mcp.shared.subscriptions",
    "REQUEST_CANCELLED": "mcp.server.streamable_http",
}


@pytest.mark.parametrize(("name", "module"), HANDED_ON.items())
def test_what_is_handed_on_is_where_it_was(name: str, module: str) -> None:
    assert hasattr(import_module(module), name), f"{module} has no {name} any more: see mcp_server_internals"
    assert getattr(mcp_server_internals, name) is getattr(import_module(module), name)


def test_every_name_has_its_test_and_is_imported_from_nowhere_else() -> None:
    assert {*HANDED_ON, "connection_of", "is_cancelled_answer", "was_taken_back"} == set(mcp_server_internals.__all__)
    folder = Path(mcp_server_internals.__file__).parent
    found = [
        (file.name, node.module)
        for file in folder.glob("*.py")
        if file.name != "mcp_server_internals.py"
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module in HANDED_ON.values()
    ]
    assert found == []


def test_a_session_has_its_connection_and_that_its_state_its_end_and_its_id() -> None:
    assert "self._connection = connection" in inspect.getsource(ServerSession.__init__)
    assert {"state", "exit_stack", "session_id"} <= Connection.__annotations__.keys()


def test_a_session_knows_whether_its_request_was_taken_back() -> None:
    from mcp.shared.dispatcher import DispatchContext

    assert "self._request_outbound = request_outbound" in inspect.getsource(ServerSession.__init__)
    assert hasattr(DispatchContext, "cancel_requested")


def test_only_mcps_answer_to_a_cancelled_request_is_one() -> None:
    answer = (
        b'event: message\r\ndata: {"jsonrpc":"2.0","id":3,"error":{"code":-32800,"message":"Request cancelled"}}\r\n'
    )
    assert is_cancelled_answer(answer)
    for other in (
        b"",
        b'data: {"jsonrpc":"2.0","id":3,"result":{"text":"\\"code\\":-32800"}}\r\n',
        b'data: {"jsonrpc":"2.0","id":3,"result":{"error":{"code":-32800}}}\r\n',
        b'data: {"code":-32800\r\n',
        b'data: ["code":-32800]\r\n',
    ):
        assert not is_cancelled_answer(other)


def test_a_typed_function_is_read_by_mcp() -> None:
    async def function(a: int, hidden: object) -> dict[str, int]:
        return {"a": a}

    reading = func_metadata(function, skip_names=["hidden"], structured_output=None)
    assert isinstance(reading, FuncMetadata)
    assert reading.validate_arguments({"a": 1}) == {"a": 1}
    assert reading.output_schema is not None


def test_over_http_mcp_asks_its_server_for_the_options() -> None:
    from mcp.server import runner

    assert "self.server.create_initialization_options()" in inspect.getsource(runner)
    assert "notification_options" in inspect.signature(Server.create_initialization_options).parameters
