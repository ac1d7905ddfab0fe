"""What was announced to other processes lately, to be repeated after a cut. Pure: the clock is handed in."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from a2c_smcp.server.cluster.bus_frames import MOST_WHOLE
from a2c_smcp.server.effects import Broadcast
from a2c_smcp.utils.bounded import BoundedDict

__all__ = ["RecentNotices"]

#: Of those announcements that are repeated each for itself: how many, how many of one session, and of how many
#: characters. A session's are as many as the calls that it may have under way, so that one does not take all places.
_MOST_CANCELS: Final = 10_000
_MOST_CANCELS_OF_ONE: Final = 1024
_MOST_CHARACTERS: Final = 1024


@dataclass(frozen=True, slots=True)
class _Said:
    notice: Broadcast
    text: str


class RecentNotices:
    """Keeps the latest of those that collapse, and each of the others, such as that a call is cancelled."""

    def __init__(self) -> None:
        self._latest: BoundedDict[tuple[str, str, str], _Said] = BoundedDict()
        self._cancels: BoundedDict[tuple[str, str, str], _Said] = BoundedDict(_MOST_CANCELS)
        self._cancels_of: Counter[str] = Counter()

    def __iter__(self) -> Iterator[tuple[Broadcast, str]]:
        for said in (*self._latest.values(), *self._cancels.values()):
            yield said.notice, said.text

    def add(self, notice: Broadcast, text: str, now: float) -> None:
        """Remember a notice and its packet's text, if there is room for it."""
        sender, said = notice.skip_sid, _Said(notice, text)
        if notice.collapses and len(text) <= MOST_WHOLE // 4:
            self._latest.put((notice.office_id, sender, notice.event), said, now)
        elif len(text) <= _MOST_CHARACTERS:
            key = notice.office_id, sender, text
            if key not in self._cancels:
                if len(self._cancels) >= _MOST_CANCELS or self._cancels_of[sender] >= _MOST_CANCELS_OF_ONE:
                    return
                self._cancels_of[sender] += 1
            self._cancels.put(key, said, now)

    def forget_before(self, moment: float) -> None:
        """Forget what was said before this moment."""
        self._latest.forget_before(moment)
        for (_, sender, _), _ in self._cancels.forget_before(moment):
            self._cancels_of[sender] -= 1
            if not self._cancels_of[sender]:
                del self._cancels_of[sender]
