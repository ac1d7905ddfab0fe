"""`a2c mcp --http --oidc` as a protected resource: mcp's own client signs in at a real issuer, and calls a tool."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from mcp import types
from mcp.client import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

from a2c_smcp.server import OpenAuthentication
from tests.office_mcp.conftest import PATIENT
from tests.office_mcp.test_command import TOKEN, Place, a_computer, over_http
from tests.oidc.forging import forged_tokens, signed
from tests.oidc.issuer import Issuer, needs_issuer, running_issuer
from tests.server.harness import async_server

__all__ = ["running_issuer"]

pytestmark = [needs_issuer, pytest.mark.anyio]
_INITIALIZE: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}
_ACCEPT = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


@pytest.fixture(scope="module")
async def place() -> AsyncIterator[Place]:
    office = "office-of-people"
    with async_server(OpenAuthentication(), PATIENT, ping_timeout=300) as running:
        place = Place(running.url, office)
        async with a_computer(running.url, office, "laptop"):
            yield place


@pytest.fixture(scope="module")
def address(place: Place, running_issuer: Issuer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    rules: Path = tmp_path_factory.mktemp("rules") / "rules.toml"
    rules.write_text('leeway = 0\n[[allow]]\nwhen = { groups = "staff" }\nroles = ["agent"]\n')
    with over_http(place, "--search", "never", "--oidc", running_issuer.url, "--oidc-rules", str(rules)) as url:
        yield url


class Kept:
    """mcp's storage, in memory."""

    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


@asynccontextmanager
async def signed_in_host(address: str, issuer: Issuer) -> AsyncIterator[Client]:
    back: list[str] = []

    async def open_browser(url: str) -> None:
        back.append(await asyncio.to_thread(issuer.sign_in, url))

    async def came_back() -> AuthorizationCodeResult:
        said = parse_qs(urlsplit(back[-1]).query)
        return AuthorizationCodeResult(code=said["code"][0], state=said["state"][0], iss=said["iss"][0])

    metadata = OAuthClientMetadata.model_validate(
        {"redirect_uris": ["http://127.0.0.1:1/callback"], "client_name": "host", "scope": "openid office"}
    )
    auth = OAuthClientProvider(address, metadata, Kept(), open_browser, came_back)
    async with (
        httpx2.AsyncClient(auth=auth, timeout=60) as http,
        Client(streamable_http_client(address, http_client=http)) as client,
    ):
        yield client


async def test_a_host_signs_in_and_calls_a_tool(address: str, running_issuer: Issuer) -> None:
    async with signed_in_host(address, running_issuer) as client:
        result = await client.call_tool("laptop__stats", {})
        assert not result.is_error
        assert isinstance(result.content[0], types.TextContent)


async def test_a_request_without_a_token_is_told_where_to_sign_in(address: str, running_issuer: Issuer) -> None:
    origin = address.removesuffix("/mcp")
    async with httpx2.AsyncClient(headers=_ACCEPT) as client:
        refused = await client.post(address, json=_INITIALIZE)
        assert refused.status_code == 401
        where = f"{origin}/.well-known/oauth-protected-resource/mcp"
        assert refused.headers["www-authenticate"] == f'Bearer resource_metadata="{where}"'
        said = (await client.get(where)).json()
        assert (said["resource"], said["authorization_servers"]) == (address, [running_issuer.url])
        right: dict[str, Any] = {"aud": address, "groups": ["staff"]}
        # Whoever starts the command may still give a token of its own.
        for token, status in (
            (TOKEN, 200),
            (signed(running_issuer, **right), 200),
            (signed(running_issuer, **{**right, "aud": "https://other.example"}), 401),
            (signed(running_issuer, **{**right, "groups": []}), 403),
            (forged_tokens(running_issuer)["HMAC with the public key"], 401),
            (forged_tokens(running_issuer)["no signature"], 401),
            ("nonsense", 401),
        ):
            answer = await client.post(address, json=_INITIALIZE, headers={"authorization": f"Bearer {token}"})
            assert answer.status_code == status
            assert token not in answer.text
        foreign = await client.get(where, headers={"host": "evil.example"})
        assert foreign.status_code == 421


async def test_the_rules_are_read_again_when_they_change(place: Place, running_issuer: Issuer, tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text('[[allow]]\nwhen = { groups = "staff" }\nroles = ["agent"]\n')
    with over_http(place, "--search", "never", "--oidc", running_issuer.url, "--oidc-rules", str(rules)) as address:
        token = signed(running_issuer, aud=address, groups=["staff"])
        async with httpx2.AsyncClient(headers={**_ACCEPT, "authorization": f"Bearer {token}"}, timeout=60) as client:
            assert (await client.post(address, json=_INITIALIZE)).status_code == 200
            rules.write_text("[[allow")  # half written: the old ones stay
            assert (await client.post(address, json=_INITIALIZE)).status_code == 200
            rules.write_text('[[allow]]\nwhen = { groups = "board" }\nroles = ["agent"]\n')
            async with asyncio.timeout(60):
                while (await client.post(address, json=_INITIALIZE)).status_code != 403:  # noqa: ASYNC110 - a state
                    await asyncio.sleep(0.1)


async def test_a_session_is_its_owners_and_its_stream_ends_with_the_token(address: str, running_issuer: Issuer) -> None:
    def bearer(sub: str, seconds: int = 600) -> dict[str, str]:
        token = signed(running_issuer, aud=address, groups=["staff"], sub=sub, exp=int(time.time()) + seconds)
        return {"authorization": f"Bearer {token}"}

    async with httpx2.AsyncClient(headers=_ACCEPT, timeout=60) as client:
        opened = await client.post(address, json=_INITIALIZE, headers=bearer("ada"))
        session = {"mcp-session-id": opened.headers["mcp-session-id"]}
        done = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        assert (await client.post(address, json=done, headers={**session, **bearer("ada")})).status_code == 202
        assert (await client.post(address, json=done, headers={**session, **bearer("bob")})).status_code == 404
        async with client.stream("GET", address, headers={**session, **bearer("ada", 2)}) as stream:
            assert stream.status_code == 200
            async for _ in stream.aiter_raw():
                pass
        assert (await client.post(address, json=done, headers={**session, **bearer("ada")})).status_code == 202
