"""Word and PowerPoint files of the time before 2007, by a reader of our own: their text, without its layout.

They are OLE files. A Word file is a row of pieces of text; a PowerPoint file is records within records.
"""

import re
import struct
from collections.abc import Iterator
from importlib import import_module
from typing import BinaryIO, Final

import olefile

from a2c_smcp.docs.formats import OpenDocument, Properties, suffix_of
from a2c_smcp.docs.formats.markdown import SectionedDocument
from a2c_smcp.docs.formats.office_xml import Node, parse_xml
from a2c_smcp.docs.formats.text import encoding_of
from a2c_smcp.docs.limits import FORMATS, DocumentLimits, Unreadable
from a2c_smcp.mcp_server.documents import Page
from a2c_smcp.mcp_server.elements import Element, Heading, List, Text

__all__ = ["open_document"]

_WORDS: Final = ("doc", "dot")
_HEAD: Final = 4096
_WORD_XML: Final = re.compile(rb"<(?:\w+:)?(?:wordDocument|package)\b[^>]*xmlns")
_HTML: Final = re.compile(rb"<(?:!doctype\s+html|html|head|body|p|div|table)\b", re.IGNORECASE)
_FIELD_CODE: Final = re.compile(r"\x13[^\x13\x14\x15]*(?:\x14([^\x13\x15]*))?\x15")
#: Signs of Word that are not letters: breaks, hyphens, places of pictures and notes.
_SIGNS: Final = str.maketrans({"\x0b": "\n", "\x1e": "-", "\x1f": "", "\xad": "", "\x07": "\t"}) | dict.fromkeys(
    (*range(1, 7), 8, 0x13, 0x14, 0x15), ""
)
_CONTAINER, _SLIDE, _PLACE = 0xF, 1006, 1011
_OUTLINES, _LETTERS, _BYTES = 4080, 4000, 4008


def open_document(file: BinaryIO, name: str, limits: DocumentLimits) -> OpenDocument:
    head = file.read(_HEAD)
    file.seek(0)
    is_word = suffix_of(name) in _WORDS
    if head.startswith((b"PK", b"{\\rtf")):
        # Programs open what is inside, so many a file has the wrong ending.
        kind = "rtf" if head.startswith(b"{") else "word" if is_word else "slides"
        found: OpenDocument = import_module(f"a2c_smcp.docs.formats.{kind}").open_document(file, name, limits)
        return found
    if is_word and not head.startswith(olefile.MAGIC) and b"\0" not in head:
        return _open_text(file, name, head, limits)
    if not head.startswith(olefile.MAGIC):
        raise Unreadable("it is not an Office file of the time before 2007")
    try:
        ole = olefile.OleFileIO(file)
        told = ole.get_metadata()
        title = told.title.decode("utf-8", "replace").strip("\0 ") if isinstance(told.title, bytes) else ""
        if is_word:
            return SectionedDocument(list(_word_elements(ole)), Properties(title))
        # A file for PowerPoint 95 and 97 has a stream for each.
        newer = "PP97_DUALSTORAGE/PowerPoint Document"
        stream = newer if ole.exists(newer) else "PowerPoint Document"
        return _OldSlides(ole.openstream(stream).read(), Properties(title))
    except (OSError, struct.error, ValueError, IndexError) as error:
        raise Unreadable(f"the file is broken: {' '.join(str(error).split())[:100]}") from None


def _open_text(file: BinaryIO, name: str, head: bytes, limits: DocumentLimits) -> OpenDocument:
    """A file that is text and is called a Word file: Word's own XML, a page of HTML, or anything else."""
    if _WORD_XML.search(head):
        found = parse_xml(file.read())
        if found is not None:
            return SectionedDocument(list(_xml_paragraphs(found.root)), Properties())
        file.seek(0)
    kind = "html" if _HTML.search(head) else "text"
    opened: OpenDocument = import_module(f"a2c_smcp.docs.formats.{kind}").open_document(file, name, limits)
    return opened


def _xml_paragraphs(root: Node) -> Iterator[Element]:
    """The paragraphs of Word's XML in one file, of 2003 or newer: the names of its elements are the same."""
    inner: set[Node] = set()
    for paragraph in root.iter():
        if paragraph.tag.endswith("}p") and paragraph not in inner:
            found = list(paragraph.iter())
            inner.update(each for each in found if each.tag.endswith("}p"))  # those of a text box
            if words := "".join(each.text or "" for each in found if each.tag.endswith("}t")).strip():
                yield Text(words)


