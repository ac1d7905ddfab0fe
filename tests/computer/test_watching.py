"""What a watcher sees of a Computer, and what it can do: calls, decisions, servers' logs, a snapshot, a cancel."""

import asyncio
import dataclasses
import json
import random
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from a2c_smcp.computer.asker import ASKER, Asker
from a2c_smcp.computer.calls.log import ProgressReport
from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.decisions.book import (
    Accepted,
    AlreadyDecidedError,
    Confirmation,
    Decision,
    DecisionAnswer,
    DecisionChangedError,
    Declined,
    MissingInput,
    Outcome,
)
from a2c_smcp.computer.inputs import BaseInputResolver
from a2c_smcp.computer.mcp_clients.model import MCPServerInput, parse_input
from a2c_smcp.computer.mcp_clients.server_state import ServerState
from a2c_smcp.computer.watching.events import (
    CallEnded,
    CallProgressed,
    CallStarted,
    DecisionAsked,
    DecisionDecided,
    EventsLost,
    ServerLogged,
)
from a2c_smcp.computer.watching.snapshot import ComputerSnapshot
from a2c_smcp.errors import InputNotFoundError
from a2c_smcp.results import to_wire
from tests.computer.fakes.computers import DEADLINE, FAST, call, code, reason, recorded, running, server, state, text
from tests.computer.fakes.processes import eventually, nothing_left_over

ASKING: dict[str, Any] = {"default_tool_meta": None}
CANARY = "canary-51ab"


async def pending(computer: Computer, number: int = 1) -> tuple[Decision, ...]:
    """What waits to be decided, once there is so much."""
    async with computer.events(kinds=[DecisionAsked]) as events:
        with anyio.fail_after(DEADLINE):
            while len(computer.decisions.pending) < number:
                await anext(events)
    return computer.decisions.pending


@asynccontextmanager
async def calling(computer: Computer, tool: str, **params: Any) -> AsyncIterator["asyncio.Task[Any]"]:
    """A call in a task of its own, which has ended afterwards."""
    task = asyncio.create_task(call(computer, tool, **params))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])


# --- calls


async def test_a_watcher_sees_a_call_from_start_to_end() -> None:
    async with running(server("a")) as (computer, record):
        ASKER.set(Asker("max"))
        await computer.execute_tool("r1", "a.echo", {"text": "hi"}, 30)
        (ended,) = [event.ended for event in await record.of(CallEnded)]
        (started,) = [event.call for event in record.now(CallStarted)]
        assert (started.req_id, started.agent, started.server, started.tool) == ("r1", "max", "a", "echo")
        assert (started.name, started.arguments, started.timeout) == ("a.echo", {"text": "hi"}, 30)
        assert ended.call == started
        assert ended.ok
        assert ended.duration >= 0
        assert ended.result["content"] == [{"type": "text", "text": "hi"}]
        assert computer.ended_calls == (ended,)
        assert computer.running_calls == ()


async def test_every_failure_is_seen_with_its_code() -> None:
    async with running(server("a"), server("b", **ASKING)) as (computer, record):
        await call(computer, "nothing")
        await call(computer, "b.echo")
        await call(computer, "a.sleep", 0.2, seconds=30)
        await call(computer, "a.fail")
        with anyio.move_on_after(0.2):
            await computer.execute_tool("r", "a.sleep", {"seconds": 30})
        await call(computer, "a.crash")
        ended = [event.ended for event in await record.of(CallEnded, 6)]
        assert [(it.call.server, it.ok, it.code, it.outcome) for it in ended] == [
            (None, False, 4001, "failed"),
            ("b", False, 4005, "nobody"),
            ("a", False, 4004, "timed_out"),
            ("a", False, None, "failed"),
            ("a", False, None, "cancelled"),
            ("a", False, 4003, "failed"),
        ]
        assert len(record.now(CallStarted)) == 6


