"""Books (`.epub`), by a walk of our own over their chapters in the order of reading."""

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import BinaryIO, Final
from urllib.parse import unquote

from a2c_smcp.docs.formats import Properties, check_archive
from a2c_smcp.docs.formats.html import decoded, html_elements
from a2c_smcp.docs.formats.markdown import ReadDocument
from a2c_smcp.docs.formats.media import part_facts
from a2c_smcp.docs.formats.packages import BROKEN_PART, Package
from a2c_smcp.docs.limits import DocumentLimits, Unreadable
from a2c_smcp.docs.paging import sections
from a2c_smcp.mcp_server.documents import Page
from a2c_smcp.mcp_server.elements import Element, Image, Text

__all__ = ["open_document"]

_CONTAINER: Final = "META-INF/container.xml"
_ENCRYPTION: Final = "META-INF/encryption.xml"
_NO_TITLE: Final = re.compile(r"Page \d+")
"""The title of a page without a heading, which counts the pages of its chapter only."""


@dataclass(slots=True)
class _Contents:
    """What the book says of itself."""

    title: str = ""
    subjects: list[str] = field(default_factory=list)
    description: str = ""
    chapters: list[str] = field(default_factory=list)
    """The names of the parts, in the order of reading."""


def open_document(file: BinaryIO, name: str, limits: DocumentLimits) -> ReadDocument:
    check_archive(file, limits)
    try:
        package = Package(file)
        contents = _contents(package)
        locked = _locked(package)
    except BROKEN_PART as error:
        raise Unreadable(f"the file is broken: {error}") from None
    if contents.chapters and locked.issuperset(contents.chapters):
        raise Unreadable("it is encrypted")
    pages: list[Page] = []
    # A book may name a chapter many times to make it long. Each is read once.
    for chapter in dict.fromkeys(contents.chapters):
        for page in _chapter(package, chapter, locked):
            title = f"Page {len(pages) + 1}" if _NO_TITLE.fullmatch(page.title) else page.title
            pages.append(Page(title, page.elements))
    return ReadDocument(pages, Properties(contents.title, contents.subjects, contents.description), package.read)


def _chapter(package: Package, name: str, locked: set[str]) -> Iterator[Page]:
    if name in locked:
        yield Page("Page 1", [Text(f"This part of the book is encrypted: {name}")])
        return
    try:
        with package.open(name) as file:
            source = decoded(file.read())
    except BROKEN_PART:
        yield Page("Page 1", [Text(f"This part of the book is missing or broken: {name}")])
        return
    yield from sections(_with_part(element, name, package) for element in html_elements(source))


def _with_part(element: Element, chapter: str, package: Package) -> Element:
    """An image with the name of the part that it is, if the book has that part."""
    if not isinstance(element, Image) or not element.url:
        return element
    part = posixpath.normpath(posixpath.join(posixpath.dirname(chapter), unquote(element.url.partition("#")[0])))
    return replace(element, metadata=part_facts(part)) if part in package else element


def _contents(package: Package) -> _Contents:
    places: list[str] = []

    def root(name: str, facts: dict[str, str]) -> None:
        if name == "rootfile" and facts.get("full-path"):
            places.append(facts["full-path"])

    if _CONTAINER in package:
        package.parse(_CONTAINER, root)
    place = next((each for each in places if each in package), "") or next(package.ending_with(".opf"), "")
    if not place:
        raise Unreadable("it is not a book: it has no table of its parts")
    return _read_contents(package, place)


def _read_contents(package: Package, place: str) -> _Contents:
    contents = _Contents()
    parts: dict[str, str] = {}
    words: list[str] | None = None

    def start(name: str, facts: dict[str, str]) -> None:
        nonlocal words
        if name == "item":
            target = posixpath.join(posixpath.dirname(place), unquote(facts.get("href", "").partition("#")[0]))
            parts[facts.get("id", "")] = posixpath.normpath(target)
        elif name == "itemref" and facts.get("idref", "") in parts:
            contents.chapters.append(parts[facts["idref"]])
        elif name in ("title", "subject", "description"):
            words = []

    def text(found: str) -> None:
        if words is not None:
            words.append(found)

    def end(name: str) -> None:
        nonlocal words
        if words is None or name not in ("title", "subject", "description"):
            return
        found = " ".join("".join(words).split())
        words = None
        if name == "title":
            contents.title = contents.title or found
        elif name == "subject":
            contents.subjects.append(found)
        else:
            contents.description = contents.description or found

    package.parse(place, start, end, text)
    return contents


def _locked(package: Package) -> set[str]:
    """The names of parts that are encrypted."""
    found: set[str] = set()

    def start(name: str, facts: dict[str, str]) -> None:
        if name == "CipherReference":
            found.add(posixpath.normpath(unquote(facts.get("URI", ""))))

    if _ENCRYPTION in package:
        package.parse(_ENCRYPTION, start)
    return found
