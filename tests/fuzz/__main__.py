"""`python -m tests.fuzz`: hostile frames at each server, hostile requests at all else that serves HTTP, hostile
messages over NATS, hostile answers for an agent, and what came of it. Exits with 1 when something did.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from tests.fuzz.answers import fuzz_answers
from tests.fuzz.http_surfaces import SURFACES, fuzz_surface
from tests.fuzz.nats_frames import fuzz_nats
from tests.fuzz.run import fuzz


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument(
        "--packets",
        type=int,
        default=10_000,
        help="frames for each server (default: 10000)",
    )
    parser.add_argument("--seed", type=int, default=1, help="which frames (default: 1)")
    arguments = parser.parse_args()
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        problems += [f"server: {what}" for what in fuzz(Path(folder), arguments.packets, arguments.seed, print)]
    for name in SURFACES:
        with tempfile.TemporaryDirectory() as folder:
            found = fuzz_surface(Path(folder), name, arguments.packets // 4, arguments.seed, print)
            problems += [f"{name}: {what}" for what in found]
    with tempfile.TemporaryDirectory() as folder:
        problems += [f"nats: {what}" for what in fuzz_nats(Path(folder), arguments.packets, arguments.seed, print)]
    problems += [f"agent: {what}" for what in fuzz_answers(arguments.packets, arguments.seed, print)]
    for problem in problems:
        print(f"✗ {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
