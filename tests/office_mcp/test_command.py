"""`a2c mcp` as hosts start it, over stdio and HTTP, in both eras, against an office of three computers."""

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any, cast

import anyio
import httpx2
import mcp_types as types
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from typer.testing import CliRunner

from a2c_smcp.agent.for_models.remembered_office import remembered_office
from a2c_smcp.cli import app
from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.socketio import SMCPComputerClient
from a2c_smcp.server import OpenAuthentication
from tests.agent.harness import a_tool
from tests.computer.fakes.computers import FAST, server
from tests.computer.fakes.offices import new_office, options
from tests.mcp_server.clients import ERAS, Listening, connected, eventually, watching
from tests.office_mcp.conftest import PATIENT
from tests.server import harness
from tests.server.harness import async_server

NAMES = ("laptop", "desk", "书房")
TOKEN = "s3cret"
OWN = ["list_computers", "see_desktop", "find_documents", "read_document"]

both_eras = pytest.mark.parametrize("era", ERAS)


@pytest.fixture(scope="module", autouse=True)
def runtime_directory() -> Iterator[None]:
    """Seats and lists of tools are shared by a user's processes: those of the tests among themselves."""
    folder = tempfile.mkdtemp(prefix="a2c")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", folder)
        patch.setenv("XDG_STATE_HOME", folder)
        yield
    shutil.rmtree(folder, ignore_errors=True)


@asynccontextmanager
async def a_computer(url: str, office: str, name: str) -> AsyncIterator[Computer]:
    fake = server("fake", prefixed=False, documents="2")
    async with (
        Computer(name, mcp_servers=[fake], timings=FAST) as computer,
        SMCPComputerClient(computer, options(url)) as client,
    ):
        await client.join_office(office)
        yield computer


class Place:
    """Where the hosts of these tests go."""

    def __init__(self, url: str, office: str) -> None:
        self.url = url
        self.office = office
        self.computers: dict[str, Computer] = {}

    async def runs(self, computer: str, calls: int) -> None:
        """Wait until so many calls run at a computer."""
        await harness.eventually(lambda: len(self.computers[computer].running_calls) == calls)

    def command(self, *more: str) -> list[str]:
        return ["-m", "a2c_smcp.cli", "mcp", "--url", self.url, "--office", self.office, *more]

    def stdio(self, *more: str, **env: str) -> StdioServerParameters:
        return StdioServerParameters(
            command=sys.executable, args=["-W", "error", *self.command(*more)], env={**os.environ, **env}
        )


@pytest.fixture(scope="module")
async def place() -> AsyncIterator[Place]:
    office = new_office()
    # The loop of these computers stands still while a process of a test starts or ends.
    with async_server(OpenAuthentication(), PATIENT, ping_timeout=300) as running:
        async with AsyncExitStack() as stack:
            place = Place(running.url, office)
            for name in NAMES:
                place.computers[name] = await stack.enter_async_context(a_computer(running.url, office, name))
            yield place


@contextmanager
def over_http(place: Place, *more: str) -> Iterator[str]:
    """The address of an `a2c mcp --http`; afterwards it has ended as it should."""
    command = [sys.executable, "-W", "error", *place.command("--http", "0", *more)]
    environ = {**os.environ, "A2C_MCP_TOKEN": TOKEN}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environ)
    watchdog = threading.Timer(90, process.kill)
    watchdog.start()
    try:
        assert process.stderr is not None
        ready = next(filter(None, (re.search(r"ready on (\S+);", line) for line in process.stderr)))
        watchdog.cancel()  # the tests of a file may take longer, all together
        yield ready[1]
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=90)
        assert process.returncode == 0, errors
        assert "Traceback" not in errors
    finally:
        watchdog.cancel()
        if process.poll() is None:
            process.kill()
            process.communicate()


@pytest.fixture(scope="module")
def address(place: Place) -> Iterator[str]:
    with over_http(place, "--search", "never") as url:
        yield url


