"""A few lines a second about each peer, then a count."""

import logging
from collections.abc import Callable

import pytest

from a2c_smcp.utils.limited_log import LimitedLog, SparseFilter

logger = logging.getLogger("test.limited_log")


class Clock:
    def __init__(self) -> None:
        self.now = 100.0
        self.due: list[tuple[float, Callable[[], None]]] = []

    def __call__(self) -> float:
        return self.now

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        self.due.append((self.now + seconds, call))

    def pass_(self, seconds: float) -> None:
        self.now += seconds
        due, self.due = self.due, []
        for at, call in due:
            if at <= self.now:
                call()
            else:
                self.due.append((at, call))


def own(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    """What the loggers here said, and not the threads of an earlier test."""
    return [record for record in caplog.records if record.name.startswith("test.")]


def messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in own(caplog)]


def limited_log(clock: Clock) -> LimitedLog:
    return LimitedLog(logger, clock=clock, later=clock.later)


def test_a_flood_is_a_few_lines_and_a_count(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    log = limited_log(clock)
    for n in range(1000):
        log.warn("1.2.3.4", "bad frame %d", n)
    assert messages(caplog) == [f"bad frame {n}" for n in range(5)]
    clock.pass_(1.0)
    assert messages(caplog)[5:] == ["995 more lines about 1.2.3.4 were left out"]
    log.warn("1.2.3.4", "again")
    assert messages(caplog)[-1] == "again"
    assert not clock.due


def test_a_flood_of_tracebacks_is_a_few_of_them_and_a_count(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    log = limited_log(clock)
    for _ in range(100):
        try:
            raise ValueError("no")
        except ValueError:
            log.exception("a", "it failed")
    assert [record.exc_info is not None for record in own(caplog)] == [True] * 5
    clock.pass_(1.0)
    assert messages(caplog)[5:] == ["95 more lines about a were left out"]


def test_one_peer_does_not_silence_another(caplog: pytest.LogCaptureFixture) -> None:
    log = limited_log(Clock())
    for _ in range(100):
        log.warn("a", "from a")
    log.warn("b", "from b")
    assert messages(caplog).count("from b") == 1


def test_now_and_then_is_never_left_out(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    log = limited_log(clock)
    for _ in range(50):
        log.warn("a", "line")
        clock.pass_(0.3)
    assert len(messages(caplog)) == 50


def test_peers_that_are_long_gone_are_forgotten() -> None:
    clock = Clock()
    log = limited_log(clock)
    for n in range(5000):
        log.warn(f"peer {n}", "line")
        clock.pass_(0.01)
    assert len(log._seconds) <= 1000


def test_with_a_real_timer_the_count_comes_by_itself(caplog: pytest.LogCaptureFixture) -> None:
    import time

    def said() -> int:
        return messages(caplog).count("line")

    def left_out() -> int:
        return sum(int(message.split()[0]) for message in messages(caplog) if "left out" in message)

    log = LimitedLog(logger, clock=lambda: 100.0)  # by a real clock a second may pass before the fifth line
    for _ in range(10):
        log.warn("a", "line")
    deadline = time.monotonic() + 20
    while said() + left_out() < 10 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert said() + left_out() == 10
    # Five of each, unless the timer's second was over before the last line: after a count there is room for others.
    assert said() >= 5 and left_out() >= 1


def test_a_library_that_logs_whatever_a_peer_does_is_sparse(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    library = logging.getLogger("test.library")
    sparse = SparseFilter(clock)
    library.addFilter(sparse)
    try:
        for second in range(2):
            for n in range(100):
                library.warning(f"from a peer {second} {n}")
            library.warning("another wording")
            clock.pass_(1.0)
    finally:
        library.removeFilter(sparse)
    assert len(messages(caplog)) == 12
    assert "95 more" in messages(caplog)[6]
