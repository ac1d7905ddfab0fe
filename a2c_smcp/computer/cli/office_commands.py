"""Commands about the office that this computer is in, and about its console in the browser."""

from a2c_smcp.computer.cli.command_table import command
from a2c_smcp.computer.cli.output import printable
from a2c_smcp.computer.cli.session import CLISession, link_to
from a2c_smcp.errors import BadRequestError, NotInRoomError

__all__ = ["show_link"]


@command("connect", "[--url URL] [--office OFFICE] [--name NAME] [--api-key KEY]")
async def connect(
    session: CLISession,
    *,
    url: str | None = None,
    office: str | None = None,
    name: str | None = None,
    api_key: str | None = None,
) -> None:
    """Connect to a server and join an office. What you leave out stays as it was: the URL, the name, and the office
    unless you left it with `leave`. The key stays for the same server. Another server gets the token of `a2c login`.
    """
    link = link_to(session.link, session.link.url if url is None else url, api_key)
    await session.connect(link, session.computer.name if name is None else name, office or session.office)


@command("disconnect")
async def disconnect(session: CLISession) -> None:
    """Disconnect from the server. The MCP servers go on running."""
    if not await session.disconnect():
        raise NotInRoomError("not connected to a server")


@command("join", "OFFICE")
async def join(session: CLISession, office: str) -> None:
    """Join an office of the server that this computer is connected to."""
    await session.join_office(office)


@command("leave")
async def leave(session: CLISession) -> None:
    """Leave the office, but stay connected to the server."""
    await session.leave_office()


@command("console", "[[HOST:]PORT]")
async def console(session: CLISession, address: str | None = None) -> None:
    """Print a fresh link to this computer's page in the browser. The link works once. The first time, this opens the
    console."""
    if not session.consoles.is_open:
        session.consoles.listen(address)
        assert session.tasks is not None
        await session.consoles.start(session.tasks)
    elif address is not None:
        raise BadRequestError("the console is open already; type `console` without an address for a fresh link")
    show_link(session)


def show_link(session: CLISession) -> None:
    link = session.consoles.link()
    notices = [f"! {printable(notice)}" for notice in session.consoles.notices]
    lines = [*notices, f"✓ the console is at {link}", session.consoles.picture(link)]
    session.output.event("console", "\n".join(filter(None, lines)), url=link)
