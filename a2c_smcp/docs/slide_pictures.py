"""Slides to look at: LibreOffice makes a PDF file of a presentation once, and the workers make pictures of its pages.

LibreOffice runs on a copy of the file, one at a time, with a profile of its own in which no macro runs. It cannot be
kept from loading what some files link to, from outside of the folder and from the network. So this is only for
presentations that the owner trusts. The PDF files are kept by the identity of the presentation's file.
"""

import asyncio
import base64
import hashlib
import logging
import os
import shutil
import tempfile
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from a2c_smcp.docs.formats import suffix_of
from a2c_smcp.docs.index import private_folder
from a2c_smcp.docs.paths import open_inside
from a2c_smcp.docs.walking import FoundFile
from a2c_smcp.docs.workers import Workers
from a2c_smcp.utils.bounded import BoundedDict
from a2c_smcp.utils.children import kill_group, start_group

__all__ = ["OfficeBounds", "SlidePictures", "has_slides", "installed_office"]

logger = logging.getLogger(__name__)

_PRESENTATIONS: Final = frozenset(
    ("pptx", "pptm", "ppsx", "ppsm", "potx", "potm", "odp", "otp", "fodp", "ppt", "pps", "pot")
)
#: Hidden slides are pages too. LibreOffice before 7.4 does not know this option: then the numbers of pages differ.
_FORM: Final = 'pdf:impress_pdf_Export:{"ExportHiddenSlides":{"type":"boolean","value":"true"}}'
#: With these settings LibreOffice does not load the linked pictures of a PowerPoint file. It still loads linked fills
#: of its shapes, what an SVG drawing links to, and the linked pictures of OpenDocument files (LibreOffice 7.4).
_SETTINGS: Final = """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry">{}</oor:items>
""".format(
    "".join(
        f'<item oor:path="/org.openoffice.Office.Common/Security/Scripting"><prop oor:name="{name}" oor:op="fuse">'
        "<value>true</value></prop></item>"
        for name in ("BlockUntrustedRefererLinks", "DisableMacrosExecution", "DisableActiveContent")
    )
)
#: Sets the bounds of its own process, and becomes LibreOffice. Some systems have no bound of memory.
_BOUNDED: Final = 'ulimit -v "$1" 2>/dev/null; ulimit -f "$2" && shift 2 && exec "$@"'


@dataclass(frozen=True, slots=True)
class OfficeBounds:
    """What LibreOffice may use. Seconds and bytes."""

    seconds: float = 60.0
    memory_bytes: int = 4 * 2**30
    pdf_bytes: int = 128 * 2**20
    kept_bytes: int = 256 * 2**20
    """All PDF files that are kept. The oldest go first."""
    patience_seconds: float = 15.0
    """How long a request waits. After that it is answered without a picture, and LibreOffice goes on."""
    waiting: int = 16
    """Presentations that wait for their turn. Others get no picture now."""


def installed_office() -> str | None:
    """The command of LibreOffice, if it is on the path."""
    return shutil.which("soffice") or shutil.which("libreoffice")


def has_slides(path: str) -> bool:
    """Whether a file is a presentation: only there a page of ours is always a page of the PDF file."""
    return suffix_of(path) in _PRESENTATIONS


