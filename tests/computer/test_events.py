"""The stream of events: everyone hears everything, nobody waits for a slow reader, and that one is told."""

import anyio

from a2c_smcp.computer.calls.log import ProgressReport
from a2c_smcp.computer.watching.events import (
    BUFFERED_BYTES,
    CallProgressed,
    ConfigChanged,
    EventHub,
    EventsLost,
    RestartOffered,
    ToolListChanged,
)


def offered(number: int) -> RestartOffered:
    return RestartOffered(str(number), "")


async def test_every_reader_hears_what_happens_while_it_listens() -> None:
    hub = EventHub()
    hub.publish(ConfigChanged())
    async with hub.subscribe() as one, hub.subscribe() as two:
        hub.publish(ToolListChanged())
        assert await anext(one) == await anext(two) == ToolListChanged()
    hub.publish(ConfigChanged())
    assert hub._streams == set()


async def test_a_reader_that_waits_is_woken() -> None:
    hub = EventHub()
    async with hub.subscribe() as events, anyio.create_task_group() as tasks:
        heard: list[object] = []

        async def read() -> None:
            heard.append(await anext(events))

        tasks.start_soon(read)
        await anyio.wait_all_tasks_blocked()
        hub.publish(ToolListChanged())
    assert heard == [ToolListChanged()]


async def test_a_slow_reader_loses_the_oldest_and_is_told_how_many() -> None:
    hub = EventHub()
    async with hub.subscribe(2) as slow, hub.subscribe() as quick:
        for number in range(5):
            hub.publish(offered(number))
        assert await anext(slow) == EventsLost(3)
        assert [await anext(slow), await anext(slow)] == [offered(3), offered(4)]
        hub.publish(offered(5))
        assert await anext(slow) == offered(5)
        assert [await anext(quick) for _ in range(6)] == [offered(number) for number in range(6)]


async def test_a_reader_gets_the_kinds_that_it_wants_and_what_nobody_wants_is_known() -> None:
    hub = EventHub()
    assert not hub.wants(ConfigChanged)
    async with hub.subscribe(kinds=[ConfigChanged]) as few:
        assert hub.wants(ConfigChanged)
        assert not hub.wants(CallProgressed)
        async with hub.subscribe():
            assert hub.wants(CallProgressed)
        assert not hub.wants(CallProgressed)
        hub.publish(ToolListChanged())
        hub.publish(ConfigChanged())
        assert await anext(few) == ConfigChanged()
    assert not hub.wants(ConfigChanged)


async def test_events_have_numbers_also_around_a_gap() -> None:
    hub = EventHub()
    hub.publish(ConfigChanged())
    async with hub.subscribe(2) as events:
        for number in range(4):
            hub.publish(offered(number))
        assert hub.number == 5
        assert (await anext(events), events.number) == (EventsLost(2), 3)
        assert (await anext(events), events.number) == (offered(2), 4)
        assert (await anext(events), events.number) == (offered(3), 5)


async def test_the_latest_report_of_a_call_takes_the_place_of_the_one_that_waits() -> None:
    hub = EventHub()
    async with hub.subscribe(4) as events:
        for step in range(1000):
            hub.publish(CallProgressed("a", ProgressReport(step)))
            hub.publish(CallProgressed("b", ProgressReport(step)))
        hub.publish(ConfigChanged())
        assert await anext(events) == CallProgressed("a", ProgressReport(999))
        assert events.number == 1999
        hub.publish(CallProgressed("a", ProgressReport(1000)))
        assert [await anext(events) for _ in range(3)] == [
            CallProgressed("b", ProgressReport(999)),
            ConfigChanged(),
            CallProgressed("a", ProgressReport(1000)),
        ]


async def test_what_waits_for_a_slow_reader_has_a_bound_in_bytes() -> None:
    hub = EventHub()
    async with hub.subscribe() as events:
        for number in range(5):
            hub.publish(offered(number), BUFFERED_BYTES // 2)
        assert await anext(events) == EventsLost(3)
        assert await anext(events) == offered(3)
        hub.publish(offered(5), 2 * BUFFERED_BYTES)  # too large for any bound: the reader still hears of it
        assert await anext(events) == EventsLost(1)
        assert await anext(events) == offered(5)
