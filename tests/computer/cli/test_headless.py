"""`a2c computer run --headless`: a service that joins, follows its files, reports what is wrong, and ends cleanly."""

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from a2c_smcp.server import APIKeyAuthentication
from a2c_smcp.smcp import GET_TOOLS_EVENT
from tests.computer.cli.console import left_over
from tests.computer.fakes.computers import server
from tests.computer.fakes.offices import Agent, new_office
from tests.computer.fakes.processes import servers
from tests.server.conftest import LIMITS
from tests.server.harness import DEADLINE, Running, async_server, eventually

A2C = str(Path(sys.executable).with_name("a2c"))


class Service:
    """The command as a process, and what it says on stderr. `by` are the words of a command that runs it."""

    def __init__(self, *arguments: str, by: tuple[str, ...] = (), **environment: str) -> None:
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            [*by, A2C, "computer", "run", "--headless", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        self.lines.extend(iter(self.process.stderr.readline, ""))

    def said(self, word: str) -> bool:
        return any(word in line for line in list(self.lines))

    async def says(self, word: str) -> None:
        await eventually(lambda: self.said(word) or self.process.poll() is not None, 60)
        assert self.said(word), self.lines

    def servers(self) -> list[int]:
        return sorted(servers(self.process.pid))

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self) -> int:
        status = self.process.wait(60)
        self._reader.join(DEADLINE)
        return status


@contextmanager
def service(*arguments: str, by: tuple[str, ...] = (), **environment: str) -> Iterator[Service]:
    it = Service(*arguments, by=by, **environment)
    try:
        yield it
    finally:
        if it.process.poll() is None:
            it.process.kill()
        it.wait()
        assert it.process.stderr is not None
        it.process.stderr.close()


def write(file: Path, *servers: dict[str, Any], **more: Any) -> str:
    """As an editor does: another file in the place of the old one."""
    new = file.with_suffix(".new")
    new.write_text(json.dumps({"servers": list(servers), **more}))
    new.rename(file)
    return str(file)


def break_file(file: Path) -> None:
    file.write_text('{"servers": [')


async def tools(agent: Agent) -> set[str]:
    reply = await agent.ask(GET_TOOLS_EVENT)
    return {tool["name"] for tool in reply.get("tools", ())}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config.json"


async def test_it_serves_follows_its_files_and_ends_with_0(hub: Running, file: Path) -> None:
    office = new_office()
    write(file, server("a"), server("b", default_tool_meta=None))
    agent = Agent()
    await agent.join(hub.url, office)
    with service("--config", str(file), "--url", hub.url, "--office", office, "--name", "pc") as it:
        await it.says(f"pc is in office {office}")
        assert it.said("4005")
        await eventually_tools(agent, {"a.stats", "b.stats"}, gone=set())  # it joins after 5 s without them
        pid = json.loads((await agent.tool("a.stats"))["content"][0]["text"])["pid"]
        assert (await agent.tool("b.stats"))["meta"]["error_code"] == 4005

        write(file, server("a"), server("c"))
        await eventually_tools(agent, {"a.echo", "c.echo"}, gone={"b.echo"})
        write(file, server("a"), server("c", forbidden_tools=["echo"]))
        await eventually_tools(agent, {"a.echo", "c.stats"}, gone={"c.echo"})
        break_file(file)
        await it.says("invalid JSON at line 1")
        await it.says("the servers stay as they are")
        assert {"a.echo", "c.stats"} <= await tools(agent)
        write(file, server("a"))
        await eventually_tools(agent, {"a.echo"}, gone={"c.stats"})

        assert json.loads((await agent.tool("a.stats"))["content"][0]["text"])["pid"] == pid
        assert it.stop() == 0
        assert left_over([pid]) == []
        assert not it.said("Traceback"), it.lines
    await agent.disconnect()


async def eventually_tools(agent: Agent, there: set[str], gone: set[str]) -> None:
    with anyio.fail_after(60):
        while not there <= (found := await tools(agent)) or gone & found:  # noqa: ASYNC110 - of another process
            await anyio.sleep(0.02)


