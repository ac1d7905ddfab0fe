"""Config files that change while a Computer runs. The command around it is in `test_headless.py`."""

import json
import os
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from watchfiles import awatch

from a2c_smcp.computer.cli.followed_files import FollowedFiles
from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.config.files import load_config_files
from a2c_smcp.computer.decisions.book import Accepted
from a2c_smcp.computer.mcp_clients.server_state import ServerState
from tests.computer.fakes.computers import FAST, call, names, recorded, server, state, text

PATIENT = replace(FAST, backoff_first=60, backoff_most=60)
"""What does not start is not tried again before the test is over."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config.json"


def write(file: Path, *servers: dict[str, Any], **more: Any) -> str:
    """As an editor does: another file in the place of the old one."""
    new = file.with_suffix(".new")
    new.write_text(json.dumps({"servers": list(servers), **more}))
    new.rename(file)
    return str(file)


async def test_a_changed_input_restarts_who_refers_to_it_and_a_refused_config_leaves_the_old_one(file: Path) -> None:
    def definition(default: str) -> dict[str, Any]:
        return {"id": "count", "type": "promptString", "default": default}

    referring = server("a")
    referring["server_parameters"]["args"].append("resources=${input:count}")
    write(file, referring, server("b"), inputs=[definition("1")])
    files = load_config_files(file)
    computer = Computer("pc", inputs=files.inputs, mcp_servers=files.servers, timings=FAST)
    async with computer:
        followed = FollowedFiles(computer, [file], files)
        before = [text(await call(computer, f"{name}.stats")) for name in "ab"]
        pids = [json.loads(stats)["pid"] for stats in before]

        write(file, referring, server("b"), inputs=[definition("2")])
        await followed.reload()
        changed = [json.loads(text(await call(computer, f"{name}.stats")))["pid"] for name in "ab"]
        assert changed[0] != pids[0]
        assert changed[1] == pids[1]

        write(file, server("a", "dies-on-start"), server("b", disabled=True), server("c", "dies-on-start"))
        await followed.reload()
        assert json.loads(text(await call(computer, "a.stats")))["pid"] == changed[0]
        assert state(computer, "b") is ServerState.DISABLED
        assert [status.server for status in computer.statuses] == ["a", "b", "c"]
        assert computer.get_config()["inputs"] == []

        write(file, server("a"), server("c"))  # what was refused is tried again when the file changes
        await followed.reload()
        assert {"a.echo", "c.echo"} <= set(names(computer))


SETTLES = "a2c_smcp.computer.cli.followed_files.SETTLES"


async def test_a_config_that_lacks_its_rules_for_a_moment_lifts_no_deny(
    file: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An editor may write the servers of a file first, and the rules behind them a moment later."""
    config = f'[mcp_servers]\n{" " * 10_000}\n[[rules]]\neffect = "deny"\ntool = "echo"\n'
    path = file.with_suffix(".toml")
    path.write_text(config)
    files = load_config_files(path)
    async with Computer("pc", mcp_servers=files.servers, timings=FAST) as computer:
        rules = computer.decisions.rules
        rules.use_config(files.rules)
        followed = FollowedFiles(computer, [path], files)
        [deny] = rules.list.in_configs
        monkeypatch.setattr(SETTLES, 2.0)  # long, for a busy machine
        path.write_text(config[:5_000])
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(followed.reload)
            await anyio.sleep(0.2)
            assert list(rules.list.in_configs) == [deny]
            path.write_text(config)
            tasks.start_soon(followed.reload)
        assert list(rules.list.in_configs) == [deny] and "gone" not in caplog.text
        # What forbids more counts at once, and what a person takes away counts after a moment.
        monkeypatch.setattr(SETTLES, 60.0)
        path.write_text(config + '[[rules]]\neffect = "deny"\ntool = "sleep"\n')
        with anyio.fail_after(30):
            await followed.reload()
        assert len(rules.listed()) == 2
        monkeypatch.setattr(SETTLES, 0.1)
        path.write_text(config[:5_000])
        await followed.reload()
        assert "2 denies are gone from the config files" in caplog.text and not rules.has_rules


