"""Attackers with tokens: a hostile issuer, and strangers who send forged tokens by the hundred."""

import asyncio
import json
import resource
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from a2c_smcp.errors import InternalError, SMCPError, TooManyRequestsError, UnauthorizedError
from a2c_smcp.link.interface import LinkOptions, Membership
from a2c_smcp.link.office_link import OfficeLink
from a2c_smcp.oidc.checking import TokenChecker
from a2c_smcp.oidc.key_pacing import KeyPacing
from a2c_smcp.oidc.metadata import MOST_BYTES
from a2c_smcp.oidc.signing_keys import read_keys
from a2c_smcp.oidc.token_rules import TokenRules
from a2c_smcp.server import Limits
from a2c_smcp.server.token_auth import OidcAuthentication
from tests.oidc.forging import AUDIENCE, forged_tokens, signed
from tests.oidc.issuer import Issuer, needs_issuer, running_issuer
from tests.server.harness import async_server

__all__ = ["running_issuer"]

pytestmark = pytest.mark.anyio
#: Well formed, and signed by nobody.
_TOKEN = "eyJhbGciOiJSUzI1NiIsImtpZCI6ImEifQ.eyJzdWIiOiJhIn0.c2lnbmF0dXJl"


class HostileIssuer:
    """Describes itself as it should, and then sends what `body` says instead of keys."""

    def __init__(self) -> None:
        self.url = ""
        self.sent = 0
        self.head = "200 OK"
        self.body = b"{}"
        self.endless = False
        self.foreign = False
        self.inner = False

    @asynccontextmanager
    async def serving(self) -> AsyncIterator["HostileIssuer"]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield self
        finally:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            line = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")[0]
            about = {"issuer": "https://another.example" if self.foreign else self.url, "jwks_uri": f"{self.url}/jwks"}
            if self.inner:
                about["jwks_uri"] = "http://issuer.example/jwks"
            if b"/jwks" not in line:
                writer.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n" + json.dumps(about).encode())
                return
            writer.write(f"HTTP/1.1 {self.head}\r\nconnection: close\r\n\r\n".encode() + self.body)
            while self.endless:
                writer.write(b" " * 65536)
                await writer.drain()
                self.sent += 65536
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


async def test_an_issuer_that_sends_without_end_costs_little(caplog: pytest.LogCaptureFixture) -> None:
    async with HostileIssuer().serving() as hostile:
        hostile.endless, hostile.body = True, b'{"keys": ['
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with pytest.raises(InternalError):
            await TokenChecker(hostile.url, [AUDIENCE]).check(_TOKEN)
        # What the sockets of both ends hold comes on top of what was read.
        assert hostile.sent < MOST_BYTES + 16 * 2**20
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024
        assert "more than" in caplog.text


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ("302 Found\r\nlocation: http://127.0.0.1:1/jwks", b""),
        ("200 OK", b"[" * 100_000),
        ("200 OK", b'{"keys": 7}'),
        ("200 OK", b'{"keys": [{"kty": "oct", "k": "c2VjcmV0", "kid": "a"}, {"kty": "RSA", "n": "AQAB", "e": "AQ"}]}'),
        ("200 OK\r\ncontent-encoding: gzip", b"\x1f\x8b\x08\x00"),
        ("500 Oh", b"{}"),
        ("nonsense", b""),
    ],
)
async def test_keys_that_are_none_open_nothing(head: str, body: bytes) -> None:
    async with HostileIssuer().serving() as hostile:
        hostile.head, hostile.body = head, body
        with pytest.raises(InternalError):
            await TokenChecker(hostile.url, [AUDIENCE]).check(_TOKEN)


async def test_keys_without_tls_are_a_problem_that_is_told(caplog: pytest.LogCaptureFixture) -> None:
    async with HostileIssuer().serving() as hostile:
        hostile.inner = True
        async with TokenChecker(hostile.url, [AUDIENCE]) as checker:
            with pytest.raises(InternalError):
                await checker.check(_TOKEN)
        assert "jwks_uri must begin with https://" in caplog.text


async def test_a_document_about_another_issuer_opens_nothing() -> None:
    async with HostileIssuer().serving() as hostile:
        hostile.foreign = True
        with pytest.raises(InternalError):
            await TokenChecker(hostile.url, [AUDIENCE]).check(_TOKEN)


def test_no_shared_secret_and_no_short_key_counts() -> None:
    short = {"kty": "RSA", "kid": "a", "e": "AQAB", "n": "u" * 171}  # 1024 bits
    entries = [short, {"kty": "oct", "k": "c2VjcmV0"}, {"kty": "EC", "crv": "secp256k1"}, "text", {}]
    assert read_keys({"keys": entries}) == ()


@needs_issuer
async def test_strangers_with_forged_tokens_are_slowed_and_stop_nobody(running_issuer: Issuer) -> None:
    rules = TokenRules.model_validate({"leeway": 0})
    auth = OidcAuthentication(running_issuer.url, AUDIENCE, rules=rules, pacing=KeyPacing(pause=0.5))
    with async_server(auth, Limits(wrong_keys=5)) as server:
        forged = [*forged_tokens(running_issuer).values(), signed(running_issuer, {"kid": "unknown"})]
        refused: list[SMCPError] = []

        async def knock(token: str) -> None:
            try:
                async with OfficeLink(LinkOptions(server.url, api_key=token, connect_timeout=30), {}):
                    raise AssertionError("a forged token came in")
            except SMCPError as error:
                refused.append(error)

        await asyncio.gather(*(knock(token) for token in forged))
        assert {type(error) for error in refused} <= {UnauthorizedError, TooManyRequestsError}
        assert len(refused) == len(forged)
        began = time.monotonic()
        await knock(forged[0])
        slowed = time.monotonic() - began > 1 or isinstance(refused[-1], TooManyRequestsError)
        assert slowed, refused[-1]
        assert running_issuer.hits("/jwks") < 20
    # All of loopback counts as one address. An address that has shown a right token is slowed, and never kept out.
    with async_server(auth, Limits(wrong_keys=5)) as server:
        async with OfficeLink(LinkOptions(server.url, api_key=signed(running_issuer)), {}) as honest:
            await honest.join(Membership("agent", "a", "o"))
            await asyncio.gather(*(_quietly(server.url, token) for token in forged[:6]))
            assert honest.joined


async def _quietly(url: str, token: str) -> None:
    with pytest.raises(SMCPError):
        async with OfficeLink(LinkOptions(url, api_key=token, connect_timeout=30), {}):
            pass
