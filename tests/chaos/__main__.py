"""`python -m tests.chaos`: every party is killed, stopped and cut off, and the books must balance.

Prints what it does, how long it took until the office was whole again, and where the seconds went after a kill. Exits
with 1 when something was lost, or took too long.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from tests.chaos.world import World

#: How many seconds after a kill the office is whole, on a quiet machine. The time that chaos itself lets pass between
#: the kill and the new start does not count.
AIM = 4.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seconds", type=float, default=300.0, help="how long things are broken (default: 300)")
    parser.add_argument("--seed", type=int, default=1, help="which things, in which order (default: 1)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, World(Path(folder), arguments.seed, say=print, aim=AIM) as world:
        world.run(arguments.seconds)
        problems = world.settle()
    for problem in problems:
        print(f"✗ {problem}")
    print(world.summary())
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
