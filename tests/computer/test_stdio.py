"""The supervised subprocess: whatever a server does, and however we leave, nothing of it is left."""

import asyncio
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio
import pytest
from mcp_types import ElicitRequestParams, ElicitResult, TextContent

from a2c_smcp.computer.mcp_clients.mcp_error import MCPError
from a2c_smcp.computer.mcp_clients.model import StdioParameters
from a2c_smcp.computer.mcp_clients.pipes.process import StdioTimings, describe_exit
from a2c_smcp.computer.mcp_clients.pipes.stdio import StdioTransport
from tests.computer.fakes.plain_client import PlainClient, client_over
from tests.computer.fakes.processes import (
    both_loops,
    command,
    descriptors,
    eventually,
    group_of,
    is_alive,
    nothing_left_over,
)

FAST = StdioTimings(flush=0.2, eof=0.2, terminate=0.2, kill=20, drain=0.1)
#: For whoever leaves by itself, or at the first signal: on a busy machine that takes a while.
PATIENT = StdioTimings(flush=20, eof=20, terminate=20, kill=20, drain=0.1)
DEAF = replace(PATIENT, eof=0.2)
UNREAD = replace(DEAF, flush=0.2)


def transport(mode: str, *, timings: StdioTimings = FAST, on_stderr: Any = None, **options: object) -> StdioTransport:
    program, arguments = command(mode, **options)
    return StdioTransport(StdioParameters(command=program, args=arguments), timings=timings, on_stderr=on_stderr)


@asynccontextmanager
async def running(server: StdioTransport) -> AsyncIterator[PlainClient]:
    """A session with the server; afterwards nothing is left of either."""
    with nothing_left_over():
        async with client_over(server) as client:
            yield client
        await is_gone(server)


async def is_gone(server: StdioTransport) -> None:
    """Nobody is left in its group; the kernel may take a moment to end what was killed."""
    pid = server.pid
    assert pid is not None
    await eventually(lambda: not group_of(pid))


def text(result: Any) -> str:
    assert isinstance(result.content[0], TextContent)
    return result.content[0].text


async def grandchild_of(server: StdioTransport) -> int:
    await eventually(lambda: any(line.startswith("grandchild") for line in server.stderr_tail))
    return next(int(line.split()[1]) for line in server.stderr_tail if line.startswith("grandchild"))


@both_loops
@pytest.mark.parametrize(
    ("mode", "timings", "code"),
    [
        ("normal", PATIENT, 0),
        ("slow", PATIENT, 0),
        ("ignores-eof", DEAF, -signal.SIGTERM),
        ("ignores-term", FAST, -signal.SIGKILL),
        ("grandchildren", PATIENT, 0),
        ("floods-stderr", PATIENT, 0),
        ("floods-stdout", PATIENT, 0),
        ("initialize-first", PATIENT, 0),
    ],
)
async def test_a_server_answers_and_is_gone_afterwards(mode: str, timings: StdioTimings, code: int) -> None:
    server = transport(mode, timings=timings, delay=0.05)
    async with running(server) as client:
        assert text(await client.call_tool("echo", {"text": "你好"})) == "你好"
        assert server.exit_code is None
    assert server.exit_code == code


async def test_a_grandchild_that_ignores_sigterm_is_killed_with_the_group() -> None:
    server = transport("grandchildren", stubborn=1)
    async with running(server):
        grandchild = await grandchild_of(server)
        assert is_alive(grandchild)


@both_loops
async def test_a_server_that_leaves_children_behind_ends_the_session_although_they_hold_its_pipes() -> None:
    server = transport("grandchildren", stubborn=1)
    async with running(server) as client:
        grandchild = await grandchild_of(server)
        assert text(await client.call_tool("leave", {})) == "bye"
        with anyio.fail_after(20), pytest.raises(MCPError):
            await client.call_tool("echo", {})
        assert is_alive(grandchild)
    assert server.exit_code == 0


