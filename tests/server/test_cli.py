"""`a2c server` as a process: ready, refused, stopped."""

import asyncio
import datetime
import ipaddress
import json
import os
import re
import signal
import ssl
import subprocess
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from a2c_smcp.link.interface import Disconnected, LinkEvent, LinkOptions, Membership
from a2c_smcp.link.office_link import OfficeLink
from tests.forked import A2C, shared
from tests.server.harness import eventually
from tests.server.raw import CLOSE, connect, frame, receive_until, upgrade


class Process:
    def __init__(self, *args: str, command: Sequence[str] = (A2C,), **env: str) -> None:
        clean = {key: value for key, value in os.environ.items() if not key.startswith("A2C_")}
        self.popen = subprocess.Popen(
            [*command, "server", "--port", "0", *args], stderr=subprocess.PIPE, text=True, env={**clean, **env}
        )
        assert self.popen.stderr is not None
        self.lines: list[str] = []
        for line in self.popen.stderr:
            self.lines.append(line)
            if match := re.search(r'ready on ([^\s"]+)', line):
                self.url = match[1]
                return
        raise AssertionError(f"not ready: {self.lines}")

    def stop(self, sig: int = signal.SIGTERM) -> tuple[int, str]:
        self.popen.send_signal(sig)
        _, rest = self.popen.communicate(timeout=60)
        return self.popen.returncode, rest


@contextmanager
def running(*args: str, command: Sequence[str] = (A2C,), **env: str) -> Iterator[Process]:
    process = Process(*args, command=command, **env)
    try:
        yield process
    finally:
        if process.popen.poll() is None:
            process.popen.kill()
        process.popen.communicate()


def run(*args: str) -> subprocess.CompletedProcess[str]:
    clean = {key: value for key, value in os.environ.items() if not key.startswith("A2C_")}
    return shared().run_text("server", *args, env={**clean, "COLUMNS": "300"})


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
async def test_one_ready_line_and_a_clean_exit(sig: int) -> None:
    with running() as process:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+", process.url)
        assert len(process.lines) == 1
        code, rest = await asyncio.to_thread(process.stop, sig)
    assert code == 0
    assert "Traceback" not in rest


@pytest.mark.parametrize("transport", ["websocket", "polling"])
async def test_a_stop_answers_what_runs_and_clients_know_that_they_may_come_back(transport: str) -> None:
    events: list[LinkEvent] = []
    called = asyncio.Event()

    async def slowly(_: Any) -> Any:
        called.set()
        await asyncio.sleep(0.5)
        return {"tools": [], "req_id": "1"}

    with running() as process:
        options = LinkOptions(process.url, transport=transport)  # type: ignore[arg-type]
        async with (
            OfficeLink(options, {"client:get_tools": slowly}) as computer,
            OfficeLink(options, {}, on_event=events.append) as agent,
        ):
            await computer.join(Membership("computer", "c", "o"))
            await agent.join(Membership("agent", "a", "o"))
            asking = asyncio.create_task(
                agent.request("client:get_tools", {"agent": "a", "req_id": "1", "computer": "c"}, 60)
            )
            await eventually(called.is_set)
            code, rest = await asyncio.to_thread(process.stop)
            assert await asking == ({"tools": [], "req_id": "1"},)
            assert code == 0
            assert "Traceback" not in rest
            await eventually(lambda: any(isinstance(event, Disconnected) for event in events))
            assert not any(event.final for event in events if isinstance(event, Disconnected))


async def test_a_call_that_does_not_end_does_not_hold_up_the_stop() -> None:
    called = asyncio.Event()

    async def never(_: Any) -> Any:
        called.set()
        await asyncio.sleep(300)

    with running("--drain", "1") as process:
        options = LinkOptions(process.url)
        async with OfficeLink(options, {"client:tool_call": never}) as computer, OfficeLink(options, {}) as agent:
            await computer.join(Membership("computer", "c", "o"))
            await agent.join(Membership("agent", "a", "o"))
            call = {"agent": "a", "req_id": "1", "computer": "c", "tool_name": "t", "params": {}, "timeout": 300}
            asking = asyncio.create_task(agent.request("client:tool_call", call, 300))
            await eventually(called.is_set)
            started = asyncio.get_running_loop().time()
            code, _ = await asyncio.to_thread(process.stop)
            assert code == 0
            # Well before the call's own 300 s.
            assert asyncio.get_running_loop().time() - started < 60
            assert isinstance((await asyncio.gather(asking, return_exceptions=True))[0], Exception)


