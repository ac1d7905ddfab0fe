"""Real programs on real terminals, as an agent meets them."""

import asyncio
import re
import shutil
import sys
import time
from pathlib import Path

import anyio
import pytest

from a2c_smcp.windows.browser.chromium import BrowserOptions
from a2c_smcp.windows.emulator import Size
from a2c_smcp.windows.pty_process import PtyProcess
from a2c_smcp.windows.sandbox import sandbox_command
from tests.nats_server import free_ports
from tests.windows.conftest import ENVIRONMENT, MakeDesk, eventually

pytestmark = pytest.mark.anyio
WAIT = {"timeout": 60.0}
needs = {
    name: pytest.mark.skipif(shutil.which(name) is None, reason=f"needs {name}")
    for name in ("vim", "less", "ssh", "make")
}


async def test_a_shell_is_a_window_that_says_what_it_does(make_desk: MakeDesk) -> None:
    async with make_desk(terminals=True) as desk:
        opened = await desk.call("terminal_open", name="work")
        assert "Opened the terminal work" in opened
        await desk.call("terminal_type", name="work", text="echo $((6 * 7))\n")
        assert "42" in await desk.call("terminal_wait", name="work", until=["42"], **WAIT)
        shown = await desk.until("terminals/work", "idle")
        assert "terminal work: /bin/sh" in shown and "42" in shown
        assert await desk.call("terminal_close", name="work")
        assert await desk.uris() == []


async def test_a_build_that_fails_says_so_with_its_code_and_comes_before_others(make_desk: MakeDesk) -> None:
    async with make_desk(terminals=True) as desk:
        await desk.call("terminal_open", name="quiet", command="sleep 600")
        await desk.call("terminal_open", name="build", command="echo compiling; exit 2")
        waited = await desk.call("terminal_wait", name="build", **WAIT)
        assert "the program has ended: exit code 2" in waited and "compiling" in waited
        shown = await desk.until("terminals/build", "failed (exit code 2)")
        assert "compiling" in shown
        async with asyncio.timeout(30):
            while True:
                if "window://local.windows/terminals/build?priority=70" in await desk.uris():
                    break
                await asyncio.sleep(0.1)
        assert "window://local.windows/terminals/quiet?priority=50" in await desk.uris()


@needs["vim"]
async def test_vim_edits_a_file(make_desk: MakeDesk, tmp_path: Path) -> None:
    async with make_desk(terminals=True) as desk:
        await desk.call("terminal_open", name="vim", command="vim -u NONE -n notes.txt")
        shown = await desk.until("terminals/vim", "~")
        assert "the whole screen" in shown
        await desk.call("terminal_type", name="vim", text="ihello 世界", keys=["escape"])
        await desk.until("terminals/vim", "hello 世界")
        await desk.call("terminal_type", name="vim", text=":wq\n")
        await desk.call("terminal_wait", name="vim", **WAIT)
        assert (tmp_path / "notes.txt").read_text() == "hello 世界\n"


