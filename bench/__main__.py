"""`make bench`: ours beside the existing implementation, on the same work, in one run. Ratios, not absolute times."""

import argparse
import json
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench import offices

LABELS = {
    "join_10th_ms": "ack of the 10th join",
    "join_last_ms": "ack of the last join",
    "broadcast_cpu_ms": "broadcast, server CPU",
    "cpu_per_receiver_ms": "broadcast, server CPU per receiver",
    "kib_per_member": "memory per member, KiB",
    "kib_left_per_member": "memory kept per member that went, KiB",
    "kib_growth_per_member": "growth when as many come and go again, KiB",
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="small counts, ours alone: does it run at all?")
    parser.add_argument("--members", type=int, default=1000, help="members of the one office (1000)")
    parser.add_argument("--json", type=Path, help="write the figures there")
    args = parser.parse_args()
    contestants = ["ours"] if args.smoke else ["ours", "existing"]
    members = 40 if args.smoke else args.members
    results = {f"one office of {members}": offices.run(contestants, members)}
    console = Console()
    for title, figures in results.items():
        console.print(_table(title, figures))
    if args.json:
        args.json.write_text(json.dumps(results, indent=2) + "\n")


def _table(title: str, figures: dict[str, dict[str, Any]]) -> Table:
    table = Table("what", *figures, "ratio", title=title)
    for key, label in LABELS.items():
        values = [figures[contestant][key] for contestant in figures]
        ratio = f"{values[0] / values[1]:.2f}×" if len(values) == 2 and values[1] else ""
        table.add_row(label, *(f"{value:.3f}" for value in values), ratio)
    return table


if __name__ == "__main__":
    main()
