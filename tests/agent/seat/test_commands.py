"""`a2c agent` while a host's `a2c mcp` has the office's seat: it goes through it."""

import json
import os
import signal
from pathlib import Path

import anyio
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream

from a2c_smcp.agent import LinkOptions
from tests.agent.conftest import MakeAgent, MakeComputer
from tests.agent.seat.conftest import MakeShared, holder_pid, holding
from tests.agent.test_cli import DEADLINE, a2c, env, running
from tests.server.harness import eventually

__all__ = ["env"]


async def test_a_live_office_is_looked_at_and_used_through_its_seat(
    runtime: Path, env: dict[str, str], link: LinkOptions, office: str, make_computer: MakeComputer
) -> None:
    await make_computer()
    async with holding(link, office) as holder:
        await eventually(lambda: holder._state.joined)
        done = await a2c(env, "room")
        assert (done.returncode, done.stderr) == (0, b"")
        assert done.stdout.decode().split()[2:] == ["agent", "seat", "computer", "laptop"]
        done = await a2c(env, "call", "laptop", "echo", "text=hi")
        assert (done.returncode, done.stdout.strip()) == (0, b"hi")
        assert holder._state.joined


async def test_without_a_seat_a_command_takes_it_for_itself_and_leaves_nothing_behind(
    runtime: Path, env: dict[str, str], make_computer: MakeComputer
) -> None:
    await make_computer()
    done = await a2c(env, "room")
    assert "ada" in done.stdout.decode()
    assert list((runtime / "a2c").iterdir()) == []


async def test_a_seat_that_a_stranger_has_is_a_refusal_as_ever(
    runtime: Path, env: dict[str, str], make_agent: MakeAgent
) -> None:
    await make_agent(name="stranger")
    done = await a2c(env, "room")
    assert done.returncode == 3
    assert b"4101" in done.stderr and b"stranger" in done.stderr


@pytest.mark.parametrize("others_go_on", [True, False])
async def test_watch_goes_on_when_the_holder_is_killed(
    make_shared: MakeShared, env: dict[str, str], make_computer: MakeComputer, others_go_on: bool
) -> None:
    await make_computer("first")
    ada = await make_shared("ada")
    holder = holder_pid(ada)
    assert holder is not None
    async with running(env, "watch", "--json") as watch:
        assert watch.stdout is not None
        lines = BufferedByteReceiveStream(watch.stdout)

        async def until(event: str) -> dict[str, object]:
            with anyio.fail_after(DEADLINE):
                while True:
                    line = json.loads(await lines.receive_until(b"\n", 65536))
                    if line["event"] == event:
                        return dict(line)

        assert (await until("present"))["computer"] == "first"
        if not others_go_on:
            await ada.close()
        os.kill(holder, signal.SIGKILL)
        await until("joined")
        await make_computer("second")
        assert (await until("enter_office"))["computer"] == "second"
        if not others_go_on:
            await ada.open()  # so that the new holder is ended with the test
