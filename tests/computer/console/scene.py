"""A computer at work, for pictures of its console and for looking at how accessible it is."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import anyio

from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.console import Console, ConsoleAddress
from a2c_smcp.computer.mcp_clients.model import PromptStringInput
from a2c_smcp.computer.rules.rule import parse_rules
from a2c_smcp.link.interface import Connected, Joined, Membership
from tests.computer.console.harness import as_agent
from tests.docs.samples import make_text_samples

#: Each view: its name, where it is, and what has to be there before a picture is taken.
VIEWS = {
    "decisions": ("decisions", ".decision"),
    "calls": ("calls", ".row.ended"),
    "servers": ("servers", ".row.server"),
    "tools": ("tools/send_mail", "form.call"),
    "rules": ("rules", ".rules li"),
    "desktop": ("desktop", ".window"),
    "finder": ("finder", ".documents li"),
    "document": ("finder/{document}/1", ".paper h2, .paper table"),
    "office": ("office", "dl.facts"),
}

_SEATS = {
    "type": "object",
    "properties": {
        "seat": {
            "type": "string",
            "title": "Seat",
            "oneOf": [{"const": "w", "title": "By the window"}, {"const": "a", "title": "On the aisle"}],
        },
        "bags": {"type": "integer", "title": "Bags", "minimum": 0, "maximum": 3, "default": 1},
    },
    "required": ["seat"],
}


@asynccontextmanager
async def scene(folder: Path) -> AsyncIterator[tuple[Computer, Console, str]]:
    """A computer with calls that run and ended, and two decisions that wait; and the URI of a document, quoted."""
    papers = folder / "papers"
    make_text_samples(papers)
    for name in ("年度报告.md", "旧笔记.txt", "short.pdf"):
        (papers / name).unlink()  # not every machine that draws the pictures has a Chinese font
    serve = ["a2c_smcp.cli", "docs", "serve", str(papers), "--host", "papers.example", "--cache", str(folder / "cache")]
    servers = [
        _server("mail", ["tests.computer.console.scene_server"], tool_meta={"send_mail": {"auto_apply": False}}),
        _server("papers", serve),
        {"name": "calendar", "type": "stdio", "server_parameters": {"command": "calendar-mcp", "args": []}},
    ]
    inputs = [
        PromptStringInput(type="promptString", id="mail_token", description="Token of the mail server", password=True)
    ]
    computer = Computer("studio-laptop", mcp_servers=servers, inputs=inputs, auto_reconnect=False)
    async with computer, anyio.create_task_group() as tasks:
        console = Console(computer, ConsoleAddress("127.0.0.1", 0))
        await tasks.start(console.run)
        computer.office_heard("1", "https://office.example", Connected("https://office.example"))
        member = Membership("computer", "studio-laptop", "design")
        computer.office_heard("1", "https://office.example", Joined(member, again=False))
        document = await _document(computer)
        _rules(computer)
        with computer.decisions.attend("terminal"):
            for work in (_history, _running, _asking, _questioning):
                tasks.start_soon(work, computer)
            await anyio.sleep(1)
            yield computer, console, document
            tasks.cancel_scope.cancel()


def _server(name: str, module: list[str], **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "type": "stdio",
        "default_tool_meta": {"auto_apply": True},
        "server_parameters": {"command": sys.executable, "args": ["-m", *module]},
        **more,
    }


def _rules(computer: Computer) -> None:
    """One of each kind: made on a page, for an hour; without a comment."""
    soon = datetime.fromtimestamp(time.time() + 3000).astimezone().isoformat()
    data = [
        {"id": "searches", "effect": "allow", "tool": "search_mail", "expires": soon},
        {"effect": "deny", "tool": "delete_*", "reason": "the mails stay"},
        {"effect": "ask", "reads": "window://*"},
    ]
    for rule, comment in zip(
        parse_rules(data)[0], ("made on 2026-11-19 16:00 by terminal", "", "About windows."), strict=True
    ):
        computer.decisions.rules.add(rule, comment=comment)


async def _document(computer: Computer) -> str:
    async with asyncio.timeout(60):
        while not (found := await _handbooks(computer)):  # noqa: ASYNC110 - of another process
            await asyncio.sleep(0.1)
    return quote(found[0], safe="")


async def _handbooks(computer: Computer) -> list[str]:
    return [each["uri"] for each in (await computer.get_finder())[0] if "handbook" in each["title"].lower()]


async def _history(computer: Computer) -> None:
    await as_agent(computer, "search_mail", words="gate B12")
    await as_agent(computer, "search_documents", query="basil")
    await as_agent(computer, "search_mail", limit="many")
    await as_agent(computer, "chart", title="Mails a day")


async def _running(computer: Computer) -> None:
    await computer.execute_tool("a", "archive", {"folder": "2024"}, None, on_progress=lambda *_: None)


async def _asking(computer: Computer) -> None:
    person = {"name": "Grace Hopper", "address": "grace@navy.example"}
    body = "Dear Grace,\nI shall be late: the flight leaves at 11:30.\nAda"
    await as_agent(computer, "send_mail", 120, to=[person], subject="Thursday", body=body)


async def _questioning(computer: Computer) -> None:
    await anyio.sleep(0.3)
    await computer.decisions.ask_question("travel", "Which seat shall I book to Bergen?", schema=_SEATS)