async def test_yes_runs_everything_inputs_come_from_files_and_a_late_server_is_waited_for(
    tmp_path: Path, port: int
) -> None:
    office, inputs, config = new_office(), tmp_path / "inputs.json", server("a", default_tool_meta=None)
    config["server_parameters"]["args"].append("resources=${input:count}")
    inputs.write_text('[{"id": "count", "type": "promptString"}]')
    arguments = ["--config", write(tmp_path / "config.json", config), "--inputs", str(inputs), "--yes"]
    arguments += ["--url", f"http://127.0.0.1:{port}", "--office", office, "--name", "pc"]
    with service(*arguments, A2C_INPUT_COUNT="3", A2C_API_KEY="right") as it:
        await it.says("not in the office yet")
        with async_server(APIKeyAuthentication(["right"]), LIMITS, port=port) as hub:
            await it.says(f"is in office {office}")
            agent = Agent()
            await agent.connect(hub.url, transports=["websocket"], auth={"token": "right"})
            assert await agent.call("server:join_office", {"role": "agent", "name": "ag", "office_id": office})
            await eventually_tools(agent, {"a.echo"}, gone=set())
            assert (await agent.tool("a.echo", text="hi"))["content"][0]["text"] == "hi"
            await agent.disconnect()
        assert it.stop() == 0
        assert not it.said("(4005)")  # a port may have these digits
        assert not it.said("right")


async def test_a_refusal_ends_with_3_and_a_wrong_file_with_1(file: Path) -> None:
    with async_server(APIKeyAuthentication(["right"]), LIMITS) as hub:
        arguments = ["--config", write(file, server("a")), "--url", hub.url, "--office", "o", "--name", "pc"]
        with service(*arguments, "--api-key", "hunter2") as it:
            assert it.wait() == 3
            assert it.said("401") and it.said("--api-key-file FILE or A2C_API_KEY")
            assert not it.said("hunter2")
    with service("--config", write(file, nonsense=True), "--office", "o", "--name", "pc") as it:
        assert it.wait() == 1
        assert it.said("nonsense: unknown key")


async def test_one_wrong_entry_is_said_and_the_others_start(hub: Running, file: Path) -> None:
    write(file, {**server("a"), "nonsense": 1}, server("b"))
    with service("--config", str(file), "--url", hub.url, "--office", new_office(), "--name", "pc") as it:
        await it.says("pc is in office")
        await it.says("MCP server b is running")
        assert it.said("nonsense: unknown key")
        assert it.stop() == 0


async def test_stopping_takes_next_to_no_time_of_the_machine(hub: Running, file: Path) -> None:
    """By its own clock, for a busy machine has others: the last search for garbage alone took 0.3 s."""
    write(file, server("a"))
    with service("--config", str(file), "--url", hub.url, "--office", new_office(), "--name", "pc") as it:
        await it.says("pc is in office")
        before = spent(it.process.pid)
        it.process.send_signal(signal.SIGTERM)
        _, status, usage = await anyio.to_thread.run_sync(os.wait4, it.process.pid, 0)
        it.process.returncode = os.waitstatus_to_exitcode(status)
        assert it.process.returncode == 0
        assert usage.ru_utime + usage.ru_stime - before < 0.3


