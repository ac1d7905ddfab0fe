"""How a browser comes back from a sign-in: to a port of this computer, or as an address that a person pastes."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self
from urllib.parse import parse_qs, urlsplit

__all__ = ["CALLBACK_PATH", "CameBack", "RedirectError", "RedirectListener", "came_back"]

CALLBACK_PATH: Final = "/callback"
_MOST_HEADER_BYTES: Final = 16 * 1024
_MOST_CONNECTIONS: Final = 16
_SECONDS: Final = 10.0
_DONE: Final = "You are signed in. This page can be closed. / 登录完成，可以关闭此页面。"
_FAILED: Final = "The sign-in did not succeed. The computer says why. / 登录未成功，原因请见计算机。"
_UNKNOWN: Final = "No sign-in waits for this address. / 没有等待此地址的登录。"


class RedirectError(Exception):
    """An address does not belong to a sign-in, or there is no port for one. The message is for the person."""


@dataclass(frozen=True, slots=True)
class CameBack:
    """What the issuer says in the address that it sends the browser to."""

    state: str
    code: str | None = field(default=None, repr=False)
    issuer: str | None = None
    error: str | None = None
    error_description: str | None = None


def came_back(address: str, state: str) -> CameBack:
    """Read an address that a browser ended up at. Raises `RedirectError` if it does not belong to this sign-in."""
    try:
        query = parse_qs(urlsplit(address.strip()).query, max_num_fields=50)
    except ValueError:
        query = {}
    said = {key: values[0] for key, values in query.items() if len(values) == 1}
    if "code" not in said and "error" not in said:
        raise RedirectError(
            "this is not the address that the sign-in ended at: it has a code in it, and begins with the address of"
            " this computer, also if the browser says that the page cannot be reached"
        )
    if said.get("state") != state:
        raise RedirectError("this address belongs to another sign-in; begin again with the address that is shown now")
    return CameBack(state, said.get("code"), said.get("iss"), said.get("error"), said.get("error_description"))


class RedirectListener:
    """`async with` it: a port of this computer, for one sign-in. `uri` is where the issuer sends the browser to.

    Requests that do not belong to the sign-in (any page may send them) change nothing.
    """

    def __init__(self, port: int | None = None, *, is_fixed: bool = False) -> None:
        self._wanted = port
        self._is_fixed = is_fixed
        self._server: asyncio.Server | None = None
        self._state: str | None = None
        self._connections = 0
        self._arrived: asyncio.Future[CameBack] | None = None
        self.uri = ""

    async def __aenter__(self) -> Self:
        self._arrived = asyncio.get_running_loop().create_future()
        try:
            self._server = await asyncio.start_server(
                self._serve, "127.0.0.1", self._wanted or 0, limit=_MOST_HEADER_BYTES
            )
        except OSError as error:
            if self._is_fixed:
                raise RedirectError(f"redirect_port {self._wanted} cannot be used: {error.strerror}") from None
            # The port of the last sign-in is only a wish.
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=_MOST_HEADER_BYTES)
        self.port = self._server.sockets[0].getsockname()[1]
        self.uri = f"http://127.0.0.1:{self.port}{CALLBACK_PATH}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(_SECONDS):
                await self._server.wait_closed()

    async def arrival(self, state: str) -> CameBack:
        """Wait until the browser comes back from the sign-in with this `state`."""
        assert self._arrived is not None
        self._state = state
        return await asyncio.shield(self._arrived)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        try:
            if self._connections <= _MOST_CONNECTIONS:
                async with asyncio.timeout(_SECONDS):
                    head = await reader.readuntil(b"\r\n\r\n")
                    status, text = self._answer(head)
                    writer.write(_page(status, text))
                    await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            self._connections -= 1
            writer.close()

    def _answer(self, head: bytes) -> tuple[str, str]:
        method, _, rest = head.partition(b"\r\n")[0].decode("latin-1").partition(" ")
        target = rest.partition(" ")[0]
        if method != "GET" or urlsplit(target).path != CALLBACK_PATH or self._state is None:
            return "404 Not Found", _UNKNOWN
        try:
            found = came_back(target, self._state)
        except RedirectError:
            return "404 Not Found", _UNKNOWN
        if self._arrived is not None and not self._arrived.done():
            self._arrived.set_result(found)
        return "200 OK", _FAILED if found.error else _DONE


def _page(status: str, text: str) -> bytes:
    body = f"<!doctype html><meta charset=utf-8><title>A2C</title><p>{text}</p>".encode()
    head = (
        f"HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {len(body)}\r\n"
        "connection: close\r\ncache-control: no-store\r\nreferrer-policy: no-referrer\r\n"
        "content-security-policy: default-src 'none'\r\nx-content-type-options: nosniff\r\n\r\n"
    )
    return head.encode() + body
