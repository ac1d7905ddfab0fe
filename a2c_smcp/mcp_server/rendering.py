"""Elements as Markdown and as plain text. Pure.

The content of an element cannot break out of it: a cell does not end its table, a line of code does not end its fence,
an item does not end its list, and a paragraph does not swallow the next element. A `Text` is Markdown, and so are the
words of headings and list items. Cells, labels and addresses are data: Markdown in them is escaped.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from a2c_smcp.mcp_server.elements import (
    Annotation,
    Cell,
    Chart,
    Code,
    Element,
    Footer,
    Form,
    Formula,
    Header,
    Heading,
    Image,
    Link,
    List,
    Table,
    Text,
)

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

__all__ = ["elements_markdown", "elements_text", "heading_markdown", "link_markdown", "markdown", "one_line", "plain"]

_BACKSLASH = re.compile(r"\\(?=[!-/:-@\[-`{-~]|$)")
"""A backslash that Markdown would read as an escape."""
_HTML = re.compile(r"<(?=[A-Za-z/!?])")
_NOT_IN_URL = re.compile(r"[\s\x00-\x1f\x7f<>()`\"\\\[\]]")
_NOT_IN_LANGUAGE = re.compile(r"[^A-Za-z0-9_+#.\-]")
_CLOSING_HASHES = re.compile(r"(^|\s)(#+)$")
_MAY_SWALLOW = re.compile(r"```|~~~|^[ \t>*+\-0-9.)]*<", re.MULTILINE)
_BLOCK_START = re.compile(
    r"""
      \#{1,6}(?=\s|$)                 # heading
    | >                               # quotation
    | [-+*](?=\s|$)                   # list item
    | (?:(?:-[ \t]*){3,}|(?:_[ \t]*){3,}|(?:\*[ \t]*){3,})$   # rule
    | (?:=+|-+)[ \t]*$                # underline of a heading
    | ```|~~~                         # fence
    | <                               # HTML
    | \[(?![^\[\]]*\]\()              # definition of a link, unless a link starts here
    | [|:\-][|:\-\ \t]*$              # the line below a table's headers
    """,
    re.VERBOSE,
)
_NUMBERED = re.compile(r"(\d{1,9})([.)])(?=\s|$)")


def elements_markdown(elements: Iterable[Element]) -> str:
    """A page's elements as one Markdown text."""
    return "\n\n".join(map(markdown, elements))


def elements_text(elements: Iterable[Element]) -> str:
    """The same without markup."""
    return "\n\n".join(map(plain, elements))


def markdown(element: Element) -> str:
    """One element as Markdown."""
    render = _MARKDOWN.get(element.category, _placeholder)
    return render(element)


def plain(element: Element) -> str:
    """One element as plain text."""
    render = _PLAIN.get(element.category, _placeholder_text)
    return render(element)


# --- Markdown, kind by kind


def heading_markdown(text: str, level: int = 1) -> str:
    line = _CLOSING_HASHES.sub(lambda match: f"{match[1]}\\{match[2]}", one_line(text))
    return f"{'#' * level} {line}".rstrip()


def link_markdown(text: str, url: str) -> str:
    return f"[{_label(text or url)}]({_address(url)})"


def _text_markdown(element: Text) -> str:
    text = element.text.strip("\r\n")
    if not _MAY_SWALLOW.search(text) or not _swallows(text):
        return text
    longest = max(map(len, re.findall(r"`+|~+", text)), default=3)
    for end in ("```", "~~~", "`" * longest, "~" * longest, "-->", "?>", "]]>", ">", "</pre>"):
        if not _swallows(closed := f"{text}\n{end}"):
            return closed
    return _fence(text, "")


def _swallows(text: str) -> bool:
    """Whether Markdown would read the next paragraph as a part of this text."""
    tokens = _parser().parse(f"{text}\n\nnext")
    return [token.content for token in tokens[-2:-1]] != ["next"] or tokens[-1].level != 0


@cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark")


def _list_markdown(element: List) -> str:
    if not element.items:
        return _placeholder(element)
    lines = []
    labels = [*element.labels, *[""] * len(element.items)]
    for number, (item, label) in enumerate(zip(element.items, labels, strict=False), 1):
        marker = f"{number}. " if element.ordered else "- "
        shown = f"{one_line(label)} {item.lstrip()}" if label else item
        parts = [_inert(part.strip()) for part in _lines(shown) if part.strip()] or [""]
        lines += [f"{marker}{parts[0]}".rstrip(), *(" " * len(marker) + part for part in parts[1:])]
    return "\n".join(lines)


def _code_markdown(element: Code) -> str:
    return _fence(element.text, _NOT_IN_LANGUAGE.sub("", element.language))


def _fence(text: str, language: str) -> str:
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _table_markdown(element: Table) -> str:
    columns = max((len(element.headers), *map(len, element.rows)))
    if not columns:
        return _placeholder(element)

    def line(cells: Iterable[Cell]) -> str:
        shown = [*map(_cell, cells)]
        return f"| {' | '.join(shown + [''] * (columns - len(shown)))} |"

    return "\n".join([line(element.headers), "|" + " --- |" * columns, *map(line, element.rows)])


