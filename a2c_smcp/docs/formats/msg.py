"""Mail as Outlook keeps it (`.msg`), by a walk of our own: headers, words, and the names of what is attached."""

import codecs
import io
import struct
from datetime import UTC, datetime, timedelta
from typing import BinaryIO

import olefile

from a2c_smcp.docs.formats import mail, rtf
from a2c_smcp.docs.formats.html import decoded, html_elements
from a2c_smcp.docs.formats.letters import Attached, MailLetter, add_forms, instant, letter_document
from a2c_smcp.docs.formats.markdown import SectionedDocument
from a2c_smcp.docs.limits import FORMATS, DocumentLimits, Unreadable

__all__ = ["open_document", "unpacked_rtf"]

_PROPERTIES = "__properties_version1.0"
_SUBJECT, _BODY, _HTML, _RTF = 0x0037, 0x1000, 0x1013, 0x1009
_SENDER, _SENDER_ADDRESS, _SENDER_SMTP = 0x0C1A, 0x0C1F, 0x5D01
_TO, _CC, _BCC = 0x0E04, 0x0E03, 0x0E02
_SENT, _DELIVERED = 0x0039, 0x0E06
#: What every packed RTF may refer to.
_KNOWN_RTF = (
    rb"{\rtf1\ansi\mac\deff0\deftab720{\fonttbl;}{\f0\fnil \froman \fswiss \fmodern \fscript \fdecor MS Sans Serif"
    rb"SymbolArialTimes New RomanCourier{\colortbl\red0\green0\blue0"
    b"\r\n"
    rb"\par \pard\plain\f0\fs20\b\i\u\tab\tx"
)
_CODEPAGES = (0x3FFD, 0x3FDE)


def open_document(file: BinaryIO, name: str, limits: DocumentLimits) -> SectionedDocument:
    if file.read(8) != olefile.MAGIC:
        file.seek(0)
        return mail.open_document(file, name, limits)  # some programs give that ending to plain mail
    file.seek(0)
    try:
        with olefile.OleFileIO(file) as container:
            if not container.exists(_PROPERTIES):
                raise Unreadable("it is not a message of Outlook")
            return letter_document(_Storage(container, [], 32).letter(0))
    except (OSError, ValueError, struct.error, IndexError) as error:
        raise Unreadable(f"the file is broken: {error}") from None


