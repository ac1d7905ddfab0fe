"""What we use of python-engineio that its documentation does not offer; `test_engineio_internals.py` names each thing.

Nothing else in the package imports `engineio`, or overrides a method of it whose name begins with an underscore. Why we
need so much of it: its own loops spend tasks, timers and queues on every message, and its queues have no end.

- *Packets* (`Packet`, the numbers of their types) are read and written by us.
- *A client* (`AsyncClient`) sends every request through `_send_request`, opens its websocket in `_connect_websocket`,
  reads it in `_read_loop_websocket`, which calls `ws.receive`, and hands every packet to `_receive_packet`.
"""

import asyncio
from typing import Any, Final

import engineio
from engineio.exceptions import ConnectionError
from engineio.packet import CLOSE, MESSAGE, PING, PONG, UPGRADE, Packet

__all__ = [
    "CLOSE",
    "MESSAGE",
    "NO_GREETING",
    "PING",
    "PONG",
    "UPGRADE",
    "AsyncClient",
    "ConnectionError",
    "Packet",
]

#: The words of the error for a server that does not greet as an Engine.IO server.
NO_GREETING: Final = "OPEN packet"


class AsyncClient(engineio.AsyncClient):  # type: ignore[misc]  # engineio ships no types
    """A client whose steps can be replaced one by one."""

    sid: str | None
    state: str
    """`connected`, `disconnecting` or `disconnected`."""
    current_transport: str
    base_url: str
    """The URL for polling, with the id of the session."""
    ws: Any
    http: Any
    """The `aiohttp.ClientSession`, once there is one."""
    http_factory: Any
    queue: "asyncio.Queue[Packet | None]"
    read_loop_task: Any
    write_loop_task: Any
    websocket_extra_options: dict[str, Any]

    async def request(self, method: str, url: str, headers: Any, body: Any, timeout: float | None) -> Any:
        """One HTTP request. Returns an `aiohttp.ClientResponse`, or a text that says why there is none."""
        return await super()._send_request(method, url, headers, body, timeout)

    async def open_websocket(self, url: str, headers: dict[str, str], path: str) -> bool:
        """Connect by websocket, or change to one from polling. In the second case `sid` is set, and `False` means:
        go on polling.
        """
        return bool(await super()._connect_websocket(url, headers, path))

    async def read_websocket(self) -> None:
        """Read until the connection ends. A missing ping ends it, too."""
        await super()._read_loop_websocket()

    async def receive(self, pkt: Packet) -> None:
        await super()._receive_packet(pkt)

    def websocket_url(self, url: str, path: str) -> str:
        """The URL of the websocket for a client that polls."""
        address: str = self._get_engineio_url(url, path, "websocket")
        return f"{address}&sid={self.sid}{self._get_url_timestamp()}"

    def use_websocket(self, ws: Any) -> None:
        """Use this websocket for reading and writing from now on."""
        self.ws, self.current_transport = ws, "websocket"
        self.write_loop_task = self.start_background_task(self._write_loop)
        self.read_loop_task = self.start_background_task(self._read_loop_websocket)

    async def flushed(self) -> None:
        """Return when everything that was queued is written."""
        await self.queue.join()

    async def end(self) -> None:
        """End the loops and the HTTP session of a disconnected client, in bounded time."""
        for task in (self.read_loop_task, self.write_loop_task):
            if isinstance(task, asyncio.Task) and not task.done() and task is not asyncio.current_task():
                task.cancel()
                await asyncio.wait({task}, timeout=1)
        if self.http is not None and not self.http.closed:
            await self.http.close()

    async def _send_request(
        self, method: str, url: str, headers: Any = None, body: Any = None, timeout: float | None = None
    ) -> Any:
        return await self.request(method, url, headers, body, timeout)

    async def _connect_websocket(self, url: str, headers: dict[str, str], engineio_path: str) -> bool:
        return await self.open_websocket(url, headers, engineio_path)

    async def _read_loop_websocket(self) -> None:
        await self.read_websocket()

    async def _receive_packet(self, pkt: Packet) -> None:
        await self.receive(pkt)