async def test_keys_from_the_environment_and_from_a_file(tmp_path: Path) -> None:
    keys = tmp_path / "keys.toml"
    keys.write_text("[[keys]]\nname = 'lab'\nkey = 'from-file'\nroles = ['computer']\n")
    with running("--keys", str(keys), A2C_API_KEY="from-env") as process:
        for key in ("from-file", "from-env"):
            async with OfficeLink(LinkOptions(process.url, api_key=key), {}) as link:
                assert link.connected
        with pytest.raises(Exception, match="401"):
            await OfficeLink(LinkOptions(process.url, api_key="guess"), {}).open()
        code, rest = await asyncio.to_thread(process.stop)
        assert code == 0
        assert "guess" not in rest


@pytest.fixture
def key_files(tmp_path: Path) -> tuple[Path, Path]:
    """A file with a key, and a keys file that others may change."""
    tmp_path.chmod(0o700)
    key, keys = tmp_path / "key", tmp_path / "keys.toml"
    key.write_text("from-a-file\n")
    key.chmod(0o600)
    keys.write_text('[[keys]]\nname = "a"\nkey = "listed"\n')
    keys.chmod(0o664)
    return key, keys


async def test_a_key_in_a_file_lets_in_and_a_keys_file_that_others_may_change_is_warned_of(
    key_files: tuple[Path, Path],
) -> None:
    key, keys = key_files
    with running("--api-key-file", str(key), "--keys", str(keys)) as process:
        warned = "".join(process.lines)
        assert "may be changed by others" in warned and f"chmod 600 {keys}" in warned and "listed" not in warned
        for secret in ("from-a-file", "listed"):
            async with OfficeLink(LinkOptions(process.url, api_key=secret), {}) as link:
                assert link.connected


def test_without_a_key_it_refuses_to_bind_elsewhere_and_says_why() -> None:
    result = run("--host", "0.0.0.0", "--port", "0")
    assert result.returncode == 2
    assert "without an API key" in result.stderr
    assert "--api-key" in result.stderr


@pytest.mark.parametrize("args", [["--tls-cert", "x.pem"], ["--port", "70000"], ["--log-format", "xml"]])
def test_options_that_cannot_work_are_refused(args: list[str]) -> None:
    assert run(*args).returncode == 2


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--nats", "redis://host"], "not the address of a NATS server"),
        (["--nats", "nats://host", "--nats-prefix", "a.b"], "prefix"),
        (["--nats-creds", "x.creds"], "--nats-creds needs --nats"),
        (["--accept-unsigned"], "--accept-unsigned needs --nats"),
        (["--nats", "nats://host", "--cluster-key", "short"], "32 characters"),
        (["--nats", "nats://host", "--cluster-key-file", os.devnull], "no cluster key in it"),
    ],
)
def test_options_for_nats_that_cannot_work_are_refused_in_words(args: list[str], words: str) -> None:
    result = run(*args)
    assert result.returncode == 2 and words in result.stderr


def test_a_credentials_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    result = run("--nats", "nats://127.0.0.1:1", "--nats-creds", str(tmp_path / "none.creds"))
    assert result.returncode == 1 and "none.creds" in result.stderr


def test_an_empty_key_is_refused_in_words() -> None:
    result = run("--api-key", "")
    assert result.returncode == 2
    assert "must not be empty" in result.stderr
    assert "Traceback" not in result.stderr


