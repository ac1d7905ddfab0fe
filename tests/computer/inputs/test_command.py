"""`command` inputs: real programs that answer, fail, hang, flood and stay behind."""

import asyncio
import os
import shlex
import signal
import sys
import time
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from a2c_smcp.computer.inputs import CommandInputResolver, InputFailedError
from a2c_smcp.computer.mcp_clients.model import parse_input
from a2c_smcp.errors import InputNotFoundError
from a2c_smcp.utils import children
from tests.computer.fakes.processes import ended

CANARY = "canary-51c0"


def python(code: str) -> str:
    return shlex.join([sys.executable, "-c", code])


async def run(command: str, timeout: float = 20, **extra: Any) -> str:
    definition = parse_input({"id": "token", "type": "command", "command": command, **extra})
    return await CommandInputResolver(timeout).resolve(definition)


async def failure(command: str, timeout: float = 20, **extra: Any) -> str:
    with pytest.raises(InputFailedError) as caught:
        await run(command, timeout, **extra)
    assert caught.value.input_id == "token"
    return caught.value.message


async def test_what_it_prints_is_the_value_trimmed() -> None:
    assert await run("echo '  a  b  '") == "a  b"


async def test_it_is_split_as_a_shell_would_and_args_become_options() -> None:
    code = "import sys; print(sys.argv[1:])"
    assert await run(python(code) + " 'x y' $HOME", args={"name": "a b", "n": "1"}) == str(
        ["x y", "$HOME", "--name", "a b", "--n", "1"]
    )


async def test_there_is_no_shell_unless_the_config_says_so() -> None:
    assert await run("echo a; echo $((1+1))") == "a; echo $((1+1))"
    assert await run("echo a; echo $((1+1))", shell=True) == "a\n2"


async def test_args_are_quoted_for_the_shell() -> None:
    assert await run("echo", shell=True, args={"k": "$HOME; echo x"}) == "--k $HOME; echo x"


async def test_it_has_no_input_and_no_terminal() -> None:
    assert await run(python("import sys; print(repr(sys.stdin.read()))")) == "''"
    assert "No such device" in await failure(python("open('/dev/tty')"))


async def test_it_does_not_see_the_values_of_other_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A2C_INPUT_OTHER", CANARY)
    monkeypatch.setenv("PLAIN", "seen")
    environment = await run(python("import os; print(dict(os.environ))"))
    assert "seen" in environment
    assert CANARY not in environment


async def test_other_kinds_are_passed_on() -> None:
    with pytest.raises(InputNotFoundError):
        await CommandInputResolver().resolve(parse_input({"id": "p", "type": "promptString"}))


async def test_a_failure_shows_the_last_lines_of_stderr_and_not_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SOME_SECRET", CANARY)
    code = "import sys; [print('line', i, file=sys.stderr) for i in range(99)]; print('\\x1b[31mred'); sys.exit(3)"
    message = await failure(python(code))
    assert "status 3" in message
    assert [line.strip() for line in message.splitlines()[1:]] == [f"line {i}" for i in range(94, 99)]
    assert CANARY not in message
    assert "import sys" not in message


async def test_escape_sequences_do_not_get_through() -> None:
    message = await failure(python("import sys; sys.exit('\\x1b[2Jbad\\x07')"))
    assert message.endswith("\n  [2Jbad")


async def test_one_that_cannot_be_started_says_why() -> None:
    assert "No such file" in await failure("no-such-program-here")
    assert "Permission denied" in await failure("/")
    assert "null character" in await failure("echo a\0b")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("print('x' * 70000)", "more than 65536 bytes"),
        ("import sys; sys.stdout.buffer.write(b'\\xff')", "not UTF-8"),
    ],
)
async def test_output_must_be_text_of_a_sensible_size(code: str, message: str) -> None:
    assert message in await failure(python(code))


async def test_one_that_prints_without_end_is_stopped_at_the_deadline() -> None:
    assert "longer than 0.5 s" in await failure("yes", timeout=0.5)


async def test_one_that_hangs_is_stopped_at_the_deadline() -> None:
    started = time.monotonic()
    assert "longer than 0.3 s" in await failure("sleep 60", timeout=0.3)
    assert time.monotonic() - started < 25


async def cancelled(script: str, pipe: Path) -> list[int]:
    """Cancel the wait for a command as soon as it has written pids to the pipe, and return those."""
    os.mkfifo(pipe)

    async def wait() -> None:
        await run(script, 60, shell=True)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        with anyio.fail_after(20):
            pids = await anyio.to_thread.run_sync(pipe.read_text, abandon_on_cancel=True)
        tasks.cancel_scope.cancel()
    return [int(pid) for pid in pids.split()]


async def test_one_that_nobody_waits_for_is_ended_with_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(children, "_REAP_SECONDS", 60)  # what was killed ends when the kernel gets to it
    pipe = tmp_path / "pids"
    leader, child = await cancelled(f"sleep 60 & echo $$ $! > {pipe}; wait", pipe)
    assert ended(leader, 0)
    assert ended(child)


async def test_one_that_is_given_up_while_it_starts_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    pipe = tmp_path / "pids"
    os.mkfifo(pipe)
    starting = asyncio.create_task(run(f"sleep 60 & echo $$ $! > {pipe}; wait", 60, shell=True))
    for _ in range(2):
        await asyncio.sleep(0)
    # The loop stands still meanwhile: the command has begun its work, and asyncio is not done with starting it.
    leader, child = map(int, pipe.read_text().split())
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert ended(leader)
    assert ended(child)


async def test_a_descendant_that_got_away_with_the_pipe_does_not_hold_us_up(tmp_path: Path) -> None:
    pipe = tmp_path / "pid"
    started = time.monotonic()
    (runaway,) = await cancelled(f"setsid sh -c 'echo $$ > {pipe}; exec sleep 60' & exit 0", pipe)
    try:
        assert time.monotonic() - started < 25
        assert not ended(runaway, 0)
    finally:
        os.kill(runaway, signal.SIGKILL)


async def test_an_agent_that_a_successful_command_leaves_behind_stays(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    assert await run(f"sleep 60 >/dev/null 2>&1 & echo $! > {file}; echo ok", shell=True) == "ok"
    pid = int(file.read_text())
    try:
        assert not ended(pid, 0)
    finally:
        os.kill(pid, signal.SIGKILL)
