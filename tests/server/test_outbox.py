"""What waits for a reader: repeats collapse, never across a coming or going, and a request leaves room for others."""

import asyncio

import engineio
import pytest
from engineio.packet import MESSAGE, Packet

from a2c_smcp.server.outbox import NoticePacket, Outbox, Queued
from a2c_smcp.server.sockets import BoundedAsyncSocket


def update(sender: str = "c", event: str = "notify:update_desktop") -> NoticePacket:
    return NoticePacket(f'2/smcp,["{event}",{{"computer":"{sender}"}}]', sender, event, collapses=True)


def said(sender: str, event: str) -> NoticePacket:
    return NoticePacket(f'2/smcp,["{event}",{{}}]', sender, event, collapses=False)


def taken(outbox: Outbox, *packets: Packet) -> list[Packet]:
    return [pkt for pkt in packets if outbox.add(pkt) is Queued.TAKEN]


def test_repeats_of_one_sender_collapse_while_the_first_one_waits() -> None:
    outbox = Outbox(1000)
    first, other, elsewhere = update(), update(event="notify:update_finder"), update("d")
    assert taken(outbox, first, update(), other, update(), elsewhere, update("d")) == [first, other, elsewhere]
    assert outbox.queued_bytes == sum(len(pkt.data) for pkt in (first, other, elsewhere))


def test_nothing_collapses_into_what_its_reader_may_have_seen() -> None:
    outbox = Outbox(1000)
    first, second = update(), update()
    outbox.add(first)
    outbox.begin(first)
    assert outbox.add(second) is Queued.TAKEN
    outbox.end(first)
    assert outbox.add(update()) is Queued.UNNEEDED
    outbox.begin(second)
    outbox.end(second)
    assert outbox.queued_bytes == 0
    assert outbox.add(update()) is Queued.TAKEN


@pytest.mark.parametrize("event", ["notify:enter_office", "notify:leave_office"])
def test_nothing_collapses_across_the_senders_enter_or_leave(event: str) -> None:
    outbox = Outbox(1000)
    story = [update(), said("c", event), update()]
    assert taken(outbox, *story, update()) == story
    outbox.begin(story[0])  # the first of them says nothing of the second
    assert outbox.add(update()) is Queued.UNNEEDED
    assert taken(Outbox(1000), update(), said("d", event), update())[1:] != story[1:]


def test_cancels_never_collapse() -> None:
    cancels = [said("a", "notify:tool_call_cancel") for _ in range(3)]
    assert taken(Outbox(1000), *cancels) == cancels


def test_a_reader_falls_behind_once() -> None:
    outbox = Outbox(10)
    assert outbox.add(Packet(MESSAGE, "x" * 10)) is Queued.TAKEN
    assert outbox.add(Packet(MESSAGE, "x")) is Queued.BEHIND
    assert outbox.add(Packet(MESSAGE, "x")) is Queued.UNNEEDED


def test_a_request_leaves_room_for_notifications_and_takes_all_of_an_empty_queue() -> None:
    outbox = Outbox(800)
    assert not outbox.add_if_it_fits(Packet(MESSAGE, "x" * 801))
    assert outbox.add_if_it_fits(Packet(MESSAGE, "x" * 800))
    outbox.end(Packet(MESSAGE, "x" * 800))
    assert outbox.add_if_it_fits(Packet(MESSAGE, "x" * 350))
    assert outbox.add_if_it_fits(Packet(MESSAGE, "x" * 350))
    assert not outbox.add_if_it_fits(Packet(MESSAGE, "x"))
    assert outbox.add(Packet(MESSAGE, "x" * 100)) is Queued.TAKEN


async def test_six_thousand_updates_wait_for_a_slow_reader_as_one() -> None:
    socket = BoundedAsyncSocket(engineio.AsyncServer(async_mode="asgi"), "s")
    socket.outbox = Outbox(1_000_000)
    for _ in range(6000):
        socket.enqueue(update())
    assert socket.queue.qsize() == 1
    assert len(await asyncio.wait_for(socket.poll(), 20)) == 1
    socket.enqueue(update())
    assert socket.queue.qsize() == 1
