"""The end of `a2c demo --console`: the computer's page in the browser, and an agent whose calls need a yes."""

import asyncio
import itertools
import json
from pathlib import Path
from typing import Final

from rich.console import Console

from a2c_smcp.agent import AsyncSMCPAgentClient
from a2c_smcp.results import text_of

__all__ = ["show_console"]

_TRIES: Final = (
    "[bold]Decide[/bold]: the agent ada asks to write on the board; allow it, or refuse",
    "[bold]Desktop[/bold]: what you allowed appears on the board, while you look",
    "[bold]Tools[/bold]: call count_slowly, then cancel it under [bold]Calls[/bold]",
    "[bold]Finder[/bold]: search basil, open the document, look at its table",
    "[bold]Servers[/bold]: stop one, start it again, read its log",
)


async def show_console(console: Console, agent: AsyncSMCPAgentClient, computer: str, link: str, config: Path) -> None:
    """Print the link and what to try on the page. Then call a tool that needs a yes, over and over, until cancelled."""
    _ask_before_writing(config)
    console.print("\n[bold cyan]The computer's console, in your browser[/bold cyan]")
    console.print(f"   open [link={link}]{link}[/link]")
    console.print("   [dim]the link works once; everything stays up until Ctrl-C[/dim]\n")
    for each in _TRIES:
        console.print(f"   · {each}")
    console.print()
    before = ""
    for number in itertools.count(1):
        note = {"text": f"Note {number}: the person at the computer said yes."}
        # The agent waits 120 s for an answer, and 5 s before it asks again.
        result = await agent.call_tool(computer, "write_note", note, 120)
        said = "allowed" if not result.is_error else text_of(result)
        if said != before or not result.is_error:
            # Until the page is open, every call is refused at once. That is printed once.
            console.print(f"   ada asked to write note {number}: [yellow]{said}[/yellow]")
        before = said
        await asyncio.sleep(5.0)


def _ask_before_writing(config: Path) -> None:
    """From now on one tool needs a yes. The computer follows its config file, so it applies the change by itself."""
    servers = json.loads(config.read_text())
    for server in servers:
        if server["name"] == "demo":
            server["tool_meta"] = {"write_note": {"auto_apply": False}}
    new = config.with_suffix(".new")
    new.write_text(json.dumps(servers))
    new.rename(config)
