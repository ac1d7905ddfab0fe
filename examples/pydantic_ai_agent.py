"""An agent on pydantic-ai: each tool of the office is a tool of the model, also its desktops, documents and the search.

assistant = Agent("openai:…", tools=await office_toolset(office))
print((await assistant.run("Add 1 and 2 on the laptop.")).output)
"""

import uuid
from typing import Any

from pydantic_ai import ModelRetry, Tool

from a2c_smcp.agent import AsyncSMCPAgentClient
from a2c_smcp.agent.llm import office_tools, run_tool_calls


async def office_toolset(office: AsyncSMCPAgentClient) -> list[Tool[Any]]:
    """The tools that the office has now, with names and schemas that every model takes."""
    return [_tool(office, **tool) for tool in await office_tools(office, "anthropic")]


def _tool(office: AsyncSMCPAgentClient, name: str, description: str, input_schema: dict[str, Any]) -> Tool[Any]:
    async def call(**arguments: Any) -> str:
        asked = {"type": "tool_use", "id": uuid.uuid4().hex, "name": name, "input": arguments}
        # A person may have to agree: ten minutes for that, one for the tool itself.
        _, said = await run_tool_calls(office, {"content": [asked]}, timeout=60, approval_timeout=600, images=False)
        [result] = said["content"]
        text = "".join(part["text"] for part in result["content"])
        if result.get("is_error"):
            raise ModelRetry(text)
        return text

    return Tool.from_schema(call, name, description, input_schema)
