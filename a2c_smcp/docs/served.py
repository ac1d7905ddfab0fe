"""What a folder serves, and what changed in it. Values only."""

from dataclasses import dataclass, field
from typing import Any

from a2c_smcp.docs.limits import Unreadable
from a2c_smcp.docs.walking import FoundFile
from a2c_smcp.mcp_server.documents import Document

__all__ = ["FolderChange", "RecognisedWords", "ServedFile", "request_for"]


@dataclass(frozen=True, slots=True)
class ServedFile:
    """A document, and the file that it was read from."""

    document: Document
    found: FoundFile
    problem: Unreadable | None = field(default=None, compare=False)
    unread: bool = field(default=False, compare=False)
    """Whether it is listed by its name only, because its file was not read yet."""


@dataclass(frozen=True, slots=True)
class FolderChange:
    """What changed: whether the list of documents did, and which documents hold something else."""

    listed: bool
    updated: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RecognisedWords:
    """The words of a page that were read from its picture (OCR), and what read them."""

    engine: str
    lines: tuple[str, ...] = ()


def request_for(root: str, found: FoundFile) -> list[Any]:
    """A file, as it is sent to a worker."""
    return [root, found.path, found.size, found.mtime_ns]
