"""The judge of a chaotic run: each way in which the books can be wrong is seen."""

import pytest

from tests.chaos.books import Runs, balance, parse_journal


def problems(journal: str, runs: list[tuple[str, str]], *, killed: bool = False) -> list[str]:
    return balance([parse_journal("j", journal.splitlines(keepends=True), killed=killed)], Runs(runs)).problems


def test_a_call_that_ran_once_and_was_answered_is_fine() -> None:
    assert problems("begin a\nend a result\n", [("a", "1")]) == []


def test_a_call_that_was_refused_need_not_have_run() -> None:
    assert problems("begin a\nend a error 404\n", []) == []


def test_a_call_that_never_ended_is_wrong_unless_its_agent_was_killed() -> None:
    assert "never ended" in problems("begin a\n", [])[0]
    assert problems("begin a\nend a re", [], killed=True) == []


@pytest.mark.parametrize("again", ["", "again a\n"])
def test_a_call_that_ran_twice_in_one_computer_is_wrong_also_when_it_was_sent_again(again: str) -> None:
    assert problems(f"begin a\n{again}end a result\n", [("a", "1"), ("a", "1")])


def test_a_call_that_was_sent_again_may_run_in_the_next_life_of_its_computer() -> None:
    assert problems("begin a\nagain a\nend a result\n", [("a", "1"), ("a", "2")]) == []
    assert problems("begin a\nend a result\n", [("a", "1"), ("a", "2")]) == ["a ran 2 times"]


def test_an_answer_without_a_run_and_an_unexpected_end_are_wrong() -> None:
    assert problems("begin a\nend a result\n", []) == ["a was answered and never ran"]
    assert "KeyError" in problems("begin a\nend a unexpected KeyError 'x'\n", [])[0]


def test_a_journal_that_makes_no_sense_is_not_read_over() -> None:
    with pytest.raises(ValueError, match="nonsense"):
        problems("nonsense\n", [])
