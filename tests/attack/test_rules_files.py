"""Attacks on the rules file of a computer that runs: whoever can touch the file for a moment lifts no deny by that."""

import json
import os
import stat
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from a2c_smcp.agent import AsyncSMCPAgentClient
from tests.attack.harness import ECHO, honest_pair, target
from tests.attack.processes import A2C, DEADLINE, Started, started

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="who may write a file is not known there"),
]
DENY = '[[rules]]\neffect = "deny"\ntool = "{0}"\nreason = "no {0}"\n\n'
BOTH = DENY.format("echo") + DENY.format("sleep")
#: With less than this between the two ends, two reads half a second apart cannot both see the short file.
_SETTLES = 0.5


@dataclass
class Attacked:
    """A computer with two denies, and an agent that tries what they forbid."""

    rules: Path
    computer: Started
    agent: AsyncSMCPAgentClient

    async def gets_through(self, tool: str = "echo") -> bool:
        with anyio.fail_after(DEADLINE):  # an agent must not wait for a computer that reads its rules
            arguments = {"text": "x", "seconds": 0}
            return not (await self.agent.call_tool("pc", tool, arguments, timeout=30)).is_error

    async def until(self, expected: bool) -> None:
        with anyio.fail_after(DEADLINE):
            while await self.gets_through() is not expected:  # noqa: ASYNC110 - a state
                await anyio.sleep(0.02)

    async def says(self, pattern: str) -> None:
        await anyio.to_thread.run_sync(self.computer.says, pattern)


@asynccontextmanager
async def attacked(folder: Path) -> AsyncIterator[Attacked]:
    place = folder / "rules"
    place.mkdir(mode=0o700)
    rules, config = place / "rules.toml", folder / "attacked.json"
    rules.write_text(BOTH)
    rules.chmod(0o600)
    echo: dict[str, Any] = {"name": "echo", "type": "stdio", "default_tool_meta": {"auto_apply": True}}
    config.write_text(
        json.dumps([{**echo, "server_parameters": {"command": sys.executable, "args": ["-I", "-S", ECHO]}}])
    )
    with target(folder) as server, honest_pair(server) as pair:
        run = [A2C, "computer", "run", "--headless", "--config", str(config), "--rules", str(rules)]
        where = ["--url", server.url, "--office", "attacked", "--name", "pc"]
        with started(["env", f"XDG_STATE_HOME={folder / 'state'}", *run, *where], folder / "pc.log") as computer:
            await anyio.to_thread.run_sync(computer.says, "is in office")
            async with AsyncSMCPAgentClient(server.url, name="agent", live=False) as agent:
                await agent.join_office("attacked")
                found = Attacked(rules, computer, agent)
                # When watching begins is not to be seen: only that a change is heard.
                await _heard(found)
                assert not await found.gets_through()
                yield found
        phase = await anyio.to_thread.run_sync(lambda: pair.watch(lambda: None, at_least=1))
        assert not phase.failures and not phase.departures


async def _heard(found: Attacked) -> None:
    with anyio.fail_after(DEADLINE):
        while "the rules file is read again" not in found.computer.log.read_text():
            found.rules.write_text(f"{BOTH}# {time.monotonic()}\n")
            await anyio.sleep(0.3)
    found.rules.write_text(BOTH)


async def test_an_editor_that_empties_the_file_first_lifts_no_deny(tmp_path: Path) -> None:
    async with attacked(tmp_path) as found:
        passed = 0

        async def try_it() -> None:
            nonlocal passed
            while True:
                passed += await found.gets_through()

        rounds: list[int] = []
        until = time.monotonic() + DEADLINE
        while len(rounds) < 3 and (not rounds or time.monotonic() < until):
            passed, began = 0, time.monotonic()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(try_it)
                with found.rules.open("w") as file:  # as an editor saves: first it empties the file
                    await anyio.sleep(0.33)
                    file.write(BOTH)
                seconds = time.monotonic() - began
                await anyio.sleep(1)
                tasks.cancel_scope.cancel()
            if seconds < _SETTLES:  # a busy machine may have kept the file short for too long
                rounds.append(passed)
            await found.until(False)
        assert not any(rounds)
        # A person who takes the denies away gets what they want, and everybody is told.
        found.rules.write_text("")
        await found.until(True)
        await found.says("2 denies are gone from the rules file")


async def test_a_fifo_in_place_of_the_file_stops_no_reloading(tmp_path: Path) -> None:
    async with attacked(tmp_path) as found:
        os.mkfifo(found.rules.with_name("fifo"))
        found.rules.with_name("fifo").rename(found.rules)
        await found.says("is not a regular file")
        assert not await found.gets_through()
        new = found.rules.with_name("new")
        new.write_text(DENY.format("sleep"))
        new.rename(found.rules)
        await found.until(True)
        assert not await found.gets_through("sleep")
        await found.says("1 deny is gone")


def _world_writable(rules: Path) -> None:
    rules.write_text("")
    rules.chmod(0o666)


def _in_a_shared_folder(rules: Path) -> None:
    rules.parent.chmod(0o777)
    rules.with_name("new").write_text("")
    rules.with_name("new").rename(rules)


def _of_somebody_else(rules: Path) -> None:
    rules.with_name("new").write_text("")
    os.chown(rules.with_name("new"), 65534, -1)
    rules.with_name("new").rename(rules)


@pytest.mark.parametrize(
    ("attack", "why"),
    [
        (_world_writable, "may be changed by others"),
        (_in_a_shared_folder, "may be replaced by others"),
        pytest.param(
            _of_somebody_else,
            "belongs to another user",
            marks=pytest.mark.skipif(getattr(os, "geteuid", int)() != 0, reason="only root gives files away"),
        ),
    ],
)
async def test_a_file_that_others_may_write_is_not_used_and_the_old_rules_stay(
    tmp_path: Path, attack: Callable[[Path], None], why: str
) -> None:
    async with attacked(tmp_path) as found:
        attack(found.rules)
        await found.says(why)
        assert not await found.gets_through() and not await found.gets_through("sleep")
        # Nor does a computer start with it, or a check say that it is fine.
        checked = await anyio.run_process([A2C, "computer", "validate", str(found.rules)], check=False)
        assert checked.returncode == 1 and why in (checked.stdout + checked.stderr).decode()


def test_nobody_else_may_enter_the_folders_that_we_make(tmp_path: Path) -> None:
    """Also those that an earlier release made for everybody to read."""
    state, rules = tmp_path / "home" / "state", tmp_path / "none.toml"
    (state / "a2c-smcp" / "record").mkdir(mode=0o755, parents=True)
    rules.write_text("")
    config = tmp_path / "config.json"
    config.write_text(
        json.dumps(
            [
                {
                    "name": "echo",
                    "type": "stdio",
                    "server_parameters": {"command": sys.executable, "args": ["-I", "-S", ECHO]},
                }
            ]
        )
    )
    with target(tmp_path) as server:
        run = [A2C, "computer", "run", "--headless", "--config", str(config), "--url", server.url, "--office", "o"]
        state_home = f"XDG_STATE_HOME={state}"
        shell = ["sh", "-c", 'umask 000; exec "$@"', "sh", "env", state_home]
        with started([*shell, *run, "--name", "pc"], tmp_path / "pc.log") as computer:
            computer.says("is in office")
        computer.ended()
    ours = state / "a2c-smcp"
    modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in (ours, *ours.iterdir()) if each.is_dir()}
    assert {"rules", "record", "tools"} <= set(modes)
    assert set(modes.values()) == {0o700}, modes
