"""When another process counts as gone, and what its clock says. Pure: the clock is handed in.

Every moment here is in seconds of a clock that also runs while this process is stopped or its machine sleeps.
"""

from dataclasses import dataclass
from typing import Final

from a2c_smcp.server.cluster import tuning

__all__ = ["PING_SECONDS", "ProcessHealth", "RemoteClock"]

#: How often a process that waits for another asks whether it is there.
PING_SECONDS: Final = 1.0


@dataclass(slots=True)
class ProcessHealth:
    """What is known of another process from how it answers."""

    _asked_at: float | None = None
    """When the first thing was sent since something was heard from it."""
    _refused_at: float | None = None
    _last_refused: float = 0.0

    def sent(self, now: float) -> None:
        if self._asked_at is None:
            self._asked_at = now

    def heard(self) -> None:
        self._asked_at = self._refused_at = None

    def refused(self, now: float) -> bool:
        """Nobody took what was sent. Returns whether the process counts as gone."""
        if self._refused_at is None or now - self._last_refused > tuning.TIMES.refusals_together:
            self._refused_at = now
        self._last_refused = now
        return now - self._refused_at >= tuning.TIMES.refusals_apart - tuning.TIMES.slack

    def is_refusing(self) -> bool:
        return self._refused_at is not None

    def is_silent(self, now: float) -> bool:
        """Whether it has been silent for so long that it counts as gone."""
        return self._asked_at is not None and now - self._asked_at >= tuning.TIMES.max_silence - tuning.TIMES.slack

    def gives_up_at(self, now: float) -> float:
        """The earliest moment at which `is_silent` may become true."""
        return (now if self._asked_at is None else self._asked_at) + tuning.TIMES.max_silence - tuning.TIMES.slack

    def nobody_waits(self) -> None:
        """Nothing is expected of it any more. That it refuses is remembered: the next one that waits is told sooner."""
        self._asked_at = None

    def slept(self, seconds: float) -> None:
        """This process was held up for so long: it could not hear anything then."""
        if self._asked_at is not None:
            self._asked_at += seconds


@dataclass(slots=True)
class RemoteClock:
    """The clock of another process, as far as an exchange with it told.

    Its answer was on its way for an unknown part of the exchange. So what is told here is the earliest that its clock
    can show: a moment comes out too early by that part, and never too late.
    """

    _ours: float | None = None
    _theirs: float = 0.0

    def learn(self, sent: float, received: float, theirs: float) -> bool:
        """It said `theirs`, between these two moments of ours. Returns whether the exchange says enough: by one that
        took too long, as when this process was held up, everything would come too late there.
        """
        if received - sent > tuning.TIMES.longest_exchange:
            return False
        self._ours, self._theirs = received, theirs
        return True

    def is_fresh(self, now: float) -> bool:
        return self._ours is not None and now - self._ours < tuning.TIMES.clock_is_fresh

    def at(self, ours: float) -> float:
        """What it shows at a moment of ours, or a little less. Only after `learn`."""
        assert self._ours is not None
        return self._theirs + (ours - self._ours)
