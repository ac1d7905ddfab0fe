"""Two computers work together: a document of one goes, page by page, into a tool of the other.

A2C_URL=http://127.0.0.1:7000 A2C_OFFICE=lab python examples/two_computers.py desk report laptop save_note
"""

import asyncio
import os
import sys

from a2c_smcp.agent import AsyncSMCPAgentClient, text_of


async def copy_document(agent: AsyncSMCPAgentClient, source: str, words: str, target: str, tool: str) -> int:
    """Copy the first document of `source` that matches. Returns how many pages it had."""
    found = await agent.get_finder(source, keywords=words.split(), limit=1)
    if not found["documents"]:
        raise LookupError(f"{source} has no document about {words!r}")
    [document] = found["documents"]
    pages = 0
    async for text in agent.iter_pages(source, document["uri"], format="markdown"):
        pages += 1
        arguments = {"title": f"{document['title']}, page {pages}", "text": text}
        result = await agent.call_tool(target, tool, arguments, timeout=60, approval_timeout=600)
        if result.is_error:
            raise RuntimeError(f"page {pages} was not taken: {text_of(result, budget=500)}")
    return pages


async def main() -> None:
    source, words, target, tool = sys.argv[1:5]
    url, key = os.environ["A2C_URL"], os.environ.get("A2C_API_KEY")
    async with AsyncSMCPAgentClient(url, name="copier", api_key=key) as agent:
        await agent.join_office(os.environ["A2C_OFFICE"])
        pages = await copy_document(agent, source, words, target, tool)
        print(f"{pages} pages copied from {source} to {target}")


if __name__ == "__main__":
    asyncio.run(main())