async def test_two_calls_with_one_req_id_are_told_apart_and_one_is_cancelled() -> None:
    async with running(server("a")) as (computer, record):

        async def by(agent: str) -> Any:
            ASKER.set(Asker(agent))
            return await call(computer, "a.sleep", seconds=30)

        max_, mia = asyncio.create_task(by("max")), asyncio.create_task(by("mia"))
        await record.of(CallStarted, 2)
        calls = {running.call.agent: running.call for running in computer.running_calls}
        assert calls["max"].req_id == calls["mia"].req_id
        assert computer.cancel_call(calls["max"].id, by="browser")
        with anyio.fail_after(DEADLINE):
            result = to_wire(await max_)
        assert result["meta"] == {"a2c_cancelled": True}
        assert result["content"][0]["text"] == "Tool call cancelled at the computer"
        assert [running.call.agent for running in computer.running_calls] == ["mia"]
        assert not computer.cancel_call(calls["max"].id)
        (ended,) = computer.ended_calls
        assert (ended.call.agent, ended.cancelled, ended.decided_by) == ("max", True, "browser")
        mia.cancel()
        await asyncio.wait([mia])
        assert computer.running_calls == ()


async def test_progress_is_asked_for_when_somebody_watches_it_and_nothing_is_made_that_nobody_reads() -> None:
    report: dict[str, Any] = {"steps": 2, "message": "well"}
    with nothing_left_over():
        async with Computer("pc", mcp_servers=[server("a")], timings=FAST) as computer:
            # The last that is heard of a start.
            await eventually(lambda: sum("subscribed" in line for line in computer.server_logs("a")) == 2)
            number = computer.snapshot().number
            assert text(await call(computer, "a.report", **report)) == "did not report"
            assert computer.snapshot().number == number
            async with computer.events(kinds=[CallEnded]) as events:
                assert text(await call(computer, "a.report", **report)) == "did not report"
                assert isinstance(await anext(events), CallEnded)
                assert computer.snapshot().number == events.number == number + 1
            async with computer.events(kinds=[CallProgressed]) as events:
                assert text(await call(computer, "a.report", **report)) == "reported"
                call_id = computer.ended_calls[-1].call.id
                assert await anext(events) == CallProgressed(call_id, ProgressReport(2.0, 2.0, "well"))


async def test_what_a_server_logs_is_heard() -> None:
    async with running(server("a")) as (computer, record):
        logged = await record.of(ServerLogged)
        assert logged[0] == ServerLogged("a", "ready")
        await call(computer, "a.chatter", lines=3)  # MCP's log messages
        await record.until(lambda: len(record.now(ServerLogged)) >= len(logged) + 3)
        # Whatever it says meanwhile is heard a moment after it is kept.
        await record.until(lambda: [it.line for it in record.now(ServerLogged)] == list(computer.server_logs("a")))


# --- decisions


@pytest.mark.parametrize("quicker", ["terminal", "browser"])
async def test_two_places_may_answer_and_the_slower_one_is_told(quicker: str) -> None:
    async with running(server("a", **ASKING)) as (computer, record):
        store = computer.decisions
        told: list[str] = []

        async def ask(decision: Decision) -> DecisionAnswer | None:
            if quicker == "terminal":
                return Accepted()
            try:
                await anyio.sleep(DEADLINE)
            finally:
                told.append(str(store.resolution(decision.id)))
            return None

        with store.attend("terminal", ask=ask), store.attend("browser"):
            async with calling(computer, "a.echo", text="x") as task:
                if quicker == "browser":
                    (decision,) = await pending(computer)
                    await anyio.wait_all_tasks_blocked()
                    store.answer(decision.id, Accepted(), by="browser", digest=decision.digest)
                assert text(await task) == "x"
        (asked,) = [event.decision for event in await record.of(DecisionAsked)]
        (decided,) = await record.of(DecisionDecided)
        assert isinstance(asked, Confirmation)
        assert asked.deadline is not None
        assert 0 < asked.deadline - asked.asked_at < DEADLINE
        assert decided == DecisionDecided(asked.id, "confirmation", Outcome.ACCEPTED, quicker)
        with pytest.raises(AlreadyDecidedError, match=f"accepted by {quicker}"):
            store.answer(asked.id, Declined(), by="the other")
        assert computer.ended_calls[0].decided_by == quicker
        assert told == ([] if quicker == "terminal" else ["accepted by browser"])


