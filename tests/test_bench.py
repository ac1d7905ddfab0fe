"""The benchmark runs: small counts, no thresholds."""

import json
import subprocess
import sys
from pathlib import Path

from bench.report import Group, document

ROOT = Path(__file__).parent.parent


def test_a_smoke_run_prints_tables_writes_figures_and_draws_charts(tmp_path: Path) -> None:
    figures, page = tmp_path / "figures.json", tmp_path / "benchmarks.md"
    result = subprocess.run(
        [sys.executable, "-m", "bench", "--smoke", "--json", str(figures), "--document", str(page)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    measured = json.loads(figures.read_text())
    assert measured["One office of 40 computers"]["ours"]["ack of the last join, ms"] > 0
    assert measured["A tool call"]["ours"]["p50, 100 B, ms"] > 0
    assert measured["Desktop, 8 servers × 5 windows, 50 ms each"]["ours"]["windows"] == 40
    assert measured["An 8 MB result"]["ours"]["ms"] > 0
    assert "## A tool call" in page.read_text()


def test_a_chart_shows_each_ratio() -> None:
    group = Group("t", {"ours": {"ms": 1.0, "only": 2.0}, "existing": {"ms": 4.0, "only": None}})
    text = document([group], "a machine")
    assert "| ms | 1 | 4 | 0.25× |" in text
    assert "ours     ██████████ 0.25" in text
    assert "| only | 2 | – |  |" in text
