"""A server, three computers and an agent, each a process behind a cable of its own, and what can happen to them.

`World` performs a seeded schedule; what the journals say of it is judged in `books`.
"""

import itertools
import json
import os
import random
import re
import signal
import sys
import time
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Collection
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import urlsplit

from anyio.from_thread import start_blocking_portal

from tests.attack.processes import A2C, Started
from tests.chaos.books import balance, read_journals, read_runs
from tests.chaos.recoveries import Recovery, late, steps_between, where_the_seconds_go
from tests.computer.fakes.cable import Cable
from tests.computer.fakes.processes import is_alive

HERE: Final = Path(__file__).parent
COMPUTERS: Final = ("alpha", "beta", "gamma")
OFFICE: Final = "chaos"
#: How soon the office is whole again after a party has come back, and after it, or its cable, stood still.
WHOLE_SECONDS: Final = 3.0
WHOLE_AFTER_PAUSE_SECONDS: Final = 25.0
#: Longer than the server waits for an answer to its ping.
_LONG_PAUSE: Final = 24.0
#: What a party says of its start, and which step ends with that.
_SERVER_STEPS: Final = {"imports": r"ready on (http://[\d.]+:\d+)"}
_COMPUTER_STEPS: Final = {
    "imports": "is starting",
    "MCP server": "is running",
    "connect": "connected to",
    "join": "is in office",
}
_AGENT_STEPS: Final = {"imports, connect, join": "READY"}
_MCP_STEPS: Final = {"notice": "is backing_off", "pause": "is starting", "start": "is running"}
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_GAUGE: Final = re.compile("a2c_(members|sessions|offices)")


@dataclass
class Party:
    """One role: its process now, and those that it had before."""

    name: str
    command: list[str]
    milestones: dict[str, str]
    folder: Path
    process: Started = field(init=False)
    incarnations: int = 0
    steps: dict[str, float] = field(default_factory=dict)
    """Of its last start."""
    busy: float = 1.0
    """How many seconds the machine took for a second of CPU of that start."""

    @property
    def seconds_to_start(self) -> float:
        return sum(self.steps.values())

    def start(self) -> None:
        """Start it and wait until it says that it is up."""
        began = time.monotonic()
        self.incarnations += 1
        self.process = Started(self.command, self.folder / f"{self.name}-{self.incarnations}.log")
        self.steps = steps_between(began, self.reached(self.milestones))
        self.busy = max(1.0, self.seconds_to_start / max(0.1, _cpu_seconds(self.process.pid)))

    def reached(self, milestones: dict[str, str], after: int = 0) -> list[tuple[str, float]]:
        """When it said each of these, one after the other."""
        instants = []
        for step, pattern in milestones.items():
            self.said = self.process.says(pattern, after=after)
            after = self.said.end()
            instants.append((step, time.monotonic()))
        return instants

    @property
    def log_length(self) -> int:
        return len(self.process.log.read_text())

    def close(self) -> None:
        if self.incarnations:
            self.process.stop()

    def end(self, number: signal.Signals) -> None:
        """End it with this signal and reap it."""
        self.process.signal(number)
        self.process.ended()
        self.process.stop()


