"""Files that are put whole into a Word file (`altChunk`): HTML, text, RTF, mail, or another Word file."""

import io
from importlib import import_module
from typing import Final

from a2c_smcp.docs.formats import OpenDocument, suffix_of
from a2c_smcp.docs.limits import DocumentLimits, Unreadable
from a2c_smcp.mcp_server.elements import Annotation, Element

__all__ = ["chunk_elements"]

_READERS: Final = {
    **dict.fromkeys(("html", "htm", "xhtml", "xht"), "html"),
    **dict.fromkeys(("mht", "mhtml", "eml"), "mail"),
    **dict.fromkeys(("docx", "docm", "dotx", "dotm"), "word"),
    "rtf": "rtf",
    "txt": "text",
}


def chunk_elements(name: str, data: bytes, limits: DocumentLimits) -> list[Element]:
    """The elements of such a file; if it cannot be read, a sentence that says why."""
    kind = _READERS.get(suffix_of(name))
    if kind is None:
        return [_unread(name, "its kind is not known")]
    module = import_module(f"a2c_smcp.docs.formats.{kind}")
    # A Word file may hold itself. So what is put into one that is put into another is not read.
    opened = module.open_inner if kind == "word" else module.open_document
    try:
        document: OpenDocument = opened(io.BytesIO(data), name, limits)
        return [element for index in range(document.page_count) for element in document.page(index).elements]
    except Unreadable as problem:
        return [_unread(name, problem.reason)]


def _unread(name: str, reason: str) -> Annotation:
    return Annotation(f"Left out here: {name.rpartition('/')[2]}, a file within this one ({reason}).")
