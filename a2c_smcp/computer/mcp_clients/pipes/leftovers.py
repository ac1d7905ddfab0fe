"""What the MCP servers of a dead computer left although their guardian should have ended it: found by a mark in the
environment, which processes inherit. Linux only, by way of /proc.

A computer ends only what a dead run of the same computer left: of this user, boot and process namespace, of a computer
of this name that keeps its state in the same folder. Whether the run is dead is decided by its process id together with
the time at which that process started. So two computers beside each other, in containers too, leave each other alone.
"""

import hashlib
import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from a2c_smcp.computer.mcp_clients.pipes.guardian_process import Ending, Seen, below, processes
from a2c_smcp.errors import BadRequestError
from a2c_smcp.utils.state_folder import state_folder

__all__ = ["MARK", "Owner", "end_left_over", "end_marked", "is_left_over"]

logger = logging.getLogger(__name__)

#: The variable that has the mark.
MARK: Final = "A2C_OWNER"
_GRACE: Final = 2.0


@dataclass(frozen=True, slots=True)
class Owner:
    """One run of a computer."""

    pid: int
    started: int
    """When its process started, in ticks since the boot."""
    boot: str
    namespace: str
    """The namespace in which `pid` is the number of a process."""
    computer: str
    """A digest of the computer's name and the folder of its state."""

    @classmethod
    def here(cls, name: str) -> "Owner":
        """This process, as the owner of the servers of the computer of this name."""
        try:
            place = str(state_folder())
        except BadRequestError:  # there is no home
            place = ""
        return cls(
            os.getpid(),
            Seen(Path("/proc/self/stat").read_bytes()).started,
            Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
            str(os.stat("/proc/self/ns/pid").st_ino),
            hashlib.sha256(f"{name}\0{place}".encode(errors="surrogateescape")).hexdigest()[:16],
        )

    @classmethod
    def of(cls, mark: str) -> "Owner | None":
        """Who started the server that has this mark; `None` if it is no mark of ours."""
        match mark.split("."):
            case [pid, started, boot, namespace, computer, _] if pid.isdecimal() and started.isdecimal():
                return cls(int(pid), int(started), boot, namespace, computer)
        return None

    def mark(self, life: int) -> str:
        """The mark of one life of a server. No two lives have the same."""
        return f"{self.pid}.{self.started}.{self.boot}.{self.namespace}.{self.computer}.{life}"


def is_left_over(mark: str, me: Owner, started: Callable[[int], int | None]) -> bool:
    """Whether a process with this mark is to be ended by a computer that starts.

    `started` tells when the living process of this number has started; `None` if there is none.
    """
    owner = Owner.of(mark)
    if owner is None or (owner.boot, owner.namespace, owner.computer) != (me.boot, me.namespace, me.computer):
        return False
    return started(owner.pid) != owner.started


def end_left_over(me: Owner) -> int:
    """End what dead runs of this computer left, and wait for it. Returns how many processes there were."""
    return _end(lambda mark: is_left_over(mark, me, _started), spares_own=True)


def end_marked(mark: str) -> int:
    """End what one life of a server left, and wait for it. Returns how many processes there were."""
    return _end(partial(str.__eq__, mark), spares_own=False)


def _end(is_wanted: Callable[[str], bool], *, spares_own: bool) -> int:
    if not (found := _marked(is_wanted, spares_own)):
        return 0
    ending, ended = Ending(_GRACE), set(found)
    while not ending.strike(set(), found):
        if ending.gives_up:
            logger.warning("%d processes of MCP servers survived SIGKILL: %s", len(found), sorted(found))
            break
        time.sleep(ending.pause)
        found = _marked(is_wanted, spares_own)
        ended |= found
    return len(ended)


def _marked(is_wanted: Callable[[str], bool], spares_own: bool) -> set[int]:
    """Those with a wanted mark, and what they have started without it.

    A computer may run in a terminal that a dead one showed, and then has its mark itself: so it spares those above it
    and, if `spares_own`, those below.
    """
    seen = processes()
    me = os.getpid()
    spared = {me} | (below(me, seen) if spares_own else set())
    above = seen.get(me)
    while above is not None and above.parent not in spared:
        spared.add(above.parent)
        above = seen.get(above.parent)
    marked = {pid for pid in seen.keys() - spared if (mark := _mark_of(pid)) is not None and is_wanted(mark)}
    found = marked.union(*(below(pid, seen) for pid in marked)) - spared
    return {pid for pid in found if seen[pid].lives}


def _mark_of(pid: int) -> str | None:
    try:
        if os.stat(f"/proc/{pid}").st_uid != os.getuid():
            return None
        with open(f"/proc/{pid}/environ", "rb") as file:
            variables = file.read()
    except OSError:
        return None  # it has ended meanwhile
    _, found, rest = (b"\0" + variables).partition(b"\0" + MARK.encode() + b"=")
    return rest.partition(b"\0")[0].decode(errors="replace") if found else None


def _started(pid: int) -> int | None:
    try:
        seen = Seen(Path(f"/proc/{pid}/stat").read_bytes())
    except (OSError, IndexError):
        return None
    return seen.started if seen.lives else None