async def test_two_answerers_race_a_thousand_times_and_the_tool_runs_once_or_not_at_all() -> None:
    chance = random.Random(17)
    won: Counter[tuple[str, bool]] = Counter()
    told: Counter[str] = Counter()
    all_told = asyncio.Event()

    async def answerer(name: str, computer: Computer, ready: asyncio.Event) -> None:
        async with computer.events(4096, kinds=[DecisionAsked]) as events:
            ready.set()
            async for event in events:
                assert isinstance(event, DecisionAsked)
                for _ in range(chance.randrange(3)):
                    await asyncio.sleep(0)
                says_yes = chance.random() < 0.5
                try:
                    answer = Accepted() if says_yes else Declined()
                    computer.decisions.answer(event.decision.id, answer, by=name, digest=event.decision.digest)
                    won[name, says_yes] += 1
                except AlreadyDecidedError as error:
                    assert error.by != name
                    told[name] += 1
                    if sum(told.values()) == 1000:
                        all_told.set()

    async with running(server("a", **ASKING)) as (computer, _):
        with computer.decisions.attend("terminal"), computer.decisions.attend("browser"):
            tasks = []
            for name in ("terminal", "browser"):
                ready = asyncio.Event()
                tasks.append(asyncio.create_task(answerer(name, computer, ready)))
                await ready.wait()
            ran = 0
            for _ in range(40):
                calls = (call(computer, "a.echo", text=str(number)) for number in range(25))
                results = await asyncio.gather(*calls)
                ran += sum(code(result) is None for result in results)
                assert {code(result) for result in results} <= {None, 4005}
            with anyio.fail_after(DEADLINE):
                await all_told.wait()
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        stats = json.loads(text(await computer.execute_tool("s", "a.stats", {}, confirmed_by="test")))
    assert sum(won.values()) == sum(told.values()) == 1000
    assert {name for name, _ in won} == {"terminal", "browser"}  # both won some
    assert ran == won["terminal", True] + won["browser", True] == stats["called"] - 1


async def test_a_call_that_waits_for_its_confirmation_can_be_cancelled() -> None:
    async with running(server("a", **ASKING)) as (computer, record):
        with computer.decisions.attend("browser"):
            async with calling(computer, "a.echo", text="x") as task:
                (decision,) = await pending(computer)
                (running_call,) = computer.running_calls
                assert decision.call == running_call.call
                assert computer.cancel_call(running_call.call.id)
                assert to_wire(await task)["meta"] == {"a2c_cancelled": True}
        assert (await record.of(DecisionDecided))[0].outcome is Outcome.WITHDRAWN
        assert computer.history == ()


async def test_a_tool_that_is_described_in_another_way_while_the_person_reads_is_asked_about_again() -> None:
    async with running(server("a", **ASKING)) as (computer, record):
        with computer.decisions.attend("browser"):
            async with calling(computer, "a.echo", text="x") as task:
                (first,) = await pending(computer)
                assert isinstance(first, Confirmation)
                assert first.definition.description == "text → text"
                changed = {"name": "echo", "description": "text → text, and then it deletes your files"}
                await computer.execute_tool("s", "a.describe", changed, confirmed_by="test")
                await eventually(
                    lambda: any("deletes" in tool["description"] for tool in computer.get_available_tools())
                )
                computer.decisions.answer(first.id, Accepted(), by="browser", digest=first.digest)
                await eventually(lambda: [each.id for each in computer.decisions.pending] not in ([], [first.id]))
                (again,) = computer.decisions.pending
                assert isinstance(again, Confirmation)
                assert again.definition.description.endswith("deletes your files")
                # The digest is that of what was shown: a yes to the first is none to the second.
                with pytest.raises(DecisionChangedError):
                    computer.decisions.answer(again.id, Accepted(), by="browser", digest=first.digest)
                computer.decisions.answer(again.id, Declined(), by="browser", digest=again.digest)
                assert code(await task) == 4005
        assert len(record.now(DecisionAsked)) == 2