def spent(pid: int) -> float:
    """The seconds of CPU that a process and its ended children took."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


async def test_it_can_be_stopped_while_a_server_still_starts(hub: Running, file: Path) -> None:
    write(file, server("good"), server("hangs", "silent"))
    with service("--config", str(file), "--url", hub.url, "--office", new_office(), "--name", "pc") as it:
        await it.says("MCP server good is running")
        started = it.servers()
        assert len(started) == 2
        assert it.stop() == 0
        assert left_over(started) == []
        assert not it.said("Traceback"), it.lines


async def test_when_its_key_is_refused_later_it_goes_on_trying_and_says_so_once(file: Path, port: int) -> None:
    arguments = ["--config", write(file, server("a")), "--office", "o", "--name", "pc", "--api-key", "old"]
    with service(*arguments, "--url", f"http://127.0.0.1:{port}") as it:
        with async_server(APIKeyAuthentication(["old"]), LIMITS, port=port):
            await it.says("is in office o")
        with async_server(APIKeyAuthentication(["new"]), LIMITS, port=port):
            await it.says("trying again: 401 Unauthorized")
        with async_server(APIKeyAuthentication(["old"]), LIMITS, port=port) as hub:
            agent = Agent()
            await agent.connect(hub.url, transports=["websocket"], auth={"token": "old"})
            assert await agent.call("server:join_office", {"role": "agent", "name": "ag", "office_id": "o"})
            await eventually_tools(agent, {"a.echo"}, gone=set())
            await agent.disconnect()
        assert sum("401" in line for line in it.lines) == 1
        assert it.stop() == 0


@pytest.mark.parametrize(("arguments", "said"), [((), "needs a terminal"), (("--headless",), "--office and --config")])
def test_without_a_terminal_or_without_an_office_it_says_what_is_missing(arguments: tuple[str, ...], said: str) -> None:
    result = subprocess.run(
        [A2C, "computer", "run", *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
    )
    assert result.returncode == 2
    assert said in result.stderr


async def test_calls_in_flight_are_answered_when_it_is_told_to_stop(hub: Running, file: Path) -> None:
    office = new_office()
    agent = Agent()
    await agent.join(hub.url, office)
    config = write(file, server("a"), server("b", "ignores-eof"))
    replies: list[Any] = []

    async def sleep(tool: str) -> None:
        replies.append(await agent.tool(tool, seconds=600))

    with service("--config", config, "--url", hub.url, "--office", office, "--name", "pc") as it:
        await it.says(f"pc is in office {office}")
        await eventually_tools(agent, {"a.stats", "b.stats"}, gone=set())
        pids = [json.loads((await agent.tool(f"{name}.stats"))["content"][0]["text"])["pid"] for name in "ab"]
        async with anyio.create_task_group() as tasks:
            for tool in ("a.sleep", "a.sleep", "b.sleep"):
                tasks.start_soon(sleep, tool)
            await eventually_called(agent, {"a": 4, "b": 3})
            started = time.monotonic()
            status = await anyio.to_thread.run_sync(it.stop)
        assert status == 0
        assert time.monotonic() - started < 20
        assert left_over(pids) == []
        assert not it.said("Traceback"), it.lines
    assert all(reply["error"]["code"] == 404 or reply["meta"] == {"a2c_cancelled": True} for reply in replies)
    assert len(replies) == 3
    await agent.disconnect()


async def eventually_called(agent: Agent, counts: dict[str, int]) -> None:
    """The calls have reached their servers; asking is a call too, each time."""
    with anyio.fail_after(60):
        for name, count in counts.items():
            wanted = itertools.count(count)
            while json.loads((await agent.tool(f"{name}.stats"))["content"][0]["text"])["called"] < next(wanted):  # noqa: ASYNC110
                await anyio.sleep(0.02)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
async def test_a_log_that_cannot_be_written_does_not_end_it(hub: Running, file: Path) -> None:
    office = new_office()
    arguments = ["--config", write(file, server("a")), "--url", hub.url, "--office", office, "--name", "pc"]
    agent = Agent()
    await agent.join(hub.url, office)
    with service(*arguments, by=("sh", "-c", 'exec "$@" 2>/dev/full', "sh")) as it:
        await eventually_tools(agent, {"a.echo"}, gone=set())
        write(file, server("b"))
        await eventually_tools(agent, {"b.echo"}, gone={"a.echo"})
        assert it.process.poll() is None
    await agent.disconnect()


#: Lets a command hear SIGHUP, which all children of `nohup make test` ignore.
HEARS_SIGHUP = (
    "import os, signal, sys; signal.signal(signal.SIGHUP, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"
)


async def test_it_ends_with_its_terminal_and_so_do_its_servers(hub: Running, file: Path) -> None:
    write(file, server("a"))
    arguments = ["--config", str(file), "--url", hub.url, "--office", new_office(), "--name", "pc"]
    with service(*arguments, by=("nohup", sys.executable, "-c", HEARS_SIGHUP)) as it:
        await it.says("pc is in office")
        started = it.servers()
        it.process.send_signal(signal.SIGHUP)
        assert it.wait() == 0
        assert started
        assert left_over(started) == []


async def test_with_nohup_it_outlives_its_terminal(hub: Running, file: Path) -> None:
    write(file, server("a"))
    arguments = ["--config", str(file), "--url", hub.url, "--office", new_office(), "--name", "pc"]
    with service(*arguments, by=("nohup",)) as it:
        await it.says("pc is in office")
        it.process.send_signal(signal.SIGHUP)
        break_file(file)
        await it.says("the servers stay as they are")
        assert it.stop() == 0