@pytest.mark.parametrize("mode", ["dies-on-call", "closes-stdout"])
async def test_a_call_that_kills_the_server_fails_at_once(mode: str) -> None:
    server = transport(mode)
    async with running(server) as client:
        with anyio.fail_after(20), pytest.raises(MCPError):
            await client.call_tool("echo", {})


async def test_what_a_server_answered_before_it_left_is_heard_although_the_next_call_cannot_be_written() -> None:
    server = transport("normal")
    async with running(server) as client:
        last = asyncio.create_task(client.call_tool("leave", {}))
        await asyncio.sleep(0)
        wait_until_dead(server)
        with anyio.fail_after(20), pytest.raises(MCPError, match="Connection closed"):
            await client.call_tool("echo", {"text": "too late"})
        assert text(await last) == "bye"


def wait_until_dead(server: StdioTransport) -> None:
    """Without a turn of the loop, so that nothing is read meanwhile."""
    deadline = time.monotonic() + 30
    while is_alive(server.pid or 0):
        assert time.monotonic() < deadline
        time.sleep(0.01)


async def test_a_server_that_dies_on_start_says_why() -> None:
    server = transport("dies-on-start", code=7)
    with nothing_left_over(), pytest.raises(ExceptionGroup) as caught:
        async with client_over(server):
            pass
    assert caught.group_contains(MCPError)
    assert (server.exit_code, server.stderr_tail) == (7, ("cannot open the database",))


async def test_a_server_that_never_answers_can_be_given_up() -> None:
    server = transport("silent", timings=PATIENT)
    with nothing_left_over(), anyio.move_on_after(0.3) as scope:
        async with client_over(server):
            pass
    assert scope.cancelled_caught
    assert server.exit_code == 0  # it left when its stdin closed


@both_loops
async def test_a_huge_result_arrives_whole() -> None:
    async with running(transport("normal")) as client:
        assert len(text(await client.call_tool("huge", {"size": 16 * 1024 * 1024}))) == 16 * 1024 * 1024


async def test_a_huge_request_and_odd_characters_arrive_whole() -> None:
    async with running(transport("normal")) as client:
        for sent in ("é" * 2_000_000, "a\u2028b\r\n\x00"):
            assert text(await client.call_tool("echo", {"text": sent})) == sent


async def test_half_a_character_is_replaced_because_many_servers_drop_a_line_that_has_one() -> None:
    async with running(transport("normal")) as client:
        assert text(await client.call_tool("echo", {"text": "lone \ud800 surrogate"})) == "lone \ufffd surrogate"


ASKING = """
import json, sys

def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

for line in sys.stdin:
    message = json.loads(line)
    match message.get("method"):
        case "initialize":
            info = {"name": "a", "version": "1"}
            send(id=message["id"], result={"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": info})
        case "tools/list":
            send(id=message["id"], result={"tools": [{"name": "x", "inputSchema": {"type": "object"}}]})
        case "tools/call":
            call = message["id"]
            for step in range(200):
                token = message["params"]["_meta"]["progressToken"]
                send(method="notifications/progress", params={"progressToken": token, "progress": step})
            schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
            send(id=call, method="elicitation/create", params={"message": "How many?", "requestedSchema": schema})
        case None:
            text = json.dumps(message["result"])
            send(id=call, result={"content": [{"type": "text", "text": text}]})
"""


async def test_a_tool_may_report_and_ask_while_it_runs_even_under_the_id_of_its_call() -> None:
    heard: list[Any] = []

    def on_progress(progress: float, total: float | None, message: str | None) -> None:
        heard.append(progress)

    async def answer(params: ElicitRequestParams) -> ElicitResult:
        heard.append(params.message)
        await anyio.sleep(0.01)
        return ElicitResult(action="accept", content={"n": 3})

    server = StdioTransport(StdioParameters(command=sys.executable, args=["-S", "-c", ASKING]), timings=FAST)
    with nothing_left_over():
        async with client_over(server, elicit=answer) as client:
            result = await client.call_tool("x", {}, on_report=on_progress)
            assert text(result) == '{"action": "accept", "content": {"n": 3}}'
    assert heard == [*range(200), "How many?"]


