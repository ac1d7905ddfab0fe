"""An MCP stdio server on the standard library that starts processes of every kind, and says which.

    leaving.py FILE [stubborn] [scrub] [breeds] [regrows] [murders]

FILE gets a line `KIND PID` for each process, once it is what it says: `server`, `child` and `grandchild` in the
server's group, `session` with one of its own, `daemon` forked twice. `stubborn`: they ignore SIGTERM. `scrub`: session
and daemon have an empty environment. `breeds`: a daemon makes processes that make processes, a hundred in all, each
with a session of its own. `regrows`: two processes start each other again when one is killed. `murders`: a daemon kills
the server's parent. The command line of each process has FILE in it.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress

FILE, *TRAITS = sys.argv[1:]
SLEEP = "import time; time.sleep(3600)"


def note(kind: str, pid: int) -> None:
    file = os.open(FILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{kind} {pid}\n".encode())
    os.close(file)


def fork(work: Callable[[], None]) -> int:
    if (pid := os.fork()) == 0:
        try:
            work()
        finally:
            os._exit(0)
    return pid


def stay(kind: str) -> None:
    """Become another program, which does nothing. What is ignored before an exec is ignored after it."""
    for fd in range(3):
        os.close(fd)
        os.open(os.devnull, os.O_RDWR)
    if "scrub" in TRAITS and kind in ("session", "daemon"):
        arguments = [sys.executable, "-I", "-S", "-c", f"{NOTE}; {SLEEP}", FILE, kind]
        os.execve(sys.executable, arguments, {})
    note(kind, os.getpid())
    time.sleep(3600)


NOTE = (
    "import os, sys; f = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND); os.write(f, b'%s %d\\n' % "
    "(sys.argv[2].encode(), os.getpid()))"
)


def child() -> None:
    fork(lambda: stay("grandchild"))
    stay("child")


def session() -> None:
    os.setsid()
    stay("session")


def daemon() -> None:
    os.setsid()
    fork(be_daemon)


def be_daemon() -> None:
    if "breeds" in TRAITS:
        fork(lambda: breed(1))
    if "regrows" in TRAITS:
        fork(regrow)
    if "murders" in TRAITS:
        fork(murder)
    stay("daemon")


def murder() -> None:
    os.setsid()
    time.sleep(0.5)  # after the others have started
    os.kill(PARENT, signal.SIGKILL)
    time.sleep(3600)


def regrow() -> None:
    while True:
        parent = os.getpid()
        if (pid := os.fork()) == 0:
            os.setsid()
            while os.getppid() == parent:
                time.sleep(0.001)
            continue  # a head is off: grow another
        os.waitpid(pid, 0)


def breed(generation: int) -> None:
    """Make two of our kind and go, again and again. It stops by itself, for the sake of the machine."""
    os.setsid()
    if generation < 7:
        for _ in range(2):
            fork(lambda: breed(generation + 1))
        time.sleep(0.05)
    else:
        time.sleep(3600)


PARENT = os.getppid()


def main() -> None:
    if "stubborn" in TRAITS:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    note("server", os.getpid())
    for work in (child, session, daemon):
        pid = fork(work)
        if work is daemon:
            os.waitpid(pid, 0)
    with suppress(BrokenPipeError):  # the computer was killed while it waited for an answer
        for line in sys.stdin:
            message = json.loads(line)
            if "id" in message:
                answer = answers(message)
                print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
    if "stubborn" in TRAITS:
        time.sleep(3600)


def answers(message: dict[str, object]) -> dict[str, object]:
    if message["method"] == "initialize":
        info = {"name": "leaving", "version": "1"}
        return {"result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}}
    if message["method"] == "tools/list":
        return {"result": {"tools": []}}
    return {"error": {"code": -32601, "message": "Method not found"}}


if __name__ == "__main__":
    main()
