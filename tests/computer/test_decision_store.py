"""Who asks waits, whoever is there may answer, the first counts, the others are told, and silence is an outcome."""

import asyncio
import contextvars
import math
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from a2c_smcp.computer.calls.log import WatchedCall
from a2c_smcp.computer.decisions.book import (
    KINDS,
    Accepted,
    AlreadyDecidedError,
    Confirmation,
    Decision,
    DecisionAnswer,
    DecisionChangedError,
    Declined,
    Dismissed,
    MissingInput,
    Outcome,
    Resolution,
    ToolDefinition,
)
from a2c_smcp.computer.decisions.made_rules import ruled_call
from a2c_smcp.computer.decisions.store import Attendance, DecisionStore
from a2c_smcp.computer.mcp_clients.model import parse_input
from a2c_smcp.computer.watching.events import (
    AnswerersChanged,
    DecisionAsked,
    DecisionDecided,
    DecisionEvent,
    RulesChanged,
)
from a2c_smcp.errors import BadRequestError, NotFoundError
from tests.server.harness import eventually

DEADLINE = 30.0
KEY = parse_input({"id": "key", "type": "promptString", "password": True})


def call(number: int = 1, tool: str = "delete") -> WatchedCall:
    return WatchedCall(f"c-{number}", "r", "max", "files", tool, tool, {"number": number}, None, 0.0)


class Watched:
    """A store, and what it told."""

    def __init__(self, **options: Any) -> None:
        self.events: list[DecisionEvent] = []
        self.store = DecisionStore(self.events.append, **options)

    @property
    def asked(self) -> list[Decision]:
        return [event.decision for event in self.events if isinstance(event, DecisionAsked)]

    @property
    def decided(self) -> list[DecisionDecided]:
        return [event for event in self.events if isinstance(event, DecisionDecided)]


@pytest.fixture
def watched() -> Watched:
    return Watched()


async def asked(store: DecisionStore, ask: Callable[[], Any]) -> tuple["asyncio.Task[Resolution]", Decision]:
    """A task that waits for a decision, and the decision."""
    before = store.pending
    task: asyncio.Task[Resolution] = asyncio.create_task(ask())
    await anyio.wait_all_tasks_blocked()
    (new,) = [decision for decision in store.pending if decision not in before]
    return task, new


async def test_nobody_there_is_silence_at_once(watched: Watched) -> None:
    assert await watched.store.ask_confirmation(call()) == Resolution(Outcome.UNANSWERED)
    assert watched.events == []


async def test_an_answer_reaches_who_asked_and_the_second_is_told(watched: Watched) -> None:
    store = watched.store
    with store.attend("browser"), store.attend("terminal"):
        task, decision = await asked(store, lambda: store.ask_confirmation(call()))
        assert isinstance(decision, Confirmation)
        store.answer(decision.id, Declined(), by="browser", digest=decision.digest)
        with pytest.raises(AlreadyDecidedError, match="declined by browser"):
            store.answer(decision.id, Accepted(), by="terminal")
        assert await task == Resolution(Outcome.DECLINED, "browser")
    assert watched.asked == [decision]
    assert watched.decided == [DecisionDecided(decision.id, "confirmation", Outcome.DECLINED, "browser")]


async def test_an_answer_for_something_else_leaves_it_pending(watched: Watched) -> None:
    store = watched.store
    with store.attend("browser"):
        task, decision = await asked(store, lambda: store.ask_confirmation(call()))
        with pytest.raises(DecisionChangedError):
            store.answer(decision.id, Accepted(), by="browser", digest="0" * 64)
        with pytest.raises(NotFoundError):
            store.answer("another", Accepted(), by="browser")
        assert store.pending == (decision,)
        store.answer(decision.id, Accepted(), by="browser")
        assert (await task).outcome is Outcome.ACCEPTED


async def test_a_value_that_is_not_allowed_leaves_it_pending_and_no_event_has_a_value(watched: Watched) -> None:
    store = watched.store

    def check(value: Any) -> None:
        if value != "hunter2":
            raise BadRequestError("no")

    with store.attend("browser"):
        task, decision = await asked(store, lambda: store.ask_input(KEY, ("files",), check=check))
        with pytest.raises(BadRequestError, match="no"):
            store.answer(decision.id, Accepted("wrong"), by="browser")
        store.answer(decision.id, Accepted("hunter2"), by="browser")
        assert (await task).value == "hunter2"
    assert "hunter2" not in repr(watched.events)
    resolution = store.resolution(decision.id)
    assert resolution is not None
    assert resolution.value is None