async def test_following_ends_as_soon_as_it_is_cancelled(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # How long a thread that nobody stops watches after the last change: its own 5 s are little on a busy machine.
    monkeypatch.setattr("a2c_smcp.computer.utils.following.awatch", partial(awatch, rust_timeout=100_000))
    write(file, server("a"))
    files = load_config_files(file)
    async with Computer("pc", mcp_servers=files.servers, timings=FAST) as computer:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(FollowedFiles(computer, [file], files).follow)
            await eventually_followed(computer, file)
            cancelled = time.monotonic()
            tasks.cancel_scope.cancel()
        assert time.monotonic() - cancelled < 50


async def eventually_followed(computer: Computer, file: Path) -> None:
    """When watching begins is not to be seen; a change from before that goes unnoticed."""
    with anyio.fail_after(30):
        while "b.echo" not in names(computer):
            write(file, server("a"), server("b"))
            await anyio.sleep(0.5)


async def test_prefixes_are_kept_when_the_files_change(file: Path) -> None:
    write(file, server("a", prefixed=False), server("b", prefixed=False))
    files = load_config_files(file, prefix_tools=True)
    async with Computer("pc", mcp_servers=files.servers, timings=FAST) as computer:
        followed = FollowedFiles(computer, [file], files, prefix_tools=True)
        assert {"a_echo", "b_echo"} <= {*names(computer)}
        write(file, server("a", prefixed=False), server("c", prefixed=False))
        await followed.reload()
        assert {"a_echo", "c_echo"} <= {*names(computer)}
        assert "b_echo" not in names(computer)


async def test_a_server_may_be_renamed(file: Path) -> None:
    write(file, server("a", prefixed=False))
    files = load_config_files(file)
    async with Computer("pc", mcp_servers=files.servers, timings=FAST) as computer:
        write(file, server("b", prefixed=False))
        await FollowedFiles(computer, [file], files).reload()
        assert [status.server for status in computer.statuses] == ["b"]
        assert "echo" in names(computer)


async def test_a_server_that_failed_is_started_again_when_the_file_is_touched_or_changed(file: Path) -> None:
    late, parameters = server("late"), server("late")["server_parameters"]
    flag = file.with_name("up")
    script = 'test -e "$0" || exit 1; exec "$@"'
    late["server_parameters"] = {
        "command": "/bin/sh",
        "args": ["-c", script, str(flag), parameters["command"], *parameters["args"]],
    }
    write(file, late)
    files = load_config_files(file)
    async with Computer("pc", mcp_servers=files.servers, timings=PATIENT) as computer:
        followed = FollowedFiles(computer, [file], files)
        assert state(computer, "late") is ServerState.BACKING_OFF
        flag.touch()
        await followed.reload()  # another file of the folder has changed
        assert state(computer, "late") is ServerState.BACKING_OFF
        os.utime(file, ns=(0, 0))
        await followed.reload()
        assert "late.echo" in names(computer)

        pid = json.loads(text(await call(computer, "late.stats")))["pid"]
        os.utime(file, ns=(1, 1))
        await followed.reload()
        assert json.loads(text(await call(computer, "late.stats")))["pid"] == pid


async def test_what_became_of_a_server_that_does_not_start_is_said(file: Path) -> None:
    write(file, server("runs"), server("failed", "dies-on-start"))
    files = load_config_files(file)
    async with Computer("pc", mcp_servers=files.servers, timings=PATIENT) as computer:
        followed = FollowedFiles(computer, [file], files)
        write(file, server("runs", "dies-on-start"), server("failed", "dies-on-start"), server("new", "dies-on-start"))
        outcomes = await followed.take_over(followed.read())
        assert {name: outcome.partition(":")[0] for name, outcome in outcomes.items()} == {
            "runs": "stays as it was",
            "failed": "does not start",
            "new": "does not start",
        }
        assert state(computer, "new") is ServerState.BACKING_OFF  # as at the start of the computer
        write(file, server("runs"), server("failed", "dies-on-start"))
        await followed.take_over(followed.read())
        assert "new" not in {status.server for status in computer.statuses}


async def test_a_server_of_the_files_that_waits_for_an_input_holds_up_no_later_change(file: Path) -> None:
    waits = server("waits")
    waits["server_parameters"]["env"] = {"K": "${input:key}"}
    key = {"id": "key", "type": "promptString"}
    write(file, server("a"))
    files = load_config_files(file)
    computer = Computer("pc", mcp_servers=files.servers, timings=FAST)
    async with computer, recorded(computer) as record, anyio.create_task_group() as tasks:
        with computer.decisions.attend("browser"):
            tasks.start_soon(FollowedFiles(computer, [file], files).follow)
            with anyio.fail_after(60):
                while not computer.decisions.pending:  # until the files are watched
                    write(file, server("a"), waits, inputs=[key])
                    await anyio.sleep(0.5)
            write(file, server("a"), waits, server("late"), inputs=[key])
            await record.reached("late", ServerState.RUNNING)
            (decision,) = computer.decisions.pending
            computer.decisions.answer(decision.id, Accepted("v"), by="browser")
            await record.reached("waits", ServerState.RUNNING)

            again = server("again")
            again["server_parameters"]["env"] = {"K": "${input:other}"}
            other = {"id": "other", "type": "promptString"}
            write(file, server("a"), again, inputs=[other])
            await record.until(lambda: computer.decisions.pending)
            write(file, server("a"), server("last"))
            await record.reached("last", ServerState.RUNNING)
            await record.until(lambda: not computer.decisions.pending)
            assert [status.server for status in computer.statuses] == ["a", "last"]
            await record.until(lambda: computer.get_config()["inputs"] == [])
        tasks.cancel_scope.cancel()


async def test_a_wrong_entry_costs_that_entry_and_leaves_what_runs_as_it_was(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(file, server("a"), server("b"))
    files = load_config_files(file)
    async with Computer("pc", mcp_servers=files.servers, timings=FAST) as computer:
        followed = FollowedFiles(computer, [file], files)
        write(file, {**server("a"), "nonsense": 1}, server("c"))
        await followed.reload()
        assert "nonsense: unknown key" in caplog.text
        assert [status.server for status in computer.statuses] == ["a", "c"]
        assert state(computer, "a") is ServerState.RUNNING
        write(file, server("d"), nonsense=True)
        await followed.reload()
        assert "the servers stay as they are" in caplog.text
        assert [status.server for status in computer.statuses] == ["a", "c"]


async def test_a_server_that_is_removed_by_hand_before_its_restart_is_no_problem(file: Path) -> None:
    write(file, server("dies", "dies-on-start"))
    files = load_config_files(file)
    computer = Computer("pc", mcp_servers=files.servers, timings=PATIENT)
    async with computer:
        followed = FollowedFiles(computer, [file], files)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(followed.take_over, files)
            await anyio.lowlevel.checkpoint()  # it has seen that the server is down, and has not restarted it
            await computer.remove_server("dies")
        assert computer.statuses == []
