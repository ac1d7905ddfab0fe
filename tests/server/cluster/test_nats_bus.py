"""Two buses on a real NATS server: what is asked, told and withdrawn across, and what happens when one is gone."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from a2c_smcp.errors import (
    InternalError,
    NotFoundError,
    NotInRoomError,
    PayloadTooLargeError,
    SMCPError,
    TooManyRequestsError,
)
from a2c_smcp.server.bus import Errand
from a2c_smcp.server.cluster import frames
from a2c_smcp.server.cluster.connection import NatsConnection
from a2c_smcp.server.cluster.nats_bus import NatsBus
from a2c_smcp.server.cluster.options import ClusterOptions
from a2c_smcp.server.effects import Broadcast
from a2c_smcp.server.envelopes import Answer
from a2c_smcp.server.offices import Member
from a2c_smcp.wire import Encoded
from tests.nats_server import NatsServer, running_nats
from tests.server.harness import eventually

ASKED, ASKER = "B" * 22, "A" * 22
TARGET = Member("sid-c", "computer", "c", "o", ASKED)
Answers = Callable[[Errand, "asyncio.Future[Answer | None]"], Awaitable[Answer | None]]


class Everybody:
    """A membership that the test moves on by hand."""

    def __init__(self) -> None:
        self.revision = 1
        self.processes = {ASKED, ASKER}
        self.lease_is_over = False
        self._moved = asyncio.Condition()

    async def reached(self, revision: int) -> None:
        async with self._moved:
            await self._moved.wait_for(lambda: self.revision >= revision)

    async def move_to(self, revision: int) -> None:
        async with self._moved:
            self.revision = revision
            self._moved.notify_all()

    def holders(self, office_id: str) -> set[str]:
        return self.processes

    def check(self) -> None:
        if self.lease_is_over:
            raise InternalError("the lease is over")


class Counting:
    """Counts what crosses."""

    def __init__(self) -> None:
        self.sent: Counter[str] = Counter()
        self.heard: Counter[str] = Counter()
        self.seconds: list[float] = []

    def sent_across(self, kind: str) -> None:
        self.sent[kind] += 1

    def heard_across(self, kind: str) -> None:
        self.heard[kind] += 1

    def answered_across(self, seconds: float) -> None:
        self.seconds.append(seconds)


class Shell:
    """Stands where the namespace stands: answers with a function, and notes what it is told."""

    def __init__(self) -> None:
        self.answers: Answers = self.echo
        self.asked: list[Errand] = []
        self.told: list[tuple[Broadcast, str]] = []
        self.log: list[str] = []
        self.withdrawn: list[str] = []

    async def echo(self, errand: Errand, _: Any) -> Answer | None:
        return Answer(Encoded(errand.take_body()))

    async def never(self, _: Errand, answer: "asyncio.Future[Answer | None]") -> Answer | None:
        return await answer

    async def answer(self, errand: Errand, answer: "asyncio.Future[Answer | None]") -> Answer | None:
        self.asked.append(errand)
        self.log.append(f"asked {errand.req_id}")
        try:
            return await self.answers(errand, answer)
        except NotInRoomError:
            self.withdrawn.append(errand.req_id)
            raise

    def hear(self, notice: Broadcast, text: str) -> None:
        self.told.append((notice, text))
        self.log.append(f"told {text}")


class Side:
    """One process's part: its bus, its shell, its copy of the membership."""

    def __init__(self, process: str, url: str, prefix: str) -> None:
        self.process = process
        self.connection = NatsConnection(ClusterOptions((url,), prefix=prefix))
        self.everybody = Everybody()
        self.count = Counting()
        self.bus = NatsBus(self.connection, self.everybody, prefix, self.count)
        self.shell = Shell()
        self.bus.serve(self.shell)

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator["Side"]:
        async with self.connection, self.bus:
            async with asyncio.timeout(30):
                await self.connection.connected()
                await self.bus.began(self.process)
            yield self

    async def ask(self, body: str = "[1]", req_id: str = "1", **more: Any) -> Answer | None:
        answer: asyncio.Future[Answer | None] = asyncio.get_running_loop().create_future()
        errand = Errand("sid-a", TARGET, "client:tool_call", "a", req_id, 30, body, **more)
        try:
            await self.bus.ask(errand, answer)
            return await answer
        finally:
            self.bus.forget(errand)


@pytest.fixture
async def asked(nats: NatsServer, prefix: str) -> AsyncIterator[Side]:
    async with Side(ASKED, nats.url, prefix).open() as side:
        yield side


@pytest.fixture
async def asker(nats: NatsServer, prefix: str, asked: Side) -> AsyncIterator[Side]:
    async with Side(ASKER, nats.url, prefix).open() as side:
        yield side


