"""What a page is told: a snapshot, then changes by number, gathered; and a new snapshot where that says more."""

import json
import math
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import anyio
from hypothesis import given
from hypothesis import strategies as st

from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.console.feed import FeedResponse, messages
from a2c_smcp.computer.console.page_json import encoded
from a2c_smcp.computer.console.visitors import PageSession
from a2c_smcp.computer.mcp_clients.server_state import ServerState
from a2c_smcp.computer.watching.events import (
    DesktopChanged,
    RestartOffered,
    ServerLogged,
    ServerStatus,
    ToolListChanged,
)
from tests.computer.fakes.computers import FAST, server


async def test_what_replaces_itself_is_told_once_and_numbers_fit_together() -> None:
    computer = Computer("pc")
    async with aclosing(_told(computer)) as told:
        snapshot = await anext(told)
        assert (snapshot["kind"], snapshot["name"], snapshot["run"]) == ("snapshot", "pc", "run")
        for number in range(50):
            computer._events.publish(ServerStatus("one", ServerState.STARTING, str(number)))
            computer._events.publish(ServerLogged("one", "line"))
            computer._events.publish(DesktopChanged())
            computer._events.publish(ToolListChanged())
        computer.name = "renamed"  # as `connect --name` does
        computer._events.publish(RestartOffered("one", "why"))
        last, seen = snapshot["number"], []
        while last < snapshot["number"] + 201:
            message = await anext(told)
            assert message["kind"] == "changes" and message["since"] == last
            last = message["number"]
            seen.append(message)
        assert len(seen) < 20
        assert seen[-1]["servers"][-1]["reason"] == "49" or any(
            message["servers"][0]["reason"] == "49" for message in seen if "servers" in message
        )
        assert seen[-1]["name"] == "renamed"
        assert seen[-1]["notices"] == [{"says": "restart", "text": "one: why", "server": "one", "restart": True}]
        assert {"desktop", "tools"} == set().union(*(message["marked"] for message in seen if "marked" in message))


async def test_who_falls_behind_gets_a_snapshot_and_goes_on_from_there() -> None:
    computer = Computer("pc")
    async with aclosing(_told(computer)) as told:
        first = await anext(told)
        for _ in range(6000):
            computer._events.publish(ServerLogged("one", "line"))
        again = await anext(told)
        while again["kind"] != "snapshot":
            again = await anext(told)
        assert again["number"] == first["number"] + 6000
        computer._events.publish(DesktopChanged())
        assert (await anext(told))["since"] == again["number"]


async def test_another_config_is_a_new_beginning() -> None:
    computer = Computer("pc", mcp_servers=[server("one"), server("two")], auto_connect=False)
    async with computer, aclosing(_told(computer)) as told:
        assert [each["name"] for each in (await anext(told))["servers"]] == ["one", "two"]
        await computer.remove_server("one")
        with anyio.fail_after(20):
            while (message := await anext(told))["kind"] != "snapshot":
                pass
        assert [each["name"] for each in message["servers"]] == ["two"]


async def test_another_state_of_a_server_is_no_new_beginning() -> None:
    computer = Computer("pc", mcp_servers=[server("one")], auto_connect=False, timings=FAST)
    async with computer, aclosing(_told(computer)) as told:
        await anext(told)
        await computer.start_server("one")
        states: list[str] = []
        with anyio.fail_after(30):
            while "running" not in states:
                message = await anext(told)
                assert message["kind"] != "snapshot"
                states += [each["state"] for each in message.get("servers", ())]


async def test_a_page_that_stops_reading_or_goes_loses_its_stream() -> None:
    closed: list[bool] = []
    streams: set[FeedResponse] = set()
    for reads, leaves in ((3, False), (10**9, True)):
        sent = 0

        async def send(message: Any, most: int = reads) -> None:
            nonlocal sent
            sent += 1
            if sent > most:
                await anyio.sleep_forever()

        async def receive(leaves: bool = leaves) -> dict[str, Any]:
            if not leaves:
                await anyio.sleep_forever()
            return {"type": "http.disconnect"}

        async def forever(leaves: bool = leaves) -> AsyncGenerator[dict[str, Any], None]:
            try:
                while True:
                    yield {"kind": "ping"}
                    await anyio.sleep(0.001)
            finally:
                closed.append(leaves)

        with anyio.fail_after(20):
            await FeedResponse(forever(), PageSession("page"), streams, stall=0.05)({"type": "http"}, receive, send)
    assert closed == [False, True] and not streams


def _told(computer: Computer) -> Any:
    found: AsyncGenerator[dict[str, Any], None] = messages(computer, "run")
    return found


_ODD = st.recursive(
    st.none() | st.integers() | st.floats() | st.text() | st.just("\ud800"),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(_ODD)
def test_whatever_tools_say_the_page_can_read_it(value: Any) -> None:
    def refuse(name: str) -> None:
        raise AssertionError(name)

    json.loads(encoded(value).decode("utf-8"), parse_constant=refuse)


def test_numbers_that_json_has_not_are_null() -> None:
    assert encoded({"a": [math.inf, math.nan, 1.5]}) == b'{"a":[null,null,1.5]}'
