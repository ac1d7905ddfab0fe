"""What Word, PowerPoint and OpenDocument files share: an archive of XML parts, which are parsed without any entity.

Knows nothing of what the parts say. A part that is missing, broken or cut costs what it holds, never the document.
"""

import posixpath
import re
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Final
from urllib.parse import unquote
from xml.etree import ElementTree

from a2c_smcp.docs.formats import Properties, check_archive
from a2c_smcp.docs.limits import DocumentLimits, Unreadable

__all__ = ["Node", "OfficePackage", "OfficePart", "Relationship", "XmlPart", "parse_xml", "split_keywords"]

Node = ElementTree.Element

_RELATIONSHIPS: Final = "http://schemas.openxmlformats.org/package/2006/relationships"
_CORE: Final = "http://schemas.openxmlformats.org/package/2006/metadata/core-properties"
_DUBLIN: Final = "http://purl.org/dc/elements/1.1/"
#: The namespaces of strict files, and those of all others. The longer ones first, as each is replaced in the bytes.
_STRICT: Final = (
    (b"http://purl.oclc.org/ooxml/officeDocument/relationships", b"officeDocument/2006/relationships"),
    (b"http://purl.oclc.org/ooxml/officeDocument/math", b"officeDocument/2006/math"),
    (b"http://purl.oclc.org/ooxml/wordprocessingml/main", b"wordprocessingml/2006/main"),
    (b"http://purl.oclc.org/ooxml/presentationml/main", b"presentationml/2006/main"),
    (b"http://purl.oclc.org/ooxml/drawingml/", b"drawingml/2006/"),
)
_PROLOGUE: Final = 2048
"""Bytes in which the name of a document type is looked for."""
_NAMED_TYPE: Final = re.compile(rb"<!DOCTYPE[^\[\]<>]*>")


@dataclass(frozen=True, slots=True)
class XmlPart:
    """The XML of a part, and whether it ends too early or is broken after what is here."""

    root: Node
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class Relationship:
    """What a part points at: another part, or an address outside of the file."""

    kind: str
    """The last word of its type: `image`, `header`, `hyperlink`…"""
    target: str
    is_external: bool


class _Builder(ElementTree.TreeBuilder):
    """A tree without entities: a document type that could declare one is not read."""

    def doctype(self, name: str, public_id: str | None, system: str | None) -> None:
        raise Unreadable("its XML has a document type, which may hold a bomb")


def parse_xml(data: bytes) -> XmlPart | None:
    """The tree of a part, as far as its XML is well formed; `None` if not even its first tag is. Raises `Unreadable`
    for XML that declares a document type.
    """
    if b"http://purl.oclc.org/ooxml/" in data:
        for strict, usual in _STRICT:
            data = data.replace(strict, b"http://schemas.openxmlformats.org/" + usual)
    # Old programs name the document type of OpenDocument. A name alone declares nothing.
    data = _NAMED_TYPE.sub(b"", data[:_PROLOGUE], count=1) + data[_PROLOGUE:]
    builder = _Builder()
    parser = ElementTree.XMLParser(target=builder)
    try:
        parser.feed(data)
        return XmlPart(parser.close())
    except (ElementTree.ParseError, LookupError, ValueError):
        root: Node | None = builder.close()
        return None if root is None else XmlPart(root, is_cut=True)


class OfficePackage:
    """An archive of parts. Names are found whatever their case is, and whichever slash their writer used."""

    def __init__(self, file: BinaryIO, limits: DocumentLimits) -> None:
        check_archive(file, limits)
        self._archive = zipfile.ZipFile(file)
        self._entries = {_normal(entry.filename): entry for entry in self._archive.infolist()}

    def __contains__(self, name: str) -> bool:
        return _normal(name) in self._entries

    @property
    def names(self) -> Iterator[str]:
        return (entry.filename for entry in self._entries.values())

    def read(self, name: str) -> bytes | None:
        """The bytes of a part, or `None` if it is missing or damaged."""
        entry = self._entries.get(_normal(name))
        if entry is None:
            return None
        try:
            return self._archive.read(entry)
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError):
            return None

    def xml(self, name: str) -> XmlPart | None:
        data = self.read(name)
        return None if data is None else parse_xml(data)

    def part(self, name: str) -> "OfficePart | None":
        """A part with its XML and what it points at; `None` if it is missing or is not XML."""
        found = self.xml(name)
        return None if found is None else OfficePart(self, name, found.root, found.is_cut)

    def main_part(self, *usual: str) -> "OfficePart | None":
        """The part with the document itself, by the relationships of the archive, else by its usual name."""
        named = [each.target for each in self.relationships("").values() if each.kind == "officeDocument"]
        return next(filter(None, map(self.part, [*named, *usual])), None)

    def relationships(self, part: str) -> dict[str, Relationship]:
        """What a part points at, by id. The archive itself is the part without a name."""
        folder, _, name = part.rpartition("/")
        found = self.xml(f"{folder}/_rels/{name}.rels")
        if found is None:
            return {}
        relationships = {}
        for each in found.root.iter(f"{{{_RELATIONSHIPS}}}Relationship"):
            target, is_external = each.get("Target") or "", each.get("TargetMode") == "External"
            if not is_external:
                target = posixpath.normpath(posixpath.join("/", folder, unquote(target))).lstrip("/")
            kind = (each.get("Type") or "").rpartition("/")[2]
            relationships[each.get("Id") or ""] = Relationship(kind, target, is_external)
        return relationships

    def properties(self) -> Properties:
        """Title, keywords and subject, as the author gave them."""
        named = [each.target for each in self.relationships("").values() if each.kind == "core-properties"]
        found = next(filter(None, map(self.xml, [*named, "docProps/core.xml"])), None)
        if found is None:
            return Properties()
        words = (found.root.findtext(f"{{{_CORE}}}keywords") or "").strip()
        title, subject = (found.root.findtext(f"{{{_DUBLIN}}}{name}") or "" for name in ("title", "subject"))
        return Properties(title.strip(), split_keywords(words), subject.strip())


@dataclass(frozen=True, slots=True)
class OfficePart:
    """One XML part of a package."""

    package: OfficePackage
    name: str
    root: Node
    is_cut: bool

    def relationships(self) -> dict[str, Relationship]:
        return self.package.relationships(self.name)

    def related(self, kind: str) -> Iterator["OfficePart"]:
        """The parts of this kind that this one points at."""
        for each in self.relationships().values():
            if each.kind == kind and not each.is_external and (part := self.package.part(each.target)) is not None:
                yield part


def split_keywords(words: str) -> list[str]:
    return [word.strip() for word in words.replace(";", ",").split(",") if word.strip()]


def _normal(name: str) -> str:
    return name.replace("\\", "/").lstrip("/").lower()