class World:
    """`with World(folder, seed) as world`: started and whole. `run` breaks things, `settle` ends it and reports."""

    def __init__(
        self,
        folder: Path,
        seed: int,
        say: Callable[[str], object] = lambda _: None,
        whole_seconds: float = WHOLE_SECONDS,
        aim: float | None = None,
    ) -> None:
        self._folder = folder
        self._whole_seconds = whole_seconds
        self._aim = aim
        """How soon the office is whole after a kill, on a quiet machine."""
        self._recoveries: list[Recovery] = []
        self._random = random.Random(seed)
        self._say = say
        self._exits = ExitStack()
        self._spent: dict[str, list[float]] = defaultdict(list)
        self._late: list[str] = []
        self._runs = folder / "runs"
        self._runs.touch()
        self._journals = itertools.count(1)
        self._descriptors = 0

    # --- up and down

    def __enter__(self) -> Self:
        try:
            self._begin()
        except BaseException:
            self._exits.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._exits.close()

    def _begin(self) -> None:
        server = [A2C, "server", "--log-level", "error", "--port"]
        self.server = self._party("server", [*server, "0"], _SERVER_STEPS)
        self._url = self.server.said[1]
        self.server.command = [*server, str(urlsplit(self._url).port)]  # so that it comes back where it was
        self._descriptors = self._server_descriptors()
        self._portal = self._exits.enter_context(start_blocking_portal())
        self._cables: dict[str, Any] = {}
        self.computers = [self._computer(name) for name in COMPUTERS]
        self.agent = self._party("agent", [], _AGENT_STEPS, start=False)
        self._cable("agent")
        self._start_agent()
        self._until_whole("start", WHOLE_AFTER_PAUSE_SECONDS)

    def _party(self, name: str, command: list[str], milestones: dict[str, str], *, start: bool = True) -> Party:
        party = Party(name, command, milestones, self._folder)
        self._exits.callback(party.close)
        if start:
            party.start()
        return party

    def _cable(self, name: str) -> str:
        cable = self._portal.call(self._new_cable)
        self._exits.callback(self._portal.call, cable.pull)
        self._cables[name] = cable
        return cable.url

    async def _new_cable(self) -> Cable:
        return await Cable(self._url).__aenter__()

    def _computer(self, name: str) -> Party:
        config = self._folder / f"{name}.json"
        recorder = [sys.executable, "-I", "-S", str(HERE / "recorder_mcp.py"), str(self._runs)]
        parameters = {"command": recorder[0], "args": recorder[1:]}
        meta = {"auto_apply": True}
        server = {"name": "recorder", "type": "stdio", "default_tool_meta": meta, "server_parameters": parameters}
        config.write_text(json.dumps([server]))
        place = ["--url", self._cable(name), "--office", OFFICE, "--name", name]
        command = [A2C, "computer", "run", "--headless", "--yes", "--config", str(config), *place]
        return self._party(name, command, _COMPUTER_STEPS)

    def _start_agent(self) -> None:
        journal = self._folder / f"journal-{next(self._journals)}"
        self.agent.command = [
            *(sys.executable, str(HERE / "agent.py"), self._cables["agent"].url, OFFICE, str(journal)),
            *COMPUTERS,
        ]
        self.agent.start()

    # --- what can happen

    def run(self, seconds: float) -> None:
        """Break something, wait until all is whole again, and so on for this long."""
        end = time.monotonic() + seconds
        deeds = [self._kill, self._end, self._kill_mcp_server, self._cut, self._stretch, self._freeze, self._squeeze]
        weights = [3, 1, 2, 3, 1, 2, 2]
        long_pauses = seconds >= 60
        while time.monotonic() < end:
            time.sleep(self._random.uniform(0.1, 0.6))
            (deed,) = self._random.choices(deeds, weights)
            party = self._random.choice([self.server, self.agent, *self.computers])
            pause = self._random.uniform(0.5, 3.0)
            if long_pauses and self._random.random() < 0.1:
                pause = _LONG_PAUSE
            deed(party, pause)

    def _kill(self, party: Party, pause: float) -> None:
        party.end(signal.SIGKILL)
        time.sleep(pause)
        heard = {computer.name: computer.log_length for computer in self.computers}
        self._restart(party)
        steps = dict(party.steps)
        if party is self.server:
            began = time.monotonic()
            for computer in self.computers:
                computer.reached({"reconnect": "connected to"}, heard[computer.name])
            steps["reconnect"] = time.monotonic() - began
        deed = f"kill {_kind(party)}"
        steps["agent"] = self._until_whole(deed, self._whole_seconds)
        self._recoveries.append(Recovery(deed, steps, party.busy))

    def _end(self, party: Party, _: float) -> None:
        party.end(signal.SIGTERM)
        self._restart(party)
        self._until_whole(f"end {_kind(party)}", self._whole_seconds)

    def _kill_mcp_server(self, _: Party, __: float) -> None:
        computers = {computer.process.pid: computer for computer in self.computers}
        owners = {pid: _above(pid, computers) for pid in read_runs(self._runs).pids if is_alive(pid)}
        pids = [pid for pid, owner in owners.items() if owner]
        if pids:
            victim = self._random.choice(pids)
            computer = computers[owners[victim]]
            said, began = computer.log_length, time.monotonic()
            os.kill(victim, signal.SIGKILL)
            steps = steps_between(began, computer.reached(_MCP_STEPS, said))
            # One that dies again and again is restarted after longer and longer pauses.
            steps["agent"] = self._until_whole("kill MCP server", WHOLE_AFTER_PAUSE_SECONDS)
            self._recoveries.append(Recovery("kill MCP server", steps, computer.busy))

    def _cut(self, party: Party, _: float) -> None:
        for cable in self._cables_of(party):
            self._portal.call(cable.cut)
        self._until_whole(f"cut {_kind(party)}", self._whole_seconds)

    def _stretch(self, party: Party, _: float) -> None:
        cables = self._cables_of(party)
        for cable in cables:
            cable.delay = 0.1
        time.sleep(1)
        for cable in cables:
            cable.delay = 0.0
        self._until_whole(f"delay {_kind(party)}", self._whole_seconds)

    def _freeze(self, party: Party, pause: float) -> None:
        party.process.signal(signal.SIGSTOP)
        time.sleep(pause)
        party.process.signal(signal.SIGCONT)
        self._until_whole(f"freeze {_kind(party)}", WHOLE_AFTER_PAUSE_SECONDS)

    def _squeeze(self, party: Party, pause: float) -> None:
        cables = self._cables_of(party)
        for cable in cables:
            self._portal.call(cable.pause)
        time.sleep(pause)
        for cable in cables:
            self._portal.call(cable.resume)
        self._until_whole(f"pause the cable of {_kind(party)}", WHOLE_AFTER_PAUSE_SECONDS)

    def _restart(self, party: Party) -> None:
        if party is self.agent:
            self._start_agent()
        else:
            party.start()

    def _cables_of(self, party: Party) -> list[Any]:
        return list(self._cables.values()) if party is self.server else [self._cables[party.name]]

    def _until_whole(self, deed: str, seconds: float) -> float:
        """Wait until every computer answers the agent, and count it when that took too long; returns the seconds.

        A machine that is busy with something else is slow in everything: a start that took three seconds instead of
        one grants three times as much here.
        """
        starts = [party.seconds_to_start for party in (self.server, self.agent, *self.computers)]
        allowed = max(seconds, 3 * max(starts))
        began = time.monotonic()
        said = len(self.agent.process.log.read_text())
        self.agent.process.tell("whole")
        try:
            self.agent.process.says("WHOLE", 4 * allowed, after=said)
        except AssertionError as error:
            raise AssertionError(f"after {deed}: {error}") from None
        spent = time.monotonic() - began
        self._spent[deed].append(spent)
        self._say(f"{deed}: whole after {spent:.2f} s")
        if spent > allowed:
            self._late.append(f"{deed}: whole after {spent:.1f} s, more than {allowed:.1f}")
        return spent

    # --- the end

    def settle(self) -> list[str]:
        """End everything and say what is wrong with it: nothing, if all is well."""
        problems = list(self._late)
        if self._aim is not None:
            problems += late(self._recoveries, self._aim)
        said = len(self.agent.process.log.read_text())
        self.agent.process.tell("view")
        view, room = self.agent.process.says(r"VIEW (.*) ROOM (.*)", after=said).groups()
        if view != room:
            problems.append(f"the agent's view has {view}, the room {room}")
        self.agent.end(signal.SIGTERM)
        if "DONE" not in self.agent.process.log.read_text():
            problems.append("the agent did not end its calls")
        for computer in self.computers:
            computer.end(signal.SIGTERM)
        problems += self._left_at_the_server()
        self.server.end(signal.SIGTERM)
        self._books = balance(read_journals(self._folder), read_runs(self._runs))
        deadline = time.monotonic() + 30
        while alive := [pid for pid in read_runs(self._runs).pids if is_alive(pid)]:
            if time.monotonic() > deadline:
                problems.append(f"MCP servers are left over: {alive}")
                break
            time.sleep(0.05)
        return problems + self._books.problems

    def _left_at_the_server(self) -> list[str]:
        deadline = time.monotonic() + 30
        while problems := self._server_leftovers():
            if time.monotonic() > deadline:
                return problems
            time.sleep(0.1)
        return []

    def _server_leftovers(self) -> list[str]:
        with urllib.request.urlopen(f"{self._url}/metrics", timeout=20) as response:
            lines = response.read().decode().splitlines()
        left = [f"the server counts {line}" for line in lines if _GAUGE.match(line) and not line.endswith(" 0.0")]
        if self._server_descriptors() > self._descriptors + 1:  # this request's own connection
            left.append(f"the server has {self._server_descriptors()} descriptors, {self._descriptors} at its start")
        return left

    def _server_descriptors(self) -> int:
        return len(list(Path(f"/proc/{self.server.process.pid}/fd").iterdir()))

    def summary(self) -> str:
        lines = [
            f"{deed:32} {len(spent):4} times, slowest {max(spent):5.2f} s"
            for deed, spent in sorted(self._spent.items())
        ]
        return "\n".join([*lines, *where_the_seconds_go(self._recoveries), self._books.summary()])


def _kind(party: Party) -> str:
    return "computer" if party.name in COMPUTERS else party.name


def _above(pid: int, computers: Collection[int]) -> int:
    """The computer whose guardian started this process; 0 for a process that has ended."""
    while pid and pid not in computers:
        fields = _stat(pid)
        pid = int(fields[1]) if fields else 0
    return pid


def _cpu_seconds(pid: int) -> float:
    fields = _stat(pid)
    return sum(map(int, fields[11:13])) / _TICKS if fields else 0.0


def _stat(pid: int) -> list[str]:
    """What the kernel says of a process behind its name: state, parent, …, time of its own and in the kernel."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return []
