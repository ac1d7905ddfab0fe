"""What waits for a reader: how many bytes, and which notifications need no repeat. Pure; the socket has the queue."""

import threading
from collections.abc import Hashable
from enum import Enum, auto
from typing import Any, Final

from a2c_smcp.utils.engineio_internals import MESSAGE, Packet
from a2c_smcp.utils.repeats import Repeats

__all__ = ["NoticePacket", "Outbox", "Queued", "ReportPacket"]

#: One eighth of the room is kept for notifications and acks: a request that does not fit into the rest is refused. A
#: report is queued only while no more than an eighth is taken, because its reader can do without reports.
_SPARE: Final = 8


class NoticePacket(Packet):  # type: ignore[misc]  # engineio ships no types
    """A notification, encoded once for all its readers."""

    def __init__(self, text: str, sender: str, event: str, *, collapses: bool) -> None:
        super().__init__(MESSAGE, text)
        self.sender = sender
        self.event = event
        self.collapses = collapses
        """Whether a repeat may be left out, unless the sender entered or left in between."""


class ReportPacket(Packet):  # type: ignore[misc]  # engineio ships no types
    """A report of progress. While it waits, the next report about the same call replaces it."""

    def __init__(self, text: str, about: Hashable) -> None:
        super().__init__(MESSAGE, text)
        self.about = about


class Queued(Enum):
    """What became of a packet."""

    TAKEN = auto()
    UNNEEDED = auto()
    """It is not queued: the same notification waits already, or the reader is being disconnected."""
    BEHIND = auto()
    """The reader has just fallen behind."""


class Outbox:
    """Counts what is queued for a reader. Several threads of a threaded server may use it at once."""

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self.queued_bytes = 0
        self.sent_bytes = 0
        """What the reader was sent. Of a text that is not ASCII, each character counts as three bytes."""
        self._behind = False
        self._repeats: Repeats[NoticePacket] = Repeats()
        self._reports: dict[Hashable, ReportPacket] = {}
        self._lock = threading.Lock()

    def add(self, pkt: Any) -> Queued:
        """Count a packet that is to be queued, unless it is a repeat."""
        size = _size(pkt)
        with self._lock:
            if self._behind or (isinstance(pkt, NoticePacket) and self._is_repeat(pkt)):
                return Queued.UNNEEDED
            self.queued_bytes += size
            self._behind = self.queued_bytes > self.most_bytes
            return Queued.BEHIND if self._behind else Queued.TAKEN

    def add_if_it_fits(self, pkt: Any) -> bool:
        """Count a packet that is to be queued, if it leaves room for others. Returns whether it does."""
        size = _size(pkt)
        with self._lock:
            most = self.most_bytes - (self.most_bytes // _SPARE if self.queued_bytes else 0)
            if self.queued_bytes + size > most:
                return False
            self.queued_bytes += size
            return True

    def add_report(self, pkt: ReportPacket) -> bool:
        """Count a report, and return whether to queue it. Otherwise it has replaced an earlier report about the same
        call, or is dropped because too much waits already.
        """
        size = _size(pkt)
        with self._lock:
            if (earlier := self._reports.get(pkt.about)) is not None:
                self.queued_bytes += size - _size(earlier)
                earlier.data = pkt.data
                return False
            if self._behind or self.queued_bytes + size > self.most_bytes // _SPARE:
                return False
            self._reports[pkt.about] = pkt
            self.queued_bytes += size
            return True

    def begin(self, pkt: Any) -> None:
        """A packet has left the queue. Its reader may see it from now on, so later packets do not collapse into it."""
        if isinstance(pkt, NoticePacket) and pkt.collapses:
            with self._lock:
                self._repeats.remove(pkt.sender, pkt.event, pkt)
        elif isinstance(pkt, ReportPacket):
            with self._lock:
                self._reports.pop(pkt.about, None)

    def end(self, pkt: Any) -> None:
        """The packet is sent."""
        size = _size(pkt)
        with self._lock:
            # A packet that was queued before there was an outbox was not counted.
            self.queued_bytes = max(0, self.queued_bytes - size)
            self.sent_bytes += size

    def _is_repeat(self, notice: NoticePacket) -> bool:
        if not notice.collapses:
            self._repeats.bar(notice.sender)
            return False
        if self._repeats.find(notice.sender, notice.event) is not None:
            return True
        self._repeats.add(notice.sender, notice.event, notice)
        return False


def _size(pkt: Any) -> int:
    if not isinstance(pkt.data, str):
        return 0
    return len(pkt.data) if pkt.data.isascii() else 3 * len(pkt.data)
