"""Commands about windows and documents, as an agent would see them."""

from collections.abc import Iterable

from mcp_types import TextResourceContents

from a2c_smcp.computer.cli.command_table import command, first, number, page
from a2c_smcp.computer.cli.output import quoted
from a2c_smcp.computer.cli.session import CLISession
from a2c_smcp.errors import InvalidDPEURIError, NotFoundError

__all__: list[str] = []


# --- windows


def _windows(session: CLISession) -> Iterable[str]:
    return session.windows


@command("desktop list", "[--size N]")
async def desktop_list(session: CLISession, *, size: str | None = None) -> None:
    """The windows that an agent would see, in the same order."""
    desktops = await session.computer.get_desktop(None if size is None else int(number(size, "size")))
    session.windows = [desktop.partition("\n\n")[0] for desktop in desktops]
    session.output.event(
        "desktop_updated", page(("window",), [(uri,) for uri in session.windows]), windows=session.windows
    )


@command("desktop show", "WINDOW_URI", first(_windows))
async def desktop_show(session: CLISession, uri: str) -> None:
    """One window with its content."""
    desktops = await session.computer.get_desktop(window=uri)
    if not desktops:
        raise NotFoundError(f"there is no window {uri!r}")
    session.output.event("window", quoted(desktops[0]), uri=uri, desktop=desktops[0])


# --- documents


def _documents(session: CLISession) -> Iterable[str]:
    return session.documents


@command("finder list", "[--type TYPE] [--offset N] [--limit N] [KEYWORD...]")
async def finder_list(
    session: CLISession, *keywords: str, type: str | None = None, offset: str = "0", limit: str = "20"
) -> None:
    """The documents that an agent would find: those that match any of the keywords, or all."""
    documents, total = await session.computer.get_finder(
        list(keywords), type, int(number(offset, "offset")), int(number(limit, "limit"))
    )
    session.documents = [document["uri"] for document in documents]
    rows = [(document["uri"], document["file_type"], document["title"]) for document in documents]
    session.output.event(
        "finder_updated",
        f"{page(('document', 'type', 'title'), rows)}\n  {len(documents)} of {total}",
        documents=documents,
        total_count=total,
    )


@command("finder show", "DPE_URI", first(_documents))
async def finder_show(session: CLISession, uri: str) -> None:
    """The content of a document, a page or an element."""
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
