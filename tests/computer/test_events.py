"""The stream of events: everyone hears everything, nobody waits for a slow reader, and that one is told."""

import anyio

from a2c_smcp.computer.events import ConfigChanged, EventHub, EventsLost, RestartOffered, ToolListChanged


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
