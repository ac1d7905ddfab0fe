"""Questions to the one caller that can answer them, and news of a resource to the agent alone."""

import json
from typing import Any

import anyio
import pytest

from a2c_smcp.engine.outgoing import SendQueue, packet_of
from a2c_smcp.errors import PayloadTooLargeError, TooManyRequestsError
from a2c_smcp.server.envelopes import payload_of, read_message
from a2c_smcp.server.relays import Relay
from a2c_smcp.server.reports import QuestionLimit, report_of
from a2c_smcp.smcp import (
    MAX_QUESTION,
    MAX_QUESTIONS,
    MAX_URI,
    QUESTION_EVENT,
    QUESTION_NOTIFICATION,
    RESOURCE_UPDATED_EVENT,
    RESOURCE_UPDATED_NOTIFICATION,
    TOOL_CALL_EVENT,
    ToolQuestion,
)
from tests.server.conftest import MakePeer
from tests.server.harness import Peer, Running, eventually, heard
from tests.server.test_scenarios import code, join, request_for

# --- decisions


def question(number: int = 0, **more: Any) -> ToolQuestion:
    ids = {"computer": "c", "agent": "a", "req_id": "1", "question_id": f"q{number}"}
    return {**ids, "message": "Sure?", **more}  # type: ignore[typeddict-item]


def test_a_call_asks_some_questions_and_can_withdraw_each_of_them() -> None:
    passed: list[str] = []

    def deliver(text: str) -> bool:
        passed.append(text)
        return True

    limit = QuestionLimit(deliver)
    limit(question(withdrawn=True), "nobody knows it")
    assert passed == []
    for number in range(MAX_QUESTIONS):
        limit(question(number), str(number))
    with pytest.raises(TooManyRequestsError):
        limit(question(99), "one too many")
    for number in range(MAX_QUESTIONS + 5):
        limit(question(number, withdrawn=True), f"-{number}")
    numbers = range(MAX_QUESTIONS)
    assert passed == [*map(str, numbers), *(f"-{number}" for number in numbers)]


def test_a_question_that_is_too_long_or_finds_no_room_is_refused_and_not_counted() -> None:
    fits = False
    limit = QuestionLimit(lambda _: fits)
    with pytest.raises(PayloadTooLargeError):
        limit(question(), "x" * (MAX_QUESTION + 1))
    for _ in range(MAX_QUESTIONS + 1):
        with pytest.raises(TooManyRequestsError, match="too much to read"):
            limit(question(), "x")
    fits = True
    limit(question(), "x" * MAX_QUESTION)


@pytest.mark.parametrize("text", ["Sure?", "\\ud800", "中"])
def test_a_question_is_passed_on_as_it_came(text: str) -> None:
    ids = '"agent":"a","req_id":"1","computer":"c","question_id":"q"'
    body = f'["{QUESTION_EVENT}", {{{ids},"message":"{text}","x":[1]}}]'
    message = read_message(body)
    assert message.error is None
    assert message.request["question_id"] == "q"
    payload = json.loads(payload_of(message.take_body()))
    assert payload == json.loads(body)[1]


@pytest.mark.parametrize(
    ("asked", "kept"), [('["form"]', True), ("[]", None), ("null", None), ('["\\ud800"]', True), ("[1]", 400)]
)
def test_the_server_keeps_whether_a_caller_answers_questions(asked: str, kept: Any) -> None:
    call = f'{{"agent":"a","req_id":"1","computer":"c","tool_name":"t","params":{{}},"timeout":1,"questions":{asked}}}'
    message = read_message(f'["{TOOL_CALL_EVENT}",{call}]')
    if kept == 400:
        assert message.error is not None and message.error.details == {"field": "questions"}
    else:
        assert message.error is None
        assert bool(message.request.get("questions")) is bool(kept)


def test_the_first_reports_of_a_call_are_not_replaced_while_they_wait() -> None:
    queue, relay = SendQueue(100_000), Relay(TOOL_CALL_EVENT, "a", "1", "c", lambda *_: None)
    for number in range(6):
        queue.add_mention(report_of("/smcp", relay, json.dumps(number)))
    waiting = [packet_of(queue.pop()) for _ in range(4)]
    assert queue.parcels is None
    assert [each[-2] for each in waiting] == ["0", "1", "2", "5"]


# --- over real sockets


class Scene:
    """A call that runs until it is released; its agent, its computer, another computer, and an agent elsewhere."""

    def __init__(self, peers: dict[str, Peer]) -> None:
        self.peers = peers
        self.agent, self.computer = peers["agent"], peers["computer"]
        self.release = anyio.Event()
        self.arrived = anyio.Event()

    async def answer(self, data: Any) -> Any:
        self.arrived.set()
        await self.release.wait()
        return {"content": [], "isError": False}

    async def call(self, **more: Any) -> None:
        await self.agent.call(TOOL_CALL_EVENT, request_for(TOOL_CALL_EVENT, timeout=60, **more))

    def heard_by(self, event: str) -> dict[str, list[Any]]:
        return {name: told for name, peer in self.peers.items() if (told := heard(peer, event))}


