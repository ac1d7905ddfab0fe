"""PowerPoint files, by a walk of our own over their XML: a slide a page, in the order of the file.

That order is the one in which PowerPoint reads a slide aloud. Only the title is moved to the beginning, and links and
pictures to the end. A shape that is broken, or points at something that is not there, costs what it holds.
"""

from collections.abc import Iterator, Mapping
from typing import BinaryIO, Final

from a2c_smcp.docs.formats.blocks import list_of
from a2c_smcp.docs.formats.drawing import (
    ALTERNATIVES,
    CHART,
    DIAGRAM,
    DRAWING,
    RELATION,
    ShapeParagraph,
    alternatives,
    chart_of,
    diagram_of,
    paragraphs_of,
    part_of,
    pixels,
    table_of,
)
from a2c_smcp.docs.formats.media import part_facts, part_picture
from a2c_smcp.docs.formats.office_xml import Node, OfficePackage, OfficePart
from a2c_smcp.docs.limits import FORMATS, DocumentLimits, Unreadable
from a2c_smcp.docs.paging import split_table
from a2c_smcp.mcp_server.documents import Page
from a2c_smcp.mcp_server.elements import Annotation, Element, Footer, Heading, Image, Link, Text

__all__ = ["open_document"]

SLIDE: Final = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_FRAMES: Final = frozenset((f"{SLIDE}grpSp", f"{SLIDE}spTree"))
_EDGES: Final = ("ftr", "dt", "sldNum", "hdr")


class SlidesDocument:
    def __init__(self, main: OfficePart) -> None:
        self._package = main.package
        relationships = main.relationships()
        named = [node.get(f"{RELATION}id") or "" for node in main.root.iter(f"{SLIDE}sldId")]
        self._slides = [relationships[each].target for each in named if each in relationships]
        self._authors = _authors(main)
        self.properties = main.package.properties()

    @property
    def page_count(self) -> int:
        return max(1, len(self._slides))

    def page(self, index: int) -> Page:
        if not self._slides:
            return Page("No slides")
        part = self._package.part(self._slides[index])
        if part is None:
            return Page(f"Slide {index + 1}", [Text("This slide is missing in the file, or broken.")])
        elements = list(_Slide(part).elements())
        heading = next((each.text for each in elements if isinstance(each, Heading)), "")
        for notes in part.related("notesSlide"):
            elements += _notes(notes)
        for comments in part.related("comments"):
            elements += _comments(comments, self._authors)
        if part.is_cut:
            elements.append(Annotation("This slide is broken here: the rest of it cannot be read."))
        is_hidden = part.root.get("show") in ("0", "false")
        return Page((heading or f"Slide {index + 1}") + (" (hidden slide)" if is_hidden else ""), elements)

    def picture(self, index: int, element: Element | None, longest: int) -> bytes | None:
        return part_picture(self._package.read, element, longest)


def open_document(file: BinaryIO, name: str, limits: DocumentLimits) -> SlidesDocument:
    main = OfficePackage(file, limits).main_part("ppt/presentation.xml")
    if main is None or main.root.tag != f"{SLIDE}presentation":
        raise Unreadable("it is not a PowerPoint file: it has no presentation that can be read")
    return SlidesDocument(main)


