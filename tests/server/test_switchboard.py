"""The decisions of a server without any connection: its lines are ours, and nothing of a call waits."""

import asyncio
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import pytest

from a2c_smcp.server import APIKeyAuthentication, Limits, OpenAuthentication
from a2c_smcp.server.port import FELL_BEHIND, ClientLine, Decisions, Mention, Newcomer, Notice, NotLetInError
from a2c_smcp.server.switchboard import Switchboard
from a2c_smcp.smcp import STAMP_FIELD


@dataclass(eq=False)
class FakeLine:
    """Keeps what it is given."""

    sid: str
    address: str = "10.0.0.1"
    connection: str = "c"
    is_open: bool = True
    queued_bytes: int = 0
    sent_bytes: int = 0
    received_bytes: int = 0
    is_written_out: bool = True
    has_given_a_sign: bool = True
    fits: bool = True
    admitted: bool = False
    sent: list[str] = field(default_factory=list)
    acks: dict[int, Callable[[str], None]] = field(default_factory=dict)
    closed_for: str = ""

    def take_place(self) -> None:
        pass

    def admit(self) -> None:
        self.admitted = True

    def bound(self, queued_bytes: int) -> None:
        pass

    def send(self, text: str) -> None:
        self.sent.append(text)

    def notify(self, notice: Notice) -> None:
        self.sent.append(notice.text)

    def offer(self, text: str) -> bool:
        if self.fits:
            self.sent.append(text)
        return self.fits

    def mention(self, mention: Mention) -> None:
        self.sent.append(mention.text)

    def ask(self, ack_id: int, text: str, on_ack: Callable[[str], None]) -> bool:
        if self.offer(text):
            self.acks[ack_id] = on_ack
        return self.fits

    def forget(self, ack_id: int) -> None:
        self.acks.pop(ack_id, None)

    def ask_for_a_sign(self) -> None:
        pass

    def close(self, reason: str) -> None:
        self.is_open, self.closed_for = False, reason

    # as a connection does

    def answer(self, body: str) -> None:
        (ack_id,) = self.acks
        self.acks.pop(ack_id)(body)


CALL = {"agent": "a", "req_id": "1", "computer": "c", "tool_name": "t", "params": {"x": 1}, "timeout": 5}


