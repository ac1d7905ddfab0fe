"""One task behind a connection: who opens it hears how the first attempt went, whatever ends it."""

import asyncio
from contextlib import suppress

import pytest

from a2c_smcp.errors import ConnectionLostError
from a2c_smcp.link import supervision
from a2c_smcp.link.supervision import First, Supervisor


class Work:
    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.runs = 0
        self.first: First | None = None

    async def __call__(self, first: First) -> None:
        self.runs += 1
        self.first = first
        self.begun.set()
        try:
            await asyncio.sleep(3600)
        finally:
            self.runs -= 1


async def test_opening_waits_for_the_first_connection_and_a_second_opening_for_nothing() -> None:
    work = Work()
    supervisor = Supervisor(work, "test")
    opening = asyncio.create_task(supervisor.open())
    await work.begun.wait()
    assert not opening.done()
    await supervisor.open()
    assert work.first is not None
    work.first.set_result(None)
    await opening
    assert (supervisor.is_running, work.runs) == (True, 1)
    await supervisor.close()
    await supervisor.close()
    assert (supervisor.is_running, work.runs) == (False, 0)


async def test_a_failure_is_raised_and_it_can_be_opened_again() -> None:
    outcomes: list[Exception | None] = [OSError("no"), None]

    async def work(first: First) -> None:
        outcome = outcomes.pop(0)
        if outcome is not None:
            first.set_exception(outcome)
            return
        first.set_result(None)
        await asyncio.sleep(3600)

    supervisor = Supervisor(work, "test")
    with pytest.raises(OSError, match="no"):
        await supervisor.open()
    was_running = supervisor.is_running
    await supervisor.open()
    assert (was_running, supervisor.is_running) == (False, True)
    await supervisor.close()


async def test_closing_while_it_opens_tells_who_waits() -> None:
    work = Work()
    supervisor = Supervisor(work, "test")
    opening = asyncio.create_task(supervisor.open())
    await work.begun.wait()
    await supervisor.close()
    with pytest.raises(ConnectionLostError, match="closed before it was connected"):
        await asyncio.wait_for(opening, 10)


async def test_who_gives_up_opening_ends_the_work() -> None:
    work = Work()
    supervisor = Supervisor(work, "test")
    opening = asyncio.create_task(supervisor.open())
    await work.begun.wait()
    opening.cancel()
    await asyncio.wait({opening})
    assert opening.cancelled()
    assert (supervisor.is_running, work.runs) == (False, 0)


async def test_work_may_begin_without_a_first_attempt_that_can_fail() -> None:
    work = Work()
    supervisor = Supervisor(work, "test")
    supervisor.begin()
    await work.begun.wait()
    assert work.first is not None and work.first.done()
    await supervisor.close()


async def test_a_fault_of_the_work_is_logged_and_told(caplog: pytest.LogCaptureFixture) -> None:
    async def work(_: First) -> None:
        raise ZeroDivisionError("a fault of ours")

    supervisor = Supervisor(work, "test")
    with pytest.raises(ZeroDivisionError):
        await supervisor.open()
    assert "a fault of ours" in caplog.text


async def test_work_whose_cancellation_was_lost_is_cancelled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervision, "_CANCEL_AGAIN", 0.05)

    async def work(first: First) -> None:
        first.set_result(None)
        with suppress(asyncio.CancelledError):  # as `asyncio.wait_for` does sometimes
            await asyncio.sleep(600)
        await asyncio.sleep(600)

    supervisor = Supervisor(work, "test")
    await supervisor.open()
    await asyncio.wait_for(supervisor.close(), 60)
    assert not supervisor.is_running