class _Slide:
    """The shapes of a slide, as elements."""

    def __init__(self, part: OfficePart) -> None:
        self._part = part
        self._relationships = part.relationships()
        self._links: list[Link] = []

    def elements(self) -> Iterator[Element]:
        tree = self._part.root.find(f"{SLIDE}cSld/{SLIDE}spTree")
        shapes = [] if tree is None else list(_shapes(tree, 0))
        title = next((shape for shape in shapes if _placeholder(shape) in ("title", "ctrTitle")), None)
        if title is not None:
            words = [each.text for each in self._paragraphs(title)]
            if words:
                yield Heading(" ".join(" ".join(words).split()), 1)
        found = [each for shape in shapes if shape is not title for each in self._shape(shape)]
        yield from (each for each in found if not isinstance(each, Image))
        yield from dict.fromkeys(self._links)
        yield from (each for each in found if isinstance(each, Image))

    def _shape(self, shape: Node) -> Iterator[Element]:
        if shape.tag == f"{SLIDE}graphicFrame":
            yield from self._graphic(shape)
            return
        if shape.tag == f"{SLIDE}pic":
            width, height = pixels(shape.find(f"{SLIDE}spPr/{DRAWING}xfrm/{DRAWING}ext"))
            facts = part_facts(part_of(shape.find(f"{SLIDE}blipFill/{DRAWING}blip"), self._relationships))
            yield Image(description=_told(shape), width=width, height=height, metadata=facts)
            return
        found = list(self._paragraphs(shape))
        if _placeholder(shape) in _EDGES:
            if found:
                yield Footer("\n".join(each.text for each in found))
        elif len(found) == 1:
            yield Text(found[0].text)
        elif found:
            yield list_of([each.item for each in found])
        elif told := _told(shape):
            yield Image(description=told)

    def _graphic(self, frame: Node) -> Iterator[Element]:
        """A table, a chart, SmartArt, or another program's object."""
        table = frame.find(f".//{DRAWING}tbl")
        if table is not None:
            found, links = table_of(table, self._relationships)
            self._links += links
            yield from split_table(found)
            return
        for node in frame.iter():
            if node.tag == f"{DIAGRAM}relIds":
                part = self._target(node.get(f"{RELATION}dm"))
                if part is not None and (diagram := diagram_of(part)) is not None:
                    yield diagram
                return
            if node.tag == f"{CHART}chart" or node.tag.endswith("/chartex}chart"):
                part = self._target(node.get(f"{RELATION}id"))
                if part is not None and (chart := chart_of(part, _name(frame))) is not None:
                    yield chart
                return
        if told := _told(frame):
            yield Image(description=told)

    def _target(self, relation: str | None) -> OfficePart | None:
        target = self._relationships.get(relation or "")
        return None if target is None or target.is_external else self._part.package.part(target.target)

    def _paragraphs(self, shape: Node) -> Iterator[ShapeParagraph]:
        for paragraph in paragraphs_of(shape.find(f"{SLIDE}txBody"), self._relationships):
            self._links += paragraph.links
            yield paragraph


def _shapes(tree: Node, depth: int) -> Iterator[Node]:
    """The shapes in the order of the file, those of groups in the place of the group."""
    for child in tree:
        if child.tag in _FRAMES:
            if depth < FORMATS.office_levels:
                yield from _shapes(child, depth + 1)
        elif child.tag == ALTERNATIVES:
            for form in alternatives(child):
                if shapes := list(_shapes(form, depth + 1)):
                    yield from shapes
                    break
        elif child.tag in (f"{SLIDE}sp", f"{SLIDE}graphicFrame", f"{SLIDE}pic", f"{SLIDE}cxnSp"):
            yield child


def _placeholder(shape: Node) -> str:
    """What a shape is a place for: `title`, `body`, `ftr`… A shape that is not from the layout has none."""
    found = shape.find(f"{SLIDE}nvSpPr/{SLIDE}nvPr/{SLIDE}ph")
    return "" if found is None else found.get("type") or "obj"


def _facts(shape: Node) -> Mapping[str, str]:
    found = shape.find(f"*/{SLIDE}cNvPr")
    return {} if found is None else found.attrib


def _name(shape: Node) -> str:
    return _facts(shape).get("name") or ""


def _told(shape: Node) -> str:
    """The alternative text of a shape."""
    facts = _facts(shape)
    return " ".join((facts.get("descr") or facts.get("title") or "").split())


def _notes(part: OfficePart) -> Iterator[Element]:
    tree = part.root.find(f"{SLIDE}cSld/{SLIDE}spTree")
    for shape in () if tree is None else _shapes(tree, 0):
        if _placeholder(shape) in ("body", "obj", ""):
            lines = [each.text for each in paragraphs_of(shape.find(f"{SLIDE}txBody"), part.relationships())]
            if lines:
                yield Annotation("\n".join(lines))


def _authors(main: OfficePart) -> dict[str, str]:
    """Who wrote comments, by id."""
    return {
        node.get("id") or "": node.get("name") or ""
        for kind in ("commentAuthors", "authors")
        for part in main.related(kind)
        for node in part.root.iter()
    }


def _comments(part: OfficePart, authors: Mapping[str, str]) -> Iterator[Element]:
    """Comments of old and new files. An answer to a comment is one of its own."""
    for node in part.root.iter():
        name = node.tag.rpartition("}")[2]
        if name in ("cm", "reply"):
            body = next((child for child in node if child.tag.endswith("}txBody")), None)
            lines = [each.text for each in paragraphs_of(body, {})] or [node.findtext(f"{SLIDE}text") or ""]
            if any(lines):
                yield Annotation("\n".join(lines), authors.get(node.get("authorId") or "", ""))
