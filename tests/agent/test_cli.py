"""`a2c agent` as people and programs run it: in a process of its own.

Commands that just run to their end are forked from a process that has the libraries already; see tests/forked.py.
"""

import base64
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from subprocess import CompletedProcess
from typing import IO, Any

import anyio
import anyio.to_thread
import pexpect
import pytest
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from a2c_smcp.errors import PayloadTooLargeError
from a2c_smcp.server import APIKeyAuthentication
from a2c_smcp.smcp import (
    ENTER_OFFICE_NOTIFICATION,
    GET_CONFIG_EVENT,
    GET_FINDER_EVENT,
    GET_PROMPT_EVENT,
    GET_RESOURCES_EVENT,
    GET_TOOLS_EVENT,
    READ_RESOURCE_EVENT,
    TOOL_CALL_EVENT,
    TOOL_PROGRESS_EVENT,
    UPDATE_DESKTOP_EVENT,
    UPDATE_TOOL_LIST_EVENT,
)
from a2c_smcp.wire import DEFAULT_MAX_TIMEOUT
from tests.agent.conftest import LIMITS, MakeComputer
from tests.agent.harness import DOCUMENT, FakeComputer, a_tool
from tests.agent.test_resource_parts import part_of
from tests.agent.test_resources import NOTES, sharing
from tests.forked import A2C, Commands
from tests.server.harness import Running, async_server, eventually, heard

DEADLINE = 60
_FORKED = "FORKED"


@pytest.fixture
async def computer(make_computer: MakeComputer) -> FakeComputer:
    return await make_computer()


