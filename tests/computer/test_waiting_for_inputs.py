"""One missing input keeps the servers that need it down, and nothing else."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.decisions.book import Accepted, Declined
from a2c_smcp.computer.mcp_clients.model import parse_input
from a2c_smcp.computer.mcp_clients.server_state import ServerState
from a2c_smcp.computer.watching.events import DecisionAsked
from a2c_smcp.errors import ServerNotActiveError
from tests.computer.fakes.computers import DEADLINE, FAST, Record, call, code, reason, recorded, server, state, text
from tests.computer.fakes.processes import nothing_left_over

KEY = parse_input({"id": "key", "type": "promptString"})
OFF = parse_input({"id": "off", "type": "pickString", "options": ["true", "false"]})
STARTING, RUNNING, DISABLED, FAILED, STOPPED = (
    ServerState.STARTING,
    ServerState.RUNNING,
    ServerState.DISABLED,
    ServerState.FAILED,
    ServerState.STOPPED,
)


def needing(name: str, input_id: str = "key", **more: Any) -> dict[str, Any]:
    config = server(name, **more)
    config["server_parameters"]["env"] = {"K": f"${{input:{input_id}}}"}
    return config


@asynccontextmanager
async def booting(*servers: dict[str, Any]) -> AsyncIterator[tuple[Computer, Record]]:
    """A Computer that boots beside the test, with somebody there who is asked, and a record of what happened."""
    with nothing_left_over():
        computer = Computer("pc", mcp_servers=servers, inputs=[KEY, OFF], timings=FAST)
        async with recorded(computer) as record:
            with computer.decisions.attend("browser"):
                boot = asyncio.create_task(computer.boot_up())
                try:
                    with anyio.fail_after(DEADLINE):
                        await computer.ready()
                    yield computer, record
                    with anyio.fail_after(DEADLINE):
                        await boot
                finally:
                    boot.cancel()
                    await asyncio.wait({boot})
                    await computer.shutdown()


def answer(computer: Computer, value: Any) -> None:
    (decision,) = computer.decisions.pending
    computer.decisions.answer(decision.id, Accepted(value), by="browser")


async def test_the_others_run_and_the_one_that_waits_says_for_what() -> None:
    async with booting(needing("first"), server("second"), needing("third")) as (computer, record):
        assert [state(computer, name) for name in ("first", "second", "third")] == [STARTING, RUNNING, STARTING]
        assert reason(computer, "first") == reason(computer, "third") == "waits for input 'key'"
        assert [status.waits_for for status in computer.statuses] == ["key", None, "key"]
        assert text(await call(computer, "second.echo", text="on")) == "on"
        not_yet = await call(computer, "first.echo", text="on")
        assert code(not_yet) == 4001
        assert (not_yet.meta or {})["starting"] == ["first", "third"]
        answer(computer, "v")
        for name in ("first", "third"):
            await record.reached(name, RUNNING)
            assert text(await call(computer, f"{name}.echo", text="on")) == "on"
        assert [status.reason for status in computer.statuses] == [None] * 3


async def test_other_servers_are_added_stopped_started_and_restarted_meanwhile() -> None:
    async with booting(needing("waits"), server("other")) as (computer, _):
        with anyio.fail_after(DEADLINE):
            await computer.add_or_update_server(server("new"))
            await computer.stop_server("other")
            assert state(computer, "other") is STOPPED
            await computer.start_server("other")
            await computer.restart_server("other")
            await computer.remove_server("new")
        assert (state(computer, "waits"), state(computer, "other")) == (STARTING, RUNNING)
        answer(computer, "v")


async def test_a_server_that_waits_can_be_stopped_and_then_nobody_is_asked_any_more() -> None:
    async with booting(needing("waits")) as (computer, _):
        with anyio.fail_after(DEADLINE):
            await computer.stop_server("waits")
        assert (state(computer, "waits"), reason(computer, "waits")) == (STOPPED, "")
        assert computer.decisions.pending == ()


async def test_an_input_that_is_not_given_fails_the_servers_that_need_it() -> None:
    async with booting(needing("waits"), server("other")) as (computer, record):
        (decision,) = computer.decisions.pending
        computer.decisions.answer(decision.id, Declined(), by="browser")
        await record.reached("waits", FAILED)
        assert "not given" in reason(computer, "waits")
        assert computer.statuses[0].waits_for is None
        assert state(computer, "other") is RUNNING


async def test_whether_a_server_is_disabled_may_be_what_a_person_is_asked() -> None:
    async with booting(server("a", disabled="${input:off}"), server("b")) as (computer, record):
        assert (state(computer, "a"), reason(computer, "a")) == (STARTING, "waits for input 'off'")
        answer(computer, "true")
        await record.reached("a", DISABLED)


async def test_a_server_that_runs_goes_on_while_its_restart_waits() -> None:
    async with booting(server("a"), server("b")) as (computer, record):
        update = asyncio.create_task(computer.add_or_update_server(needing("a")))
        await record.of(DecisionAsked)
        assert (state(computer, "a"), reason(computer, "a")) == (RUNNING, "")
        assert text(await call(computer, "a.echo", text="on")) == "on"
        with anyio.fail_after(DEADLINE):
            await computer.restart_server("b")
            answer(computer, "v")
            await update


async def test_another_config_is_taken_at_once_in_the_place_of_one_that_waits() -> None:
    async with booting(needing("waits"), server("other")) as (computer, _):
        with anyio.fail_after(DEADLINE):
            await computer.add_or_update_server(server("waits"))
        assert (state(computer, "waits"), reason(computer, "waits")) == (RUNNING, "")
        assert computer.decisions.pending == ()
        assert text(await call(computer, "waits.echo", text="on")) == "on"


async def test_a_server_that_is_being_added_and_waits_can_be_added_with_another_config() -> None:
    async with booting(server("other")) as (computer, record):
        first = asyncio.create_task(computer.add_or_update_server(needing("new")))
        await record.of(DecisionAsked)
        with anyio.fail_after(DEADLINE):
            await computer.add_or_update_server(server("new"))
            with pytest.raises(ServerNotActiveError):
                await first
        assert state(computer, "new") is RUNNING
        assert computer.decisions.pending == ()
