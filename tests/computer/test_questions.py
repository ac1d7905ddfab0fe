"""The questions of MCP servers as decisions of a Computer: who is asked, what is told of it, and what is not."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from mcp_types import CallToolResult

from a2c_smcp.agent import AsyncSMCPAgentClient, SMCPAgentClient
from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.decisions.book import (
    Accepted,
    AlreadyDecidedError,
    Decision,
    DecisionAnswer,
    Declined,
    Dismissed,
    Outcome,
    Question,
)
from a2c_smcp.computer.socketio import SMCPComputerClient
from a2c_smcp.computer.watching.events import DecisionAsked, DecisionDecided, RestartOffered, ServerLogged
from a2c_smcp.errors import BadRequestError
from a2c_smcp.smcp import WAITING_FOR_PERSON
from tests.computer.fakes.computers import FAST, Record, asking, call, code, running, text
from tests.computer.fakes.offices import new_office, options
from tests.computer.test_asking import CONTENT, SCHEMA, URL, both_eras

SECRET = CONTENT["text"]


def server(era: str = "new", name: str = "asker", **more: Any) -> dict[str, Any]:
    return {**asking(era), "name": name, "default_tool_meta": {"auto_apply": True}, **more}


def answering(computer: Computer, *answers: DecisionAnswer) -> Any:
    """Somebody who is there, and gives these answers one after the other."""
    left = list(answers)

    async def ask(decision: Decision) -> DecisionAnswer:
        return left.pop(0) if len(left) > 1 else left[0]

    return computer.decisions.attend("test", {"question"}, ask)


@asynccontextmanager
async def started(computer: Computer, tool: str, **params: Any) -> AsyncIterator["asyncio.Task[CallToolResult]"]:
    task = asyncio.create_task(call(computer, tool, **params))
    try:
        yield task
        with anyio.fail_after(30):
            await asyncio.wait({task})
    finally:
        task.cancel()
        await asyncio.wait({task})


async def pending(record: Record, times: int = 1) -> Question:
    asked = (await record.of(DecisionAsked, times))[times - 1].decision
    assert isinstance(asked, Question)
    return asked


@both_eras
async def test_an_answer_goes_to_the_server_and_nowhere_else(era: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with running() as (computer, record):
        with answering(computer, Accepted(CONTENT)):
            await computer.add_or_update_server(server(era))
            async with started(computer, "ask", message="Well?", schema=SCHEMA) as task:
                asked = await pending(record)
        assert json.loads(text(task.result())) == {"action": "accept", "content": CONTENT}
        assert (asked.server, asked.message, asked.schema, asked.url) == ("asker", "Well?", SCHEMA, None)
        assert asked.call is not None
        assert (asked.call.req_id, asked.call.tool, asked.calls) == ("r", "ask", (asked.call,))
        assert asked.deadline is not None
        [decided] = await record.of(DecisionDecided)
        assert (decided.outcome, decided.by) == (Outcome.ACCEPTED, "test")
        # The result of the call is the tool's own: everything else is to have no word of the answer.
        told = [event for event in record.events if "CallEnded" not in type(event).__name__]
        assert SECRET not in repr(told) + repr(computer.history) + caplog.text
        assert SECRET not in repr(computer.server_logs("asker"))
        assert SECRET not in repr(computer.decisions.resolution(asked.id))


@both_eras
@pytest.mark.parametrize(
    ("answer", "action"), [(Declined(), "decline"), (Dismissed(), "cancel"), (Accepted({}), "accept")]
)
async def test_what_a_person_says_is_what_the_server_hears(era: str, answer: DecisionAnswer, action: str) -> None:
    async with running() as (computer, _):
        with answering(computer, answer):
            await computer.add_or_update_server(server(era))
            assert json.loads(text(await call(computer, "ask")))["action"] == action
            if action != "cancel":
                assert json.loads(text(await call(computer, "visit", url=URL))) == {"action": action}


@both_eras
async def test_nobody_there_means_that_no_server_may_ask(era: str) -> None:
    async with running(server(era)) as (computer, record):
        assert "elicitation" not in json.loads(text(await call(computer, "declared")))
        assert json.loads(text(await call(computer, "ask"))) == {"action": "cancel"}
        with computer.decisions.attend("confirmer", {"confirmation"}):
            assert "elicitation" not in json.loads(text(await call(computer, "declared")))
        assert record.now(DecisionAsked) == []
        with answering(computer, Accepted({})):
            await computer.restart_server("asker")
            assert "elicitation" in json.loads(text(await call(computer, "declared")))


async def test_an_answer_that_does_not_fit_is_refused_and_the_question_stays() -> None:
    async with running(server()) as (computer, record):
        with computer.decisions.attend("browser", {"question"}):
            async with started(computer, "ask", schema=SCHEMA) as task:
                asked = await pending(record)
                answer = computer.decisions.answer
                for value, problem in (
                    ({}, "text: It is required."),
                    ({"text": "x" * 21}, "at most 20 characters"),
                    ({"text": "x", "yes": "no"}, "yes or no"),
                    ("text", "object"),
                ):
                    with pytest.raises(BadRequestError, match=problem):
                        answer(asked.id, Accepted(value), by="browser")
                answer(asked.id, Accepted({"text": "x", "number": None}), by="browser", digest=asked.digest)
                with pytest.raises(AlreadyDecidedError, match="browser"):
                    answer(asked.id, Declined(), by="terminal")
            assert json.loads(text(task.result()))["content"] == {"text": "x"}


@both_eras
async def test_the_agent_hears_of_the_wait_and_the_timeout_goes_on(era: str) -> None:
    heard: list[tuple[float, float | None, str | None]] = []
    async with running() as (computer, record):
        with computer.decisions.attend("browser", {"question"}):
            await computer.add_or_update_server(server(era))
            result = await computer.execute_tool(
                "r",
                "ask",
                {},
                4,
                on_progress=lambda progress, total, message: heard.append((progress, total, message)),
            )
            assert code(result) == 4004
            assert heard == [(0.0, None, WAITING_FOR_PERSON)]
            asked = await pending(record)
            decided = await record.of(DecisionDecided)
            assert decided[0].decision_id == asked.id
            assert decided[0].outcome in (Outcome.UNANSWERED, Outcome.WITHDRAWN)
            assert computer.decisions.pending == ()


@both_eras
async def test_a_call_that_is_cancelled_withdraws_its_question(era: str) -> None:
    async with running() as (computer, record):
        with computer.decisions.attend("browser", {"question"}):
            await computer.add_or_update_server(server(era))
            async with started(computer, "ask"):
                asked = await pending(record)
                assert asked.call is not None
                assert computer.cancel_call(asked.call.id, by="browser")
            [decided] = await record.of(DecisionDecided)
            assert decided.outcome is Outcome.WITHDRAWN


async def test_a_visit_that_the_server_calls_done_is_decided_by_the_server() -> None:
    async with running() as (computer, record):
        with computer.decisions.attend("browser", {"question"}):
            await computer.add_or_update_server(server("old"))
            async with started(computer, "visit", url=URL, id="e-3") as task:
                assert (await pending(record)).url == URL
                await call(computer, "complete", id="e-3")
            assert json.loads(text(task.result())) == {"action": "accept"}
            [decided] = await record.of(DecisionDecided)
            assert (decided.outcome, decided.by) == (Outcome.ACCEPTED, "asker")
            async with started(computer, "visit_first", url=URL, id="e-4") as task:
                await pending(record, 2)
                await call(computer, "complete", id="e-4")
            assert text(task.result()) == "thank you"


async def test_a_server_that_fell_back_to_the_old_era_stays_there() -> None:
    async with running(server("both")) as (computer, record):
        with answering(computer, Accepted({})):
            assert code(await call(computer, "back_channel")) == 4003
            await record.until(lambda: record.states("asker").count("running") == 2)
            assert json.loads(text(await call(computer, "back_channel")))["action"] == "accept"
            await computer.restart_server("asker")
            assert json.loads(text(await call(computer, "back_channel")))["action"] == "accept"
            # Another config is another server: it is tried anew.
            await computer.add_or_update_server(server("both", tool_prefix="x_"))
            assert code(await call(computer, "x_back_channel")) == 4003


async def test_a_server_that_is_not_restarted_by_itself_is_offered_a_restart() -> None:
    async with running(server("both"), auto_reconnect=False) as (computer, record):
        with answering(computer, Accepted({})):
            assert code(await call(computer, "back_channel")) == 4003
            [offered] = await record.of(RestartOffered)
            assert "older era" in offered.reason
            await computer.restart_server("asker")
            assert json.loads(text(await call(computer, "back_channel")))["action"] == "accept"


async def test_somebody_who_comes_later_is_offered_a_restart_for_a_server_that_missed_them() -> None:
    async with running(server("old"), auto_reconnect=False) as (computer, record):
        with answering(computer, Accepted({})):
            assert code(await call(computer, "needs")) == 4003
            [offered] = await record.of(RestartOffered)
            assert "somebody can answer its questions now" in offered.reason
            await computer.restart_server("asker")
            assert json.loads(text(await call(computer, "needs")))["action"] == "accept"


async def test_log_messages_are_among_the_lines_of_a_server() -> None:
    async with running(server("old")) as (computer, record):
        await call(computer, "log", level="warning", data="disk is full")
        await record.until(lambda: any("disk" in event.line for event in record.now(ServerLogged)))
        assert "[warning] disk is full" in computer.server_logs("asker")


async def test_what_a_server_quotes_of_its_config_is_veiled_in_its_questions_and_its_logs() -> None:
    config = server("old")
    config["server_parameters"]["env"] = {"TOKEN": "canary-0815"}
    async with running() as (computer, record):
        with answering(computer, Accepted({})):
            await computer.add_or_update_server(config)
            await call(computer, "ask", message="May I use canary-0815?")
            await call(computer, "log", level="info", data={"token": "canary-0815"})
            assert (await pending(record)).message == "May I use ***?"
            await record.until(lambda: any("token" in line for line in computer.server_logs("asker")))
            assert "canary-0815" not in repr(computer.server_logs("asker"))


# --- through an office


@pytest.mark.parametrize("hub_name", ["hub", "sync_hub"])
@pytest.mark.parametrize("kind", [AsyncSMCPAgentClient, SMCPAgentClient])
@both_eras
async def test_an_agent_sees_that_its_call_waits_and_never_what_was_answered(
    hub_name: str, kind: type[AsyncSMCPAgentClient | SMCPAgentClient], era: str, request: pytest.FixtureRequest
) -> None:
    url, office = request.getfixturevalue(hub_name).url, new_office()
    heard: list[Any] = []
    waits = asyncio.Event()
    loop = asyncio.get_running_loop()

    def on_progress(*report: Any) -> None:
        heard.append(report)
        loop.call_soon_threadsafe(waits.set)

    async def ask(_: Decision) -> DecisionAnswer:
        await asyncio.wait_for(waits.wait(), 30)
        return Accepted(CONTENT)

    computer = Computer("pc", mcp_servers=[server(era)], timings=FAST)
    with computer.decisions.attend("test", {"question"}, ask):
        async with computer, SMCPComputerClient(computer, options(url)) as client:
            await client.join_office(office)
            called = {"schema": SCHEMA}
            if issubclass(kind, AsyncSMCPAgentClient):
                async with AsyncSMCPAgentClient(options(url), name="ag") as agent:
                    await agent.join_office(office)
                    result = await agent.call_tool("pc", "ask", called, timeout=30, on_progress=on_progress)
            else:

                def call_it() -> CallToolResult:
                    with SMCPAgentClient(options(url), name="ag") as agent:
                        agent.join_office(office)
                        return agent.call_tool("pc", "ask", called, timeout=30, on_progress=on_progress)

                result = await asyncio.to_thread(call_it)
    assert json.loads(text(result)) == {"action": "accept", "content": CONTENT}
    assert heard == [(0.0, None, WAITING_FOR_PERSON)]