async def test_always_is_for_the_tool_that_was_shown_and_a_changed_one_is_asked_about_again() -> None:
    async with running(server("a", **ASKING)) as (computer, _):
        with computer.decisions.attend("browser"):
            async with calling(computer, "a.echo", text="x") as task:
                (first,) = await pending(computer)
                computer.decisions.answer(first.id, Accepted(always=True), by="browser", digest=first.digest)
                assert text(await task) == "x"
            assert code(await call(computer, "a.echo", text="unasked")) is None
            changed = {"name": "echo", "description": "text → text, and then it deletes your files"}
            await computer.execute_tool("s", "a.describe", changed, confirmed_by="test")
            await eventually(lambda: any("deletes" in tool["description"] for tool in computer.get_available_tools()))
            async with calling(computer, "a.echo", text="rm -rf /") as task:
                (again,) = await pending(computer)
                assert isinstance(again, Confirmation)
                assert again.allowed_before is not None
                assert again.allowed_before.description == "text → text"
                assert again.definition.changes_since(again.allowed_before) == ("description",)
                computer.decisions.answer(again.id, Declined(), by="browser", digest=again.digest)
                assert code(await task) == 4005
            # What was allowed is still allowed, should the server come back to it.
            changed["description"] = "text → text"
            await computer.execute_tool("s", "a.describe", changed, confirmed_by="test")
            await eventually(lambda: all("deletes" not in it["description"] for it in computer.get_available_tools()))
            assert code(await call(computer, "a.echo", text="unasked again")) is None


async def test_always_lives_in_the_store_and_so_does_a_yes_for_everything() -> None:
    async with running(server("a", **ASKING)) as (computer, record):
        with computer.decisions.attend("browser"):
            async with calling(computer, "a.echo", text="x") as task:
                (decision,) = await pending(computer)
                computer.decisions.answer(decision.id, Accepted(always=True), by="browser")
                await task
        (listed,) = computer.snapshot().rules
        assert (listed.rule.effect, listed.rule.tool[0].text, listed.source) == ("allow", "a.echo", "run")
        assert code(await call(computer, "a.echo", text="again")) is None  # with nobody there
        assert code(await call(computer, "a.stats")) == 4005
        computer.decisions.allow_all = True
        assert code(await call(computer, "a.stats")) is None
        assert len(record.now(DecisionAsked)) == 1


async def test_always_is_for_the_server_that_was_there() -> None:
    async with running(server("a", **ASKING)) as (computer, _):
        with computer.decisions.attend("browser"):
            async with calling(computer, "a.echo", text="x") as task:
                (decision,) = await pending(computer)
                computer.decisions.answer(decision.id, Accepted(always=True), by="browser")
                await task
        (rule,) = computer.decisions.rules.list.all
        await computer.add_or_update_server(server("a", **ASKING))
        assert code(await call(computer, "a.echo", text="x")) is None  # nothing changed
        await computer.add_or_update_server(server("a", mark="another", **ASKING))
        assert computer.sleeping_rules() == {rule.id}
        assert code(await call(computer, "a.echo", text="x")) == 4005
        await computer.add_or_update_server(server("a", **ASKING))
        assert computer.sleeping_rules() == frozenset()
        await computer.remove_server("a")
        # Another server brings a tool of this name.
        await computer.add_or_update_server({**server("b", **ASKING), "tool_meta": {"echo": {"alias": "a.echo"}}})
        assert computer.sleeping_rules() == {rule.id}
        assert code(await call(computer, "a.echo", text="x")) == 4005