@asynccontextmanager
async def a_host(place: Place, address: str, way: str, era: str) -> AsyncIterator[tuple[Client, Listening]]:
    if way == "stdio":
        async with connected(place.stdio("--search", "never"), era) as (client, listening):
            yield client, listening
    else:
        async with (
            httpx2.AsyncClient(headers={"authorization": f"Bearer {TOKEN}"}, timeout=60) as authorised,
            connected(streamable_http_client(address, http_client=authorised), era) as (client, listening),
        ):
            yield client, listening


async def names(client: Client) -> list[str]:
    return [tool.name for tool in (await client.list_tools()).tools]


async def stats(client: Client, computer: str = "laptop") -> Any:
    [item] = (await client.call_tool(f"{computer}__stats", {})).content
    assert isinstance(item, types.TextContent)
    return json.loads(item.text)


# --- over both ways and eras


@both_eras
@pytest.mark.parametrize("way", ["stdio", "http"])
async def test_a_host_lists_calls_sees_cancels_and_hears_of_progress(
    place: Place, address: str, way: str, era: str
) -> None:
    async with a_host(place, address, way, era) as (client, listening):

        async def all_are_listed() -> bool:
            return sum(name.endswith("__echo") for name in await names(client)) == len(NAMES)

        await eventually(all_are_listed)  # a busy machine may take longer than a list waits
        listed = await names(client)
        assert listed[:4] == OWN
        assert {"laptop__echo", "desk__echo"} <= set(listed)
        [study] = [name for name in listed if re.fullmatch(r"pc-[0-9a-f]{6}__echo", name)]

        result = await client.call_tool(study, {"text": "你好"})
        assert result.content == [types.TextContent(type="text", text="你好")]
        assert not result.is_error
        [picture] = (await client.call_tool("desk__picture", {})).content
        assert isinstance(picture, types.ImageContent)
        failed = await client.call_tool("laptop__fail", {})
        assert failed.is_error

        reports: list[tuple[float, float | None]] = []

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            reports.append((progress, total))

        await client.call_tool("laptop__report", {"steps": 3, "seconds": 0.5}, progress_callback=hear)
        assert reports
        assert reports[-1][0] == 3

        call = asyncio.create_task(client.call_tool("laptop__sleep", {"seconds": 600}))
        await place.runs("laptop", 1)
        call.cancel()
        await place.runs("laptop", 0)

        async def was_cancelled() -> bool:
            return bool((await stats(client))["cancelled"] >= 1)

        await eventually(was_cancelled)

        async def its_resources_are_listed() -> bool:
            uris = [resource.uri for resource in (await client.list_resources()).resources]
            return {"a2c://laptop/desktop", "a2c://laptop/window/fake/0", "a2c://laptop/dpe/fake/1"} <= set(uris)

        await eventually(its_resources_are_listed)  # the computer may not have read its catalogue yet
        [content] = (await client.read_resource("a2c://laptop/window/fake/1")).contents
        assert isinstance(content, types.TextResourceContents)
        assert content.text == "window 1"
        window = "a2c://laptop/window/fake/0"
        async with watching(client, listening, window):
            await client.call_tool("laptop__set_resource", {"uri": "window://fake/0", "text": f"{way} {era}"})
            await listening.of(window)


@pytest.mark.parametrize(("way", "era"), [("stdio", ERAS[0]), ("http", ERAS[1])])
async def test_a_computer_joins_and_leaves_meanwhile(place: Place, address: str, way: str, era: str) -> None:
    async def lists(name: str) -> bool:
        return name in await names(client)

    async def has_left() -> bool:
        return not await lists("visitor__echo")

    async with a_host(place, address, way, era) as (client, listening), watching(client, listening):
        await eventually(has_left)  # the visitor of the test before: another host has seen it go
        async with a_computer(place.url, place.office, "visitor"):
            await listening.of("tools")
            await eventually(lambda: lists("visitor__echo"))
            result = await client.call_tool("visitor__echo", {"text": "hi"})
            assert not result.is_error
        await listening.of("tools")
        await eventually(has_left)
        gone = await client.call_tool("visitor__echo", {"text": "hi"})
        assert gone.is_error
        assert "visitor is not in the office now" in str(gone.content)


