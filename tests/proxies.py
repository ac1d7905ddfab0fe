"""A forward proxy as companies have them: it wants a password, opens TLS, blocks websockets. Standard library only."""

import asyncio
import base64
import contextlib
import ssl
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

#: What becomes of a websocket's handshake: `swallow` never answers it, `first` refuses only the first one, `drop` lets
#: it through and cuts the connection before the server has greeted.
Upgrades = Literal["pass", "refuse", "cut", "swallow", "first", "drop"]


@dataclass
class Seen:
    """A request as the proxy saw it."""

    method: str
    target: str
    headers: Mapping[str, str] = field(repr=False)

    @property
    def upgrades(self) -> bool:
        return "upgrade" in self.headers


@dataclass
class ForwardProxy:
    """Connects to `hosts` whatever port is asked for; `opens` has the certificate by which it reads what is in TLS, and
    `own` the one for speaking TLS itself.
    """

    hosts: Mapping[str, tuple[str, int]]
    credentials: str | None = None
    upgrades: Upgrades = "pass"
    opens: ssl.SSLContext | None = None
    own: ssl.SSLContext | None = None
    url: str = ""
    seen: list[Seen] = field(default_factory=list)
    serving: set[asyncio.Task[None]] = field(default_factory=set)

    def with_credentials(self, credentials: str) -> str:
        return self.url.replace("://", f"://{credentials}@")

    def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Streams hold no task, and the garbage collector takes one that only waits for a stream.
        task = asyncio.create_task(self._serve(reader, writer))
        self.serving.add(task)
        task.add_done_callback(self.serving.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await self._read(reader)
            if self.credentials is not None and request.headers.get("proxy-authorization") != _basic(self.credentials):
                challenge = "Proxy-Authenticate: Basic realm=corp\r\n"
                await _say(writer, f"407 Proxy Authentication Required\r\n{challenge}Content-Length: 0")
            elif request.method != "CONNECT":
                await self._forward(request, urlsplit(request.target).hostname or "", reader, writer)
            elif (host := request.target.rpartition(":")[0]) not in self.hosts:
                await _say(writer, "403 Forbidden\r\nContent-Length: 0")
            else:
                await _say(writer, "200 Connection established")
                if self.opens is None:
                    await _join(reader, writer, *await asyncio.open_connection(*self.hosts[host]))
                else:
                    await writer.start_tls(self.opens)
                    await self._forward(await self._read(reader), host, reader, writer)
        except (OSError, EOFError):
            pass  # either end has gone
        finally:
            writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> Seen:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        line, *lines = head.split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (text.partition(":") for text in lines if text)}
        method, target, _ = line.split(" ")
        self.seen.append(Seen(method, target, headers))
        return self.seen[-1]

    async def _forward(
        self, request: Seen, host: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """One request a connection: what follows it is not looked at."""
        behaviour = self.upgrades if request.upgrades else "pass"
        if behaviour == "first":
            self.upgrades = "pass"
        if behaviour in ("refuse", "first"):
            await _say(writer, "403 Forbidden\r\nContent-Length: 0\r\nConnection: close")
        elif behaviour == "swallow":
            await reader.read()
        elif behaviour != "cut":
            server = await asyncio.open_connection(*self.hosts[host])
            path = urlsplit(request.target)._replace(scheme="", netloc="").geturl()
            headers = {name: text for name, text in request.headers.items() if not name.startswith("proxy-")}
            if not request.upgrades:
                headers["connection"] = "close"
            lines = [f"{request.method} {path} HTTP/1.1", *(f"{name}: {text}" for name, text in headers.items())]
            server[1].write("\r\n".join([*lines, "", ""]).encode("latin-1"))
            if behaviour == "drop":
                writer.write(await server[0].readuntil(b"\r\n\r\n"))
                server[1].close()
            else:
                await _join(reader, writer, *server)


async def _say(writer: asyncio.StreamWriter, text: str) -> None:
    writer.write(f"HTTP/1.1 {text}\r\n\r\n".encode())
    await writer.drain()


async def _join(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    server_reader: asyncio.StreamReader,
    server_writer: asyncio.StreamWriter,
) -> None:
    async def pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(65536):
                target.write(data)
                await target.drain()

    directions = [asyncio.create_task(pump(reader, server_writer)), asyncio.create_task(pump(server_reader, writer))]
    try:
        await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
    finally:
        server_writer.close()
        for direction in directions:
            direction.cancel()
        await asyncio.gather(*directions, return_exceptions=True)


def _basic(credentials: str) -> str:
    return "Basic " + base64.b64encode(credentials.encode()).decode()


@contextlib.contextmanager
def proxying(proxy: ForwardProxy) -> Iterator[ForwardProxy]:
    """Run a proxy in a thread of its own, on a port that the system picks."""
    started = threading.Event()
    stopping: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def main() -> None:
        server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0, ssl=proxy.own)
        proxy.url = f"{'https' if proxy.own else 'http'}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        stop = asyncio.Event()
        stopping.append((asyncio.get_running_loop(), stop))
        started.set()
        async with server:
            await stop.wait()
        for task in proxy.serving:
            task.cancel()
        await asyncio.gather(*proxy.serving, return_exceptions=True)

    thread = threading.Thread(target=asyncio.run, args=(main(),), name="proxy")
    thread.start()
    assert started.wait(20)
    try:
        yield proxy
    finally:
        loop, stop = stopping[0]
        loop.call_soon_threadsafe(stop.set)
        thread.join(20)
        assert not thread.is_alive()
