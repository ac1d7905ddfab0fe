"""What we rely on in python-socketio and its documentation does not promise: an upgrade fails here first."""

import ast
from pathlib import Path

import pytest
from socketio import async_client, base_client, packet

import a2c_smcp
from a2c_smcp.link.connection import Connection
from a2c_smcp.packets import SMCPPacket
from tests.undocumented import Library

library = Library("python-socketio", "a2c_smcp.utils.socketio_internals")


def test_packets_are_where_they_were() -> None:
    numbers = [packet.CONNECT, packet.DISCONNECT, packet.EVENT, packet.ACK, packet.BINARY_EVENT, packet.BINARY_ACK]
    assert numbers == [0, 1, 2, 3, 5, 6]
    each = packet.Packet(packet.EVENT, data=["e"])
    library.has(each, ["packet_type", "namespace", "id", "data", "json", "uses_binary_events"])
    library.has(each, ["attachment_count", "attachments", "encode"])
    library.takes(packet.Packet.decode, "encoded_packet")
    library.takes(packet.Packet.add_attachment, "attachment")
    library.says(packet.Packet.__init__, "self.attachment_count = self.decode(encoded_packet)")


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
    "websockets": "engine/direct.py and engine/frames.py",
}


@pytest.mark.parametrize(("library", "room"), ROOMS.items())
def test_what_a_library_does_not_document_is_imported_in_one_module(library: str, room: str) -> None:
    package = Path(a2c_smcp.__file__).parent
    for file in package.rglob("*.py"):
        imported = {name for node in ast.walk(ast.parse(file.read_text("utf-8"))) for name in imports(node)}
        found = [name for name in imported if name == library or name.startswith(f"{library}.")]
        assert not found or file in [package / each for each in room.split(" and ")], (
            f"{file.name} imports {found}: take it from {room}"
        )


def imports(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        return [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return []
