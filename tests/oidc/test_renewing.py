"""A client with tokens, at servers that do not know `server:authenticate`, or have no tokens at all."""

import base64
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from a2c_smcp.errors import BadRequestError, InternalError, UnauthorizedError
from a2c_smcp.link.interface import Disconnected, LinkOptions, Membership
from a2c_smcp.link.office_link import OfficeLink
from a2c_smcp.server import Credentials, Grant
from tests.server.harness import async_server, eventually

pytestmark = pytest.mark.anyio


class OldServer:
    """Takes any token when a client connects, and does not know the event that brings a new one."""

    def __init__(self) -> None:
        self.shown: list[str | None] = []

    async def authenticate(self, credentials: Credentials) -> Grant:
        if not credentials.headers:
            raise BadRequestError("unknown event 'server:authenticate'")
        self.shown.append(credentials.token)
        return Grant("somebody")


def token(seconds: float, number: int = 0) -> str:
    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()

    now = time.time()
    return f"{part({'alg': 'RS256'})}.{part({'iat': now, 'exp': now + seconds, 'jti': number})}.c2ln"


@asynccontextmanager
async def linked(url: str, source: Any, events: list[Any]) -> AsyncIterator[OfficeLink]:
    async with OfficeLink(LinkOptions(url, api_key=source), {}, on_event=events.append) as link:
        yield link


async def test_at_a_server_that_does_not_know_the_event_a_second_connection_takes_over() -> None:
    auth, events = OldServer(), list[Any]()
    with async_server(auth) as server:
        async with linked(server.url, lambda: token(20 if len(auth.shown) else 3, len(auth.shown)), events) as link:
            await link.join(Membership("agent", "a", "o"))
            await eventually(lambda: len(auth.shown) == 2, 60)
            await eventually(lambda: server.namespace.sessions == 1, 60)
            assert link.joined
            assert not [event for event in events if isinstance(event, Disconnected)]
    assert auth.shown[0] != auth.shown[1]


async def test_a_key_is_never_renewed_and_a_source_may_be_plain() -> None:
    auth, asked = OldServer(), list[int]()

    def source() -> str:
        asked.append(1)
        return "a-key"

    with async_server(auth) as server:
        async with linked(server.url, source, []) as link:
            await link.join(Membership("agent", "a", "o"))
    assert (auth.shown, len(asked)) == (["a-key"], 1)


async def test_what_the_source_raises_is_why_the_client_does_not_connect() -> None:
    async def source() -> str:
        raise UnauthorizedError("sign in again")

    async def broken() -> str:
        raise InternalError("no issuer")

    with async_server(OldServer()) as server:
        with pytest.raises(UnauthorizedError, match="sign in again"):
            async with linked(server.url, source, []):
                pass
        with pytest.raises(InternalError, match="no issuer"):
            async with linked(server.url, broken, []):
                pass


async def test_a_source_that_fails_for_a_while_ends_nothing() -> None:
    auth, calls = OldServer(), list[int]()

    async def source() -> str:
        calls.append(1)
        if len(calls) in (2, 3):
            raise OSError("the issuer is away")
        return "a-key"

    events: list[Any] = []
    with async_server(auth) as server:
        async with linked(server.url, source, events) as link:
            await link.join(Membership("agent", "a", "o"))
            assert link._connection is not None
            await link._connection.eio.ws.close()
            await eventually(lambda: len(calls) == 4 and link.joined, 60)
