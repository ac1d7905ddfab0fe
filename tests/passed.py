"""What one tool call passes in each role: functions of ours, and Python calls of ours and of libraries. No timing.

    python -m tests.passed                   the totals, and how often each function of ours is entered
    python -m tests.passed --role agent      only that role; with --all the functions of libraries, too
    python -m tests.passed --size 100000     a call whose argument and result have so many characters

`a2c server`, `a2c computer run` with a stdio server and its record, and an agent are processes of their own, so each
function belongs to one role. Some calls warm them up. Then one call after the other is counted in every thread
(`sys.setprofile`), with what follows it. What periodic timers and tasks enter is left out, by what is entered while
nobody calls. A function counts with what almost every call enters, so that pings do not count, nor one call whose
messages came in other pieces. A coroutine is entered each time it goes on; comprehensions are calls, but no functions.
"""

import argparse
import asyncio
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final, TypeAlias

import a2c_smcp

__all__ = ["ROLES", "Passed", "count", "totals"]

ROLES: Final = ("agent", "server", "computer")
_ROOT: Final = Path(a2c_smcp.__file__).parent.parent
_ECHO: Final = [sys.executable, str(_ROOT / "bench" / "echo_mcp.py")]
_OFFICE, _COMPUTER = "counted", "desk"
_WARMING: Final = 12
#: Seconds for what follows a call: the record's thread writes, buffers are flushed.
_SETTLED: Final = 0.3
_START_SECONDS: Final = 120
_WAIT_SECONDS: Final = 30

#: So many of the counted calls may enter a function less often than it counts: the record's thread was late.
_LEFT_OUT: Final = 2
#: Windows without a call; a task or timer that is seen in most of them is periodic.
_IDLE: Final = 3
#: What stands below the callbacks of an event loop.
_LOOPS: Final = frozenset(
    {
        asyncio.Runner.run.__code__,
        asyncio.BaseEventLoop.run_until_complete.__code__,
        asyncio.BaseEventLoop.run_forever.__code__,
        asyncio.BaseEventLoop._run_once.__code__,  # type: ignore[attr-defined]
        asyncio.Handle._run.__code__,
    }
)

#: A function: its file (below this folder for ours), its name, and its line.
_Place: TypeAlias = tuple[str, str, int]
#: A function, and what the loop called: the first function of a callback or of a task. In other threads the function.
_Entry: TypeAlias = tuple[_Place, _Place]
_Counts: TypeAlias = Counter[_Entry]


@dataclass(frozen=True)
class Passed:
    """What one role passes in one call."""

    entered: Counter[_Place]
    """How often each function was entered, in the order of the first time."""

    @property
    def functions(self) -> list[str]:
        """The functions of ours, as `docs/architecture.md` names them."""
        return list(self.ours())

    def ours(self) -> Counter[str]:
        """How often each function of ours was entered."""
        found = Counter[str]()
        for (file, name, _), times in self.entered.items():
            if file.startswith("a2c_smcp/") and not name.endswith(("comp>", "<genexpr>")):
                found[f"{file.removeprefix('a2c_smcp/').removesuffix('.py').replace('/', '.')}.{name}"] += times
        return found

    @property
    def python_calls(self) -> int:
        return self.entered.total()


class _Counting:
    """Counts in this process between two turns of a switch."""

    def __init__(self) -> None:
        self._entered: list[tuple[CodeType, CodeType]] | None = None
        # The threads of the record and of lookups begin before it is switched on.
        threading.setprofile(self)

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call" and self._entered is not None:
            self._entered.append((frame.f_code, _root(frame)))

    def begin(self) -> None:
        self._entered = []
        sys.setprofile(self)

    def end(self) -> _Counts:
        sys.setprofile(None)
        entered, self._entered = self._entered or [], None
        return Counter((_place(code), _place(root)) for code, root in entered if code.co_filename != __file__)


def _root(frame: FrameType) -> CodeType:
    at = frame
    while at.f_back is not None:
        if at.f_back.f_code in _LOOPS:
            return at.f_code
        at = at.f_back
    return frame.f_code


