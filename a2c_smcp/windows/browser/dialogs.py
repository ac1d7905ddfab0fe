"""The dialogs of one tab: which wait for an answer, and when a page asks too often. Pure: the time is handed in."""

from collections import deque
from dataclasses import dataclass, field
from typing import Final

__all__ = ["ANSWER_WITHIN", "DialogPace"]

#: Seconds that a dialog waits for the agent. The page stands still meanwhile.
ANSWER_WITHIN: Final = 60.0


@dataclass(slots=True)
class DialogPace:
    """Whether the next dialog is shown, or closed at once: a page may open them in a loop."""

    most: int = 4
    within: float = 20.0
    _times: deque[float] = field(default_factory=deque)

    def shows(self, now: float) -> bool:
        """Whether the dialog that has just opened is put to the agent."""
        while self._times and now - self._times[0] > self.within:
            self._times.popleft()
        self._times.append(now)
        while len(self._times) > self.most + 1:
            self._times.popleft()
        return len(self._times) <= self.most
