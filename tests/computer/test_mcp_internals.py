"""What we rely on in mcp's client and its documentation does not promise: an upgrade of mcp fails here first."""

import dataclasses
import inspect
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp.client import _transport
from mcp.client.client import Client
from mcp.client.session import ClientSession
from mcp.shared.dispatcher import Dispatcher

from a2c_smcp.computer.mcp_clients.mcp_internals import client_over


class Spoken:
    """A dispatcher that answers the handshake by itself."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def send_raw_request(self, method: str, params: Any, opts: Any = None) -> dict[str, Any]:
        self.asked.append(method)
        info = {"name": "a", "version": "1"}
        return {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": info, "tools": []}

    async def notify(self, method: str, params: Any, opts: Any = None) -> None:
        self.asked.append(method)

    async def run(self, *_: Any, task_status: Any) -> None:
        task_status.started()


def test_the_client_still_asks_its_own_connect_for_a_dispatcher() -> None:
    fields = {field.name: field.init for field in dataclasses.fields(Client)}
    assert fields.get("_connect") is False, "mcp's Client has no `_connect` any more: see mcp_internals.client_over"
    assert "dispatcher" in inspect.signature(ClientSession).parameters


def test_the_types_of_transports_are_where_they_were() -> None:
    assert {"ReadStream", "Transport", "TransportStreams"} <= set(_transport.__all__)


def test_a_dispatcher_still_has_the_methods_that_ours_has() -> None:
    def names(method: Any) -> list[str]:
        return list(inspect.signature(method).parameters)

    assert names(Dispatcher.send_raw_request) == ["self", "method", "params", "opts"]
    assert names(Dispatcher.notify) == ["self", "method", "params", "opts"]
    assert names(Dispatcher.run) == ["self", "on_request", "on_notify", "on_notify_intercept", "task_status"]


@pytest.mark.parametrize("fails", [False, True])
async def test_a_client_speaks_over_the_dispatcher_that_it_is_given_and_leaves_its_way(fails: bool) -> None:
    dispatcher, left = Spoken(), []

    @asynccontextmanager
    async def way() -> AsyncIterator[Any]:
        try:
            yield dispatcher
        finally:
            left.append(True)

    try:
        async with client_over(way(), mode="legacy", cache=None) as client:
            assert (await client.list_tools()).tools == []
            if fails:
                raise LookupError
    except* LookupError:
        assert fails
    assert dispatcher.asked == ["initialize", "notifications/initialized", "tools/list"]
    assert left == [True]
