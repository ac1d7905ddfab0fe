"""HTML, by selectolax: sections as pages. Every word of the page is there once; scripts, styles and templates are not.

`noscript` is left out, too: pages have a plea to enable scripts there, or a copy of what stands beside it.
"""

import codecs
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import BinaryIO, Final

from selectolax.lexbor import LexborHTMLParser, LexborNode

from a2c_smcp.docs.formats import OpenDocument, Properties
from a2c_smcp.docs.formats.markdown import SectionedDocument
from a2c_smcp.docs.formats.text import TextDocument, encoding_of
from a2c_smcp.docs.limits import FORMATS, DocumentLimits
from a2c_smcp.docs.paging import starts_page
from a2c_smcp.mcp_server.elements import Audio, Code, Element, Heading, Image, Link, List, Separator, Table, Text, Video

__all__ = ["decoded", "flattened", "html_elements", "open_document"]

_NOT_SHOWN: Final = ["script", "style", "template", "noscript", "iframe", "noframes", "noembed", "rp"]
_SKIPPED: Final = {"head", "-comment", "datalist"}
_HEADINGS: Final = {f"h{level}": level for level in range(1, 7)}
_BLOCKS: Final = {
    *(
        "address",
        "article",
        "aside",
        "blockquote",
        "body",
        "caption",
        "center",
        "dd",
        "details",
        "dialog",
        "dir",
        "div",
    ),
    *("dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "header", "hgroup", "html", "legend", "li"),
    *("main", "menu", "nav", "ol", "p", "section", "summary", "td", "th", "tr", "ul", "tbody", "thead", "tfoot"),
    *("frameset", "option", "optgroup", "select", "textarea"),
}
#: The start of a tag of a block whose end must be written. Other blocks may just begin one after the other.
_NESTING: Final = re.compile(
    r"<(/?)(address|article|aside|blockquote|center|details|dialog|dir|div|dl|fieldset|figcaption|figure|footer|form"
    r"|header|hgroup|main|menu|nav|ol|section|summary|ul)(?=[\s/>])",
    re.IGNORECASE,
)
_MEDIA: Final = {"audio": Audio, "video": Video}
_DECLARED: Final = re.compile(rb"""(?:charset|encoding)\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)
_ENCODINGS: Final = {
    **dict.fromkeys(("gb2312", "gbk", "gb_2312-80", "x-gbk"), "gb18030"),
    **dict.fromkeys(("iso-8859-1", "latin1", "us-ascii", "ascii"), "cp1252"),
    **dict.fromkeys(("shift_jis", "shift-jis", "x-sjis", "sjis"), "cp932"),
    **dict.fromkeys(("euc-kr", "ks_c_5601-1987"), "cp949"),
    "x-mac-roman": "mac-roman",
}


def open_document(file: BinaryIO, name: str, limits: DocumentLimits) -> OpenDocument:
    text = decoded(file.read())
    if len(text) > FORMATS.html:
        file.seek(0)
        return TextDocument(file, name)
    tree = LexborHTMLParser(flattened(text))
    return SectionedDocument(_shown(tree), _properties(tree))


def html_elements(text: str) -> list[Element]:
    """What a page of HTML shows."""
    return _shown(LexborHTMLParser(flattened(text)))


def flattened(text: str) -> str:
    """The same page. Where blocks are nested too deeply, each tag of a further block is the end of a line instead.

    For each block the parser looks through all blocks around it: 20,000 of them take it two seconds.
    """
    open_blocks: Counter[str] = Counter()
    depth = 0

    def tag(match: re.Match[str]) -> str:
        nonlocal depth
        is_end, name = match[1], match[2].lower()
        if is_end and not open_blocks[name]:
            return match[0]  # the parser ignores it, too
        step = -1 if is_end else 1
        open_blocks[name] += step
        depth += step
        return "<br" if depth + bool(is_end) > FORMATS.html_blocks else match[0]

    return _NESTING.sub(tag, text)


def _shown(tree: LexborHTMLParser) -> list[Element]:
    tree.strip_tags(_NOT_SHOWN)
    top = tree.body or tree.root
    return [] if top is None else list(_links_last(_HtmlWalk().elements(top)))


def _links_last(elements: Sequence[Element]) -> Iterator[Element]:
    """The same elements. The links and pictures of each section follow its words, so that they interrupt nothing."""
    waiting: list[Element] = []
    for each in elements:
        if isinstance(each, Link | Image):
            waiting.append(each)
            continue
        if starts_page(each):
            yield from waiting
            waiting.clear()
        yield each
    yield from waiting


def decoded(data: bytes, declared: str = "") -> str:
    """The text of a page. UTF-8 goes first: it is hardly ever right by accident. Then what the page declares."""
    sample = data[: FORMATS.encoding_sample]
    if sample.startswith((codecs.BOM_UTF8, *_MARKS)):
        encoding = encoding_of(sample)
    else:
        found = _DECLARED.search(data[:4096])
        name = (declared or (found[1].decode("ascii", "replace") if found else "")).strip().lower()
        encoding = _known(_ENCODINGS.get(name, name))
        escapes = encoding.startswith(("iso2022", "hz")) and (b"\x1b" in data or b"~{" in data)
        if not escapes and (_fits(sample, "utf-8") or not encoding or not _fits(sample, encoding)):
            encoding = encoding_of(sample)
    return data.decode(encoding, "replace").removeprefix("\ufeff")


_MARKS: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def _fits(sample: bytes, encoding: str) -> bool:
    try:
        # The end may be in the middle of a character.
        codecs.getincrementaldecoder(encoding)().decode(sample)
    except (UnicodeDecodeError, LookupError):
        return False
    return True


def _known(name: str) -> str:
    """The codec of that name; empty if there is no such codec of texts, or if it needs a mark that the page lacks."""
    try:
        b"a".decode(name, "replace")
        found = codecs.lookup(name).name
    except (LookupError, ValueError, TypeError):
        return ""
    return "" if found.startswith(("utf-16", "utf-32")) else found


def _properties(tree: LexborHTMLParser) -> Properties:
    title = tree.css_first("head > title") or tree.css_first("title")
    meta = {
        (node.attributes.get("name") or "").lower(): node.attributes.get("content") or "" for node in tree.css("meta")
    }
    keywords = [word.strip() for word in meta.get("keywords", "").split(",") if word.strip()]
    return Properties(
        " ".join(title.text(deep=True).split()) if title is not None else "", keywords, meta.get("description", "")
    )


class _HtmlWalk:
    """Goes through a tree once. Words that belong together wait in `_words` until a block begins or ends."""

    def __init__(self, depth: int = 0) -> None:
        self._depth = depth
        self._found: list[Element] = []
        self._words: list[str] = []
        self._beside: list[Element] = []
        """Links and pictures in these words."""

    def elements(self, node: LexborNode) -> list[Element]:
        """What stands below a node."""
        self._below(node)
        self._flush()
        return self._found

    def _inside(self, node: LexborNode) -> list[Element]:
        """What stands below a node that becomes an element of its own."""
        return _HtmlWalk(self._depth + 1).elements(node)

    def _flush(self) -> None:
        words = re.sub(r" *\n[ \n]*", "\n", re.sub(r"[ \t]+", " ", "".join(self._words))).strip()
        self._words.clear()
        if words:
            self._found.append(Text(words))
        self._found += self._beside
        self._beside.clear()

    def _add(self, *elements: Element) -> None:
        self._flush()
        self._found += elements

    def _below(self, node: LexborNode) -> None:
        if self._depth >= FORMATS.html_levels:
            self._words.append(" ".join(node.text(deep=True, separator=" ").split()))
            return
        self._depth += 1
        for child in node.iter(include_text=True):
            tag = child.tag or ""
            if tag == "-text":
                self._words.append(re.sub(r"\s+", " ", child.text(deep=False) or ""))
            elif tag not in _SKIPPED:
                self._node(child, tag)
        self._depth -= 1

    def _node(self, node: LexborNode, tag: str) -> None:
        match tag:
            case "br" | "wbr":
                self._words.append("\n" if tag == "br" else "")
            case "a":
                self._link(node)
            case "img":
                self._picture(node)
            case "pre" | "listing" | "xmp":
                if text := node.text(deep=True).strip("\n").rstrip():
                    self._add(Code(text, _language(node)))
            case "hr":
                self._add(Separator())
            case "audio" | "video":
                url = node.attributes.get("src") or ""
                self._add(_MEDIA[tag](node.attributes.get("title") or url or tag, url))
                self._below(node)
            case "ul" | "ol" | "menu" | "dir" | "dl":
                self._list(node, tag)
            case "table":
                self._table(node)
            case _ if tag in _HEADINGS:
                self._heading(node, _HEADINGS[tag])
            case _ if tag in _BLOCKS:
                self._flush()
                self._below(node)
                self._flush()
            case "button" | "label" | "input":
                self._words.append(" ")
                self._below(node)
                self._words.append(" ")
            case _:
                self._below(node)

    def _link(self, node: LexborNode) -> None:
        url = (node.attributes.get("href") or "").strip()
        start, found = len(self._words), len(self._found)
        self._below(node)
        if not url or url.startswith("#") or url.lower().startswith("javascript:"):
            return
        # The words of a link that holds blocks are elements already.
        text = "".join(self._words[start:]) if len(self._found) == found else ""
        self._beside.append(Link(" ".join(text.split()), url))

    def _picture(self, node: LexborNode) -> None:
        alt, url = (node.attributes.get("alt") or "").strip(), (node.attributes.get("src") or "").strip()
        if url.startswith("data:"):  # a picture that is written into the page is no address to go to
            url = ""
        if alt or url:
            self._beside.append(Image(alt, url))

    def _heading(self, node: LexborNode, level: int) -> None:
        inner = self._inside(node)
        words = " ".join(" ".join(each.text.split()) for each in inner if isinstance(each, Text))
        if words:
            self._add(Heading(words, level))
        self._add(*(each for each in inner if not isinstance(each, Text)))

    def _list(self, node: LexborNode, tag: str) -> None:
        items: list[list[Element]] = []
        for child in node.iter(include_text=True):
            if (child.tag or "") in ("ul", "ol", "menu", "dir", "dl") and items:
                items[-1] += self._as_inner_list(child)  # not valid, and yet how many pages nest their lists
            elif child.tag == "dd" and items:
                items[-1] += [*_indented(self._inside(child))]
            elif (child.tag or "") not in _SKIPPED:
                inner = self._inside(child) if child.tag != "-text" else [Text(child.text(deep=False) or "")]
                items.append([each for each in inner if not isinstance(each, Text) or each.text.strip()])
        items = [item for item in items if item]
        if all(isinstance(each, Text | List | Link | Image) for item in items for each in item):
            lines = [_lines(item) for item in items]
            if any(lines):
                self._add(List([line for line in lines if line], tag == "ol"))
            self._add(*(each for item in items for each in item if isinstance(each, Link | Image)))
        else:
            self._add(*(each for item in items for each in item))

    def _as_inner_list(self, node: LexborNode) -> list[Element]:
        inner = _HtmlWalk(self._depth + 1)
        inner._list(node, node.tag or "")
        return inner._found

    def _table(self, node: LexborNode) -> None:
        rows = [row for row in _rows(node) if row]
        inner = [[self._inside(cell) for cell in row] for row in rows]
        for caption in (child for child in node.iter() if child.tag == "caption"):
            self._add(*self._inside(caption))
        flat = all(isinstance(each, Text | List | Link | Image) for row in inner for cell in row for each in cell)
        if not flat or max(map(len, inner), default=0) < 2:
            # A table that places the parts of a page, and is not read as one.
            self._add(*(each for row in inner for cell in row for each in cell))
            return
        table = _spread(rows, [[_lines(cell) for cell in row] for row in inner])
        headed = all(cell.tag == "th" for cell in rows[0]) or _in_head(rows[0][0])
        if any(any(row) for row in table):
            self._add(Table(table[0] if headed else [], table[1:] if headed else table))
        self._add(*(each for row in inner for cell in row for each in cell if isinstance(each, Link | Image)))


def _language(node: LexborNode) -> str:
    """The language of a block of code, as the highlighters of pages write it."""
    code = node.css_first("code")
    for each in (node, code):
        found = re.search(
            r"(?:lang|language|highlight|brush)[-: ]+([\w+#-]+)", (each and each.attributes.get("class")) or ""
        )
        if found:
            return found[1]
    return ""


def _indented(elements: Sequence[Element]) -> Iterator[Element]:
    for each in elements:
        yield List([each.text]) if isinstance(each, Text) else each


def _lines(elements: Sequence[Element]) -> str:
    """The words of paragraphs and lists as lines. Those of inner lists stand further right."""
    lines: list[str] = []
    for each in elements:
        if isinstance(each, Text):
            lines.append(each.text)
        elif isinstance(each, List):
            # So deep that more would say nothing, and a page of lists in lists does not grow by it.
            lines += [
                f"  {line}" if not line.startswith(" " * 12) else line
                for item in each.items
                for line in item.split("\n")
            ]
    return "\n".join(lines)


def _rows(node: LexborNode) -> Iterator[list[LexborNode]]:
    """The cells of a table's own rows."""
    for child in node.iter():
        if child.tag in ("thead", "tbody", "tfoot"):
            yield from _rows(child)
        elif child.tag == "tr":
            yield [cell for cell in child.iter() if cell.tag in ("td", "th")]


def _in_head(cell: LexborNode) -> bool:
    row = cell.parent
    return row is not None and row.parent is not None and row.parent.tag == "thead"


def _spread(rows: Sequence[Sequence[LexborNode]], texts: Sequence[Sequence[str]]) -> list[list[str]]:
    """The texts in their columns: a cell that spans several has its text in the first one.

    Cells that are empty by a span are no more than four times as many as there are cells. Over that spans are ignored.
    """
    width = max(map(len, texts))
    room = 4 * sum(map(len, texts)) + 100
    covered: dict[int, int] = {}
    """How many further rows a cell above takes, by column."""
    table: list[list[str]] = []
    for row, words in zip(rows, texts, strict=True):
        line: list[str] = []
        below: dict[int, int] = {}
        for cell, text in zip_longest(row, words):
            while covered.get(len(line), 0) > 0 and len(line) < width:
                line.append("")
                room -= 1
            first = len(line)
            line.append(text)
            extra = max(0, min(_span(cell, "colspan") - 1, width - len(line)))
            line += [""] * extra
            room -= extra
            if (down := _span(cell, "rowspan")) > 1:
                below |= dict.fromkeys(range(first, len(line)), down)
        if room < 0:
            return [list(each) for each in texts]
        covered = {column: left - 1 for column, left in {**covered, **below}.items() if left > 1}
        while line and not line[-1]:
            line.pop()
        table.append(line)
    return table


def _span(cell: LexborNode, name: str) -> int:
    value = (cell.attributes.get(name) or "").strip()
    return min(int(value), 1000) if value.isdecimal() else 1