@pytest.mark.parametrize(
    ("change", "expected"),
    [({"forbidden_tools": ["echo"]}, 4002), ({"tool_meta": {"stats": {"alias": "a.echo"}}}, 4001)],
)
async def test_a_yes_is_for_the_tool_that_was_shown(change: dict[str, Any], expected: int) -> None:
    async with running(server("a", **ASKING)) as (computer, _):
        with computer.decisions.attend("browser"):
            async with calling(computer, "a.echo", text="x") as task:
                (decision,) = await pending(computer)
                await computer.add_or_update_server(server("a", **ASKING, **change))
                computer.decisions.answer(decision.id, Accepted(), by="browser")
                assert code(await task) == expected
        assert computer.history == ()


async def test_a_call_that_is_cancelled_in_the_moment_of_the_yes_does_not_run() -> None:
    async with running(server("a", **ASKING)) as (computer, _):
        with computer.decisions.attend("browser"):
            async with calling(computer, "a.echo", text="x") as task:
                (decision,) = await pending(computer)
                computer.decisions.answer(decision.id, Accepted(), by="browser")
                assert decision.call is not None
                assert computer.cancel_call(decision.call.id)
                assert to_wire(await task)["meta"] == {"a2c_cancelled": True}
        assert computer.history == ()


async def test_a_refused_call_is_not_one_that_was_allowed_and_its_agent_reads_why() -> None:
    async with running(server("a", **ASKING)) as (computer, record):
        with computer.decisions.attend("browser"):
            async with calling(computer, "a.echo", text="x") as task:
                (decision,) = await pending(computer)
                computer.decisions.answer(decision.id, Declined("wrong folder"), by="browser")
                result = await task
            assert text(result).endswith("the person refused: wrong folder")
            assert result.meta == {"error_code": 4005, "outcome": "refused", "reason": "wrong folder"}
            await computer.execute_tool("r", "a.echo", {"text": "x"}, 0.2)
        (decided, _) = await record.of(DecisionDecided, 2)
        assert decided.reason == "wrong folder"
        refused, unanswered = computer.ended_calls
        assert (refused.outcome, refused.verdict, refused.decided_by) == ("refused", "refused", "browser")
        assert (unanswered.outcome, unanswered.verdict, unanswered.decided_by) == ("unanswered", None, None)
        assert (refused.how.by, refused.how.place, unanswered.how.by) == ("person", "browser", "nobody")
        assert unanswered.result["meta"] == {"error_code": 4005, "outcome": "unanswered"}


async def test_a_call_that_the_person_made_is_not_asked_about() -> None:
    async with running(server("a", **ASKING)) as (computer, _):
        result = await computer.execute_tool("r", "a.echo", {"text": "mine"}, confirmed_by="browser")
        assert text(result) == "mine"
        assert computer.ended_calls[0].decided_by == "browser"


async def test_the_callback_is_one_more_place_that_answers() -> None:
    cancelled: list[str] = []

    async def ask(req_id: str, *_: Any) -> bool:
        try:
            await anyio.sleep(DEADLINE)
        finally:
            cancelled.append(req_id)
        return False

    async with running(server("a", **ASKING), confirm_callback=ask) as (computer, _):
        with computer.decisions.attend("browser"):
            assert computer.decisions.answerers == ("callback", "browser")
            async with calling(computer, "a.echo", text="x") as task:
                (decision,) = await pending(computer)
                await anyio.wait_all_tasks_blocked()
                computer.decisions.answer(decision.id, Accepted(), by="browser")
                assert text(await task) == "x"
        assert cancelled == ["r"]
        computer.confirm_callback = None
        assert not computer.decisions.can_answer("confirmation")
        assert code(await call(computer, "a.echo", text="x")) == 4005
        computer.confirm_callback = lambda *_: True
        assert code(await call(computer, "a.echo", text="x")) is None


async def test_silence_is_no_timeout_of_the_tool_also_when_the_loop_wakes_too_late() -> None:
    async with running(server("a", **ASKING)) as (computer, _):
        with computer.decisions.attend("browser"):
            task = asyncio.create_task(computer.execute_tool("r", "a.echo", {"text": "x"}, 0.5))
            (decision,) = await pending(computer)
            time.sleep(0.7)  # noqa: ASYNC251 - holds up the loop on purpose
            assert code(await task) == 4005
        resolution = computer.decisions.resolution(decision.id)
        assert resolution is not None
        assert resolution.outcome is Outcome.UNANSWERED


