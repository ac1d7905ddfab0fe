"""Resources, prompts and questions over real sockets: both agents ask, a scripted computer answers."""

import base64
from typing import Any

import anyio
import pytest

from a2c_smcp.agent import AgentHandler, QuestionAnswer
from a2c_smcp.agent.questions import QuestionListeners
from a2c_smcp.agent.requests import Deadlines, UnansweredError
from a2c_smcp.agent.resource_requests import is_unknown_to_peer, read_resource
from a2c_smcp.agent.subscriptions import Subscriptions
from a2c_smcp.errors import (
    BadRequestError,
    ForbiddenError,
    InternalError,
    NotFoundError,
    PayloadTooLargeError,
    SMCPError,
    TooManyRequestsError,
)
from a2c_smcp.smcp import (
    ANSWER_QUESTION_EVENT,
    COMPLETE_EVENT,
    GET_PROMPT_EVENT,
    GET_PROMPTS_EVENT,
    GET_RESOURCES_EVENT,
    QUESTION_EVENT,
    READ_RESOURCE_EVENT,
    RESOURCE_UPDATED_EVENT,
    SUBSCRIBE_RESOURCE_EVENT,
    TOOL_CALL_EVENT,
    UNSUBSCRIBE_RESOURCE_EVENT,
)
from tests.agent.conftest import MakeAgent, MakeComputer
from tests.agent.harness import FakeComputer
from tests.agent.test_resource_parts import part_of
from tests.server.harness import eventually

both = pytest.mark.parametrize("kind", ["async", "blocking"])
NOTES = {"uri": "file:///notes", "name": "notes", "mcp_server": "files"}
FORM = {"message": "Sure?", "requestedSchema": {"type": "object", "properties": {"sure": {"type": "boolean"}}}}


def sharing(computer: FakeComputer) -> None:
    """What a computer of today answers beside the rest."""
    computer.answers |= {
        GET_RESOURCES_EVENT: lambda data: (
            {"resources": [NOTES], "next_cursor": "2"}
            if "cursor" not in data
            else {"resources": [], "templates": [{"uriTemplate": "file:///{name}", "mcp_server": "files"}]}
        ),
        GET_PROMPTS_EVENT: lambda _: {"prompts": [{"name": "greet", "mcp_server": "chat"}]},
        GET_PROMPT_EVENT: lambda data: {
            "messages": [{"role": "user", "content": data["arguments"]}],
            "description": "d",
        },
        COMPLETE_EVENT: lambda data: {"completion": {"values": [data["argument"]["value"] + "da"]}},
        SUBSCRIBE_RESOURCE_EVENT: lambda _: {},
        UNSUBSCRIBE_RESOURCE_EVENT: lambda _: {},
        ANSWER_QUESTION_EVENT: lambda _: {},
    }
    computer.listen()


# --- decisions


def test_a_range_is_an_offset_and_a_length() -> None:
    call: Any = {"agent": "a", "req_id": "1"}
    assert read_resource(call, Deadlines(), "c", "u", (0, 5)).data["range"] == [0, 5]
    assert "range" not in read_resource(call, Deadlines(), "c", "u").data
    wrong: list[Any] = [(0,), (0, 0), (-1, 5), (0, 1, 2), ("0", 5), (True, 5)]
    for each in wrong:
        with pytest.raises(BadRequestError):
            read_resource(call, Deadlines(), "c", "u", each)


def test_an_older_peer_is_told_from_one_that_refuses() -> None:
    request = read_resource({"agent": "a", "req_id": "1"}, Deadlines(), "c", "u")
    unknown: list[SMCPError] = [
        BadRequestError("unknown event 'client:get_resources'"),
        InternalError("the computer gave no answer", {"unanswered": "client:get_resources"}),
        UnansweredError(request),
    ]
    refused = [BadRequestError("field", {"field": "cursor"}), InternalError("broken"), ForbiddenError("no")]
    assert all(map(is_unknown_to_peer, unknown))
    assert not any(map(is_unknown_to_peer, refused))


