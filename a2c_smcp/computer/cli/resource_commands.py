"""Commands about windows and documents, as an agent would see them."""

from collections.abc import Iterable
from typing import Final

from mcp_types import TextResourceContents

from a2c_smcp.computer.cli.command_table import CommandGroup, arguments, first, number, page
from a2c_smcp.computer.cli.output import quoted
from a2c_smcp.computer.cli.parse import options
from a2c_smcp.computer.cli.session import CLISession
from a2c_smcp.errors import (
    InvalidDPEURIError,
    NotFoundError,
)

__all__ = ["RESOURCE_COMMANDS"]

RESOURCE_COMMANDS: Final = CommandGroup()


# --- windows


def _windows(session: CLISession) -> Iterable[str]:
    return session.windows


@RESOURCE_COMMANDS.command("desktop list", "[--size N]")
async def desktop_list(session: CLISession, words: list[str]) -> None:
    """The windows as an agent would see them, in that order."""
    plain, given = options(words, ("size",))
    arguments(plain)
    size = int(number(given["size"], "size")) if "size" in given else None
    desktops = await session.computer.get_desktop(size)
    session.windows = [desktop.partition("\n\n")[0] for desktop in desktops]
    session.output.event(
        "desktop_updated", page(("window",), [(uri,) for uri in session.windows]), windows=session.windows
    )


@RESOURCE_COMMANDS.command("desktop show", "WINDOW_URI", first(_windows))
async def desktop_show(session: CLISession, words: list[str]) -> None:
    """One window with its content."""
    (uri,) = arguments(words, "WINDOW_URI")
    desktops = await session.computer.get_desktop(window=uri)
    if not desktops:
        raise NotFoundError(f"no window is called {uri!r}")
    session.output.event("window", quoted(desktops[0]), uri=uri, desktop=desktops[0])


# --- documents


def _documents(session: CLISession) -> Iterable[str]:
    return session.documents


@RESOURCE_COMMANDS.command("finder list", "[--type TYPE] [--offset N] [--limit N] [KEYWORD...]")
async def finder_list(session: CLISession, words: list[str]) -> None:
    """The documents as an agent would find them: those that any of the keywords matches, or all."""
    keywords, given = options(words, ("type", "offset", "limit"))
    documents, total = await session.computer.get_finder(
        keywords,
        given.get("type"),
        int(number(given.get("offset", "0"), "offset")),
        int(number(given.get("limit", "20"), "limit")),
    )
    session.documents = [document["uri"] for document in documents]
    rows = [(document["uri"], document["file_type"], document["title"]) for document in documents]
    session.output.event(
        "finder_updated",
        f"{page(('document', 'type', 'title'), rows)}\n  {len(documents)} of {total}",
        documents=documents,
        total_count=total,
    )


@RESOURCE_COMMANDS.command("finder show", "DPE_URI", first(_documents))
async def finder_show(session: CLISession, words: list[str]) -> None:
    """What a document, a page or an element holds."""
    (uri,) = arguments(words, "DPE_URI")
    if not uri.startswith("dpe://"):
        raise InvalidDPEURIError(uri, "not a dpe:// URI")
    read = await session.computer.read_resource(uri)
    texts = [item.text if isinstance(item, TextResourceContents) else "[binary]" for item in read.contents]
    session.output.event(
        "document",
        quoted("\n".join(texts)),
        uri=uri,
        contents=[item.model_dump(mode="json", by_alias=True, exclude_none=True) for item in read.contents],
    )