async def test_what_waits_for_a_decision_when_the_computer_stops_is_withdrawn() -> None:
    async with running(server("a", **ASKING)) as (computer, _):
        with computer.decisions.attend("browser"):
            async with calling(computer, "a.echo", text="x") as task:
                await pending(computer)
                await computer.shutdown()
                with anyio.fail_after(DEADLINE):
                    result = await task
        assert (code(result), "withdrawn" in text(result)) == (4005, True)


# --- inputs


def needing(name: str) -> dict[str, Any]:
    config = server(name)
    config["server_parameters"]["env"] = {"KEY": "${input:key}"}
    return config


KEY = {"id": "key", "type": "promptString", "password": True}


def with_inputs(*servers: dict[str, Any], **options: Any) -> Computer:
    return Computer("pc", inputs=[parse_input(KEY)], mcp_servers=servers, timings=FAST, **options)


async def test_an_input_that_two_servers_need_is_one_decision_and_its_value_is_never_told() -> None:
    with nothing_left_over():
        computer = with_inputs(needing("a"), needing("b"))
        async with recorded(computer) as record:
            with computer.decisions.attend("browser"):
                booting = asyncio.create_task(computer.boot_up())
                (decision,) = await pending(computer)
                assert isinstance(decision, MissingInput)
                assert (decision.input_id, decision.servers) == ("key", ("a", "b"))
                computer.decisions.answer(decision.id, Accepted(CANARY), by="browser", digest=decision.digest)
                await booting
            assert [state(computer, name) for name in ("a", "b")] == [ServerState.RUNNING] * 2
            assert (await record.of(DecisionDecided)) == [
                DecisionDecided(decision.id, "input", Outcome.ACCEPTED, "browser")
            ]
            assert len(record.now(DecisionAsked)) == 1
            snapshot = computer.snapshot()
            assert snapshot.inputs == {"key": True}
            shown = [record.events, snapshot, *map(dataclasses.asdict, record.events), dataclasses.asdict(snapshot)]
            assert CANARY not in json.dumps(shown, default=repr)
            assert CANARY not in repr(shown)
            await computer.shutdown()


@pytest.mark.parametrize("way", ["declined", "nobody", "default", "set", "resolver"])
async def test_what_becomes_of_a_server_whose_input_is_asked_for(way: str) -> None:
    class Nothing(BaseInputResolver):
        async def resolve(self, definition: MCPServerInput) -> Any:
            raise InputNotFoundError(definition.id)

    with nothing_left_over():
        definition = parse_input({**KEY, **({"default": "plain"} if way == "default" else {})})
        resolver = Nothing() if way in ("resolver", "default") else None
        computer = Computer(
            "pc", inputs=[definition], mcp_servers=[needing("a")], timings=FAST, input_resolver=resolver
        )
        booting = asyncio.create_task(computer.boot_up())
        with anyio.fail_after(DEADLINE):
            if way in ("declined", "set"):
                with computer.decisions.attend("browser"):
                    (decision,) = await pending(computer)
                    if way == "set":
                        computer.inputs.set_value("key", CANARY)
                        with pytest.raises(AlreadyDecidedError, match="accepted by inputs"):
                            computer.decisions.answer(decision.id, Accepted("late"), by="browser")
                    else:
                        computer.decisions.answer(decision.id, Declined(), by="browser")
            await booting
        if way in ("set", "default"):
            assert state(computer, "a") is ServerState.RUNNING
        else:
            assert state(computer, "a") is ServerState.FAILED
            assert ("asked for, and not given" if way == "declined" else "Input not found") in reason(computer, "a")
        await computer.shutdown()


