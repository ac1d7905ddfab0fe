"""The benchmark runs: small counts, no thresholds."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench import aims, hosts, record, rules
from bench.report import Aim, Group, document

ROOT = Path(__file__).parent.parent


@pytest.mark.timeout(520)  # fifteen seconds of CPU in two dozen processes: minutes on a machine that is busy
def test_a_smoke_run_prints_tables_writes_figures_and_draws_charts(tmp_path: Path) -> None:
    figures, page = tmp_path / "figures.json", tmp_path / "benchmarks.md"
    result = subprocess.run(
        [sys.executable, "-m", "bench", "--smoke", "--json", str(figures), "--document", str(page)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    measured = json.loads(figures.read_text())
    assert measured["One office of 40 computers"]["ours"]["ack of the last join, ms"] > 0
    assert measured["A tool call"]["ours"]["p50, 100 B, ms"] > 0
    assert measured["A tool call"]["ours"]["p50, 100 KB of objects, ms"] > 0
    assert measured["Desktop, 8 servers × 5 windows, 50 ms each"]["ours"]["windows"] == 40
    assert (
        measured[aims.HOSTS][hosts.OURS["stdio"]]["p50, 100 B, ms"] > 0
        and measured[aims.HOSTS][hosts.OURS["http"]]["p50, 100 B, ms"] > 0
    )
    assert measured["An 8 MB result"]["ours"]["ms"] > 0
    assert measured["A folder of 100 files"]["ours"]["100 files, second time, s"] > 0
    assert measured[aims.ACROSS]["ours"]["CPU s per 1,000 calls, NATS"] >= 0
    assert measured["60 connections on two processes, an office of 20 across both"]["ours"]["all joined, s"] > 0
    assert "## A tool call" in page.read_text()


def test_the_simulation_of_many_processes_comes_to_its_end_and_loses_nobody() -> None:
    costs = {"way": 6e-5, "write": 1.2e-5, "deliver": 2e-6, "send": 4e-5, "receive": 1.3e-5}
    command = [sys.executable, "-m", "bench.simulation", "--one", json.dumps([3, 60, costs])]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stderr
    row = json.loads(result.stdout)
    assert (row["processes"], row["members"], row["failures"]) == (3, 60, 0)
    # Clients with their secret do not wait for the lease of their old process. Strangers do.
    assert row["back"] < 10 < row["lost"] < 20


def test_a_chart_shows_each_ratio() -> None:
    group = Group("t", {"ours": {"ms": 1.0, "only": 2.0}, "existing": {"ms": 4.0, "only": None}})
    text = document([group], "a machine")
    assert "| ms | 1 | 4 | 0.25× |" in text
    assert "ours     ██████████ 0.25" in text
    assert "| only | 2 | – |  |" in text


def test_an_aim_says_whether_it_was_reached() -> None:
    some = [
        Aim("fast", 0.5, lambda groups: groups["t"].ratio("ms")),
        Aim("many", 5, lambda groups: groups["t"].ratio("rate"), at_least=True),
        Aim("not measured", 1, lambda groups: groups["t"].ratio("only")),
    ]
    group = Group("t", {"ours": {"ms": 1.0, "rate": 4.0, "only": 2.0}, "existing": {"ms": 4.0, "rate": 1.0}})
    text = document([group], "a machine", some)
    assert "| fast | ≤ 0.5× | 0.25× | reached |" in text
    assert "| many | ≥ 5× | 4.00× | missed |" in text
    assert "not measured" not in text


def test_every_aim_is_measured_by_a_full_run() -> None:
    figures = {
        "p50, 100 B, ms": 1.0,
        "p50, 100 KB, ms": 1.0,
        "calls/s, 100 B, 64 in flight": 1.0,
        "CPU s per 1,000 calls, all three": 1.0,
        "ack of the last join, ms": 1.0,
        "broadcast, server CPU, ms": 1.0,
        "p50, ms": 1.0,
        "the slowest alone, s": 1.0,
        "ten, one hanging, s": 1.0,
        "CPU s per 1,000 calls, servers": 1.0,
        "deciding alone, ms": 1.0,
    }
    figures |= {"100 MB through a terminal, s": 1.0, "CPU of the computer meanwhile, % of a core": 1.0}
    figures |= {"5,000 nodes, ms": 1.0, "200,000 nodes, ms": 1.0}
    figures |= {"PDF of 500 pages, ms": 1.0, "sheet of 100,000 rows, ms": 1.0}
    titles = (aims.CALLS, aims.OFFICE, aims.SLOW_WINDOWS, aims.MANY_WINDOWS, aims.BOOT)
    groups = {title: Group(title, {"ours": figures, "existing": figures}) for title in titles}
    groups |= {title: Group(title, {"ours": figures}) for title in (aims.TERMINAL, aims.OUTLINE)}
    groups[aims.INSIDE] = Group(aims.INSIDE, {"ours": figures, "without NATS": figures}, "without NATS")
    groups[aims.ACROSS] = Group(aims.ACROSS, {"ours": figures, "one process": figures}, "one process")
    groups[aims.FIRST_PAGES] = Group(aims.FIRST_PAGES, {"ours": figures, "markitdown": figures}, "markitdown")
    groups[aims.RULES] = Group(aims.RULES, {rules.WITHOUT: figures, rules.MANY: figures}, rules.WITHOUT, rules.MANY)
    halves = {name: value / 2 for name, value in figures.items()}
    figures_of_hosts = dict.fromkeys((hosts.AGENT, *hosts.KIT.values()), halves)
    figures_of_hosts |= dict.fromkeys((*hosts.OURS.values(), *hosts.PROXY.values()), figures)
    groups[aims.HOSTS] = Group(aims.HOSTS, figures_of_hosts, hosts.AGENT, hosts.OURS["stdio"])
    cpu = {name: {record.CPU: value} for name, value in ((record.WITHOUT, 1.0), (record.BOTH, 2.0))}
    groups[aims.RECORDED] = Group(aims.RECORDED, cpu, record.WITHOUT, record.BOTH)
    groups[aims.RECORD] = Group(aims.RECORD, {"ours": {record.NOTHING_FOUND: 1.0, "MB": 1.0}})
    assert all(aim.measure(groups) == 1 for aim in aims.AIMS)