async def test_no_answer_in_time_is_an_outcome_of_its_own_and_a_late_answer_is_told(watched: Watched) -> None:
    store = watched.store
    with store.attend("browser"):
        resolution = await store.ask_confirmation(call(), expires=anyio.current_time() + 0.05)
        assert resolution == Resolution(Outcome.UNANSWERED)
        with pytest.raises(AlreadyDecidedError, match="nobody answered in time"):
            store.answer(watched.asked[0].id, Accepted(), by="browser")


async def test_whoever_asked_a_person_in_vain_can_say_what_came_of_it(watched: Watched) -> None:
    store, loop = watched.store, asyncio.get_running_loop()
    known: list[Resolution | None] = []

    async def ask(decision: Decision) -> None:
        try:
            await asyncio.sleep(DEADLINE)
        finally:
            known.append(store.resolution(decision.id))

    with store.attend("terminal", ask=ask):
        for others in range(8):
            expires = loop.time() + 0.05
            # Which of two timers for the same moment runs first depends on those before them.
            for number in range(others):
                loop.call_at(expires - 0.02 + number / 1000, lambda: None)
            await store.ask_confirmation(call(), expires=expires)
            await eventually(lambda: len(known) == len(watched.asked))
    assert known == [Resolution(Outcome.UNANSWERED)] * 8


