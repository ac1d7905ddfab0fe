"""Commands about the server and the office that this computer is in."""

from dataclasses import replace
from typing import Final

from a2c_smcp.computer.cli.command_table import CommandGroup, arguments
from a2c_smcp.computer.cli.parse import options
from a2c_smcp.computer.cli.session import CLISession
from a2c_smcp.errors import (
    NotInRoomError,
)

__all__ = ["OFFICE_COMMANDS"]

OFFICE_COMMANDS: Final = CommandGroup()


@OFFICE_COMMANDS.command("connect", "[--url URL] [--office OFFICE] [--name NAME] [--api-key KEY]")
async def connect(session: CLISession, words: list[str]) -> None:
    """Connect to a server, and join an office. What is left out stays as it was: the URL, the key, the name, and the
    office unless it was left with `leave`."""
    plain, given = options(words, ("url", "office", "name", "api-key"))
    arguments(plain)
    link = replace(
        session.link, url=given.get("url", session.link.url), api_key=given.get("api-key", session.link.api_key)
    )
    await session.connect(link, given.get("name", session.computer.name), given.get("office", session.office))


@OFFICE_COMMANDS.command("disconnect")
async def disconnect(session: CLISession, words: list[str]) -> None:
    """Leave the server; the MCP servers go on running."""
    arguments(words)
    if not await session.disconnect():
        raise NotInRoomError("not connected to a server")


@OFFICE_COMMANDS.command("join", "OFFICE")
async def join(session: CLISession, words: list[str]) -> None:
    """Join an office of the server that this computer is connected to."""
    await session.join(*arguments(words, "OFFICE"))


@OFFICE_COMMANDS.command("leave")
async def leave(session: CLISession, words: list[str]) -> None:
    """Leave the office, and stay connected."""
    arguments(words)
    await session.leave()