async def test_nobody_subscribes_without_end_and_a_failed_one_leaves_nothing() -> None:
    asked: list[tuple[str, str, bool]] = []

    async def ask(computer: str, uri: str, begins: bool) -> None:
        asked.append((computer, uri, begins))
        if uri == "hidden":
            raise ForbiddenError("not shared")

    subscriptions = Subscriptions(ask, lambda _: None, most=2)
    with pytest.raises(ForbiddenError):
        await subscriptions.subscribe("c", "hidden")
    assert not subscriptions.has("c", "hidden")
    await subscriptions.subscribe("c", "a")
    await subscriptions.subscribe("c", "a")
    await subscriptions.subscribe("d", "a")
    with pytest.raises(TooManyRequestsError):
        await subscriptions.subscribe("c", "b")
    await subscriptions.unsubscribe("c", "b")
    await subscriptions.unsubscribe("c", "a")
    assert len(subscriptions) == 1
    assert asked == [("c", "hidden", True), ("c", "a", True), ("d", "a", True), ("c", "a", False)]


async def test_a_callback_that_fails_or_returns_nonsense_cancels_its_question(caplog: pytest.LogCaptureFixture) -> None:
    sent: list[Any] = []

    async def send(question: Any, answer: QuestionAnswer) -> None:
        sent.append((question["question_id"], answer.action))

    def question(number: str, **more: Any) -> Any:
        return {"computer": "c", "agent": "a", "req_id": "1", "question_id": number, **more}

    def answer(asked: Any) -> Any:
        if asked["question_id"] == "nonsense":
            return "yes"
        raise RuntimeError("oh")

    listeners = QuestionListeners(send)
    with listeners.listening("c", "1", answer):
        assert listeners.take(question("fails"))
        assert listeners.take(question("nonsense"))
        assert not listeners.take(question("other") | {"req_id": "2"})
        await eventually(lambda: sorted(sent) == [("fails", "cancel"), ("nonsense", "cancel")])
    assert not listeners.take(question("late"))


async def test_a_question_that_is_asked_again_under_its_id_ends_with_its_call() -> None:
    asked: list[str] = []
    ended: list[str] = []

    async def send(question: Any, answer: QuestionAnswer) -> None:
        raise AssertionError("nobody answers")

    async def answer(question: Any) -> None:
        asked.append(question["message"])
        try:
            await anyio.sleep_forever()
        finally:
            ended.append(question["message"])

    question: Any = {"computer": "c", "agent": "a", "req_id": "1", "question_id": "q", "message": "first"}
    listeners = QuestionListeners(send)
    with listeners.listening("c", "1", answer):
        listeners.take(question)
        await eventually(lambda: asked == ["first"])
        listeners.take(question | {"withdrawn": True})
        listeners.take(question | {"message": "second"})
        await eventually(lambda: asked == ["first", "second"] and ended == ["first"])
    await eventually(lambda: ended == ["first", "second"])


async def test_what_a_computer_refuses_when_it_comes_back_is_asked_for_when_it_shares_more() -> None:
    asked: list[str] = []
    told: list[str] = []
    runs = {"a", "b"}

    async def ask(computer: str, uri: str, begins: bool) -> None:
        asked.append(uri)
        if uri not in runs:
            raise ForbiddenError(uri)

    subscriptions = Subscriptions(ask, lambda notice: told.append(notice["uri"]))
    for uri in ("a", "b"):
        await subscriptions.subscribe("c", uri)
    runs.discard("b")  # its MCP server starts later
    subscriptions.renew(["c"])
    await eventually(lambda: asked == ["a", "b"] * 2)
    subscriptions.try_again("c")
    await eventually(lambda: asked[4:] == ["b"])
    runs.add("b")
    subscriptions.try_again("c")
    await eventually(lambda: told == ["a", "b"])
    subscriptions.try_again("c")
    assert asked[4:] == ["b", "b"]


# --- over real sockets