async def test_two_hosts_over_http_and_one_of_them_cancels(place: Place, address: str) -> None:
    async with a_host(place, address, "http", ERAS[0]) as (one, _), a_host(place, address, "http", ERAS[1]) as (two, _):

        async def is_listed() -> bool:
            return "desk__sleep" in await names(one)

        await eventually(is_listed)  # a call waits for its tool, but not for long
        mine = asyncio.create_task(one.call_tool("desk__sleep", {"seconds": 600}))
        await place.runs("desk", 1)
        other = asyncio.create_task(two.call_tool("desk__sleep", {"seconds": 601}))
        await place.runs("desk", 2)
        mine.cancel()
        await place.runs("desk", 1)
        [kept] = place.computers["desk"].running_calls
        assert kept.call.arguments == {"seconds": 601}
        assert not other.done()
        other.cancel()
        await place.runs("desk", 0)


# --- who may come in


async def test_over_http_the_token_the_host_and_the_origin_are_looked_at(place: Place, address: str) -> None:
    accept = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    good = {**accept, "authorization": f"Bearer {TOKEN}"}
    message = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    async with httpx2.AsyncClient(timeout=60) as client:

        async def status(headers: dict[str, str]) -> int:
            return (await client.post(address, headers=headers, json=message)).status_code

        assert await status(accept) == 401
        assert await status({**good, "authorization": "Bearer wrong"}) == 401
        assert await status({**good, "host": "evil.example"}) == 421
        assert await status({**good, "origin": "https://evil.example"}) == 403
        assert await status(good) not in (401, 403, 421)


async def test_without_a_token_one_is_made_and_printed(place: Place) -> None:
    command = [sys.executable, *place.command("--http", "0")]
    environ = {name: value for name, value in os.environ.items() if name != "A2C_MCP_TOKEN"}
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE, env=environ)
    try:
        assert process.stderr is not None
        with anyio.fail_after(60):
            match = None
            while match is None:  # a warning may come first
                line = (await process.stderr.readline()).decode()
                assert line
                match = re.search(r"ready on (\S+); bearer token: (\S+)", line)
        async with httpx2.AsyncClient(headers={"authorization": f"Bearer {match[2]}"}, timeout=60) as client:
            answer = await client.post(match[1], json={"jsonrpc": "2.0", "id": 1, "method": "ping"})
            assert answer.status_code != 401
    finally:
        process.terminate()
        await process.wait()


async def test_a_client_that_can_send_no_token_comes_in_where_none_is_asked_for(place: Place) -> None:
    with over_http(place, "--http-token", "none") as address:
        async with httpx2.AsyncClient(timeout=60) as client:
            for headers, expected in (({}, 400), ({"host": "evil.example"}, 421), ({"origin": "http://evil"}, 403)):
                accept = {"accept": "application/json, text/event-stream", **headers}
                answer = await client.post(address, headers=accept, json={"jsonrpc": "2.0", "id": 1, "method": "ping"})
                assert answer.status_code == expected
        async with connected(streamable_http_client(address), ERAS[1]) as (host, _):
            assert OWN[0] in await names(host)


