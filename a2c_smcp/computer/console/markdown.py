"""Pages of documents as HTML. HTML in a document stays text: nothing of it becomes an element."""

from typing import Any, Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

__all__ = ["to_html"]

_MARKDOWN: Final = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable(["table", "strikethrough"])
#: The links that a person may follow. Images may not come from elsewhere: the page's policy forbids it.
_FOLLOWED: Final = ("http://", "https://", "mailto:")


def to_html(text: str) -> str:
    """Markdown as HTML that can be put into a page."""
    tokens = _MARKDOWN.parse(text)
    _tame(tokens)
    rendered: str = _MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {})
    return rendered


def _tame(tokens: list[Token]) -> None:
    for token in tokens:
        attrs: dict[str, Any] = token.attrs
        if token.type == "link_open":
            if str(attrs.get("href", "")).lower().startswith(_FOLLOWED):
                attrs |= {"target": "_blank", "rel": "noopener noreferrer"}
            else:
                attrs.pop("href", None)
        elif token.type == "image" and not str(attrs.get("src", "")).startswith("data:image/"):
            attrs.pop("src", None)
        # Alignment comes as a style, which the page's policy forbids. A class is allowed.
        if style := attrs.pop("style", None):
            attrs["class"] = str(style).replace("text-align:", "align-")
        _tame(token.children or [])