async def test_a_value_that_an_input_does_not_allow_is_refused_and_asked_for_still() -> None:
    definition = parse_input({"id": "key", "type": "pickString", "options": ["red", "green"]})
    with nothing_left_over():
        computer = Computer("pc", inputs=[definition], mcp_servers=[needing("a")], timings=FAST)
        with computer.decisions.attend("browser"):
            booting = asyncio.create_task(computer.boot_up())
            (decision,) = await pending(computer)
            with pytest.raises(Exception, match="key"):
                computer.decisions.answer(decision.id, Accepted("blue"), by="browser")
            assert computer.decisions.pending == (decision,)
            computer.decisions.answer(decision.id, Accepted("red"), by="browser")
            with anyio.fail_after(DEADLINE):
                await booting
        assert state(computer, "a") is ServerState.RUNNING
        await computer.shutdown()


# --- a snapshot, and what comes after it


class Watcher:
    """Keeps up with a Computer, from a snapshot and the events that follow it."""

    def __init__(self, snapshot: ComputerSnapshot) -> None:
        self.running = {it.call.id for it in snapshot.running_calls}
        self.ended = [it.call.id for it in snapshot.ended_calls]
        self.pending = {it.id for it in snapshot.decisions}

    def apply(self, event: object) -> None:
        match event:
            case CallStarted(call=started):
                assert started.id not in self.running
                self.running.add(started.id)
            case CallEnded(ended=ended):
                self.running.remove(ended.call.id)
                self.ended.append(ended.call.id)
            case DecisionAsked(decision=decision):
                assert decision.id not in self.pending
                self.pending.add(decision.id)
            case DecisionDecided(decision_id=decision_id):
                self.pending.remove(decision_id)


@pytest.mark.parametrize("limit", [4096, 3])
async def test_a_watcher_starts_late_and_keeps_up_also_after_a_gap(limit: int) -> None:
    chance = random.Random(limit)
    async with running(server("a", **ASKING), server("b")) as (computer, _):
        store, gaps = computer.decisions, 0

        async def ask(_: Decision) -> DecisionAnswer:
            await anyio.sleep(chance.random() / 100)
            return Accepted() if chance.random() < 0.5 else Declined()

        async def work() -> None:
            for number in range(60):
                await call(computer, chance.choice(["a.echo", "b.echo", "b.fail"]), text=str(number))

        with store.attend("terminal", ask=ask):
            workers = [asyncio.create_task(work()) for _ in range(3)]
            await asyncio.sleep(0.05)
            async with computer.events(limit) as events:
                await asyncio.sleep(0)
                snapshot = computer.snapshot()
                watcher = Watcher(snapshot)
                with anyio.fail_after(DEADLINE):
                    while not all(worker.done() for worker in workers) or events.number < computer.snapshot().number:
                        event = await anext(events)
                        if isinstance(event, EventsLost):
                            gaps += 1
                            snapshot = computer.snapshot()
                            watcher = Watcher(snapshot)
                        elif events.number > snapshot.number:
                            watcher.apply(event)
                        if limit == 3 and chance.random() < 0.3:
                            await asyncio.sleep(0.02)  # it is slow
            await asyncio.gather(*workers)
        assert watcher.running == watcher.pending == set()
        now = [ended.call.id for ended in computer.ended_calls]
        assert watcher.ended[-len(now) :] == now
        assert (gaps > 0) == (limit == 3)


async def test_a_snapshot_has_everything_and_no_secret() -> None:
    config = server("a", tool_prefix=None)
    config["server_parameters"]["env"] = {"PASSWORD": CANARY}
    async with running(config, server("b", disabled=True)) as (computer, _):
        snapshot = computer.snapshot()
        assert snapshot.name == "pc"
        assert [(it.server, it.state.value) for it in snapshot.servers] == [("a", "running"), ("b", "disabled")]
        assert [tool["name"] for tool in snapshot.tools] == list(snapshot.tool_servers)
        assert set(snapshot.tool_servers.values()) == {"a"}
        assert snapshot.config == computer.get_config()
        assert (snapshot.offices, snapshot.decisions, snapshot.answerers) == ((), (), ())
        assert CANARY not in repr(snapshot)
