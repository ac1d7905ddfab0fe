"""What waits for a peer: how many bytes, and what needs no repeat. Pure.

Three kinds of packets wait here: texts of Socket.IO; `Outgoing`s, which are the same for several readers or can be
replaced; and `Control`s, which are whole packets of Engine.IO.
"""

from collections import deque
from collections.abc import Hashable
from enum import Enum, auto
from typing import Final, TypeAlias

from a2c_smcp.engine.packets import MESSAGE
from a2c_smcp.utils.repeats import Repeats

__all__ = [
    "Control",
    "Mention",
    "Notice",
    "Outgoing",
    "Parcel",
    "QueueOutcome",
    "SendQueue",
    "packet_of",
    "size_of_parcel",
]

#: One eighth of the room is kept for notifications and acks: a request that does not fit into the rest is refused. A
#: mention is queued only while no more than an eighth is taken, because its reader can do without it.
_SPARE: Final = 8


class Control(str):
    """A packet of Engine.IO that is no message. It is not counted."""

    __slots__ = ()


class Outgoing:
    """A packet that may go to several readers, or may be replaced while it waits."""

    __slots__ = ("frame", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.frame: bytes | None = None
        """For the shells: the websocket frame, so that it is encoded once for all readers."""


class Notice(Outgoing):
    """A notification. If it collapses, a repeat of the same sender is left out while the first one waits, unless the
    sender said anything else that does not collapse in between.
    """

    __slots__ = ("collapses", "event", "sender")

    def __init__(self, text: str, sender: str, event: str, *, collapses: bool) -> None:
        super().__init__(text)
        self.sender = sender
        self.event = event
        self.collapses = collapses


class Mention(Outgoing):
    """What its reader can do without. While it waits, the next one about the same thing replaces it."""

    __slots__ = ("about",)

    def __init__(self, text: str, about: Hashable) -> None:
        super().__init__(text)
        self.about = about


Parcel: TypeAlias = str | Outgoing


def packet_of(parcel: Parcel) -> str:
    """The packet of Engine.IO that is sent."""
    if isinstance(parcel, Outgoing):
        return MESSAGE + parcel.text
    return str(parcel) if isinstance(parcel, Control) else MESSAGE + parcel


def size_of_parcel(parcel: Parcel) -> int:
    """Its bytes. In a text that is not ASCII each character counts as three."""
    if isinstance(parcel, Control):
        return 0
    text = parcel.text if isinstance(parcel, Outgoing) else parcel
    return len(text) if text.isascii() else 3 * len(text)


class QueueOutcome(Enum):
    """What became of a parcel."""

    TAKEN = auto()
    UNNEEDED = auto()
    """It is not queued: the same waits already, or the reader is being disconnected."""
    BEHIND = auto()
    """The reader has just fallen behind."""


class SendQueue:
    """The parcels that wait for one reader."""

    __slots__ = ("_behind", "_mentions", "_repeats", "most_bytes", "parcels", "queued_bytes", "sent_bytes")

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self.queued_bytes = 0
        self.sent_bytes = 0
        """What has left for the reader."""
        self._behind = False
        # Most readers never have anything waiting.
        self.parcels: deque[Parcel] | None = None
        """What waits, oldest first; `None` if nothing does."""
        self._repeats: Repeats[Notice] | None = None
        self._mentions: dict[Hashable, tuple[Mention, int]] | None = None

    def passes_by(self, parcel: Parcel) -> None:
        """Count a parcel that is sent without waiting."""
        self.sent_bytes += size_of_parcel(parcel)

    def add(self, parcel: Parcel) -> QueueOutcome:
        """Queue a parcel, unless it is a repeat."""
        if self._behind or (isinstance(parcel, Notice) and self._is_repeat(parcel)):
            return QueueOutcome.UNNEEDED
        self.queued_bytes += size_of_parcel(parcel)
        self._behind = self.queued_bytes > self.most_bytes
        if self._behind:
            return QueueOutcome.BEHIND
        self._append(parcel)
        return QueueOutcome.TAKEN

    def fits(self, size: int) -> bool:
        """Whether a parcel of this size leaves room for others, or is the only one and not too large."""
        most = self.most_bytes - (self.most_bytes // _SPARE if self.queued_bytes else 0)
        return self.queued_bytes + size <= most

    def add_if_it_fits(self, parcel: Parcel) -> bool:
        """Queue a parcel if it leaves room for others. Returns whether it does."""
        size = size_of_parcel(parcel)
        if not self.fits(size):
            return False
        self.queued_bytes += size
        self._append(parcel)
        return True

    def add_mention(self, mention: Mention) -> None:
        """Queue a mention, or put it in the place of an earlier one about the same. It is dropped if too much waits."""
        mentions = self._mentions = {} if self._mentions is None else self._mentions
        size = size_of_parcel(mention)
        if (earlier := mentions.get(mention.about)) is not None:
            waiting, its_size = earlier
            self.queued_bytes += size - its_size
            waiting.text, waiting.frame = mention.text, None
            mentions[mention.about] = waiting, size
        elif not self._behind and self.queued_bytes + size <= self.most_bytes // _SPARE:
            # Not the mention itself: what replaces its text here must not change what others hold.
            mentions[mention.about] = kept, _ = Mention(mention.text, mention.about), size
            self.queued_bytes += size
            self._append(kept)

    def pop(self) -> Parcel:
        """The oldest parcel, which leaves for its reader now. Raises `IndexError` if nothing waits."""
        if self.parcels is None:
            raise IndexError("nothing waits")
        parcel = self.parcels.popleft()
        if not self.parcels:
            self.parcels = None
        # Its reader may see it from now on, so later parcels do not collapse into it.
        if isinstance(parcel, Notice) and parcel.collapses and self._repeats is not None:
            self._repeats.remove(parcel.sender, parcel.event, parcel)
        elif isinstance(parcel, Mention) and self._mentions is not None:
            self._mentions.pop(parcel.about, None)
        size = size_of_parcel(parcel)
        self.queued_bytes -= size
        self.sent_bytes += size
        return parcel

    def clear(self) -> None:
        """Drop everything: nobody will read it."""
        self.parcels = self._repeats = self._mentions = None
        self.queued_bytes = 0

    def _append(self, parcel: Parcel) -> None:
        if self.parcels is None:
            self.parcels = deque()
        self.parcels.append(parcel)

    def _is_repeat(self, notice: Notice) -> bool:
        repeats = self._repeats = Repeats() if self._repeats is None else self._repeats
        if not notice.collapses:
            repeats.bar(notice.sender)
            return False
        if repeats.find(notice.sender, notice.event) is not None:
            return True
        repeats.add(notice.sender, notice.event, notice)
        return False
