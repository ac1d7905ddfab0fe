"""The commands in a company network: `--proxy`, `--transport`, `--ca` and their variables, as people give them."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import anyio.to_thread
import pytest

from a2c_smcp.agent import AsyncSMCPAgentClient
from a2c_smcp.server import APIKeyAuthentication
from tests.certificates import Certificate, self_signed
from tests.computer.fakes.computers import server
from tests.forked import A2C, shared
from tests.proxies import ForwardProxy, proxying
from tests.server.harness import async_server, eventually
from tests.utils.test_network import CREDENTIALS, IN_A_URL, KEY, NAME, tls_serving


def a2c(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return shared().run_text(*arguments, env={**os.environ, "A2C_API_KEY": KEY, **environment}, timeout=100)


def start(*command: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment})


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return self_signed(tmp_path_factory.mktemp("certificates"), NAME, "127.0.0.1")


@pytest.fixture(scope="module")
def tls_server(certificate: Certificate) -> Iterator[int]:
    with tls_serving(certificate) as port:
        yield port


@pytest.fixture(scope="module")
def plain_server() -> Iterator[int]:
    with async_server(APIKeyAuthentication([KEY])) as running:
        yield int(running.url.rpartition(":")[2])


@pytest.fixture
def blocking_proxy(plain_server: int) -> Iterator[ForwardProxy]:
    """One that wants a password and refuses websockets."""
    hosts = {NAME: ("127.0.0.1", plain_server)}
    with proxying(ForwardProxy(hosts, credentials=CREDENTIALS, upgrades="refuse")) as proxy:
        yield proxy


def test_the_doctor_says_which_way_it_went(
    tls_server: int, certificate: Certificate, blocking_proxy: ForwardProxy
) -> None:
    direct = a2c("doctor", "--url", f"https://127.0.0.1:{tls_server}", "--ca", certificate.cert)
    assert "accepts the key; connected by websocket, direct\n" in direct.stdout
    way_out = blocking_proxy.with_credentials(IN_A_URL)
    polling = a2c("doctor", "--url", f"http://{NAME}", "--proxy", way_out)
    why = "no websocket: the websocket is refused with HTTP status 403"
    assert f"connected by polling ({why}), through the proxy {blocking_proxy.url}\n" in polling.stdout
    refused = a2c("doctor", "--url", f"http://{NAME}", http_proxy=blocking_proxy.with_credentials("ada:hunter2"))
    assert (
        f"the proxy {blocking_proxy.url} refuses the name and the password\n    give them in its URL" in refused.stdout
    )
    wrong = a2c("doctor", "--url", f"http://{NAME}", ALL_PROXY="socks5://ada:hunter2@127.0.0.1:1")
    assert "✗ the proxy in ALL_PROXY is not an http:// or https:// URL" in wrong.stdout
    assert [direct.returncode, polling.returncode, refused.returncode, wrong.returncode] == [0, 0, 1, 1]
    lost = a2c("doctor", "--url", f"http://{NAME}", "--proxy", "http://ada:hunter2@proxy.invalid:3128")
    assert "the proxy http://proxy.invalid:3128 is not found: no such name\n    correct --proxy or the" in lost.stdout
    for said in (direct, polling, refused, wrong, lost):
        assert "nter2" not in said.stdout + said.stderr


def test_the_doctor_and_the_agent_tell_of_a_certificate_that_is_not_trusted(
    tls_server: int, certificate: Certificate
) -> None:
    url = f"https://127.0.0.1:{tls_server}"
    doctor = a2c("doctor", "--url", url)
    assert doctor.returncode == 1
    assert (
        "the certificate of 127.0.0.1 is not trusted (self-signed certificate)\n    if it is the right one"
        in doctor.stdout
    )
    agent = a2c("agent", "room", "--office", "o", "--url", url)
    assert agent.returncode == 3
    assert "is not trusted" in agent.stderr and "--ca FILE" in agent.stderr
    room = ("agent", "room", "--office", "o", "--url", url)
    assert a2c(*room, A2C_CA=certificate.cert).returncode == 0
    # aiohttp reads this variable when it is imported, so the command is not a forked one.
    env = {**os.environ, "A2C_API_KEY": KEY, "SSL_CERT_FILE": certificate.cert}
    subprocess.run([A2C, *room], capture_output=True, timeout=100, check=True, env=env)


async def test_a_headless_computer_and_an_agent_go_through_a_proxy(
    plain_server: int, blocking_proxy: ForwardProxy, tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text(json.dumps([server("a")]))
    way_out = blocking_proxy.with_credentials(IN_A_URL)
    command = [A2C, "computer", "run", "--headless", "--office", "o", "--name", "pc", "--url", f"http://{NAME}"]
    environment = {"A2C_API_KEY": KEY, "A2C_PROXY": way_out}
    process = start(*command, "--config", str(tmp_path / "config.json"), **environment)
    try:
        async with AsyncSMCPAgentClient(f"http://127.0.0.1:{plain_server}", name="ada", api_key=KEY) as agent:
            await agent.join_office("o")
            await eventually(lambda: "pc" in agent.computers, 60)
        arguments = ("agent", "room", "--office", "o", "--url", f"http://{NAME}", "--proxy", way_out, "--json")
        room = await anyio.to_thread.run_sync(lambda: a2c(*arguments, "--transport", "polling"))
        assert {session["name"] for session in json.loads(room.stdout)} == {"pc", "a2c-agent"}
    finally:
        process.terminate()
        _, log = await anyio.to_thread.run_sync(lambda: process.communicate(timeout=60))
    assert f"through the proxy {blocking_proxy.url}" in log
    assert "nter2" not in log + room.stdout + room.stderr
    assert process.returncode == 0


@pytest.mark.parametrize("command", [["agent", "call"], ["computer", "run"], ["doctor"]])
def test_the_options_are_explained(command: list[str]) -> None:
    said = a2c(*command, "--help", COLUMNS="200").stdout
    for words in (
        "--proxy",
        "A2C_PROXY",
        "--transport",
        "A2C_TRANSPORT",
        "--ca",
        "A2C_CA",
        "SSL_CERT_FILE",
        "NO_PROXY",
    ):
        assert words in said


@pytest.mark.parametrize(
    "command",
    [
        ("computer", "run", "--headless", "--office", "o", "--config", "no-such.json"),
        ("mcp", "--office", "o"),
        ("doctor",),
        ("agent", "room", "--office", "o"),
    ],
)
def test_a_url_without_a_scheme_is_a_wrong_option(command: tuple[str, ...]) -> None:
    done = a2c(*command, "--url", "localhost:7000", COLUMNS="200")
    assert done.returncode == 2, done.stderr
    assert "did you mean http://localhost:7000?" in done.stderr
    assert "Traceback" not in done.stderr