class _Storage:
    """A folder of the file: a message, or something that is attached to one."""

    def __init__(self, container: olefile.OleFileIO, place: list[str], header: int) -> None:
        """`header` is the length of what stands before the properties."""
        self._container = container
        self._place = place
        self._fixed = self._read_fixed(header)
        pages = [int.from_bytes(self._fixed.get(each, b"")[:4], "little") for each in _CODEPAGES]
        self._encoding = next((f"cp{page}" for page in pages if page and _is_known(f"cp{page}")), "cp1252")
        self._encoding = "utf-8" if 65001 in pages else self._encoding

    def _read(self, *names: str) -> bytes:
        path = [*self._place, *names]
        return self._container.openstream(path).read() if self._container.exists("/".join(path)) else b""

    def _read_fixed(self, header: int) -> dict[int, bytes]:
        data = self._read(_PROPERTIES)
        found: dict[int, bytes] = {}
        for at in range(header, len(data) - 15, 16):
            found[int.from_bytes(data[at + 2 : at + 4], "little")] = data[at + 8 : at + 16]
        return found

    def _text(self, tag: int) -> str:
        if wide := self._read(f"__substg1.0_{tag:04X}001F"):
            return wide.decode("utf-16-le", "replace").rstrip("\0")
        return self._read(f"__substg1.0_{tag:04X}001E").decode(self._encoding, "replace").rstrip("\0")

    def _time(self, tag: int) -> str:
        """Counted in tenths of a microsecond since 1601."""
        ticks = int.from_bytes(self._fixed.get(tag, b""), "little")
        try:
            return instant(datetime(1601, 1, 1, tzinfo=UTC) + timedelta(microseconds=ticks // 10)) if ticks else ""
        except OverflowError:
            return ""

    def letter(self, depth: int) -> MailLetter:
        sender = self._text(_SENDER)
        address = self._text(_SENDER_SMTP) or self._text(_SENDER_ADDRESS)
        if address and address != sender and "@" in address:
            sender = f"{sender} <{address}>".strip()
        facts = {
            "From": sender,
            "To": self._text(_TO),
            "Cc": self._text(_CC),
            "Bcc": self._text(_BCC),
            "Date": self._time(_SENT) or self._time(_DELIVERED),
        }
        letter = MailLetter(
            " ".join(self._text(_SUBJECT).split()),
            [(key, " ".join(value.split())) for key, value in facts.items() if value],
        )
        self._add_body(letter)
        if depth >= FORMATS.mail_levels:
            letter.add_text("Left out here: messages within messages that are nested too deeply.")
            return letter
        for place in self._attachments():
            _add_attached(letter, self._container, place, depth)
        return letter

    def _add_body(self, letter: MailLetter) -> None:
        plain = self._text(_BODY)
        html = self._read(f"__substg1.0_{_HTML:04X}0102")
        source = decoded(html) if html else self._text(_HTML)
        shown = html_elements(source) if source else []
        add_forms(letter, plain, shown)
        if not letter.body and (packed := self._read(f"__substg1.0_{_RTF:04X}0102")):
            try:
                document = rtf.open_document(io.BytesIO(unpacked_rtf(packed)), "body.rtf", DocumentLimits())
            except Unreadable as problem:
                letter.add_text(f"Left out here: the words of this message, which are in RTF: {problem.reason}")
                return
            letter.body += [each for index in range(document.page_count) for each in document.page(index).elements]

    def _attachments(self) -> list[list[str]]:
        depth = len(self._place)
        found = {
            tuple(path[: depth + 1])
            for path in self._container.listdir()
            if path[:depth] == self._place and len(path) > depth + 1 and path[depth].startswith("__attach_version1.0")
        }
        return [list(place) for place in sorted(found)]


def _add_attached(letter: MailLetter, container: olefile.OleFileIO, place: list[str], depth: int) -> None:
    inner = [*place, "__substg1.0_3701000D"]
    if container.exists("/".join([*inner, _PROPERTIES])):
        letter.letters.append(_Storage(container, inner, 24).letter(depth + 1))
        return
    storage = _Storage(container, place, 8)
    data = "/".join([*place, "__substg1.0_37010102"])
    size = container.get_size(data) if container.exists(data) else 0
    name = storage._text(0x3707) or storage._text(0x3704) or storage._text(0x3001)
    letter.attached.append(Attached(name, storage._text(0x370E), size))


def unpacked_rtf(data: bytes) -> bytes:
    """What Outlook has packed: bytes as they are, and pairs of place and length in the last 4,096 bytes."""
    if data[8:12] != b"LZFu":
        return data[16:]
    window = bytearray(_KNOWN_RTF.ljust(4096, b"\0"))
    at, place = 16, len(_KNOWN_RTF)
    out = bytearray()

    def put(byte: int) -> None:
        nonlocal place
        window[place] = byte
        place = (place + 1) % 4096
        out.append(byte)

    while at < len(data):
        marks = data[at]
        at += 1
        for bit in range(8):
            if not marks >> bit & 1:
                if at < len(data):
                    put(data[at])
                at += 1
                continue
            pair = int.from_bytes(data[at : at + 2], "big")
            at += 2
            if pair >> 4 == place or at > len(data):
                return bytes(out)
            for back in range((pair & 15) + 2):
                put(window[((pair >> 4) + back) % 4096])
    return bytes(out)


def _is_known(encoding: str) -> bool:
    try:
        codecs.lookup(encoding)
    except LookupError:
        return False
    return True
