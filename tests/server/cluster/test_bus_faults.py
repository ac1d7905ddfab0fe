"""Two buses on a real NATS server: what happens when one of them is gone, stopped or cut off, or NATS is."""

import asyncio
import contextlib
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from nats.errors import NoRespondersError
from nats.errors import TimeoutError as NatsTimeoutError

from a2c_smcp.errors import InternalError, NotFoundError, SMCPError, TooManyRequestsError
from a2c_smcp.server.cluster import tuning
from a2c_smcp.server.cluster.bus import RemoteRequest
from a2c_smcp.server.effects import Broadcast
from a2c_smcp.server.envelopes import Answer
from tests.nats_server import NatsServer, running_nats
from tests.server.cluster.sides import ASKED, ASKER, Side, text_of
from tests.server.harness import eventually


async def test_a_process_that_is_not_there_is_404_after_two_refusals(nats: NatsServer, prefix: str) -> None:
    async with Side(ASKER, nats.url, prefix).open() as asker:
        began = asyncio.get_running_loop().time()
        with pytest.raises(NotFoundError):
            await asker.ask()
        assert 1.5 < asyncio.get_running_loop().time() - began < 15
        pings = asker.count.sent["ping"]
        with pytest.raises(NotFoundError):
            await asker.ask()
        assert asker.count.sent["ping"] - pings <= 2, "it is known to refuse, and not waited for again"


async def nobody_takes(side: Side, subject: str) -> None:
    """Wait until NATS knows that a process has gone."""
    while True:
        try:
            await side.connection.client.request(subject, b"", timeout=0.2)
        except NoRespondersError:
            return
        except NatsTimeoutError:
            pass


@pytest.mark.usefixtures("patient")
async def test_a_request_that_nobody_took_is_sent_again_when_its_process_is_back(
    nats: NatsServer, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "TIMES", replace(tuning.TIMES, refusals_apart=15.0))
    async with Side(ASKER, nats.url, prefix).open() as asker:
        async with Side(ASKED, nats.url, prefix).open():
            await asker.ask()
        await nobody_takes(asker, f"{prefix}.p.{ASKED}.m")
        call = asyncio.create_task(asker.ask())
        await eventually(lambda: asker.bus._peers[ASKED].line.health.is_refusing())
        async with Side(ASKED, nats.url, prefix).open() as back:
            assert text_of(await call) == "[1]"
            assert [remote.message.request["req_id"] for remote in back.shell.asked] == ["1"]


async def test_what_is_announced_while_nats_is_stopped_waits_within_a_bound(tmp_path: Path) -> None:
    notice, text = Broadcast("o", "notify:tool_call_cancel", {}, "sid-a"), "x" * 100_000
    with running_nats(tmp_path) as nats:
        async with Side(ASKED, nats.url, "p").open() as asked, Side(ASKER, nats.url, "p").open() as asker:
            nats.send(signal.SIGSTOP)
            most = 0
            try:
                for _ in range(1000):
                    with contextlib.suppress(TooManyRequestsError):
                        asker.bus.publish(notice, text)
                    await asyncio.sleep(0)  # and nats-py has it
                    most = max(most, asker.connection.client.pending_data_size)
            finally:
                nats.send(signal.SIGCONT)
            assert most < 40_000_000
            async with asyncio.timeout(60):
                while "told later" not in asked.shell.log:
                    with contextlib.suppress(TooManyRequestsError):
                        asker.bus.publish(notice, "later")
                    await asyncio.sleep(0.05)


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


async def test_a_process_is_not_silent_while_nobody_waits_for_it(asker: Side, asked: Side) -> None:
    asked.shell.answers = asked.shell.never
    call = asyncio.create_task(asker.ask())
    await eventually(lambda: asked.shell.asked)
    call.cancel()
    await eventually(lambda: asked.shell.withdrawn)
    await asyncio.sleep(3.2)  # longer than a process may be silent
    asked.shell.answers = asked.shell.echo
    assert text_of(await asker.ask()) == "[1]"


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


@pytest.mark.usefixtures("patient")
async def test_a_lost_answer_is_noticed(asker: Side, asked: Side, monkeypatch: pytest.MonkeyPatch) -> None:
    await asker.ask()
    monkeypatch.setattr("a2c_smcp.server.cluster.outgoing.OutgoingRequests.take_reply", lambda *_: None)
    began = asyncio.get_running_loop().time()
    with pytest.raises(InternalError, match="lost"):
        await asker.ask()
    assert asyncio.get_running_loop().time() - began < 20


async def test_without_nats_a_request_is_500_soon_and_then_at_once_and_all_is_well_when_it_is_back(
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
            sent = asker.count.sent.copy()
            with pytest.raises(InternalError, match="NATS"):
                await asker.ask()  # another NATS server might have taken the connection, so it waits for a moment
            assert asker.count.sent["ask"] == sent["ask"]
            with pytest.raises(InternalError, match="NATS"):
                await pending
            sent = asker.count.sent.copy()
            with pytest.raises(InternalError, match="NATS"):
                await asker.ask()
            assert asker.count.sent == sent, "at once: nothing was tried, and no second has passed"
            await eventually(lambda: asked.shell.withdrawn == ["pending"])
            asker.bus.publish(Broadcast("o", "notify:update_config", {}, "sid-b", collapses=True), "meanwhile")
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
            for cuts in (1, 2):
                heard = asked.count.heard["chunk"]
                calls = [asyncio.create_task(asker.ask(large)) for _ in range(6)]
                await eventually(lambda heard=heard: asked.count.heard["chunk"] > heard + 20)  # type: ignore[misc]
                await asyncio.to_thread(nats.kill)
                await asyncio.to_thread(nats.start)
                async with asyncio.timeout(40):
                    answers = await asyncio.gather(*calls, return_exceptions=True)
                for answer in answers:
                    if not isinstance(answer, SMCPError):
                        assert not isinstance(answer, BaseException)
                        assert text_of(answer) == large
                await eventually(lambda: asker.connection.is_connected and asked.connection.is_connected)
                # What was cut is noticed on either side, and what they told each other of it has come.
                for side in (asker, asked):
                    await eventually(lambda side=side, cuts=cuts: side.bus._reconnects >= cuts)  # type: ignore[misc]
                await asker.ask()
            texts = [str(n) * 3_000_000 for n in range(5)]
            assert [text_of(answer) for answer in await asyncio.gather(*map(asker.ask, texts))] == texts


async def test_an_answer_outlives_a_restart_of_nats(tmp_path: Path, prefix: str) -> None:
    with running_nats(tmp_path) as nats:
        async with Side(ASKED, nats.url, prefix).open() as asked, Side(ASKER, nats.url, prefix).open() as asker:
            release = asyncio.Event()

            async def later(remote: RemoteRequest, _: Any) -> Answer | None:
                await release.wait()
                return Answer("{}")

            asked.shell.answers = later
            call = asyncio.create_task(asker.ask())
            await eventually(lambda: asked.shell.asked)
            nats.kill()
            await eventually(lambda: not asked.connection.is_connected)
            release.set()
            nats.start()
            # NATS took longer to come back than we wait: said, not lost.
            with contextlib.suppress(InternalError, NotFoundError):
                assert text_of(await call) == "{}"
            assert [remote.message.request["req_id"] for remote in asked.shell.asked] == ["1"]
