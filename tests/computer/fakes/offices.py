"""An agent to ask a computer, an office to meet in, and how to get there."""

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.socketio import SMCPComputerClient
from a2c_smcp.link.interface import LinkOptions
from a2c_smcp.smcp import ENTER_OFFICE_NOTIFICATION, JOIN_OFFICE_EVENT, TOOL_CALL_EVENT
from tests.computer.fakes.computers import FAST, listed
from tests.server.conftest import LIMITS
from tests.server.harness import AsyncPeer, eventually, heard

_numbers = itertools.count()


def new_office() -> str:
    return f"office-{next(_numbers)}"


class Agent(AsyncPeer):
    """A raw agent in an office."""

    office: str

    async def join(self, url: str, office: str) -> None:
        await self.connect(url, transports=["websocket"])
        self.office = office
        assert await self.call(JOIN_OFFICE_EVENT, {"role": "agent", "name": "ag", "office_id": office}) == (True, None)

    async def ask(self, event: str, **more: Any) -> Any:
        request = {"agent": "ag", "req_id": f"q{next(_numbers)}", "computer": "pc", **more}
        return await self.call(event, request, timeout=60)

    async def tool(self, tool: str, timeout: int = 20, req_id: str | None = None, /, **params: Any) -> Any:
        req_id = req_id or f"c{next(_numbers)}"
        return await self.ask(TOOL_CALL_EVENT, tool_name=tool, params=params, timeout=timeout, req_id=req_id)


def options(url: str, **more: Any) -> LinkOptions:
    defaults = {"max_message": LIMITS.max_message, "backoff": (0.05, 0.2), "rejoin_every": 0.05}
    return LinkOptions(url, **{**defaults, **more})


@asynccontextmanager
async def watched(url: str, *servers: dict[str, Any], **more: Any) -> AsyncIterator[tuple[Agent, Computer]]:
    """A booted computer in an office, and an agent there that has heard nothing yet."""
    computer = Computer("pc", mcp_servers=servers, **{"timings": FAST, **more})
    agent = Agent()
    async with computer, SMCPComputerClient(computer, options(url)) as client:
        try:
            office = new_office()
            await listed(computer)
            await agent.join(url, office)
            await client.join_office(office)
            await eventually(lambda: heard(agent, ENTER_OFFICE_NOTIFICATION))
            agent.received.clear()
            yield agent, computer
        finally:
            await agent.disconnect()
