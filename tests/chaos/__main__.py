"""`python -m tests.chaos`: every party is killed, stopped and cut off, and the books must balance.

Prints what it does and how long it took until the office was whole again, and exits with 1 when something was lost.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from tests.chaos.world import World


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seconds", type=float, default=300.0, help="how long things are broken (default: 300)")
    parser.add_argument("--seed", type=int, default=1, help="which things, in which order (default: 1)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, World(Path(folder), arguments.seed, say=print) as world:
        world.run(arguments.seconds)
        problems = world.settle()
    for problem in problems:
        print(f"✗ {problem}")
    print(world.summary())
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
