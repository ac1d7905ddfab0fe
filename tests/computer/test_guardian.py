"""The guardian: whatever ends a computer or a server, nothing of a server is left, unless its config keeps it."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.mcp_clients.mcp_error import MCPError
from a2c_smcp.computer.mcp_clients.model import StdioParameters
from a2c_smcp.computer.mcp_clients.pipes.guardian import Guardian
from a2c_smcp.computer.mcp_clients.pipes.process import StdioTimings
from a2c_smcp.computer.mcp_clients.pipes.stdio import StdioTransport
from a2c_smcp.computer.mcp_clients.server_state import ServerState
from a2c_smcp.utils.system import HAS_GUARDIANS
from tests.computer.fakes.computers import FAST, server
from tests.computer.fakes.plain_client import PlainClient, client_over
from tests.computer.fakes.processes import (
    both_loops,
    command,
    eventually,
    having,
    is_alive,
    is_guardian,
    nothing_left_over,
    parent_of,
    servers,
)

pytestmark = pytest.mark.skipif(not HAS_GUARDIANS, reason="needs Linux")

LEAVING = str(Path(__file__).parent / "fakes" / "leaving.py")
KINDS = {"server", "child", "grandchild", "session", "daemon"}
#: Long enough for a busy machine: no signal is needed before it has passed.
PATIENT = StdioTimings(flush=20, eof=20, terminate=20, kill=20, drain=0.1)
DEADLINE = 60.0


def leaving(file: Path, *traits: str, name: str = "leaving", **more: Any) -> dict[str, Any]:
    parameters = {"command": sys.executable, "args": ["-I", "-S", LEAVING, str(file), *traits]}
    return {"name": name, "type": "stdio", "protocol": "legacy", "server_parameters": parameters, **more}


def started_by(file: Path) -> dict[str, int]:
    """The processes that a server has started, once it has started all; of several runs the last."""
    deadline = time.monotonic() + DEADLINE
    while True:
        words = [line.split() for line in file.read_text().splitlines()] if file.exists() else []
        found = {kind: int(pid) for kind, pid in words}
        if found.keys() >= KINDS:
            return found
        assert time.monotonic() < deadline, found
        time.sleep(0.01)


def guardians_of(server: int) -> dict[str, int]:
    keeper = parent_of(server)
    found = {"keeper": keeper, "guardian": parent_of(keeper)}
    assert all(map(is_guardian, found.values()))
    return found


def wait_for_end(word: str) -> None:
    """Wait until no process has this word in its command line."""
    deadline = time.monotonic() + DEADLINE
    while left := having(word):
        assert time.monotonic() < deadline, [Path(f"/proc/{pid}/stat").read_text() for pid in left]
        time.sleep(0.01)


def gone(pids: dict[str, int], *, but: frozenset[str] = frozenset()) -> None:
    """Wait until they have ended."""
    deadline = time.monotonic() + DEADLINE
    while left := {kind for kind, pid in pids.items() if kind not in but and is_alive(pid)}:
        assert time.monotonic() < deadline, f"still there: {left}"
        time.sleep(0.01)


class Run:
    """`a2c computer run`, in a process of its own, with these servers."""

    def __init__(self, folder: Path, name: str, *servers: dict[str, Any]) -> None:
        folder.mkdir(exist_ok=True)
        (folder / "config.json").write_text(json.dumps(list(servers)))
        self.log = folder / "log"
        place = ["--config", str(folder / "config.json"), "--name", name, "--office", "o"]
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "a2c_smcp.cli", "computer", "run", "--headless", *place, "--url", NOBODY],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "XDG_STATE_HOME": str(folder.parent / "state")},
            )

    def ends(self, how: signal.Signals) -> int:
        self.process.send_signal(how)
        return self.process.wait(DEADLINE)


#: Where no server listens. A computer starts its MCP servers all the same.
NOBODY = "http://127.0.0.1:9"


@contextmanager
def computers(*runs: Run) -> Iterator[None]:
    try:
        yield
    finally:
        for run in runs:
            run.process.kill()
            run.process.wait(DEADLINE)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "started"


# --- the computer ends


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("traits", [(), ("stubborn", "scrub")], ids=["mild", "stubborn"])
def test_nothing_of_its_servers_outlives_a_computer(
    tmp_path: Path, file: Path, how: signal.Signals, traits: tuple[str, ...]
) -> None:
    run = Run(tmp_path / "pc", "pc", leaving(file, *traits))
    with computers(run):
        started = started_by(file)
        above = guardians_of(started["server"])
        run.ends(how)
        gone(started | above)
    assert "Traceback" not in run.log.read_text()


def test_a_computer_beside_one_that_is_killed_loses_nothing(tmp_path: Path) -> None:
    """Also if both have one name and one folder, and one of them is started again."""
    files = [tmp_path / "one", tmp_path / "two"]
    runs = [Run(tmp_path / file.name, "pc", leaving(file.with_suffix(".pids"))) for file in files]
    with ExitStack() as stack:
        stack.enter_context(computers(*runs))
        one, two = (started_by(file.with_suffix(".pids")) for file in files)
        runs[0].ends(signal.SIGKILL)
        gone(one)
        files[0].with_suffix(".pids").unlink()
        again = Run(tmp_path / "one", "pc", leaving(files[0].with_suffix(".pids")))
        stack.enter_context(computers(again))
        started_by(files[0].with_suffix(".pids"))
        assert all(map(is_alive, two.values()))


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_what_a_config_keeps_stays_and_the_rest_ends(tmp_path: Path, file: Path, how: signal.Signals) -> None:
    run = Run(tmp_path / "pc", "pc", leaving(file, detached="keep"))
    kept = frozenset({"session", "daemon"})
    with computers(run):
        started = started_by(file)
        above = guardians_of(started["server"])
        try:
            run.ends(how)
            gone(started | above, but=kept)
            again = Run(tmp_path / "pc", "pc", leaving(tmp_path / "others"))
            with computers(again):  # its start ends nothing of it either
                started_by(tmp_path / "others")
                assert all(is_alive(started[kind]) for kind in kept)
        finally:
            for kind in kept:
                os.kill(started[kind], signal.SIGKILL)


# --- a guardian is killed


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_guardian_leaves_the_signals_of_a_terminal_to_its_computer(
    tmp_path: Path, file: Path, how: signal.Signals
) -> None:
    run = Run(tmp_path / "pc", "pc", leaving(file))
    with computers(run):
        started = started_by(file)
        above = guardians_of(started["server"])
        for pid in above.values():
            os.kill(pid, how)
        assert all(map(is_alive, (started | above).values()))
        run.ends(signal.SIGKILL)
        gone(started | above)


def test_the_next_start_ends_what_is_left_when_computer_and_guardian_are_killed(tmp_path: Path, file: Path) -> None:
    run = Run(tmp_path / "pc", "pc", leaving(file, "stubborn"))
    other = Run(tmp_path / "other", "other", leaving(tmp_path / "pids"))
    with computers(run, other):
        started, others = started_by(file), started_by(tmp_path / "pids")
        os.kill(run.process.pid, signal.SIGSTOP)  # it would end what a killed keeper leaves
        above = guardians_of(started["server"])
        for pid in (above["guardian"], above["keeper"], run.process.pid):
            os.kill(pid, signal.SIGKILL)
        gone(above)
        assert {kind for kind, pid in started.items() if is_alive(pid)} == KINDS
        again = Run(tmp_path / "pc", "pc")  # also one that has no servers any more
        with computers(again):
            gone(started)
            assert all(map(is_alive, others.values()))


async def test_a_server_whose_keeper_is_killed_starts_again_and_leaves_nothing(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(leaving(file, "stubborn")) as computer:
        started = await asyncio.to_thread(started_by, file)
        os.kill(parent_of(started["server"]), signal.SIGKILL)
        await asyncio.to_thread(gone, started)
        await eventually(lambda: [status.restarts for status in computer.statuses] == [1])
        await eventually(lambda: started_by(file)["server"] != started["server"])
        assert "its guardian was killed" in caplog.text


def test_a_server_that_stops_its_keeper_ends_with_a_killed_computer_all_the_same(tmp_path: Path, file: Path) -> None:
    run = Run(tmp_path / "pc", "pc", leaving(file, "stubborn", "scrub"))
    with computers(run):
        started = started_by(file)
        above = guardians_of(started["server"])
        os.kill(above["keeper"], signal.SIGSTOP)
        run.ends(signal.SIGKILL)
        gone(started | above)


async def test_a_server_whose_keeper_is_stopped_ends_all_the_same(file: Path) -> None:
    async with running(leaving(file, "stubborn")) as computer:
        started = await asyncio.to_thread(started_by, file)
        keeper = parent_of(started["server"])
        os.kill(keeper, signal.SIGSTOP)
        await computer.stop_server("leaving")
        await asyncio.to_thread(gone, started)
        os.kill(keeper, signal.SIGCONT)


async def test_servers_live_on_when_the_guardian_is_killed_and_the_next_one_has_another(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    async with running(leaving(one, name="one")) as computer:
        first = await asyncio.to_thread(started_by, one)
        above = guardians_of(first["server"])
        os.kill(above["guardian"], signal.SIGKILL)
        await asyncio.to_thread(gone, above, but=frozenset({"keeper"}))
        await computer.add_or_update_server(leaving(two, name="two"))
        second = await asyncio.to_thread(started_by, two)
        assert guardians_of(second["server"])["guardian"] != above["guardian"]
        assert all(map(is_alive, first.values()))
    await asyncio.to_thread(gone, first | above)
    await asyncio.to_thread(gone, second)


# --- a server ends


@asynccontextmanager
async def running(*servers: dict[str, Any]) -> AsyncIterator[Computer]:
    with nothing_left_over():
        async with Computer("pc", mcp_servers=servers, timings=FAST) as computer:
            assert all(status.state is ServerState.RUNNING for status in computer.statuses), computer.statuses
            yield computer


@pytest.mark.parametrize("how", ["stop", "restart", "remove", "crash"])
async def test_a_server_takes_along_what_it_started_and_nothing_of_another(tmp_path: Path, how: str) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    async with running(leaving(one, "scrub", name="one"), leaving(two, "scrub", name="two")) as computer:
        first, second = await asyncio.to_thread(started_by, one), started_by(two)
        if how == "crash":
            os.kill(first["server"], signal.SIGKILL)
        else:
            await getattr(computer, f"{how}_server")("one")
        await asyncio.to_thread(gone, first)
        assert all(map(is_alive, second.values()))
    await asyncio.to_thread(gone, second)


async def test_a_server_that_keeps_is_stopped_without_its_daemons(file: Path) -> None:
    async with running(leaving(file, detached="keep")) as computer:
        started = await asyncio.to_thread(started_by, file)
        try:
            await computer.stop_server("leaving")
            await asyncio.to_thread(gone, started, but=frozenset({"session", "daemon"}))
        finally:
            assert all(is_alive(started[kind]) for kind in ("session", "daemon"))
            for kind in ("session", "daemon"):
                os.kill(started[kind], signal.SIGKILL)


async def test_servers_have_a_mark_and_those_that_keep_have_none(tmp_path: Path) -> None:
    marks = []
    for detached in ("end", "keep"):
        others = servers()  # also the guardian of another test that has just ended, until it is reaped
        async with running({**server("a"), "detached": detached}) as computer:
            [pid] = servers() - others
            variables = await anyio.Path(f"/proc/{pid}/environ").read_bytes()
            marks.append([each for each in variables.split(b"\0") if each.startswith(b"A2C_OWNER=")])
            assert dict(computer.get_config()["servers"]["a"])["detached"] == detached
    assert len(marks[0]) == 1
    assert marks[0][0].startswith(b"A2C_OWNER=%d." % os.getpid())
    assert marks[1] == []


# --- one process, without a Computer


@asynccontextmanager
async def guarded(
    mode: str, timings: StdioTimings = PATIENT, **options: object
) -> AsyncIterator[tuple[PlainClient, StdioTransport]]:
    program, arguments = command(mode, **options)
    guardian = Guardian("test")
    transport = StdioTransport(StdioParameters(command=program, args=arguments), timings=timings, guardian=guardian)
    with nothing_left_over():
        try:
            async with client_over(transport) as client:
                yield client, transport
        finally:
            await guardian.aclose()


DEAF = replace(PATIENT, eof=0.2)
IMPATIENT = replace(DEAF, terminate=0.2)


@both_loops
@pytest.mark.parametrize(
    ("mode", "timings", "code"),
    [
        ("normal", PATIENT, 0),
        ("ignores-eof", DEAF, -signal.SIGTERM),
        ("ignores-term", IMPATIENT, -signal.SIGKILL),
        ("grandchildren", PATIENT, 0),
        ("floods-stderr", PATIENT, 0),
    ],
)
async def test_a_guarded_server_answers_and_ends_as_one_without_a_guardian(
    mode: str, timings: StdioTimings, code: int
) -> None:
    async with guarded(mode, timings) as (client, server):
        answer = await client.call_tool("huge", {"size": 1_000_000})
        assert len(getattr(answer.content[0], "text", "")) == 1_000_000
        assert server.exit_code is None
    assert server.exit_code == code


async def test_a_guarded_server_that_crashes_says_how() -> None:
    async with guarded("normal") as (client, server):
        with anyio.fail_after(20), pytest.raises(MCPError):
            await client.call_tool("crash", {"code": 7})
        await eventually(lambda: server.exit_reason == "exit code 7")


@pytest.mark.parametrize(
    ("changes", "error", "file"),
    [
        ({"command": "no-such-command-anywhere"}, FileNotFoundError, "no-such-command-anywhere"),
        ({"command": "/etc/passwd"}, PermissionError, "/etc/passwd"),
        ({"cwd": "/no/such/directory"}, FileNotFoundError, "/no/such/directory"),
        ({"args": ["a\0b"]}, ValueError, None),
        ({"env": {"A=B": "c"}}, ValueError, None),
    ],
)
async def test_what_cannot_be_started_is_the_error_that_it_is_without_a_guardian(
    changes: dict[str, Any], error: type[Exception], file: str | None
) -> None:
    parameters = StdioParameters.model_validate({"command": sys.executable, **changes})
    guardian = Guardian("test")
    with nothing_left_over():
        for way in (guardian, None):
            with pytest.raises(error) as caught:
                async with StdioTransport(parameters, guardian=way):
                    pass
            assert getattr(caught.value, "filename", None) == file
        await guardian.aclose()


async def test_a_server_that_is_told_to_end_ends_its_children_in_its_own_order(tmp_path: Path) -> None:
    """A browser whose driver got a SIGTERM, too, left its profile behind."""
    said = tmp_path / "said"
    program = (
        "import signal, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-ISc', 'input()'], stdin=-1)\n"
        "def end(*_):\n"
        "    time.sleep(0.3); child.stdin.write(b'end\\n'); child.stdin.close()\n"
        f"    open({str(said)!r}, 'w').write(f'the child ended with {{child.wait()}}'); sys.exit()\n"
        "signal.signal(signal.SIGTERM, end); print('ready', file=sys.stderr, flush=True); time.sleep(3600)"
    )
    guardian = Guardian("test")
    parameters = StdioParameters(command=sys.executable, args=["-I", "-c", program])
    with nothing_left_over():
        transport = StdioTransport(parameters, timings=DEAF, guardian=guardian)
        async with transport:
            await eventually(lambda: "ready" in transport.stderr_tail)
        await guardian.aclose()
    assert said.read_text() == "the child ended with 0"


async def test_environment_folder_and_signals_are_those_of_a_server_without_a_guardian(tmp_path: Path) -> None:
    program = (
        "import os, sys, signal; os.environ.pop('A2C_OWNER', None); print(os.getcwd(), sorted(os.environ.items()), "
        "[signal.getsignal(n) for n in (15, 1)], os.getpgid(0) == os.getsid(0) == os.getpid(), "
        "sorted(os.listdir('/proc/self/fd')), open('/proc/self/status').read().partition('SigBlk')[2][:120], "
        "file=sys.stderr)"
    )
    guardian = Guardian("test")
    said = []
    for folder in (str(tmp_path), None):
        for way in (guardian, None):
            path, name = os.path.split(sys.executable)
            written = {"command": name, "args": ["-I", "-c", program], "env": {"A": "b", "PATH": path}, "cwd": folder}
            parameters = StdioParameters.model_validate(written)
            transport = StdioTransport(parameters, timings=PATIENT, guardian=way)
            async with transport:
                await eventually(lambda: transport.exit_code is not None)  # noqa: B023
            said.append(transport.stderr_tail)
    await guardian.aclose()
    assert said[0] == said[1]
    assert said[2] == said[3]
    assert said[0][0].startswith(str(tmp_path))


async def test_a_start_that_is_cancelled_leaves_nothing(file: Path) -> None:
    """Whenever that is."""
    guardian = Guardian("test")
    parameters = StdioParameters.model_validate(leaving(file)["server_parameters"])
    with nothing_left_over():
        for turns in range(40):
            task = asyncio.ensure_future(guardian.spawn(parameters, PATIENT, keeps=False))
            for _ in range(turns):
                await asyncio.sleep(0.001)
            if not task.cancel():
                (await task).destroy()
            else:
                with pytest.raises(asyncio.CancelledError):
                    await task
        pids = [int(line.split()[1]) for line in (await anyio.Path(file).read_text()).splitlines()]
        await guardian.aclose()
    await asyncio.to_thread(gone, {str(pid): pid for pid in pids})


OWNER = """
import asyncio, os, sys, time
from a2c_smcp.computer.computer import Computer