def _place(code: CodeType) -> _Place:
    return _shown(code.co_filename), code.co_qualname, code.co_firstlineno


def _shown(file: str) -> str:
    return file.removeprefix(f"{_ROOT}/")


# --- the other roles


def _be(fd: int, command: list[str]) -> None:
    """Be one of our commands. Each SIGUSR2 begins or ends counting, and is answered with a line."""
    counting = _Counting()
    is_on = False

    def switch(number: int, frame: FrameType | None) -> None:
        nonlocal is_on
        said = json.dumps(list(counting.end().items())) if is_on else "counting"
        is_on = not is_on
        if is_on:
            counting.begin()
        _write(fd, f"{said}\n".encode())

    signal.signal(signal.SIGUSR2, switch)
    from a2c_smcp.cli import main

    sys.argv = ["a2c", *command]
    main()


def _write(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


class _Role:
    """A process that counts."""

    def __init__(self, process: subprocess.Popen[str], answers: Any, said: str) -> None:
        self._process = process
        self._answers = answers
        self.said = said

    def begin(self) -> None:
        self._switch()

    def end(self) -> _Counts:
        entered = json.loads(self._switch())
        return Counter({(_named(place), _named(root)): times for (place, root), times in entered})

    def _switch(self) -> str:
        self._process.send_signal(signal.SIGUSR2)
        can_read, _, _ = select.select([self._answers], [], [], _WAIT_SECONDS)
        answer = self._answers.readline() if can_read else ""
        if not answer:
            raise RuntimeError("a process that counts does not answer")
        return str(answer)


def _named(found: list[Any]) -> _Place:
    file, name, line = found
    return file, name, line


@contextmanager
def _running(folder: str, command: Sequence[str], ready: str) -> Iterator[_Role]:
    ours, theirs = os.pipe()
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("A2C_")},
        "XDG_STATE_HOME": folder,
        "XDG_RUNTIME_DIR": folder,
    }
    with os.fdopen(ours) as answers, ExitStack() as exits:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.passed", "--be", str(theirs), *command],
            cwd=_ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            pass_fds=[theirs],
            env=environment,
        )
        os.close(theirs)
        watchdog = threading.Timer(_START_SECONDS, process.kill)
        watchdog.daemon = True
        watchdog.start()
        assert process.stdout is not None
        try:
            lines = []
            for line in process.stdout:
                lines.append(line)
                if ready in line:
                    break
            else:
                raise RuntimeError(f"{' '.join(command)} did not start:\n{''.join(lines[-20:])}")
            watchdog.cancel()
            drain = threading.Thread(target=process.stdout.read, daemon=True)
            drain.start()
            exits.callback(drain.join, _WAIT_SECONDS)
            yield _Role(process, answers, line)
        finally:
            watchdog.cancel()
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            exits.close()
            process.stdout.close()


# --- the agent


def count(calls: int = 9, size: int = 100) -> dict[str, Passed]:
    """Make some calls, and return what one passes in each role."""
    from a2c_smcp.utils.loops import fast_command_loop

    with ExitStack() as exits:
        folder = exits.enter_context(tempfile.TemporaryDirectory())
        server = exits.enter_context(_running(folder, ["server", "--port", "0"], "http://127.0.0.1:"))
        url = next(word for word in server.said.split() if word.startswith("http://127.0.0.1:")).rstrip(",;.")
        config = Path(folder) / "servers.json"
        parameters = {"command": _ECHO[0], "args": _ECHO[1:]}
        config.write_text(json.dumps([{"name": "echo", "type": "stdio", "server_parameters": parameters}]))
        place = ["--url", url, "--office", _OFFICE, "--name", _COMPUTER, "--config", str(config)]
        computer = exits.enter_context(
            _running(folder, ["computer", "run", "--headless", "--yes", *place], "in office")
        )
        roles: dict[str, _Role | _Counting] = {"server": server, "computer": computer, "agent": _Counting()}
        with asyncio.Runner(loop_factory=fast_command_loop) as runner:
            return runner.run(_call(url, roles, calls, "x" * size))


