"""What we rely on in uvicorn's server, and in the classes that ours extend, by name: an upgrade fails here first."""

import asyncio
from typing import Any

import pytest
import uvicorn
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from a2c_smcp.server.uvicorn_parts import ServerHTTP
from a2c_smcp.web.guarded_http import GuardedHTTP
from a2c_smcp.web.http_surface import SurfaceHTTP
from a2c_smcp.web.uvicorn_server import GracefulServer
from tests.undocumented import Library

library = Library("uvicorn", "a2c_smcp.web.uvicorn_server")
protocols = Library("uvicorn", "a2c_smcp.web.guarded_http")


async def app(scope: Any, receive: Any, send: Any) -> None: ...


def test_a_server_starts_stops_and_hears_signals_where_ours_does() -> None:
    library.takes(uvicorn.Server.startup, "sockets")
    library.takes(uvicorn.Server.shutdown, "sockets")
    library.has(uvicorn.Server, ["handle_exit"])
    library.says(uvicorn.Server.serve, "with self.capture_signals():")
    library.says(uvicorn.Server._serve, "await self.startup(sockets=sockets)", "await self.shutdown(sockets=sockets)")
    library.is_overridden(GracefulServer, uvicorn.Server, "startup", "shutdown", "capture_signals", "handle_exit")


async def test_the_protocols_have_what_ours_use_of_them() -> None:
    config = uvicorn.Config(app, lifespan="off")
    config.load()
    http: Any = HttpToolsProtocol(config, ServerState(), {})
    protocols.has(http, ["transport", "client", "config", "loop", "logger", "flow", "scope", "pipeline", "cycle"])
    protocols.has(http, ["parser", "ws_protocol_class"])
    protocols.has(FlowControl(http.transport), ["read_paused", "write_paused", "pause_reading", "resume_reading"])
    protocols.has(ProxyHeadersMiddleware(app, "10.0.0.1"), ["trusted_hosts"])
    assert asyncio.get_running_loop() is http.loop


_HTTP = [
    "connection_lost",
    "connection_made",
    "data_received",
    "handle_websocket_upgrade",
    "on_body",
    "on_headers_complete",
    "on_message_begin",
    "on_message_complete",
    "on_response_complete",
    "pause_writing",
    "resume_writing",
    "send_400_response",
]


@pytest.mark.parametrize(
    ("ours", "theirs", "names"),
    [
        (GuardedHTTP, HttpToolsProtocol, _HTTP),
        (ServerHTTP, HttpToolsProtocol, _HTTP),
        (SurfaceHTTP, HttpToolsProtocol, _HTTP),
    ],
)
def test_we_override_what_we_mean_to(ours: type, theirs: type, names: list[str]) -> None:
    protocols.is_overridden(ours, theirs, *names)