class Scene:
    """An agent and a computer in an office."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.board = Switchboard(OpenAuthentication(), limits=limits)
        self.agent, self.computer = FakeLine("agent-sid"), FakeLine("computer-sid")
        self.decisions: Decisions = self.board
        self.lines: tuple[ClientLine, ...] = (self.agent, self.computer)

    async def meet(self) -> "Scene":
        for line, role, name in ((self.agent, "agent", "a"), (self.computer, "computer", "c")):
            await self.decisions.connect(line, Newcomer("10.0.0.1", {"host": "localhost"}), None)
            join = {"role": role, "name": name, "office_id": "o"}
            assert self.say(line, "server:join_office", join) == "3/smcp,7[true,null]"
        self.agent.sent.clear()
        return self

    def say(self, line: Any, event: str, data: Any, ack_id: int | None = 7) -> str | None:
        return self.decisions.event(line, ack_id, json.dumps([event, data]))

    def call(self, **more: Any) -> str | None:
        return self.say(self.agent, "client:tool_call", {**CALL, **more})

    @property
    def replied(self) -> Any:
        (text,) = self.agent.sent
        assert text.startswith("3/smcp,7")
        return json.loads(text.removeprefix("3/smcp,7"))[0]


async def test_a_call_is_answered_in_the_calls_that_bring_it_without_a_task() -> None:
    scene = await Scene().meet()
    tasks = asyncio.all_tasks()
    assert scene.call() is None
    (asked,) = scene.computer.sent
    (ack_id,) = scene.computer.acks
    head = f"2/smcp,{ack_id}"
    assert asked.startswith(head)
    event, request = json.loads(asked.removeprefix(head))
    assert (event, request) == ("client:tool_call", {**CALL, STAMP_FIELD: request[STAMP_FIELD]})
    scene.computer.answer(' [ {"content":[],  "isError":false} ] ')
    assert scene.agent.sent == ['3/smcp,7[ {"content":[],  "isError":false} ]']
    assert scene.board.pending_relays == 0 and not scene.computer.acks
    assert asyncio.all_tasks() == tasks


async def test_a_caller_without_an_ack_id_gets_no_answer() -> None:
    scene = await Scene().meet()
    assert scene.say(scene.agent, "client:tool_call", CALL, None) is None
    scene.computer.answer('[{"content":[]}]')
    assert scene.agent.sent == []


async def test_of_an_ack_and_the_deadline_the_first_one_counts() -> None:
    scene = await Scene(Limits(tool_call_grace=-4.95)).meet()
    assert scene.call() is None
    (late,) = scene.computer.acks.values()
    async with asyncio.timeout(20):
        while not scene.agent.sent:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert scene.replied["content"] and "408" in scene.agent.sent[0]
    late('[{"content":[]}]')
    assert len(scene.agent.sent) == 1 and not scene.computer.acks


async def test_a_computer_that_goes_fails_its_calls_at_once_and_an_agent_that_goes_cancels_its_own() -> None:
    scene = await Scene().meet()
    scene.call()
    scene.computer.is_open = False
    scene.decisions.disconnected(scene.computer, FELL_BEHIND)
    assert "404" in scene.agent.sent[0] and scene.agent.sent[1].startswith('2/smcp,["notify:leave_office"')
    scene = await Scene().meet()
    scene.call()
    scene.decisions.disconnected(scene.agent, "transport close")
    assert scene.computer.sent[1] == '2/smcp,["notify:tool_call_cancel",{"agent":"a","req_id":"1"}]'
    assert scene.board.pending_relays == 0 and not scene.computer.acks


async def test_what_does_not_fit_is_429_for_a_request_and_for_an_answer() -> None:
    scene = await Scene().meet()
    scene.computer.fits = False
    reply = scene.call()
    assert reply is not None and "429" in reply and scene.board.pending_relays == 0
    scene.computer.fits, scene.agent.fits = True, False
    scene.call()
    scene.computer.answer('[{"content":[]}]')
    assert "429" in scene.agent.sent[0]


async def test_a_stamp_names_the_sender_as_it_is_called_now() -> None:
    scene = await Scene().meet()
    for name in ("a", "b"):
        scene.say(scene.agent, "server:join_office", {"role": "agent", "name": name, "office_id": "o"})
        scene.call(agent=name)
    stamps = [json.loads(text[text.index("[") :])[1][STAMP_FIELD] for text in scene.computer.sent if '"params"' in text]
    assert [stamp["name"] for stamp in stamps] == ["a", "b"]


async def test_a_wrong_key_is_not_let_in_and_its_refusal_has_a_code() -> None:
    board, line = Switchboard(APIKeyAuthentication(["right"])), FakeLine("s")
    with pytest.raises(NotLetInError) as refused:
        await board.connect(line, Newcomer("10.0.0.1", {"x-api-key": "wrong"}), None)
    assert refused.value.data["data"]["error"]["code"] == 401
    assert not line.admitted and board.sessions == 0
    assert "session has ended" in str(board.event(line, 1, '["server:list_room",{}]'))


async def test_a_binary_event_is_refused_and_what_is_no_event_raises() -> None:
    scene = await Scene().meet()
    assert "binary" in str(scene.decisions.binary_event(scene.agent, 7, '["client:tool_call",{"_placeholder":true}]'))
    for body in ("{", "[]", "7"):
        with pytest.raises(ValueError, match=r"JSON|event"):
            scene.decisions.event(scene.agent, 7, body)


async def test_a_call_passes_few_functions_of_ours() -> None:
    """What the decisions of one call cost. A change that needs more says for what."""
    scene = await Scene().meet()
    scene.call()
    scene.computer.answer('[{"content":[]}]')  # from now on it is known who asks
    entered: set[str] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and "a2c_smcp" in frame.f_code.co_filename:
            entered.add(f"{frame.f_code.co_filename}:{frame.f_code.co_firstlineno}")

    body = json.dumps(["client:tool_call", CALL])
    sys.setprofile(note)
    try:
        scene.board.event(scene.agent, 7, body)
        scene.computer.answer('[{"content":[]}]')
    finally:
        sys.setprofile(None)
    assert len(entered) <= 27, sorted(entered)