def _word_elements(ole: olefile.OleFileIO) -> Iterator[Element]:
    main = ole.openstream("WordDocument").read()
    flags = struct.unpack_from("<H", main, 10)[0]
    if flags & 0x100:
        raise Unreadable("it is encrypted")
    text = _word_text(ole, main, "1Table" if flags & 0x200 else "0Table")
    for _ in range(FORMATS.office_levels):
        # The innermost fields first: what a field shows stays, its code goes.
        text, count = _FIELD_CODE.subn(lambda match: match[1] or "", text)
        if not count:
            break
    for paragraph in re.split(r"[\r\x0c]|\x07\x07", text):
        if words := paragraph.translate(_SIGNS).strip():
            yield Text(words)


def _word_text(ole: olefile.OleFileIO, main: bytes, table_name: str) -> str:
    if ole.exists(table_name):
        start, size = struct.unpack_from("<II", main, 0x1A2)
        return "".join(_pieces(main, ole.openstream(table_name).read()[start : start + size]))
    # Word 6 and 95 have no table of pieces in a stream of its own: the text stands in one place.
    start, end = struct.unpack_from("<II", main, 0x18)
    if not 0 < start < end <= len(main):
        raise Unreadable("the file is broken: it has no text that can be found")
    data = main[start:end]
    sample = data[: FORMATS.encoding_sample]
    if b"\0" in sample[:64]:
        return data.decode("utf-16-le", "replace")
    # The file says in which language it is, and often wrongly. Western texts have few letters beyond ASCII.
    is_western = sum(byte > 0x7F for byte in sample) * 4 < len(sample)
    return data.decode("cp1252" if is_western else encoding_of(sample), "replace")


def _pieces(main: bytes, pieces: bytes) -> Iterator[str]:
    """The text, piece by piece: each says where it is, and whether it has one byte a letter or two."""
    at = 0
    while pieces[at] == 1:
        at += 3 + struct.unpack_from("<H", pieces, at + 1)[0]
    size = struct.unpack_from("<I", pieces, at + 1)[0]
    places = pieces[at + 5 : at + 5 + size]
    count = (len(places) - 4) // 12
    left = len(main)
    for number in range(count):
        first, last = struct.unpack_from("<II", places, number * 4)
        where = struct.unpack_from("<I", places, (count + 1) * 4 + number * 8 + 2)[0]
        length = max(0, last - first)
        left -= length
        if left < 0:
            raise Unreadable("its pieces hold more text than the file, as in files that are made to do harm", 413)
        if where & 0x40000000:
            begin = (where & 0x3FFFFFFF) // 2
            yield main[begin : begin + length].decode("cp1252", "replace")
        else:
            yield main[where : where + length * 2].decode("utf-16-le", "replace")


class _OldSlides:
    def __init__(self, data: bytes, properties: Properties) -> None:
        self.properties = properties
        outlines: list[list[str]] = []
        drawn: list[list[str]] = []
        for kind, text in _records(data, 0, len(data), 0, ""):
            if kind == "place":
                outlines.append([])
            elif kind == "slide":
                drawn.append([])
            elif kind == "outline text" and outlines:
                outlines[-1].append(text)
            elif kind == "slide text" and drawn:
                drawn[-1].append(text)
        count = max(len(outlines), len(drawn))
        self._slides = [
            [*(outlines[number] if number < len(outlines) else ()), *(drawn[number] if number < len(drawn) else ())]
            for number in range(count)
        ]

    @property
    def page_count(self) -> int:
        return max(1, len(self._slides))

    def page(self, index: int) -> Page:
        texts = self._slides[index] if self._slides else []
        elements: list[Element] = []
        for text in dict.fromkeys(texts):
            lines = [line.strip() for line in re.split(r"[\r\x0b]", text) if line.strip()]
            if lines and not elements:
                elements.append(Heading(" ".join(lines)[: FORMATS.heading], 1) if len(lines) == 1 else List(lines))
            elif lines:
                elements.append(Text(lines[0]) if len(lines) == 1 else List(lines))
        heading = next((each.text for each in elements if isinstance(each, Heading)), "")
        return Page(heading or f"Slide {index + 1}", elements)


def _records(data: bytes, at: int, end: int, depth: int, inside: str) -> Iterator[tuple[str, str]]:
    """Slides, their places in the outline, and texts, in the order of the file."""
    while at + 8 <= end:
        flags, kind, size = struct.unpack_from("<HHI", data, at)
        begin, at = at + 8, min(end, at + 8 + size)
        if kind == _PLACE and inside == "outline":
            yield "place", ""
        elif kind == _LETTERS and inside:
            yield f"{inside} text", data[begin:at].decode("utf-16-le", "replace")
        elif kind == _BYTES and inside:
            yield f"{inside} text", data[begin:at].decode("latin-1")
        elif flags & 0xF == _CONTAINER and depth < FORMATS.office_levels:
            if kind == _SLIDE:
                yield "slide", ""
            # The first list of outlines is that of the slides; the others are of masters and notes.
            found = {_SLIDE: "slide", _OUTLINES: "" if flags >> 4 else "outline"}.get(kind, inside)
            yield from _records(data, begin, at, depth + 1, found)
