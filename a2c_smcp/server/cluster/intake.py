"""What arrives for this process, until it is clear that another process of ours has sent it. The rest is dropped."""

import logging
from collections.abc import Callable, Container, Coroutine
from contextlib import suppress
from typing import Any

from a2c_smcp.errors import SMCPError
from a2c_smcp.server.cluster import tuning
from a2c_smcp.server.cluster.bus import BusObserver
from a2c_smcp.server.cluster.clock import now as elapsed
from a2c_smcp.server.cluster.newcomers import Newcomers
from a2c_smcp.server.cluster.other_process import BusMembership
from a2c_smcp.server.cluster.seal import DroppedFrameError, FrameSeal, OpenedFrame
from a2c_smcp.utils.bounded import BoundedDict
from a2c_smcp.utils.limited_log import LimitedLog

__all__ = ["Intake"]

logger = logging.getLogger(__name__)


class Intake:
    """Hands frames to `admit`, those of one sender in their order: frames that are signed, if there is a key, and whose
    sender is in the membership or was `met`. `start` runs a task.
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
        """Let in a message, now or when its sender is known; raises `DroppedFrameError`, and what `admit` raises."""
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
        """Count a message that was not acted on, and say so. nats-py would report it without a traceback."""
        if isinstance(error, ValueError):
            dropped = error if isinstance(error, DroppedFrameError) else DroppedFrameError("malformed")
            self._observer.dropped_across(dropped.reason)
            self._log.warn(f"{dropped.reason} messages", "dropped a message on NATS: %s", dropped)
        else:
            self._log.exception("faults", "failed to take a message of another server process")

    def expire(self, now: float) -> None:
        """Give up those that nothing is known of after some seconds."""
        for _ in range(self._newcomers.expire(now)):
            self.note_failure(DroppedFrameError("unknown"))

    def close_to(self, process: str) -> None:
        """Take nothing more in the name of a process that has gone, even if the membership shows it again: none comes
        back under its old name, and which of its frames have come before is forgotten.
        """
        self._gone.put(process, None)

    def clear(self) -> None:
        """What was sent to this process under its old name is for nobody."""
        self._newcomers.clear()
        self._gone.clear()

    async def _await_newcomers(self) -> None:
        """Let in what waits for the copy of the membership to show its sender."""
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
            except Exception as error:  # one must not hold up those after it
                self.note_failure(error)
