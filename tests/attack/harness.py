"""A server under attack and an honest pair beside it, each role a process of its own.

What an attack may cost is measured by the pair: its slowest call during the attack against its slowest call when all
was quiet, and whether one of the two was disconnected.
"""

import itertools
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from tests.attack.processes import A2C, DEADLINE, Started, started

__all__ = ["ECHO", "HERE", "Pair", "Phase", "Target", "honest_pair", "target"]

HERE = Path(__file__).parent
ECHO = str(HERE.parents[1] / "bench" / "echo_mcp.py")
_QUIET_SECONDS = 2.0
#: How long ago the quiet after one attack may have been, to be the quiet before the next one.
_LATELY = 5.0
#: Between two calls of the agent: few calls say how slow the slowest is in quiet, or in an attack that takes long.
_PAUSE_IN_QUIET, _PAUSE = 0.05, 0.01
_names = itertools.count()


@dataclass(frozen=True)
class Target:
    """A running server."""

    url: str
    process: Started
    folder: Path
    api_key: str | None = None

    @property
    def port(self) -> int:
        port = urlsplit(self.url).port
        assert port is not None
        return port

    @property
    def log(self) -> str:
        return self.process.log.read_text(errors="replace")


@contextmanager
def target(folder: Path, kind: str = "async", *options: str, api_key: str | None = None) -> Iterator[Target]:
    """A server of this kind, `async` or `threaded`; `options` are those of `a2c server`."""
    keys = (api_key,) if api_key else ()
    commands = {
        "async": [A2C, "server", "--port", "0", *(part for key in keys for part in ("--api-key", key)), *options],
        "threaded": [sys.executable, str(HERE / "threaded_server.py"), *keys, *options],
    }
    with started(commands[kind], folder / f"server-{next(_names)}.log") as process:
        url = process.says(r"ready on (http://[\d.]+:\d+)\s")[1]
        yield Target(url, process, folder, api_key)


@dataclass(frozen=True)
class Phase:
    """How the honest agent fared for a while."""

    calls: int
    slowest: float
    total: float
    failures: list[str] = field(default_factory=list)
    departures: list[str] = field(default_factory=list)

    @property
    def mean(self) -> float:
        return self.total / max(self.calls, 1)


class Pair:
    """An agent that calls all the time and the computer that it calls."""

    def __init__(self, agent: Started, computer: Started) -> None:
        self.agent = agent
        self.computer = computer
        self._quiet: tuple[float, Phase] | None = None
        """The last quiet, and when it ended."""

    def watch(self, attack: Callable[[], object], *, at_least: float = 0.0, pause: float = _PAUSE) -> Phase:
        """How the pair fared while the attack ran, and for at least these seconds."""
        self._count(f"start {pause}")
        began = time.monotonic()
        attack()
        time.sleep(max(0.0, at_least - (time.monotonic() - began)))
        return self._count("stop")

    def _count(self, word: str) -> Phase:
        said = len(self.agent.log.read_text())
        self.agent.tell(word)
        return Phase(**json.loads(self.agent.says(r"COUNT (.*)\n", after=said)[1]))

    def quiet(self) -> Phase:
        phase = self.watch(lambda: None, at_least=_QUIET_SECONDS, pause=_PAUSE_IN_QUIET)
        self._quiet = time.monotonic(), phase
        return phase

    def _quiet_before(self) -> Phase:
        """The quiet after the last attack, if that was a moment ago."""
        if self._quiet is not None and time.monotonic() - self._quiet[0] < _LATELY:
            return self._quiet[1]
        return self.quiet()

    def unharmed_by(
        self, attack: Callable[[], object], *, times: float = 25.0, at_least: float = 1.0, is_long: bool = False
    ) -> Phase:
        """Run the attack, and assert that it cost the pair nothing much.

        Nobody was disconnected, no call failed, and no call took more than `times` its slowest in quiet (or 40 ms),
        which is measured before and after because a shared machine is quiet in different ways.
        """
        before = self._quiet_before()
        during = self.watch(attack, at_least=at_least, pause=_PAUSE_IN_QUIET if is_long else _PAUSE)
        after = self.quiet()
        # Six workers share two cores: a short quiet says little about how long a process may have to wait for one.
        quiet = max(before.slowest, after.slowest, 0.04)
        assert not during.departures + after.departures, during
        assert not during.failures + after.failures, during
        assert during.calls > 0
        assert during.slowest <= times * quiet, f"{during.slowest:.3f} s against {quiet:.3f} s in quiet"
        return during


@contextmanager
def honest_pair(
    server: Target,
    office: str = "honest",
    config: list[object] | None = None,
    *options: str,
    agent_at: Target | None = None,
    live: bool = False,
) -> Iterator[Pair]:
    """An agent, with a live view or without, and its computer, the agent at another server if one is named; `config`
    adds MCP servers to the computer's echo server, `options` are the computer's.
    """
    echo = {
        "name": "echo",
        "type": "stdio",
        "default_tool_meta": {"auto_apply": True},
        "server_parameters": {"command": sys.executable, "args": ["-I", "-S", ECHO]},
    }
    number = next(_names)
    file = server.folder / f"honest-{number}.json"
    file.write_text(json.dumps([echo, *(config or [])]))
    name = f"honest-{number}"
    keys = ["--api-key", server.api_key] if server.api_key else []
    place = ["--url", server.url, "--office", office, "--name", name]
    state = ["env", f"XDG_STATE_HOME={server.folder}"]  # what a console remembers
    with ExitStack() as exits:
        computer = exits.enter_context(
            started(
                [*state, A2C, "computer", "run", "--headless", "--yes", "--config", str(file), *place, *keys, *options],
                server.folder / f"{name}-computer.log",
            )
        )
        agent = exits.enter_context(
            started(
                [
                    sys.executable,
                    str(HERE / "honest_agent.py"),
                    *(["--live"] if live else []),
                    (agent_at or server).url,
                    office,
                    name,
                    *keys[1:],
                ],
                server.folder / f"{name}-agent.log",
            )
        )
        computer.says("is in office")
        agent.says("READY", DEADLINE)
        yield Pair(agent, computer)