async def test_stderr_is_kept_line_by_line_bounded_and_handed_on() -> None:
    lines: list[str] = []
    server = transport("floods-stderr", on_stderr=lines.append)
    async with running(server):
        await eventually(lambda: "ready" in lines)
        assert len(lines) == 50_002
        assert len(server.stderr_tail) == 200
        assert server.stderr_tail[-2:] == ("x" * 4096, "ready")


async def test_a_stderr_callback_that_fails_costs_nothing_but_its_line(caplog: pytest.LogCaptureFixture) -> None:
    def fail(line: str) -> None:
        raise RuntimeError(line)

    server = transport("normal", on_stderr=fail)
    async with running(server) as client:
        assert text(await client.call_tool("echo", {"text": "a"})) == "a"
        await eventually(lambda: "ready" in server.stderr_tail)
    assert "the stderr callback failed" in caplog.text


async def test_noise_on_stdout_is_logged_a_few_times_and_never_quoted(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "a2c_smcp")
    async with running(transport("floods-stdout")) as client:
        await client.call_tool("echo", {})
    logged = [record.getMessage() for record in caplog.records if record.name.startswith("a2c_smcp.computer")]
    assert len(logged) == 3
    assert "Listening" not in "".join(logged)


async def test_a_server_that_reads_nothing_does_not_hold_up_the_end() -> None:
    program = "import time; time.sleep(600)"
    server = StdioTransport(StdioParameters(command=sys.executable, args=["-S", "-c", program]), timings=UNREAD)
    with nothing_left_over():
        with anyio.move_on_after(0.3) as scope:
            async with client_over(server) as client:
                await client.call_tool("echo", {"text": "x" * 1_000_000})
        assert scope.cancelled_caught
    assert server.exit_code == -signal.SIGTERM


async def test_environment_and_directory_are_what_the_config_says(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A2C_SECRET_OF_THE_COMPUTER", "1")
    program = "import os, sys; print(os.getcwd(), dict(os.environ), file=sys.stderr)"
    parameters = StdioParameters(command=sys.executable, args=["-c", program], env={"A": "b"}, cwd=str(tmp_path))
    server = StdioTransport(parameters, timings=FAST)
    with pytest.raises(ExceptionGroup):
        async with client_over(server):
            pass
    said = server.stderr_tail[0]
    assert said.startswith(str(tmp_path))
    assert "'A': 'b'" in said
    assert "'PATH'" in said
    assert "A2C_SECRET_OF_THE_COMPUTER" not in said


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"command": "no-such-command-anywhere"}, OSError),
        ({"cwd": "/no/such/directory"}, OSError),
        ({"args": ["a\0b"]}, ValueError),
        ({"encoding": "utf-16"}, ValueError),
    ],
)
async def test_what_cannot_be_started_is_an_error_and_leaves_nothing(
    changes: dict[str, Any], error: type[Exception]
) -> None:
    parameters = StdioParameters.model_validate({"command": sys.executable, **changes})
    with nothing_left_over(), pytest.raises(error):
        async with StdioTransport(parameters):
            pass


async def test_another_encoding_is_spoken_both_ways() -> None:
    program, arguments = command("normal")
    parameters = StdioParameters(command=program, args=arguments, encoding="latin-1")
    async with running(StdioTransport(parameters, timings=FAST)) as client:
        assert text(await client.call_tool("echo", {"text": "é 中"})) == "é 中"


#: More levels than any Python reads: 3.11 reads a thousand, 3.13 ten thousand.
DEEP = "[" * 200_000 + "]" * 200_000


@pytest.mark.parametrize("item", ['{"type":"text","text":"é"}', "{not json}", DEEP, "9" * 5000], ids=range(4))
async def test_an_answer_that_cannot_be_read_fails_its_request_and_no_other(item: str) -> None:
    program, arguments = command("normal")
    parameters = StdioParameters(command=program, args=arguments, encoding="ascii")
    async with running(StdioTransport(parameters, timings=FAST)) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "sleep", {"seconds": 0.2})
            with anyio.fail_after(20), pytest.raises(MCPError, match="not a JSON-RPC message in ascii"):
                await client.call_tool("litter", {"item": item, "count": 1})
        assert text(await client.call_tool("echo", {"text": "still here"})) == "still here"


