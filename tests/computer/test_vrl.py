"""VRL programs: checked when loaded, run in a worker process, and never the end of a result."""

import asyncio
import json
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp_types import CallToolResult, TextContent

from a2c_smcp.computer.config.files import usable_config_files
from a2c_smcp.computer.vrl.programs import VRLWorker
from a2c_smcp.computer.vrl.syntax import check_vrl
from a2c_smcp.errors import InvalidConfigError, VRLSyntaxError
from a2c_smcp.wire import DEFAULT_MAX_MESSAGE

#: With so many numbers this takes minutes.
SLOW = """
numbers = array!(.parameters.numbers)
for_each(numbers) -> |_i, _a| {
  for_each(numbers) -> |_j, _b| {
    for_each(numbers) -> |_k, _c| { .n = 1 }
  }
}
"""
NUMBERS = {"numbers": list(range(2000))}
DEADLINE = 30.0


def result(**fields: Any) -> CallToolResult:
    return CallToolResult(content=[TextContent(text="hi")], **fields)


def transformed(after: CallToolResult) -> Any:
    assert after.meta is not None
    return json.loads(after.meta["a2c_vrl_transformed"])


def workers(parent: int | None = None) -> list[int]:
    """The worker processes of a process, by default of this one."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                ours = _stat(int(entry.name))[1] == str(parent or os.getpid())
                if ours and "vrl/worker" in (entry / "cmdline").read_text():
                    found.append(int(entry.name))
            except OSError:  # it ended meanwhile
                continue
    return found


def busy_workers(parent: int | None = None) -> list[int]:
    """Those that have worked for longer than their start takes: they are in the middle of a program."""
    ticks = os.sysconf("SC_CLK_TCK")
    return [pid for pid in workers(parent) if int(_stat(pid)[11]) / ticks > 0.5]


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat after the name: state, parent, …, user time."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


async def until(condition: Callable[[], object]) -> None:
    with anyio.fail_after(DEADLINE):
        while not condition():  # noqa: ASYNC110 - a process gives no event when it is busy
            await anyio.sleep(0.02)


@pytest.fixture
async def worker() -> AsyncIterator[VRLWorker]:
    async with aclosing(VRLWorker(DEADLINE)) as started:
        yield started
    assert workers() == []


# --- the syntax check


@pytest.mark.parametrize("program", ["", ".a = 1", ".n = length(array!(.content))"])
def test_a_program_that_compiles_is_accepted(program: str) -> None:
    check_vrl(program)


@pytest.mark.parametrize(
    ("program", "message"), [(".a = ", "E204"), (".a = parse_json(.b)", "E103"), ("no_such_function()", "E105")]
)
def test_a_program_that_does_not_compile_is_refused_with_the_message_of_the_compiler(
    program: str, message: str
) -> None:
    with pytest.raises(VRLSyntaxError) as caught:
        check_vrl(program)
    assert caught.value.code == 400
    assert f"error[{message}]" in caught.value.message


def test_without_the_extra_the_refusal_names_it_and_costs_one_entry(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "vrl_python", None)
    with pytest.raises(InvalidConfigError) as caught:
        check_vrl(".a = 1")
    assert ".[vrl]" in caught.value.message
    run = {"type": "stdio", "server_parameters": {"command": "run"}}
    (tmp_path / "c.json").write_text(json.dumps([{**run, "name": "a", "vrl": ".a = 1"}, {**run, "name": "b"}]))
    files = usable_config_files(tmp_path / "c.json")
    assert ([raw["name"] for raw in files.servers], len(files.problems)) == (["b"], 1)


# --- running


async def test_the_event_is_the_result_plus_tool_name_and_parameters(worker: VRLWorker) -> None:
    before = result(structured_content={"a": None}, _meta={"own": 1})
    after = await worker.transform(".", before, "read", {"path": "x"})
    assert transformed(after) == {
        "meta": {"own": 1},
        "content": [{"type": "text", "text": "hi"}],
        "structuredContent": {"a": None},
        "isError": False,
        "tool_name": "read",
        "parameters": {"path": "x"},
    }


async def test_what_the_program_makes_is_a_json_string_in_meta_and_the_rest_stays(worker: VRLWorker) -> None:
    before = result(_meta={"own": 1})
    after = await worker.transform('. = {"text": upcase(string!(.content[0].text)) + "，"}', before, "read", {})
    assert after.meta == {"own": 1, "a2c_vrl_transformed": '{"text": "HI，"}'}
    assert after.content == before.content
    assert before.meta == {"own": 1}


async def test_an_error_result_is_left_alone_and_starts_no_worker(worker: VRLWorker) -> None:
    before = result(is_error=True)
    assert await worker.transform(".a = 1", before, "read", {}) is before
    assert workers() == []


async def test_a_program_that_fails_is_logged_and_leaves_the_result_alone(
    worker: VRLWorker, caplog: pytest.LogCaptureFixture
) -> None:
    before = result()
    with caplog.at_level(logging.WARNING):
        assert await worker.transform('.a = to_int!("x")', before, "read", {}) is before
    [message] = [message for message in caplog.messages if "to_int" in message]
    assert "read" in message


async def test_one_worker_serves_many_calls(worker: VRLWorker) -> None:
    await worker.transform(".", result(), "read", {})
    kept = workers()
    assert len(kept) == 1
    results = await asyncio.gather(*(worker.transform(".", result(), "read", {"n": n}) for n in range(20)))
    assert [transformed(after)["parameters"]["n"] for after in results] == list(range(20))
    assert workers() == kept


async def test_a_failure_does_not_cost_the_worker(worker: VRLWorker) -> None:
    await worker.transform('.a = to_int!("x")', result(), "read", {})
    kept = workers()
    assert transformed(await worker.transform(".a = 1", result(), "read", {}))["a"] == 1
    assert workers() == kept


async def test_a_large_result_goes_through(worker: VRLWorker) -> None:
    text = "大" * 2_000_000
    after = await worker.transform(".", CallToolResult(content=[TextContent(text=text)]), "read", {})
    assert transformed(after)["content"][0]["text"] == text


async def test_what_vrl_cannot_take_leaves_the_result_alone(worker: VRLWorker) -> None:
    before = result()
    for parameters in ({"lone": "\ud800"}, {"no JSON": object()}):
        assert await worker.transform(".", before, "read", parameters) is before


# --- deadlines and endings


async def test_a_program_over_its_deadline_is_killed_and_the_worker_replaced(caplog: pytest.LogCaptureFixture) -> None:
    before = result()
    async with aclosing(VRLWorker(deadline=3.0)) as worker:
        with caplog.at_level(logging.WARNING), anyio.fail_after(DEADLINE):
            assert await worker.transform(SLOW, before, "read", NUMBERS) is before
        assert "longer than 3 s" in caplog.text
        assert workers() == []
        assert transformed(await worker.transform(".a = 1", before, "read", {}))["a"] == 1
        assert len(workers()) == 1
    assert workers() == []


#: Doubles a text until it has a gigabyte.
GREEDY = "s = string!(.content[0].text)\n" + "s = s + s\n" * 29 + ".n = length(s)"


async def test_a_program_that_takes_a_gigabyte_fails_and_the_worker_is_replaced(
    worker: VRLWorker, caplog: pytest.LogCaptureFixture
) -> None:
    before = result()
    with caplog.at_level(logging.WARNING):
        assert await worker.transform(GREEDY, before, "read", {}) is before
    assert "VRL left the result of read alone: it took more than 768 MiB of memory" in caplog.text
    assert workers() == []
    assert transformed(await worker.transform(".a = 1", before, "read", {}))["a"] == 1


async def test_a_result_that_does_not_fit_into_the_memory_is_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    before = CallToolResult(content=[TextContent(text="x" * 40_000_000)])
    async with aclosing(VRLWorker(DEADLINE, memory=100 * 2**20)) as worker:
        with caplog.at_level(logging.WARNING):
            assert await worker.transform(".", before, "read", {}) is before
        assert "it took more than 100 MiB of memory" in caplog.text
        assert transformed(await worker.transform(".a = 1", result(), "read", {}))["a"] == 1


async def test_the_largest_result_fits_into_the_memory(worker: VRLWorker) -> None:
    text = "x" * DEFAULT_MAX_MESSAGE
    after = await worker.transform(".", CallToolResult(content=[TextContent(text=text)]), "read", {})
    assert transformed(after)["content"][0]["text"] == text


async def test_a_cancelled_transformation_leaves_no_process_and_no_answer_behind(worker: VRLWorker) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(worker.transform, SLOW, result(), "slow", NUMBERS)
        await until(busy_workers)
        tasks.cancel_scope.cancel()
    assert workers() == []
    assert transformed(await worker.transform(".", result(), "next", {}))["tool_name"] == "next"


async def test_a_worker_that_died_is_replaced(worker: VRLWorker) -> None:
    await worker.transform(".", result(), "read", {})
    [pid] = workers()
    os.kill(pid, signal.SIGKILL)
    await until(lambda: pid not in workers())
    # The death may be noticed only by the call that meets it; the one after that is served.
    await worker.transform(".", result(), "read", {})
    assert transformed(await worker.transform(".a = 1", result(), "read", {}))["a"] == 1
    assert pid not in workers()


async def test_closing_ends_a_running_program_and_those_that_wait(caplog: pytest.LogCaptureFixture) -> None:
    worker = VRLWorker(deadline=DEADLINE)
    before = result()
    calls = [asyncio.create_task(worker.transform(SLOW, before, "read", NUMBERS)) for _ in range(3)]
    await until(busy_workers)
    with anyio.fail_after(DEADLINE / 2):
        await worker.aclose()
        assert await asyncio.gather(*calls) == [before] * 3
    assert workers() == []


async def test_a_closed_worker_starts_no_process() -> None:
    worker = VRLWorker()
    await worker.aclose()
    before = result()
    assert await worker.transform(".a = 1", before, "read", {}) is before
    assert workers() == []


HOST = f"""
import asyncio
from a2c_smcp.computer.vrl.programs import VRLWorker
from tests.computer.test_vrl import NUMBERS, SLOW, result

asyncio.run(VRLWorker(deadline=5.0).transform({SLOW!r}, result(), "read", NUMBERS))
"""


async def test_if_the_computer_is_killed_its_worker_ends_even_in_the_middle_of_a_program() -> None:
    host = await asyncio.create_subprocess_exec(sys.executable, "-c", HOST)
    try:
        await until(lambda: busy_workers(host.pid))
        [pid] = workers(host.pid)
    finally:
        host.kill()
        await host.wait()
    await until(lambda: not Path(f"/proc/{pid}").exists())
