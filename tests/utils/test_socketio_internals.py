"""What we rely on in python-socketio and its documentation does not promise: an upgrade fails here first."""

import ast
from pathlib import Path
from typing import Any

import pytest
import socketio
from socketio import (
    async_client,
    async_manager,
    async_namespace,
    async_server,
    base_client,
    base_manager,
    base_namespace,
    base_server,
    packet,
)
from typing_extensions import get_protocol_members

import a2c_smcp
from a2c_smcp.link.connection import Connection
from a2c_smcp.packets import SMCPPacket
from a2c_smcp.server.basement import BasementNamespace
from a2c_smcp.utils.socketio_internals import Manager, RoomManager, SocketIOServer
from tests.undocumented import Library

library = Library("python-socketio", "a2c_smcp.utils.socketio_internals")


def servers() -> list[Any]:
    return [socketio.AsyncServer(async_mode="asgi")]


def test_packets_are_where_they_were() -> None:
    numbers = [packet.CONNECT, packet.DISCONNECT, packet.EVENT, packet.ACK, packet.BINARY_EVENT, packet.BINARY_ACK]
    assert numbers == [0, 1, 2, 3, 5, 6]
    each = packet.Packet(packet.EVENT, data=["e"])
    library.has(each, ["packet_type", "namespace", "id", "data", "json", "uses_binary_events"])
    library.has(each, ["attachment_count", "attachments", "encode"])
    library.takes(packet.Packet.decode, "encoded_packet")
    library.takes(packet.Packet.add_attachment, "attachment")
    library.says(packet.Packet.__init__, "self.attachment_count = self.decode(encoded_packet)")


def test_a_server_and_its_manager_have_what_we_use_of_them() -> None:
    for each in servers():
        library.has(each, sorted(get_protocol_members(SocketIOServer)))
        library.has(each.manager, sorted(get_protocol_members(Manager)))
        assert {"connect", "message", "disconnect"} <= each.eio.handlers.keys()


def test_a_manager_answers_as_we_ask_it() -> None:
    each = base_manager.BaseManager
    for method in (each.is_connected, each.is_pre_connected, each.connect, each.eio_sid_from_sid):
        library.takes(method, "sid", "namespace")
    library.takes(each.sid_from_eio_sid, "eio_sid", "namespace")
    library.takes(each.get_namespaces)
    library.takes(each.basic_enter_room, "sid", "namespace", "room", "eio_sid")
    library.takes(each.basic_leave_room, "sid", "namespace", "room")
    library.says(async_manager.AsyncManager.enter_room, "self.basic_enter_room(")
    library.takes(each.basic_disconnect, "sid", "namespace")
    library.says(each.basic_disconnect, "self.basic_leave_room(", "del self.callbacks[sid]")
    for method, kept in ((each.pre_connect, "self.pending_connect"), (each.pre_disconnect, "self.pending_disconnect")):
        library.says(method, f"{kept}[namespace] = []", f"{kept}[namespace].append(sid)")
    library.says(each.connect, "self.pending_connect[namespace].remove(sid)")


class Unsearchable(dict[Any, Any]):
    """The rooms of a namespace. Nobody may look through all of them."""

    def _refuse(self, *_: object) -> Any:
        raise AssertionError("looked through all rooms")

    copy = items = keys = values = __iter__ = _refuse


async def test_the_end_of_a_session_looks_at_its_own_rooms_only_and_leaves_nothing() -> None:
    sio = socketio.AsyncServer(async_mode="asgi", client_manager=RoomManager())
    manager = sio.manager
    sids = [await manager.connect(f"connection-{number}", "/smcp") for number in range(20)]
    for number, sid in enumerate(sids):
        manager.basic_enter_room(sid, "/smcp", f"office:{number % 3}")
        manager.callbacks[sid] = {}
    manager.rooms["/smcp"] = Unsearchable(manager.rooms["/smcp"])
    for sid in sids:
        manager.pre_disconnect(sid, "/smcp")
        assert not manager.is_connected(sid, "/smcp")
        manager.basic_disconnect(sid, "/smcp")
    assert not manager.rooms and not manager.callbacks and not manager._rooms_of
    assert not manager.pending_connect and not manager.pending_disconnect


def test_a_namespace_is_told_its_server_and_its_events_may_be_awaited() -> None:
    library.takes(base_namespace.BaseServerNamespace._set_server, "server")
    library.says(base_server.BaseServer.register_namespace, "namespace_handler._set_server(self)")
    library.says(async_server.AsyncServer._trigger_event, "return await handler.trigger_event(event, *args)")


def test_a_server_knows_which_connections_are_open() -> None:
    for each in (async_server.AsyncServer,):
        library.says(each._handle_eio_connect, "self.environ[eio_sid] = environ")
        library.says(each._handle_eio_disconnect, "del self.environ[eio_sid]")


def test_a_client_has_what_we_use_of_it() -> None:
    client = async_client.AsyncClient
    library.takes(client._engineio_client_class)
    library.says(
        base_client.BaseClient.__init__, "self.eio = self._engineio_client_class()(", "self._binary_packet = None"
    )
    library.takes(client._handle_event, "namespace", "id", "data")
    library.takes(client._handle_ack, "namespace", "id", "data")
    library.takes(client._send_packet, "pkt")
    library.says(client._handle_eio_message, "pkt.add_attachment(data)", "self._binary_packet = pkt")
    library.says(client._handle_eio_message, "self._handle_event(pkt.namespace", "self._handle_ack(pkt.namespace")


@pytest.mark.parametrize(
    ("ours", "theirs", "names"),
    [
        (BasementNamespace, async_namespace.AsyncNamespace, ["trigger_event", "_set_server"]),
        (RoomManager, async_manager.AsyncManager, ["basic_disconnect", "basic_enter_room", "basic_leave_room"]),
        (SMCPPacket, packet.Packet, ["add_attachment", "decode", "json", "uses_binary_events"]),
        (Connection, async_client.AsyncClient, ["_engineio_client_class", "_handle_ack", "_handle_event"]),
    ],
)
def test_we_override_what_we_mean_to(ours: type, theirs: type, names: list[str]) -> None:
    library.is_overridden(ours, theirs, *names)


# --- one module each

ROOMS = {
    "engineio": "utils/engineio_internals.py",
    "socketio.packet": "utils/socketio_internals.py",
    "uvicorn.middleware": "server/uvicorn_parts.py",
    "uvicorn.protocols.http": "web/guarded_http.py",
    "uvicorn.protocols.websockets": "server/guarded_websocket.py",
    "websockets": "server/guarded_websocket.py",
}


@pytest.mark.parametrize(("library", "room"), ROOMS.items())
def test_what_a_library_does_not_document_is_imported_in_one_module(library: str, room: str) -> None:
    package = Path(a2c_smcp.__file__).parent
    for file in package.rglob("*.py"):
        imported = {name for node in ast.walk(ast.parse(file.read_text("utf-8"))) for name in imports(node)}
        found = [name for name in imported if name == library or name.startswith(f"{library}.")]
        assert not found or file == package / room, f"{file.name} imports {found}: take it from {room}"


def imports(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        return [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return []
