"""Many servers at once: booting, clashing, changing while they run, dying, and nothing left over in the end."""

import asyncio
import contextlib
import gc
import itertools
import json
import os
import signal
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.config.problems import InvalidConfigError
from a2c_smcp.computer.inputs import InputResolver, InputStore
from a2c_smcp.computer.mcp_clients.connection_options import ConnectionOptions
from a2c_smcp.computer.mcp_clients.manager import MCPServerManager
from a2c_smcp.computer.mcp_clients.model import parse_input, parse_server
from a2c_smcp.computer.mcp_clients.server_state import ServerState
from a2c_smcp.computer.watching.events import (
    DesktopChanged,
    FinderChanged,
    RestartOffered,
    ServerStatus,
    ToolHidden,
    ToolInvalid,
    ToolListChanged,
)
from a2c_smcp.errors import (
    BadRequestError,
    InputNotFoundError,
    NotFoundError,
    ServerNotActiveError,
    SMCPError,
    ToolExecutionError,
    ToolNameDuplicatedError,
    VRLSyntaxError,
)
from tests.computer.conftest import start_http_server
from tests.computer.fakes.computers import (
    DEADLINE,
    FAST,
    call,
    code,
    listed,
    names,
    reason,
    recorded,
    running,
    server,
    state,
    text,
)
from tests.computer.fakes.misbehaving import TOOLS
from tests.computer.fakes.processes import eventually, nothing_left_over, servers

RUNNING, FAILED, STOPPED, DISABLED, BACKING_OFF = (
    ServerState.RUNNING,
    ServerState.FAILED,
    ServerState.STOPPED,
    ServerState.DISABLED,
    ServerState.BACKING_OFF,
)


Ours = Callable[[], set[int]]


@pytest.fixture
def ours() -> Ours:
    """The processes that the test started, and that are not reaped yet."""
    before = servers()
    return lambda: servers() - before


async def pid(computer: Computer, name: str) -> int:
    found = json.loads(text(await call(computer, f"{name}.stats")))["pid"]
    assert isinstance(found, int)
    return found


# --- boot


async def test_servers_start_at_the_same_time() -> None:
    async with running(*(server(f"s{n}", "slow", delay=0.1) for n in range(4))) as (computer, record):
        assert [status.state for status in computer.statuses] == [RUNNING] * 4
        events = record.now(ServerStatus)
        before_the_first_ran = itertools.takewhile(lambda event: event.state is not RUNNING, events)
        assert {event.server for event in before_the_first_ran} == {"s0", "s1", "s2", "s3"}
        assert [event.state for event in events].count(RUNNING) == 4


async def test_one_that_hangs_or_fails_breaks_no_other_and_says_why() -> None:
    async with running(
        server("good"),
        {**server("hangs", "silent"), "start_timeout": 2},
        server("dies", "dies-on-start", code=7),
        {**server("gone"), "server_parameters": {"command": "/no/such/command"}},
        timings=replace(FAST, backoff_first=60, backoff_most=60),
    ) as (computer, record):
        assert state(computer, "good") is RUNNING
        assert text(await call(computer, "good.echo", text="hi")) == "hi"
        assert [state(computer, name) for name in ("hangs", "dies", "gone")] == [BACKING_OFF, BACKING_OFF, FAILED]
        assert "no answer within 2 s" in reason(computer, "hangs")
        assert "7" in reason(computer, "dies")
        assert "cannot open the database" in reason(computer, "dies")
        assert reason(computer, "gone")
        assert record.states("dies") == ["starting", "backing_off"]
        await computer.stop_server("dies")
        assert state(computer, "dies") is STOPPED