async def _call(url: str, roles: dict[str, _Role | _Counting], calls: int, text: str) -> dict[str, Passed]:
    from a2c_smcp.agent import AsyncSMCPAgentClient

    idle: dict[str, list[_Counts]] = {role: [] for role in ROLES}
    found: dict[str, list[_Counts]] = {role: [] for role in ROLES}
    async with AsyncSMCPAgentClient(url, name="counter", live=False) as agent:
        await agent.join_office(_OFFICE)
        await agent.wait_for_tool(_COMPUTER, "echo", _WAIT_SECONDS)

        async def call() -> None:
            result = await agent.call_tool(_COMPUTER, "echo", {"text": text}, _WAIT_SECONDS)
            assert not result.is_error
            assert getattr(result.content[0], "text", None) == text

        for _ in range(_WARMING):
            await call()
        await _settled()
        for number in range(_IDLE + calls):
            for role in roles.values():
                role.begin()
            if number >= _IDLE:
                await call()
            await _settled()
            # The agent was the last to begin, and is the first to end.
            for name, role in reversed(roles.items()):
                (idle if number < _IDLE else found)[name].append(role.end())
    return {role: Passed(_usual(found[role], _periodic(idle[role]))) for role in ROLES}


async def _settled() -> None:
    loop = asyncio.get_running_loop()
    settled = loop.create_future()
    loop.call_later(_SETTLED, settled.set_result, None)
    await settled


def _periodic(idle: Sequence[_Counts]) -> set[_Place]:
    """The callbacks and tasks that also run while nobody calls."""
    windows = Counter(root for window in idle for root in {root for _, root in window})
    return {root for root, seen in windows.items() if seen > len(idle) / 2}


def _usual(samples: Sequence[_Counts], periodic: Container[_Place]) -> Counter[_Place]:
    """What almost every call enters."""
    counted = [Counter[_Place]() for _ in samples]
    for sample, counts in zip(samples, counted, strict=True):
        for (place, root), times in sample.items():
            if root not in periodic:
                counts[place] += times
    places = dict.fromkeys(place for counts in counted for place in counts)
    usual = {place: sorted(counts[place] for counts in counted)[_LEFT_OUT] for place in places}
    return Counter({place: times for place, times in usual.items() if times})


def totals(passed: dict[str, Passed]) -> dict[str, int]:
    """The figures that `budgets.toml` bounds."""
    functions = {f"{role}_functions": len(each.functions) for role, each in passed.items()}
    return {**functions, "python_calls": sum(each.python_calls for each in passed.values())}


# --- the command


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.passed", description="What one tool call passes.")
    parser.add_argument("--calls", type=int, default=9, help="how many calls are counted")
    parser.add_argument("--size", type=int, default=100, help="characters of the argument and of the result")
    parser.add_argument("--role", choices=ROLES, help="show the functions of this role only")
    parser.add_argument("--all", action="store_true", help="show the functions of libraries, too")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the totals to this file")
    given = parser.parse_args()
    if given.calls <= _LEFT_OUT:
        parser.error(f"--calls must be more than {_LEFT_OUT}")
    passed = count(given.calls, given.size)
    for role in ROLES if given.role is None else (given.role,):
        print(f"--- {role}")
        for (file, name, line), times in passed[role].entered.items():
            if given.all or file.startswith("a2c_smcp/"):
                print(f"{times:4} {file}:{line} {name}")
    for role, each in passed.items():
        ours = each.ours()
        print(f"{role}: {len(ours)} functions of ours, {ours.total()} calls of them, {each.python_calls} Python calls")
    functions = sum(len(each.functions) for each in passed.values())
    print(f"all: {functions} functions of ours, {sum(each.python_calls for each in passed.values())} Python calls")
    if given.json is not None:
        given.json.write_text(json.dumps(totals(passed)))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--be"]:
        _be(int(sys.argv[2]), sys.argv[3:])
    else:
        main()
