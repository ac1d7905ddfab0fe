"""Two buses on a real NATS server: messages that come late, not at all, or are not what they should be."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from a2c_smcp.errors import InternalError
from a2c_smcp.server.cluster import tuning
from a2c_smcp.server.cluster.bus import RemoteRequest
from a2c_smcp.server.cluster.bus_frames import CreditFrame, NoticeFrame, PingFrame, encode
from a2c_smcp.server.cluster.post import ChunkWindow
from a2c_smcp.server.effects import Broadcast
from a2c_smcp.server.envelopes import Answer
from tests.nats_server import running_nats
from tests.server.cluster.sides import ASKED, ASKER, Side, text_of
from tests.server.harness import eventually


async def test_what_is_withdrawn_or_cancelled_while_nats_is_away_is_said_when_it_is_back(
    tmp_path: Path, prefix: str
) -> None:
    with running_nats(tmp_path) as nats:
        async with Side(ASKED, nats.url, prefix).open() as asked, Side(ASKER, nats.url, prefix).open() as asker:
            asked.shell.answers = asked.shell.never
            call = asyncio.create_task(asker.ask(req_id="unwanted"))
            await eventually(lambda: asked.shell.asked)
            await asyncio.to_thread(nats.end)
            await eventually(lambda: not asker.connection.is_connected)
            call.cancel()
            for text in ("cancel 1", "cancel 2"):
                asker.bus.publish(Broadcast("o", "notify:tool_call_cancel", {}, "sid-a"), text)
            await asyncio.to_thread(nats.start)
            await eventually(lambda: asker.connection.is_connected and asked.connection.is_connected)
            # Something else waits, so there is no silence by which it would be found out.
            other = asyncio.create_task(asker.ask(req_id="wanted"))
            await eventually(lambda: asked.shell.withdrawn == ["unwanted"])
            await eventually(lambda: {"told cancel 1", "told cancel 2"} <= set(asked.shell.log))
            other.cancel()


@pytest.mark.usefixtures("patient")
async def test_a_message_that_nats_does_not_take_holds_up_no_other(tmp_path: Path, prefix: str) -> None:
    (tmp_path / "nats.conf").write_text("max_payload: 50000\n")
    with running_nats(tmp_path, ("--config", str(tmp_path / "nats.conf"))) as nats:
        async with Side(ASKED, nats.url, prefix).open() as asked, Side(ASKER, nats.url, prefix).open() as asker:

            async def at_length(remote: RemoteRequest, _: Any) -> Answer | None:
                return Answer(f'"{"x" * 60_000}"')

            asked.shell.answers = at_length
            with pytest.raises(InternalError, match="lost"):
                async with asyncio.timeout(20):
                    await asker.ask()
            with pytest.raises(InternalError):
                async with asyncio.timeout(20):
                    await asker.ask("x" * 60_000)
            asked.shell.answers = asked.shell.echo
            assert text_of(await asker.ask()) == "[1]"


async def test_a_pong_that_was_long_on_its_way_does_not_make_the_next_requests_too_late(
    asker: Side, asked: Side, monkeypatch: pytest.MonkeyPatch
) -> None:
    await asker.ask()
    asked.shell.answers = asked.shell.never
    waiting = asyncio.create_task(asker.ask(req_id="waiting"))
    # As a process that was stopped before it had read the pong, and wakes.
    held: list[Any] = []
    take = asker.bus._take_frame
    monkeypatch.setattr(asker.bus, "_take_frame", lambda *frame: held.append(frame))
    await eventually(lambda: asker.count.sent["ping"] >= 2 and held)
    late = held[-1]
    monkeypatch.setattr(asker.bus, "_take_frame", take)
    waiting.cancel()
    await asyncio.sleep(3)
    take(*late)
    asked.shell.answers = asked.shell.echo
    assert text_of(await asker.ask()) == "[1]"


async def test_nothing_is_started_for_a_caller_whose_own_time_is_over(
    asker: Side, asked: Side, monkeypatch: pytest.MonkeyPatch
) -> None:
    await asker.ask()
    held: list[Any] = []
    take = asked.bus._take_frame
    monkeypatch.setattr(asked.bus, "_take_frame", lambda *frame: held.append(frame))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await asker.ask(req_id="short", seconds=0.5)
    await eventually(lambda: len(held) >= 2)
    monkeypatch.setattr(asked.bus, "_take_frame", take)
    take(*held[0])  # that it was withdrawn is not known yet
    await asyncio.sleep(0.2)
    assert [remote.message.request["req_id"] for remote in asked.shell.asked] == ["1"]


async def test_what_cannot_wait_for_a_membership_any_longer_does_not_wait_one_after_another(
    asker: Side, asked: Side, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def stuck(revision: int) -> None:
        await asyncio.sleep(1)
        raise InternalError("NATS did not show the change in time")

    monkeypatch.setattr(asked.everybody, "reached", stuck)
    asker.everybody.revision = 2
    for n in range(60):
        asker.bus.publish(Broadcast("o", "notify:update_config", {}, f"sid-{n}", collapses=True), str(n))
    await eventually(lambda: len(asked.shell.told) == 60)
    assert asked.shell.log == [f"told {n}" for n in range(60)]


@pytest.mark.usefixtures("patient")
async def test_ids_may_have_any_character(asker: Side, asked: Side) -> None:
    for req_id in ("\ud800", "\0", "三\U0001f600", ""):
        assert text_of(await asker.ask(req_id=req_id)) == "[1]"
        assert asked.shell.asked[-1].message.request["req_id"] == req_id


async def test_nothing_is_kept_of_strangers_and_what_they_write_is_not_heard(
    asker: Side, asked: Side, prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    client = asker.connection.client
    for n in range(300):
        frames = (encode(PingFrame(1.0)), encode(NoticeFrame(2**60, "o", "notify:x", "sid", False)), b"", b"\xff" * 99)
        for frame in frames:
            await client.publish(f"{prefix}.p.{ASKED}.m", frame, f"{prefix}.p.stranger{n}.r.{ASKED}.0")
        await client.publish(f"{prefix}.p.{ASKED}.m", b"nonsense", "nowhere")
        await client.publish(f"{prefix}.p.{ASKED}.{n}", b"nonsense")
    await eventually(lambda: asked.count.dropped == {"unknown": 1200, "malformed": 600})
    assert text_of(await asker.ask()) == "[1]"
    assert set(asked.bus._peers) <= {ASKER}
    assert asked.shell.told == [] and asked.count.heard["notice"] == 0
    assert 0 < len([record for record in caplog.records if "dropped a message" in record.message]) < 200


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("direction", ["there", "back"])
async def test_a_large_text_whose_chunks_are_never_said_to_have_arrived_is_given_up_and_the_next_passes(
    asker: Side, asked: Side, monkeypatch: pytest.MonkeyPatch, direction: str
) -> None:
    async def at_length(remote: RemoteRequest, _: Any) -> Answer | None:
        return Answer(f'"{"x" * 2_000_000}"')

    monkeypatch.setattr(tuning, "TIMES", replace(tuning.TIMES, chunk=5.0))
    await asker.ask()
    asked.shell.answers = asked.shell.echo if direction == "there" else at_length
    body = "x" * 2_000_000 if direction == "there" else "[1]"
    sender = (asker if direction == "there" else asked).bus
    take = sender._take_frame
    monkeypatch.setattr(
        sender, "_take_frame", lambda peer, frame, text: isinstance(frame, CreditFrame) or take(peer, frame, text)
    )
    with pytest.raises(InternalError, match="lost"):
        async with asyncio.timeout(60):
            await asker.ask(body)
    monkeypatch.setattr(sender, "_take_frame", take)
    monkeypatch.setattr(tuning, "TIMES", replace(tuning.TIMES, chunk=20.0))
    assert len(text_of(await asker.ask(body))) >= 2_000_000


async def test_a_place_in_the_window_is_not_lost_with_the_one_that_waited_for_it() -> None:
    window = ChunkWindow(1)
    assert await window.take()
    waiting = asyncio.create_task(window.take())
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    window.give()
    async with asyncio.timeout(1):
        assert await window.take()
    given = asyncio.create_task(window.take())
    await asyncio.sleep(0)
    window.give()
    given.cancel()
    await asyncio.gather(given, return_exceptions=True)
    async with asyncio.timeout(1):
        assert await window.take()
