"""One module a format, imported when a file of it is opened. Which format a file has is decided by its name,
else by its first bytes.

Each module has `open_document(file, name, limits)`, which returns an `OpenDocument` or raises `Unreadable`.
"""

import re
import zipfile
from dataclasses import dataclass, field
from importlib import import_module
from typing import BinaryIO, Final, Protocol, runtime_checkable

from a2c_smcp.docs.limits import FORMATS, DocumentLimits, Unreadable, missing_library
from a2c_smcp.mcp_server.documents import Page
from a2c_smcp.mcp_server.elements import Element

__all__ = [
    "OpenDocument",
    "PicturedDocument",
    "Properties",
    "check_archive",
    "file_type",
    "is_document_name",
    "is_never_a_document",
    "open_document",
    "suffix_of",
]

#: Code and configuration by suffix, with the language that a Markdown fence has for it.
LANGUAGES: Final = {
    **{suffix: suffix for suffix in ("c", "go", "java", "json", "lua", "php", "sql", "swift", "toml", "xml", "css")},
    "bash": "bash",
    "cfg": "ini",
    "cpp": "cpp",
    "cc": "cpp",
    "cs": "csharp",
    "dart": "dart",
    "h": "c",
    "hpp": "cpp",
    "ini": "ini",
    "js": "javascript",
    "jsx": "jsx",
    "kt": "kotlin",
    "mjs": "javascript",
    "pl": "perl",
    "ps1": "powershell",
    "py": "python",
    "pyi": "python",
    "r": "r",
    "rb": "ruby",
    "rs": "rust",
    "scala": "scala",
    "sh": "bash",
    "svg": "xml",
    "tex": "latex",
    "ts": "typescript",
    "tsx": "tsx",
    "vue": "vue",
    "yaml": "yaml",
    "yml": "yaml",
}
_MODULES: Final = {
    **dict.fromkeys(LANGUAGES, "text"),
    **dict.fromkeys(("txt", "text", "log", "rst", "adoc", "org", "srt", "vtt", "jsonl", "ndjson"), "text"),
    **dict.fromkeys(("md", "markdown", "mkd"), "markdown"),
    **dict.fromkeys(("html", "htm", "xhtml"), "html"),
    **dict.fromkeys(("csv", "tsv"), "delimited"),
    **dict.fromkeys(("xlsx", "xlsm", "xls", "xlsb", "ods"), "sheets"),
    **dict.fromkeys(("png", "jpg", "jpeg", "gif", "webp", "bmp", "tif", "tiff"), "images"),
    **dict.fromkeys(("eml", "mht", "mhtml"), "mail"),
    "msg": "msg",
    "ipynb": "notebook",
    "epub": "epub",
    "pdf": "pdf",
    **dict.fromkeys(("docx", "docm", "dotx", "dotm"), "word"),
    **dict.fromkeys(("pptx", "pptm", "ppsx", "ppsm", "potx", "potm"), "slides"),
    **dict.fromkeys(("odt", "ott", "fodt", "odp", "otp", "fodp", "odg", "fodg"), "opendocument"),
    "rtf": "rtf",
    **dict.fromkeys(("doc", "dot", "ppt", "pps", "pot"), "old_office"),
}
_NEVER: Final = frozenset(
    re.findall(
        r"\w+",
        """zip gz bz2 xz zst 7z rar tar tgz jar war whl exe dll so dylib a o obj bin class pyc pyo iso img dmg deb rpm
        mp3 mp4 m4a wav flac ogg avi mov mkv webm ico icns psd ttf otf woff woff2 eot db sqlite sqlite3 parquet npy npz
        pickle pkl pt onnx lock tmp temp part crdownload swp swo bak""",
    )
)
_MAGIC: Final = ((b"%PDF-", "pdf"), (b"\x89PNG", "images"), (b"\xff\xd8\xff", "images"), (b"GIF8", "images"))
_ARCHIVE: Final = b"PK\x03\x04"
_NAMES: Final = {"pdf": "a PDF file", "images": "an image", "word": "a Word file", "slides": "a PowerPoint file"}
_LIBRARIES: Final = {
    "pdf": "PDF",
    "sheets": "a workbook",
    "html": "HTML",
    "images": "an image",
    "mail": "mail",
    "msg": "a message of Outlook",
    "notebook": "a notebook",
    "epub": "a book",
    "old_office": "an Office file of the time before 2007",
}


