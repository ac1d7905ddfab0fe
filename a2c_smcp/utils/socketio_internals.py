"""What we use of python-socketio that its documentation does not offer; `test_socketio_internals.py` names each thing.

Nothing else in the package imports `socketio.packet`, or overrides a method of the library whose name begins with an
underscore.

- *Packets* (`Packet`, the numbers of their types): ours, the documented `serializer`, reads a packet itself, and counts
  its attachments instead of keeping them.
- *A client* asks `_engineio_client_class` for the class of its Engine.IO client, and calls `_handle_event` and
  `_handle_ack` for a packet whose attachments are complete; until then it is kept as `_binary_packet`. Why: messages
  are taken off the websocket without a task, a timer or a queue for each.
"""

from typing import Any

import socketio
from socketio.packet import ACK, BINARY_ACK, BINARY_EVENT, CONNECT, DISCONNECT, EVENT, Packet

from a2c_smcp.utils import engineio_internals

__all__ = [
    "ACK",
    "BINARY_ACK",
    "BINARY_EVENT",
    "CONNECT",
    "DISCONNECT",
    "EVENT",
    "AsyncClient",
    "Packet",
]


class AsyncClient(socketio.AsyncClient):  # type: ignore[misc]  # python-socketio ships no types
    """A client with an Engine.IO client of ours. Its events and acks are not answered by the library."""

    def engine_class(self) -> type[engineio_internals.AsyncClient]:
        """The class of its Engine.IO client."""
        return engineio_internals.AsyncClient

    @property
    def awaits_attachments(self) -> bool:
        """Whether a packet has arrived whose attachments are still missing."""
        return self._binary_packet is not None

    async def handle_event(self, namespace: str | None, ack_id: int | None, data: Any) -> None:
        """An event whose attachments have all arrived."""
        await super()._handle_event(namespace, ack_id, data)

    async def handle_ack(self, namespace: str | None, ack_id: int | None, data: Any) -> None:
        """An ack whose attachments have all arrived."""
        await super()._handle_ack(namespace, ack_id, data)

    async def send_packet(self, pkt: Packet) -> None:
        await self._send_packet(pkt)

    def _engineio_client_class(self) -> type:
        return self.engine_class()

    async def _handle_event(self, namespace: str | None, id: int | None, data: Any) -> None:
        await self.handle_event(namespace, id, data)

    async def _handle_ack(self, namespace: str | None, id: int | None, data: Any) -> None:
        await self.handle_ack(namespace, id, data)