@pytest.fixture
def env(server: Running, office: str, forked: Commands) -> dict[str, str]:
    """The four variables; the rest of the environment is this process's, without any of theirs. And where to fork."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("A2C_")}
    ours = {"A2C_URL": server.url, "A2C_OFFICE": office, "A2C_NAME": "ada", "COLUMNS": "120"}
    return {**clean, **ours, _FORKED: forked.address}


async def a2c(env: dict[str, str], *words: str, stdin: str = "") -> CompletedProcess[bytes]:
    run = partial(Commands(env[_FORKED]).run, ["agent", *words], env=env, stdin=stdin.encode(), timeout=DEADLINE)
    return await anyio.to_thread.run_sync(run)


async def a2c_json(env: dict[str, str], *words: str) -> Any:
    done = await a2c(env, *words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@asynccontextmanager
async def running(env: dict[str, str], *words: str, stderr: int | None = None) -> AsyncIterator[Process]:
    async with AsyncExitStack() as stack:
        process = await stack.enter_async_context(
            await anyio.open_process([A2C, "agent", *words], env=env, stderr=stderr)
        )
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                process.kill()


async def test_room_and_tools(env: dict[str, str], computer: FakeComputer) -> None:
    done = await a2c(env, "room")
    assert [line.split() for line in done.stdout.decode().splitlines()] == [
        ["role", "name"],
        ["agent", "ada"],
        ["computer", "laptop"],
    ]
    assert "echo" in (await a2c(env, "tools")).stdout.decode()
    assert await a2c_json(env, "tools", "laptop") == {"laptop": computer.tools}


async def test_the_room_says_which_servers_do_not_run(env: dict[str, str], computer: FakeComputer) -> None:
    infos = {
        "mail": {"state": "backing_off", "since": "now", "reason": "exit code 1\x1b[31m"},
        "ok": {"state": "running"},
        "off": {"state": "disabled"},
    }
    computer.override[GET_CONFIG_EVENT] = lambda _: {"servers": {}, "inputs": None, "server_info": infos}
    done = await a2c(env, "room")
    assert done.stderr.decode().splitlines() == ["laptop: the MCP server mail is backing_off: exit code 1\\u001b[31m"]
    assert (await a2c_json(env, "config", "laptop"))["server_info"] == infos


async def test_one_computer_that_fails_does_not_keep_the_others_tools_back(
    env: dict[str, str], computer: FakeComputer, make_computer: MakeComputer
) -> None:
    await make_computer("odd", lambda fake: fake.override.update({GET_TOOLS_EVENT: lambda _: {"tools": "none"}}))
    done = await a2c(env, "tools")
    assert done.returncode == 3
    assert "echo" in done.stdout.decode()
    assert done.stderr.startswith(b"odd: 400")


async def test_options_stand_for_the_variables(env: dict[str, str], computer: FakeComputer) -> None:
    url, office = env.pop("A2C_URL"), env.pop("A2C_OFFICE")
    done = await a2c(env, "room", "--url", url, "--office", office, "--name", "bob")
    assert "bob" in done.stdout.decode()
    assert (await a2c(env, "room", "--url", url)).returncode == 2


async def test_a_call_with_parameters_in_every_form(
    env: dict[str, str], computer: FakeComputer, tmp_path: Path
) -> None:
    file = tmp_path / "params.json"
    file.write_text('{"text": "from a file"}')
    for words, stdin, expected in (
        (["text=hi"], "", "hi"),
        (['{"text": "你好"}'], "", "你好"),
        ([f"@{file}"], "", "from a file"),
        (["@-"], '{"text": "from stdin"}', "from stdin"),
    ):
        done = await a2c(env, "call", "laptop", "echo", *words, stdin=stdin)
        assert (done.returncode, done.stdout.decode().strip(), done.stderr) == (0, expected, b"")
    await a2c(env, "call", "laptop", "echo", "text=1", "count=1")
    assert computer.requests(TOOL_CALL_EVENT)[-1]["params"] == {"text": "1", "count": 1}
    result = await a2c_json(env, "call", "laptop", "echo", "text=hi", "--timeout", "50", "--approval-timeout", "70")
    assert result["content"] == [{"type": "text", "text": "hi"}]
    asked = computer.requests(TOOL_CALL_EVENT)[-1]
    assert (asked["timeout"], asked["approval_timeout"]) == (50, 70)


async def test_a_tool_error_a_routing_error_and_bad_usage_have_codes_of_their_own(
    env: dict[str, str], computer: FakeComputer
) -> None:
    done = await a2c(env, "call", "laptop", "fail")
    assert (done.returncode, done.stdout, done.stderr.decode().strip()) == (1, b"", "it broke")
    done = await a2c(env, "call", "laptop", "fail", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["isError"] is True
    done = await a2c(env, "call", "nobody", "echo")
    assert done.returncode == 3
    assert done.stderr.startswith(b"a2c agent: 404 Not Found")
    done = await a2c(env, "call", "nobody", "echo", "--json")
    assert done.returncode == 3
    assert json.loads(done.stdout)["error"]["code"] == 404
    done = await a2c(env, "call", "laptop", "echo", "--timeout", "99999999999")
    assert done.returncode == 3
    assert done.stderr.decode().endswith(f"whole seconds from 1 to {DEFAULT_MAX_TIMEOUT}\n")
    for words in (
        ["call", "laptop", "echo", "nonsense"],
        ["call", "laptop", "echo", "@missing"],
        ["call", "laptop"],
        ["call", "laptop", "echo", "@~nosuchuser/x"],
        ["call", "laptop", "echo", "text=x", "--save", "~nosuchuser/x"],
        ["call", "laptop", "echo", '{"text": ' + "1" * 5000 + "}"],
        ["call", "laptop", "echo", "--timeout", "0"],
        ["dance"],
        ["--dance"],
    ):
        done = await a2c(env, *words)
        assert (done.returncode, done.stdout) == (2, b""), words
        assert b"Traceback" not in done.stderr
    assert [request["tool_name"] for request in computer.requests(TOOL_CALL_EVENT)] == ["fail", "fail"]


async def test_the_name_that_was_probably_meant_is_said(env: dict[str, str], computer: FakeComputer) -> None:
    for words in (["call", "Laptp", "echo"], ["desktop", "laptpo"], ["tools", "lapto"], ["config", "lap-top"]):
        done = await a2c(env, *words)
        assert done.returncode == 3
        assert done.stderr.decode().strip().endswith("; did you mean 'laptop'?"), words
    missing = computer.result("Tool Not Found: ehco", isError=True, meta={"error_code": 4001})
    computer.override[TOOL_CALL_EVENT] = lambda _: missing
    done = await a2c(env, "call", "laptop", "ehco")
    assert (done.returncode, done.stderr.decode()) == (1, "Tool Not Found: ehco\ndid you mean 'echo'?\n")
    for words in (["call", "nobody", "echo"], ["call", "laptop", "unlike", "any"], ["call", "laptop", "unlike"]):
        assert b"did you mean" not in (await a2c(env, *words)).stderr
    assert (await a2c_json_error(env, "call", "Laptp", "echo"))["code"] == 404


async def a2c_json_error(env: dict[str, str], *words: str) -> Any:
    return json.loads((await a2c(env, *words, "--json")).stdout)["error"]


async def test_no_name_is_wrapped_in_a_pipe(env: dict[str, str], make_computer: MakeComputer) -> None:
    long = a_tool("x" * 150)
    long["description"] = "d " * 100 + "end\nand more"
    await make_computer("c" * 60, lambda fake: fake.tools.append(long))
    lines = (await a2c({**env, "COLUMNS": "80"}, "tools")).stdout.decode().splitlines()
    line = next(line for line in lines if "x" * 150 in line)
    assert line.startswith("c" * 60 + "  ") and line.endswith("d end and more")


async def test_a_server_that_is_not_there_is_a_routing_error(env: dict[str, str]) -> None:
    done = await a2c({**env, "A2C_URL": "http://127.0.0.1:1"}, "room")
    assert done.returncode == 3
    assert b"127.0.0.1:1" in done.stderr


async def test_a_server_that_wants_a_key_is_told_with_the_options_for_one(env: dict[str, str]) -> None:
    with async_server(APIKeyAuthentication(["right"]), LIMITS) as closed:
        done = await a2c({**env, "A2C_URL": closed.url}, "room")
    assert done.returncode == 3
    advice = "give the right key with --api-key-file FILE or A2C_API_KEY, or sign in with a2c login"
    assert done.stderr.decode().splitlines()[-1] == advice


async def test_desktop_finder_read_config(env: dict[str, str], computer: FakeComputer) -> None:
    assert (await a2c(env, "desktop", "laptop")).stdout.decode() == "window://h/main\n\nhello\n"
    assert await a2c_json(env, "desktop", "laptop", "--size", "1") == computer.windows
    found = {"documents": computer.documents, "total_count": 1, "note": "docs: Not served: 3 files."}
    computer.override[GET_FINDER_EVENT] = lambda _: found
    done = await a2c(env, "finder", "laptop", "annual", "--keyword", "report", "--file-type", "pdf")
    assert DOCUMENT in done.stdout.decode()
    assert "docs: Not served: 3 files." in done.stderr.decode()
    assert [request["keywords"] for request in computer.requests(GET_FINDER_EVENT)] == [["annual", "report"]]
    done = await a2c(env, "read", "laptop", f"{DOCUMENT}/pages/0?format=markdown")
    assert done.stdout.decode() == f"# {DOCUMENT}/pages/0\n"
    assert (await a2c(env, "read", "laptop", "dpe://h/other")).returncode == 3
    assert (await a2c_json(env, "config", "laptop"))["servers"] == computer.servers


async def test_resources_prompts_and_a_prompt(env: dict[str, str], make_computer: MakeComputer) -> None:
    computer = await make_computer(setup=sharing)
    big = [{"uri": NOTES["uri"], "blob": base64.b64encode(bytes(1000)).decode()}]

    def read(asked: dict[str, Any]) -> Any:
        if "range" not in asked:
            return PayloadTooLargeError("too large", {"total_size": 1000}).payload()
        return {**part_of(big, *asked["range"]), "req_id": asked["req_id"]}

    computer.override[READ_RESOURCE_EVENT] = read
    computer.override[GET_PROMPT_EVENT] = lambda data: {
        "messages": [{"role": "user", "content": {"type": "text", "text": f"Greet {data['arguments']['name']}!"}}]
    }
    done = await a2c(env, "resources", "laptop", "--server", "files")
    assert [line.split()[-1] for line in done.stdout.decode().splitlines()] == ["uri", NOTES["uri"], "file:///{name}"]
    assert computer.requests(GET_RESOURCES_EVENT)[0]["mcp_server"] == "files"
    assert (await a2c_json(env, "resources", "laptop"))["resources"] == [NOTES]
    assert (await a2c_json(env, "prompts", "laptop"))["prompts"] == [{"name": "greet", "mcp_server": "chat"}]
    done = await a2c(env, "prompt", "laptop", "chat", "greet", "name=Ada Lovelace")
    assert done.stdout.decode() == "user: Greet Ada Lovelace!\n"
    assert (await a2c(env, "prompt", "laptop", "chat", "greet", "name")).returncode == 2
    assert await a2c_json(env, "read", "laptop", NOTES["uri"]) == big


async def test_watch_prints_what_changes(
    env: dict[str, str], computer: FakeComputer, make_computer: MakeComputer
) -> None:
    async with running(env, "watch", "--json") as process:
        assert process.stdout is not None
        lines = BufferedByteReceiveStream(process.stdout)

        async def line(event: str) -> Any:
            with anyio.fail_after(DEADLINE):
                said = json.loads(await lines.receive_until(b"\n", 2**20))
            assert said["event"] == event
            return said

        assert (await line("present"))["computer"] == "laptop"
        assert (await line("change"))["value"] == computer.tools
        computer.windows = ["window://h/new"]
        await computer.announce(UPDATE_DESKTOP_EVENT)
        change = await line("change")
        assert (change["part"], change["value"]) == ("desktop", ["window://h/new"])
        desk = await make_computer("desk")
        assert (await line("enter_office"))["computer"] == "desk"
        assert (await line("change"))["computer"] == "desk"
        await desk.peer.disconnect()
        assert (await line("leave_office"))["computer"] == "desk"
        process.send_signal(signal.SIGINT)
        with anyio.fail_after(DEADLINE):
            assert await process.wait() == 130


@contextmanager
def pipe() -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as read, os.fdopen(writer, "wb") as write:
        yield read, write


@asynccontextmanager
async def read_until(line: int, env: dict[str, str], *words: str) -> AsyncIterator[Process]:
    """A command of which so many lines are read, as by `head`; at the end of this it has ended, without a complaint."""
    with anyio.fail_after(2 * DEADLINE), pipe() as (stdout, writer):
        with writer:
            process = await anyio.open_process([A2C, "agent", *words], env=env, stdout=writer)
        async with process:
            try:
                for _ in range(line):
                    assert await anyio.to_thread.run_sync(stdout.readline, abandon_on_cancel=True)
                stdout.close()
                yield process
                assert process.stderr is not None
                assert b"".join([part async for part in process.stderr]) == b""
                assert await process.wait() == 1
            finally:
                with suppress(ProcessLookupError):
                    process.kill()


async def test_watch_ends_quietly_when_nobody_reads_it_any_more(env: dict[str, str], computer: FakeComputer) -> None:
    async with read_until(2, env, "watch", "--json"):
        await computer.announce(UPDATE_DESKTOP_EVENT)
    assert (await a2c(env, "room")).returncode == 0  # the seat is free


async def test_a_call_is_cancelled_when_nobody_reads_its_reports_any_more(
    env: dict[str, str], computer: FakeComputer
) -> None:
    shown = reporting(computer, {"progress": 1}, {"progress": 2}, {"progress": 3})
    async with read_until(1, env, "call", "laptop", "copy", "--json"):
        shown[0].set()
        await eventually(lambda: computer.cancelled(computer.requests(TOOL_CALL_EVENT)[0]["req_id"]), DEADLINE)
    for event in shown:
        event.set()


@pytest.fixture
def full() -> Iterator[IO[bytes]]:
    """A disk on which there is no room."""
    if not (device := Path("/dev/full")).exists():
        pytest.skip("this system has no full device")
    with device.open("wb") as file:
        yield file


@pytest.mark.parametrize(
    "words",
    [
        ["tools"],
        ["tools", "--json"],
        ["call", "laptop", "echo", "text=hi"],
        ["call", "nobody", "echo", "--json"],
        ["watch"],
    ],
)
async def test_a_disk_that_is_full_is_one_line(
    env: dict[str, str], computer: FakeComputer, full: IO[bytes], words: list[str]
) -> None:
    with anyio.fail_after(DEADLINE):
        done = await anyio.run_process([A2C, "agent", *words], stdout=full, env=env, check=False)
    assert done.returncode == 1
    assert done.stderr.decode() == "a2c agent: [Errno 28] No space left on device\n"


async def test_a_call_waits_for_a_tool_whose_server_is_still_starting(
    env: dict[str, str], computer: FakeComputer
) -> None:
    computer.tools = []

    def start_late(data: dict[str, Any]) -> Any:
        if len(computer.requests(TOOL_CALL_EVENT)) == 1:
            meta = {"error_code": 4001, "starting": ["demo", "other"]}
            return computer.result("Tool not found: echo (still starting: demo, other)", isError=True, meta=meta)
        return computer.result(repr(data["params"]["text"]))

    computer.override[TOOL_CALL_EVENT] = start_late
    async with running(env, "call", "laptop", "echo", "text=1", stderr=subprocess.PIPE) as process:
        await eventually(lambda: computer.requests(TOOL_CALL_EVENT), DEADLINE)
        computer.tools = [a_tool("echo")]
        await computer.announce(UPDATE_TOOL_LIST_EVENT)
        with anyio.fail_after(DEADLINE):
            assert await process.wait() == 0
        assert process.stdout is not None and process.stderr is not None
        assert await process.stdout.receive() == b"'1'\n", "by the schema, which was not known before"
        said = (await process.stderr.receive()).decode()
    assert said == "laptop has no echo yet; waiting up to 10 s, still starting: demo, other\n"


async def test_wait_waits_for_a_computer_that_comes_later_and_leaves_no_warning_at_the_server(
    env: dict[str, str], make_computer: MakeComputer, caplog: pytest.LogCaptureFixture
) -> None:
    watcher = await make_computer("watcher")
    async with running(env, "call", "--wait", "60", "laptop", "echo", "text=hi") as process:
        await eventually(lambda: heard(watcher.peer, ENTER_OFFICE_NOTIFICATION), DEADLINE)
        await make_computer()
        with anyio.fail_after(DEADLINE):
            assert await process.wait() == 0
        assert process.stdout is not None
        assert await process.stdout.receive() == b"hi\n"
    assert "refused" not in caplog.text


async def test_wait_tries_for_a_server_that_is_not_there(env: dict[str, str]) -> None:
    env["A2C_URL"] = "http://127.0.0.1:1"
    at_once = await a2c(env, "call", "laptop", "echo")
    assert (at_once.returncode, b"waiting" in at_once.stderr) == (3, False)
    assert b"start it with `a2c server`" in at_once.stderr
    for seconds in (1, 15):
        done = await a2c(env, "call", "--wait", f"{seconds}", "laptop", "echo")
        if b"waiting" in done.stderr:
            break  # otherwise the first attempt took all the time, and there was none left to wait
    assert (done.returncode, f"waiting up to {seconds} s for the server" in done.stderr.decode()) == (3, True)


async def test_ctrl_c_cancels_the_call_at_the_computer(env: dict[str, str], computer: FakeComputer) -> None:
    async with running(env, "call", "laptop", "slow") as process:
        (request,) = await eventually(lambda: computer.requests(TOOL_CALL_EVENT), DEADLINE)
        process.send_signal(signal.SIGINT)
        await eventually(lambda: computer.cancelled(request["req_id"]))
        with anyio.fail_after(DEADLINE):
            assert await process.wait() == 130


async def test_a_long_call_shows_a_spinner_at_a_terminal(env: dict[str, str], computer: FakeComputer) -> None:
    screen = io.StringIO()
    child = pexpect.spawn(A2C, ["agent", "call", "laptop", "wait"], env={**env, "TERM": "xterm"}, encoding="utf-8")
    child.logfile_read = screen
    try:
        await anyio.to_thread.run_sync(lambda: child.expect(r"wait on laptop .*0:00:(?!00)\d\d", timeout=DEADLINE))
        computer.release.set()
        await anyio.to_thread.run_sync(lambda: child.expect(pexpect.EOF, timeout=DEADLINE))
    finally:
        child.close(force=True)
    assert child.exitstatus == 0
    assert "released" in screen.getvalue()


def reporting(computer: FakeComputer, *reports: dict[str, Any]) -> list[anyio.Event]:
    """Have a call report these, and then end: the next one once the event of the one before is set."""
    shown = [anyio.Event() for _ in reports]

    async def answer(data: dict[str, Any]) -> Any:
        ids = {"computer": "laptop", "agent": data["agent"], "req_id": data["req_id"]}
        for report, event in zip(reports, shown, strict=True):
            await computer.peer.emit(TOOL_PROGRESS_EVENT, {**ids, **report})
            await event.wait()
        return computer.result("done")

    computer.override[TOOL_CALL_EVENT] = answer
    return shown


async def test_a_call_that_reports_shows_a_bar_at_a_terminal(env: dict[str, str], computer: FakeComputer) -> None:
    half = {"progress": 1, "total": 4, "message": "fetching\x1b[2J"}
    shown = reporting(computer, half, {"progress": 3, "total": 4})
    screen = io.StringIO()
    child = pexpect.spawn(A2C, ["agent", "call", "laptop", "copy"], env={**env, "TERM": "xterm"}, encoding="utf-8")
    child.logfile_read = screen
    try:
        for event, bar in zip(shown, ("█{5}░{15}  25%  fetching.u001b", "█{15}░{5}  75%"), strict=True):
            pattern = f"copy on laptop .*{bar}"
            await anyio.to_thread.run_sync(partial(child.expect, pattern, timeout=DEADLINE))
            event.set()
        await anyio.to_thread.run_sync(lambda: child.expect(pexpect.EOF, timeout=DEADLINE))
    finally:
        child.close(force=True)
    assert child.exitstatus == 0
    assert "done" in screen.getvalue()
    assert "\x1b[2J" not in screen.getvalue()


async def test_a_call_that_reports_prints_lines_for_programs_and_the_result_last(
    env: dict[str, str], computer: FakeComputer
) -> None:
    shown = reporting(computer, {"progress": 1, "total": 4, "message": "fetching"}, {"progress": 3})
    lines: list[Any] = []
    async with running(env, "call", "laptop", "copy", "--json") as process:
        assert process.stdout is not None
        stdout = BufferedByteReceiveStream(process.stdout)
        with anyio.fail_after(DEADLINE):
            for event in (*shown, None):
                lines.append(json.loads(await stdout.receive_until(b"\n", 10_000)))
                if event is not None:
                    event.set()
            assert await process.wait() == 0
    assert lines[:2] == [
        {"progress": 1, "total": 4, "message": "fetching"},
        {"progress": 3, "total": None, "message": None},
    ]
    assert lines[2]["content"][0]["text"] == "done"


async def test_without_a_terminal_no_progress_is_asked_for(env: dict[str, str], computer: FakeComputer) -> None:
    done = await a2c(env, "call", "laptop", "echo", "text=hi")
    assert done.stdout == b"hi\n"
    [request] = computer.requests(TOOL_CALL_EVENT)
    assert "progress" not in request


async def test_the_commands_explain_themselves(env: dict[str, str]) -> None:
    done = await a2c(env, "--help")
    assert done.returncode == 0
    for command in (
        "room",
        "tools",
        "call",
        "desktop",
        "finder",
        "read",
        "resources",
        "prompts",
        "prompt",
        "config",
        "watch",
    ):
        assert f" {command} " in done.stdout.decode()


@pytest.mark.parametrize(
    ("words", "spared"),
    [
        (["room"], ["mcp", "mcp_types", "uvicorn", "starlette", "prompt_toolkit", "watchfiles", "rich.progress"]),
        (["call", "laptop", "echo", "text=hi"], ["mcp", "uvicorn", "starlette", "prompt_toolkit", "watchfiles"]),
    ],
)
async def test_a_command_is_quick_because_it_imports_only_what_it_needs(
    env: dict[str, str], computer: FakeComputer, words: list[str], spared: list[str]
) -> None:
    code = f"""