@both
async def test_lists_prompts_and_completion(make_agent: MakeAgent, make_computer: MakeComputer, kind: str) -> None:
    computer = await make_computer(setup=sharing)
    agent = await make_agent(kind)
    found = await agent.get_resources("laptop")
    assert found["resources"] == [NOTES]
    assert [each["uriTemplate"] for each in found["templates"]] == ["file:///{name}"]
    assert [request.get("cursor") for request in computer.requests(GET_RESOURCES_EVENT)] == [None, "2"]
    assert (await agent.get_prompts("laptop", "chat"))["prompts"] == [{"name": "greet", "mcp_server": "chat"}]
    assert computer.requests(GET_PROMPTS_EVENT)[0]["mcp_server"] == "chat"
    prompt = await agent.get_prompt("laptop", "chat", "greet", {"name": "Ada"}, meta={"traceparent": "t"})
    assert (prompt["messages"][0]["content"], prompt["description"]) == ({"name": "Ada"}, "d")
    assert computer.requests(GET_PROMPT_EVENT)[0]["meta"] == {"traceparent": "t"}
    reference = {"type": "ref/prompt", "name": "greet"}
    completion = await agent.complete("laptop", "chat", reference, {"name": "name", "value": "A"})
    assert completion == {"values": ["Ada"]}


async def test_an_older_computer_has_none_and_is_asked_once(make_agent: MakeAgent, make_computer: MakeComputer) -> None:
    computer = await make_computer()
    agent = await make_agent()
    assert (await agent.get_resources("laptop"))["resources"] == []
    assert (await agent.get_prompts("laptop"))["prompts"] == []
    sharing(computer)
    assert (await agent.get_resources("laptop"))["resources"] == []
    await computer.peer.call("server:leave_office", {"office_id": agent.office_id})
    await computer.join(computer.url, agent.office_id)
    with anyio.fail_after(20):
        while not (await agent.get_resources("laptop"))["resources"]:  # noqa: ASYNC110
            await anyio.sleep(0.01)  # until its coming is heard


async def test_a_list_without_end_is_refused(make_agent: MakeAgent, make_computer: MakeComputer) -> None:
    computer = await make_computer(setup=sharing)
    computer.override[GET_RESOURCES_EVENT] = lambda _: {"resources": [NOTES], "next_cursor": "again"}
    agent = await make_agent()
    with pytest.raises(PayloadTooLargeError):
        await agent.get_resources("laptop")
    assert len(computer.requests(GET_RESOURCES_EVENT)) <= 102


@both
async def test_a_large_resource_is_read_in_parts(make_agent: MakeAgent, make_computer: MakeComputer, kind: str) -> None:
    computer = await make_computer()
    data = bytes(range(256)) * 4000
    contents = [
        {"uri": "file:///big", "blob": base64.b64encode(data).decode()},
        {"uri": "file:///big", "text": "é" * 9},
    ]

    def read(asked: dict[str, Any]) -> Any:
        if "range" not in asked or asked["range"][1] > 300_000:
            return PayloadTooLargeError("too large", {"total_size": len(data) + 18}).payload()
        return {**part_of(contents, *asked["range"]), "req_id": asked["req_id"]}

    computer.override[READ_RESOURCE_EVENT] = read
    agent = await make_agent(kind)
    assert await agent.read_large_resource("laptop", "file:///big", part_bytes=500_000) == contents
    assert (await agent.read_resource("laptop", "file:///big", range=(0, 4)))[0]["blob"] == "AAECAw=="
    with pytest.raises(PayloadTooLargeError):
        await agent.read_large_resource("laptop", "file:///big", most_bytes=1000)


@both
async def test_a_change_of_a_subscribed_resource_reaches_the_handler_and_no_other(
    make_agent: MakeAgent, make_computer: MakeComputer, kind: str
) -> None:
    computer = await make_computer(setup=sharing)
    heard: list[Any] = []

    class Listens(AgentHandler):
        def on_resource_updated(self, data: Any) -> None:
            heard.append(data["uri"])

    agent = await make_agent(kind, handler=Listens())
    await agent.subscribe_resource("laptop", "a")
    for uri in ("b", "a"):
        await computer.peer.call(RESOURCE_UPDATED_EVENT, {"uri": uri})
    await eventually(lambda: heard == ["a"])
    await agent.cut()  # subscribed again when it is back, and told once
    await eventually(lambda: heard == ["a", "a"])
    await computer.peer.call("server:leave_office", {"office_id": agent.office_id})
    await computer.join(computer.url, agent.office_id)
    await eventually(lambda: heard == ["a", "a", "a"])
    assert [request["uri"] for request in computer.requests(SUBSCRIBE_RESOURCE_EVENT)] == ["a", "a", "a"]
    await agent.unsubscribe_resource("laptop", "a")
    await computer.peer.call(RESOURCE_UPDATED_EVENT, {"uri": "a"})
    assert len(computer.requests(UNSUBSCRIBE_RESOURCE_EVENT)) == 1
    await agent.get_tools("laptop")  # what was sent before has been heard
    assert heard == ["a", "a", "a"]


