"""Mail (`.eml`, `.mhtml`), by the standard library: its headers, its words, and the names of what is attached."""

import codecs
import email
import email.errors
import email.header
import email.message
import email.policy
import re
from typing import BinaryIO, Final

from a2c_smcp.docs.formats.html import decoded, html_elements
from a2c_smcp.docs.formats.letters import Attached, MailLetter, add_forms, letter_document
from a2c_smcp.docs.formats.markdown import SectionedDocument
from a2c_smcp.docs.formats.text import as_utf8, encoding_of
from a2c_smcp.docs.limits import FORMATS, DocumentLimits, Unreadable

__all__ = ["open_document"]

_SHOWN: Final = ("From", "To", "Cc", "Bcc", "Reply-To", "Date")
_PART: Final = re.compile(rb"^content-type:", re.IGNORECASE | re.MULTILINE)
_HEADER: Final = re.compile(rb"^(?:From [^\n]*\n)?[!-9;-~]{1,100}[ \t]*:")


def open_document(file: BinaryIO, name: str, limits: DocumentLimits) -> SectionedDocument:
    plain, _ = as_utf8(file)  # some programs save mail in UTF-16
    data = _without_zeros(plain.read()).removeprefix(codecs.BOM_UTF8).lstrip()
    if not _HEADER.match(data):
        raise Unreadable("it is not mail: it does not begin with a header")
    parts = len(_PART.findall(data))
    if parts > FORMATS.mail_parts:
        raise Unreadable(f"it has {parts} parts, and {FORMATS.mail_parts} are read", 413)
    # The newer policy reads headers by a grammar, which takes minutes for some that are made for it.
    return letter_document(_letter(email.message_from_bytes(data, policy=email.policy.compat32), 0))


def _without_zeros(data: bytes) -> bytes:
    """The same mail in UTF-8, if it is in UTF-16 without a mark: then every other byte of its first header is zero."""
    head = data[:16]
    for encoding, zeros in (("utf-16-le", head[1::2]), ("utf-16-be", head[::2])):
        if zeros and not zeros.strip(b"\0"):
            return data.decode(encoding, "replace").encode("utf-8", "replace")
    return data


def _letter(message: email.message.Message, depth: int) -> MailLetter:
    letter = MailLetter(_header(message, "Subject"))
    letter.facts = [(name, value) for name in _SHOWN if (value := _header(message, name))]
    _add(letter, message, depth)
    return letter


def _header(message: email.message.Message, name: str) -> str:
    found = message.get_all(name, [])
    return ", ".join(filter(None, (" ".join(_decoded_header(str(value)).split()) for value in found[:100])))


def _decoded_header(value: str) -> str:
    value = value[: FORMATS.mail_header]
    try:
        pieces = email.header.decode_header(value)
    except (ValueError, LookupError, email.errors.MessageError):
        return value
    return "".join(piece if isinstance(piece, str) else _text(piece, encoding or "") for piece, encoding in pieces)


def _text(data: bytes, declared: str) -> str:
    """In the encoding that is declared, if that is possible; else in the one that it seems to be in."""
    for encoding in (declared, encoding_of(data[: FORMATS.encoding_sample])):
        try:
            return data.decode(encoding or "utf-8")
        except (LookupError, UnicodeError):
            continue
    return data.decode("latin-1")


def _add(letter: MailLetter, part: email.message.Message, depth: int) -> None:
    """Add a part of a message to its letter: its words, or its name."""
    kind = part.get_content_type()
    inner = part.get_payload()
    if depth > FORMATS.mail_levels:
        letter.add_text("Left out here: parts within parts that are nested too deeply.")
    elif kind == "multipart/alternative" and isinstance(inner, list):
        _add_best(letter, [each for each in inner if isinstance(each, email.message.Message)], depth)
    elif kind == "message/rfc822" and isinstance(inner, list) and isinstance(inner[0], email.message.Message):
        letter.letters.append(_letter(inner[0], depth + 1))
    elif isinstance(inner, list):
        for each in inner:
            if isinstance(each, email.message.Message):
                _add(letter, each, depth + 1)
    elif part.get_content_maintype() == "text" and not _file_name(part):
        data = _payload(part)
        if kind == "text/html":
            letter.body += html_elements(decoded(data, part.get_content_charset("")))
        else:
            letter.add_text(_text(data, part.get_content_charset("")))
    elif (data := _payload(part)) or _file_name(part):
        letter.attached.append(Attached(_file_name(part), kind, len(data)))


def _add_best(letter: MailLetter, parts: list[email.message.Message], depth: int) -> None:
    """The same words in several forms: plain text is the best to read."""
    plain = next((each for each in parts if each.get_content_type() == "text/plain"), None)
    rest = [each for each in parts if each is not plain]
    if plain is None:
        for each in rest[-1:]:
            _add(letter, each, depth + 1)
        return
    html = MailLetter()
    for each in rest:
        _add(html, each, depth + 1)
    add_forms(letter, _text(_payload(plain), plain.get_content_charset("")), html.body)
    letter.attached += html.attached
    letter.letters += html.letters


def _payload(part: email.message.Message) -> bytes:
    try:
        data = part.get_payload(decode=True)
    except (ValueError, LookupError):
        return b""
    return data if isinstance(data, bytes) else b""


def _file_name(part: email.message.Message) -> str:
    """The name of a part that is a file, not a text to be read."""
    try:
        name = part.get_filename() or ""
        attached = part.get_content_disposition() == "attachment"
    except (ValueError, LookupError, TypeError):
        return ""
    return " ".join(_decoded_header(str(name)).split()) or ("without a name" if attached else "")
