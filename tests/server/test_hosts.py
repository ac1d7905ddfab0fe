"""Which names a server without keys answers to: the rule, and that every way in keeps it."""

import base64
import os
import socket
from typing import Any
from urllib.parse import urlsplit

import anyio.to_thread
import pytest

from a2c_smcp.errors import ForbiddenError
from a2c_smcp.server import APIKeyAuthentication, OpenAuthentication, SyncOpenAuthentication
from a2c_smcp.web.hosts import AllowedHosts, is_loopback, is_unspecified
from tests.server.harness import Running, async_server, serving, sync_server

LOOPBACK = ["localhost", "localhost:7000", "LocalHost.", "127.0.0.1:7000", "127.9.9.9", "[::1]", "[::1]:7000"]
LOOPBACK += ["a.localhost:1", "[::ffff:127.0.0.1]:80", "localhost:"]
FOREIGN = ["evil.example", "evil.example:7000", "localhost.evil.example", "evil-localhost", "127.0.0.1.evil.example"]
FOREIGN += ["", "0.0.0.0:7000", "10.0.0.1", "[::]", "[fe80::1]", "user@localhost", "localhost:99999", "localhost:x"]
FOREIGN += [
    "evil.example#localhost",
    "evil.example/localhost",
    "localhost,evil.example",
    "lo\tcalhost",
    "2130706433",
    "[::1",
]


@pytest.mark.parametrize("host", LOOPBACK)
def test_loopback_names_are_allowed_with_and_without_a_port(host: str) -> None:
    AllowedHosts().check([host], [f"http://{host}"])


def test_every_address_of_a_machine_is_no_name_of_it() -> None:
    assert all(map(is_unspecified, ["0.0.0.0", "::"]))
    assert not any(map(is_unspecified, ["127.0.0.1", "::1", "10.0.0.1", "0.example", ""]))


@pytest.mark.parametrize("host", FOREIGN)
def test_other_names_are_not(host: str) -> None:
    assert not AllowedHosts().allows_host(host)
    assert not AllowedHosts().allows_origin(f"http://{host}")
    with pytest.raises(ForbiddenError):
        AllowedHosts().check(["localhost"], [], [host])


@pytest.mark.parametrize("origin", ["null", "", "localhost", "://localhost", "file://"])
def test_an_origin_without_a_name_is_not_allowed(origin: str) -> None:
    with pytest.raises(ForbiddenError):
        AllowedHosts().check(["localhost"], [origin])


def test_the_operator_may_add_names_and_the_refusal_says_how() -> None:
    hosts = AllowedHosts(["Office.example.", "[fe80::1]"])
    hosts.check(["office.EXAMPLE:80"], ["https://office.example"], ["[fe80::1]:80"])
    with pytest.raises(ForbiddenError, match="--allowed-host"):
        hosts.check(["other.example"], [])
    AllowedHosts(["*"]).check(["other.example"], ["https://any.example:8000"])


def test_a_request_without_a_host_or_with_two_is_refused() -> None:
    with pytest.raises(ForbiddenError):
        AllowedHosts().check([], [])
    with pytest.raises(ForbiddenError):
        AllowedHosts().check(["localhost", "localhost"], [])


@pytest.mark.parametrize(("name", "expected"), [("127.0.0.1", True), ("::1", True), ("localhost", True), ("::", False)])
def test_what_is_loopback(name: str, expected: bool) -> None:
    assert is_loopback(name) is expected


# --- on the wire

PATHS = ["/metrics", "/healthz", "/socket.io/?EIO=4&transport=polling", "/socket.io/?EIO=4&transport=websocket"]


async def status(url: str, path: str, *headers: str, host: str | None = None) -> int:
    """The status of a request, of a websocket's handshake where the path asks for one."""
    parts = urlsplit(url)

    def blocking() -> int:
        with socket.create_connection((parts.hostname, parts.port or 80), timeout=30) as sock:
            lines = [f"GET {path} HTTP/1.1", f"Host: {host or parts.netloc}", *headers]
            if "transport=websocket" in path:
                key = base64.b64encode(os.urandom(16)).decode()
                lines += ["Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13"]
                lines += [f"Sec-WebSocket-Key: {key}"]
            sock.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
            return int(sock.makefile("rb").readline().split()[1])

    return await anyio.to_thread.run_sync(blocking)


@pytest.mark.parametrize("path", PATHS)
async def test_a_server_without_keys_answers_to_loopback_names_only(open_async_server: Running, path: str) -> None:
    url = open_async_server.url
    assert await status(url, path) in (101, 200)
    assert await status(url, path, f"Origin: {url}") in (101, 200)
    assert await status(url, path, "Origin: http://localhost:3000") in (101, 200)
    for port in ("", f":{urlsplit(url).port}"):
        assert await status(url, path, host=f"evil.example{port}") == 403
        assert await status(url, path, f"Origin: http://evil.example{port}") == 403
        assert await status(url, path, f"Origin: http://evil.example{port}", host=f"evil.example{port}") == 403
    assert await status(url, path, "X-Forwarded-Host: localhost", host="evil.example") == 403


@pytest.mark.parametrize("path", PATHS)
async def test_a_server_without_keys_answers_to_the_names_it_was_given(path: str) -> None:
    with async_server(OpenAuthentication(["office.example"])) as server:
        assert await status(server.url, path, "Origin: https://office.example", host="office.example") in (101, 200)
        assert await status(server.url, path, host="evil.example") == 403


async def test_what_a_proxy_was_asked_for_must_be_allowed_too() -> None:
    with async_server(OpenAuthentication()) as server:
        assert await status(server.url, "/metrics", "X-Forwarded-Host: evil.example") == 403
        assert await status(server.url, "/metrics", "X-Forwarded-Host: localhost") == 200


@pytest.mark.parametrize("path", PATHS[2:])
async def test_with_keys_a_foreign_origin_is_refused_and_any_host_is_fine(path: str) -> None:
    with async_server(APIKeyAuthentication(["k"])) as server:
        assert await status(server.url, path, host="office.example") in (101, 200)
        assert await status(server.url, path, "Origin: http://office.example", host="office.example") in (101, 200)
        assert await status(server.url, path, "Origin: http://evil.example") in (400, 403)


@pytest.mark.parametrize("path", PATHS[2:])
async def test_only_a_trusted_proxy_says_which_host_was_asked_for(path: str) -> None:
    from a2c_smcp.server.app import create_app
    from a2c_smcp.server.uvicorn_parts import GuardedConfig

    said = ["X-Forwarded-Host: office.example", "Origin: http://office.example"]
    for trusted, expected in (("127.0.0.1", (101, 200)), ("10.0.0.1", (400, 403))):
        config = GuardedConfig(create_app(APIKeyAuthentication(["k"])), forwarded_allow_ips=trusted)
        with serving(config) as url:
            assert await status(url, path, *said) in expected


async def test_a_namespace_of_ones_own_server_keeps_the_rule(make_peer: Any) -> None:
    """Nothing of ours but the namespace."""
    with sync_server(SyncOpenAuthentication()) as server:
        await make_peer(server)
        with pytest.raises(Exception, match="namespaces failed to connect"):
            await make_peer(server, headers={"Host": "evil.example"})
    with sync_server(SyncOpenAuthentication(["office.example"])) as server:
        await make_peer(server, headers={"Host": "office.example"})