async def ask(computer: FakeComputer, question_id: str, **more: Any) -> Any:
    call = computer.requests(TOOL_CALL_EVENT)[0]
    ids = {"agent": call["agent"], "req_id": call["req_id"], "computer": computer.name, "question_id": question_id}
    return await computer.peer.call(QUESTION_EVENT, {**ids, **more})


@both
async def test_a_question_is_answered_by_the_caller(
    make_agent: MakeAgent, make_computer: MakeComputer, kind: str
) -> None:
    computer = await make_computer(setup=sharing)
    agent = await make_agent(kind)
    asked: list[Any] = []

    def answer(question: Any) -> QuestionAnswer | None:
        asked.append(question)
        return None if question["question_id"] == "q0" else QuestionAnswer("accept", {"sure": True})

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: agent.call_tool("laptop", "wait", on_question=answer, meta={"traceparent": "t"}))
        await eventually(lambda: computer.requests(TOOL_CALL_EVENT))
        assert await ask(computer, "q0", **FORM) == {}
        assert await ask(computer, "q1", **FORM) == {}
        # Each question has a thread of its own: the second may be answered before the first is seen.
        await eventually(lambda: computer.requests(ANSWER_QUESTION_EVENT) and len(asked) == 2)
        computer.release.set()
    (call,) = computer.requests(TOOL_CALL_EVENT)
    assert (call["questions"], call["meta"]) == (["form", "url"], {"traceparent": "t"})
    assert {question["question_id"] for question in asked} == {"q0", "q1"}
    assert asked[0]["requestedSchema"] == FORM["requestedSchema"]
    (sent,) = computer.requests(ANSWER_QUESTION_EVENT)
    assert (sent["question_id"], sent["action"], sent["content"]) == ("q1", "accept", {"sure": True})


async def test_a_question_that_is_withdrawn_or_outlived_by_nobody_ends_its_callback(
    make_agent: MakeAgent, make_computer: MakeComputer
) -> None:
    computer = await make_computer(setup=sharing)
    agent = await make_agent()
    ended: list[str] = []
    heard: list[Any] = []
    agent.on("question")(lambda question: heard.append(question["question_id"]))

    async def answer(question: Any) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append(question["question_id"])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: agent.call_tool("laptop", "wait", on_question=answer))
        await eventually(lambda: computer.requests(TOOL_CALL_EVENT))
        for number in ("q1", "q2"):
            await ask(computer, number, **FORM)
        await eventually(lambda: heard == ["q1", "q2"])
        await ask(computer, "q1", withdrawn=True)
        await eventually(lambda: ended == ["q1"])
        computer.release.set()
    await eventually(lambda: ended == ["q1", "q2"])
    assert computer.requests(ANSWER_QUESTION_EVENT) == []


async def test_a_handler_answers_by_itself_where_the_call_says_that_it_can(
    make_agent: MakeAgent, make_computer: MakeComputer
) -> None:
    computer = await make_computer(setup=sharing)
    computer.override[ANSWER_QUESTION_EVENT] = lambda data: (
        {} if data["question_id"] == "q1" else NotFoundError("answered elsewhere").payload()
    )
    agent = await make_agent()
    outcomes: list[Any] = []

    async def answer(question: Any) -> None:
        try:
            await agent.answer_question("laptop", question["question_id"], "decline")
            outcomes.append("taken")
        except NotFoundError:
            outcomes.append("late")

    agent.on("question")(answer)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: agent.call_tool("laptop", "wait", questions=["form"]))
        await eventually(lambda: computer.requests(TOOL_CALL_EVENT))
        for number in ("q1", "q2"):
            await ask(computer, number, **FORM)
        await eventually(lambda: outcomes == ["taken", "late"])
        computer.release.set()