@pytest.fixture
async def scene(server: Running, office: str, make_peer: MakePeer) -> Scene:
    scenes: list[Scene] = []

    def setup(peer: Peer) -> None:
        peer.answer(TOOL_CALL_EVENT, lambda data: scenes[0].answer(data))

    agent, stranger, second = [await make_peer(server) for _ in range(3)]
    computer = await make_peer(server, setup=setup)
    scenes.append(Scene({"agent": agent, "computer": computer, "second": second, "stranger": stranger}))
    await join(agent, "agent", "a", office)
    await join(computer, "computer", "c", office)
    await join(second, "computer", "d", office)
    await join(stranger, "agent", "a", office + "-other")
    return scenes[0]


async def test_the_caller_hears_every_question_and_its_end_and_nobody_else_does(scene: Scene) -> None:
    schema = {"type": "object", "properties": {"sure": {"type": "boolean"}}}
    said = [question(number, requestedSchema=schema, unknown=[number]) for number in range(MAX_QUESTIONS)]
    gone = {key: value for key, value in question(3, withdrawn=True).items() if key != "message"}
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: scene.call(questions=["form"]))
        await scene.arrived.wait()
        for each in said:
            assert await scene.computer.call(QUESTION_EVENT, each) == {}
        assert code(await scene.computer.call(QUESTION_EVENT, question(99))) == 429
        assert await scene.computer.call(QUESTION_EVENT, gone) == {}
        long = question(98, message="x" * MAX_QUESTION)
        assert code(await scene.computer.call(QUESTION_EVENT, long)) == 413
        scene.release.set()
    await eventually(lambda: len(heard(scene.agent, QUESTION_NOTIFICATION)) == MAX_QUESTIONS + 1)
    assert scene.heard_by(QUESTION_NOTIFICATION) == {"agent": [*said, gone]}
    assert code(await scene.computer.call(QUESTION_EVENT, question())) == 404


async def test_any_other_question_is_refused_and_nobody_hears_it(scene: Scene) -> None:
    forged: list[tuple[str, dict[str, Any]]] = [
        ("computer", {"req_id": "2"}),
        ("computer", {"agent": "b"}),
        ("computer", {"computer": "d"}),
        ("second", {}),
        ("second", {"computer": "d"}),
        ("agent", {}),
        ("stranger", {}),
    ]
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: scene.call(questions=["form"]))
        await scene.arrived.wait()
        for sender, change in forged:
            reply = await scene.peers[sender].call(QUESTION_EVENT, {**question(), **change})
            assert code(reply) == 404, (sender, change)
        assert code(await scene.computer.call(QUESTION_EVENT, {"computer": "c"})) == 400
        scene.release.set()
    assert scene.heard_by(QUESTION_NOTIFICATION) == {}


async def test_a_caller_that_wants_only_progress_is_not_asked(scene: Scene) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: scene.call(progress=True))
        await scene.arrived.wait()
        assert code(await scene.computer.call(QUESTION_EVENT, question())) == 404
        scene.release.set()
    assert scene.heard_by(QUESTION_NOTIFICATION) == {}


async def test_news_of_a_resource_goes_to_the_agent_alone(scene: Scene) -> None:
    assert await scene.computer.call(RESOURCE_UPDATED_EVENT, {"uri": "file:///a"}) == {}
    assert await scene.computer.call(RESOURCE_UPDATED_EVENT, {"uri": "file:///b", "computer": "c"}) == {}
    await eventually(lambda: len(heard(scene.agent, RESOURCE_UPDATED_NOTIFICATION)) == 2)
    for sender, data, refusal in (
        ("computer", {"uri": "file:///a", "computer": "d"}, 403),
        ("agent", {"uri": "file:///a", "computer": "c"}, 403),
        ("computer", {"uri": "x" * (MAX_URI + 1)}, 400),
        ("computer", {}, 400),
    ):
        assert code(await scene.peers[sender].call(RESOURCE_UPDATED_EVENT, data)) == refusal
    told = [{"uri": f"file:///{name}", "computer": "c"} for name in "ab"]
    assert scene.heard_by(RESOURCE_UPDATED_NOTIFICATION) == {"agent": told}


async def test_a_flood_of_news_disconnects_nobody(scene: Scene) -> None:
    for number in range(1000):
        await scene.computer.emit(RESOURCE_UPDATED_EVENT, {"uri": f"file:///{number}/{'x' * 4000}"})
    assert await scene.computer.call(RESOURCE_UPDATED_EVENT, {"uri": "file:///last"}) == {}
    await eventually(
        lambda: {"uri": "file:///last", "computer": "c"} in heard(scene.agent, RESOURCE_UPDATED_NOTIFICATION)
    )
    assert scene.agent.connected and scene.computer.connected
