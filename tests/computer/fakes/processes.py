"""What a test asks about processes, descriptors and tasks: nothing may be left over. Linux only, by way of /proc."""

import asyncio
import os
import select
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest

both_loops = pytest.mark.parametrize(
    "anyio_backend", [("asyncio", {}), ("asyncio", {"use_uvloop": True})], ids=["asyncio", "uvloop"]
)

MISBEHAVING = str(Path(__file__).with_name("misbehaving.py"))


def command(mode: str, **options: object) -> tuple[str, list[str]]:
    """The command line of the misbehaving server."""
    # -I -S: no site-packages to import from, which is half of the start.
    return sys.executable, ["-I", "-S", MISBEHAVING, mode, *(f"{key}={value}" for key, value in options.items())]


@dataclass(frozen=True, slots=True)
class _Stat:
    pid: int
    state: str
    parent: int
    group: int

    @property
    def lives(self) -> bool:
        return self.state not in "ZX"


def _stat(pid: int) -> _Stat | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return None
    return _Stat(pid, fields[0], int(fields[1]), int(fields[2]))


def _all() -> Iterator[_Stat]:
    for entry in os.listdir("/proc"):
        if entry.isdigit() and (stat := _stat(int(entry))):
            yield stat


def is_alive(pid: int) -> bool:
    stat = _stat(pid)
    return stat is not None and stat.lives


def ended(pid: int, timeout: float = 30) -> bool:
    """Wait for the end of a process, also of one that is not ours: what was killed ends when the kernel gets to it."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([process], [], [], timeout)[0])
    finally:
        os.close(process)


def group_of(group: int) -> set[int]:
    """Who lives in a process group; zombies do not."""
    return {stat.pid for stat in _all() if stat.group == group and stat.lives}


def children() -> set[int]:
    """Our own children, zombies included: those were not reaped."""
    return {stat.pid for stat in _all() if stat.parent == os.getpid()}


def servers(root: int | None = None) -> set[int]:
    """The processes of MCP servers below a computer's (or below this one), zombies included. Guardians and their
    keepers are none, and neither is what one of them has not reaped yet: it does that by itself, a moment later.
    """
    level = {os.getpid() if root is None else root}
    found: set[int] = set()
    stats = list(_all())
    while level := {stat.pid for stat in stats if stat.parent in level} - found:
        found |= level
    unreaped = {stat.pid for stat in stats if not stat.lives and is_guardian(stat.parent)}
    return {pid for pid in found - unreaped if not is_guardian(pid)}


def is_guardian(pid: int) -> bool:
    """Whether this is a living guardian, or a keeper of one."""
    try:
        return b"guardian_process.py" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def having(word: str) -> set[int]:
    """The living processes with this word in their command line, whatever else they have made of themselves."""
    found = set()
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            if word.encode() in Path("/proc", entry, "cmdline").read_bytes():
                found.add(int(entry))
        except OSError:
            pass  # it has ended meanwhile
    return found


def parent_of(pid: int) -> int:
    stat = _stat(pid)
    assert stat is not None
    return stat.parent


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@contextmanager
def nothing_left_over(*, processes: bool = True) -> Iterator[None]:
    """No child, no descriptor and no task more at the end than at the start."""
    before = children(), descriptors(), asyncio.all_tasks()
    yield
    if processes:
        assert children() <= before[0]
        # watchfiles closes its descriptor in a thread of its own.
        until = time.monotonic() + 10
        while descriptors() > before[1] and time.monotonic() < until:
            time.sleep(0.01)
        assert descriptors() <= before[1]
    assert asyncio.all_tasks() <= before[2]


async def eventually(condition: Callable[[], bool], timeout: float = 30) -> None:
    """Wait for something that no event tells of."""
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        await anyio.sleep(0.01)