@pytest.mark.usefixtures("address")  # it has the seat: a call waits for that, but not for long
async def test_a_host_that_was_killed_is_not_told_to_raise_its_limit(place: Place) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *place.command("--computer", "desk"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    info = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    sleeping = {"name": "sleep", "arguments": {"seconds": 600}}
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": info},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": sleeping},
        {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": sleeping},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}},
    ]
    assert process.stdin is not None
    assert process.stderr is not None
    with anyio.fail_after(90):
        # Both calls come before the office is known, and both wait for it.
        for expected, some in ((2, messages[:4]), (1, messages[4:])):
            process.stdin.write(b"".join(json.dumps(message).encode() + b"\n" for message in some))
            await place.runs("desk", expected)
        process.stdin.close()
        errors = (await process.stderr.read()).decode()
        await process.wait()
    await place.runs("desk", 0)
    assert errors.count("raise its own limit") == 1
    assert errors.count("the host has gone: its call of sleep on desk ends") == 1


# --- not there yet


async def test_a_server_that_comes_later_is_found(port: int) -> None:
    place = Place(f"http://127.0.0.1:{port}", new_office())
    memory = remembered_office(place.url, place.office, None)
    assert memory is not None
    memory.save({"old": [cast("Any", a_tool("echo"))]})
    async with connected(place.stdio(), ERAS[0]) as (client, listening):
        assert await names(client) == [*OWN, "old__echo"]

        async def says_why() -> bool:
            said = str((await client.call_tool("list_computers", {})).content)
            return f"cannot connect to {place.url}" in said and "those of the last time (old: 1 tools)" in said

        async def the_new_one_is_listed() -> bool:
            listed = await names(client)
            return "laptop__echo" in listed and "old__echo" not in listed

        await eventually(says_why)
        with async_server(OpenAuthentication(), PATIENT, port=port):
            async with a_computer(place.url, place.office, "laptop"):
                await listening.of("tools")
                await eventually(the_new_one_is_listed)
                # The computer must not leave before: then a list without it is kept, a second later at most.
                await harness.eventually(lambda: list(memory.load()) == ["laptop"])


# --- the command itself


def test_the_seat_is_taken_before_mcp_and_without_the_libraries_of_a_connection() -> None:
    """They take most of the time of a start. The holder of the seat imports them, in a process of its own."""
    heavy = ("mcp", "mcp_types", "socketio", "aiohttp", "uvicorn")
    code = f"import sys, a2c_smcp.cli, a2c_smcp.office_mcp.command; print([m for m in {heavy!r} if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert result.stdout.strip() == "[]"


async def test_stdout_is_the_hosts_and_the_end_of_stdin_ends_it(place: Place) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *place.command("--search", "always"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    info = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": info},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]
    assert process.stdin is not None
    assert process.stdout is not None
    with anyio.fail_after(60):
        process.stdin.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))
        answers: dict[int, Any] = {}
        while set(answers) != {1, 2}:
            answer = json.loads(await process.stdout.readline())
            if "id" in answer:  # and not a word of a change
                answers[answer["id"]] = answer["result"]
        process.stdin.close()
        rest, errors = await process.stdout.read(), await process.stderr.read() if process.stderr else b""
        assert await process.wait() == 0
    listed = [tool["name"] for tool in answers[2]["tools"]]
    assert listed == [*OWN, "search_tools", "call_tool"]
    assert all(json.loads(line) for line in rest.splitlines())
    assert b"Traceback" not in errors


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--as", "nothing"], "NAME=SHORT"),
        (["--as", "a=b c"], "short name"),
        (["--http", "0", "--http-host", "0.0.0.0"], "by which names 0.0.0.0 is reached, as in --allowed-host"),
        (["--http", "0", "--http-token", "a b"], "bearer token"),
        (
            ["--http", "0", "--http-token", "none", "--http-host", "10.0.0.1"],
            "every machine that reaches 10.0.0.1 could use the office",
        ),
        (["--http", "0", "--http-token", "none", "--allowed-host", "*"], "would let every web page use the office"),
    ],
)
def test_options_that_make_no_sense_are_said_to(
    arguments: list[str], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("a2c_smcp.cli.configure_logging", lambda *_: None)  # it would be for the whole process
    command = ["mcp", "--url", "http://127.0.0.1:1", "--office", "x", *arguments]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 2
    assert sentence in " ".join(result.output.replace("│", " ").split())