import atexit, sys
from a2c_smcp.cli import main
atexit.register(lambda: print([name for name in {spared} if name in sys.modules]))
sys.argv = ["a2c", "agent", *{words}]
main()
"""
    done = await anyio.run_process([sys.executable, "-c", code], env=env)
    assert done.stdout.decode().splitlines()[-1] == "[]"


async def test_help_is_quick_because_nothing_heavy_is_imported() -> None:
    heavy = ["aiohttp", "mcp", "rich.table", "socketio", "uvicorn"]
    code = f"import sys, a2c_smcp.cli; print([name for name in {heavy} if name in sys.modules])"
    done = await anyio.run_process([sys.executable, "-c", code])
    assert done.stdout.strip() == b"[]"


async def test_an_image_can_be_saved(env: dict[str, str], computer: FakeComputer, tmp_path: Path) -> None:
    image = {"type": "image", "data": base64.b64encode(b"picture").decode(), "mimeType": "image/png"}
    computer.override[TOOL_CALL_EVENT] = lambda _: {"content": [image], "isError": False}
    file = tmp_path / "shot.png"
    done = await a2c(env, "call", "laptop", "shoot", "--save", str(file))
    assert (done.returncode, file.read_bytes()) == (0, b"picture")
    assert done.stdout.decode() == "[image/png, 7 bytes]\n"
    assert f"saved in {file}: image/png, 7 bytes" in done.stderr.decode()
    del computer.override[TOOL_CALL_EVENT]
    done = await a2c(env, "call", "laptop", "echo", "text=hi", "--save", str(file))
    assert (done.returncode, done.stdout) == (1, b"hi\n")
    assert b"nothing is saved" in done.stderr
