"""What the lab uses of aiohttp, uvicorn and mcp beyond their documentation is there."""

import aiohttp
from mcp.server.mcpserver import MCPServer
from mcp.shared import memory
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from a2c_smcp.testing.portless_server import _CableConnector
from tests.undocumented import Library


def test_aiohttp_makes_connections_in_one_method() -> None:
    library = Library("aiohttp", "testing/portless_server.py")
    library.takes(aiohttp.BaseConnector._create_connection, "req", "traces", "timeout")
    library.is_overridden(_CableConnector, aiohttp.BaseConnector, "_create_connection")
    library.says(aiohttp.BaseConnector.__init__, "self._factory = functools.partial(ResponseHandler")


def test_uvicorn_s_protocol_takes_its_application_from_its_config() -> None:
    library = Library("uvicorn", "testing/portless_server.py")
    library.takes(HttpToolsProtocol.__init__, "config", "server_state", "app_state", "_loop")
    library.says(HttpToolsProtocol.__init__, "self.app = config.loaded_app", "self.tasks = server_state.tasks")
    library.says(Config.load, "self.loaded_app = ")
    library.has(ServerState(), ["tasks", "connections"])


def test_mcp_has_streams_in_memory_and_a_lowlevel_server_in_its_other_one() -> None:
    library = Library("mcp", "testing/mcp_in_process.py")
    library.has(memory, ["create_client_server_memory_streams"])
    library.has(MCPServer("x"), ["_lowlevel_server"])
