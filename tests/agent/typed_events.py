"""What type checkers know of `on`, `AgentHandler` and `list_computers`. mypy checks this file with the others; a test
runs pyright on it. It is never run.
"""

from typing import assert_type

from a2c_smcp.agent import AgentHandler, AsyncSMCPAgentClient, Change, SMCPAgentClient
from a2c_smcp.link.interface import LinkEvent
from a2c_smcp.smcp import EnterOfficeNotification, ResourceUpdatedNotification


class Mine(AgentHandler):
    async def on_enter_office(self, data: EnterOfficeNotification) -> None:
        assert_type(data.get("computer"), str | None)


async def of_asyncio(agent: AsyncSMCPAgentClient) -> None:
    @agent.on("enter_office")
    def entered(data: EnterOfficeNotification) -> None: ...

    @agent.on("notify:resource_updated")
    async def updated(news: ResourceUpdatedNotification) -> None: ...

    agent.on("resource_updated")(lambda news: print(assert_type(news["uri"], str)))
    agent.on("change")(lambda change: print(assert_type(change, Change).computer))
    agent.on("connection")(lambda event: print(assert_type(event, LinkEvent)))
    agent.on("change")(entered)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    assert_type(await agent.list_computers(), list[str])


def of_threads(agent: SMCPAgentClient) -> None:
    agent.on("tool_call_cancel")(lambda call: print(assert_type(call["req_id"], str)))
    assert_type(agent.list_computers(), list[str])
