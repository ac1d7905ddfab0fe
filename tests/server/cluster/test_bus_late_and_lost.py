"""Two buses on a real NATS server: messages that come late, not at all, or are not what they should be."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from a2c_smcp.errors import InternalError
from a2c_smcp.server.bus import Errand
from a2c_smcp.server.effects import Broadcast
from a2c_smcp.server.envelopes import Answer
from a2c_smcp.wire import Encoded
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


async def test_a_message_that_nats_does_not_take_holds_up_no_other(tmp_path: Path, prefix: str) -> None:
    (tmp_path / "nats.conf").write_text("max_payload: 50000\n")
    with running_nats(tmp_path, ("--config", str(tmp_path / "nats.conf"))) as nats:
        async with Side(ASKED, nats.url, prefix).open() as asked, Side(ASKER, nats.url, prefix).open() as asker:

            async def at_length(errand: Errand, _: Any) -> Answer | None:
                return Answer(Encoded(f'"{"x" * 60_000}"'))

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
    assert [errand.req_id for errand in asked.shell.asked] == ["1"]
