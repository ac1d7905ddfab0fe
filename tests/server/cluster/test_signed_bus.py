"""Two buses that share a key, on a real NATS server, and somebody there who does not have it."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from a2c_smcp.errors import InternalError, NotFoundError
from a2c_smcp.server.cluster.bus_frames import AskFrame, NoticeFrame, PingFrame, encode
from a2c_smcp.server.cluster.line import Subjects
from a2c_smcp.server.cluster.seal import FrameSeal
from a2c_smcp.server.effects import Broadcast
from tests.nats_server import NatsServer
from tests.server.cluster.sides import ASKED, ASKER, Side, text_of
from tests.server.harness import eventually

pytestmark = pytest.mark.usefixtures("patient")

KEY = b"k" * 32
ASK = AskFrame(1, 0, 1e18, 3, "sid-a", "sid-c", "o", "c", "client:tool_call", b"a", b"forged", 30, False)


@pytest.fixture
async def asked(nats: NatsServer, prefix: str) -> AsyncIterator[Side]:
    async with Side(ASKED, nats.url, prefix, FrameSeal([KEY])).open() as side:
        yield side


@pytest.fixture
async def asker(nats: NatsServer, prefix: str, asked: Side) -> AsyncIterator[Side]:
    async with Side(ASKER, nats.url, prefix, FrameSeal([KEY])).open() as side:
        yield side


async def publish(side: Side, prefix: str, data: bytes, sender: str = ASKER) -> None:
    """Write to ASKED in the name of another process, as everybody can who is let into NATS."""
    subjects = Subjects(prefix)
    await side.connection.client.publish(subjects.inbox_of(ASKED), data, subjects.reply(sender, ASKED, 0))


async def test_calls_large_texts_and_announcements_cross_with_signatures(asker: Side, asked: Side) -> None:
    large = "x" * 1_000_000
    assert text_of(await asker.ask(large)) == large
    asker.bus.publish(Broadcast("o", "notify:update_config", {}, "sid-b"), "told")
    await eventually(lambda: asked.shell.log[-1] == "told told")
    assert not asker.count.dropped and not asked.count.dropped


@pytest.mark.parametrize(
    ("seal", "reason"),
    [
        (FrameSeal(), "unsigned"),
        (FrameSeal([b"another key of thirty-two characters"]), "forged"),
        (FrameSeal([KEY]), None),
    ],
    ids=["no key", "another key", "the key"],
)
async def test_who_has_no_key_runs_nothing_and_who_has_it_does(
    asker: Side, asked: Side, prefix: str, seal: FrameSeal, reason: str | None
) -> None:
    await publish(asker, prefix, seal.sign(ASKER, ASKED, encode(ASK, b"[1]"), 0.0))
    if reason is None:
        await eventually(lambda: asked.shell.log == ["asked forged"])
    else:
        await eventually(lambda: asked.count.dropped[reason] == 1)
        await asker.ask(req_id="honest")
        assert asked.shell.log == ["asked honest"]


async def test_what_was_overheard_is_acted_on_once(nats: NatsServer, asker: Side, asked: Side, prefix: str) -> None:
    overheard: list[Any] = []

    async def listen(message: Any) -> None:
        overheard.append(message)

    await asker.connection.client.subscribe(f"{prefix}.p.{ASKED}.m", cb=listen)
    await asker.connection.client.flush()
    await asker.ask()
    asker.bus.publish(Broadcast("o", "notify:update_config", {}, "sid-b"), "once")
    await eventually(lambda: asked.shell.log == ["asked 1", "told once"])
    await eventually(lambda: len(overheard) >= 3)
    copies = list(overheard)
    for message in copies:
        await asker.connection.client.publish(message.subject, message.data, message.reply)
    await eventually(lambda: asked.count.dropped["replayed"] == len(copies))
    await asker.ask(req_id="2")
    assert asked.shell.log == ["asked 1", "told once", "asked 2"]


async def test_what_a_process_said_that_has_gone_does_not_count_again_whatever_the_bucket_shows(
    asker: Side, asked: Side, prefix: str
) -> None:
    """Who may write to the bucket can give a process that has gone a lease."""
    overheard: list[Any] = []

    async def listen(message: Any) -> None:
        overheard.append(message)

    await asker.connection.client.subscribe(f"{prefix}.p.{ASKED}.m", cb=listen)
    await asker.connection.client.flush()
    asker.bus.publish(Broadcast("o", "notify:update_config", {}, "sid-b"), "once")
    await eventually(lambda: asked.shell.log == ["told once"] and len(overheard) == 1)
    await eventually(lambda: asked.bus._peers[ASKER].was_seen)
    asked.everybody.processes.remove(ASKER)
    await eventually(lambda: ASKER not in asked.bus._peers)
    asked.everybody.processes.add(ASKER)
    await publish(asker, prefix, overheard[0].data)
    await eventually(lambda: asked.count.dropped["unknown"] == 1)
    assert asked.shell.log == ["told once"]


async def test_a_first_key_is_rolled_out_while_calls_go_on(nats: NatsServer, prefix: str) -> None:
    grace = FrameSeal([KEY], accept_unsigned=True)
    async with Side(ASKED, nats.url, prefix, grace).open() as asked, Side(ASKER, nats.url, prefix).open() as old:
        assert text_of(await old.ask()) == "[1]"
        assert not asked.count.dropped and not old.count.dropped


async def test_without_the_key_a_process_reaches_nobody(
    nats: NatsServer, prefix: str, asked: Side, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("a2c_smcp.server.cluster.peers.MAX_SILENCE", 1.0)
    async with Side(ASKER, nats.url, prefix).open() as asker:
        with pytest.raises((NotFoundError, InternalError)):
            await asker.ask()
    assert asked.shell.log == [] and asked.count.dropped["unsigned"] > 0


async def test_a_clock_that_stood_still_costs_one_exchange(
    asker: Side, asked: Side, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a virtual machine is paused: what it sends looks as if it had been held back."""
    await asker.ask()
    sign = asker.bus._seal.sign
    monkeypatch.setattr(asker.bus._seal, "sign", lambda *given: sign(given[0], given[1], given[2], -1e6))
    asker.bus.publish(Broadcast("o", "notify:update_config", {}, "sid-b"), "lost")
    await eventually(lambda: asked.count.dropped["late"] == 1)
    await eventually(lambda: asked.count.heard["pong"] == 1)
    assert text_of(await asker.ask()) == "[1]"
    assert asked.shell.told == []


