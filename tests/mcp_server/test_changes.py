"""What waits for a listener: never twice the same, never more than it asked for, from any thread."""

import asyncio
import threading

import anyio
import pytest

from a2c_smcp.mcp_server.changes import (
    ChangeNotice,
    Changes,
    Listener,
    ResourcesChanged,
    ResourceUpdate,
    ToolsChanged,
    TooManyListenersError,
)


@pytest.fixture
async def changes(anyio_backend: str) -> Changes:
    return Changes(max_listeners=3, max_subscriptions=5)


async def rest(listener: Listener) -> list[ChangeNotice]:
    """Everything that waits."""
    listener.close()
    found = []
    while (notice := await listener.next()) is not None:
        found.append(notice)
    return found


async def test_a_listener_hears_what_it_asked_for_and_nothing_else(changes: Changes) -> None:
    lists, one = changes.listen(tools=True, resources=True), changes.listen(tools=False, resources=False)
    one.subscribe("a", ["a"])
    for said in (changes.tools_changed, changes.resources_changed):
        said()
    changes.updated("a")
    changes.updated("b")
    assert await rest(lists) == [ToolsChanged(), ResourcesChanged()]
    assert await rest(one) == [ResourceUpdate("a")]


async def test_a_change_is_heard_under_every_uri_of_its_topic(changes: Changes) -> None:
    listener = changes.listen(tools=False, resources=False)
    listener.subscribe("document", ["document", "document/pages/1"])
    changes.updated("document")
    assert set(await rest(listener)) == {ResourceUpdate("document"), ResourceUpdate("document/pages/1")}


async def test_what_waits_is_not_said_again_and_what_was_taken_is(changes: Changes) -> None:
    listener = changes.listen(tools=False, resources=True)
    listener.subscribe("a", ["a"])
    for _ in range(1000):
        changes.updated("a")
        changes.resources_changed()
    assert await listener.next() == ResourceUpdate("a")
    changes.updated("a")
    assert await rest(listener) == [ResourcesChanged(), ResourceUpdate("a")]


async def test_nothing_is_heard_after_unsubscribing_not_even_what_waited(changes: Changes) -> None:
    listener = changes.listen(tools=False, resources=False)
    listener.subscribe("a", ["a", "a/1"])
    changes.updated("a")
    listener.unsubscribe("a", "a")
    listener.unsubscribe("a", "a")
    listener.unsubscribe("never", "never")
    assert await rest(listener) == [ResourceUpdate("a/1")]


async def test_a_closed_listener_is_forgotten_and_one_that_was_abandoned_delivers_nothing(changes: Changes) -> None:
    listener = changes.listen(tools=True, resources=True)
    changes.tools_changed()
    listener.abandon()
    changes.resources_changed()
    assert len(changes) == 0
    assert await listener.next() is None


async def test_limits_are_said_and_leave_what_was_there(changes: Changes) -> None:
    first, *_ = [changes.listen(tools=True, resources=True) for _ in range(3)]
    with pytest.raises(TooManyListenersError, match="3 clients listen already"):
        changes.listen(tools=True, resources=True)
    first.subscribe("a", ["1", "2", "3", "4", "5"])
    first.subscribe("a", ["5"])
    with pytest.raises(TooManyListenersError, match="may subscribe to 5 resources"):
        first.subscribe("b", ["6"])
    first.unsubscribe("a", "1")
    first.subscribe("b", ["6"])
    first.close()
    changes.listen(tools=True, resources=True)


async def test_a_change_said_in_a_thread_wakes_the_listener(changes: Changes) -> None:
    listener = changes.listen(tools=True, resources=False)
    waiting = asyncio.create_task(listener.next())
    await asyncio.sleep(0)
    threading.Thread(target=changes.tools_changed).start()
    with anyio.fail_after(20):
        assert await waiting == ToolsChanged()


async def test_no_change_is_lost_while_threads_say_them_and_the_listener_takes_them(changes: Changes) -> None:
    listener = changes.listen(tools=False, resources=False)
    listener.subscribe("last", ["last"])
    listener.subscribe("busy", ["busy"])

    def say() -> None:
        for _ in range(2000):
            changes.updated("busy")
        changes.updated("last")

    thread = threading.Thread(target=say)
    thread.start()
    with anyio.fail_after(20):
        while await listener.next() != ResourceUpdate("last"):
            pass
    await anyio.to_thread.run_sync(thread.join)


def test_a_listener_of_a_loop_that_has_ended_harms_nobody() -> None:
    changes = Changes(3, 3)

    async def listen() -> None:
        changes.listen(tools=True, resources=True)

    asyncio.run(listen())
    changes.tools_changed()
