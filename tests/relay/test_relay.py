"""Asked once, answered once: two ends of a line that loses, delays and reorders, and what each of them is left with."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from a2c_smcp.errors import BadRequestError, RequestTimeoutError, TooManyRequestsError
from a2c_smcp.relay.asks import Ask, AskBounds, AskTable
from a2c_smcp.relay.errands import Errand, ErrandTable

CALLERS = ("ann", "bob")
BOUNDS = AskBounds(most=3, most_weight=20)
#: How far the answering side's clock is ahead.
AHEAD = 1000.0
LIFE = 5.0


class TwoEnds(RuleBasedStateMachine):
    """One asking side with two callers, one answering side with a clock of its own, and messages between them."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.asks: AskTable[int, str] = AskTable(BOUNDS)
        self.errands: ErrandTable[int, str] = ErrandTable()
        self.line: list[tuple[Any, ...]] = []
        self.number = 0
        self.deadlines: dict[int, float] = {}
        self.outcomes: Counter[int] = Counter()
        self.begun: Counter[int] = Counter()
        self.refused = 0

    def ended(self, number: int) -> None:
        self.outcomes[number] += 1

    # --- the asking side

    @rule(caller=st.sampled_from(CALLERS), weight=st.integers(0, 9), send=st.booleans())
    def ask(self, caller: str, weight: int, send: bool) -> None:
        self.number += 1
        ask = Ask(self.number, f"work {self.number}", caller, "server", ("topic", self.number), weight)
        try:
            self.asks.ask(ask)
        except TooManyRequestsError:
            self.refused += 1
            return
        self.deadlines[self.number] = self.now + LIFE
        if send and self.asks.sent(self.number):
            self.line.append(("ask", self.number, self.now + LIFE + AHEAD))

    @precondition(lambda self: self.asks)
    @rule(data=st.data(), late=st.booleans())
    def stop_waiting(self, data: st.DataObject, late: bool) -> None:
        ask = data.draw(st.sampled_from(self.asks.waiting()))
        tell = self.asks.late(ask.id) if late else self.asks.withdraw(ask.id)
        assert tell == ask.was_sent
        assert not self.asks.withdraw(ask.id), "an ask that has ended tells nobody a second time"
        self.ended(ask.id)
        if tell:
            self.line.append(("withdraw", ask.id))

    @precondition(lambda self: self.asks)
    @rule(data=st.data())
    def fail(self, data: st.DataObject) -> None:
        """No answer can come any more, for instance because sending failed."""
        ask = data.draw(st.sampled_from(self.asks.waiting()))
        assert self.asks.fail(ask.id) is ask
        assert self.asks.fail(ask.id) is None and not self.asks.sent(ask.id), "it ends once, and is not sent after that"
        self.ended(ask.id)

    @rule(caller=st.sampled_from(CALLERS))
    def caller_goes(self, caller: str) -> None:
        lost = self.asks.lost(caller)
        assert not lost.unanswered
        for ask in lost.unwanted:
            assert ask.caller == caller
            self.ended(ask.id)
            if ask.was_sent:
                self.line.append(("withdraw", ask.id))

    # --- the line

    @precondition(lambda self: self.line)
    @rule(data=st.data())
    def lose(self, data: st.DataObject) -> None:
        self.line.pop(data.draw(st.integers(0, len(self.line) - 1)))

    @precondition(lambda self: self.line)
    @rule(data=st.data())
    def deliver(self, data: st.DataObject) -> None:
        match self.line.pop(data.draw(st.integers(0, len(self.line) - 1))):
            case ("ask", int() as number, float() as deadline):
                self.errands.take(Errand(number, f"work {number}", deadline))
            case ("withdraw", int() as number):
                self.errands.withdraw(number)
            case ("answer", int() as number):
                if (ask := self.asks.answer(number)) is not None:
                    assert ask.waiter == f"work {number}"
                    self.ended(number)
            case ("report", int() as number):
                about = self.asks.report(("topic", number))
                assert (about is None) == (number not in self.asks)

    @rule()
    def cut(self) -> None:
        """The line is gone, with everything on it; both sides notice."""
        self.line.clear()
        for ask in self.asks.lost("server").unanswered:
            self.ended(ask.id)
        self.errands.lost()

    # --- the answering side

    @rule(seconds=st.floats(0.5, 4))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @precondition(lambda self: self.errands)
    @rule(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(self.errands.ids()))
        try:
            if self.errands.begin(number, self.now + AHEAD) is not None:
                assert self.now <= self.deadlines[number], "nothing starts after its deadline"
                self.begun[number] += 1
        except RequestTimeoutError:
            assert self.now > self.deadlines[number]
            self.answer(number)
        assert self.errands.begin(number, self.now + AHEAD) is None, "nothing starts twice"

    def answer(self, number: int) -> None:
        if self.errands.finished(number):
            self.line.append(("answer", number))
        assert not self.errands.finished(number), "nothing is answered twice"

    @precondition(lambda self: self.errands)
    @rule(data=st.data(), report=st.booleans())
    def work(self, data: st.DataObject, report: bool) -> None:
        number = data.draw(st.sampled_from(self.errands.ids()))
        if report:
            self.line.append(("report", number))
        elif self.begun[number]:
            self.answer(number)

    # --- what always holds

    @invariant()
    def every_ask_waits_or_has_ended_once(self) -> None:
        for number in self.deadlines:
            assert (number in self.asks) + self.outcomes[number] == 1

    @invariant()
    def everything_runs_at_most_once(self) -> None:
        assert max(self.begun.values(), default=0) <= 1

    @invariant()
    def the_bounds_hold(self) -> None:
        for caller in CALLERS:
            mine = self.asks.parted_by(caller).unwanted
            assert BOUNDS.most is not None and len(mine) <= BOUNDS.most
            assert BOUNDS.most_weight is not None and sum(ask.weight for ask in mine) <= BOUNDS.most_weight

    def teardown(self) -> None:
        """Whatever happened, when all have gone nothing is kept, and nothing still counts against a caller."""
        for ask in self.asks.lost_all():
            self.ended(ask.id)
        self.errands.lost()
        assert not self.asks and not self.errands
        assert all(self.outcomes[number] == 1 for number in self.deadlines)
        for number, caller in enumerate(CALLERS):
            self.asks.ask(Ask(number, "", caller, weight=20))


