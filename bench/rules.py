"""A call with rules beside one without, in one process: what deciding costs. Taking turns, the median of the rounds."""

import asyncio
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from a2c_smcp.computer.asker import Asker
from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.rules.deciding import Moment, RuleCounters, RuledCall, RuledTool, decide
from a2c_smcp.computer.rules.rule import MOST_RULES, Rule, parse_rules

WITHOUT = "no rules"
TEN = "10 rules"
MANY = f"{MOST_RULES:,} rules"
FOLDER = "10 rules, one with a folder"
_ECHO = Path(__file__).with_name("echo_mcp.py")


def rules(count: int, *, folder: bool = False) -> tuple[Rule, ...]:
    """Rules for other tools, and for the tool in the end: the last one decides."""
    others = [
        {"effect": "deny", "tool": f"other_{number}*", "args": {"text": {"glob": "*secret*"}}}
        for number in range(count - 1)
    ]
    condition = {"under": "/tmp"} if folder else {"longest": 1000}
    parsed, problems = parse_rules([*others, {"effect": "allow", "tool": "echo", "args": {"text": condition}}])
    assert not problems
    return parsed


def run(calls: int, rounds: int) -> dict[str, dict[str, Any]]:
    """CPU and time of a small call, by how many rules there are."""
    return asyncio.run(_run(calls, rounds))


async def _run(calls: int, rounds: int) -> dict[str, dict[str, Any]]:
    ways: dict[str, tuple[Rule, ...]] = {
        WITHOUT: (),
        TEN: rules(10),
        FOLDER: rules(10, folder=True),
        MANY: rules(MOST_RULES),
    }
    config = {
        "name": "echo",
        "type": "stdio",
        "server_parameters": {"command": sys.executable, "args": [str(_ECHO)]},
        "default_tool_meta": {"auto_apply": True},
    }
    samples: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
    async with Computer("bench", mcp_servers=[config]) as computer:
        for _ in range(rounds):
            for way, made in ways.items():
                computer.decisions.rules.use_config(made)
                samples[way].append(await _calls(computer, calls))
    deciding = {way: _deciding(made) for way, made in ways.items()}
    return {
        way: {
            "a call, ms": statistics.median(wall for wall, _ in found),
            "CPU of a call, µs": statistics.median(cpu for _, cpu in found),
            "deciding alone, ms": deciding[way],
        }
        for way, found in samples.items()
    }


async def _calls(computer: Computer, count: int) -> tuple[float, float]:
    began, cpu = time.perf_counter(), time.process_time()
    for number in range(count):
        result = await computer.execute_tool(str(number), "echo", {"text": "/tmp/x"}, 60)
        assert not result.is_error, result
    return (time.perf_counter() - began) / count * 1e3, (time.process_time() - cpu) / count * 1e6


def _deciding(made: tuple[Rule, ...]) -> float:
    """Going through all rules, without the index by which a computer skips those of other tools."""
    call = RuledCall(RuledTool("echo", "echo", "echo"), {"text": "/tmp/x"}, Asker("planner", "home", True))
    now, counters = Moment(1.8e9, 600, 1.0), RuleCounters()
    times = []
    for _ in range(20):
        began = time.perf_counter()
        decide(made, call, now, counters)
        times.append(time.perf_counter() - began)
    return min(times) * 1e3