class SlidePictures:
    """Pictures of slides. Ask it inside `running()`."""

    def __init__(self, program: str, workers: Workers, cache: Path | None, bounds: OfficeBounds | None = None) -> None:
        """Without `cache`, the PDF files are kept as long as this runs."""
        self._program = program
        self._workers = workers
        self._cache = cache
        self._bounds = bounds or OfficeBounds()
        self._turn = asyncio.Lock()
        self._running: dict[str, asyncio.Task[bool]] = {}
        self._failed: BoundedDict[str, bool] = BoundedDict(most=1000)
        self._room = Path()
        self._kept = Path()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        with tempfile.TemporaryDirectory(prefix="a2c-slides-", ignore_cleanup_errors=True) as room:
            self._room = Path(room)
            self._kept = self._kept_in().resolve()  # workers follow no links
            try:
                yield
            finally:
                tasks = list(self._running.values())
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    def _kept_in(self) -> Path:
        if self._cache is not None:
            try:
                return private_folder(self._cache, "slides")
            except OSError as error:
                logger.warning("pictures of slides are made again at the next start: %s", error)
        return private_folder(self._room, "slides")

    async def picture(
        self, root: str, file: FoundFile, page_count: int, index: int, longest: int, late: Callable[[], None]
    ) -> bytes | None:
        """A PNG of a slide; `None` if it cannot be made, or is not made yet. `late` is called when it is made later."""
        name = _name_of(root, file)
        if not (self._kept / name).exists() and not await self._patiently(name, root, file, late):
            return None
        try:
            about = (self._kept / name).stat()
        except OSError:
            return None  # it has gone already, as many others came
        pdf = [str(self._kept), name, about.st_size, about.st_mtime_ns]
        [described] = await self._workers.describe([pdf])
        if (described.get("facts") or {}).get("page_count") != page_count:
            return None  # which page is which slide is not known
        found = (await self._workers.picture(pdf, index, None, longest)).get("picture")
        return None if found is None else base64.b64decode(found)

    async def _patiently(self, name: str, root: str, file: FoundFile, late: Callable[[], None]) -> bool:
        """Have a PDF file made. False if it cannot be made, or is not there yet."""
        task = self._running.get(name)
        if task is None:
            if name in self._failed or len(self._running) >= self._bounds.waiting:
                return False
            task = self._running[name] = asyncio.create_task(self._make(name, root, file))
            task.add_done_callback(lambda _: self._running.pop(name, None))
        done, _ = await asyncio.wait({task}, timeout=self._bounds.patience_seconds)
        if not done:
            task.add_done_callback(lambda task: late() if not task.cancelled() and task.result() else None)
            return False
        return not task.cancelled() and task.result()

    async def _make(self, name: str, root: str, file: FoundFile) -> bool:
        """Make a PDF file and keep it. A file for which this fails is not tried again before the next start."""
        async with self._turn:
            made = self._room / "made"
            try:
                await asyncio.to_thread(self._prepare, made, root, file)
                await self._convert(made, f"slides.{suffix_of(file.path)}")
                await asyncio.to_thread(self._keep, made / "slides.pdf", name)
                return True
            except (OSError, TimeoutError) as error:
                self._failed.put(name, True)
                # A profile of a program that was killed may be broken.
                await asyncio.to_thread(shutil.rmtree, self._room / "profile", ignore_errors=True)
                logger.warning("there are no pictures of the slides of %r: %s", file.path, error or "it took too long")
                return False
            finally:
                shutil.rmtree(made, ignore_errors=True)

    def _prepare(self, made: Path, root: str, file: FoundFile) -> None:
        """A copy of the file, and the profile. Raises `OSError` if the file has changed."""
        made.mkdir(mode=0o700)
        settings = self._room / "profile" / "user" / "registrymodifications.xcu"
        settings.parent.mkdir(parents=True, exist_ok=True)
        settings.write_text(_SETTINGS)  # each time: LibreOffice writes into it when it ends
        with (
            os.fdopen(open_inside(root, file.path), "rb") as source,
            (made / f"slides.{suffix_of(file.path)}").open("xb") as copy,
        ):
            about = os.fstat(source.fileno())
            if (about.st_size, about.st_mtime_ns) != file.version:
                raise OSError("it was saved meanwhile")
            shutil.copyfileobj(source, copy)

    async def _convert(self, made: Path, name: str) -> None:
        bounds = self._bounds
        limits = (str(bounds.memory_bytes // 1024), str(bounds.pdf_bytes // 512))
        profile = f"-env:UserInstallation={(self._room / 'profile').as_uri()}"
        process = await start_group(
            *("/bin/sh", "-c", _BOUNDED, "sh", *limits, self._program, profile, "--headless", "--norestore"),
            *("--convert-to", _FORM, "--outdir", str(made), str(made / name)),
            cwd=made,
            env={**os.environ, "TMPDIR": str(made)},
            stdin=DEVNULL,
            stdout=DEVNULL,
            stderr=DEVNULL,
        )
        try:
            async with asyncio.timeout(bounds.seconds):
                await process.wait()
        finally:
            # Also when it has ended: it may have left others behind.
            await kill_group(process)

    def _keep(self, pdf: Path, name: str) -> None:
        """Move a PDF file to the others, and remove the oldest of them if they are too many bytes."""
        if pdf.is_symlink() or not pdf.is_file():
            raise FileNotFoundError("LibreOffice made no PDF file of it")
        pdf.chmod(0o600)
        # Another process that shares the cache sees all of a file or nothing of it.
        part = self._kept / f"{name}.{os.getpid()}.part"
        shutil.move(pdf, part)
        part.replace(self._kept / name)
        files = sorted(((each.stat().st_mtime_ns, each) for each in self._kept.iterdir()), reverse=True)
        kept = 0
        for _, each in files:
            kept += each.stat().st_size
            if kept > self._bounds.kept_bytes:
                with suppress(OSError):
                    each.unlink()


def _name_of(root: str, file: FoundFile) -> str:
    """The name of the PDF file of a presentation, by its identity."""
    identity: list[Any] = [root, file.path, file.size, file.mtime_ns]
    return hashlib.sha256(repr(identity).encode("utf-8", "backslashreplace")).hexdigest()[:32] + ".pdf"
