"""Notifications to a large room: in order, in turns with others, repeats as one, and none without end."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from a2c_smcp.server.port import Notice
from a2c_smcp.server.rooms import _MOST_WAITING, Rooms

ROOM = "o"
UPDATE, ENTER, LEAVE = "notify:update_desktop", "notify:enter_office", "notify:leave_office"


class Reader(SimpleNamespace):
    """Where a line would be: it keeps what it is told."""

    def __init__(self, sid: str) -> None:
        self.sid = sid
        self.heard: list[str] = []

    def notify(self, notice: Notice) -> None:
        self.heard.append(notice.event)


class Crowd:
    """A room whose readers are ours."""

    def __init__(self, members: int) -> None:
        self.rooms = Rooms()
        self.readers: dict[str, Any] = {}
        for number in range(members):
            self.enter(f"m{number}")

    def enter(self, sid: str) -> Any:
        reader: Any = Reader(sid)
        self.readers[sid] = reader
        self.rooms.enter(ROOM, reader)
        return reader

    def say(self, event: str, sender: str = "m0") -> None:
        self.rooms.tell(ROOM, Notice(f"2/smcp,{event}", sender, event, collapses=event.startswith("notify:update")))

    async def heard_all(self) -> None:
        await asyncio.gather(*self.rooms._pumps)


async def test_repeats_that_wait_for_a_room_are_one() -> None:
    office = Crowd(60)
    for _ in range(6000):
        office.say(UPDATE)
    assert len(office.rooms._undelivered[ROOM].waiting) == 1
    await office.heard_all()
    assert [reader.heard for reader in office.readers.values()] == [[]] + [[UPDATE]] * 59
    assert not office.rooms._waiting_of


@pytest.mark.parametrize("between", [[ENTER], [LEAVE], [LEAVE, ENTER]])
async def test_nothing_collapses_across_the_senders_enter_or_leave(between: list[str]) -> None:
    office = Crowd(60)
    for event in (UPDATE, *between, UPDATE, UPDATE):
        office.say(event)
    await office.heard_all()
    assert office.readers["m59"].heard == [UPDATE, *between, UPDATE]


async def test_what_some_have_heard_already_is_said_again() -> None:
    office = Crowd(60)
    office.say(UPDATE)
    await asyncio.sleep(0)
    assert office.readers["m1"].heard == [UPDATE]
    assert office.readers["m59"].heard == []
    office.say(UPDATE)
    office.say(UPDATE)
    await office.heard_all()
    assert office.readers["m1"].heard == office.readers["m59"].heard == [UPDATE, UPDATE]


async def test_who_enters_before_a_repeat_hears_of_it() -> None:
    office = Crowd(60)
    office.say(UPDATE)
    late = office.enter("late")
    office.say(UPDATE)
    later = office.enter("later")
    await office.heard_all()
    assert late.heard == [UPDATE]
    assert later.heard == []


async def test_a_sender_of_too_much_is_behind_until_it_is_heard() -> None:
    office = Crowd(60)
    for _ in range(_MOST_WAITING):
        assert not office.rooms.is_behind("m0")
        office.say("notify:tool_call_cancel")
    assert office.rooms.is_behind("m0")
    assert not office.rooms.is_behind("m1")
    await office.heard_all()
    assert not office.rooms.is_behind("m0")
    assert len(office.readers["m59"].heard) == _MOST_WAITING


async def test_a_small_room_hears_at_once() -> None:
    office = Crowd(3)
    for _ in range(3):
        office.say(UPDATE)
    assert office.readers["m1"].heard == [UPDATE] * 3  # its connection's queue knows repeats, too


def test_who_leaves_is_in_no_room_and_an_empty_room_is_forgotten() -> None:
    office = Crowd(2)
    office.rooms.enter("p", office.readers["m0"])
    office.rooms.leave("elsewhere", "m0")
    office.rooms.forget("m0")
    office.rooms.forget("nobody")
    assert office.rooms.sessions(ROOM) == ["m1"]
    office.say(ENTER, "m1")
    office.rooms.leave(ROOM, "m1")
    assert len(office.rooms) == 0
    assert [reader.heard for reader in office.readers.values()] == [[], []]
