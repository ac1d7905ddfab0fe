"""What we use of mcp that its documentation does not promise: each is still there."""

import inspect

from mcp.server.connection import Connection
from mcp.server.lowlevel import Server
from mcp.server.mcpserver.utilities.func_metadata import FuncMetadata, func_metadata
from mcp.server.session import ServerSession


def test_a_session_has_its_connection_and_that_its_state_its_end_and_its_id() -> None:
    assert "self._connection = connection" in inspect.getsource(ServerSession.__init__)
    assert {"state", "exit_stack", "session_id"} <= Connection.__annotations__.keys()


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
