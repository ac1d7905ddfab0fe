"""A Computer's calls: what runs, what is asked about, what is refused, what is remembered; and what it announces."""

import asyncio
import json
import threading
import time
from dataclasses import replace
from typing import Any

import anyio
import pytest

from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.mcp_clients.model import parse_input
from a2c_smcp.computer.mcp_clients.server_state import ServerState
from a2c_smcp.computer.watching.events import ConfigChanged
from a2c_smcp.errors import NotFoundError, ToolExecutionError
from a2c_smcp.results import to_wire
from tests.computer.fakes.computers import FAST, call, code, names, running, server, state, text

ASKING: dict[str, Any] = {"default_tool_meta": None}


async def test_a_call_and_its_configured_meta() -> None:
    async with running(server("a")) as (computer, _):
        result = to_wire(await call(computer, "a.echo", text="你好"))
        assert result["content"] == [{"type": "text", "text": "你好"}]
        assert result["isError"] is False
        assert result["meta"] is not None
        meta = result["meta"]["a2c_tool_meta"]
        assert meta == {"auto_apply": True, "alias": "a.echo", "tags": None, "ret_object_mapper": None}


async def test_without_configured_meta_a_result_has_none() -> None:
    async with running(server("a", prefixed=False, **ASKING), confirm_callback=lambda *_: True) as (computer, _):
        assert to_wire(await call(computer, "echo", text="x"))["meta"] is None


async def test_a_vrl_program_transforms_the_result_and_not_an_error() -> None:
    program = '. = {"said": .content[0].text, "by": .tool_name, "to": .parameters.text}'
    async with running(server("a", vrl=program)) as (computer, _):
        result = await call(computer, "a.echo", text="hi")
        assert json.loads((result.meta or {})["a2c_vrl_transformed"]) == {"said": "hi", "by": "echo", "to": "hi"}
        assert "a2c_vrl_transformed" not in ((await call(computer, "a.fail")).meta or {})


async def test_every_failure_has_its_code() -> None:
    async with running(server("a", forbidden_tools=["echo", "a.fail"]), server("b")) as (computer, _):
        assert code(await call(computer, "nothing")) == 4001
        assert code(await call(computer, "echo")) == 4002
        assert code(await call(computer, "a.fail")) == 4002
        assert code(await call(computer, "b.crash")) == 4003
        assert code(await call(computer, "a.broken")) == 4003
        late = await call(computer, "a.sleep", 0.2, seconds=30)
        assert code(late) == 4004
        assert (late.meta or {})["a2c_timeout"] is True
        await computer.stop_server("a")
        assert code(await call(computer, "a.sleep")) == 4003


async def test_an_error_result_of_the_tool_itself_has_no_code() -> None:
    async with running(server("a")) as (computer, _):
        result = await call(computer, "a.fail")
        assert result.is_error
        assert code(result) is None
        assert text(result) == "it went wrong"


async def test_the_tool_sees_its_timeout_and_its_cancellation() -> None:
    async with running(server("a")) as (computer, _):
        await call(computer, "a.sleep", 0.2, seconds=30)
        with anyio.move_on_after(0.2):
            await call(computer, "a.sleep", None, seconds=30)
        with anyio.fail_after(20):
            while json.loads(text(await call(computer, "a.stats")))["cancelled"] < 2:
                pass


# --- confirmation


async def test_nobody_to_ask_is_a_refusal() -> None:
    async with running(server("a", **ASKING)) as (computer, _):
        result = await call(computer, "a.echo")
        assert code(result) == 4005
        assert computer.history == ()


async def yes_async(*_: Any) -> bool:
    return True


async def no_async(*_: Any) -> bool:
    return False


@pytest.mark.parametrize(
    ("callback", "expected"),
    [
        (lambda *_: True, None),
        (lambda *_: False, 4005),
        (lambda *_: None, 4005),
        (lambda *_: yes_async(), None),
        (yes_async, None),
        (no_async, 4005),
        (lambda *_: 1 / 0, 4005),
    ],
)
async def test_the_answer_decides(callback: Any, expected: int | None) -> None:
    async with running(server("a", **ASKING), confirm_callback=callback) as (computer, _):
        assert code(await call(computer, "a.echo", text="x")) == expected


