"""What was announced to other processes lately, to be repeated after a cut. Pure: the clock is handed in."""

from collections import Counter
from collections.abc import Iterator

from a2c_smcp.server.cluster import tuning
from a2c_smcp.server.cluster.bus_frames import MOST_WHOLE
from a2c_smcp.server.effects import Broadcast
from a2c_smcp.utils.bounded import BoundedDict

__all__ = ["RecentNotices"]


class RecentNotices:
    """Keeps the latest of those that collapse, and each of the others, such as that a call is cancelled."""

    def __init__(self) -> None:
        self._latest: BoundedDict[tuple[str, str, str], tuple[Broadcast, str]] = BoundedDict()
        self._cancels: BoundedDict[tuple[str, str, str], tuple[Broadcast, str]] = BoundedDict(tuning.BOUNDS.cancels)
        self._cancels_of: Counter[str] = Counter()

    def __iter__(self) -> Iterator[tuple[Broadcast, str]]:
        yield from (*self._latest.values(), *self._cancels.values())

    def add(self, notice: Broadcast, text: str, now: float) -> None:
        """Remember a notice and its packet's text, if there is room for it."""
        sender, said = notice.skip_sid, (notice, text)
        if notice.collapses and len(text) <= MOST_WHOLE // 4:
            self._latest.put((notice.office_id, sender, notice.event), said, now)
        elif len(text) <= tuning.BOUNDS.cancel_characters:
            key = notice.office_id, sender, text
            if key not in self._cancels:
                if (
                    len(self._cancels) >= tuning.BOUNDS.cancels
                    or self._cancels_of[sender] >= tuning.BOUNDS.cancels_of_one
                ):
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
