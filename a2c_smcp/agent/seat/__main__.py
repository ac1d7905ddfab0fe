"""The holder as a process: `python -m a2c_smcp.agent.seat`, started by `starting` and told what to do on stdin."""

import json
import os
import sys


def main() -> None:
    told = json.load(sys.stdin)
    # The process that started the holder does not wait for it and does not clean up after it. Detach before importing
    # anything large.
    if os.fork():
        os._exit(0)
    from a2c_smcp.agent.seat.starting import hold

    hold(told)


if __name__ == "__main__":
    main()
