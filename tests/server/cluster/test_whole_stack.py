"""Our agent at one process, our computer at another: tools, windows and documents as if there were one."""

from collections.abc import Sequence

import pytest

from a2c_smcp.agent import AsyncSMCPAgentClient
from a2c_smcp.computer import Computer, SMCPComputerClient
from tests.computer.fakes.computers import FAST, server
from tests.computer.fakes.offices import options
from tests.nats_server import NatsServer
from tests.server.harness import eventually, two_servers


@pytest.mark.usefixtures("patient")
async def test_an_agent_uses_a_computer_that_another_process_holds(nats: NatsServer, prefix: str) -> None:
    with two_servers(None, nats.url, prefix) as two:
        computer = Computer("pc", mcp_servers=[server("a", documents=2)], timings=FAST)
        async with (
            computer,
            SMCPComputerClient(computer, options(two.other.url)) as client,
            AsyncSMCPAgentClient(options(two.url), name="ag") as agent,
        ):
            await agent.join_office("o")
            await client.join_office("o")
            await eventually(lambda: "pc" in agent.computers)
            await agent.settled()
            assert "a.echo" in {tool["name"] for tool in agent.computers["pc"].tools or ()}
            result = await agent.call_tool("pc", "a.echo", {"text": "三" * 200_000}, timeout=20)
            assert result.content[0].text == "三" * 200_000  # type: ignore[union-attr]

            # What changes at the computer after it was read is fetched by the agent; what nobody has read may change
            # before the computer hears of changes.
            assert not any("new" in window for window in await agent.get_desktop("pc"))
            await agent.call_tool("pc", "a.set_resource", {"uri": "window://fake/0", "text": "new"}, timeout=20)
            await eventually(lambda: any("new" in window for window in windows_of(agent)))
            assert (await agent.get_finder("pc"))["total_count"] == 2

            await client.leave_office()
            await eventually(lambda: "pc" not in agent.computers)


def windows_of(agent: AsyncSMCPAgentClient) -> Sequence[str]:
    return agent.computers["pc"].desktop or ()
