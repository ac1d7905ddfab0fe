"""`a2c docs serve` and `a2c docs check`. What they need is imported when they run."""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from a2c_smcp.terminal.exits import FAILED
from a2c_smcp.terminal.options import CommandApp, listening_problem
from a2c_smcp.terminal.screen import console, say
from a2c_smcp.utils.logs import configure_logging
from a2c_smcp.utils.system import DOCUMENTS

if TYPE_CHECKING:
    from a2c_smcp.docs.library import Library
    from a2c_smcp.docs.limits import DocumentLimits

__all__ = ["app"]

app = CommandApp(
    name="docs",
    help="Folders of files as documents: PDF, Word, PowerPoint, Excel, Markdown, HTML, mail, books, text, images.",
)

FoldersArgument = Annotated[list[Path], typer.Argument(metavar="DIR...", help="Folders to serve.", show_default=False)]
CacheOption = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Where the index is kept, for you alone; default: the user's cache folder."),
]
IncludeOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PATTERN",
        help="Serve what is left out by its name: hidden, ignored or secret files, node_modules/. As in a .gitignore.",
        show_default=False,
    ),
]
MaxSizeOption = Annotated[int, typer.Option(min=1, metavar="MIB", help="Largest file that is read.")]
MaxPagesOption = Annotated[int, typer.Option(min=1, help="Most pages of a document.")]
SecondsOption = Annotated[float, typer.Option(min=0.1, help="How long one file, or one page, may take.")]
WorkersOption = Annotated[int, typer.Option(min=2, max=64, help="Processes that read files.")]


@app.command()
def serve(
    folders: FoldersArgument,
    host: Annotated[str, typer.Option(help="Host of the dpe:// URIs: a reversed domain.")] = "local.docs",
    http: Annotated[
        int | None,
        typer.Option(min=0, max=65535, metavar="PORT", help="Serve over HTTP on loopback, not stdio; 0 picks a port."),
    ] = None,
    token: Annotated[
        str | None, typer.Option(envvar="A2C_DOCS_TOKEN", help="Bearer token that HTTP requests must have.")
    ] = None,
    absolute_uris: Annotated[
        bool, typer.Option("--absolute-uris", help="Show where files are on this machine in file_uri.")
    ] = False,
    cache: CacheOption = None,
    include: IncludeOption = None,
    max_size: MaxSizeOption = 256,
    max_pages: MaxPagesOption = 50_000,
    seconds: SecondsOption = 20.0,
    workers: WorkersOption = 2,
    slide_pictures: Annotated[
        bool,
        typer.Option("--slide-pictures", help="Show slides as pictures, by LibreOffice. Only for files you trust."),
    ] = False,
) -> None:
    """Serve folders as an MCP server, over stdio unless --http is given. Changes are told as they happen."""
    _check_system()
    from a2c_smcp.docs.index import cache_folder
    from a2c_smcp.docs.recognition import Recognition
    from a2c_smcp.docs.server import docs_server
    from a2c_smcp.docs.slide_pictures import installed_office

    configure_logging("warning")
    limits = _limits(max_size, max_pages, seconds)
    kept = cache or cache_folder()
    office = installed_office() if slide_pictures else None
    if slide_pictures and office is None:
        say("a2c docs: there are no pictures of slides: LibreOffice (soffice) is not on the PATH", err=True)
    library = _library(
        folders,
        limits,
        cache=kept,
        absolute_uris=absolute_uris,
        workers=workers,
        include=include or (),
        recognition=Recognition.if_installed(),
        office=office,
    )
    try:
        server = docs_server(library, host)
        with _progress_bar(library) if sys.stderr.isatty() else nullcontext():
            if http is None:
                server.run()
            else:
                server.run_http(http, token=token)
    except (ValueError, OSError) as error:
        say(f"a2c docs: {listening_problem(error, '--http')}", err=True)
        raise typer.Exit(FAILED) from None


@app.command()
def check(
    folders: FoldersArgument,
    include: IncludeOption = None,
    max_size: MaxSizeOption = 256,
    max_pages: MaxPagesOption = 50_000,
    seconds: SecondsOption = 20.0,
    workers: WorkersOption = 2,
    raw: Annotated[
        bool, typer.Option("--raw", help="Print names and titles as they are, with their control characters.")
    ] = False,
) -> None:
    """List every file: its pages and how long it took, or why it is not served. Ends with 1 if one cannot be read."""
    _check_system()
    from a2c_smcp.docs.checking import print_check

    configure_logging("warning")
    library = _library(folders, _limits(max_size, max_pages, seconds), workers=workers, include=include or ())
    raise typer.Exit(asyncio.run(print_check(library, raw=raw)))


def _check_system() -> None:
    if not DOCUMENTS.works:
        say(f"a2c docs: {DOCUMENTS.problem}", err=True)
        raise typer.Exit(FAILED)


def _limits(max_size: int, max_pages: int, seconds: float) -> "DocumentLimits":
    from a2c_smcp.docs.limits import DocumentLimits

    return DocumentLimits(file_bytes=max_size * 2**20, page_count=max_pages, seconds=seconds)


def _library(folders: list[Path], limits: "DocumentLimits", **options: Any) -> "Library":
    from a2c_smcp.docs.library import Library

    try:
        return Library(folders, limits, **options)
    except (ValueError, OSError) as error:
        say(f"a2c docs: {error}", err=True)
        raise typer.Exit(FAILED) from None


@contextmanager
def _progress_bar(library: "Library") -> Iterator[None]:
    """Shows on stderr how many files were read so far. stdout may be the pipe to the client."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    bar = Progress(
        TextColumn("reading files"), BarColumn(), MofNCompleteColumn(), console=console(stderr=True), transient=True
    )
    task = bar.add_task("reading", total=None)

    def tell(done: int, total: int) -> None:
        if done >= total:
            bar.stop()
        else:
            bar.start()
            bar.update(task, completed=done, total=total)

    library.on_progress(tell)
    try:
        yield
    finally:
        bar.stop()
