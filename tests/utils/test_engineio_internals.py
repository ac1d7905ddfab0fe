"""What we rely on in python-engineio and its documentation does not promise: an upgrade fails here first."""

from typing import Any

import engineio
import pytest
from engineio import async_client, async_server, async_socket, exceptions, packet
from engineio.async_drivers import asgi
from typing_extensions import get_protocol_members

from a2c_smcp.link.connection import _Engine
from a2c_smcp.server.async_socket import BoundedAsyncSocket
from a2c_smcp.utils.engineio_internals import (
    NO_GREETING,
    AsyncClient,
    AsyncSocket,
    EngineServer,
    adopt,
    body_of,
    lighten,
    scope_of,
)
from a2c_smcp.utils.light_queue import LightQueue
from tests.undocumented import Library

library = Library("python-engineio", "a2c_smcp.utils.engineio_internals")


def servers() -> list[Any]:
    return [engineio.AsyncServer(async_mode="asgi")]


def test_packets_and_exceptions_are_where_they_were() -> None:
    library.has(packet, ["MESSAGE", "PING", "PONG", "NOOP", "UPGRADE", "CLOSE", "Packet"])
    types = [packet.CLOSE, packet.PING, packet.PONG, packet.MESSAGE, packet.UPGRADE, packet.NOOP]
    assert types == [1, 2, 3, 4, 5, 6]
    library.takes(packet.Packet.__init__, "packet_type", "data", "encoded_packet")
    library.has(packet.Packet(packet.MESSAGE, "x"), ["packet_type", "data", "encode"])
    names = ["ConnectionError", "ContentTooLongError", "QueueEmpty", "SocketIsClosedError", "UnknownPacketError"]
    library.has(exceptions, names)


def test_a_server_has_what_we_use_of_it() -> None:
    for each in servers():
        library.has(each, sorted(get_protocol_members(EngineServer)))
        library.has(each.reason, ["SERVER_DISCONNECT", "TRANSPORT_CLOSE", "TRANSPORT_ERROR"])


async def test_a_server_asks_our_queue_and_our_translation_of_requests() -> None:
    each = engineio.AsyncServer(async_mode="asgi")
    library.has(each, ["create_queue", "_async"])
    lighten(each)
    assert isinstance(async_socket.AsyncSocket(each, "s").queue, LightQueue)

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"all"}

    scope = {"type": "http", "path": "/", "headers": []}
    environ = await each._async["translate_request"](scope, receive, None)
    assert [part async for part in body_of(environ, 3)] == [b"all"]
    assert type(environ["wsgi.input"]) is type(
        (await each._async["translate_request"](scope, receive, None))["wsgi.input"]
    )
    assert asgi._async["translate_request"] is asgi.translate_request  # other servers keep the library's


def test_a_servers_connection_has_what_we_use_of_it() -> None:
    for each, theirs, ours in zip(servers(), (async_socket.AsyncSocket,), (AsyncSocket,), strict=True):
        library.has(theirs(each, "s"), ours.__annotations__)
        library.takes(theirs.close, "wait", "abort", "reason")
        library.takes(theirs.send, "pkt")
        library.takes(theirs.receive, "pkt")
        for method in (theirs.poll, theirs.check_ping_timeout, theirs.schedule_ping):
            library.takes(method)
        library.takes(theirs.handle_post_request, "environ")
        library.takes(theirs._websocket_handler, "ws")
        library.says(theirs.handle_get_request, "'_upgrade_' + transport", "self.poll()")
        library.says(theirs._upgrade_websocket, "self._websocket_handler")
    library.takes(async_socket.AsyncSocket._upgrade_websocket, "environ")


def test_a_connection_can_be_given_another_class() -> None:
    for each, theirs, ours in zip(servers(), (async_socket.AsyncSocket,), (BoundedAsyncSocket,), strict=True):
        connection = theirs(each, "s")
        adopt(connection, ours)
        assert isinstance(connection, ours)
        assert connection.sid == "s"


def test_a_server_puts_a_connection_in_its_table_before_it_calls_the_handler_of_connect() -> None:
    for handles in (async_server.AsyncServer._handle_connect,):
        library.says(handles, "self.sockets[sid] = s", "self._trigger_event('connect'")


async def test_under_asgi_a_request_brings_its_scope_and_the_first_message_of_its_body() -> None:
    messages = [
        {"type": "http.request", "body": b"ab", "more_body": True},
        {"type": "http.request", "body": b"c", "more_body": False},
    ]

    async def receive() -> Any:
        return messages.pop(0)

    scope = {"type": "http", "method": "POST", "path": "/", "headers": []}
    environ = await asgi.translate_request(scope, receive, None)
    assert scope_of(environ) is scope
    assert [part async for part in body_of(environ, 0)] == [b"ab", b"c"]


async def test_a_client_has_what_we_use_of_it() -> None:
    client = async_client.AsyncClient()
    library.has(client, AsyncClient.__annotations__.keys() - {"write_loop_task"})
    library.takes(client._send_request, "method", "url", "headers", "body", "timeout")
    library.takes(client._connect_websocket, "url", "headers", "engineio_path")
    library.takes(client._get_engineio_url, "url", "engineio_path", "transport")
    library.takes(client._receive_packet, "pkt")
    for method in (client._read_loop_websocket, client._write_loop, client._get_url_timestamp):
        library.takes(method)


def test_a_client_takes_the_steps_that_we_replace() -> None:
    client = async_client.AsyncClient
    library.says(client._connect_polling, "self._send_request(", "self._connect_websocket(", "self._receive_packet(")
    library.says(client._connect_websocket, "self._read_loop_websocket", "self._write_loop", NO_GREETING)
    library.says(client._read_loop_websocket, "self.ws.receive()", "self._receive_packet(")
    library.says(client._read_loop_polling, "self._send_request(", "self._receive_packet(")
    library.says(client._write_loop, "self.ws.send_str(", "self._send_request(", "self.queue.task_done()")


_SOCKET = ["check_ping_timeout", "close", "handle_post_request", "poll", "receive", "send", "_websocket_handler"]


@pytest.mark.parametrize(
    ("ours", "theirs", "names"),
    [
        (
            BoundedAsyncSocket,
            async_socket.AsyncSocket,
            [*_SOCKET, "handle_get_request", "schedule_ping", "_upgrade_websocket"],
        ),
        (
            _Engine,
            async_client.AsyncClient,
            ["send", "_connect_websocket", "_read_loop_websocket", "_receive_packet", "_send_request"],
        ),
    ],
)
def test_we_override_what_we_mean_to(ours: type, theirs: type, names: list[str]) -> None:
    library.is_overridden(ours, theirs, *names)


def test_what_is_missing_is_said_in_a_sentence() -> None:
    sentence = r"python-engineio [\d.]+: {} .* see a2c_smcp.utils.engineio_internals"
    with pytest.raises(AssertionError, match=sentence.format("AsyncSocket has no elsewhere any")):
        library.has(async_socket.AsyncSocket, ["poll", "elsewhere"])
    with pytest.raises(AssertionError, match=sentence.format("AsyncSocket.send takes")):
        library.takes(async_socket.AsyncSocket.send, "text")
    with pytest.raises(AssertionError, match=sentence.format("AsyncSocket.send has no `elsewhere`")):
        library.says(async_socket.AsyncSocket.send, "elsewhere")
    with pytest.raises(AssertionError, match=sentence.format("our BoundedAsyncSocket overrides")):
        library.is_overridden(BoundedAsyncSocket, async_socket.AsyncSocket, "poll")
