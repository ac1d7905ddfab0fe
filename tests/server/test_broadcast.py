"""Broadcasts to a large room: in order, in turns with others, repeats as one, and none without end."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
import socketio

from a2c_smcp.server import server_options
from a2c_smcp.server.broadcast import _MOST_WAITING, SMCPManager
from a2c_smcp.server.outbox import NoticePacket

ROOM = "office:o"
UPDATE, ENTER, LEAVE = "notify:update_desktop", "notify:enter_office", "notify:leave_office"


class Reader:
    """Where a connection would be: it keeps what it is sent."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def enqueue(self, notice: NoticePacket) -> None:
        self.heard.append(notice.event)


class Office:
    """A room of our manager's in a real server, whose readers are ours."""

    def __init__(self, members: int) -> None:
        self.server = socketio.AsyncServer(**server_options(1_000_000))
        self.manager: SMCPManager = self.server.manager
        self.manager.set_server(self.server)
        self.readers: dict[str, Reader] = {}
        for number in range(members):
            self.enter(f"m{number}")

    def enter(self, sid: str) -> Reader:
        reader = self.readers[sid] = self.server.eio.sockets[f"eio-{sid}"] = Reader()
        self.manager.basic_enter_room(sid, "/smcp", None, eio_sid=f"eio-{sid}")
        self.manager.basic_enter_room(sid, "/smcp", ROOM)
        return reader

    def say(self, event: str, sender: str = "m0") -> None:
        notice = NoticePacket(f"2/smcp,{event}", sender, event, collapses=event.startswith("notify:update"))
        self.manager.broadcast("/smcp", ROOM, notice)

    async def heard_all(self) -> None:
        await asyncio.gather(*self.manager._pumps)


async def test_repeats_that_wait_for_a_room_are_one() -> None:
    office = Office(60)
    for _ in range(6000):
        office.say(UPDATE)
    assert len(office.manager._outgoing["/smcp", ROOM].waiting) == 1
    await office.heard_all()
    assert [reader.heard for reader in office.readers.values()] == [[]] + [[UPDATE]] * 59
    assert not office.manager._waiting_of


@pytest.mark.parametrize("between", [[ENTER], [LEAVE], [LEAVE, ENTER]])
async def test_nothing_collapses_across_the_senders_enter_or_leave(between: list[str]) -> None:
    office = Office(60)
    for event in (UPDATE, *between, UPDATE, UPDATE):
        office.say(event)
    await office.heard_all()
    assert office.readers["m59"].heard == [UPDATE, *between, UPDATE]


async def test_what_some_have_heard_already_is_said_again() -> None:
    office = Office(60)
    office.say(UPDATE)
    await asyncio.sleep(0)
    assert office.readers["m1"].heard == [UPDATE]
    assert office.readers["m59"].heard == []
    office.say(UPDATE)
    office.say(UPDATE)
    await office.heard_all()
    assert office.readers["m1"].heard == office.readers["m59"].heard == [UPDATE, UPDATE]


async def test_who_enters_before_a_repeat_hears_of_it() -> None:
    office = Office(60)
    office.say(UPDATE)
    late = office.enter("late")
    office.say(UPDATE)
    later = office.enter("later")
    await office.heard_all()
    assert late.heard == [UPDATE]
    assert later.heard == []


async def test_a_sender_of_too_much_is_behind_until_it_is_heard() -> None:
    office = Office(60)
    for _ in range(_MOST_WAITING):
        assert not office.manager.is_behind("m0")
        office.say("notify:tool_call_cancel")
    assert office.manager.is_behind("m0")
    assert not office.manager.is_behind("m1")
    await office.heard_all()
    assert not office.manager.is_behind("m0")
    assert len(office.readers["m59"].heard) == _MOST_WAITING


async def test_a_small_room_hears_at_once() -> None:
    office = Office(3)
    for _ in range(3):
        office.say(UPDATE)
    assert office.readers["m1"].heard == [UPDATE] * 3  # its connection's queue knows repeats, too


async def test_whatever_else_is_emitted_to_a_room_is_heard_in_order() -> None:
    office = Office(60)
    emit: Callable[..., Any] = office.manager.emit
    for number in range(3):
        await emit(f"mine-{number}", {"n": number}, "/smcp", room=ROOM, skip_sid=["m1"])
    await office.heard_all()
    assert office.readers["m0"].heard == ["mine-0", "mine-1", "mine-2"]
    assert office.readers["m1"].heard == []
