"""When a process counts as gone, and what its clock says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2c_smcp.server.cluster.peers import ProcessHealth, RemoteClock


def test_one_refusal_says_nothing_and_two_apart_say_that_it_is_gone() -> None:
    health = ProcessHealth()
    assert not health.refused(100)
    assert health.is_refusing()
    assert not health.refused(101)
    assert health.refused(102)
    assert health.refused(103), "and the next one is told at once"


def test_a_word_between_two_refusals_ends_the_suspicion() -> None:
    health = ProcessHealth()
    health.refused(100)
    health.heard()
    assert not health.is_refusing()
    assert not health.refused(103)


def test_refusals_long_after_each_other_have_nothing_to_do_with_each_other() -> None:
    health = ProcessHealth()
    health.refused(100)
    assert not health.refused(200)
    assert health.refused(202)


def test_silence_counts_from_the_first_thing_that_was_sent_since_it_was_heard() -> None:
    health = ProcessHealth()
    assert not health.is_silent(1000), "nobody asked it anything"
    health.sent(100)
    health.sent(102)
    assert not health.is_silent(102.5)
    assert health.is_silent(103)
    health.heard()
    health.sent(103)
    assert not health.is_silent(105)


def test_the_time_in_which_this_process_slept_is_nobodys_silence() -> None:
    health = ProcessHealth()
    health.sent(100)
    health.slept(10)
    assert not health.is_silent(112)
    assert health.is_silent(113)


@given(st.floats(0, 1000), st.floats(0, 10))
def test_it_is_never_given_up_before_the_moment_that_was_promised(asked: float, later: float) -> None:
    health = ProcessHealth()
    health.sent(asked)
    promised = health.gives_up_at(asked + later)
    assert not health.is_silent(promised - 0.001)


def test_when_somebody_waits_again_it_gets_its_time_anew() -> None:
    health = ProcessHealth()
    health.sent(100)
    health.nobody_waits()
    health.sent(200)
    assert health.gives_up_at(200) > 202


@given(st.floats(-1e6, 1e6), st.floats(0, 0.4), st.floats(0, 0.4), st.floats(0, 100))
def test_a_moment_on_the_other_clock_is_never_too_late_and_too_early_by_the_way_back_at_most(
    difference: float, there: float, back: float, later: float
) -> None:
    sent = 100.0
    read = sent + there
    received = read + back
    clock = RemoteClock()
    assert clock.learn(sent, received, read + difference)
    moment = received + later
    truth = moment + difference
    assert truth - back - 1e-6 <= clock.at(moment) <= truth + 1e-6


def test_a_clock_has_to_be_asked_again_after_a_minute() -> None:
    clock = RemoteClock()
    assert not clock.is_fresh(0)
    assert clock.learn(99.5, 100, 5)
    assert clock.is_fresh(159)
    assert not clock.is_fresh(161)


def test_an_exchange_that_took_long_does_not_replace_what_is_known_of_a_clock() -> None:
    clock = RemoteClock()
    assert not clock.learn(100, 105, 50)
    assert not clock.is_fresh(105)
    assert clock.learn(110, 110.1, 60)
    assert not clock.learn(111, 120, 61)
    assert clock.at(120.1) == pytest.approx(70)