TestTwoEnds = TwoEnds.TestCase
TestTwoEnds.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_an_id_that_waits_is_not_asked_again_and_one_under_way_is_not_taken_again() -> None:
    asks: AskTable[int, str] = AskTable()
    asks.ask(Ask(1, "first"))
    with pytest.raises(ValueError, match="already in flight"):
        asks.ask(Ask(1, "second"))
    errands: ErrandTable[int, str] = ErrandTable(most=1)
    errands.take(Errand(1, "first"))
    with pytest.raises(BadRequestError):
        errands.take(Errand(1, "second"))
    with pytest.raises(TooManyRequestsError):
        errands.take(Errand(2, "third"))
    assert [errand.work for errand in errands.lost()] == ["first"]


def test_what_has_ended_is_not_sent() -> None:
    asks: AskTable[int, str] = AskTable()
    asks.ask(Ask(1, "work"))
    assert not asks.withdraw(1), "it was not sent, so nobody is to be told"
    assert not asks.sent(1)


def test_of_two_asks_with_one_topic_the_one_that_a_report_is_about_gets_it() -> None:
    asks: AskTable[int, str] = AskTable()
    asks.ask(Ask(1, "at pc", topic="t"))
    asks.ask(Ask(2, "at mac", topic="t"))
    about = asks.report("t", about=lambda waiter: waiter == "at mac")
    assert about is not None and about.id == 2
    asks.answer(2)
    assert asks.report("t", about=lambda waiter: waiter == "at mac") is None
