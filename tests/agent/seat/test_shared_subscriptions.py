"""Several processes on one seat: each hears what it asked for, and a computer has one subscription for all of them."""

import asyncio
from functools import partial
from typing import Any

import pytest

from a2c_smcp.agent import LinkOptions, QuestionAnswer
from a2c_smcp.agent.seat.shared_subscriptions import SharedSubscriptions
from a2c_smcp.errors import ForbiddenError
from a2c_smcp.smcp import (
    ANSWER_QUESTION_EVENT,
    QUESTION_EVENT,
    RESOURCE_UPDATED_EVENT,
    SUBSCRIBE_RESOURCE_EVENT,
    TOOL_CALL_EVENT,
    UNSUBSCRIBE_RESOURCE_EVENT,
)
from tests.agent.conftest import MakeComputer
from tests.agent.seat.conftest import MakeShared, holding
from tests.agent.test_resources import FORM, sharing
from tests.server.harness import eventually

KEY = ("laptop", "a")


class Asked(list[str]):
    def saying(self, what: str, answer: str = '[{"req_id":"1"}]') -> Any:
        async def ask() -> str:
            self.append(what)
            await asyncio.sleep(0)
            return answer

        return ask


async def test_the_second_one_costs_the_computer_nothing_and_the_last_one_ends_it() -> None:
    asked, shared = Asked(), SharedSubscriptions[str]()
    answers = await asyncio.gather(*(shared.subscribe(who, KEY, asked.saying("begin")) for who in ("ada", "bob")))
    assert (asked, answers[1]) == (["begin"], None)
    assert shared.wanting(KEY) == ["ada", "bob"] and shared.wanting(("laptop", "b")) == []
    assert await shared.unsubscribe("ada", KEY, asked.saying("end")) is None
    assert shared.gone("ada") == []
    assert shared.gone("bob") == [KEY]
    assert shared.wanting(KEY) == []
    assert await shared.unsubscribe("bob", KEY, asked.saying("end")) is not None
    assert (asked, len(shared)) == (["begin", "end"], 0)


async def test_one_that_comes_while_the_last_one_goes_is_kept() -> None:
    asked, shared = Asked(), SharedSubscriptions[str]()
    await shared.subscribe("ada", KEY, asked.saying("begin"))
    await asyncio.gather(
        shared.unsubscribe("ada", KEY, asked.saying("end")), shared.subscribe("bob", KEY, asked.saying("again"))
    )
    assert shared.wanting(KEY) == ["bob"]
    assert asked in (["begin", "end", "again"], ["begin"])
    await shared.subscribe("cid", KEY, asked.saying("no"))
    assert asked[-1] != "no"


@pytest.mark.parametrize("answer", ['[{"error":{"code":403,"message":"no"}}]', "[]", "[null]", "?"])
async def test_a_refusal_leaves_nothing(answer: str) -> None:
    asked, shared = Asked(), SharedSubscriptions[str]()
    assert await shared.subscribe("ada", KEY, asked.saying("begin", answer)) == answer
    assert len(shared) == 0
    await shared.subscribe("bob", KEY, asked.saying("again"))
    assert asked == ["begin", "again"]
    shared.forget("other")
    assert shared.wanting(KEY) == ["bob"]
    shared.forget("laptop")
    assert len(shared) == 0


async def test_news_reaches_those_who_subscribed_and_the_last_to_go_ends_the_subscription(
    make_shared: MakeShared, make_computer: MakeComputer, link: LinkOptions, office: str
) -> None:
    computer = await make_computer(setup=sharing)
    computer.override[SUBSCRIBE_RESOURCE_EVENT] = lambda data: (
        ForbiddenError("not shared").payload() if data["uri"] == "hidden" else {}
    )
    async with holding(link, office):
        heard: dict[str, list[str]] = {}
        agents = {name: await make_shared(name) for name in ("ada", "bob", "cid")}
        for name, agent in agents.items():
            told = heard[name] = []
            agent.on("resource_updated")(partial(_note, told))
        await agents["ada"].subscribe_resource("laptop", "a")
        await agents["bob"].subscribe_resource("laptop", "a")
        await agents["cid"].subscribe_resource("laptop", "b")
        with pytest.raises(ForbiddenError):
            await agents["cid"].subscribe_resource("laptop", "hidden")
        for uri in ("a", "b", "hidden"):
            await computer.peer.call(RESOURCE_UPDATED_EVENT, {"uri": uri})
        await eventually(lambda: heard == {"ada": ["a"], "bob": ["a"], "cid": ["b"]})
        begun = [data["uri"] for data in computer.requests(SUBSCRIBE_RESOURCE_EVENT)]
        assert begun == ["a", "b", "hidden"]
        # The computer comes anew: everybody subscribes again, and it is asked once for each resource.
        await computer.peer.call("server:leave_office", {"office_id": office})
        await computer.join(computer.url, office)
        await eventually(lambda: heard == {"ada": ["a", "a"], "bob": ["a", "a"], "cid": ["b", "b"]})
        begun = [data["uri"] for data in computer.requests(SUBSCRIBE_RESOURCE_EVENT)]
        assert sorted(begun[3:]) == ["a", "b"]
        await agents["ada"].unsubscribe_resource("laptop", "a")
        assert computer.requests(UNSUBSCRIBE_RESOURCE_EVENT) == []
        await agents["bob"].close()
        await eventually(lambda: [data["uri"] for data in computer.requests(UNSUBSCRIBE_RESOURCE_EVENT)] == ["a"])


async def test_a_question_reaches_the_process_whose_call_it_is(
    make_shared: MakeShared, make_computer: MakeComputer, link: LinkOptions, office: str
) -> None:
    computer = await make_computer(setup=sharing)

    async def answer(data: dict[str, Any]) -> Any:
        ids = {"agent": data["agent"], "req_id": data["req_id"], "computer": "laptop", "question_id": data["agent"]}
        assert await computer.peer.call(QUESTION_EVENT, {**ids, **FORM}) == {}
        await eventually(
            lambda: any(sent["question_id"] == data["agent"] for sent in computer.requests(ANSWER_QUESTION_EVENT))
        )
        return computer.result("done")

    computer.override[TOOL_CALL_EVENT] = answer
    async with holding(link, office):
        ada, bob = await make_shared("ada"), await make_shared("bob")
        asked: dict[str, list[str]] = {"ada": [], "bob": []}

        def answering(name: str) -> Any:
            async def on_question(question: Any) -> QuestionAnswer:
                asked[name].append(question["question_id"])
                return QuestionAnswer("accept", {"sure": True})

            return on_question

        await asyncio.gather(
            *(agent.call_tool("laptop", "ask", on_question=answering(agent.name)) for agent in (ada, bob))
        )
    assert asked == {"ada": ["ada"], "bob": ["bob"]}


def _note(told: list[str], news: Any) -> None:
    told.append(news["uri"])