async def test_the_callback_is_told_what_is_asked_and_auto_apply_asks_nobody() -> None:
    asked: list[Any] = []

    def ask(*what: Any) -> bool:
        asked.append(what)
        return True

    config = server("a", **ASKING)
    config["tool_meta"]["stats"] |= {"auto_apply": True}
    async with running(config, confirm_callback=ask) as (computer, _):
        await computer.execute_tool("id-1", "a.echo", {"text": "x"}, 10)
        await computer.execute_tool("id-2", "a.stats", {}, 10)
    assert asked == [("id-1", "a", "echo", {"text": "x"})]


async def test_a_callback_may_say_itself_that_nobody_answered() -> None:
    async def ask(*_: Any) -> bool:
        raise TimeoutError

    async with running(server("a", **ASKING), confirm_callback=ask) as (computer, _):
        result = await call(computer, "a.echo")
        assert (code(result), "nobody answered in time" in text(result)) == (4005, True)


@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_a_confirmation_that_nobody_gives_in_time_says_so(kind: str) -> None:
    release = threading.Event()

    async def wait(*_: Any) -> bool:
        await asyncio.sleep(60)
        return True

    def block(*_: Any) -> bool:
        release.wait(60)
        return True

    callback = wait if kind == "async" else block
    try:
        async with running(server("a", **ASKING), confirm_callback=callback) as (computer, _):
            started = time.monotonic()
            result = await call(computer, "a.echo", 0.3)
            assert code(result) == 4005
            assert "nobody answered in time" in text(result)
            assert time.monotonic() - started < 20
            assert computer.history == ()
    finally:
        release.set()


# --- history


async def test_history_has_the_last_ten_calls_that_reached_a_server() -> None:
    async with running(server("a", forbidden_tools=["echo"])) as (computer, _):
        for number in range(9):
            await computer.execute_tool(f"r{number}", "a.stats", {}, 10)
        await computer.execute_tool("failed", "a.fail", {"n": 1}, 10)
        await computer.execute_tool("late", "a.sleep", {"seconds": 30}, 0.1)
        await computer.execute_tool("refused", "a.echo", {}, 10)
        await computer.execute_tool("unknown", "nothing", {}, 10)
        assert [record["req_id"] for record in computer.history] == [*(f"r{n}" for n in range(1, 9)), "failed", "late"]
        assert computer.history[0]["success"]
        failed, late = computer.history[-2:]
        assert (failed["server"], failed["tool"], failed["parameters"]) == ("a", "fail", {"n": 1})
        assert (failed["success"], failed["error"]) == (False, "it went wrong")
        assert (late["success"], late["timeout"]) == (False, 0.1)


async def test_history_keeps_a_part_of_very_large_parameters() -> None:
    async with running(server("a")) as (computer, _):
        await computer.execute_tool("flat", "a.echo", {"text": "x", "more": "y" * 2_000_000}, 30)
        await computer.execute_tool("nested", "a.echo", {"text": "x", "more": [[] for _ in range(400_000)]}, 30)
        flat, nested = (record["parameters"] for record in computer.history)
        assert flat["text"] == nested["text"] == "x"
        assert flat["more"].endswith("… (2000000 characters)")
        assert (len(flat["more"]) < 1_100_000, len(nested["more"]) < 50_000) == (True, True)
        assert nested["more"][-1].endswith(" more)")


# --- the log


FORGED = "r1\n20:31:00 WARNING a2c_smcp.server.auth: all is well \x1b[2J" + "A" * 300_000


@pytest.mark.parametrize(("req_id", "tool"), [(FORGED, "nothing"), ("r", FORGED)])
async def test_a_call_is_one_short_line_of_the_log(req_id: str, tool: str, caplog: pytest.LogCaptureFixture) -> None:
    async with running(server("a")) as (computer, _):
        await computer.execute_tool(req_id, tool, {}, 10)
    (line,) = [line for line in caplog.messages if line.startswith("tool call")]
    assert len(line) < 2_500
    assert not any(character in line for character in "\n\x1b")


