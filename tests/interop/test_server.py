"""The existing implementation's agent and computer against our server, over the wire."""

from collections.abc import Callable
from typing import Any

import anyio
import pytest

from a2c_smcp.server import APIKeyAuthentication, SyncAPIKeyAuthentication
from tests.interop.conftest import StartPeer
from tests.server.harness import Running, async_server, eventually, sync_server

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module", params=["async", "sync"])
def server(request: pytest.FixtureRequest) -> Any:
    if request.param == "async":
        with async_server(APIKeyAuthentication(["secret"])) as running:
            yield running
    else:
        with sync_server(SyncAPIKeyAuthentication(["secret"])) as running:
            yield running


def test_its_agents_and_its_computer_meet_in_our_office(
    server: Running, start_peer: StartPeer, old_agent: Callable[..., dict[str, Any]], echo_command: list[str]
) -> None:
    start_peer("computer.py", server.url, "interop", "old-computer", *echo_command)
    for colour in ("async", "sync"):
        seen = old_agent(colour, server.url, "interop", "old-computer")
        assert [(s["name"], s["role"]) for s in seen["sessions"]] == [("old-computer", "computer")]
        assert [tool["name"] for tool in seen["tools"]] == ["echo", "sleep"]
        assert seen["desktops"] == []
        assert seen["calls"][0]["content"] == ["你好"]
        assert seen["calls"][0]["isError"] is False
        # A refusal is readable as a failed result, so that an agent which knows no errors need not wait.
        assert seen["missing"]["isError"] is True
        assert "nobody" in seen["missing"]["content"][0]
        # An office has one agent: the next one is let in once the server has missed this one.
        anyio.run(eventually, lambda: server.namespace.registry.counts().sessions == 1)
    assert server.namespace.pending_relays == 0
