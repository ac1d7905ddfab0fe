"""Whether a server is started again, after which pause, and why it ended. Pure."""

import pytest

from a2c_smcp.computer.mcp_clients.connection_options import ConnectionOptions, Timings
from a2c_smcp.computer.mcp_clients.restarts import Restarts, end_reason, with_last_words

OPTIONS = ConnectionOptions(max_restarts=2)


@pytest.mark.parametrize(
    ("before", "lasted", "after"),
    [
        (Restarts(), 1.0, Restarts(1, 1)),
        (Restarts(1, 1), 4.9, Restarts(2, 2)),  # only short lives make the pauses longer
        (Restarts(1, 1), 5.0, Restarts(2, 1)),
        (Restarts(1, 1), None, Restarts(2, 2)),  # a restart that failed
        (Restarts(2, 2), 59.0, None),
        (Restarts(2, 2), 60.0, Restarts(1, 1)),  # a minute of health forgives what was before
        (Restarts(), None, None),  # it has never run
    ],
)
def test_what_follows_a_life(before: Restarts, lasted: float | None, after: Restarts | None) -> None:
    assert before.after(lasted, OPTIONS) == after


def test_nothing_follows_without_auto_reconnect() -> None:
    assert Restarts().after(100.0, ConnectionOptions(auto_reconnect=False)) is None


def test_the_pause_grows_from_half_a_second_to_thirty() -> None:
    pauses = [Timings().backoff(short_lives) for short_lives in range(1, 12)]
    assert 0.5 <= pauses[0] <= 0.625
    assert 4 <= pauses[3] <= 5
    assert pauses[-1] == Timings().backoff(5000) == 30


@pytest.mark.parametrize(
    ("exit_words", "failure", "session_end", "reason"),
    [
        ("exit code 3", "OSError", "was lost", "exit code 3"),
        (None, "OSError", "was lost", "OSError"),
        (None, None, "was lost", "was lost"),
        (None, None, None, "no answer within 0.5 s"),
    ],
)
def test_the_reason_is_what_says_most(
    exit_words: str | None, failure: str | None, session_end: str | None, reason: str
) -> None:
    assert end_reason(exit_words, failure, session_end, 0.5) == reason


def test_a_reason_has_the_last_five_lines_of_stderr() -> None:
    assert with_last_words("gone", ()) == "gone"
    assert with_last_words("gone", [str(number) for number in range(9)]) == "gone; stderr: 4 | 5 | 6 | 7 | 8"
