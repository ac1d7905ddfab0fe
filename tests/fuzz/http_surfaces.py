"""Fires hostile requests at the console, a server on the kit and `a2c mcp --http`, and checks that each answers its own
session in between, stays up, writes little into its log and keeps no connection.
"""

import json
import random
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from tests.attack.harness import target
from tests.attack.processes import A2C, started
from tests.attack.surfaces import Surface, bridge, console_surface, kit
from tests.fuzz.raw_requests import Aim, conversation
from tests.server.raw import connect

__all__ = ["SURFACES", "fuzz_surface"]

SURFACES: Final = ("console", "kit", "bridge")
_MAX_LOG: Final = 200_000
#: Conversations before its own session asks again.
_BATCH: Final = 25
_DEADLINE: Final = 60.0
_A_WHILE: Final = 0.5
#: What opens a stream that may stay as long as its session.
_STREAMS: Final = (b"/api/feed", b"GET /mcp")
_PATHS: Final = {
    "console": (
        "/",
        "/js/app.js",
        "/api/door",
        "/api/challenge",
        "/api/session",
        "/api/alive",
        "/api/devices",
        "/api/feed",
        "/api/answer",
        "/api/link",
        "/api/remember",
        "/api/call",
        "/api/input",
        "/api/cancel",
        "/api/check-servers",
        "/api/check-rule",
        "/api/tool-rule",
        "/api/tools",
        "/api/document?uri=dpe://x/y",
        "/api/history?limit=x",
        "/api/export",
    ),
    "kit": ("/mcp", "/mcp/", "/mcp?x=1"),
    "bridge": ("/mcp", "/mcp/", "/other"),
}


def fuzz_surface(
    folder: Path, name: str, conversations: int, seed: int, say: Callable[[str], object] = lambda _: None
) -> list[str]:
    """Hold so many conversations with a new surface of this name; what is wrong in the end."""
    with _started(folder, name) as surface:
        source = random.Random(seed)
        aim = Aim(f"127.0.0.1:{surface.port}", _PATHS[name], surface.headers)
        surface.ask()
        before = surface.at_rest()
        with ExitStack() as held:
            for number in range(conversations):
                _talk(surface, source, conversation(source, aim), held)
                if number % _BATCH == 0 and (problem := _heard(surface)):
                    return [f"{problem} after {number} conversations (seed {seed})"]
            problems = [problem] if (problem := _heard(surface)) else []
            if not surface.settles(before):
                problems.append(f"it has {surface.descriptors} descriptors, {before} before")
        say(f"{name}: {conversations} conversations, {len(surface.log)} characters in the log")
        if len(surface.log) > _MAX_LOG:
            problems.append(f"the log has {len(surface.log)} characters")
        return problems + [f"the log has {word!r}" for word in ("Traceback", "never retrieved") if word in surface.log]


@contextmanager
def _started(folder: Path, name: str) -> Iterator[Surface]:
    if name == "kit":
        with kit(folder) as surface:
            yield surface
        return
    with target(folder) as server:
        if name == "bridge":
            with bridge(folder, server.url, "fuzz") as surface:
                yield surface
            return
        config = folder / "config.json"
        config.write_text(json.dumps([]))
        place = ["--url", server.url, "--office", "fuzz", "--name", "pc", "--config", str(config)]
        command = ["env", f"XDG_STATE_HOME={folder}", A2C, "computer", "run", "--headless", "--console", "0", *place]
        with started(command, folder / "computer.log") as computer:
            yield console_surface(computer)


def _talk(surface: Surface, source: random.Random, says: bytes, held: ExitStack) -> None:
    """Send it in one piece or several, and then go, in one of the ways to go; a few connections stay."""
    sock = connect(surface.url, _DEADLINE)
    with suppress(OSError):
        pieces = source.choice((1, 1, 2, 5))
        step = len(says) // pieces + 1
        for at in range(0, len(says), step):
            sock.sendall(says[at : at + step])
        match source.randrange(20):
            case 0 if not any(stream in says for stream in _STREAMS):
                held.enter_context(sock)
                return
            case 1 | 2 | 3:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # an RST
            case 4 | 5 | 6:
                pass
            case _:
                sock.shutdown(socket.SHUT_WR)
                _wait_for_end(sock, _A_WHILE if any(stream in says for stream in _STREAMS) else _DEADLINE)
    sock.close()


def _wait_for_end(sock: socket.socket, seconds: float) -> None:
    """Read until the surface closes, or for so long. A stream that is followed by half a request on the same connection
    goes on until this end is closed, too: the surface reads no further, and does not see that nothing more comes.
    """
    until = time.monotonic() + seconds
    with suppress(OSError):
        while (left := until - time.monotonic()) > 0:
            sock.settimeout(left)
            if not sock.recv(65536):
                return


def _heard(surface: Surface) -> str | None:
    """What is wrong with the answer to its own session."""
    if not surface.process.alive:
        return "it has ended"
    try:
        status = surface.ask()
    except OSError as error:
        return f"its session was not answered: {error!r}"
    return None if status == 200 else f"its session heard {status}"