async def main():
    async with Computer("pc", mcp_servers=[json.loads(sys.argv[1])]):
        if (pid := os.fork()) == 0:
            time.sleep(3600)
            os._exit(0)
        print(pid, flush=True)
        await asyncio.Event().wait()

import json
asyncio.run(main())
"""


def test_a_fork_of_the_computer_does_not_hold_its_servers(file: Path) -> None:
    """Such as a worker of a pool, which may live on when the computer is killed."""
    command = [sys.executable, "-c", OWNER, json.dumps(leaving(file, "stubborn"))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        fork = int(process.stdout.readline())
        try:
            started = started_by(file)
            process.kill()
            process.wait(DEADLINE)
            gone(started)
            assert is_alive(fork)
        finally:
            os.kill(fork, signal.SIGKILL)


NOT_LINUX = """
import asyncio, json, os, sys
del os.memfd_create
from a2c_smcp.computer.computer import Computer

async def main():
    async with Computer("pc", mcp_servers=[json.loads(sys.argv[1])]) as computer:
        print(computer.statuses[0].state.value, flush=True)
        await asyncio.to_thread(sys.stdin.readline)

asyncio.run(main())
"""


def test_where_there_can_be_no_guardian_a_server_ends_with_its_group(file: Path) -> None:
    command = [sys.executable, "-c", NOT_LINUX, json.dumps(leaving(file))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n"
        started = started_by(file)
        try:
            assert parent_of(started["server"]) == process.pid
            process.communicate("\n", timeout=DEADLINE)
            gone(started, but=frozenset({"session", "daemon"}))
        finally:
            for kind in ("session", "daemon"):
                os.kill(started[kind], signal.SIGKILL)