def _chart_markdown(element: Chart) -> str:
    return f"[{_titled('图表', _label(element.title))}] {_html_free(one_line(element.data_summary))}".rstrip()


def _image_markdown(element: Image) -> str:
    if element.url:
        return f"![{_label(element.alt or element.description)}]({_address(element.url)})"
    return f"[{_titled('图片', _label(element.description or element.alt))}]"


def _link_element(element: Link) -> str:
    return link_markdown(element.text, element.url)


def _formula_markdown(element: Formula) -> str:
    latex = re.sub(r"(\\*)\$", lambda match: match[0] if len(match[1]) % 2 else f"{match[1]}\\$", element.latex)
    return f"$ {one_line(latex)} $"


def _placeholder(element: Element) -> str:
    return f"[{_titled(element.category, _label(_said(element)))}]"


def _said(element: Element) -> str:
    """The words of an element that has no Markdown of its own. A text or a form is whole, not cut like a summary."""
    match element:
        case Annotation(text=text) | Header(text=text) | Footer(text=text):
            return element.summary or text
        case Form() if not element.summary:
            return "; ".join([element.title, *(f"{name}: {_shown(value)}" for name, value in element.values.items())])
        case _:
            return element.brief


def _heading_element(element: Heading) -> str:
    return heading_markdown(element.text, element.level)


_MARKDOWN: Mapping[str, Callable[[Any], str]] = {
    "text": _text_markdown,
    "heading": _heading_element,
    "list": _list_markdown,
    "code": _code_markdown,
    "table": _table_markdown,
    "chart": _chart_markdown,
    "image": _image_markdown,
    "formula": _formula_markdown,
    "link": _link_element,
}


# --- plain text, kind by kind


def _table_text(element: Table) -> str:
    rows = [element.headers, *element.rows] if any(element.headers) else element.rows
    return "\n".join("\t".join(one_line(_shown(cell)) for cell in row) for row in rows)


def _list_text(element: List) -> str:
    """Each item on a line, after the number that a reader of the document sees. A bullet is markup."""
    numbers = [f"{number}." for number in range(1, len(element.items) + 1)] if element.ordered else []
    labels = element.labels or numbers or [""] * len(element.items)
    return "\n".join(one_line(f"{label} {item}") for label, item in zip(labels, element.items, strict=False))


def _chart_text(element: Chart) -> str:
    return f"[{_titled('图表', one_line(element.title))}] {one_line(element.data_summary)}".rstrip()


def _image_text(element: Image) -> str:
    return f"[{_titled('图片', one_line(element.description or element.alt))}] {element.url}".rstrip()


def _link_text(element: Link) -> str:
    return f"{one_line(element.text)} ({element.url})" if element.text else element.url


def _placeholder_text(element: Element) -> str:
    return f"[{_titled(element.category, one_line(_said(element)))}]"


_PLAIN: Mapping[str, Callable[[Any], str]] = {
    "text": lambda element: element.text,
    "heading": lambda element: one_line(element.text),
    "list": _list_text,
    "code": lambda element: element.text,
    "table": _table_text,
    "chart": _chart_text,
    "image": _image_text,
    "formula": lambda element: one_line(element.latex),
    "link": _link_text,
}


# --- what may stand where


def one_line(text: str) -> str:
    """The text with every run of blanks and line breaks as one blank."""
    return " ".join(text.split())


def _titled(kind: str, text: str) -> str:
    return f"{kind}: {text}" if text else kind


def _lines(text: str) -> list[str]:
    return re.split(r"\r\n|\r|\n", text)


def _shown(cell: Cell) -> str:
    match cell:
        case None:
            return ""
        case bool():
            return "true" if cell else "false"
        case _:
            return str(cell)


def _cell(cell: Cell) -> str:
    """A cell's text on one line. A pipe ends a cell unless a backslash stands before it, so backslashes that were
    already there are escaped, too.
    """
    return "<br>".join(
        _html_free(_BACKSLASH.sub(r"\\\\", line.strip()).replace("|", r"\|")) for line in _lines(_shown(cell))
    )


def _label(text: str) -> str:
    escaped = _BACKSLASH.sub(r"\\\\", one_line(text))
    return _html_free(re.sub(r"[\[\]`]", lambda match: f"\\{match[0]}", escaped))


def _html_free(text: str) -> str:
    return _HTML.sub(r"\<", text)


def _address(url: str) -> str:
    return _NOT_IN_URL.sub(lambda match: quote(match[0], safe=""), url.strip())


def _inert(line: str) -> str:
    """A line of a list item that starts nothing new: no heading, fence, list or table."""
    if _BLOCK_START.match(line):
        return f"\\{line}"
    return _NUMBERED.sub(r"\1\\\2", line, count=1) if _NUMBERED.match(line) else line
