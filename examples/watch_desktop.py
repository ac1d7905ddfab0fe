"""Watch the windows of a computer: print the desktop now, and again whenever a window changes.

A2C_URL=http://127.0.0.1:7000 A2C_OFFICE=lab python examples/watch_desktop.py laptop
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Sequence

from a2c_smcp.agent import AsyncSMCPAgentClient


async def desktops(agent: AsyncSMCPAgentClient, computer: str) -> AsyncIterator[Sequence[str]]:
    """The windows of a computer, most important first, whenever they are new."""
    changed = asyncio.Event()
    agent.on("update_desktop")(lambda news: changed.set() if news.get("computer") == computer else None)
    while True:
        changed.clear()
        yield await agent.get_desktop(computer)
        await changed.wait()


async def main() -> None:
    url, key = os.environ["A2C_URL"], os.environ.get("A2C_API_KEY")
    async with AsyncSMCPAgentClient(url, name="watcher", api_key=key) as agent:
        await agent.join_office(os.environ["A2C_OFFICE"])
        async for windows in desktops(agent, sys.argv[1]):
            print(f"--- {len(windows)} windows")
            for window in windows:
                print(window[:500])


if __name__ == "__main__":
    asyncio.run(main())