async def test_a_flood_of_calls_that_fail_is_no_flood_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async with running(server("a")) as (computer, _):
        began = time.monotonic()
        for number in range(1_000):
            await computer.execute_tool(str(number), "nothing", {}, 10)
        most = 20 * (2 + time.monotonic() - began)
    assert 20 <= len([line for line in caplog.messages if line.startswith("tool call")]) <= most


# --- configuration


async def test_the_config_is_there_before_the_boot_and_announced_when_it_changes() -> None:
    config = server("a")
    config["server_parameters"]["env"] = {"KEY": "${input:key}", "PLAIN": "hunter2"}
    inputs = [parse_input({"id": "key", "type": "promptString", "password": True, "default": "hunter2"})]
    computer = Computer("pc", mcp_servers=[config], inputs=inputs, timings=FAST)
    shown = computer.get_config()
    assert shown["servers"]["a"]["server_parameters"]["env"] == {"KEY": "${input:key}", "PLAIN": "***"}  # type: ignore[typeddict-item]
    assert "hunter2" not in str(shown)
    async with running(config, inputs=inputs) as (computer, record):
        now = computer.get_config()
        assert (now["servers"], now["inputs"]) == (shown["servers"], shown["inputs"])
        assert [shown["server_info"]["a"]["state"], now["server_info"]["a"]["state"]] == ["stopped", "running"]
        record.events.clear()
        computer.inputs.set_value("key", "other")
        assert record.now(ConfigChanged) == []
        computer.inputs.add(parse_input({"id": "more", "type": "promptString"}))
        await record.of(ConfigChanged, 1)
        await computer.add_or_update_server(server("b"))
        known = len(await record.of(ConfigChanged, 2))
        await computer.add_or_update_server(server("b"))
        with pytest.raises(NotFoundError):
            await computer.remove_server("c")
        assert len(record.now(ConfigChanged)) == known
        await computer.remove_server("b")
        known = len(await record.of(ConfigChanged, known + 1))
        computer.inputs.remove("more")
        assert len(await record.of(ConfigChanged, known + 1)) == known + 1


async def test_servers_added_before_the_boot_start_with_it() -> None:
    computer = Computer("pc", timings=FAST)
    config = server("a")
    await computer.add_or_update_server(config)
    config["name"] = "changed by its owner"
    assert state(computer, "a") is ServerState.STOPPED
    async with computer:
        assert "a.echo" in names(computer)


async def test_what_servers_write_to_stderr_is_kept_over_their_lives_without_secrets() -> None:
    loud = server("loud")
    loud["server_parameters"] = {
        "command": "sh",
        "args": ["-c", 'echo "$KEY" >&2; exit 3'],
        "env": {"KEY": "${input:key}"},
    }
    key = parse_input({"id": "key", "type": "promptString", "default": "canary-51c0"})
    async with running(loud, server("b"), inputs=[key]) as (computer, _):
        assert computer.server_logs("loud")[0] == "${input:key}"
        before = len(computer.server_logs("b"))
        assert "ready" in computer.server_logs("b")
        await computer.restart_server("b")
        assert len(computer.server_logs("b")) > before
        with pytest.raises(ToolExecutionError):
            await computer.add_or_update_server(server("a", "dies-on-start"))
        with pytest.raises(NotFoundError):
            computer.server_logs("a")


async def test_clashes_are_told_as_long_as_they_last() -> None:
    clashing = server("a", prefixed=False), server("b", prefixed=False)
    async with running(*clashing, timings=replace(FAST, order=30)) as (computer, _):  # however late a is
        (clash,) = computer.tool_conflicts
        assert (clash.tool_name, clash.servers) == ("echo", ["a", "b"])
        await computer.stop_server("b")
        assert computer.tool_conflicts == []
