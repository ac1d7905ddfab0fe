"""The benchmark runs: small counts, no thresholds."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_a_smoke_run_prints_a_table_and_writes_figures(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    result = subprocess.run(
        [sys.executable, "-m", "bench", "--smoke", "--json", str(figures)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert "ack of the last join" in result.stdout
    assert json.loads(figures.read_text())["one office of 40"]["ours"]["join_last_ms"] > 0
