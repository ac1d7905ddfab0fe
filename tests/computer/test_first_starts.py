"""Servers that do not start at once: tried again, given the time that they need, and told of to agents."""

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.mcp_clients.connection_options import Timings
from a2c_smcp.computer.mcp_clients.http.failures import describe_http
from a2c_smcp.computer.mcp_clients.model import parse_server
from a2c_smcp.computer.mcp_clients.remembered_tools import RememberedTools
from a2c_smcp.computer.mcp_clients.server_state import ServerState
from a2c_smcp.computer.watching.events import ConfigChanged, ServerStatus
from a2c_smcp.errors import ServerStartError
from tests.computer.fakes.computers import (
    FAST,
    call,
    code,
    names,
    reason,
    recorded,
    running,
    server,
    state,
    text,
)
from tests.computer.fakes.processes import nothing_left_over

PATIENT = replace(FAST, backoff_first=60, backoff_most=60)
"""What does not start is not tried again before the test is over."""
HURRIED = replace(FAST, order=0.1, start=600)


def late(flag: Path, name: str = "late") -> dict[str, Any]:
    """A server that exits at once while the file is not there."""
    config = server(name)
    parameters = config["server_parameters"]
    script = 'test -e "$0" || { echo "no $0 yet" >&2; exit 1; }; exec "$@"'
    config["server_parameters"] = {
        "command": "/bin/sh",
        "args": ["-c", script, str(flag), parameters["command"], *parameters["args"]],
    }
    return config