async def test_the_others_can_be_used_while_one_still_starts() -> None:
    computer = Computer("pc", mcp_servers=[server("good"), server("hangs", "silent")], timings=FAST)
    with nothing_left_over():
        async with recorded(computer) as record, anyio.create_task_group() as tasks:
            tasks.start_soon(computer.boot_up)
            await record.reached("good", RUNNING)
            assert text(await call(computer, "good.echo", text="hi")) == "hi"
            assert state(computer, "hangs") is ServerState.STARTING
            await computer.stop_server("hangs")  # and the boot need not wait for it either
        assert state(computer, "hangs") is STOPPED
        await computer.shutdown()


async def test_a_call_of_a_name_that_nobody_has_says_who_is_still_starting() -> None:
    waiting = {**server("asks"), "disabled": "${input:off}"}
    computer = Computer("pc", mcp_servers=[server("good"), server("hangs", "silent"), waiting], timings=FAST)
    with nothing_left_over():
        async with recorded(computer) as record, anyio.create_task_group() as tasks:
            tasks.start_soon(computer.boot_up)
            await record.reached("good", RUNNING)
            await record.reached("asks", FAILED)
            tasks.start_soon(suppressed, computer.add_or_update_server, server("added", "silent"))
            result = await call(computer, "greet")
            assert (result.meta or {})["error_code"] == 4001
            assert (result.meta or {})["starting"] == ["hangs"]
            why = "Input not found: off (server 'asks' refers to it, and no input has this id)"
            assert (result.meta or {})["down"] == {"asks": why}
            assert text(result) == f"Tool not found: greet (still starting: hangs; server asks does not run: {why})"
            await computer.stop_server("hangs")
            await eventually_starting(computer, ["added"])
            await computer.remove_server("hangs")
            await computer.shutdown()
        assert (await call(computer, "greet")).meta == {"error_code": 4001}


async def suppressed(work: Callable[..., Any], *args: Any) -> None:
    with contextlib.suppress(SMCPError):
        await work(*args)


async def eventually_starting(computer: Computer, expected: list[str]) -> None:
    with anyio.fail_after(DEADLINE):
        while ((await call(computer, "greet")).meta or {}).get("starting") != expected:  # noqa: ASYNC110
            await anyio.sleep(0.01)


async def test_a_change_whose_task_is_cancelled_while_it_is_undone_is_forgotten() -> None:
    async with running(server("a", prefixed=False)) as (computer, _):
        connections = computer._manager._starts.connections
        clashing = server("b", "ignores-term", prefixed=False)
        adding = asyncio.create_task(computer.add_or_update_server(clashing))
        await eventually(lambda: any(each.state is ServerState.STOPPING for each in connections))
        [closing] = [each for each in connections if each.state is ServerState.STOPPING]
        adding.cancel()
        await asyncio.wait({adding})
        assert adding.cancelled()
        await eventually(lambda: closing.state is STOPPED)
        assert closing not in connections
        assert len(connections) == 1


async def test_a_cancelled_boot_leaves_nothing() -> None:
    computer = Computer("pc", mcp_servers=[server("good"), server("hangs", "silent")], timings=FAST)
    with nothing_left_over():
        async with recorded(computer) as record, anyio.create_task_group() as tasks:
            tasks.start_soon(computer.boot_up)
            await record.reached("good", RUNNING)
            tasks.cancel_scope.cancel()
        assert [status.state for status in computer.statuses] == [STOPPED, STOPPED]


async def test_clashes_are_decided_in_config_order_whatever_starts_first(ours: Ours) -> None:
    # The middle one loses to the first, so the last one, which clashes with the middle one only, works.
    first = server("first", "slow", delay=0.2, tool_meta={"echo": {"alias": "x"}}, forbidden_tools=[])
    first["tool_meta"] |= {tool: {"alias": f"first.{tool}"} for tool in server("first")["tool_meta"] if tool != "echo"}
    middle, last = server("middle"), server("last")
    middle["tool_meta"] |= {"echo": {"alias": "x"}, "fail": {"alias": "y"}}
    last["tool_meta"] |= {"fail": {"alias": "y"}}
    async with running(first, middle, last, timings=replace(FAST, order=60)) as (computer, record):
        assert [state(computer, name) for name in ("first", "middle", "last")] == [RUNNING, FAILED, RUNNING]
        assert "ToolMeta.alias" in reason(computer, "middle")
        assert "first" in reason(computer, "middle")
        assert record.states("first")[-1] == record.states("last")[-1] == "running"
        assert names(computer).count("x") == names(computer).count("y") == 1
        assert code(await call(computer, "middle.stats")) == 4001
        assert len(ours()) >= 2


