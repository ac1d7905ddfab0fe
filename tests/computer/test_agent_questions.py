"""Questions of tools that are put to the agent that made the call: when, with what, and whose answer counts."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from a2c_smcp.computer.decisions.book import Accepted, Outcome, Question
from a2c_smcp.computer.mcp_clients.elicitation.asking import ALL_MODES
from a2c_smcp.computer.watching.events import DecisionAsked, DecisionDecided
from a2c_smcp.smcp import ANSWER_QUESTION_EVENT, CANCEL_TOOL_CALL_EVENT, QUESTION_NOTIFICATION, TOOL_CALL_EVENT
from tests.computer.fakes.computers import asking
from tests.computer.fakes.offices import Agent, watched
from tests.computer.test_asking import CONTENT, SCHEMA, URL, both_eras
from tests.computer.test_mcp_connection import http
from tests.server.harness import Running, eventually, heard, say

BOTH = sorted(ALL_MODES)
_numbers = itertools.count()
DEFAULTS = {
    "type": "object",
    "properties": {"name": {"type": "string", "default": "Ada"}, "age": {"type": "integer", "default": 36}},
    "required": ["name"],
}


def server(era: str, questions: str | None = "agent", **more: Any) -> dict[str, Any]:
    return {**asking(era), "default_tool_meta": {"auto_apply": True}, "questions": questions, **more}


@asynccontextmanager
async def calling(agent: Agent, tool: str, questions: list[str] | None = None, **params: Any) -> AsyncIterator[Any]:
    """A call that runs: a task with its result as text, or its JSON. Its name is the `req_id`."""
    req_id = f"{tool}-{next(_numbers)}"

    async def call() -> Any:
        request = {"tool_name": tool, "params": params, "timeout": 30, "req_id": req_id}
        if questions != []:
            request["questions"] = questions or BOTH
        said = (await agent.ask(TOOL_CALL_EVENT, **request))["content"][0]["text"]
        return json.loads(said) if said.startswith("{") else said

    task = asyncio.create_task(call(), name=req_id)
    try:
        yield task
        await asyncio.wait_for(asyncio.shield(task), 30)
    finally:
        task.cancel()
        await asyncio.wait({task})


async def asked(agent: Agent, times: int = 1) -> dict[str, Any]:
    await eventually(lambda: len(heard(agent, QUESTION_NOTIFICATION)) >= times)
    question: dict[str, Any] = heard(agent, QUESTION_NOTIFICATION)[times - 1]
    return question


async def answer(agent: Agent, /, question_id: str, action: str = "accept", **more: Any) -> Any:
    return await agent.ask(ANSWER_QUESTION_EVENT, question_id=question_id, action=action, **more)


def refused(reply: Any) -> int:
    code: int = reply["error"]["code"]
    return code


@both_eras
async def test_the_agent_that_made_the_call_is_asked_and_nobody_else(hub: Running, era: str) -> None:
    async with watched(hub.url, server(era)) as (agent, computer):
        with computer.decisions.attend("page", {"question"}):
            async with calling(agent, "ask", message="Who?", schema=SCHEMA) as call:
                question = await asked(agent)
                assert computer.decisions.pending == ()
                assert await answer(agent, question["question_id"], content=CONTENT)
            assert call.result() == {"action": "accept", "content": CONTENT}
            async with calling(agent, "visit", url=URL, id="e-1") as visit:
                second = await asked(agent, 2)
                await answer(agent, second["question_id"], "decline")
            assert visit.result() == {"action": "decline"}
    assert (question["req_id"], question["mcp_server"]) == (call.get_name(), "asker")
    assert (question["mode"], question["message"], question["requestedSchema"]) == ("form", "Who?", SCHEMA)
    assert (second["mode"], second["url"]) == ("url", URL)
    assert len(heard(agent, QUESTION_NOTIFICATION)) == 2, "an answered question is not withdrawn"


@both_eras
async def test_a_question_reaches_the_agent_after_the_computer_has_moved_to_another_connection(
    hub: Running, era: str
) -> None:
    async with watched(hub.url, server(era)) as (agent, _):

        def session() -> str:
            (sid,) = (member.sid for member in hub.namespace.registry.members(agent.office) if member.name == "pc")
            return str(sid)

        async with calling(agent, "rounds", count=2) as call:
            first, before = await asked(agent), session()
            say(hub, before, "notify:moving", {"within": 60})
            await eventually(lambda: session() != before)
            await answer(agent, first["question_id"])
            second = await asked(agent, 2)
            assert second["question_id"] != first["question_id"] and "withdrawn" not in second
            await answer(agent, second["question_id"])
        assert call.result() == ("asked 2 times" if era == "new" else '["accept", "accept"]')


@both_eras
async def test_with_both_the_first_answer_counts_and_the_other_place_is_told(hub: Running, era: str) -> None:
    async with watched(hub.url, server(era, "both")) as (agent, computer):
        with computer.decisions.attend("page", {"question"}):
            async with computer.events(kinds=(DecisionAsked, DecisionDecided)) as events:
                async with calling(agent, "ask"):
                    question = await asked(agent)
                    await answer(agent, question["question_id"])
                shown, decided = await anext(events), await anext(events)
                assert isinstance(shown, DecisionAsked)
                assert isinstance(decided, DecisionDecided)
                assert isinstance(shown.decision, Question)
                assert (shown.decision.id, decided.decision_id) == (question["question_id"],) * 2
                assert (decided.outcome, decided.by) == (Outcome.ACCEPTED, "agent")
            async with calling(agent, "ask", message="Again?") as call:
                question = await asked(agent, 2)
                computer.decisions.answer(question["question_id"], Accepted({}), by="page")
                told = await asked(agent, 3)
                assert (told["question_id"], told["withdrawn"]) == (question["question_id"], True)
                assert refused(await answer(agent, question["question_id"])) == 404
            assert call.result()["action"] == "accept"


@both_eras
async def test_the_answer_of_an_agent_is_checked_at_the_computer(hub: Running, era: str) -> None:
    async with watched(hub.url, server(era)) as (agent, _):
        async with calling(agent, "ask", schema=SCHEMA) as call:
            question_id = (await asked(agent))["question_id"]
            for content in ({"text": "x" * 21}, {"number": 1}, {"text": "x", "who": "me"}, {}):
                assert refused(await answer(agent, question_id, content=content)) == 400
            assert refused(await answer(agent, question_id, "shrug")) == 400
            assert refused(await answer(agent, "another", content=CONTENT)) == 404
            assert refused(await answer(agent, question_id, content=CONTENT, agent="somebody")) == 404
            assert await answer(agent, question_id, content={"text": "x"})
            assert refused(await answer(agent, question_id, content=CONTENT)) == 404
        assert call.result()["content"] == {"text": "x"}
        async with calling(agent, "ask", schema=DEFAULTS) as call:
            await answer(agent, (await asked(agent, 2))["question_id"])
        assert call.result()["content"] == {"name": "Ada", "age": 36}


@both_eras
async def test_only_questions_that_can_be_answered_are_declared_and_asked(hub: Running, era: str) -> None:
    async with watched(hub.url, server(era)) as (agent, _):
        for modes, can in (([], None), (["form"], {"form": {}}), (["form", "url", "dance"], {"form": {}, "url": {}})):
            async with calling(agent, "declared", modes) as call:
                pass
            # In the older era the handshake holds for every call.
            assert call.result().get("elicitation") == (can if era == "new" else {"form": {}, "url": {}})
        async with calling(agent, "ask", []) as call:
            pass
        assert call.result() == {"action": "cancel"}
        async with calling(agent, "visit", ["form"], url=URL) as call:
            pass
        assert call.result() == {"action": "cancel"}
    assert heard(agent, QUESTION_NOTIFICATION) == []


@both_eras
@pytest.mark.parametrize("questions", [None, "here"])
async def test_without_the_owners_word_no_agent_is_asked(hub: Running, era: str, questions: str | None) -> None:
    async with watched(hub.url, server(era, questions)) as (agent, computer):
        async with calling(agent, "declared") as call:
            pass
        assert "elicitation" not in call.result()
        with computer.decisions.attend("page", {"question"}):
            async with calling(agent, "ask") as call:
                await eventually(lambda: computer.decisions.pending)
                computer.decisions.answer(computer.decisions.pending[0].id, Accepted(None), by="page")
        assert call.result()["action"] == "accept"
    assert heard(agent, QUESTION_NOTIFICATION) == []


async def test_a_question_that_may_be_another_calls_is_not_put_to_an_agent(hub: Running) -> None:
    async with watched(hub.url, server("old")) as (agent, _), calling(agent, "hold"), calling(agent, "ask") as call:
        await asyncio.wait_for(asyncio.shield(call), 30)
        assert call.result() == {"action": "cancel"}
        await agent.tool("let_go")
    assert heard(agent, QUESTION_NOTIFICATION) == []


async def test_a_form_with_a_secret_of_the_computer_stays_at_the_computer(hub: Running) -> None:
    config = server("new")
    config["server_parameters"]["env"] = {"TOKEN": "canary-0815"}
    secret = {"type": "object", "properties": {"key": {"type": "string", "default": "canary-0815"}}}
    async with watched(hub.url, config) as (agent, computer):
        with computer.decisions.attend("page", {"question"}):
            for tool, params in (("ask", {"schema": secret}), ("visit", {"url": "https://example.com/canary-0815"})):
                async with calling(agent, tool, **params):
                    await eventually(lambda: computer.decisions.pending)
                    computer.decisions.answer(computer.decisions.pending[0].id, Accepted(), by="page")
            async with calling(agent, "ask", message="May I use canary-0815?"):
                question = await asked(agent)
                await answer(agent, question["question_id"])
    assert question["message"] == "May I use ***?"
    assert "canary" not in json.dumps(heard(agent, QUESTION_NOTIFICATION))


@both_eras
async def test_the_end_of_a_call_withdraws_its_question(hub: Running, era: str) -> None:
    async with watched(hub.url, server(era)) as (agent, _):
        async with calling(agent, "ask") as call:
            question = await asked(agent)
            await agent.call(CANCEL_TOOL_CALL_EVENT, {"agent": "ag", "req_id": call.get_name()})
        assert refused(await answer(agent, question["question_id"])) == 404


async def test_a_visit_that_the_server_calls_done_needs_no_answer_of_the_agent(hub: Running) -> None:
    async with watched(hub.url, server("old")) as (agent, _):
        async with calling(agent, "visit", url=URL, id="e-9") as call:
            question = await asked(agent)
            assert await agent.tool("complete", id="e-9")
        assert call.result() == {"action": "accept"}
        told = await asked(agent, 2)
        assert (told["question_id"], told["withdrawn"]) == (question["question_id"], True)


@pytest.mark.parametrize("protocol", ["legacy", "2026-07-28"])
async def test_a_server_on_mcp_asks_the_agent_over_http(hub: Running, asking_http_server: str, protocol: str) -> None:
    config = {**http(asking_http_server, "streamable", protocol), "questions": "agent"}
    async with watched(hub.url, {**config, "default_tool_meta": {"auto_apply": True}}) as (agent, _):
        async with calling(agent, "book") as call:
            question = await asked(agent)
            await answer(agent, question["question_id"], content={"name": "Ada"})
        assert call.result() == "name='Ada' age=30 window=False"
        async with calling(agent, "book", []) as call:
            pass
        assert "name=" not in call.result()
    assert len(heard(agent, QUESTION_NOTIFICATION)) == 1


async def test_a_flood_of_questions_reaches_an_agent_as_ten(hub: Running) -> None:
    async with watched(hub.url, server("old")) as (agent, _):
        async with calling(agent, "flood", count=200) as call:
            for number in range(1, 11):
                await answer(agent, (await asked(agent, number))["question_id"], "decline")
        assert call.result() == {"decline": 10, "cancel": 190}
    assert len(heard(agent, QUESTION_NOTIFICATION)) == 10


async def test_a_question_that_is_too_long_for_the_way_is_asked_here(hub: Running) -> None:
    schema = {"type": "object", "properties": {f"f{n}": {"type": "string", "title": "x" * 1000} for n in range(70)}}
    async with watched(hub.url, server("new")) as (agent, computer):
        async with calling(agent, "ask", schema=schema) as call:
            pass
        assert call.result() == {"action": "cancel"}
        with computer.decisions.attend("page", {"question"}):
            async with calling(agent, "ask", schema=schema) as call:
                await eventually(lambda: computer.decisions.pending)
                computer.decisions.answer(computer.decisions.pending[0].id, Accepted(), by="page")
            assert call.result()["action"] == "accept"
    assert heard(agent, QUESTION_NOTIFICATION) == []
