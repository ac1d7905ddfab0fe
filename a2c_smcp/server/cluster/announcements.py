"""What the sessions of this process announce to other processes: after their own requests, and again after a cut."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from a2c_smcp.errors import PayloadTooLargeError, SMCPError, TooManyRequestsError
from a2c_smcp.server.cluster import tuning
from a2c_smcp.server.cluster.bus_frames import NoticeFrame, from_text
from a2c_smcp.server.cluster.clock import now as elapsed
from a2c_smcp.server.cluster.line import ProcessLine
from a2c_smcp.server.cluster.other_process import BusMembership
from a2c_smcp.server.effects import Broadcast
from a2c_smcp.utils.bounded import BoundedDict

__all__ = ["Announcements", "RecentNotices"]


class RecentNotices:
    """What was announced lately. Pure: the clock is handed in.

    If a new notice makes an older one superfluous, only the new one is kept. Other notices, such as cancels of calls,
    are all kept.
    """

    def __init__(self) -> None:
        self._latest: BoundedDict[tuple[str, str, str], tuple[Broadcast, str]] = BoundedDict()
        self._cancels: BoundedDict[tuple[str, str, str], tuple[Broadcast, str]] = BoundedDict(tuning.BOUNDS.cancels)
        self._cancels_of: Counter[str] = Counter()

    def __iter__(self) -> Iterator[tuple[Broadcast, str]]:
        yield from (*self._latest.values(), *self._cancels.values())

    def add(self, notice: Broadcast, text: str, now: float) -> None:
        """Remember a notice and the text of its packet, if there is room for it."""
        sender, said = notice.skip_sid, (notice, text)
        if notice.collapses and len(text) <= tuning.BOUNDS.notice_characters:
            self._latest.put((notice.office_id, sender, notice.event), said, now)
        elif len(text) <= tuning.BOUNDS.cancel_characters:
            key = notice.office_id, sender, text
            if key not in self._cancels:
                is_full = len(self._cancels) >= tuning.BOUNDS.cancels
                if is_full or self._cancels_of[sender] >= tuning.BOUNDS.cancels_of_one:
                    return
                self._cancels_of[sender] += 1
            self._cancels.put(key, said, now)

    def forget_before(self, moment: float) -> None:
        """Forget what was announced before this moment."""
        self._latest.forget_before(moment)
        for (_, sender, _), _ in self._cancels.forget_before(moment):
            self._cancels_of[sender] -= 1
            if not self._cancels_of[sender]:
                del self._cancels_of[sender]


@dataclass(slots=True)
class _Sender:
    """A session with requests that are being sent: how many, and what the session announced meanwhile."""

    requests: int = 0
    held: list[tuple[Broadcast, str]] = field(default_factory=list)
    size: int = 0


class Announcements:
    """Sends notices to the other processes that hold members of an office. `line_to` gives the way to a process."""

    def __init__(self, membership: BusMembership, line_to: Callable[[str], ProcessLine]) -> None:
        self._membership = membership
        self._line_to = line_to
        self._senders: dict[str, _Sender] = {}
        self._recent = RecentNotices()

    def publish(self, notice: Broadcast, text: str, me: str, check_room: Callable[[], None]) -> None:
        """Tell the other processes, or hold the notice until the requests of its sender are sent."""
        if (sender := self._senders.get(notice.skip_sid)) is not None:
            if sender.size > tuning.BOUNDS.held_characters:
                raise TooManyRequestsError("too many announcements wait for a call of the same session to be sent")
            sender.size += len(text)
            sender.held.append((notice, text))
            return
        if others := self._others(notice, me):
            check_room()
        self._spread(notice, text, others)

    @contextmanager
    def held_for(self, caller: str, me: str) -> Iterator[None]:
        """Hold what a session announces while a request of its own is sent: a cancel must not overtake the call."""
        sender = self._senders.setdefault(caller, _Sender())
        sender.requests += 1
        try:
            yield
        finally:
            sender.requests -= 1
            if not sender.requests:
                del self._senders[caller]
                for notice, text in sender.held:
                    with suppress(SMCPError):  # the sender has its answer already
                        self._spread(notice, text, self._others(notice, me))

    def repeat_to(self, line: ProcessLine) -> None:
        """Announce again what was announced lately: it may have been lost."""
        for notice, text in self._recent:
            if line.process in self._membership.holders(notice.office_id):
                self._send(line, notice, text)

    def forget_old(self) -> None:
        self._recent.forget_before(elapsed() - tuning.TIMES.remembered_for_cuts)

    def _others(self, notice: Broadcast, me: str) -> list[str]:
        if notice.agent_only:
            seat = self._membership.seat(notice.office_id)
            holders: Collection[str] = () if seat is None else (seat.process,)
        else:
            holders = self._membership.holders(notice.office_id)
        return [process for process in holders if process != me]

    def _spread(self, notice: Broadcast, text: str, others: list[str]) -> None:
        self._recent.add(notice, text, elapsed())
        for process in others:
            self._send(self._line_to(process), notice, text)

    def _send(self, line: ProcessLine, notice: Broadcast, text: str) -> None:
        if len(text) > tuning.BOUNDS.notice_characters:
            raise PayloadTooLargeError(f"{notice.event} is too large for other server processes")
        revision = self._membership.revision
        frame = NoticeFrame(revision, notice.office_id, notice.event, notice.skip_sid, notice.collapses)
        line.send(frame, from_text(text))