async def test_a_server_that_runs_is_not_failed_by_one_before_it_that_starts_late(tmp_path: Path) -> None:
    # The slow one says nothing until the quick one was tired of waiting.
    slow, quick = server("slow", prefixed=False, after=tmp_path / "go"), server("quick", prefixed=False)
    computer = Computer("pc", mcp_servers=[slow, quick], timings=replace(FAST, order=0.1))
    with nothing_left_over():
        async with recorded(computer) as record, anyio.create_task_group() as tasks:
            tasks.start_soon(computer.boot_up)
            await record.reached("quick", RUNNING)
            (tmp_path / "go").touch()
            await record.reached("slow", FAILED)
        assert record.states("quick") == ["starting", "running"]
        assert [state(computer, name) for name in ("slow", "quick")] == [FAILED, RUNNING]
        assert all(tool in reason(computer, "slow") for tool in ("echo", "sleep", "tool_prefix", "quick"))
        assert json.loads(text(await call(computer, "stats")))["pid"]
        [conflict] = computer.tool_conflicts
        assert len(conflict.tool_names) == len(TOOLS)
        await computer.shutdown()


async def test_a_later_server_waits_for_an_earlier_one_before_it_runs() -> None:
    slow, quick = server("slow", "slow", delay=0.5), server("quick")
    async with running(slow, quick, timings=replace(FAST, order=60)) as (_, record):
        running_now = [event.server for event in record.now(ServerStatus) if event.state is RUNNING]
        assert running_now == ["slow", "quick"]


async def test_a_server_that_dies_while_it_waits_comes_back(tmp_path: Path) -> None:
    slow, frail = server("slow", after=tmp_path / "go"), server("frail", once=tmp_path / "died")
    timings = replace(FAST, order=60, backoff_first=60, backoff_most=60)
    computer = Computer("pc", mcp_servers=[slow, frail], timings=timings)
    with nothing_left_over():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(computer.boot_up)
            connections = computer._manager._starts.connections
            await eventually(lambda: any(each.state is ServerState.BACKING_OFF for each in connections))
            (tmp_path / "go").touch()
        assert state(computer, "frail") is RUNNING
        assert (tmp_path / "died").exists()
        assert text(await call(computer, "frail.echo", text="back")) == "back"
        await computer.shutdown()


