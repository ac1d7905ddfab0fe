"""The child's side of `kept_child`: a process that answers its owner over stdin and stdout, within bounds.

A frame is a length of four bytes, then JSON. The child sends one empty frame when it is ready. Then every frame of the
owner is a request, and each request gets as many answers as it asks for. Imports nothing that is slow to import.
"""

import json
import os
import signal
import struct
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["LENGTH", "ChildBounds", "serve"]

LENGTH: Final = struct.Struct(">I")
#: How many seconds longer than its owner the child waits for an answer.
_GRACE_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class ChildBounds:
    """The limits of a child."""

    memory_bytes: int
    """Bytes of address space, if the system can limit it. A child that needs more aborts."""
    answer_seconds: float
    """Seconds for each answer. After that the owner kills the child."""
    answer_bytes: int
    """Bytes of each answer. Of a longer one the child sends only the length."""


def serve(answers: Callable[[Any], Iterable[Any]]) -> None:
    """Answer each request with the result of `answers`, until the owner closes stdin. The first argument of the
    process is its `ChildBounds`.
    """
    bounds = ChildBounds(**json.loads(sys.argv[1]))
    _bound_memory(bounds.memory_bytes)
    incoming, outgoing = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # libraries may print, and must not print into the frames
    try:
        outgoing.write(LENGTH.pack(0))
        outgoing.flush()
        while head := incoming.read(LENGTH.size):
            request = json.loads(incoming.read(*LENGTH.unpack(head)))
            _end_after(bounds.answer_seconds + _GRACE_SECONDS)
            for answer in answers(request):
                _end_after(0)
                encoded = json.dumps(answer).encode()
                outgoing.write(LENGTH.pack(len(encoded)))
                if len(encoded) <= bounds.answer_bytes:
                    outgoing.write(encoded)
                outgoing.flush()
                _end_after(bounds.answer_seconds + _GRACE_SECONDS)
            _end_after(0)
    except MemoryError:
        os.abort()


def _bound_memory(most: int) -> None:
    """From here on, more than this many bytes raise `MemoryError`, or a library aborts. No core is dumped."""
    try:
        import resource
    except ImportError:  # on Windows
        return
    with suppress(ValueError, OSError):  # some systems do not let a process limit itself
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _end_after(seconds: float) -> None:
    """Let the kernel end this process after this many seconds, if the system can do that. If the owner is gone,
    nothing else would end it. 0 removes the limit.
    """
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)
