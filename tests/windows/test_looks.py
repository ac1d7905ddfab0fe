"""Files that grow, commands that run again, and panes of tmux, as windows."""

import asyncio
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from a2c_smcp.windows.cli import journal_command
from a2c_smcp.windows.followed_file import FileTail
from a2c_smcp.windows.tmux import TmuxError, as_argument, list_panes
from tests.windows.conftest import ENVIRONMENT, MakeDesk

pytestmark = pytest.mark.anyio


# --- files


def test_a_file_that_grows_is_rotated_and_is_cut_is_followed(tmp_path: Path) -> None:
    log = tmp_path / "app.log"
    tail = FileTail(log)
    assert tail.look() and tail.problem == "No such file or directory"
    log.write_text("".join(f"line {number}\n" for number in range(300)))
    assert tail.look() and tail.lines[0] == "line 100" and tail.lines[-1] == "line 299"
    assert not tail.look()
    with log.open("a") as file:
        file.write("half")
    assert tail.look() and tail.lines[-1] == "half"
    log.rename(tmp_path / "app.log.1")
    log.write_text("a new file\n")
    assert tail.look() and tail.lines == ["a new file"]
    log.write_text("")
    assert tail.look() and tail.lines == [] and tail.problem is None


def test_a_long_file_costs_its_end_only_and_a_pipe_holds_nobody_up(tmp_path: Path) -> None:
    log = tmp_path / "huge.log"
    with log.open("wb") as file:
        file.seek(10**9)
        file.write(b"\nthe end\n")
    tail = FileTail(log)
    assert tail.look() and tail.lines[-1] == "the end"
    os.mkfifo(tmp_path / "pipe")
    pipe = FileTail(tmp_path / "pipe")
    assert pipe.look() and pipe.problem == "not a file that can be followed"


async def test_a_log_is_a_window_with_errors_first_and_without_secrets(make_desk: MakeDesk, tmp_path: Path) -> None:
    log = tmp_path / "app.log"
    log.write_text("started\nERROR no disk, password=hunter2222\n" + "tick 1\ntick 2\ntick 3\ntick 4\ntick 5\n")
    async with make_desk(files=[log], errors_first=True) as desk:
        shown = await desk.until("files/app.log", "tick 5")
        assert "errors:" in shown and shown.index("ERROR") < shown.index("started")
        assert "3 more lines like this" in shown and "hunter2222" not in shown
        with log.open("a") as file:
            file.write("one more\n")
        assert "+ one more" in await desk.until("files/app.log", "one more")


async def test_an_error_of_any_length_keeps_the_window_within_its_budget(make_desk: MakeDesk, tmp_path: Path) -> None:
    (tmp_path / "big.log").write_text(f"ERROR {'x' * 200_000}\nERROR short\n\x1b[31mlast\x1b[0m\n")
    async with make_desk(files=[tmp_path / "big.log"], errors_first=True) as desk:
        shown = await desk.until("files/big.log", "last")
        assert len(shown) <= 8000 and "ERROR short" in shown and "[31m" not in shown


# --- commands


async def test_a_secret_in_a_command_is_in_no_window_and_in_no_uri(make_desk: MakeDesk) -> None:
    command = "PASSWORD=hunter2222 true; : --header 'Authorization: Bearer abcdefgh12345678'"
    async with make_desk(commands=[command]) as desk:
        shown = await desk.until("", "exit code 0")
        [resource] = (await desk.client.list_resources()).resources
        for text in (shown, resource.uri, resource.title or ""):
            assert "hunter2222" not in text and "abcdefgh" not in text