@asynccontextmanager
async def answering(status: str) -> AsyncIterator[str]:
    """The URL of a web server that answers everything with one status."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(2**16)
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as listener:
        port = listener.sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}/mcp"


def remote(url: str, kind: str = "streamable", **parameters: Any) -> dict[str, Any]:
    return {"name": "remote", "type": kind, "server_parameters": {"url": url, **parameters}}


async def test_a_first_start_that_fails_is_tried_again_until_it_succeeds(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    computer = Computer("pc", mcp_servers=[late(flag)], timings=FAST, max_restarts=1000)
    with nothing_left_over():
        async with recorded(computer) as record, computer:
            await record.reached("late", ServerState.BACKING_OFF, 2)
            assert any(f"no {flag} yet" in (event.reason or "") for event in record.now(ServerStatus))
            flag.touch()
            await record.reached("late", ServerState.RUNNING)
            assert text(await call(computer, "late.echo", text="hi")) == "hi"


async def test_a_start_is_not_tried_for_ever() -> None:
    async with running(server("dies", "dies-on-start"), max_restarts=2) as (computer, record):
        await record.reached("dies", ServerState.FAILED)
        assert record.states("dies").count("backing_off") == 2
        assert "cannot open the database" in reason(computer, "dies")


async def test_the_reason_of_a_command_that_is_missing_is_short() -> None:
    gone = {"name": "gone", "type": "stdio", "server_parameters": {"command": "no-such-program"}}
    async with running(gone, timings=PATIENT) as (computer, _):
        assert (state(computer, "gone"), reason(computer, "gone")) == (
            ServerState.FAILED,
            "'no-such-program' is not found",
        )


async def test_a_command_with_its_arguments_in_one_text_is_explained() -> None:
    one = {"name": "one", "type": "stdio", "server_parameters": {"command": "no-such-program -y foo"}}
    async with running(one, timings=PATIENT) as (computer, _):
        assert reason(computer, "one").endswith("write the program alone into command, and the rest into args")


async def test_a_server_that_may_lack_the_proxy_of_this_computer_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.test:3128")
    code = "import sys; sys.exit('npm error code ENOTFOUND registry')"
    parameters = {"command": sys.executable, "args": ["-c", code]}
    offline = {"name": "offline", "type": "stdio", "server_parameters": parameters}
    async with running(offline, server("dies", "dies-on-start"), max_restarts=0) as (computer, record):
        for name in ("offline", "dies"):
            await record.reached(name, ServerState.FAILED)
        advice = 'If it needs them: "env": {"HTTPS_PROXY": "${env:HTTPS_PROXY}"}'
        assert reason(computer, "offline").endswith(f"it does not get HTTPS_PROXY of this computer. {advice}")
        assert "HTTPS_PROXY" not in reason(computer, "dies")  # a database has nothing to do with it


async def test_who_is_backing_off_can_be_started_stopped_changed_and_removed(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    async with running(late(flag), timings=PATIENT) as (computer, _):
        with pytest.raises(ServerStartError, match="yet"):
            await computer.start_server("late")
        assert state(computer, "late") is ServerState.BACKING_OFF
        await computer.stop_server("late")
        assert state(computer, "late") is ServerState.STOPPED
        with pytest.raises(ServerStartError):
            await computer.start_server("late")
        flag.touch()
        await computer.start_server("late")
        assert state(computer, "late") is ServerState.RUNNING
        flag.unlink()
        with pytest.raises(ServerStartError):
            await computer.restart_server("late")
        await computer.add_or_update_server(server("late"))
        assert state(computer, "late") is ServerState.RUNNING
        flag.touch()
        flag.unlink()
        await computer.stop_server("late")
        await computer.remove_server("late")
        assert computer.statuses == []


async def test_who_is_stopped_in_the_moment_of_its_retry_stays_stopped() -> None:
    async with running(server("dies", "dies-on-start"), timings=PATIENT) as (computer, record):
        computer._manager._try_again("dies")  # as its timer does
        await computer.stop_server("dies")
        (retry,) = computer._manager._retrying
        await asyncio.wait({retry}, timeout=30)
        assert state(computer, "dies") is ServerState.STOPPED
        assert record.states("dies")[-2:] == ["backing_off", "stopped"]


async def test_a_server_that_cannot_list_its_tools_at_first_is_tried_again(tmp_path: Path) -> None:
    config = server("listless", once=str(tmp_path / "once"), page=1)  # it dies after the first page
    async with running(config) as (_, record):
        failed = await record.reached("listless", ServerState.BACKING_OFF)
        assert "it cannot list its tools" in (failed.reason or "")
        await record.reached("listless", ServerState.RUNNING)


async def test_a_server_that_starts_for_minutes_holds_up_no_operation_on_another_one() -> None:
    computer = Computer("pc", mcp_servers=[server("hangs", "silent"), server("good")], timings=HURRIED)
    with nothing_left_over():
        async with recorded(computer) as record, asyncio.TaskGroup() as tasks:
            tasks.create_task(computer.boot_up())
            await record.reached("good", ServerState.RUNNING)
            await computer.restart_server("good")
            await computer.add_or_update_server(server("added"))
            await computer.stop_server("good")
            await computer.start_server("good")
            assert state(computer, "hangs") is ServerState.STARTING
            assert state(computer, "good") is state(computer, "added") is ServerState.RUNNING
            await computer.shutdown()


@pytest.mark.parametrize("status", ["401 Unauthorized", "403 Forbidden"])
@pytest.mark.parametrize("kind", ["streamable", "sse"])
async def test_a_refused_key_is_not_tried_again(status: str, kind: str) -> None:
    headers = {"Authorization": "Bearer s3cret"}  # without a key of the person's own, 401 asks for a sign-in
    async with (
        answering(status) as url,
        running(remote(url, kind, headers=headers), timings=PATIENT) as (computer, _),
    ):
        assert state(computer, "remote") is ServerState.FAILED
        assert f"HTTP {status[:3]}: " in reason(computer, "remote")
        assert "look at the headers in its config" in reason(computer, "remote")


async def test_a_web_server_that_is_not_ready_is_tried_again() -> None:
    async with answering("503 Busy") as url, running(remote(url), timings=PATIENT) as (computer, _):
        assert state(computer, "remote") is ServerState.BACKING_OFF
        assert "503" in reason(computer, "remote")


#: As macOS says it; Linux and Windows have other numbers and words.
UNKNOWN_NAME = httpx2.ConnectError("[Errno 8] nodename nor servname provided, or not known")
UNKNOWN_NAME.__cause__ = socket.gaierror(8, "nodename nor servname provided, or not known")


@pytest.mark.parametrize(
    ("error", "url", "environ", "said"),
    [
        (
            httpx2.ConnectError("[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1)"),
            "https://a",
            {},
            "http://",
        ),
        (
            httpx2.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: expired (_ssl.c:1)"),
            "https://a",
            {},
            "not trusted: expired; SSL_CERT_FILE",
        ),
        (UNKNOWN_NAME, "https://a", {}, "its host is not found"),
        (
            UNKNOWN_NAME,
            "https://a",
            {"https_proxy": "http://me:hunter2@proxy.test:3128"},
            "the proxy http://proxy.test:3128 is not found",
        ),
        (
            httpx2.ConnectError("All connection attempts failed"),
            "http://a",
            {"http_proxy": "proxy.test:3128"},
            "the proxy http://proxy.test:3128 does not answer",
        ),
        (httpx2.ConnectError("All connection attempts failed"), "http://a", {}, "nothing answers at its address"),
        (httpx2.RemoteProtocolError("Server disconnected"), "http://a", {}, "begin with https://"),
        (httpx2.ProxyError("407 Authentication Required"), "https://a", {}, "the proxy refuses: 407"),
        (404, "http://a", {}, "look at the url"),
        (502, "http://a", {}, "HTTP 502: it is not ready, or broken"),
        (418, "http://a", {}, "HTTP 418"),
    ],
)
def test_what_is_wrong_with_a_remote_server_is_said_with_what_to_do(
    error: int | Exception, url: str, environ: dict[str, str], said: str
) -> None:
    found = describe_http(error, url, environ)
    assert found is not None
    assert said in found
    assert "hunter2" not in found


async def test_https_to_a_plain_port_and_nobody_there_are_told_apart() -> None:
    async with (
        answering("200 OK") as url,
        running(remote(url.replace("http:", "https:")), timings=PATIENT) as (computer, _),
    ):
        assert "does not speak TLS" in reason(computer, "remote")
    async with running(remote(url), timings=PATIENT) as (computer, _):
        assert "nothing answers at its address" in reason(computer, "remote")


async def test_a_server_may_be_given_less_time_or_more() -> None:
    config = {**server("hangs", "silent"), "start_timeout": 0.5}
    async with running(config, timings=PATIENT) as (computer, _):
        assert "no answer within 0.5 s" in reason(computer, "hangs")


@pytest.mark.parametrize(
    ("command", "seconds"),
    [("npx", 180), ("/usr/local/bin/uvx", 180), ("docker", 180), ("pipx", 180), ("npx.cmd", 180), ("python", 30)],
)
def test_commands_that_download_first_have_more_time(command: str, seconds: float) -> None:
    raw = {"name": "x", "type": "stdio", "server_parameters": {"command": command}}
    assert Timings().start_of(parse_server(raw)) == seconds
    assert Timings().start_of(parse_server({**raw, "start_timeout": 7})) == 7


async def test_the_state_tells_what_a_server_says_while_it_starts() -> None:
    config = server("hangs")
    parameters = {"command": "/bin/sh", "args": ["-c", "echo 'fetching 12 packages' >&2; exec sleep 60"]}
    config["server_parameters"] = parameters
    computer = Computer("pc", mcp_servers=[config], timings=FAST)
    async with recorded(computer) as record:
        boot = asyncio.create_task(computer.boot_up())
        await record.until(lambda: "fetching 12 packages" in (computer.statuses[0].reason or ""))
        assert state(computer, "hangs") is ServerState.STARTING
        await computer.shutdown()
        await boot


async def test_agents_are_told_how_servers_do_and_that_it_changed(tmp_path: Path) -> None:
    secret = "correct-horse-battery"
    flag = tmp_path / secret
    config = late(flag)
    config["server_parameters"]["env"] = {"API_TOKEN": secret}
    async with running(server("good"), config, timings=PATIENT) as (computer, record):
        infos = computer.get_config()["server_info"]
        assert infos["good"]["state"] == "running"
        assert "reason" not in infos["good"]
        assert infos["late"]["state"] == "backing_off"
        assert "exit code 1" in infos["late"]["reason"]
        assert secret not in json.dumps(infos)
        flag.touch()
        await computer.start_server("late")
        assert computer.get_config()["server_info"]["late"]["state"] == "running"
        assert not record.now(ConfigChanged)  # the client announces what a ServerStatus says; see test_client.py


async def test_a_call_of_a_tool_whose_server_is_down_is_told_why(tmp_path: Path) -> None:
    flag, file = tmp_path / "flag", tmp_path / "state" / "tools.json"
    flag.touch()
    async with running(late(flag), remembered_tools=RememberedTools(file)) as (computer, _):
        assert "late.echo" in names(computer)
    flag.unlink()
    async with running(late(flag), timings=PATIENT, remembered_tools=RememberedTools(file)) as (computer, _):
        result = await call(computer, "late.echo")
        assert code(result) == 4003
        assert result.meta is not None
        assert result.meta["state"] == "backing_off"
        assert "exit code 1" in result.meta["reason"]
        assert "exit code 1" in text(result)
        unknown = await call(computer, "nobody.knows")
        assert code(unknown) == 4001
        assert "late" in text(unknown)
        assert "exit code 1" in text(unknown)
    async with running(late(flag), timings=PATIENT) as (computer, _):
        assert code(await call(computer, "late.echo")) == 4001


@pytest.mark.parametrize("content", [b"", b"[1]", b"{", b"\xff", b'{"a": 1}', b"[" * 100_000])
def test_a_broken_memory_of_tools_is_none(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "tools.json"
    file.write_bytes(content)
    tools = RememberedTools(file)
    assert tools.server_of("a") is None
    tools.note({"a": "one"})
    tools.save()
    assert RememberedTools(file).server_of("a") == "one"


def test_a_memory_of_tools_is_bounded_and_keeps_what_others_had(tmp_path: Path) -> None:
    tools = RememberedTools(tmp_path / "tools.json")
    tools.note({"a": "one", "b": "two"})
    tools.note({"c": "two", "x" * 1000: "two"})
    assert [tools.server_of(name) for name in ("a", "b", "c", "x" * 1000)] == ["one", None, "two", None]
    tools.note({f"t{number}": "three" for number in range(5000)})
    assert tools.server_of("a") is None
    assert tools.server_of("t4999") == "three"


def test_a_memory_of_tools_that_cannot_be_written_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    tools = RememberedTools(tmp_path / "file" / "tools.json")
    tools.note({"a": "one"})
    tools.save()
    assert "not kept for the next run" in caplog.text
