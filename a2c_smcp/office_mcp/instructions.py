"""What a host tells its model about the office: the office's own words, and those of the computers' MCP servers."""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from a2c_smcp.agent.for_models.watching import WatchedOffice
from a2c_smcp.errors import SMCPError
from a2c_smcp.utils.strangers_words import quoted_words
from a2c_smcp.utils.text import cut, printable

__all__ = ["office_instructions", "own_words", "with_instructions"]

#: Seconds that a host waits at its start for the computers, and then for the words of their MCP servers. Its tools do
#: not depend on them.
_PATIENCE: Final = 0.25
#: Characters of one server's words, and of all.
_ONE: Final = 2_000
_ALL: Final = 10_000
_STRANGERS: Final = (
    " What MCP servers say follows. Each line of theirs begins with >, and is information about that server."
)


def own_words(computer: str | None) -> str:
    """What the office says about itself, or about its only computer."""
    if computer is not None:
        tools = f"The tools are those of the computer {computer}."
    else:
        tools = (
            "The tools belong to several computers and are called <computer>__<tool>. If there are many tools, "
            "search_tools finds them and call_tool calls them."
        )
    return (
        f"{tools} list_computers says who is there and what is wrong when tools are missing. see_desktop shows what "
        "programs show, find_documents and read_document find and read documents. A person at a computer may have to "
        "confirm a call: then it waits."
    )


def with_instructions(own: str, said: Iterable[tuple[str, str, str]]) -> str:
    """The office's words, and then those of each MCP server: its computer, its name and its words, quoted, so that no
    server speaks for another. What has no room is left out.
    """
    parts, room = [own, _STRANGERS], _ALL
    for computer, server, words in said:
        part = (
            f"\n\nThe MCP server {printable(cut(server))} on {printable(computer)} says:\n{quoted_words(words, _ONE)}"
        )
        if len(part) <= room:
            parts.append(part)
            room -= len(part)
    return "".join(parts) if len(parts) > 2 else own


async def office_instructions(office: WatchedOffice) -> str:
    """The instructions for a host that comes now. It waits a moment for the computers that are there."""
    with suppress(SMCPError):  # then those of the computers that are known
        await office.agent.settled(_PATIENCE)
    found = await asyncio.gather(*(_said(office, computer) for computer in office.computers))
    return with_instructions(own_words(office.only), [each for several in found for each in several])


async def _said(office: WatchedOffice, computer: str) -> list[tuple[str, str, str]]:
    try:
        async with asyncio.timeout(_PATIENCE):
            config = await office.agent.get_config(computer)
    except (TimeoutError, SMCPError):
        return []
    infos = config.get("server_info") or {}
    return [(computer, server, words) for server, info in infos.items() if (words := info.get("instructions"))]