@needs["less"]
async def test_less_pages_and_leaves_the_screen_as_it_was(make_desk: MakeDesk, tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text("".join(f"line {number}\n" for number in range(500)))
    async with make_desk(terminals=True) as desk:
        await desk.call("terminal_open", name="sh")
        await desk.call("terminal_type", name="sh", text="echo before; less long.txt\n")
        await desk.until("terminals/sh", "line 5")
        await desk.call("terminal_type", name="sh", keys=["page-down"])
        shown = await desk.until("terminals/sh", "line 40")
        assert "waits for input" in await desk.until("terminals/sh", "waits for input") and "before" not in shown
        await desk.call("terminal_type", name="sh", text="q")
        assert "before" in await desk.until("terminals/sh", "before")


async def test_a_prompt_of_a_program_waits_for_input_and_a_password_is_not_shown(make_desk: MakeDesk) -> None:
    code = "import getpass; name = input('Name? '); getpass.getpass('Secret? '); print('thanks', name)"
    async with make_desk(terminals=True) as desk:
        await desk.call("terminal_open", name="ask", command=f'{sys.executable} -c "{code}"')
        assert "waits for input" in await desk.call("terminal_wait", name="ask", for_input=True, **WAIT)
        await desk.call("terminal_type", name="ask", text="Ada\n")
        assert "waits for a password" in await desk.until("terminals/ask", "waits for a password")
        await desk.call("terminal_type", name="ask", text="tellnobody\n")
        await desk.call("terminal_wait", name="ask", until=["thanks"], **WAIT)
        shown = await desk.window("terminals/ask")
        assert "thanks Ada" in shown and "tellnobody" not in shown


async def test_a_script_that_asks_waits_for_input_and_is_no_idle_shell(make_desk: MakeDesk) -> None:
    async with make_desk(terminals=True) as desk:
        await desk.call("terminal_open", name="ask", command="printf 'Sure? '; read answer")
        assert "waits for input" in await desk.call("terminal_wait", name="ask", for_input=True, **WAIT)


async def test_ctrl_c_reaches_the_program_and_the_shell_lives_on(make_desk: MakeDesk) -> None:
    async with make_desk(terminals=True) as desk:
        await desk.call("terminal_open", name="sh")
        program = "import time; print('be' + 'gun', flush=True); time.sleep(600)"
        await desk.call("terminal_type", name="sh", text=f'{sys.executable} -c "{program}"\n')
        await desk.until("terminals/sh", "begun")
        await desk.call("terminal_type", name="sh", keys=["ctrl-c"])
        await desk.until("terminals/sh", "idle")
        await desk.call("terminal_type", name="sh", text="echo still here\n")
        assert "still here" in await desk.call("terminal_wait", name="sh", until=["still here"], **WAIT)


async def test_wide_characters_and_emoji_stand_where_a_person_sees_them(make_desk: MakeDesk) -> None:
    async with make_desk(terminals=True) as desk:
        await desk.call("terminal_open", name="wide", command="printf '中文 end\\n😀 smile\\n\\033[31mred\\033[0m\\n'")
        await desk.call("terminal_wait", name="wide", **WAIT)
        shown = await desk.window("terminals/wide")
        assert "中文 end" in shown and "😀 smile" in shown and "+ red" in shown


async def test_a_program_learns_of_another_size(make_desk: MakeDesk) -> None:
    async with make_desk(terminals=True) as desk:
        await desk.call("terminal_open", name="sh", columns=80, rows=24)
        await desk.call("terminal_resize", name="sh", columns=132, rows=43)
        await desk.call("terminal_type", name="sh", text="stty size\n")
        assert "43 132" in await desk.call("terminal_wait", name="sh", until=["43 132"], **WAIT)
        assert "20 to 400 columns" in await desk.refused("terminal_resize", name="sh", columns=5, rows=5)


async def test_a_flood_is_a_handful_of_updates_and_nothing_is_kept_of_it(make_desk: MakeDesk) -> None:
    """Ten megabytes here; `make bench` prints a hundred, with an aim."""
    async with make_desk(terminals=True) as desk:
        command = "read go; yes some words of a line | head -c 10000000; echo done; read end"
        await desk.call("terminal_open", name="flood", command=command)
        uris = [f"window://local.windows/terminals/flood?priority={priority}" for priority in (20, 50, 80)]
        async with desk.client.listen(resource_subscriptions=uris) as told:
            updates = 0

            async def count() -> None:
                nonlocal updates
                async for _ in told:
                    updates += 1

            begun = time.monotonic()
            async with anyio.create_task_group() as counting:
                counting.start_soon(count)
                await desk.call("terminal_type", name="flood", keys=["enter"])
                await desk.call("terminal_wait", name="flood", until=["done"], **WAIT)
                took = time.monotonic() - begun
                counting.cancel_scope.cancel()
        assert 1 <= updates <= 2 * took + 3
        assert "done" in await desk.window("terminals/flood")
        assert len((await desk.call("terminal_read", name="flood", lines=10_000)).split("\n")) <= 10_001


async def test_nothing_outlives_the_server_not_even_what_ignores_signals(make_desk: MakeDesk, tmp_path: Path) -> None:
    script = tmp_path / "stubborn.py"
    script.write_text(
        "import os, signal, subprocess, sys, time\n"
        "for name in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT): signal.signal(name, signal.SIG_IGN)\n"
        "child = subprocess.Popen(['sleep', '600'], process_group=0)\n"
        "other = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
        "orphan = subprocess.run(['sh', '-c', 'setsid sleep 600 >/dev/null 2>&1 & echo $!'], capture_output=True)\n"
        "print('pids', os.getpid(), child.pid, other.pid, int(orphan.stdout), flush=True)\n"
        "time.sleep(600)\n"
    )
    async with make_desk(terminals=True) as desk:
        await desk.call("terminal_open", name="stubborn", command=f"{sys.executable} {script}")
        shown = await desk.call("terminal_wait", name="stubborn", until=["pids *"], **WAIT)
        found = re.search(r"pids (\d+) (\d+) (\d+) (\d+)", shown)
        assert found is not None and all(_runs(int(pid)) for pid in found.groups())
    assert [pid for pid in found.groups() if _runs(int(pid))] == []


def _runs(pid: int) -> bool:
    """Whether the process runs. Where nobody takes the status of orphans, a dead one stays as a zombie."""
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and " Z " not in stat.read_text()


@needs["make"]
async def test_a_make_that_fails_is_seen_and_mended(make_desk: MakeDesk, tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text("all:\n\t@echo building; cat price.txt\n")
    async with make_desk(terminals=True) as desk:
        await desk.call("terminal_open", name="build", command="make")
        shown = await desk.until("terminals/build", "has failed (exit code 2)")
        assert "price.txt" in shown and "Error 1" in shown
        await desk.call("terminal_open", name="sh")
        await desk.call("terminal_type", name="sh", text="echo 3 > price.txt; make && echo well\n")
        await desk.call("terminal_wait", name="sh", until=["well"], **WAIT)


@needs["ssh"]
async def test_ssh_to_nowhere_fails_and_says_why(make_desk: MakeDesk) -> None:
    [port] = free_ports(1)
    async with make_desk(terminals=True) as desk:
        command = f"ssh -F none -o BatchMode=yes -o ConnectTimeout=20 -p {port} 127.0.0.1"
        await desk.call("terminal_open", name="ssh", command=command)
        shown = await desk.until("terminals/ssh", "has failed (exit code 255)")
        assert "refused" in shown


async def test_the_prompt_of_python_reads_calculates_and_is_interrupted(make_desk: MakeDesk) -> None:
    async with make_desk(terminals=True) as desk:
        await desk.call("terminal_open", name="py", command=f"{sys.executable} -q")
        await desk.call("terminal_wait", name="py", until=[">>>"], **WAIT)
        await desk.call("terminal_type", name="py", text="print(6 * 7, 'answer')\n")
        await desk.call("terminal_wait", name="py", until=["42 answer"], **WAIT)
        assert "waits for input" in await desk.until("terminals/py", "waits for input")
        await desk.call("terminal_type", name="py", text="import time; print('be' + 'gun'); time.sleep(600)\n")
        await desk.call("terminal_wait", name="py", until=["begun"], **WAIT)
        await desk.call("terminal_type", name="py", keys=["ctrl-c"])
        await desk.call("terminal_wait", name="py", until=["KeyboardInterrupt"], **WAIT)
        await desk.call("terminal_type", name="py", keys=["ctrl-d"])
        assert "has ended" in await desk.call("terminal_wait", name="py", **WAIT)


async def test_ctrl_c_comes_before_what_a_program_does_not_read(make_desk: MakeDesk, tmp_path: Path) -> None:
    (tmp_path / "questions").write_bytes(b"\x1b[c" * 400_000)
    async with make_desk(terminals=True) as desk:
        for name, command in (
            ("line", "echo be''gun; exec sleep 600"),
            ("unread", "stty -icanon -echo; echo be''gun; exec sleep 600"),
            ("asked", "stty -icanon -echo; cat questions; echo be''gun; exec sleep 600"),
        ):
            await desk.call("terminal_open", name=name, command=command)
            await desk.until(f"terminals/{name}", "begun")
            for _ in range(8):
                await desk.client.call_tool("terminal_type", {"name": name, "text": "x" * 60_000})
            await desk.call("terminal_type", name=name, keys=["ctrl-c"])
            assert "SIGINT" in await desk.call("terminal_wait", name=name, **WAIT)


async def test_closing_a_terminal_ends_the_waits_for_it(make_desk: MakeDesk) -> None:
    async with make_desk(terminals=True) as desk:
        await desk.call("terminal_open", name="long", command="sleep 600")
        waiting = asyncio.create_task(desk.refused("terminal_wait", name="long", timeout=600.0))
        typing = asyncio.create_task(desk.refused("terminal_type", name="long", text="x"))
        await asyncio.sleep(0)
        await desk.call("terminal_close", name="long")
        async with asyncio.timeout(60):
            assert "was closed" in await waiting or "no terminal" in await waiting
            assert "long" in await typing


async def test_what_was_typed_is_not_what_is_waited_for(make_desk: MakeDesk) -> None:
    async with make_desk(terminals=True) as desk:
        await desk.call("terminal_open", name="sh")
        await desk.call("terminal_type", name="sh", text=f"cat {'x' * 200} 2>&-; cat; echo READY\n")
        assert "1 s have passed" in await desk.call("terminal_wait", name="sh", until=["READY"], timeout=1.0)
        await desk.call("terminal_type", name="sh", keys=["ctrl-d"])
        assert "is there: READY" in await desk.call("terminal_wait", name="sh", until=["READY"], **WAIT)


async def test_a_secret_in_a_command_is_in_no_title(make_desk: MakeDesk) -> None:
    async with make_desk(terminals=True) as desk:
        await desk.call("terminal_open", command="PASSWORD=hunter2222 sleep 600")
        [resource] = (await desk.client.list_resources()).resources
        assert "hunter2222" not in f"{resource.uri} {resource.title} {await desk.window('')}"


async def test_a_shell_inside_a_sandbox_is_idle_when_it_waits(tmp_path: Path) -> None:
    """The sandbox is another program that starts the shell and waits for it, with bubblewrap's name."""
    program = tmp_path / "bwrap"
    shutil.copy(shutil.which("timeout") or "", program)
    states: list[bool] = []
    process = await PtyProcess.start(
        [str(program), "--foreground", "600", "/bin/sh"],
        size=Size(),
        folder=tmp_path,
        environment=ENVIRONMENT,
        on_output=lambda _: None,
        on_end=lambda _: None,
    )

    async def is_idle() -> bool:
        foreground = process.foreground()
        states.append(foreground is not None and foreground.is_idle_shell)
        return states[-1]

    try:
        await eventually(is_idle)
    finally:
        await process.stop()


def test_a_sandbox_hides_the_sockets_of_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bwrap = tmp_path / "bwrap"
    bwrap.write_text("#!/bin/sh\n")
    bwrap.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    (runtime := tmp_path / "runtime").mkdir()
    command = sandbox_command(Path("/srv/work"), {"XDG_RUNTIME_DIR": "/run/user/1000"})
    words = " ".join(command)
    assert words.startswith(f"{bwrap} --ro-bind / /") and "--tmpfs /tmp" in words and "--tmpfs /run" in words
    assert words.index("--tmpfs /run") < words.index("--bind /srv/work /srv/work") and command[-1] == "--"
    assert "--new-session" not in command and words.count("--tmpfs") == 2
    is_below_tmp = runtime.is_relative_to("/tmp")
    assert (f"--tmpfs {runtime}" in " ".join(sandbox_command(tmp_path, {"XDG_RUNTIME_DIR": str(runtime)}))) is (
        not is_below_tmp
    )


async def test_tools_say_whether_they_only_look(make_desk: MakeDesk) -> None:
    async with make_desk(terminals=True, browser=BrowserOptions()) as desk:
        tools = (await desk.client.list_tools()).tools
    looking = {tool.name for tool in tools if tool.annotations and tool.annotations.read_only_hint}
    assert looking == {"terminal_wait", "terminal_read", "browser_screenshot", "browser_read"}
    assert all(tool.annotations and tool.annotations.destructive_hint is (tool.name not in looking) for tool in tools)


async def test_refusals_say_what_to_do(make_desk: MakeDesk, tmp_path: Path) -> None:
    async with make_desk(terminals=True) as desk:
        assert "terminal_open" in await desk.refused("terminal_type", name="none", text="x")
        assert "or below it" in await desk.refused("terminal_open", folder="../..")
        assert "no folder" in await desk.refused("terminal_open", folder="missing")
        opened = await desk.call("terminal_open", name="a/b c", command="no-such-command-anywhere")
        assert "a-b-c" in opened
        assert "exit code 127" in await desk.call("terminal_wait", name="a-b-c", **WAIT)
        assert "has ended" in await desk.refused("terminal_type", name="a-b-c", text="x")
        await desk.call("terminal_open", name="a/b c", command="sleep 600")
        assert "nothing to type" in await desk.refused("terminal_type", name="a-b-c-2")
        assert "did you mean enter" in await desk.refused("terminal_type", name="a-b-c-2", keys=["entr"])


async def test_programs_see_no_secret_of_the_environment_and_windows_show_none(make_desk: MakeDesk) -> None:
    environment = ENVIRONMENT | {"DEPLOY_TOKEN": "tell-nobody", "PLAIN": "visible"}
    async with make_desk(terminals=True, environment=environment) as desk:
        await desk.call("terminal_open", name="env", command="env; echo PASSWORD=hunter2222")
        await desk.call("terminal_wait", name="env", **WAIT)
        shown = await desk.window("terminals/env")
        assert "PLAIN=visible" in shown and "tell-nobody" not in shown and "hunter2222" not in shown
        assert "hunter2222" not in await desk.call("terminal_read", name="env")
