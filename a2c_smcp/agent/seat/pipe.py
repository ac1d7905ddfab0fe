"""One end of a local connection. It sends frames at once, within a bound, and takes frames one by one. Knows no
message.
"""

import asyncio
import logging
import select
import socket
from collections.abc import Callable
from typing import Any, Final, cast

from a2c_smcp.agent.seat.seat_frames import FrameReader, MalformedFrameError, frame

__all__ = ["MAX_WAITING", "SeatPipe"]

logger = logging.getLogger(__name__)

#: How many bytes may wait for an end that does not read. Then the connection is cut.
MAX_WAITING: Final = 64 * 1024 * 1024


class SeatPipe(asyncio.Protocol):
    """A protocol in asyncio's sense. `ended` is done when the connection has ended, for any reason."""

    def __init__(
        self,
        take: Callable[[list[Any], bytes], None],
        longest: int,
        *,
        made: Callable[[], None] | None = None,
        max_waiting: int = MAX_WAITING,
    ) -> None:
        self._reader = FrameReader(take, longest)
        self._made = made
        self._max_waiting = max_waiting
        self._transport: asyncio.Transport | None = None
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def socket(self) -> socket.socket:
        assert self._transport is not None
        return cast("socket.socket", self._transport.get_extra_info("socket"))

    def send(self, head: list[Any], body: bytes = b"") -> None:
        self.send_frame(frame(head, body))

    def send_frame(self, data: bytes) -> None:
        """Send the output of `frame`. If the other end does not read, the connection is cut: nobody else may suffer
        from it.
        """
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        transport.write(data)
        if transport.get_write_buffer_size() > self._max_waiting:
            logger.warning("a process does not read what it is sent; its connection is cut")
            transport.abort()

    @property
    def has_ended(self) -> bool:
        """Whether the other end has gone. Asks the system, because asyncio may not have noticed yet."""
        if self._transport is None or self._transport.is_closing():
            return True
        system = select.poll()
        system.register(self.socket.fileno(), 0)  # poll reports an end and an error without being asked
        return bool(system.poll(0))

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    # --- called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        if self._made is not None:
            self._made()

    def data_received(self, data: bytes) -> None:
        try:
            self._reader.feed(data)
        except MalformedFrameError as error:
            logger.warning("cut a connection: %s", error)
            if self._transport is not None:
                self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.ended.done():
            self.ended.set_result(None)
