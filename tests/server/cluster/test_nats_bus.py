"""Two buses on a real NATS server: what is asked, told and withdrawn across."""

import asyncio
from typing import Any

import pytest

from a2c_smcp.errors import InternalError, NotFoundError, TooManyRequestsError
from a2c_smcp.server.cluster import tuning
from a2c_smcp.server.cluster.bus import RemoteRequest
from a2c_smcp.server.cluster.post import Post
from a2c_smcp.server.effects import Broadcast
from a2c_smcp.server.envelopes import Answer
from a2c_smcp.smcp import QUESTION_NOTIFICATION, TOOL_PROGRESS_NOTIFICATION
from tests.server.cluster.sides import ASKED, ASKER, TARGET, Side, text_of
from tests.server.harness import eventually

pytestmark = pytest.mark.usefixtures("patient")


async def test_a_request_gets_there_and_its_answer_back_as_they_are(asker: Side, asked: Side) -> None:
    body = '["client:tool_call", {"三": 1e400, "n": 12345678901234567890123}]'
    answer = await asker.ask(body)
    assert text_of(answer) == body
    assert answer is not None and answer.error is None
    [remote] = asked.shell.asked
    assert (remote.caller, remote.target) == (f"{ASKER}/sid-a", TARGET)
    request = {"agent": "a", "req_id": "1", "computer": "c", "timeout": 30, "progress": False, "questions": False}
    request["traceparent"] = None
    assert (remote.message.event, remote.message.request) == ("client:tool_call", request)


async def test_one_round_trip_costs_two_messages_once_the_two_have_met(asker: Side) -> None:
    await asker.ask()
    before = asker.count.sent["ask"], asker.count.heard["reply"]
    for _ in range(10):
        await asker.ask()
    assert (asker.count.sent["ask"] - before[0], asker.count.heard["reply"] - before[1]) == (10, 10)
    assert asker.count.sent["withdraw"] == 0
    assert len(asker.count.seconds) == 11


async def test_an_error_of_a_computer_is_an_answer_and_an_error_of_its_process_is_raised(
    asker: Side, asked: Side
) -> None:
    error = '{"error":{"code":4201,"message":"no such document","details":{"doc_ref":"d"}}}'

    async def fails(remote: RemoteRequest, _: Any) -> Answer | None:
        if remote.message.request["req_id"] == "computer":
            return Answer(error, NotFoundError("no such document"))
        if remote.message.request["req_id"] == "none":
            return None
        if remote.message.request["req_id"] == "fault":
            raise RuntimeError("a fault of ours")
        raise TooManyRequestsError("too much", {"why": "slow"})

    asked.shell.answers = fails
    answer = await asker.ask(req_id="computer")
    assert text_of(answer) == error
    assert answer is not None and answer.error is not None and answer.error.code == 4201
    assert await asker.ask(req_id="none") is None
    with pytest.raises(TooManyRequestsError) as refused:
        await asker.ask(req_id="process")
    assert refused.value.details == {"why": "slow"}
    with pytest.raises(InternalError) as failed:
        await asker.ask(req_id="fault")
    assert "fault of ours" not in str(failed.value)


async def test_large_texts_go_in_chunks_both_ways_and_small_ones_pass_between(asker: Side, asked: Side) -> None:
    large = '["' + "三" * 2_000_000 + '"]'
    await asker.ask()
    answers = await asyncio.gather(asker.ask(large, "l"), *(asker.ask(f"[{n}]", str(n)) for n in range(20)))
    assert text_of(answers[0]) == large
    assert [text_of(answer) for answer in answers[1:]] == [f"[{n}]" for n in range(20)]
    assert asker.count.sent["chunk"] == asked.count.sent["chunk"] == len(large.encode()) // tuning.BOUNDS.chunk_bytes
    assert asked.shell.log.index("asked l") == 21, "the small ones did not wait for the large one"


async def test_several_large_texts_at_once_arrive_whole(asker: Side) -> None:
    texts = [f'["{digit * 1_000_000}"]' for digit in "abcdefgh"]
    answers = await asyncio.gather(*(asker.ask(text) for text in texts))
    assert [text_of(answer) for answer in answers] == texts


async def test_too_much_for_one_process_is_429(asker: Side) -> None:
    await asker.ask()
    answers = await asyncio.gather(*(asker.ask("x" * 20_000_000) for _ in range(4)), return_exceptions=True)
    assert [type(answer).__name__ for answer in answers] == ["Answer"] * 3 + ["TooManyRequestsError"]


async def test_what_is_announced_goes_to_the_others_after_the_request_of_the_same_session(
    asker: Side, asked: Side
) -> None:
    asked.shell.answers = asked.shell.never
    calls = [
        asyncio.create_task(asker.ask(body, req_id)) for body, req_id in (("[1]", "small"), ("x" * 900_000, "large"))
    ]
    await asyncio.sleep(0)
    notice = Broadcast("o", "notify:tool_call_cancel", {}, "sid-a")
    asker.bus.publish(notice, "cancel")
    asker.bus.publish(Broadcast("o", "notify:update_config", {}, "sid-b", collapses=True), "of another")
    await eventually(lambda: len(asked.shell.log) == 4)
    assert asked.shell.log.index("told cancel") == 3
    assert asked.shell.told[-1] == (notice, "cancel")
    assert asker.shell.told == [], "its own process has told its own members"
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)
    await eventually(lambda: sorted(asked.shell.withdrawn) == ["large", "small"])


