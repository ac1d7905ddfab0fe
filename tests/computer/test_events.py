"""The stream of events: everyone hears everything, nobody waits for a slow reader, and that one is told."""

import anyio

from a2c_smcp.computer.events import Broadcast, ConfigChanged, EventsLost, RestartOffered, ToolListChanged


def offered(number: int) -> RestartOffered:
    return RestartOffered(str(number), "")


async def test_every_reader_hears_what_happens_while_it_listens() -> None:
    broadcast = Broadcast()
    broadcast.publish(ConfigChanged())
    async with broadcast.subscribe() as one, broadcast.subscribe() as two:
        broadcast.publish(ToolListChanged())
        assert await anext(one) == await anext(two) == ToolListChanged()
    broadcast.publish(ConfigChanged())
    assert broadcast._streams == set()


async def test_a_reader_that_waits_is_woken() -> None:
    broadcast = Broadcast()
    async with broadcast.subscribe() as events, anyio.create_task_group() as tasks:
        heard: list[object] = []

        async def read() -> None:
            heard.append(await anext(events))

        tasks.start_soon(read)
        await anyio.wait_all_tasks_blocked()
        broadcast.publish(ToolListChanged())
    assert heard == [ToolListChanged()]


async def test_a_slow_reader_loses_the_oldest_and_is_told_how_many() -> None:
    broadcast = Broadcast()
    async with broadcast.subscribe(2) as slow, broadcast.subscribe() as quick:
        for number in range(5):
            broadcast.publish(offered(number))
        assert await anext(slow) == EventsLost(3)
        assert [await anext(slow), await anext(slow)] == [offered(3), offered(4)]
        broadcast.publish(offered(5))
        assert await anext(slow) == offered(5)
        assert [await anext(quick) for _ in range(6)] == [offered(number) for number in range(6)]
