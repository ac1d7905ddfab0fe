"""What the commands `a2c agent resources`, `prompts`, `prompt` and `read` do, once the agent is in the office."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from a2c_smcp.agent.client import AsyncSMCPAgentClient
from a2c_smcp.agent.commands import Work, at_computer, save_contents
from a2c_smcp.agent.printing import Printer
from a2c_smcp.terminal.exits import FAILED

__all__ = ["prompt", "prompts", "read", "resources"]


def resources(computer: str, mcp_server: str | None) -> Work:
    async def work(agent: AsyncSMCPAgentClient, output: Printer) -> int:
        found = await agent.get_resources(computer, mcp_server)
        rows = [(*_named(each), str(each.get("uri", ""))) for each in found["resources"]]
        rows += [(*_named(each), str(each.get("uriTemplate", ""))) for each in found.get("templates", ())]
        output.table(("server", "name", "type", "uri"), rows, found)
        if not rows:
            output.note(f"{computer} shares no resources but windows and documents")
        return 0

    return at_computer(computer, work)


def _named(item: Mapping[str, Any]) -> tuple[str, str, str]:
    name = item.get("title") or item.get("name") or ""
    return str(item.get("mcp_server", "")), str(name), str(item.get("mimeType") or "")


def prompts(computer: str, mcp_server: str | None) -> Work:
    async def work(agent: AsyncSMCPAgentClient, output: Printer) -> int:
        found = await agent.get_prompts(computer, mcp_server)
        rows = [
            (
                str(each.get("mcp_server", "")),
                str(each.get("name", "")),
                ", ".join(_arguments(each)),
                str(each.get("description") or ""),
            )
            for each in found["prompts"]
        ]
        output.table(("server", "prompt", "arguments", "description"), rows, found)
        if not rows:
            output.note(f"{computer} shares no prompts")
        return 0

    return at_computer(computer, work)


def _arguments(item: Mapping[str, Any]) -> list[str]:
    """The names of a prompt's arguments; those that may be left out in brackets."""
    given = [each for each in item.get("arguments") or () if isinstance(each, dict)]
    return [str(each.get("name")) if each.get("required") else f"[{each.get('name')}]" for each in given]


def prompt(computer: str, mcp_server: str, name: str, arguments: Mapping[str, str]) -> Work:
    async def work(agent: AsyncSMCPAgentClient, output: Printer) -> int:
        output.messages(await agent.get_prompt(computer, mcp_server, name, arguments))
        return 0

    return at_computer(computer, work)


def read(computer: str, uri: str, file: Path | None = None) -> Work:
    async def work(agent: AsyncSMCPAgentClient, output: Printer) -> int:
        contents = await agent.read_large_resource(computer, uri)
        output.contents(contents)
        return 0 if save_contents(contents, file, output) else FAILED

    return at_computer(computer, work)
