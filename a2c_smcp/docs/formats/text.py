"""Text and source code: 200 lines a page. Also how other formats find out in which encoding a file is."""

import codecs
import io
from typing import BinaryIO

from a2c_smcp.docs.formats import LANGUAGES, Properties, suffix_of
from a2c_smcp.docs.limits import FORMATS, DocumentLimits
from a2c_smcp.docs.paging import blocks_of_lines
from a2c_smcp.mcp_server.documents import Page
from a2c_smcp.mcp_server.elements import Code, Element, Text

__all__ = ["TextDocument", "as_utf8", "encoding_of", "open_document", "read_text"]

_MOST_USED = ("gb18030", "big5", "cp932", "cp1252", "cp1251")
_MARKED = ["utf_7", "utf_16", "utf_16_be", "utf_16_le", "utf_32", "utf_32_be", "utf_32_le"]
"""Encodings that are found by their mark, or not at all."""
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def encoding_of(head: bytes) -> str:
    """UTF-8 first: it is hardly ever right by accident. Then a guess, over the first 64 KiB."""
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            return encoding
    try:
        # The end may be in the middle of a character.
        codecs.getincrementaldecoder("utf-8")().decode(head)
        return "utf-8"
    except UnicodeDecodeError:
        return _guess(head)


def _guess(head: bytes) -> str:
    try:
        from charset_normalizer import from_bytes
    except ImportError:
        return "latin-1"
    found = list(from_bytes(head[: head.rfind(b"\n") + 1] or head, cp_exclusion=_MARKED))
    # A short text may be several things equally well: then it is what most people write.
    alike = [match.encoding for match in found if match.chaos == found[0].chaos]
    return next((each for each in (*_MOST_USED, *alike) if each in alike), "latin-1")


def as_utf8(file: BinaryIO) -> tuple[BinaryIO, str]:
    """The file, and an encoding in which lines end with a line feed byte: other texts are rewritten in memory."""
    encoding = encoding_of(file.read(FORMATS.encoding_sample))
    file.seek(0)
    if encoding in ("utf-16", "utf-32"):
        return io.BytesIO(file.read().decode(encoding, "replace").encode()), "utf-8"
    return file, encoding


def read_text(file: BinaryIO) -> str:
    """All of a file."""
    plain, encoding = as_utf8(file)
    return plain.read().decode(encoding, "replace")


class TextDocument:
    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file, self._encoding = as_utf8(file)
        self._language = LANGUAGES.get(suffix_of(name))
        self._starts = blocks_of_lines(self._file)

    @property
    def page_count(self) -> int:
        return len(self._starts)

    @property
    def properties(self) -> Properties:
        return Properties()

    def page(self, index: int) -> Page:
        start, first_line = self._starts[index]
        self._file.seek(start)
        end = self._starts[index + 1][0] if index + 1 < len(self._starts) else None
        text = self._file.read(-1 if end is None else end - start).decode(self._encoding, "replace")
        text = text.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff").rstrip("\n")
        lines = text.count("\n") + 1
        about = {"first_line": first_line + 1, "last_line": first_line + lines}
        elements: list[Element]
        if self._language is not None:
            elements = [Code(text, self._language, metadata=about)]
        else:
            elements = [Text(part) for part in paragraphs(text)]
        return Page(f"Lines {first_line + 1} to {first_line + lines}", elements)


def paragraphs(text: str) -> list[str]:
    """The parts between blank lines; one text as a whole if there are too many of them."""
    parts = [part for part in (part.strip("\n") for part in text.split("\n\n")) if part.strip()]
    return parts if len(parts) <= FORMATS.paragraphs else [text.strip("\n")]


def open_document(file: BinaryIO, name: str, limits: DocumentLimits) -> TextDocument:
    return TextDocument(file, name)