async def test_clocks_that_run_apart_are_compared_now_and_then(
    asker: Side, asked: Side, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is only asked gets no pongs for questions of its own."""
    monkeypatch.setattr("a2c_smcp.server.cluster.seal._PONG_SECONDS", 0.0)
    asker.bus.publish(Broadcast("o", "notify:update_config", {}, "sid-b"), "told")
    await eventually(lambda: asked.count.heard["pong"] > 0)
    assert asked.count.sent["ask"] == 0 and not asked.count.dropped


# --- who is not known


async def test_what_a_new_process_says_waits_until_it_is_known_and_keeps_its_order(
    asker: Side, asked: Side, prefix: str
) -> None:
    newcomer, seal = "N" * 22, FrameSeal([KEY])
    frames = [NoticeFrame(0, "o", "notify:update_config", "sid-n", False)] * 3
    for number, frame in enumerate(frames):
        signed = seal.sign(newcomer, ASKED, encode(frame, str(number).encode()), 0.0)
        await publish(asker, prefix, signed, newcomer)
    await asker.ask()
    assert asked.shell.log == ["asked 1"] and newcomer not in asked.bus._peers
    asked.everybody.processes.add(newcomer)
    await asked.everybody.move_to(2)
    await eventually(lambda: asked.shell.log == ["asked 1", "told 0", "told 1", "told 2"])
    assert not asked.count.dropped


@pytest.mark.parametrize("seal", [None, FrameSeal([KEY])], ids=["without a key", "with a key"])
async def test_processes_that_do_not_exist_cost_no_memory(
    nats: NatsServer, prefix: str, seal: FrameSeal | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("a2c_smcp.server.cluster.newcomers._PATIENCE", 0.2)
    count = 2000
    signing = seal or FrameSeal()
    async with (
        Side(ASKED, nats.url, prefix, seal).open() as asked,
        Side(ASKER, nats.url, prefix, seal).open() as asker,
    ):
        for number in range(count):
            sender = f"stranger-{number}"
            await publish(asker, prefix, signing.sign(sender, ASKED, encode(PingFrame(0.0)), 0.0), sender)
        await asker.ask()
        assert set(asked.bus._peers) <= {ASKER} and asked.count.heard["ping"] <= 1
        await eventually(lambda: asked.count.dropped["unknown"] == count)
        assert not asked.bus._intake._newcomers


async def test_a_message_that_is_nothing_of_ours_is_counted_and_does_no_harm(
    asked: Side, asker: Side, prefix: str
) -> None:
    client = asker.connection.client
    inbox = Subjects(prefix).inbox_of(ASKED)
    for reply in ("", "x", f"{prefix}.p.{ASKER}.r.{ASKED}.x", f"{prefix}.p.{ASKER}.r.{ASKED}"):
        await client.publish(inbox, b"x", reply)
    await publish(asker, prefix, b"\xff" * 10)
    await publish(asker, prefix, FrameSeal([KEY]).sign(ASKER, ASKED, b"\x00\x00\x00\x01x", 0.0))
    await eventually(lambda: asked.count.dropped["malformed"] == 6)
    await asker.ask()
