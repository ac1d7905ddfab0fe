"""A network cable between a client and a server: pulled and plugged in again, squeezed and stretched at will."""

import asyncio
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit


class Cable:
    """`url` leads to the same server as the one given, as long as the cable is plugged in."""

    def __init__(self, url: str) -> None:
        self.delay = 0.0
        """How many seconds each piece of data waits on its way."""
        self._target = urlsplit(url)
        self._port = 0
        self._listener: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._is_plugged_in = False
        self._flowing = asyncio.Event()
        self._flowing.set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    async def __aenter__(self) -> Self:
        await self.plug_in()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.pull()

    async def plug_in(self) -> None:
        self._is_plugged_in = True
        self._listener = await asyncio.start_server(self._connected, "127.0.0.1", self._port)
        self._port = self._listener.sockets[0].getsockname()[1]

    async def pull(self) -> None:
        self._is_plugged_in = False
        if self._listener is not None:
            self._listener.close()
        await self.cut()

    async def cut(self) -> None:
        """End every connection; new ones are taken."""
        connections = list(self._connections)
        for task in connections:
            task.cancel()
        if connections:
            await asyncio.wait(connections)

    async def pause(self) -> None:
        """Keep everything open and let nothing through, as a frozen router does."""
        self._flowing.clear()

    async def resume(self) -> None:
        self._flowing.set()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if not self._is_plugged_in:  # it was taken, and pulled before this task ran
            writer.transport.abort()
            return
        self._connections.add(task)
        try:
            await self._join(reader, writer)
        except (OSError, asyncio.CancelledError):
            pass  # nobody is at the far end, or pulled; asyncio's server complains of handlers that end so
        finally:
            writer.transport.abort()
            self._connections.discard(task)

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(self._target.hostname, self._target.port)
        ways = {
            asyncio.create_task(self._pump(reader, far_writer)),
            asyncio.create_task(self._pump(far_reader, writer)),
        }
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.wait(ways)
            for way in ways:
                if not way.cancelled():
                    way.exception()  # a reset is an end like any other
            far_writer.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            if self.delay:
                await asyncio.sleep(self.delay)
            await self._flowing.wait()
            writer.write(data)
            await writer.drain()
