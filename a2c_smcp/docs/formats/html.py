"""HTML, by selectolax: sections as pages. What is not for readers (scripts, styles, templates) is left out."""

import re
from collections.abc import Iterator
from typing import BinaryIO

from selectolax.lexbor import LexborHTMLParser, LexborNode

from a2c_smcp.docs.formats import OpenDocument, Properties
from a2c_smcp.docs.formats.markdown import SectionedDocument
from a2c_smcp.docs.formats.text import TextDocument, read_text
from a2c_smcp.docs.limits import FORMATS, DocumentLimits
from a2c_smcp.mcp_server.elements import Audio, Code, Element, Heading, Image, Link, List, Separator, Table, Text, Video

__all__ = ["open_document"]

_NOT_SHOWN = {"script", "style", "template", "noscript", "head", "svg", "iframe", "object", "-comment"}
_INLINE = {
    *("-text", "a", "abbr", "b", "bdi", "bdo", "br", "cite", "code", "data", "del", "dfn", "em", "i", "ins", "kbd"),
    *("label", "mark", "q", "s", "samp", "small", "span", "strong", "sub", "sup", "time", "u", "var", "wbr", "font"),
}
_MEDIA = {"audio": Audio, "video": Video}


def open_document(file: BinaryIO, name: str, limits: DocumentLimits) -> OpenDocument:
    text = read_text(file)
    if len(text) > FORMATS.html:
        file.seek(0)
        return TextDocument(file, name)
    tree = LexborHTMLParser(text)
    return SectionedDocument(list(_elements(tree.body, 0)) if tree.body is not None else [], _properties(tree))


def _properties(tree: LexborHTMLParser) -> Properties:
    title = tree.css_first("title")
    meta = {
        (node.attributes.get("name") or "").lower(): node.attributes.get("content") or "" for node in tree.css("meta")
    }
    keywords = [word.strip() for word in meta.get("keywords", "").split(",") if word.strip()]
    return Properties(_words(title) if title is not None else "", keywords, meta.get("description", ""))


def _elements(node: LexborNode, depth: int) -> Iterator[Element]:
    """The blocks below a node; words and inline elements between blocks are paragraphs of their own."""
    loose: list[str] = []
    links: list[Link] = []
    for child in node.iter(include_text=True):
        tag = child.tag or ""
        if tag in _INLINE and not _holds_block(child):
            loose.append("\n" if tag == "br" else child.text(deep=True))
            links += _links(child)
            continue
        if text := _squeezed("".join(loose)):
            yield Text(text)
            yield from links
        loose, links = [], []
        if tag not in _NOT_SHOWN and depth < FORMATS.html_levels:
            yield from _block(child, tag, depth)
    if text := _squeezed("".join(loose)):
        yield Text(text)
        yield from links


def _holds_block(node: LexborNode) -> bool:
    return node.tag != "-text" and node.css_first("p, div, table, ul, ol, img, h1, h2, h3, pre") is not None


def _block(node: LexborNode, tag: str, depth: int) -> Iterator[Element]:
    match tag:
        case "h1" | "h2" | "h3" | "h4" | "h5" | "h6":
            if words := _words(node):
                yield Heading(words, int(tag[1]))
        case "ul" | "ol":
            items = [words for item in node.css("li") if (words := _words(item))]
            if items:
                yield List(items, tag == "ol")
                yield from _links(node)
        case "pre":
            yield Code(node.text(deep=True).strip("\n"))
        case "table":
            yield _table(node)
        case "img":
            yield _image(node)
        case "hr":
            yield Separator()
        case "audio" | "video":
            url = node.attributes.get("src") or ""
            yield _MEDIA[tag](node.attributes.get("title") or url or tag, url)
        case _:
            yield from _elements(node, depth + 1)


def _table(node: LexborNode) -> Table:
    rows = [[_words(cell) for cell in row.css("th, td")] for row in node.css("tr")]
    first = node.css_first("tr")
    has_headers = first is not None and first.css_first("th") is not None and first.css_first("td") is None
    return Table(rows[0] if has_headers else [], rows[1:] if has_headers else rows)


def _image(node: LexborNode) -> Image:
    url = node.attributes.get("src") or ""
    # A picture that is written into the page is no address to go to.
    return Image(node.attributes.get("alt") or "", "" if url.startswith("data:") else url)


def _links(node: LexborNode) -> list[Link]:
    nodes = [node] if node.tag == "a" else ([] if node.tag == "-text" else node.css("a"))
    return [
        Link(_words(each), url)
        for each in nodes
        if (url := each.attributes.get("href") or "") and not url.startswith(("#", "javascript:"))
    ]


def _words(node: LexborNode) -> str:
    return " ".join(node.text(deep=True).split())


def _squeezed(text: str) -> str:
    return re.sub(r" *\n[ \n]*", "\n", re.sub(r"[ \t\r\f\v\xa0]+", " ", text)).strip()
