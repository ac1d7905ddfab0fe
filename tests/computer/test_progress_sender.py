"""The pace at which the reports of a call leave the computer."""

import asyncio
from typing import Any

import pytest

from a2c_smcp.computer.socketio.progress_sender import ProgressSender
from a2c_smcp.smcp import ToolCallReq, ToolProgress

REQUEST: ToolCallReq = {
    "agent": "a",
    "req_id": "1",
    "computer": "c",
    "tool_name": "t",
    "params": {},
    "timeout": 60,
    "progress": True,
}


class Sent(list[tuple[float, ToolProgress]]):
    async def send(self, report: ToolProgress) -> None:
        self.append((asyncio.get_running_loop().time(), report))

    @property
    def progress(self) -> list[float]:
        return [report["progress"] for _, report in self]


async def test_a_report_has_the_ids_of_its_request_and_nothing_that_is_not_there() -> None:
    sent = Sent()
    sender = ProgressSender(REQUEST, sent.send)
    sender.take(1, None, None)
    await sender.end()
    sender = ProgressSender(REQUEST, sent.send)
    sender.take(2, 3, "on")
    await sender.end()
    ids = {"agent": "a", "req_id": "1", "computer": "c"}
    assert [report for _, report in sent] == [
        {**ids, "progress": 1},
        {**ids, "progress": 2, "total": 3, "message": "on"},
    ]


async def test_at_most_ten_leave_in_any_second_and_the_last_always() -> None:
    sent = Sent()
    sender = ProgressSender(REQUEST, sent.send)
    for step in range(1, 201):
        sender.take(step, 200, None)
        await asyncio.sleep(0.01)
    await sender.end()
    assert sent.progress[-1] == 200
    assert sent.progress == sorted(set(sent.progress))
    for began, _ in sent:
        assert sum(began <= when < began + 1 for when, _ in sent) <= 10
    assert len(sent) > 10


async def test_the_first_leaves_at_once_and_one_that_waits_is_the_latest() -> None:
    sent = Sent()
    sender = ProgressSender(REQUEST, sent.send)
    sender.take(1, None, None)
    await asyncio.sleep(0)
    assert sent.progress == [1]
    for step in (2, 3, 4):
        sender.take(step, None, None)
    while len(sent) < 2:  # noqa: ASYNC110 - until it is its turn
        await asyncio.sleep(0.01)
    assert sent.progress == [1, 4]
    sender.stop()


async def test_nothing_leaves_after_the_end() -> None:
    sent = Sent()
    sender = ProgressSender(REQUEST, sent.send)
    sender.take(1, None, None)
    await asyncio.sleep(0)
    sender.take(2, None, None)
    await sender.end()
    await sender.end()
    await asyncio.sleep(0.3)
    assert sent.progress == [1, 2]


@pytest.mark.parametrize("waits", [True, False])
async def test_a_connection_that_takes_nothing_collects_nothing(waits: bool) -> None:
    """While one report waits to be sent, the others make way for the latest."""
    sent, gate = Sent(), asyncio.Event()

    async def send(report: Any) -> None:
        await sent.send(report)
        if waits:
            await gate.wait()

    sender = ProgressSender(REQUEST, send)
    for step in range(1000):
        sender.take(step, None, None)
        await asyncio.sleep(0)
    gate.set()
    await sender.end()
    assert sent.progress[0] == 0
    assert sent.progress[-1] == 999
    assert len(sent) < 20