def text_of(answer: Answer | None) -> str:
    assert answer is not None
    return answer.encoded.text


async def test_a_request_gets_there_and_its_answer_back_as_they_are(asker: Side, asked: Side) -> None:
    body = '["client:tool_call", {"三": 1e400, "n": 12345678901234567890123}]'
    answer = await asker.ask(body)
    assert text_of(answer) == body
    assert answer is not None and answer.error is None
    [errand] = asked.shell.asked
    assert (errand.caller, errand.target) == (f"{ASKER}/sid-a", TARGET)
    assert (errand.event, errand.agent, errand.req_id, errand.timeout) == ("client:tool_call", "a", "1", 30)


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

    async def fails(errand: Errand, _: Any) -> Answer | None:
        if errand.req_id == "computer":
            return Answer(Encoded(error), NotFoundError("no such document"))
        if errand.req_id == "none":
            return None
        if errand.req_id == "fault":
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
    assert asker.count.sent["chunk"] == asked.count.sent["chunk"] == len(large.encode()) // frames.CHUNK_BYTES
    assert asked.shell.log.index("asked l") == 21, "the small ones did not wait for the large one"


async def test_several_large_texts_at_once_arrive_whole(asker: Side) -> None:
    texts = [f'["{digit * 1_000_000}"]' for digit in "abcdefgh"]
    answers = await asyncio.gather(*(asker.ask(text) for text in texts))
    assert [text_of(answer) for answer in answers] == texts


async def test_too_much_for_one_process_is_429_and_too_long_ids_413(asker: Side) -> None:
    answers = await asyncio.gather(*(asker.ask("x" * 20_000_000) for _ in range(4)), return_exceptions=True)
    assert [type(answer).__name__ for answer in answers] == ["Answer"] * 3 + ["TooManyRequestsError"]
    with pytest.raises(PayloadTooLargeError):
        await asker.ask(req_id="x" * 200_000)


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


async def test_progress_comes_back_to_the_one_who_asked(asker: Side, asked: Side) -> None:
    async def reports(errand: Errand, _: Any) -> Answer | None:
        assert errand.report is not None
        errand.report('{"progress":1}')
        errand.report('{"progress":2}')
        return Answer(Encoded("{}"))

    asked.shell.answers = reports
    heard: list[str] = []
    await asker.ask(report=heard.append)
    assert heard == ['{"progress":1}', '{"progress":2}']


# --- faults


async def test_a_process_that_is_not_there_is_404_after_two_refusals(nats: NatsServer, prefix: str) -> None:
    async with Side(ASKER, nats.url, prefix).open() as asker:
        began = asyncio.get_running_loop().time()
        with pytest.raises(NotFoundError):
            await asker.ask()
        assert 1.5 < asyncio.get_running_loop().time() - began < 15
        again = asyncio.get_running_loop().time()
        with pytest.raises(NotFoundError):
            await asker.ask()
        assert asyncio.get_running_loop().time() - again < 1.5, "it is known to refuse"


async def test_a_request_that_nobody_took_is_sent_again_when_its_process_is_back(nats: NatsServer, prefix: str) -> None:
    async with Side(ASKER, nats.url, prefix).open() as asker:
        async with Side(ASKED, nats.url, prefix).open():
            await asker.ask()
        call = asyncio.create_task(asker.ask())
        await asyncio.sleep(0.2)
        async with Side(ASKED, nats.url, prefix).open() as back:
            assert text_of(await call) == "[1]"
            assert [errand.req_id for errand in back.shell.asked] == ["1"]