async def test_what_was_accepted_while_a_call_was_sent_goes_out_however_much_waits(
    asker: Side, asked: Side, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = asyncio.create_task(asker.ask('["' + "x" * 1_000_000 + '"]'))
    await asyncio.sleep(0)
    asker.bus.publish(Broadcast("o", "notify:tool_call_cancel", {}, "sid-a"), "cancel")
    monkeypatch.setattr(Post, "unsent", 10**9)
    with pytest.raises(TooManyRequestsError):
        asker.bus.publish(Broadcast("o", "notify:update_config", {}, "sid-b"), "of another")
    await call
    await eventually(lambda: [text for _, text in asked.shell.told] == ["cancel"])


async def test_what_waits_for_a_call_to_be_sent_has_a_bound(asker: Side, asked: Side) -> None:
    notice, text = Broadcast("o", "notify:tool_call_cancel", {}, "sid-a"), "x" * 100_000
    call = asyncio.create_task(asker.ask('["' + "x" * 4_000_000 + '"]'))
    await asyncio.sleep(0)
    published = 42  # no await: nothing is sent meanwhile
    for _ in range(published):
        asker.bus.publish(notice, text)
    with pytest.raises(TooManyRequestsError):
        asker.bus.publish(notice, text)
    asker.bus.publish(Broadcast("o", "notify:update_config", {}, "sid-b"), "of another")
    await call
    await eventually(lambda: len(asked.shell.told) == published + 1)


async def test_what_waits_for_nats_has_a_bound(asker: Side, asked: Side) -> None:
    notice, text = Broadcast("o", "notify:tool_call_cancel", {}, "sid-a"), "x" * 100_000
    published = 336  # no await: nothing is sent meanwhile
    for _ in range(published):
        asker.bus.publish(notice, text)
    with pytest.raises(TooManyRequestsError):
        asker.bus.publish(notice, text)
    with pytest.raises(TooManyRequestsError):
        await asker.ask()
    await eventually(lambda: len(asked.shell.told) == published)
    await asker.ask()
    asker.bus.publish(notice, "later")
    await eventually(lambda: asked.shell.log[-1] == "told later")


async def test_what_is_sent_waits_for_what_its_sender_had_seen(asker: Side, asked: Side) -> None:
    await asker.everybody.move_to(7)
    call = asyncio.create_task(asker.ask())
    asker.bus.publish(Broadcast("o", "notify:update_config", {}, "sid-b"), "b")
    await eventually(lambda: asked.count.heard["ask"] == 1 and asked.count.heard["notice"] == 1)
    await asker.everybody.move_to(8)
    asker.bus.publish(Broadcast("o", "notify:update_config", {}, "sid-b"), "later")
    await eventually(lambda: asked.count.heard["notice"] == 2)
    assert asked.shell.log == []
    await asked.everybody.move_to(7)
    await call
    assert sorted(asked.shell.log) == ["asked 1", "told b"]
    await asked.everybody.move_to(8)
    await eventually(lambda: asked.shell.log[-1] == "told later")


async def test_a_process_that_has_lost_its_lease_is_not_listened_to_and_starts_nothing(
    asker: Side, asked: Side
) -> None:
    await asker.ask()
    asked.everybody.lease_is_over = True
    with pytest.raises(InternalError):
        await asker.ask()
    asked.everybody.lease_is_over = False
    asker.everybody.lease_is_over = True
    with pytest.raises(InternalError):
        await asker.ask()
    asker.everybody.lease_is_over = False
    asked.everybody.processes = {ASKED}
    asker.bus.publish(Broadcast("o", "notify:update_config", {}, "sid-b"), "from the dead")
    call = asyncio.create_task(asker.ask(req_id="dead"))
    await eventually(lambda: asked.count.heard["notice"] == 1)
    call.cancel()
    await eventually(lambda: asked.count.heard["withdraw"] >= 1)
    assert "asked dead" not in asked.shell.log and asked.shell.told == []


async def test_a_caller_that_goes_withdraws_its_request(asker: Side, asked: Side) -> None:
    asked.shell.answers = asked.shell.never
    call = asyncio.create_task(asker.ask())
    await eventually(lambda: asked.shell.asked)
    call.cancel()
    await eventually(lambda: asked.shell.withdrawn == ["1"])
    assert asked.count.sent["reply"] == 0


async def test_progress_and_questions_come_back_to_the_one_who_asked(asker: Side, asked: Side) -> None:
    async def reports(remote: RemoteRequest, _: Any) -> Answer | None:
        assert remote.pass_on is not None
        assert remote.pass_on(TOOL_PROGRESS_NOTIFICATION, '{"progress":1}')
        assert remote.pass_on(QUESTION_NOTIFICATION, '{"question_id":"q"}')
        return Answer("{}")

    asked.shell.answers = reports
    heard: list[tuple[str, str]] = []

    def hear(event: str, text: str) -> bool:
        heard.append((event, text))
        return True

    await asker.ask(pass_on=hear)
    assert heard == [(TOOL_PROGRESS_NOTIFICATION, '{"progress":1}'), (QUESTION_NOTIFICATION, '{"question_id":"q"}')]
