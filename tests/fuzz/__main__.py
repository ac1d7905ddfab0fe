"""`python -m tests.fuzz`: hostile frames for servers and answers for an agent. Exits with 1 when something is wrong."""

import argparse
import sys
import tempfile
from pathlib import Path

from tests.fuzz.answers import fuzz_answers
from tests.fuzz.run import fuzz


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--packets", type=int, default=10_000, help="frames for each server (default: 10000)")
    parser.add_argument("--seed", type=int, default=1, help="which frames (default: 1)")
    arguments = parser.parse_args()
    problems = []
    for kind in ("async", "threaded"):
        with tempfile.TemporaryDirectory() as folder:
            problems += [
                f"{kind}: {what}" for what in fuzz(Path(folder), kind, arguments.packets, arguments.seed, print)
            ]
    problems += [f"agent: {what}" for what in fuzz_answers(arguments.packets, arguments.seed, print)]
    for problem in problems:
        print(f"✗ {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