def test_keys_for_nats_that_others_can_read_are_warned_of(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    creds, keys = tmp_path / "server.creds", tmp_path / "cluster.key"
    for file in (creds, keys):
        file.write_text("k" * 32)
        file.chmod(0o644)
    files = ["--nats-creds", str(creds), "--cluster-key-file", str(keys)]
    result = run("--nats", "nats://host", *files, "--cluster-key", "short")
    assert result.returncode == 2
    assert f"{creds} may be read by others" in result.stderr and f"{keys} may be read by others" in result.stderr
    assert "--cluster-key-file FILE or A2C_CLUSTER_KEY does not" in result.stderr


def test_a_port_that_is_taken_and_a_bad_keys_file_are_said(tmp_path: Path) -> None:
    with running() as process:
        port = process.url.rpartition(":")[2]
        result = run("--port", port)
        assert result.returncode == 1
        assert f"another program uses port {port}" in result.stderr and "--port" in result.stderr
    result = run("--keys", str(tmp_path / "none.toml"))
    assert result.returncode == 1
    assert "none.toml" in result.stderr


async def test_logs_as_json_lines_with_fields(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("the-only-key-there-is")
    key.chmod(0o600)
    files = ["--api-key-file", str(key), "--admin-socket", "none"]
    with running("--log-format", "json", "--log-level", "debug", *files) as process:
        with pytest.raises(Exception, match="401"):
            await OfficeLink(LinkOptions(process.url), {}).open()
        options = LinkOptions(process.url, api_key="the-only-key-there-is")
        async with OfficeLink(options, {}) as agent:
            await agent.join(Membership("agent", "smith", "lab"))
            call = {"agent": "smith", "req_id": "r1", "computer": "c", "tool_name": "t", "params": {"secret": "x9"}}
            await agent.request("client:tool_call", {**call, "timeout": 20}, 30)
        code, rest = await asyncio.to_thread(process.stop)
    assert code == 0
    first, *lines = [json.loads(line) for line in (*process.lines, *rest.splitlines())]
    assert first["event"] == "ready" and first["message"].endswith(f"ready on {process.url}")
    assert {line["process"] for line in lines} == {f"{first['host']}:{process.popen.pid}"}
    assert "x9" not in rest and "the-only-key-there-is" not in rest
    events = {line["event"]: line for line in lines if "event" in line}
    assert {"connect", "join", "call", "leave"} <= set(events)
    refused = [(line.get("req_id"), line["code"]) for line in lines if line.get("event") == "refused"]
    assert refused == [(None, 401), ("r1", 404)]
    about = {"office": "lab", "session": events["connect"]["session"], "key": "api-key", "name": "smith"}
    for name in ("join", "call", "leave"):
        assert about.items() <= events[name].items()
    assert (events["call"]["req_id"], events["call"]["outcome"]) == ("r1", "404")
    assert events["leave"]["reason"] == "client disconnect"


def self_signed(folder: Path) -> tuple[Path, Path]:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    cert_file, key_file = folder / "cert.pem", folder / "key.pem"
    cert_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return cert_file, key_file


async def test_tls(tmp_path: Path) -> None:
    cert, key = self_signed(tmp_path)

    def healthz(url: str) -> bytes:
        context = ssl.create_default_context(cafile=str(cert))
        with urllib.request.urlopen(url + "/healthz", context=context, timeout=30) as reply:
            return bytes(reply.read())

    with running("--tls-cert", str(cert), "--tls-key", str(key)) as process:
        assert process.url.startswith("https://")
        assert await asyncio.to_thread(healthz, process.url) == b"ok\n"


async def test_a_peer_that_says_goodbye_and_stays_does_not_spoil_the_stop(tmp_path: Path) -> None:
    cert, key = self_signed(tmp_path)
    context = ssl.create_default_context(cafile=str(cert))

    def blocking() -> tuple[int, str]:
        with (
            running("--tls-cert", str(cert), "--tls-key", str(key)) as process,
            context.wrap_socket(connect(process.url), server_hostname="127.0.0.1") as sock,
        ):
            upgrade(sock)
            receive_until(sock, b'"sid"')
            sock.sendall(frame(b"", CLOSE))
            receive_until(sock, bytes([0x80 | CLOSE, 0]))  # the server's; it waits for the end of TLS now
            return process.stop()

    status, said = await asyncio.to_thread(blocking)
    assert status == 0, said
    assert "Traceback" not in said
