"""The holder as a process: `python -m a2c_smcp.agent.seat`, started by `starting` and told what to do on stdin."""

import json
import os
import sys


def main() -> None:
    told = json.load(sys.stdin)
    # Who started it does not wait for it, and is not asked to clean up after it. Before anything large is imported.
    if os.fork():
        os._exit(0)
    from a2c_smcp.agent.seat.starting import hold

    hold(told)


if __name__ == "__main__":
    main()
