"""A server that sends its clients elsewhere: no other address gets the key or the token that is for this one."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from a2c_smcp.errors import ConnectionLostError
from a2c_smcp.link.interface import LinkOptions
from a2c_smcp.link.server_link import ServerLink
from a2c_smcp.link.transports import Transport

pytestmark = pytest.mark.anyio
_KEY = "secret-of-the-honest-server"


@asynccontextmanager
async def listening(answer: bytes) -> AsyncIterator[tuple[str, bytearray]]:
    """An HTTP server that answers everything like this, and what it heard."""
    heard = bytearray()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            heard.extend(await reader.readuntil(b"\r\n\r\n"))
            writer.write(answer)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", heard
    finally:
        server.close()


@pytest.mark.parametrize("transport", ["websocket", "polling"])
@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_no_other_address_gets_the_key(transport: Transport, status: int) -> None:
    async with listening(b"HTTP/1.1 404 No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n") as (elsewhere, stolen):
        moved = f"HTTP/1.1 {status} X\r\nlocation: {elsewhere}/socket.io/\r\ncontent-length: 0\r\n\r\n".encode()
        async with listening(moved) as (url, heard):
            options = LinkOptions(url, api_key=_KEY, transport=transport, reconnect=False, connect_timeout=20)
            with pytest.raises(ConnectionLostError, match=f"another address, {elsewhere}"):
                async with ServerLink(options, {}, lambda _: None):
                    pass
    assert _KEY.encode() in heard
    assert stolen == b""


async def test_tls_at_another_port_of_the_same_host_is_another_address() -> None:
    moved = b"HTTP/1.1 307 X\r\nlocation: https://127.0.0.1/socket.io/\r\ncontent-length: 0\r\n\r\n"
    async with listening(moved) as (url, _):
        options = LinkOptions(url, api_key=_KEY, reconnect=False, connect_timeout=20)
        with pytest.raises(ConnectionLostError, match="another address, https:"):
            async with ServerLink(options, {}, lambda _: None):
                pass