async def test_nobody_waits_for_an_earlier_one_that_has_failed_or_was_stopped() -> None:
    computer = Computer(
        "pc",
        mcp_servers=[server("dies", "dies-on-start"), server("hangs", "silent"), server("good")],
        timings=replace(FAST, order=60),
    )
    with nothing_left_over():
        async with recorded(computer) as record, anyio.create_task_group() as tasks:
            tasks.start_soon(computer.boot_up)
            await record.reached("dies", FAILED)
            await computer.stop_server("hangs")
            await record.reached("good", RUNNING)
        await computer.shutdown()


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
async def test_an_invalid_tool_is_hidden_with_a_warning_and_the_others_work(
    era: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(server("a", invalid=1, page=2, protocol=era)) as (computer, record):
        assert len(names(computer)) == len(TOOLS)
        assert text(await call(computer, "a.echo", text="hi")) == "hi"
        hidden = await record.of(ToolInvalid, 2)
        assert [event.tool for event in hidden] == ["schemaless", "number 1"]
        assert hidden[0].problem == "inputSchema: Field required"
        assert "Tool schemaless of server a is hidden" in caplog.text
        await call(computer, "a.add_tool", name="fresh")
        await record.until(lambda: "fresh" in names(computer))
        assert len(record.now(ToolInvalid)) == 2


async def test_two_servers_with_the_same_tools_run_side_by_side_with_a_prefix() -> None:
    first, second = server("a", prefixed=False), server("b", prefixed=False, tool_prefix="b_")
    async with running(first, second) as (computer, _):
        assert [state(computer, name) for name in ("a", "b")] == [RUNNING, RUNNING]
        assert text(await call(computer, "echo", text="1")) == text(await call(computer, "b_echo", text="1")) == "1"
        assert computer.get_config()["servers"]["b"]["tool_prefix"] == "b_"  # type: ignore[typeddict-item]
        assert "tool_prefix" not in computer.get_config()["servers"]["a"]


async def test_an_input_of_a_disabled_or_unstarted_server_is_never_asked_for() -> None:
    off = server("off", disabled=True)
    off["server_parameters"]["env"] = {"K": "${input:key}"}
    rendered_off = server("rendered", disabled="${input:off}")
    inputs = [
        parse_input({"id": "key", "type": "promptString"}),
        parse_input({"id": "off", "type": "pickString", "options": ["true", "false"], "default": "true"}),
    ]
    async with running(off, rendered_off, inputs=inputs) as (computer, record):
        assert [status.state for status in computer.statuses] == [DISABLED, DISABLED]
        assert record.states("off") == []
        with pytest.raises(BadRequestError):
            await computer.start_server("rendered")
    async with running({**off, "disabled": False}, inputs=inputs, auto_connect=False) as (computer, _):
        assert state(computer, "off") is STOPPED
        with pytest.raises(InputNotFoundError):
            await computer.start_server("off")
        assert state(computer, "off") is FAILED
        assert "A2C_INPUT_KEY" in reason(computer, "off")
        computer.inputs.set_value("key", "v")
        await computer.start_server("off")
        assert state(computer, "off") is RUNNING


async def test_a_model_is_as_good_as_a_config_as_written() -> None:
    async with running(parse_server(server("a"))) as (computer, _):  # type: ignore[arg-type]
        assert "a.echo" in names(computer)


async def test_two_servers_of_one_name_are_refused() -> None:
    with pytest.raises(InvalidConfigError, match="another server"):
        Computer("pc", mcp_servers=[server("a"), server("a")])


async def test_booting_twice_is_booting_once() -> None:
    async with running(server("a")) as (computer, record):
        process = await pid(computer, "a")
        await computer.boot_up()
        assert await pid(computer, "a") == process
        assert record.states("a") == ["starting", "running"]


# --- changes at run time


async def test_add_update_and_remove_while_it_runs() -> None:
    async with running(server("a")) as (computer, record):
        await computer.add_or_update_server(server("b"))
        assert "b.echo" in names(computer)
        old = await pid(computer, "b")
        await computer.add_or_update_server(server("b", forbidden_tools=["echo"]))
        assert code(await call(computer, "b.echo")) == 4002
        assert await pid(computer, "b") != old
        await computer.add_or_update_server(server("b", disabled=True))
        assert code(await call(computer, "b.stats")) == 4003
        await computer.add_or_update_server(server("b"))
        assert state(computer, "b") is RUNNING
        await computer.remove_server("b")
        assert code(await call(computer, "b.echo")) == 4001
        assert "b" not in computer.get_config()["servers"]
        assert await pid(computer, "a")
        with pytest.raises(NotFoundError):
            await computer.remove_server("b")
        assert record.states("b")[-1] == "stopped"


REFUSED: list[tuple[dict[str, Any], type[SMCPError]]] = [
    (server("b", tool_meta={"echo": {"alias": "a.echo"}}), ToolNameDuplicatedError),
    (server("b", tool_meta={"echo": {"alias": "sleep"}}), ToolNameDuplicatedError),
    ({**server("b"), "server_parameters": {"command": "/no/such/command"}}, ToolExecutionError),
    (server("b", "dies-on-start"), ToolExecutionError),
    (server("b", vrl=". = nonsense("), VRLSyntaxError),
    (server("b", disabled="${input:nobody}"), InputNotFoundError),
    (server("b", protocol="1999"), InvalidConfigError),
    ({**server("b"), "unknown": 1}, InvalidConfigError),
]


@pytest.mark.parametrize("known", [True, False])
async def test_a_refused_config_changes_nothing(known: bool, ours: Ours) -> None:
    async with running(server("a"), *([server("b")] if known else [])) as (computer, record):
        await record.of(DesktopChanged)  # the windows that both have in common
        await listed(computer)

        def seen() -> tuple[object, ...]:
            # What the two that run show may be announced once more, when it was read and subscribed to.
            own = [event for event in record.changes if not isinstance(event, DesktopChanged | FinderChanged)]
            return names(computer), computer.get_config(), computer.statuses, own

        before = seen()
        process = await pid(computer, "b") if known else None
        for config, error in REFUSED:
            with pytest.raises(error):
                await computer.add_or_update_server(config)
        assert seen() == before
        if known:
            assert await pid(computer, "b") == process
        await eventually(lambda: len(ours()) == (2 if known else 1))  # a refused one that was started has to end


@pytest.mark.parametrize("disabled", [False, True, "${input:off}"])
async def test_a_vrl_program_that_does_not_compile_is_refused_when_the_config_is_loaded(disabled: bool | str) -> None:
    bad = server("b", vrl=". = nonsense(", disabled=disabled)
    with pytest.raises(InvalidConfigError, match="server 'b': vrl: VRL syntax error: error"):
        Computer("laptop", mcp_servers=[server("a"), bad])
    async with running(server("a")) as (computer, _):
        with pytest.raises(VRLSyntaxError):
            await computer.add_or_update_server(bad)
    Computer("laptop", mcp_servers=[server("b", vrl="${input:program}", disabled=True)])


async def test_the_same_config_again_changes_nothing() -> None:
    async with running(server("a")) as (computer, record):
        await record.of(DesktopChanged)
        process, events = await pid(computer, "a"), len(record.changes)
        await computer.add_or_update_server(server("a"))
        assert await pid(computer, "a") == process
        assert len(record.changes) == events


async def test_without_auto_reconnect_an_update_is_kept_and_offered_and_a_crash_ends_in_failed() -> None:
    async with running(server("a"), auto_reconnect=False) as (computer, record):
        process = await pid(computer, "a")
        await computer.add_or_update_server(server("a", forbidden_tools=["echo"]))
        assert await record.of(RestartOffered) == [RestartOffered("a", "its config was updated")]
        assert await pid(computer, "a") == process
        assert computer.get_config()["servers"]["a"]["forbidden_tools"] == ["echo"]
        await computer.restart_server("a")
        assert code(await call(computer, "a.echo")) == 4002
        assert code(await call(computer, "a.crash", code=9)) == 4003
        status = await record.reached("a", FAILED)
        assert "9" in (status.reason or "")
        assert code(await call(computer, "a.stats")) == 4003
        await computer.start_server("a")
        assert await pid(computer, "a")


async def test_without_auto_connect_nothing_starts_by_itself(ours: Ours) -> None:
    async with running(server("a"), auto_connect=False) as (computer, _):
        await computer.add_or_update_server(server("b"))
        assert [status.state for status in computer.statuses] == [STOPPED, STOPPED]
        assert ours() == set()
        await computer.start_server("b")
        assert "b.echo" in names(computer)
        await computer.add_or_update_server(server("b", forbidden_tools=["echo"]))
        assert "b.echo" not in names(computer)


async def test_stop_start_restart() -> None:
    async with running(server("a")) as (computer, record):
        first = await pid(computer, "a")
        await computer.restart_server("a")
        second = await pid(computer, "a")
        await computer.stop_server("a")
        await computer.stop_server("a")
        assert names(computer) == []
        await computer.start_server("a")
        await computer.start_server("a")
        assert len({first, second, await pid(computer, "a")}) == 3
        assert record.states("a")[-4:] == ["stopping", "stopped", "starting", "running"]
        for operation in (computer.start_server, computer.stop_server, computer.restart_server):
            with pytest.raises(NotFoundError):
                await operation("nobody")
    with pytest.raises(BadRequestError):
        await computer.start_server("a")


async def test_a_changed_input_offers_a_restart_that_takes_it_over() -> None:
    config = server("a")
    config["default_tool_meta"] = {"auto_apply": True, "tags": ["${input:tag}"]}
    inputs = [parse_input({"id": "tag", "type": "promptString", "default": "old"})]
    async with running(config, server("b"), inputs=inputs) as (computer, record):
        computer.inputs.set_value("tag", "new")
        assert await record.of(RestartOffered) == [RestartOffered("a", "the input 'tag' changed")]
        assert "old" in str(computer.get_available_tools())
        await computer.restart_server("a")
        assert "new" in str(computer.get_available_tools())
        assert "old" not in str(computer.get_available_tools())


async def test_removing_interrupts_a_start_that_hangs(ours: Ours) -> None:
    async with running(server("a")) as (computer, _), anyio.create_task_group() as tasks:
        failures: list[SMCPError] = []

        async def add() -> None:
            try:
                await computer.add_or_update_server(server("a", "silent"))
            except SMCPError as error:
                failures.append(error)

        tasks.start_soon(add)
        await eventually(lambda: len(ours()) == 2)
        with anyio.fail_after(20):
            await computer.remove_server("a")
        assert isinstance(failures[0], ServerNotActiveError)
        assert computer.statuses == []


async def test_shutting_down_interrupts_the_start_of_a_new_one(ours: Ours) -> None:
    computer = Computer("pc", timings=FAST)
    with nothing_left_over():
        async with anyio.create_task_group() as tasks:
            await computer.boot_up()

            async def add() -> None:
                with pytest.raises(ServerNotActiveError):
                    await computer.add_or_update_server(server("a", "silent"))

            tasks.start_soon(add)
            await eventually(lambda: len(ours()) == 1)
            with anyio.fail_after(20):
                await computer.shutdown()
        assert computer.statuses == []


# --- tools that come and go


async def test_tools_follow_list_changed_and_only_a_new_tool_in_the_way_is_hidden() -> None:
    async with running(server("a"), server("b")) as (computer, record):
        await call(computer, "a.add_tool", name="fresh")
        await record.until(lambda: "fresh" in names(computer) and not computer._happened.is_waiting)
        changes = len(record.now(ToolListChanged))
        await call(computer, "b.add_tool", name="fresh")
        (hidden,) = await record.of(ToolHidden)
        assert hidden.error.servers == ["a", "b"]
        assert len(record.now(ToolListChanged)) == changes
        await call(computer, "a.remove_tool", name="fresh")
        await record.of(ToolListChanged, changes + 1)
        assert names(computer).count("fresh") == 1
        await call(computer, "b.remove_tool", name="fresh")
        await record.until(lambda: "fresh" not in names(computer))
        assert code(await call(computer, "fresh")) == 4001


async def test_a_crash_is_restarted_and_the_tools_follow() -> None:
    async with running(server("a"), server("b")) as (computer, record):
        process = await pid(computer, "a")
        await listed(computer)
        changes = len(record.now(ToolListChanged))
        os.kill(process, signal.SIGKILL)
        status = await record.reached("a", ServerState.BACKING_OFF)
        assert "SIGKILL" in (status.reason or "")
        assert status.restarts == 1
        assert (await record.reached("a", RUNNING, 2)).restarts == 1
        assert await pid(computer, "a") != process
        await record.of(ToolListChanged, changes + 1)  # perhaps once for its going and its coming back
        assert record.states("a")[-3:] == ["backing_off", "starting", "running"]
        assert record.states("b") == ["starting", "running"]


async def test_one_that_always_dies_is_given_up() -> None:
    async with running(server("a", "dies-on-call"), max_restarts=2) as (computer, record):
        for times in (1, 2, 3):
            await record.reached("a", RUNNING, times)
            assert code(await call(computer, "a.echo")) == 4003
        await record.reached("a", FAILED)
        assert names(computer) == []


@pytest.fixture
def fresh_http_server() -> Iterator[str]:
    """One of its own: tools that other tests add would clash."""
    with start_http_server() as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        process.communicate(timeout=20)  # closes its stdin


async def test_servers_over_http_beside_one_over_stdio(fresh_http_server: str) -> None:
    def web(name: str, kind: str, path: str) -> dict[str, Any]:
        parameters = {"url": fresh_http_server + path}
        return {**server(name), "type": kind, "protocol": "auto", "server_parameters": parameters}

    servers = [web("new", "streamable", "/mcp"), web("old", "sse", "/sse"), server("local")]
    async with running(*servers) as (computer, record):
        assert [status.state for status in computer.statuses] == [RUNNING] * 3
        for name in ("new", "old", "local"):
            assert text(await call(computer, f"{name}.echo", text=name)) == name
            assert code(await call(computer, f"{name}.sleep", 0.2, seconds=30)) == 4004
        await call(computer, "new.add_tool", name="from-afar")
        await record.until(lambda: "from-afar" in names(computer))
        (hidden,) = await record.of(ToolHidden)  # both speak to the same server
        assert set(hidden.error.servers) == {"new", "old"}


async def test_a_manager_on_its_own_initializes_anew_and_reads_tools_again_when_told() -> None:
    manager = MCPServerManager(InputResolver(InputStore()), ConnectionOptions(timings=FAST))

    def shown() -> list[str]:
        return [tool["name"] for tool in manager.serving.catalogue.tools]

    with nothing_left_over():
        await manager.initialize([server("a", bare=1), server("b")])
        await manager.call_tool(manager.validate_tool_call("a.add_tool"), {"name": "unannounced"}, DEADLINE)
        assert "unannounced" not in shown()
        await manager.refresh_tool_mapping()
        assert "unannounced" in shown()
        await manager.initialize([server("c")])
        assert {name.partition(".")[0] for name in shown()} == {"c"}
        assert list(manager.book.connections) == ["c"]
        await manager.stop_all()
    assert shown() == []


# --- nothing left over


async def test_forty_starts_and_stops_leave_nothing() -> None:
    computer = Computer("pc", mcp_servers=[server("a")], timings=FAST)
    await computer.boot_up()
    await computer.shutdown()
    with nothing_left_over():
        for _ in range(20):
            await computer.boot_up()
            assert state(computer, "a") is RUNNING
            await computer.shutdown()
        await computer.boot_up()
        for _ in range(20):
            await computer.stop_server("a")
            await computer.start_server("a")
        await computer.shutdown()


async def test_a_computer_that_is_dropped_is_collected_and_its_servers_stop(ours: Ours) -> None:
    before = asyncio.all_tasks()
    computer = Computer("pc", mcp_servers=[server("a")], timings=FAST)
    await computer.boot_up()
    assert len(ours()) == 1
    seen = weakref.ref(computer)
    del computer
    gc.collect()
    assert seen() is None
    await eventually(lambda: ours() == set() and asyncio.all_tasks() <= before, DEADLINE)


async def test_a_computer_that_was_shut_down_is_collected() -> None:
    async with Computer("pc", mcp_servers=[server("a")], timings=FAST) as computer:
        seen = weakref.ref(computer)
    del computer
    gc.collect()
    assert seen() is None
