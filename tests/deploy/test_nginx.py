"""Several servers behind nginx: an office lives on one of them, by the office in the URL."""

import gc
import re
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack
from typing import Any

import pytest

from a2c_smcp.link.interface import LinkOptions, Membership
from a2c_smcp.link.office_link import OfficeLink
from a2c_smcp.smcp import GET_TOOLS_EVENT
from tests.certificates import Certificate, self_signed
from tests.deploy.nginx import nginx
from tests.server.harness import eventually
from tests.server.test_cli import Process, running

# aiohttp's sessions do not wait for the end of TLS, and a test's event loop may end before it has come.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")

#: aiohttp warns of requests over 1 MiB.
LARGE = 1_000_000
#: So many that chance does not bring all of them to one of two servers.
OFFICES = [f"office {number} & Büro" for number in range(24)]


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """What a test left to the garbage collector is its own, and warns under its filter."""
    yield
    gc.collect()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return self_signed(tmp_path_factory.mktemp("certificates"), "127.0.0.1")


@pytest.fixture(scope="module")
def servers() -> Iterator[list[Process]]:
    with ExitStack() as stack:
        yield [stack.enter_context(running("--api-key", "key")) for _ in range(2)]


@pytest.fixture(scope="module", params=["offices.conf", "cluster.conf"])
def url(
    request: pytest.FixtureRequest,
    servers: list[Process],
    certificate: Certificate,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[str]:
    addresses = [server.url.partition("//")[2] for server in servers]
    named = dict(zip(["127.0.0.1:7001", "127.0.0.1:7002"], addresses, strict=True))
    with nginx(tmp_path_factory.mktemp("nginx"), request.param, certificate, named) as url:
        yield url


def computers(server: Process) -> int:
    with urllib.request.urlopen(f"{server.url}/metrics") as answer:
        found = re.search(r'^a2c_members\{role="computer"\} (\d+)', answer.read().decode(), re.MULTILINE)
    assert found
    return int(found[1])


async def enter(stack: AsyncExitStack, options: LinkOptions, role: Any, name: str) -> OfficeLink:
    assert options.office is not None

    async def tools(data: Any) -> Any:
        return {"tools": [], "req_id": data["req_id"], "large": "x" * LARGE}

    link = await stack.enter_async_context(OfficeLink(options, {GET_TOOLS_EVENT: tools}))
    await link.join(Membership(role, name, options.office))
    return link


@pytest.mark.parametrize("transport", ["websocket", "polling"])
async def test_the_members_of_an_office_meet(url: str, certificate: Certificate, transport: Any) -> None:
    async with AsyncExitStack() as stack:
        for office in OFFICES[:4]:
            options = LinkOptions(url, api_key="key", transport=transport, ca=certificate.cert, office=office)
            await enter(stack, options, "computer", "laptop")
            agent = await enter(stack, options, "agent", "ada")
            assert agent.way is not None
            assert agent.way.transport == transport
            request = {"agent": "ada", "req_id": "1", "computer": "laptop"}
            (answer,) = await agent.request(GET_TOOLS_EVENT, request, 20)
            assert len(answer["large"]) == LARGE


async def test_the_offices_are_spread_over_the_servers(
    url: str, servers: list[Process], certificate: Certificate
) -> None:
    # Those of another test may still be leaving.
    await eventually(lambda: not any(map(computers, servers)))
    async with AsyncExitStack() as stack:
        for office in OFFICES:
            options = LinkOptions(url, api_key="key", ca=certificate.cert, office=office)
            await enter(stack, options, "computer", "desk")
        found = [computers(server) for server in servers]
    assert sum(found) == len(OFFICES)
    assert min(found) > 0


def test_only_the_socketio_endpoint_is_passed_on(url: str, certificate: Certificate) -> None:
    context = ssl.create_default_context(cafile=certificate.cert)
    for path in ("/metrics", "/healthz", "/readyz"):
        with pytest.raises(urllib.error.HTTPError, match="404") as refused:
            urllib.request.urlopen(f"{url}{path}", context=context)
        refused.value.close()
