"""An agent that survives the death of everything: server, network, computer and MCP server come and go, and each piece
of work is done once they are there.

    A2C_URL=http://127.0.0.1:7000 A2C_OFFICE=lab python examples/survivor.py laptop measure
"""

import asyncio
import os
import sys
import uuid

from a2c_smcp import SMCPError
from a2c_smcp.agent import AsyncSMCPAgentClient, text_of

#: A failure of the MCP server, or tools that are not there yet: worth another try.
PASSING = {4001, 4003}
#: A call that is wrong, too large or not allowed: the next try would fail, too.
LASTING = {400, 401, 403, 413}


async def stubborn_call(agent: AsyncSMCPAgentClient, computer: str, tool: str, arguments: dict[str, object]) -> str:
    """The text of the result, however long that takes. Raises an `SMCPError` that would last.

    Tries have one `req_id`: a computer that was out of reach remembers the call for five minutes, and does not run it
    again. A call that was cut off itself runs again: its MCP server or its computer died, or this agent lost its
    connection, and so the call was cancelled. Use a tool that may run twice.
    """
    req_id, pause = uuid.uuid4().hex, 0.1
    while True:
        try:
            result = await agent.call_tool(computer, tool, arguments, timeout=60, req_id=req_id)
            meta = result.meta or {}
            if meta.get("error_code") not in PASSING and not meta.get("a2c_cancelled"):
                return text_of(result, budget=10_000)
            req_id = uuid.uuid4().hex  # that try was cut off, and this is remembered
        except SMCPError as error:
            if error.code in LASTING:
                raise
            print(f"{computer} is out of reach: {agent.problem or error}", file=sys.stderr)
        await asyncio.sleep(pause)
        pause = min(pause * 2, 5.0)


async def main() -> None:
    key = os.environ.get("A2C_API_KEY")
    async with AsyncSMCPAgentClient(os.environ["A2C_URL"], name="survivor", api_key=key) as agent:
        await agent.join_office(os.environ["A2C_OFFICE"])  # raises if the key is wrong; later it joins again by itself
        while True:
            print(await stubborn_call(agent, sys.argv[1], sys.argv[2], {}), flush=True)
            await asyncio.sleep(60)


if __name__ == "__main__":
    asyncio.run(main())
