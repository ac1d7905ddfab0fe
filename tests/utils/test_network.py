"""The way out of a company network: proxies that want a password, open TLS and block websockets, in every client."""

import gc
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.socketio import SMCPComputerClient
from a2c_smcp.errors import (
    BadRequestError,
    ConnectionLostError,
    NoTlsError,
    ProxyError,
    UnauthorizedError,
    UntrustedCertificateError,
)
from a2c_smcp.link.interface import Connected, LinkEvent, LinkOptions, Membership
from a2c_smcp.link.office_link import OfficeLink
from a2c_smcp.server import APIKeyAuthentication
from a2c_smcp.server.app import create_app
from a2c_smcp.server.uvicorn_parts import GuardedConfig
from tests.agent.harness import Agent, Asyncio, Blocking
from tests.certificates import Certificate, self_signed
from tests.computer.fakes.computers import FAST, server
from tests.computer.fakes.offices import new_office
from tests.proxies import ForwardProxy, Upgrades, proxying
from tests.server.harness import async_server, eventually, serving

NAME = "office.example"
KEY = "right"
CREDENTIALS = "ada:hünter2@:/"
IN_A_URL = "ada:h%C3%BCnter2%40%3A%2F"

# A connection with TLS is closed by a goodbye to which the other end replies; aiohttp's sessions do not wait for that,
# and a test's event loop may end before it has come.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")

both_colours = pytest.mark.parametrize("kind", ["async", "sync"])


@pytest.fixture(autouse=True)
def collected_here() -> Iterator[None]:
    yield
    gc.collect()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return self_signed(tmp_path_factory.mktemp("certificates"), NAME, "127.0.0.1")


@pytest.fixture(scope="module")
def plain_server() -> Iterator[int]:
    with async_server(APIKeyAuthentication([KEY]), ping_interval=1, ping_timeout=10) as running:
        yield int(running.url.rpartition(":")[2])


@pytest.fixture(scope="module")
def tls_server(certificate: Certificate) -> Iterator[int]:
    with tls_serving(certificate) as port:
        yield port


@contextmanager
def tls_serving(certificate: Certificate) -> Iterator[int]:
    # Not uvicorn's own: its websockets fail to end when a peer says goodbye in the same moment.
    config = GuardedConfig(
        create_app(APIKeyAuthentication([KEY])),
        timeout_graceful_shutdown=1,
        ssl_certfile=certificate.cert,
        ssl_keyfile=certificate.key,
    )
    with serving(config) as url:
        yield int(url.rpartition(":")[2])


@pytest.fixture
def proxied() -> Iterator[Callable[..., ForwardProxy]]:
    with ExitStack() as stack:
        yield lambda port, **more: stack.enter_context(proxying(ForwardProxy({NAME: ("127.0.0.1", port)}, **more)))


def as_server(certificate: Certificate) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate.cert, certificate.key)
    return context


def options(url: str, **more: Any) -> LinkOptions:
    defaults: dict[str, Any] = {"api_key": KEY, "backoff": (0.05, 0.2), "rejoin_every": 0.05, "connect_timeout": 40}
    return LinkOptions(url, **{**defaults, **more})


@asynccontextmanager
async def office_through(link: LinkOptions, kind: str) -> AsyncIterator[tuple[Agent, SMCPComputerClient]]:
    """A computer with tools and an agent, both of which take this way."""
    face: Any = Asyncio if kind == "async" else Blocking
    async with AsyncExitStack() as stack:
        computer = await stack.enter_async_context(Computer("pc", mcp_servers=[server("a")], timings=FAST))
        client = await stack.enter_async_context(SMCPComputerClient(computer, link))
        agent = await stack.enter_async_context(face(link, name="ada", live=False))
        office = new_office()
        await client.join_office(office)
        await agent.join_office(office)
        yield agent, client


async def says_hello(agent: Agent) -> bool:
    result = await agent.call_tool("pc", "a.echo", {"text": "你好" * 20_000}, timeout=30)
    return bool(result.content[0].text == "你好" * 20_000)


# --- a tunnel