@dataclass(frozen=True, slots=True)
class Properties:
    """What a file says of itself."""

    title: str = ""
    keywords: list[str] = field(default_factory=list)
    summary: str = ""


class OpenDocument(Protocol):
    """A file that is open. Pages are read one at a time, in any order.

    It may also have `picture(index, element, longest)`: a `PicturedDocument`.
    """

    @property
    def page_count(self) -> int: ...

    @property
    def properties(self) -> Properties: ...

    def page(self, index: int) -> Page: ...


@runtime_checkable
class PicturedDocument(OpenDocument, Protocol):
    """A document whose pages, or some of their elements, can be looked at."""

    def picture(self, index: int, element: Element | None, longest: int) -> bytes | None:
        """A PNG of a page or of an element of it, as `pictures.png_within` makes it; `None` if there is none.

        An element comes as the page gave it, with its `bbox` and its `metadata`.
        """
        ...


def suffix_of(name: str) -> str:
    stem, dot, suffix = name.rpartition("/")[2].rpartition(".")
    return suffix.lower() if dot and stem else ""


def file_type(name: str) -> str:
    """As the catalogue has it."""
    return suffix_of(name) or "txt"


def is_never_a_document(name: str) -> bool:
    """Archives, programs, films, and what editors leave behind; the name tells."""
    return suffix_of(name) in _NEVER or name.startswith("~$") or name.endswith("~")


def is_document_name(name: str) -> bool:
    """Whether the name alone tells that a file is a document."""
    return suffix_of(name) in _MODULES


def open_document(file: BinaryIO, name: str, limits: DocumentLimits) -> OpenDocument | None:
    """The document in a file, or `None` if the file is not a document. Raises `Unreadable` if it claims to be one."""
    head = file.read(8192)
    file.seek(0)
    kind = _MODULES.get(suffix_of(name)) or _kind_by_content(head)
    if kind is None:
        return None
    if not head:
        raise Unreadable("the file is empty")
    _check_content(kind, head, name)
    try:
        found: OpenDocument = import_module(f"{__name__}.{kind}").open_document(file, name, limits)
    except ImportError:
        raise missing_library(_LIBRARIES.get(kind, kind)) from None
    if found.page_count > limits.page_count:
        raise Unreadable(f"it has {found.page_count} pages, and {limits.page_count} are served", 413, lasting=False)
    return found


def _kind_by_content(head: bytes) -> str | None:
    for magic, kind in _MAGIC:
        if head.startswith(magic):
            return kind
    return None if b"\0" in head or not head else "text"


def _check_content(kind: str, head: bytes, name: str) -> None:
    """A file that is something else than its name says is not read as what the name says."""
    seems = next((found for magic, found in _MAGIC if head.startswith(magic)), None)
    if kind in ("word", "slides") and not head.startswith(_ARCHIVE):
        encrypted = head.startswith(b"\xd0\xcf\x11\xe0")
        raise Unreadable("it is encrypted, or of the time before 2007" if encrypted else f"it is not {_NAMES[kind]}")
    if kind == "pdf" and b"%PDF-" not in head[:1024]:
        raise Unreadable("it is not a PDF file")
    if kind in ("text", "markdown", "html", "delimited", "notebook"):
        if seems or head.startswith(_ARCHIVE):
            raise Unreadable(f"it is not text but {_NAMES.get(seems or '', 'an archive')}")
        if b"\0" in head and not head.startswith((b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff")):
            raise Unreadable(f"it is not text, as a {suffix_of(name)} file should be")


def check_archive(file: BinaryIO, limits: DocumentLimits) -> None:
    """Refuse a ZIP archive that is broken, or that would unpack to far more than it is."""
    try:
        with zipfile.ZipFile(file) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
        raise Unreadable(f"the file is broken: {error}") from None
    finally:
        file.seek(0)
    if any(entry.flag_bits & 1 for entry in entries):
        raise Unreadable("it is encrypted")
    unpacked = sum(entry.file_size for entry in entries)
    packed = sum(entry.compress_size for entry in entries)
    if len(entries) > FORMATS.archive_entries or unpacked > limits.unpacked_bytes:
        raise Unreadable(f"it would unpack to {unpacked // 2**20} MiB in {len(entries)} parts", 413, lasting=False)
    if unpacked > FORMATS.suspicious_bytes and unpacked > packed * FORMATS.suspicious_ratio:
        raise Unreadable(f"{packed} bytes would unpack to {unpacked}: it looks like a bomb", 413)
