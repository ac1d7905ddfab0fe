"""What we rely on in simple-websocket and its documentation does not promise: an upgrade fails here first."""

import socket
import threading
from types import SimpleNamespace
from typing import Any

import simple_websocket
from engineio.async_drivers import _websocket_wsgi
from simple_websocket.ws import Base

from a2c_smcp.server.simple_websocket_internals import bound_reading, system_socket_of
from tests.server.raw import frame
from tests.undocumented import Library

library = Library("simple-websocket", "a2c_smcp.server.simple_websocket_internals")

UPGRADE = {
    "HTTP_HOST": "localhost",
    "HTTP_CONNECTION": "Upgrade",
    "HTTP_UPGRADE": "websocket",
    "HTTP_SEC_WEBSOCKET_VERSION": "13",
    "HTTP_SEC_WEBSOCKET_KEY": "AAAAAAAAAAAAAAAAAAAAAA==",
    "PATH_INFO": "/",
}


def test_it_reads_as_it_did() -> None:
    library.says(_websocket_wsgi.SimpleWebSocketWSGI.__call__, "self.ws = simple_websocket.Server(")
    library.says(Base._thread, "self.connected = self._handle_events()")
    library.says(Base._handle_events, "self.incoming_message_len > self.max_message_size", "self.event.set()")
    library.says(Base.receive, "while self.connected and not self.input_buffer", "self.event.wait(")


def test_what_it_reads_can_be_bounded_and_held_and_its_socket_can_be_had() -> None:
    ours, theirs = socket.socketpair()
    theirs.settimeout(20)
    held, go, too_large = threading.Event(), threading.Event(), threading.Event()
    server = simple_websocket.Server(UPGRADE | {"werkzeug.socket": ours})
    library.has(server, ["sock", "connected", "event", "input_buffer", "incoming_message_len", "max_message_size"])
    ws = SimpleNamespace(ws=server)
    assert system_socket_of(ws) is ours

    def hold(arrived: Any) -> None:
        if arrived():
            held.set()
            assert go.wait(20)

    bound_reading(ws, lambda: 10, too_large.set, hold)
    theirs.sendall(frame(b"small"))
    assert held.wait(20)
    assert server.receive(20) == "small"
    go.set()
    theirs.sendall(frame(b"much too large"))
    assert too_large.wait(20)
    server.thread.join(20)
    assert not server.thread.is_alive()
    theirs.close()