async def test_the_journal_of_a_unit_is_a_window(
    make_desk: MakeDesk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = tmp_path / "journalctl"
    journal.write_text('#!/bin/sh\necho "$@"\necho "-- the journal of a test"\n')
    journal.chmod(0o755)
    environment = ENVIRONMENT | {"PATH": f"{tmp_path}:{ENVIRONMENT['PATH']}"}
    async with make_desk(commands=[journal_command("my app.service")], environment=environment) as desk:
        shown = await desk.until("", "the journal of a test")
        assert "--lines 200" in shown and "--unit my app.service" in shown
    assert "--unit" not in journal_command("all")


async def test_what_a_command_prints_is_a_window_and_a_failure_comes_first(make_desk: MakeDesk, tmp_path: Path) -> None:
    (tmp_path / "answer").write_text("fine\n")
    async with make_desk(commands=["cat answer; test ! -e broken"], every=1.0) as desk:
        await desk.until("commands/cat answer;".replace(" ", "%20").replace(";", "%3B"), "fine", "exit code 0")
        (tmp_path / "broken").touch()
        async with asyncio.timeout(30):
            while True:
                if any("priority=65" in uri for uri in await desk.uris()):
                    break
                await asyncio.sleep(0.1)


async def test_a_command_that_hangs_is_ended_and_said(make_desk: MakeDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("a2c_smcp.windows.watched_command._SHORTEST_LIMIT", 0.5)
    async with make_desk(commands=["sleep 600"], every=0.5) as desk:
        assert "did not end within 0.5 s" in await desk.until("commands/sleep%20600", "did not end")


# --- tmux


@pytest.fixture
def tmux(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A tmux of the test's own, with a session `work`."""
    if shutil.which("tmux") is None:
        pytest.skip("needs tmux")
    monkeypatch.setenv("TMUX_TMPDIR", str(tmp_path))
    monkeypatch.delenv("TMUX", raising=False)
    environment = {**ENVIRONMENT, "TMUX_TMPDIR": str(tmp_path)}
    start = ["tmux", "-f", "/dev/null", "new-session", "-d", "-s", "work", "-x", "80", "-y", "20", "sh"]
    subprocess.run(start, check=True, env=environment, timeout=30)
    yield
    subprocess.run(["tmux", "kill-server"], check=False, env=environment, timeout=30, stderr=subprocess.DEVNULL)


@pytest.mark.usefixtures("tmux")
async def test_panes_of_tmux_are_windows_to_read_and_to_type_into_only_when_allowed(make_desk: MakeDesk) -> None:
    async with make_desk(tmux=True) as desk:
        assert "work:0.0" in await desk.until("tmux/0", "$")
        assert [tool.name for tool in (await desk.client.list_tools()).tools] == []
    async with make_desk(tmux=True, tmux_session="work", tmux_type=True) as desk:
        await desk.until("tmux/0", "$")
        await desk.call("tmux_type", pane="%0", text="echo $((40 + 2))", keys=["Enter"])
        await desk.until("tmux/0", "42")
        assert "no pane" in await desk.refused("tmux_type", pane="%99", text="x")


@pytest.mark.usefixtures("tmux")
async def test_keys_for_tmux_are_keys_and_no_commands(make_desk: MakeDesk, tmp_path: Path) -> None:
    async with make_desk(tmux=True, tmux_type=True) as desk:
        await desk.until("tmux/0", "$")
        for text in ("", "x;"):
            await desk.call("tmux_type", pane="%0", text=text, keys=[";", "run-shell", f"touch {tmp_path}/run"])
            await desk.call("tmux_type", pane="%0", keys=["C-c"])
        await desk.call("tmux_type", pane="%0", text="echo one; echo two;", keys=["Enter"])
        await desk.until("tmux/0", "echo two;", "\n  one", "\n  two")
        assert "run" not in os.listdir(tmp_path)


def _only_sockets_below(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the servers of tmux that other tests run now."""
    lines = Path("/proc/net/unix").read_text().splitlines(keepends=True)
    (tmp_path / "sockets").write_text("".join(line for line in lines if str(folder) in line))
    monkeypatch.setattr("a2c_smcp.windows.tmux._SOCKETS", tmp_path / "sockets")


@pytest.mark.usefixtures("tmux")
@pytest.mark.skipif(not Path("/proc/net/unix").exists(), reason="needs Linux's list of sockets")
async def test_tmux_under_another_tmux_tmpdir_is_found_and_of_several_none_is_guessed(
    make_desk: MakeDesk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / f"tmux-{os.getuid()}"
    _only_sockets_below(mine, tmp_path, monkeypatch)
    monkeypatch.setenv("TMUX_TMPDIR", str(tmp_path / "elsewhere"))
    async with make_desk(tmux=True, tmux_type=True) as desk:
        await desk.until("tmux/0", "$")
        await desk.call("tmux_type", pane="%0", text="echo $((40 + 2))", keys=["Enter"])
        await desk.until("tmux/0", "42")
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(mine / "other"))
        other.listen()
        _only_sockets_below(mine, tmp_path, monkeypatch)
        with pytest.raises(TmuxError, match=rf"tmux runs at {mine}/default, {mine}/other: set TMUX_TMPDIR"):
            await list_panes(None)


def test_a_semicolon_is_escaped_only_where_tmux_reads_it() -> None:
    assert [as_argument(word) for word in (";", "a;", "a\\;", "a;b", "")] == ["\\;", "a\\;", "a\\\\;", "a;b", ""]


@pytest.mark.usefixtures("tmux")
async def test_a_program_with_a_tab_in_its_name_and_a_locale_without_letters_end_nothing(
    make_desk: MakeDesk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "C")
    odd = tmp_path / "a\tb"
    shutil.copy(shutil.which("sleep") or "", odd)
    async with make_desk(tmux=True, tmux_type=True) as desk:
        await desk.until("tmux/0", "$")
        await desk.call("tmux_type", pane="%0", text=f"echo 中文; {tmp_path}/a*b 600", keys=["Enter"])
        assert "中文" in await desk.until("tmux/0", "work:0.0: a")


@pytest.mark.usefixtures("tmux")
async def test_a_secret_that_goes_on_in_the_next_row_of_a_pane_is_hidden(make_desk: MakeDesk) -> None:
    async with make_desk(tmux=True, tmux_type=True) as desk:
        await desk.until("tmux/0", "$")
        await desk.call("tmux_type", pane="%0", text=f"clear; echo {'x' * 69} ghp_{'a1B2' * 9}'' done", keys=["Enter"])
        shown = await desk.until("tmux/0", "done\n")
        assert "a1B2" not in shown


async def test_without_tmux_it_says_so_and_goes_on(
    make_desk: MakeDesk, caplog: pytest.LogCaptureFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMUX_TMPDIR", str(tmp_path))
    monkeypatch.delenv("TMUX", raising=False)
    monkeypatch.setattr("a2c_smcp.windows.tmux._SOCKETS", tmp_path / "none")
    async with make_desk(tmux=True) as desk:
        async with asyncio.timeout(30):
            while True:
                if "tmux panes are not shown" in caplog.text:
                    break
                await asyncio.sleep(0.05)
        assert await desk.uris() == []
