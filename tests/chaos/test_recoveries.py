"""What is said of kills."""

from tests.chaos.recoveries import Recovery, late, steps_between, where_the_seconds_go


def test_a_step_lasts_from_the_end_of_the_one_before() -> None:
    assert steps_between(10.0, [("imports", 11.0), ("join", 11.5)]) == {"imports": 1.0, "join": 0.5}


def test_the_aim_is_for_a_quiet_machine() -> None:
    slow = {"imports": 4.0, "join": 1.0}
    [said] = late([Recovery("kill server", slow, 1.0), Recovery("kill server", slow, 2.0)], 4.0)
    assert said.startswith("kill server: whole after 5.0 s")


def test_each_kind_of_kill_has_its_median_its_slowest_and_its_steps() -> None:
    recoveries = [Recovery("kill agent", {"imports": seconds, "join": 1.0}, 1.0) for seconds in (1.0, 2.0, 6.0)]
    [line] = where_the_seconds_go(recoveries)
    assert "3 times, median  3.00 s, slowest  7.00 s (imports 2.00, join 1.00;" in line
