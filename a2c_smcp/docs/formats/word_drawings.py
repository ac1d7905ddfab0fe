"""What a drawing of a Word file holds: text boxes, charts, SmartArt, pictures, and their alternative texts."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from a2c_smcp.docs.formats.drawing import (
    ALTERNATIVES,
    CHART,
    DIAGRAM,
    DRAWING,
    RELATION,
    alternatives,
    chart_of,
    diagram_of,
    paragraphs_of,
)
from a2c_smcp.docs.formats.office_xml import Node, OfficePackage, Relationship
from a2c_smcp.docs.formats.word_styles import WORD
from a2c_smcp.docs.limits import FORMATS
from a2c_smcp.mcp_server.elements import Element, Text

__all__ = ["WordDrawing"]

_VECTOR: Final = "{urn:schemas-microsoft-com:vml}"
_OFFICE_VECTOR: Final = "{urn:schemas-microsoft-com:office:office}"


class WordDrawing:
    """A drawing. `look` goes through its XML; then its parts can be read here."""

    def __init__(
        self,
        package: OfficePackage,
        relationships: Mapping[str, Relationship],
        read_box: Callable[[Node], list[Element]],
    ) -> None:
        """`read_box` reads the blocks of a text box."""
        self._package = package
        self._relationships = relationships
        self._read_box = read_box
        self.elements: list[Element] = []
        self.told: list[str] = []
        """Its alternative texts."""
        self.picture: Node | None = None
        """Its first picture."""

    def look(self, node: Node, level: int = 0) -> None:
        if level > FORMATS.drawing_levels:
            return
        for child in node:
            tag = child.tag
            if tag == f"{WORD}txbxContent":
                self.elements += self._read_box(child)
            elif tag == ALTERNATIVES:
                self._look_at_one(child, level)
            elif tag == f"{CHART}chart" or tag == f"{DIAGRAM}relIds" or tag.endswith("/chartex}chart"):
                self.elements += self._figure(child)
            elif tag == f"{DRAWING}txBody":
                self.elements += [Text(each.text) for each in paragraphs_of(child, self._relationships)]
            else:
                self._note(child)
                self.look(child, level + 1)

    def _look_at_one(self, node: Node, level: int) -> None:
        """Look at the first form that holds anything."""
        before = len(self.elements), self.picture
        for form in alternatives(node):
            self.look(form, level + 1)
            if (len(self.elements), self.picture) != before:
                return

    def _figure(self, node: Node) -> Iterator[Element]:
        """A chart or a SmartArt drawing, if its part can be read."""
        is_diagram = node.tag == f"{DIAGRAM}relIds"
        target = self._relationships.get(node.get(f"{RELATION}{'dm' if is_diagram else 'id'}") or "")
        part = None if target is None or target.is_external else self._package.part(target.target)
        element = None if part is None else diagram_of(part) if is_diagram else chart_of(part, "")
        if element is not None:
            yield element

    def _note(self, node: Node) -> None:
        tag = node.tag
        if tag == f"{DRAWING}blip" or tag == f"{_VECTOR}imagedata":
            self.picture = node if self.picture is None else self.picture
            self._tell(node.get(f"{_OFFICE_VECTOR}title"))
        elif tag.endswith(("}docPr", "}cNvPr")):
            self._tell(node.get("descr") or node.get("title"))
        elif tag == f"{_VECTOR}shape":
            self._tell(node.get("alt"))
        elif tag == f"{_VECTOR}textpath" and node.get("string"):
            self.elements.append(Text(node.get("string") or ""))

    def _tell(self, text: str | None) -> None:
        words = " ".join((text or "").split())
        if words and words not in self.told:
            self.told.append(words)
