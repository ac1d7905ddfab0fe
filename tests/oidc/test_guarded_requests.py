"""The requests of a sign-in are bounded, and go to safe addresses only."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest

from a2c_smcp.oidc.addresses import Nearness, UnsafeAddressError
from a2c_smcp.oidc.guarded_requests import GuardedRequests
from a2c_smcp.oidc.sign_in_errors import IssuerSilentError, SignInError

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def answering(head: bytes, chunk: bytes = b"", times: int = 1, close: bool = True) -> AsyncIterator[str]:
    """A server that sends this to everybody."""
    heard: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            heard.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(head)
            for _ in range(times):
                writer.write(chunk)
                await writer.drain()
            if not close:
                await reader.read()
        except OSError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://localhost:{server.sockets[0].getsockname()[1]}/meta"
    finally:
        server.close()


def get(url: str) -> httpx2.Request:
    return httpx2.Request("GET", url)


OK = b"HTTP/1.1 200 OK\r\nconnection: close\r\n"


async def test_an_answer_is_read_to_its_end() -> None:
    async with answering(OK + b"content-length: 2\r\n\r\n", b"{}") as url:
        response = await GuardedRequests(url).send(get(url))
    assert (response.status_code, response.content) == (200, b"{}")


async def test_a_large_answer_is_given_up_early() -> None:
    async with answering(OK + b"\r\n", b"x" * 65536, 3200) as url:  # 200 MB
        with pytest.raises(SignInError, match="more than"):
            await GuardedRequests(url).send(get(url))


async def test_an_encoded_answer_is_not_unpacked() -> None:
    async with answering(OK + b"content-encoding: gzip\r\n\r\n", b"x") as url:
        with pytest.raises(SignInError, match="encoded"):
            await GuardedRequests(url).send(get(url))


async def test_a_silent_issuer_is_given_up_in_time() -> None:
    async with answering(b"HTTP/1.1 200 OK\r\n", close=False) as url:
        with pytest.raises(IssuerSilentError, match="within"):
            await GuardedRequests(url, seconds=0.5).send(get(url))
    with pytest.raises(IssuerSilentError, match="reached"):
        await GuardedRequests(url).send(get(url))


async def test_a_server_on_the_internet_cannot_send_us_to_this_computer() -> None:
    async with answering(OK + b"\r\n") as url:
        for target in (url, url.replace("localhost", "127.0.0.1")):  # also by a name that resolves here
            with pytest.raises(UnsafeAddressError):
                await GuardedRequests("https://93.184.216.34/mcp").send(get(target))


async def test_a_name_that_is_not_found_is_not_looked_up_again() -> None:
    async def nowhere(url: str) -> list[str]:
        return []

    async with answering(OK + b"content-length: 2\r\n\r\n", b"{}") as url:  # a second look-up would find this computer
        with pytest.raises(IssuerSilentError, match="reached"):
            await GuardedRequests("https://93.184.216.34/mcp", look_up=nowhere).send(get(url))


async def test_every_address_of_a_name_is_tried() -> None:
    async def both(url: str) -> list[str]:
        return ["127.0.0.2", "127.0.0.1"]  # nothing listens at the first one

    async with answering(OK + b"content-length: 2\r\n\r\n", b"{}") as url:
        assert (await GuardedRequests(url, look_up=both).send(get(url))).content == b"{}"


async def test_a_redirect_is_handed_on_and_not_followed() -> None:
    async with answering(b"HTTP/1.1 302 Found\r\nconnection: close\r\nlocation: /other\r\n\r\n") as url:
        response = await GuardedRequests(url).send(get(url))
    assert response.status_code == 302 and response.next_request is not None
    assert response.next_request.url.path == "/other" and response.next_request.url.host == "localhost"


async def test_the_place_of_the_server_is_looked_up_once() -> None:
    requests = GuardedRequests("http://127.0.0.1:1/mcp")
    assert await requests.check("http://127.0.0.1:2/token") == ["127.0.0.1"]
    assert requests._server is Nearness.LOOPBACK


async def test_a_host_that_needs_no_proxy_is_reached_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """`NO_PROXY` has its name. The request goes to its address, which is not in there."""

    async def here(_: str) -> list[str]:
        return ["127.0.0.1"]

    async with answering(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}") as url:
        monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
        monkeypatch.setenv("NO_PROXY", "issuer.example")
        named = url.replace("localhost", "issuer.example")
        assert (await GuardedRequests(named, look_up=here).send(get(named))).content == b"{}"
