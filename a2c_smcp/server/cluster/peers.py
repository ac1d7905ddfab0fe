"""When another process counts as gone, and what its clock says. Pure: the clock is handed in.

All moments are in seconds of a clock that also runs while this process is stopped or its machine sleeps.
"""

from dataclasses import dataclass

from a2c_smcp.server.cluster import tuning

__all__ = ["ProcessHealth", "RemoteClock"]


@dataclass(slots=True)
class ProcessHealth:
    """Whether another process is there, as its answers show."""

    _asked_at: float | None = None
    """When something was sent for the first time since the process was last heard."""
    _refused_at: float | None = None
    _last_refused: float = 0.0

    def sent(self, now: float) -> None:
        if self._asked_at is None:
            self._asked_at = now

    def heard(self) -> None:
        self._asked_at = self._refused_at = None

    def refused(self, now: float) -> bool:
        """NATS says that nobody took what was sent. Returns whether the process counts as gone."""
        if self._refused_at is None or now - self._last_refused > tuning.TIMES.refusals_together:
            self._refused_at = now
        self._last_refused = now
        return now - self._refused_at >= tuning.TIMES.refusals_apart - tuning.TIMES.slack

    def is_refusing(self) -> bool:
        return self._refused_at is not None

    def is_silent(self, now: float) -> bool:
        """Whether it counts as gone, because it has been silent for too long."""
        return self._asked_at is not None and now - self._asked_at >= tuning.TIMES.max_silence - tuning.TIMES.slack

    def gives_up_at(self, now: float) -> float:
        """The earliest moment at which `is_silent` may become true."""
        return (now if self._asked_at is None else self._asked_at) + tuning.TIMES.max_silence - tuning.TIMES.slack

    def nobody_waits(self) -> None:
        """Nothing is expected of it any more. Refusals are remembered, so that the next caller is told sooner."""
        self._asked_at = None

    def slept(self, seconds: float) -> None:
        """This process was held up for this many seconds, and could not hear anything."""
        if self._asked_at is not None:
            self._asked_at += seconds


@dataclass(slots=True)
class RemoteClock:
    """What the clock of another process shows, learnt from an exchange with it.

    The answer was on its way for an unknown part of the exchange. So the result is the earliest time that the clock can
    show: it may be too early by that part, and is never too late.
    """

    _ours: float | None = None
    _theirs: float = 0.0

    def learn(self, sent: float, received: float, theirs: float) -> bool:
        """The other clock showed `theirs` between these two moments of ours. Returns whether this was used. An
        exchange that took too long is not used: with it, every request would come too late there.
        """
        if received - sent > tuning.TIMES.longest_exchange:
            return False
        self._ours, self._theirs = received, theirs
        return True

    def is_fresh(self, now: float) -> bool:
        return self._ours is not None and now - self._ours < tuning.TIMES.clock_is_fresh

    def at(self, ours: float) -> float:
        """What the other clock shows at a moment of ours, or a little less. Call `learn` first."""
        assert self._ours is not None
        return self._theirs + (ours - self._ours)
