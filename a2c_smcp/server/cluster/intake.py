"""Holds messages for this process until it is clear that another server process has sent them. Drops all others."""

import itertools
import logging
from collections.abc import Callable, Container, Coroutine
from contextlib import suppress
from typing import Any

from a2c_smcp.errors import SMCPError
from a2c_smcp.server.cluster import tuning
from a2c_smcp.server.cluster.bus import BusObserver
from a2c_smcp.server.cluster.clock import now as elapsed
from a2c_smcp.server.cluster.other_process import BusMembership
from a2c_smcp.server.cluster.seal import DroppedFrameError, FrameSeal, OpenedFrame
from a2c_smcp.utils.bounded import BoundedDict
from a2c_smcp.utils.limited_log import LimitedLog

__all__ = ["Intake", "Newcomers"]

logger = logging.getLogger(__name__)


class Newcomers:
    """Frames of processes that the copy of the membership does not show yet, in order. Pure: the clock is handed in.

    A process may write before the others have heard of its lease: NATS may deliver the frame first. But anybody may
    write in the name of a process that does not exist. So all unknown processes together have little room, and only for
    a short time.
    """

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._frames: BoundedDict[int, tuple[str, OpenedFrame]] = BoundedDict(weigh=lambda kept: len(kept[1].frame))

    def __len__(self) -> int:
        return len(self._frames)

    def add(self, sender: str, opened: OpenedFrame, now: float) -> None:
        """Keep a frame. Raises `DroppedFrameError` when there is no room."""
        weight = self._frames.weight + len(opened.frame)
        if len(self) >= tuning.BOUNDS.newcomer_frames or weight > tuning.BOUNDS.newcomer_bytes:
            raise DroppedFrameError("unknown")
        self._frames.put(next(self._numbers), (sender, opened), now)

    def senders(self) -> set[str]:
        return {sender for sender, _ in self._frames.values()}

    def take(self, sender: str) -> list[OpenedFrame]:
        """Take out the frames of a process that is known now."""
        numbers = [number for number in self._frames if (kept := self._frames.get(number)) and kept[0] == sender]
        return [kept[1] for number in numbers if (kept := self._frames.pop(number))]

    def expire(self, now: float) -> int:
        """Forget frames that have waited for too long; returns how many."""
        return len(self._frames.forget_before(now - tuning.TIMES.newcomer))

    def clear(self) -> None:
        self._frames.clear()


class Intake:
    """Hands frames to `admit`, those of one sender in their order. A frame must be signed, if there is a key, and
    its sender must be in the membership or among `met`. `start` runs a task.
    """

    def __init__(
        self,
        seal: FrameSeal,
        membership: BusMembership,
        observer: BusObserver,
        met: Container[str],
        admit: Callable[[str, OpenedFrame], None],
        start: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._seal = seal
        self._membership = membership
        self._observer = observer
        self._met = met
        self._admit = admit
        self._start = start
        self._newcomers = Newcomers()
        self._gone: BoundedDict[str, None] = BoundedDict(tuning.BOUNDS.gone)
        self._is_waiting = False
        self._log = LimitedLog(logger)

    def take(self, sender: str, receiver: str, data: bytes) -> None:
        """Let a message in, now or when its sender is known. Raises `DroppedFrameError`, and what `admit` raises."""
        opened = self._seal.open(sender, receiver, data)
        if sender in self._gone:
            raise DroppedFrameError("unknown")
        if sender in self._met or sender in self._membership.processes:
            self._admit_newcomers(sender)
            self._admit(sender, opened)
            return
        self._newcomers.add(sender, opened, elapsed())
        if not self._is_waiting:
            self._is_waiting = True
            self._start(self._await_newcomers())

    def note_failure(self, error: Exception) -> None:
        """Count and log a message that was not acted on. nats-py would log a fault without its traceback."""
        if isinstance(error, ValueError):
            dropped = error if isinstance(error, DroppedFrameError) else DroppedFrameError("malformed")
            self._observer.dropped_across(dropped.reason)
            self._log.warn(f"{dropped.reason} messages", "dropped a message on NATS: %s", dropped)
        else:
            self._log.exception("faults", "failed to take a message of another server process")

    def expire(self, now: float) -> None:
        """Drop the frames of senders that have stayed unknown for some seconds."""
        for _ in range(self._newcomers.expire(now)):
            self.note_failure(DroppedFrameError("unknown"))

    def close_to(self, process: str) -> None:
        """Take nothing more in the name of a process that has gone, even if the membership shows it again. No process
        comes back under its old name, and its old frames could be replayed.
        """
        self._gone.put(process, None)

    def clear(self) -> None:
        """Drop what was sent to this process under its old name."""
        self._newcomers.clear()
        self._gone.clear()

    async def _await_newcomers(self) -> None:
        """Let frames in as soon as the copy of the membership shows their sender."""
        while self._newcomers:
            with suppress(SMCPError):
                await self._membership.reached(self._membership.revision + 1)
            for sender in self._newcomers.senders().intersection(self._membership.processes):
                self._admit_newcomers(sender)
        self._is_waiting = False

    def _admit_newcomers(self, sender: str) -> None:
        for opened in self._newcomers.take(sender) if self._newcomers else ():
            try:
                self._admit(sender, opened)
            except Exception as error:  # one frame must not hold up those after it
                self.note_failure(error)
