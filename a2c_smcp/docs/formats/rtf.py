"""RTF files, by a reader of our own: sections as pages; tables, links, notes, and what stands above and below pages."""

import codecs
import re
from dataclasses import dataclass, field, replace
from typing import BinaryIO, Final

from a2c_smcp.docs.formats import Properties
from a2c_smcp.docs.formats.markdown import SectionedDocument
from a2c_smcp.docs.formats.office_xml import split_keywords
from a2c_smcp.docs.limits import FORMATS, DocumentLimits, Unreadable
from a2c_smcp.mcp_server.elements import Annotation, Element, Footer, Header, Heading, Link, Table, Text

__all__ = ["open_document"]

_TOKEN: Final = re.compile(
    rb"\\([a-zA-Z]{1,32})(-?\d{1,10})? ?"  # a word of control, with its number
    rb"|\\'([0-9a-fA-F]{2})"  # a byte
    rb"|\\([^a-zA-Z'])"  # a sign of control
    rb"|([{}])"
    rb"|([^\\{}\r\n]+)"
    rb"|[\r\n]+|\\",
    re.DOTALL,
)
#: Groups that hold no text of the document.
_UNSEEN: Final = frozenset(
    re.findall(
        rb"\w+",
        b"""fonttbl colortbl stylesheet listtable listoverridetable revtbl rsidtbl generator pict object objdata
        themedata colorschememapping datastore latentstyles xmlnstbl mmathPr fldinst info filetbl pgdsctbl nonshppict
        listpicture bkmkstart bkmkend pntxta pntxtb ftnsep ftnsepc aftnsep aftnsepc template private sp sn sv blipuid
        atnid atndate atnref atntime xe tc formfield fldtype wgrffmtfilter background""",
    )
)
#: Groups that hold text, also where they are marked as optional.
_SEEN: Final = frozenset(
    (b"shptxt", b"fldrslt", b"footnote", b"annotation", b"shpinst", b"shp", b"pn", b"pntext", b"ud")
)
_SIGNS: Final = {
    b"tab": "\t",
    b"line": "\n",
    b"lbr": "\n",
    b"emdash": "—",
    b"endash": "–",
    b"bullet": "•",
    b"lquote": "‘",
    b"rquote": "’",
    b"ldblquote": "“",
    b"rdblquote": "”",
    b"emspace": " ",
    b"enspace": " ",
    b"zwnj": "\u200c",
    b"zwj": "\u200d",
}
_ESCAPED: Final = {b"\\": "\\", b"{": "{", b"}": "}", b"~": "\xa0", b"_": "-", b"-": "", b"\n": "\n", b"\r": "\n"}
#: The code page of each character set of a font.
_CHARSETS: Final = {
    77: "mac_roman",
    128: "cp932",
    129: "cp949",
    130: "johab",
    134: "gbk",
    136: "big5",
    161: "cp1253",
    162: "cp1254",
    163: "cp1258",
    177: "cp1255",
    178: "cp1256",
    186: "cp1257",
    204: "cp1251",
    222: "cp874",
    238: "cp1250",
}
_HYPERLINK: Final = re.compile(r'HYPERLINK\s+"([^"]+)"', re.IGNORECASE)
_HEADING: Final = re.compile(r"heading ([1-9])")


def open_document(file: BinaryIO, name: str, limits: DocumentLimits) -> SectionedDocument:
    data = file.read()
    if not data.lstrip(b"\xef\xbb\xbf \t\r\n\0").startswith(b"{\\"):
        raise Unreadable("it is not an RTF file")
    reader = _RtfReader()
    elements = reader.read(data)
    return SectionedDocument(elements, reader.properties())


@dataclass(slots=True)
class _Group:
    """What holds until the group ends."""

    target: str = "body"
    """Where its text goes; nowhere if it is empty."""
    codec: str = ""
    """Of the font, if it has one of its own."""
    skip: int = 1
    """Bytes that stand for a character which is given by its number, for old programs."""
    is_deleted: bool = False
    is_optional: bool = False


@dataclass(slots=True)
class _Piece:
    """A paragraph that is being read, and the row that it may stand in."""

    parts: list[str] = field(default_factory=list)
    style: int = 0
    in_table: bool = False
    cells: list[str] = field(default_factory=list)
    cell: list[str] = field(default_factory=list)


