"""A hostile MCP server beside an honest one on the same computer: the honest one's agent hardly notices."""

import contextlib
import json
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from a2c_smcp.agent import AsyncSMCPAgentClient
from a2c_smcp.errors import PayloadTooLargeError, RequestTimeoutError
from tests.attack.harness import Target, honest_pair, target
from tests.attack.processes import A2C, Started, started

HOSTILE = str(Path(__file__).with_name("hostile_mcp.py"))


def hostile(*options: str) -> dict[str, Any]:
    return {
        "name": "hostile",
        "type": "stdio",
        "protocol": "legacy",
        "server_parameters": {"command": sys.executable, "args": ["-I", "-S", HOSTILE, *options]},
    }


def peak(process: Started) -> int:
    """The most memory that a process ever had, in MiB. Linux only."""
    return memory(process, "VmHWM")


def memory(process: Started, which: str = "VmRSS") -> int:
    """The memory that a process has, in MiB. Linux only."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    found = re.search(rf"{which}:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) // 1024


def test_a_line_of_300_megabytes_is_not_kept(tmp_path: Path) -> None:
    go = tmp_path / "go"
    attacker = hostile("blare", str(go), "300000000")
    with target(tmp_path) as server, honest_pair(server, config=[attacker]) as pair:
        before = peak(pair.computer)

        def attack() -> None:
            go.touch()
            pair.computer.says(r"wrote a line of \d{9} bytes")

        pair.unharmed_by(attack)
        assert peak(pair.computer) - before < 150
        assert "hostile is backing_off" not in pair.computer.log.read_text()


def test_a_hundred_thousand_resources_hold_nobody_up(tmp_path: Path) -> None:
    go = tmp_path / "go"
    attacker = {**hostile("resources", str(go), "10500", "100500"), "share": "all"}
    with target(tmp_path) as server, honest_pair(server, config=[attacker]) as pair:
        quiet = pair.quiet()

        def attack() -> None:
            go.touch()
            pair.computer.says(
                "500 windows over the first 10000 and 500 documents over the first 100000"
                " and 11000 resources over the first 100000"
            )

        # What follows, subscribing and reading, is still going on when this ends.
        during = pair.watch(attack, at_least=10)
        assert not during.departures
        assert not during.failures
        # Its page alone has ten megabytes of JSON. Without slices nobody would be answered for half a minute.
        assert during.slowest < 200 * quiet.slowest
        assert during.mean < 40 * quiet.mean


def test_changes_without_end_of_everything_that_is_shared_hold_nobody_up(tmp_path: Path) -> None:
    go = tmp_path / "go"
    attacker = {**hostile("storm", str(go)), "share": "all"}
    with target(tmp_path) as server, honest_pair(server, config=[attacker]) as pair:
        before = memory(pair.computer)

        def attack() -> None:
            go.touch()
            time.sleep(1.5)
            go.unlink()

        pair.unharmed_by(attack)
        assert memory(pair.computer) - before < 100


@contextmanager
def computer(server: Target, *configs: dict[str, Any]) -> Iterator[Started]:
    """A computer called `pc` in the office `attacked`."""
    file = server.folder / "attacked.json"
    file.write_text(json.dumps(configs))
    place = ["--url", server.url, "--office", "attacked", "--name", "pc"]
    command = [A2C, "computer", "run", "--headless", "--config", str(file), *place]
    with started(command, server.folder / "attacked.log") as process:
        process.says("is in office")
        yield process


async def test_windows_that_are_more_than_a_message_are_cut_and_the_least_important_left_out(tmp_path: Path) -> None:
    size = 3_000_000
    with target(tmp_path) as server, computer(server, hostile("large", "40", str(size))) as process:
        before = peak(process)
        async with AsyncSMCPAgentClient(server.url, name="agent", live=False) as agent:
            await agent.join_office("attacked")
            desktops: list[str] = []
            with anyio.fail_after(100):
                while len(desktops) < 15:  # what a busy machine does not read in time is left out
                    with contextlib.suppress(RequestTimeoutError):
                        desktops = await agent.get_desktop("pc")
            assert len(desktops) == 15
            for number, desktop in enumerate(desktops):
                assert desktop.startswith(f"window://hostile/{number}\n\nxxx")
                assert desktop.endswith(
                    f"[cut: 1048576 of {size} bytes are shown; ask for this window alone to have it whole]"
                )
            [whole] = await agent.get_desktop("pc", window="window://hostile/39")
            assert whole == "window://hostile/39\n\n" + "x" * size
        assert peak(process) - before < 400
        assert "windows are left out" in process.log.read_text()


async def test_a_window_that_is_more_than_a_message_is_413_alone(tmp_path: Path) -> None:
    configs = [hostile("large", "2", "17000000"), {**hostile("large", "1", "50000000"), "name": "larger"}]
    with target(tmp_path) as server, computer(server, *configs):
        async with AsyncSMCPAgentClient(server.url, name="agent", live=False) as agent:
            await agent.join_office("attacked")
            with anyio.fail_after(60):
                while len(desktops := await agent.get_desktop("pc")) < 2:
                    pass
            assert all("[cut: 1048576 of 17000000 bytes" in desktop for desktop in desktops)
            for uri in ("window://hostile/0", "window://hostile/1"):
                with pytest.raises(PayloadTooLargeError):
                    await agent.get_desktop("pc", window=uri)
