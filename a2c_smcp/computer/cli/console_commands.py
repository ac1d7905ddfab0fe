"""The command about this computer's console in the browser."""

from typing import Final

from a2c_smcp.computer.cli.command_table import CommandGroup
from a2c_smcp.computer.cli.output import printable
from a2c_smcp.computer.cli.session import CLISession
from a2c_smcp.errors import BadRequestError

__all__ = ["CONSOLE_COMMANDS", "show_link"]

CONSOLE_COMMANDS: Final = CommandGroup()


@CONSOLE_COMMANDS.command("console", "[[HOST:]PORT]")
async def console(session: CLISession, words: list[str]) -> None:
    """A fresh link to this computer's page in the browser, which works once; the first time this opens the page."""
    if len(words) > 1:
        raise BadRequestError("expected [HOST:]PORT or nothing here")
    if not session.consoles.is_open:
        session.consoles.listen(words[0] if words else None)
        assert session.tasks is not None
        await session.consoles.start(session.tasks)
    elif words:
        raise BadRequestError("the console is open already; `console` alone prints a fresh link")
    show_link(session)


def show_link(session: CLISession) -> None:
    link = session.consoles.link()
    notices = [f"! {printable(notice)}" for notice in session.consoles.notices]
    lines = [*notices, f"✓ the console is at {link}", session.consoles.picture(link)]
    session.output.event("console", "\n".join(filter(None, lines)), url=link)
