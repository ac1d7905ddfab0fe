"""Runs VRL programs for `vrl.py`, in a process of its own. Knows nothing of tools.

Its argument is how many bytes of memory it may have; over them it aborts, as the library does. One JSON object a line:
`{"program", "event", "seconds"}` comes in on stdin, `{"event"}` or `{"error"}` goes out on stdout. It ends with its
stdin.
"""

import json
import os
import signal
import sys
from typing import Any

from vrl_python import VRLRuntime

from a2c_smcp.utils.worker_bounds import bound_memory

#: How much longer than the Computer this process waits for a program to end.
_GRACE_SECONDS = 1.0


def main() -> None:
    bound_memory(int(sys.argv[1]))
    try:
        _serve()
    except MemoryError:
        os.abort()


def _serve() -> None:
    runtime = VRLRuntime()
    for line in sys.stdin.buffer:
        request = json.loads(line)
        _end_after(request["seconds"] + _GRACE_SECONDS)
        sys.stdout.write(json.dumps(_answer(runtime, request)) + "\n")
        sys.stdout.flush()
        _end_after(0)


def _end_after(seconds: float) -> None:
    """Let the kernel end this process, where it can: if the Computer is gone, nothing else does. 0 takes it back."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)


def _answer(runtime: VRLRuntime, request: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"event": runtime.execute(request["program"], request["event"]).processed_event}
    except MemoryError:
        raise
    except Exception as error:  # whatever the program or the library does, the next request is answered
        return {"error": str(error)}


if __name__ == "__main__":
    main()