async def test_an_exception_inside_ends_the_server_and_passes() -> None:
    server = transport("ignores-eof", timings=DEAF)
    with pytest.raises(BaseExceptionGroup) as caught:
        async with running(server):
            raise LookupError("ours")
    assert caught.group_contains(LookupError)
    assert server.exit_code == -signal.SIGTERM
    await is_gone(server)


@both_loops
@pytest.mark.parametrize("mode", ["normal", "ignores-term", "grandchildren"])
@pytest.mark.parametrize("strikes", [1, 2, 3])
async def test_cancelling_the_task_even_again_during_the_shutdown_leaves_nothing(mode: str, strikes: int) -> None:
    server = transport(mode)
    open_ = asyncio.Event()

    async def session() -> None:
        async with client_over(server):
            open_.set()
            await asyncio.Event().wait()

    with nothing_left_over():
        task = asyncio.create_task(session())
        await open_.wait()
        for _ in range(strikes):
            task.cancel()
            await anyio.sleep(0.05)
        with pytest.raises(asyncio.CancelledError):
            await task
        del task
    await is_gone(server)


async def test_forty_starts_and_stops_leave_nothing() -> None:
    async def cycles(count: int) -> None:
        for _ in range(count):
            async with client_over(transport("normal")) as client:
                await client.call_tool("echo", {})

    async with client_over(transport("normal")):
        pass  # what is imported and opened once is not counted
    with nothing_left_over():
        async with anyio.create_task_group() as tasks:
            for _ in range(4):
                tasks.start_soon(cycles, 10)


OWNER = """
import asyncio, sys
from tests.computer.fakes.plain_client import client_over
from a2c_smcp.computer.mcp_clients.model import StdioParameters
from a2c_smcp.computer.mcp_clients.pipes.stdio import StdioTransport

async def session():
    server = StdioTransport(StdioParameters(command=sys.argv[2], args=sys.argv[3:]))
    async with client_over(server):
        print(server.pid, flush=True)
        await asyncio.Event().wait()

async def main():
    task = asyncio.create_task(session())
    await asyncio.sleep(0)
    await asyncio.to_thread(sys.stdin.readline)

how = sys.argv[1]
if how == "run":
    asyncio.run(main())
else:
    loop = asyncio.new_event_loop()
    loop.run_until_complete(main())
    # and here the program ends, its loop neither cleaned up nor closed
"""


def owner(how: str, mode: str) -> tuple["subprocess.Popen[str]", int]:
    """Another process that runs a server, and that server's pid."""
    program, arguments = command(mode)
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER, how, program, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    return process, int(process.stdout.readline())


@pytest.mark.parametrize(("how", "mode"), [("run", "ignores-eof"), ("dropped", "ignores-term")])
def test_a_program_that_ends_without_leaving_the_transport_leaves_nothing(how: str, mode: str) -> None:
    process, server = owner(how, mode)
    with process:
        assert is_alive(server)
        process.communicate("\n", timeout=20)
    asyncio.run(eventually(lambda: not group_of(server)))


@pytest.mark.parametrize("mode", ["normal", "ignores-eof"])
def test_a_killed_computer_takes_its_servers_with_it(mode: str) -> None:
    process, server = owner("run", mode)
    with process:
        assert is_alive(server)
        process.kill()
        process.communicate(timeout=20)
    asyncio.run(eventually(lambda: not is_alive(server)))


def test_exit_codes_in_words() -> None:
    assert [describe_exit(code) for code in (0, 3, -9, -64, -99)] == [
        "exit code 0",
        "exit code 3",
        "killed by SIGKILL",
        "killed by SIGRTMAX",
        "killed by signal 99",
    ]


def test_the_count_of_descriptors_counts() -> None:
    before = descriptors()
    fd = os.dup(0)
    assert descriptors() == before + 1
    os.close(fd)