async def test_an_answer_after_the_deadline_is_late_even_if_nobody_noticed_yet(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = watched.store
    loop = asyncio.get_running_loop()
    expires = loop.time() + DEADLINE
    with store.attend("browser"):
        task, decision = await asked(store, lambda: store.ask_confirmation(call(), expires=expires))
        with monkeypatch.context() as late:
            late.setattr(loop, "time", lambda: expires)  # the loop is busy: the deadline's timer has not run
            with pytest.raises(AlreadyDecidedError, match="nobody answered in time"):
                store.answer(decision.id, Accepted(), by="browser")
        assert (await task).outcome is Outcome.UNANSWERED


async def test_a_question_that_ends_with_its_call_after_its_deadline_was_not_answered(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, loop = watched.store, asyncio.get_running_loop()
    expires = loop.time() + DEADLINE
    with store.attend("browser"):
        task, _ = await asked(store, lambda: store.ask_question("files", "Which?", expires=expires))
        with monkeypatch.context() as late:
            late.setattr(loop, "time", lambda: expires)  # the loop is busy, and gets to the end of the call first
            task.cancel()
            await asyncio.wait([task])
    assert [each.outcome for each in watched.decided] == [Outcome.UNANSWERED]


async def test_who_asked_and_went_withdraws_it(watched: Watched) -> None:
    store = watched.store
    with store.attend("browser"):
        task, decision = await asked(store, lambda: store.ask_confirmation(call()))
        task.cancel()
        await asyncio.wait([task])
        with pytest.raises(AlreadyDecidedError, match="not needed any more"):
            store.answer(decision.id, Accepted(), by="browser")
    assert watched.decided[0].outcome is Outcome.WITHDRAWN


async def test_whoever_is_asked_in_a_task_is_cancelled_when_another_is_quicker(watched: Watched) -> None:
    store = watched.store
    told: list[Resolution | None] = []

    async def ask(decision: Decision) -> DecisionAnswer | None:
        try:
            await anyio.sleep(DEADLINE)
        finally:
            told.append(store.resolution(decision.id))
        return Accepted()

    with store.attend("terminal", ask=ask), store.attend("browser"):
        task, decision = await asked(store, lambda: store.ask_confirmation(call()))
        await anyio.wait_all_tasks_blocked()
        store.answer(decision.id, Declined(), by="browser")
        assert (await task).by == "browser"
        await anyio.wait_all_tasks_blocked()
    assert told == [Resolution(Outcome.DECLINED, "browser")]


async def test_who_comes_later_is_asked_what_is_pending_and_who_goes_is_not_asked_any_more(watched: Watched) -> None:
    store = watched.store
    gone: list[str] = []

    async def slow(_: Decision) -> None:
        try:
            await anyio.sleep(DEADLINE)
        finally:
            gone.append("slow")

    async def yes(_: Decision) -> DecisionAnswer:
        return Accepted()

    with store.attend("browser"):
        with store.attend("slow", ask=slow):
            task, _ = await asked(store, lambda: store.ask_confirmation(call()))
            await anyio.wait_all_tasks_blocked()
        await anyio.wait_all_tasks_blocked()
        assert gone == ["slow"]
        assert not task.done()
        with store.attend("quick", ask=yes):
            assert (await task).by == "quick"


async def test_one_that_has_no_answer_or_fails_leaves_it_to_the_others(
    watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    store = watched.store

    async def nothing(_: Decision) -> None:
        return None

    async def broken(_: Decision) -> None:
        raise ZeroDivisionError

    with store.attend("nothing", ask=nothing), store.attend("broken", ask=broken), store.attend("browser"):
        task, decision = await asked(store, lambda: store.ask_confirmation(call()))
        await anyio.wait_all_tasks_blocked()
        assert not task.done()
        store.answer(decision.id, Accepted(), by="browser")
        assert (await task).outcome is Outcome.ACCEPTED
    with store.attend("nothing", ask=nothing):
        assert await store.ask_confirmation(call()) == Resolution(Outcome.UNANSWERED)
    with store.attend("nothing", ask=nothing), store.attend("broken", ask=broken):
        failed = await store.ask_confirmation(call())
        assert failed.outcome is Outcome.FAILED
        assert isinstance(failed.error, ZeroDivisionError)
    assert f"broken could not be asked for the confirmation of {call().req_id}" in caplog.messages


async def test_each_is_asked_only_what_it_can_answer(watched: Watched) -> None:
    store = watched.store
    seen: list[str] = []

    async def ask(decision: Decision) -> DecisionAnswer:
        seen.append(decision.kind)
        return Dismissed()

    with store.attend("confirms", {"confirmation"}, ask):
        assert not store.can_answer("input")
        assert await store.ask_input(KEY, ()) == Resolution(Outcome.UNANSWERED)
        assert await store.ask_question("files", "Which?") == Resolution(Outcome.UNANSWERED)
        assert (await store.ask_confirmation(call())).outcome is Outcome.DISMISSED
    assert seen == ["confirmation"]


async def test_a_page_that_reloads_finds_its_decision_again(watched: Watched) -> None:
    store = watched.store
    with store.attend("browser"):
        task, decision = await asked(store, lambda: store.ask_confirmation(call()))
    await anyio.wait_all_tasks_blocked()
    assert store.pending == (decision,)
    with store.attend("browser"):
        store.answer(decision.id, Accepted(), by="browser")
    assert (await task).outcome is Outcome.ACCEPTED


async def test_when_all_have_gone_and_nobody_comes_it_is_silence() -> None:
    store = Watched(grace=0.05).store
    with store.attend("browser"):
        task, _ = await asked(store, lambda: store.ask_confirmation(call()))
    with anyio.fail_after(DEADLINE):
        assert await task == Resolution(Outcome.UNANSWERED)


async def test_always_allows_the_tool_and_answers_the_calls_of_it_that_wait(watched: Watched) -> None:
    store = watched.store
    with store.attend("terminal"):
        one, first = await asked(store, lambda: store.ask_confirmation(call(1)))
        two, _ = await asked(store, lambda: store.ask_confirmation(call(2)))
        three, third = await asked(store, lambda: store.ask_confirmation(call(3, tool="other")))
        store.answer(first.id, Accepted(always=True), by="terminal")
        assert (await one).always
        # The rule that was made covers it.
        assert (await two) == Resolution(Outcome.ACCEPTED, "rule", rule=(await one).rule)
        assert store.pending == (third,)
        (rule,) = store.rules.list.all
        assert (rule.effect, rule.id) == ("allow", (await one).rule)
        assert store.rules.likely(ruled_call(call(4), ToolDefinition())) is not None
        assert store.rules.likely(ruled_call(call(4, tool="other"), ToolDefinition())) is None
        store.rules.remove(rule.id)
        assert store.rules.list.all == ()
        with pytest.raises(NotFoundError):
            store.rules.remove(rule.id)
        assert len([event for event in watched.events if isinstance(event, RulesChanged)]) == 2
        three.cancel()
        await asyncio.wait([three])


async def test_who_comes_and_goes_changes_what_can_be_answered(watched: Watched) -> None:
    store = watched.store
    with store.attend("callback", {"confirmation"}):
        assert not store.can_answer("question")
        with store.attend("terminal"):
            with store.attend("browser"):
                assert store.answerers == ("callback", "terminal", "browser")
            assert store.can_answer("question")
        assert not store.can_answer("question")
        assert store.can_answer("confirmation")
    names = [event.names for event in watched.events if isinstance(event, AnswerersChanged)]
    assert names[2] == ("callback", "terminal", "browser")
    assert names[-1] == ()


async def test_who_is_asked_sees_the_context_of_who_asks(watched: Watched) -> None:
    mark: contextvars.ContextVar[str] = contextvars.ContextVar("mark")
    seen: list[str] = []

    async def ask(_: Decision) -> DecisionAnswer:
        seen.append(mark.get("nobody"))
        return Accepted()

    with watched.store.attend("callback", ask=ask):
        mark.set("me")
        await watched.store.ask_confirmation(call())
    assert seen == ["me"]


async def test_what_is_not_needed_any_more_can_be_withdrawn_by_others(watched: Watched) -> None:
    store = watched.store
    with store.attend("browser"):
        task, decision = await asked(store, lambda: store.ask_input(KEY, ("files",)))
        assert isinstance(decision, MissingInput)
        store.withdraw(decision.id)
        assert (await task).outcome is Outcome.WITHDRAWN
        with pytest.raises(AlreadyDecidedError):
            store.withdraw(decision.id)


@pytest.mark.parametrize("seed", range(20))
async def test_whatever_people_and_programs_do_each_decision_is_made_once(seed: int) -> None:
    chance, theirs = random.Random(seed), random.Random(-seed)  # what happens is the same, however busy the machine
    watched = Watched(grace=0.01)
    store = watched.store
    asking: list[asyncio.Task[Resolution]] = []
    there: list[Attendance] = []
    won: Counter[str] = Counter()

    async def ask(decision: Decision) -> DecisionAnswer | None:
        await asyncio.sleep(theirs.random() / 100)
        if theirs.random() < 0.2:
            raise BadRequestError("no idea")
        return theirs.choice([Accepted("value"), Declined(), Dismissed(), None])

    def come() -> None:
        kinds = chance.sample(sorted(KINDS), chance.randrange(1, 4))
        there.append(store.attend(f"place {len(there)}", kinds, chance.choice([ask, None])))
        there[-1].begin()

    def go() -> None:
        if there:
            there.pop(chance.randrange(len(there))).end()

    def begin() -> None:
        expires = chance.choice([math.inf, asyncio.get_running_loop().time() + chance.random() / 50])
        asked: Any = chance.choice(
            [
                lambda: store.ask_confirmation(call(chance.randrange(5)), expires=expires),
                lambda: store.ask_question("files", "Which?", expires=expires),
                lambda: store.ask_input(KEY, (), expires=expires),
            ]
        )
        asking.append(asyncio.create_task(asked()))

    def give_up() -> None:
        if asking:
            chance.choice(asking).cancel()

    def answer() -> None:
        decisions = [*store.pending, *watched.asked[-3:]]
        for decision in decisions[: chance.randrange(3)]:
            always = decision.kind == "confirmation" and chance.random() < 0.1
            said: list[DecisionAnswer] = [Accepted(always=always), Declined()]
            try:
                store.answer(decision.id, chance.choice(said), by="browser")
                won[decision.id] += 1
            except AlreadyDecidedError:
                assert store.resolution(decision.id) is not None

    for _ in range(300):
        chance.choice([come, go, begin, begin, give_up, answer])()
        if chance.random() < 0.3:
            await asyncio.sleep(chance.random() / 200)
    while there:
        go()
    with anyio.fail_after(DEADLINE):
        await asyncio.wait(asking)
        while store._tasks:
            await asyncio.wait(store._tasks)
    asked = [decision.id for decision in watched.asked]
    assert len(asked) == len(set(asked)) > 20
    assert sorted(event.decision_id for event in watched.decided) == sorted(asked)
    assert set(won.values()) == {1}
    assert store.pending == ()