class _GroupTexts:
    """The texts of groups that are not in the body, by what they are."""

    def __init__(self) -> None:
        self._parts: dict[str, list[str]] = {}

    def add(self, target: str, text: str) -> None:
        self._parts.setdefault(target, []).append(text)

    def take(self, target: str) -> str:
        """The text, which is forgotten then."""
        return "".join(self._parts.pop(target, ())).replace("\xad", "")


class _RtfReader:
    def __init__(self) -> None:
        self._groups: list[_Group] = []
        self._group = _Group()
        self._codec = "cp1252"
        self._fonts: dict[int, str] = {}
        self._font = 0
        self._default_font = 0
        self._styles: dict[int, str] = {}
        self._bytes = bytearray()
        self._to_skip = 0
        self._texts = _GroupTexts()
        self._piece = _Piece()
        self._rows: list[list[str]] = []
        self._elements: list[Element] = []
        self._later: list[Element] = []
        self._edges: dict[type[Header] | type[Footer], dict[str, None]] = {Header: {}, Footer: {}}
        self._note_count = 0
        self._style_number = 0
        self._high_surrogate = 0xD800

    def read(self, data: bytes) -> list[Element]:
        at = 0
        while (match := _TOKEN.match(data, at)) is not None:
            at = match.end()
            word, number, byte, sign, brace, text = match.groups()
            if word is not None:
                if word == b"bin" and number:
                    at += max(0, int(number))
                else:
                    self._word(word, None if number is None else int(number))
            elif byte is not None:
                self._byte(bytes.fromhex(byte.decode()))
            elif sign is not None:
                self._sign(sign)
            elif brace == b"{":
                self._open()
            elif brace == b"}":
                self._close()
            elif text is not None:
                self._byte(text)
        self._paragraph()
        self._table()
        found = [*self._elements, *self._later]
        place = 1 if found and isinstance(found[0], Heading) else 0
        found[place:place] = [Header(text) for text in self._edges[Header]]
        return [*found, *(Footer(text) for text in self._edges[Footer])]

    def properties(self) -> Properties:
        title, keywords, subject = (
            " ".join(self._texts.take(name).split()) for name in ("title", "keywords", "subject")
        )
        return Properties(title, split_keywords(keywords), subject)

    # --- groups

    def _open(self) -> None:
        self._decode()
        if len(self._groups) >= FORMATS.rtf_groups:
            raise Unreadable("it is nested too deeply", 413)
        self._groups.append(self._group)
        self._group = replace(self._group, is_optional=False)

    def _close(self) -> None:
        self._decode()
        self._to_skip = 0
        if not self._groups:
            return
        done, self._group = self._group, self._groups.pop()
        # Each style is a group inside the group of all styles.
        if done.target != self._group.target or done.target == "style":
            self._end(done.target)

    def _end(self, target: str) -> None:
        """A group with a text of its own has ended."""
        match target:
            case "footnote":
                if text := self._taken(target):
                    self._note_count += 1
                    self._put(f"[^{self._note_count}]")
                    self._later.append(Text(f"[^{self._note_count}]: {text}"))
            case "annotation":
                if text := self._taken(target):
                    self._later.append(Annotation(text, self._taken("atnauthor")))
            case "header" | "footer":
                if text := self._taken(target):
                    self._edges[Header if target == "header" else Footer][text] = None
            case "result":
                self._put_link()
            case "style":
                if name := self._taken(target).rstrip(";").lower():
                    self._styles[self._style_number] = name
            case _:
                pass

    def _put_link(self) -> None:
        shown, code = self._texts.take("result"), self._taken("code")
        self._put(shown)
        link = _HYPERLINK.search(code)
        if link is not None and shown.strip() and self._group.target:
            self._later.append(Link(" ".join(shown.split()), link[1]))

    # --- words of control

    def _word(self, word: bytes, number: int | None) -> None:
        self._decode()
        if self._to_skip and word not in (b"u", b"uc"):
            self._to_skip = 0
        group = self._group
        if word in _SIGNS:
            self._put(_SIGNS[word])
        elif word == b"u" and number is not None:
            self._unicode(number & 0xFFFF)
        elif word == b"uc":
            group.skip = max(0, min(8, number or 0))
        elif word in (b"par", b"sect", b"page"):
            self._paragraph_sign()
        elif word == b"pard":
            self._piece.style, self._piece.in_table = 0, False
        elif word == b"plain":
            group.codec, group.is_deleted = self._fonts.get(self._default_font, ""), False
        elif word == b"s" and number is not None:
            self._piece.style = self._style_number = number
        elif word == b"intbl":
            self._piece.in_table = True
        elif word in (b"cell", b"nestcell"):
            self._cell()
        elif word in (b"row", b"nestrow"):
            self._row()
        elif word in (b"f", b"af") and number is not None:
            self._font = number
            if word == b"f":
                group.codec = self._fonts.get(number, "")
        elif word == b"fcharset" and number is not None:
            self._fonts[self._font] = _CHARSETS.get(number, "")
        elif word == b"deff":
            self._default_font = number or 0
        elif word == b"ansicpg" and number is not None:
            self._codec = _known(f"cp{number}")
        elif word == b"mac":
            self._codec = "mac_roman"
        elif word == b"deleted":
            group.is_deleted = number != 0
        else:
            self._destination(word)

    def _destination(self, word: bytes) -> None:
        """A word that says what its group holds."""
        group = self._group
        if word in (b"footnote", b"annotation", b"atnauthor"):
            group.target = word.decode() if group.target else ""
        elif word in (b"header", b"headerl", b"headerr", b"headerf"):
            group.target = "header"
        elif word in (b"footer", b"footerl", b"footerr", b"footerf"):
            group.target = "footer"
        elif word == b"fldinst":
            group.target = "code"
        elif word == b"fldrslt":
            group.target = "result" if group.target else ""
        elif word in (b"title", b"keywords", b"subject"):
            group.target = word.decode()
        elif word == b"stylesheet":
            group.target = "style"
        elif word in _UNSEEN or (group.is_optional and word not in _SEEN):
            group.target = ""
        group.is_optional = False

    def _sign(self, sign: bytes) -> None:
        self._decode()
        if sign == b"*":
            self._group.is_optional = True
        elif sign in (b"\n", b"\r"):
            self._paragraph_sign()
        else:
            self._put(_ESCAPED.get(sign, ""))

    # --- text

    def _byte(self, data: bytes) -> None:
        if self._to_skip:
            skipped = min(self._to_skip, len(data))
            self._to_skip -= skipped
            data = data[skipped:]
        self._bytes += data

    def _decode(self) -> None:
        if self._bytes:
            text = bytes(self._bytes).decode(self._group.codec or self._codec, "replace")
            self._bytes.clear()
            self._put(text)

    def _unicode(self, code: int) -> None:
        self._to_skip = self._group.skip
        if 0xD800 <= code < 0xDC00:
            self._high_surrogate = code
            return
        if 0xDC00 <= code < 0xE000:
            code = 0x10000 + ((self._high_surrogate - 0xD800) << 10) + (code - 0xDC00)
        self._put(chr(code))

    def _put(self, text: str) -> None:
        group = self._group
        if not group.target or group.is_deleted:
            return
        if group.target == "body":
            self._piece.parts.append(text)
        else:
            self._texts.add(group.target, text)

    def _taken(self, target: str) -> str:
        return self._texts.take(target).strip()

    # --- paragraphs and tables

    def _paragraph_sign(self) -> None:
        if self._group.target != "body":
            self._put("\n")
        else:
            self._paragraph()

    def _paragraph(self) -> None:
        piece = self._piece
        text = "".join(piece.parts).replace("\xad", "").strip()
        piece.parts = []
        if piece.in_table:
            piece.cell += [text] if text else []
            return
        self._table()
        if not text:
            return
        heading = _HEADING.fullmatch(self._styles.get(piece.style, ""))
        if heading is None:
            self._elements.append(Text(text))
            return
        self._elements += self._later
        self._later = []
        self._elements.append(Heading(" ".join(text.split()), min(6, int(heading[1]))))

    def _cell(self) -> None:
        self._piece.in_table = True
        self._paragraph()
        self._piece.cells.append("\n".join(self._piece.cell))
        self._piece.cell = []

    def _row(self) -> None:
        if self._piece.cells:
            self._rows.append(self._piece.cells)
        self._piece.cells = []

    def _table(self) -> None:
        self._row()
        if self._piece.cell:
            self._rows.append(["\n".join(self._piece.cell)])
            self._piece.cell = []
        rows, self._rows = self._rows, []
        if len(rows) == 1 == len(rows[0]) or any(len(cell) > FORMATS.layout_cell for row in rows for cell in row):
            self._elements += [Text(cell) for row in rows for cell in row if cell]
        elif any(map(any, rows)):
            self._elements.append(Table(rows[0], rows[1:]) if len(rows) > 1 else Table([], rows))


def _known(codec: str) -> str:
    try:
        return codecs.lookup("utf-8" if codec == "cp65001" else codec).name
    except LookupError:
        return "cp1252"