async def test_a_process_that_goes_silent_fails_what_waits_for_it_and_starts_nothing_when_it_wakes(
    asker: Side, asked: Side, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked.shell.answers = asked.shell.never
    running = asyncio.create_task(asker.ask(req_id="running"))
    await eventually(lambda: asked.shell.asked)
    # As a stopped process: what is sent to it waits in its connection.
    held: list[Any] = []
    take = asked.bus._take_frame
    monkeypatch.setattr(asked.bus, "_take_frame", lambda *frame: held.append(frame))
    waiting = asyncio.create_task(asker.ask(req_id="waiting"))
    began = asyncio.get_running_loop().time()
    for call in (running, waiting):
        with pytest.raises(NotFoundError):
            await call
    assert 2 < asyncio.get_running_loop().time() - began < 20
    monkeypatch.setattr(asked.bus, "_take_frame", take)
    for frame in held:
        take(*frame)
    await eventually(lambda: asked.shell.withdrawn == ["running"])
    await asyncio.sleep(0.1)
    assert asked.shell.log == ["asked running"]
    asked.shell.answers = asked.shell.echo
    assert text_of(await asker.ask()) == "[1]", "it is met again"


async def test_work_for_a_process_of_which_nothing_is_heard_stops(nats: NatsServer, prefix: str, asked: Side) -> None:
    asked.shell.answers = asked.shell.never
    asker = Side(ASKER, nats.url, prefix)
    async with asker.open():
        call = asyncio.create_task(asker.ask())
        await eventually(lambda: asked.shell.asked)
        # As a killed process: it says nothing any more.
        await asker.connection.client.close()
        await eventually(lambda: asked.shell.withdrawn == ["1"])
        call.cancel()


async def test_a_lost_answer_is_noticed(asker: Side, asked: Side, monkeypatch: pytest.MonkeyPatch) -> None:
    await asker.ask()
    monkeypatch.setattr("a2c_smcp.server.cluster.asking.Asking.take_reply", lambda *_: None)
    began = asyncio.get_running_loop().time()
    with pytest.raises(InternalError, match="lost"):
        await asker.ask()
    assert asyncio.get_running_loop().time() - began < 20


async def test_without_nats_a_request_is_500_at_once_and_all_is_well_when_it_is_back(
    tmp_path: Path, prefix: str
) -> None:
    with running_nats(tmp_path) as nats:
        async with Side(ASKED, nats.url, prefix).open() as asked, Side(ASKER, nats.url, prefix).open() as asker:
            await asker.ask()
            asked.shell.answers = asked.shell.never
            pending = asyncio.create_task(asker.ask(req_id="pending"))
            await eventually(lambda: len(asked.shell.asked) == 2)
            nats.end()
            await eventually(lambda: not asker.connection.is_connected)
            began = asyncio.get_running_loop().time()
            with pytest.raises(InternalError, match="NATS"):
                await asker.ask()
            assert asyncio.get_running_loop().time() - began < 1
            asker.bus.publish(Broadcast("o", "notify:update_config", {}, "sid-b", collapses=True), "meanwhile")
            with pytest.raises(InternalError, match="NATS"):
                await pending
            await eventually(lambda: asked.shell.withdrawn == ["pending"])
            nats.start()
            await eventually(lambda: asker.connection.is_connected and asked.connection.is_connected)
            asked.shell.answers = asked.shell.echo
            assert text_of(await asker.ask()) == "[1]"
            await eventually(lambda: "told meanwhile" in asked.shell.log)


async def test_large_texts_that_a_restart_of_nats_cuts_fail_soon_and_the_next_ones_pass(
    tmp_path: Path, prefix: str
) -> None:
    with running_nats(tmp_path) as nats:
        async with Side(ASKED, nats.url, prefix).open() as asked, Side(ASKER, nats.url, prefix).open() as asker:
            large = "x" * 8_000_000
            for _ in range(2):
                heard = asked.count.heard["chunk"]
                calls = [asyncio.create_task(asker.ask(large)) for _ in range(6)]
                await eventually(lambda heard=heard: asked.count.heard["chunk"] > heard + 20)  # type: ignore[misc]
                await asyncio.to_thread(nats.kill)
                await asyncio.to_thread(nats.start)
                async with asyncio.timeout(20):
                    answers = await asyncio.gather(*calls, return_exceptions=True)
                for answer in answers:
                    if not isinstance(answer, SMCPError):
                        assert not isinstance(answer, BaseException)
                        assert text_of(answer) == large
                await eventually(lambda: asker.connection.is_connected and asked.connection.is_connected)
                await asyncio.sleep(1.5)  # what was cut is noticed within a second on either side
            texts = [str(n) * 3_000_000 for n in range(5)]
            assert [text_of(answer) for answer in await asyncio.gather(*map(asker.ask, texts))] == texts


async def test_an_answer_outlives_a_restart_of_nats(tmp_path: Path, prefix: str) -> None:
    with running_nats(tmp_path) as nats:
        async with Side(ASKED, nats.url, prefix).open() as asked, Side(ASKER, nats.url, prefix).open() as asker:
            release = asyncio.Event()

            async def later(errand: Errand, _: Any) -> Answer | None:
                await release.wait()
                return Answer(Encoded("{}"))

            asked.shell.answers = later
            call = asyncio.create_task(asker.ask())
            await eventually(lambda: asked.shell.asked)
            nats.kill()
            await eventually(lambda: not asked.connection.is_connected)
            release.set()
            nats.start()
            with contextlib.suppress(InternalError):  # NATS took longer to come back than we wait: said, not lost
                assert text_of(await call) == "{}"
            assert [errand.req_id for errand in asked.shell.asked] == ["1"]