@both_colours
@pytest.mark.parametrize("transport", ["auto", "websocket", "polling"])
async def test_a_tunnel_through_a_proxy_that_wants_a_password(
    kind: str,
    transport: str,
    tls_server: int,
    certificate: Certificate,
    proxied: Callable[..., ForwardProxy],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    proxy = proxied(tls_server, credentials=CREDENTIALS)
    way_out = proxy.with_credentials(IN_A_URL)
    link = options(f"https://{NAME}", proxy=way_out, ca=certificate.cert, transport=transport)
    async with office_through(link, kind) as (agent, computer):
        assert await says_hello(agent)
        used = "polling" if transport == "polling" else "websocket"
        assert str(agent.way) == str(computer.way) == f"{used}, through the proxy {proxy.url}"
    assert {(request.method, request.target) for request in proxy.seen} == {("CONNECT", f"{NAME}:443")}
    assert "nter2" not in caplog.text + repr(link)


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("transport", ["websocket", "polling"])
async def test_a_proxy_may_speak_tls_itself(
    scheme: str,
    transport: str,
    plain_server: int,
    tls_server: int,
    certificate: Certificate,
    proxied: Callable[..., ForwardProxy],
) -> None:
    port = tls_server if scheme == "https" else plain_server
    proxy = proxied(port, credentials=CREDENTIALS, own=as_server(certificate))
    way_out = proxy.with_credentials(IN_A_URL)
    link = options(f"{scheme}://{NAME}", proxy=way_out, ca=certificate.cert, transport=transport)
    async with OfficeLink(link, {}) as connected:
        await connected.join(Membership("computer", "c", new_office()))
        assert str(connected.way) == f"{transport}, through the proxy {proxy.url}"
    assert proxy.url.startswith("https://")


async def test_the_variables_count_and_the_option_overrides_them(
    tls_server: int, certificate: Certificate, proxied: Callable[..., ForwardProxy], monkeypatch: pytest.MonkeyPatch
) -> None:
    variable, option = proxied(tls_server), proxied(tls_server)
    monkeypatch.setenv("ALL_PROXY", variable.url)
    async with OfficeLink(options(f"https://{NAME}", ca=certificate.cert), {}) as link:
        assert link.way is not None and str(link.way.proxy) == variable.url
    async with OfficeLink(options(f"https://{NAME}", ca=certificate.cert, proxy=option.url), {}) as link:
        assert link.way is not None and str(link.way.proxy) == option.url
    # This machine is reached without; so is what NO_PROXY names.
    async with OfficeLink(options(f"https://127.0.0.1:{tls_server}", ca=certificate.cert), {}) as link:
        assert str(link.way) == "websocket, direct"
    assert (len(variable.seen), len(option.seen)) == (1, 1)


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize(("given", "said"), [("", "wants a name"), ("ada:hunter2@", "refuses the name")])
@pytest.mark.parametrize("transport", ["auto", "polling"])
async def test_a_proxy_that_refuses_says_so_with_what_to_do_and_without_the_password(
    scheme: str, given: str, said: str, transport: str, plain_server: int, proxied: Callable[..., ForwardProxy]
) -> None:
    proxy = proxied(plain_server, credentials=CREDENTIALS)
    way_out = proxy.url.replace("://", f"://{given}")
    with pytest.raises(ProxyError, match=f"{said}.*NAME:PASSWORD@") as caught:
        await OfficeLink(options(f"{scheme}://{NAME}", proxy=way_out, transport=transport), {}).open()
    assert "hunter2" not in str(caught.value)
    assert len(proxy.seen) == 1  # another transport would not help


async def test_a_proxy_that_is_not_there_or_does_not_connect_is_told_from_a_server_that_is_not(
    plain_server: int, proxied: Callable[..., ForwardProxy], unused_port: int
) -> None:
    with pytest.raises(ProxyError, match=r"does not answer.*correct --proxy"):
        await OfficeLink(options(f"https://{NAME}", proxy=f"http://u:hunter2@127.0.0.1:{unused_port}"), {}).open()
    with pytest.raises(ProxyError, match="refuses to connect: HTTP status 403"):
        await OfficeLink(options("https://elsewhere.example", proxy=proxied(plain_server).url), {}).open()
    with pytest.raises(BadRequestError, match="not an http:// or https:// URL"):
        await OfficeLink(options(f"https://{NAME}", proxy="socks5://u:hunter2@127.0.0.1"), {}).open()
    with pytest.raises(ConnectionLostError) as caught:
        await OfficeLink(options(f"http://127.0.0.1:{unused_port}"), {}).open()
    assert type(caught.value) is ConnectionLostError


@pytest.fixture
def unused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


# --- websockets that do not get through


@both_colours
@pytest.mark.parametrize(
    ("upgrades", "why"),
    [
        ("refuse", "the websocket is refused with HTTP status 403"),
        ("cut", "the connection was cut"),
        ("drop", "it opens, but no Socket.IO server answers"),
    ],
)
async def test_where_websockets_are_refused_or_cut_it_polls(
    kind: str, upgrades: Upgrades, why: str, plain_server: int, proxied: Callable[..., ForwardProxy]
) -> None:
    proxy = proxied(plain_server, credentials=CREDENTIALS, upgrades=upgrades)
    link = options(f"http://{NAME}:7000", proxy=proxy.with_credentials(IN_A_URL))
    async with office_through(link, kind) as (agent, computer):
        assert await says_hello(agent)
        assert str(agent.way) == f"polling (no websocket: {why}), through the proxy {proxy.url}"
        assert computer.way == agent.way
    # For each client a websocket first, and once more when it polled.
    tried = [request for request in proxy.seen if request.upgrades]
    assert {"sid=" in request.target for request in tried} == {True, False}


async def test_where_websockets_are_swallowed_it_polls_in_bounded_time(
    plain_server: int, proxied: Callable[..., ForwardProxy]
) -> None:
    proxy = proxied(plain_server, upgrades="swallow")
    async with OfficeLink(options(f"http://{NAME}", proxy=proxy.url, connect_timeout=12), {}) as link:
        await link.join(Membership("computer", "c", new_office()))
        assert link.way is not None
        assert (link.way.transport, link.way.no_websocket) == ("polling", "no answer in time")


@both_colours
async def test_a_connection_that_polls_goes_over_to_a_websocket_when_it_can(
    kind: str, plain_server: int, proxied: Callable[..., ForwardProxy], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("a2c_smcp.link.connection._UPGRADE_SECONDS", 15.0)  # after three it would stay as it is
    proxy = proxied(plain_server, upgrades="first")
    face: Any = Asyncio if kind == "async" else Blocking
    async with face(options(f"http://{NAME}", proxy=proxy.url), name="ada", live=False) as agent:
        await agent.join_office(new_office())
        assert [session["name"] for session in await agent.list_room()] == ["ada"]
        assert str(agent.way) == f"websocket, through the proxy {proxy.url}"
    first, polled, *_, upgraded = (
        request for request in proxy.seen if request.upgrades or "sid=" not in request.target
    )
    assert "transport=websocket" in first.target and first.upgrades
    assert "transport=polling" in polled.target
    assert "sid=" in upgraded.target and upgraded.upgrades


async def test_where_websockets_connect_and_do_not_last_it_polls(
    plain_server: int, proxied: Callable[..., ForwardProxy], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("a2c_smcp.link.server_link._SHORT_LIVED", 600.0)  # on a busy machine a cut takes its time
    events: list[LinkEvent] = []

    def ways() -> list[str]:
        return [event.way.transport for event in events if isinstance(event, Connected) and event.way]

    async def cut(link: OfficeLink) -> None:
        assert link._connection is not None
        eio = link._connection.eio
        await (eio.ws or eio.http).close()

    async with OfficeLink(
        options(f"http://{NAME}", proxy=proxied(plain_server).url), {}, on_event=events.append
    ) as link:
        for times in (1, 2, 3, 4):
            await eventually(lambda times=times: len(ways()) == times and link.connected, 30)  # type: ignore[misc]
            await cut(link)
        await eventually(lambda: len(ways()) == 5, 30)
    # After the one that polls the next may last.
    assert ways() == ["websocket", "websocket", "websocket", "polling", "websocket"]


async def test_a_server_that_comes_and_goes_is_no_reason_to_poll(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("a2c_smcp.link.server_link._SHORT_LIVED", 600.0)
    with async_server(APIKeyAuthentication([KEY])) as running:
        url = running.url
        link = OfficeLink(options(url), {})
        await link.open()
    try:
        for _ in range(3):
            # Down, and found to be: an attempt to come back has failed.
            await eventually(lambda: not link.connected and link._cuts == 0, 30)
            with async_server(APIKeyAuthentication([KEY]), port=int(url.rpartition(":")[2])):
                await eventually(lambda: link.connected, 30)
                assert link.way is not None and link.way.transport == "websocket"
    finally:
        await link.close()


async def test_one_transport_is_one_transport(plain_server: int, proxied: Callable[..., ForwardProxy]) -> None:
    proxy = proxied(plain_server, upgrades="refuse")
    with pytest.raises(ConnectionLostError, match="the websocket is refused with HTTP status 403"):
        await OfficeLink(options(f"http://{NAME}", proxy=proxy.url, transport="websocket"), {}).open()
    assert [request.upgrades for request in proxy.seen] == [True]
    proxy.upgrades = "pass"
    proxy.seen.clear()
    async with OfficeLink(options(f"http://{NAME}", proxy=proxy.url, transport="polling"), {}) as link:
        await link.join(Membership("computer", "c", new_office()))
        assert str(link.way) == f"polling, through the proxy {proxy.url}"
    assert not any(request.upgrades for request in proxy.seen)


@pytest.mark.parametrize("upgrades", ["pass", "refuse"])
async def test_a_refused_key_is_refused_by_either_transport_and_not_tried_by_the_other(
    upgrades: Upgrades, plain_server: int, proxied: Callable[..., ForwardProxy]
) -> None:
    proxy = proxied(plain_server, upgrades=upgrades)
    with pytest.raises(UnauthorizedError):
        await OfficeLink(options(f"http://{NAME}", proxy=proxy.url, api_key="wrong"), {}).open()
    polled = [request for request in proxy.seen if "transport=polling" in request.target]
    assert bool(polled) is (upgrades == "refuse")


# --- certificates


@both_colours
async def test_a_certificate_that_is_not_trusted_is_said_to_be_one_with_what_to_do(
    kind: str, tls_server: int, certificate: Certificate
) -> None:
    url = f"https://127.0.0.1:{tls_server}"
    face: Any = Asyncio if kind == "async" else Blocking
    for open_one in (
        face(options(url), name="ada").__aenter__,
        SMCPComputerClient(Computer("pc"), options(url)).connect,
        OfficeLink(options(url, transport="polling"), {}).open,
    ):
        with pytest.raises(UntrustedCertificateError) as caught:
            await open_one()
        assert "the certificate of 127.0.0.1 is not trusted (self-signed certificate)" in caught.value.problem
        assert "--ca FILE" in caught.value.advice and "SSL_CERT_FILE" in caught.value.advice
        assert caught.value.advice in str(caught.value)
    async with face(options(url, ca=Path(certificate.cert)), name="ada") as agent:
        assert str(agent.way) == "websocket, direct"


async def test_a_certificate_for_another_name_or_of_another_time_is_said_to_be_that(
    tls_server: int, certificate: Certificate, tmp_path: Path
) -> None:
    with pytest.raises(UntrustedCertificateError, match="was made for another name"):
        await OfficeLink(options(f"https://localhost:{tls_server}", ca=certificate.cert), {}).open()
    old = self_signed(tmp_path, "127.0.0.1", expired=True)
    with (
        tls_serving(old) as port,
        pytest.raises(UntrustedCertificateError, match=r"is not valid at this time.*has expired"),
    ):
        await OfficeLink(options(f"https://127.0.0.1:{port}", ca=old.cert), {}).open()


async def test_a_server_without_tls_and_a_file_without_certificates_are_said_to_be_that(
    plain_server: int, tmp_path: Path
) -> None:
    plain = f"http://127.0.0.1:{plain_server}"
    with pytest.raises(NoTlsError, match=rf"does not speak TLS; if the server has no certificate.*: {plain}$"):
        await OfficeLink(options(plain.replace("http:", "https:")), {}).open()
    (tmp_path / "empty.pem").touch()
    for name in ("empty.pem", "missing.pem"):
        with pytest.raises(BadRequestError, match=f"{name} cannot be read"):
            await OfficeLink(options(f"https://127.0.0.1:{plain_server}", ca=tmp_path / name), {}).open()


@both_colours
async def test_a_proxy_that_opens_tls_wants_a_password_and_blocks_websockets(
    kind: str, plain_server: int, certificate: Certificate, proxied: Callable[..., ForwardProxy]
) -> None:
    proxy = proxied(plain_server, credentials=CREDENTIALS, upgrades="cut", opens=as_server(certificate))
    way_out = proxy.with_credentials(IN_A_URL)
    with pytest.raises(UntrustedCertificateError, match="--ca FILE"):
        await OfficeLink(options(f"https://{NAME}", proxy=way_out), {}).open()
    async with office_through(options(f"https://{NAME}", proxy=way_out, ca=certificate.cert), kind) as (agent, _):
        with anyio.fail_after(60):
            assert await says_hello(agent)
        assert agent.way.transport == "polling"
