"""What is said of a document in the catalogue, and how pages cross the pipe from a worker. Pure."""

import re
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

from a2c_smcp.docs.formats import OpenDocument
from a2c_smcp.docs.limits import Unreadable
from a2c_smcp.docs.words import frequent_terms, name_words, shortened
from a2c_smcp.mcp_server.documents import Page
from a2c_smcp.mcp_server.elements import ELEMENT_TYPES, Code, Element, Heading, Image, List, Separator, Table, Text
from a2c_smcp.mcp_server.rendering import plain

__all__ = [
    "NOT_READ",
    "Facts",
    "describe",
    "element_from_json",
    "element_to_json",
    "own_title",
    "page_from_json",
    "page_to_json",
    "texts_of",
    "unreadable_page",
]


@dataclass(frozen=True, slots=True)
class _Samples:
    """How much of a document is read to describe it, and how long the description may be."""

    characters: int = 20_000
    pages: int = 3
    keywords: int = 8
    title: int = 120


_SAMPLES: Final = _Samples()
NOT_READ: Final = "This file has not been read yet. It is read when it is opened."
"""The summary of a document that is listed before its file was read."""

_NO_TITLE: Final = re.compile(
    r"""
      \W*                                               # nothing, "-", "()"
    | \W*(?:untitled|anonymous|unspecified|unknown|none|no[ ]title|title|new[ ]document)\W*\d*\W*
    | (?:power ?point[ ]presentation|(?:word|presentation|document|slide|folie|book|sheet)[ ]?\d*)(?:\.\w{1,5})?
    | microsoft[ ](?:office[ ])?(?:word|powerpoint|excel|publisher|visio)\b.*
    | (?:演示文稿|文档|工作簿|無題|无标题|未命名)\W*\d*    # the same in Chinese and Japanese
    """,
    re.VERBOSE | re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Facts:
    """A document's line in the catalogue, as far as its file decides it."""

    title: str
    page_count: int
    keywords: list[str]
    summary: str
    problem: dict[str, Any] | None = None
    """Why it cannot be read: an `Unreadable`."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def unreadable(cls, name: str, problem: Unreadable) -> "Facts":
        """A file that cannot be read is one page, which says why."""
        return cls(name, 1, [], f"This file cannot be read: {problem.reason}", problem.to_json())

    @classmethod
    def unread(cls, name: str) -> "Facts":
        """A file that is listed before it is read. How many pages it has is found out when it is opened."""
        return cls(name, 1, name_words(name).split()[: _SAMPLES.keywords], NOT_READ)


def describe(document: OpenDocument, name: str) -> Facts:
    """Title, keywords and summary: its own if it has them, else its first heading and most frequent words."""
    known = document.properties
    sample: list[Element] = []
    size = 0
    for index in range(min(_SAMPLES.pages, document.page_count)):
        page = document.page(index)
        sample += page.elements
        size += sum(len(plain(element)) for element in page.elements)
        if size > _SAMPLES.characters:
            break
    text = "\n".join(plain(each) for each in sample if not isinstance(each, Image | Separator))[: _SAMPLES.characters]
    heading = next((element.text for element in sample if isinstance(element, Heading)), "")
    keywords = [*known.keywords, *frequent_terms(text)]
    return Facts(
        title=shortened(own_title(known.title) or heading or name.rpartition("/")[2], _SAMPLES.title),
        page_count=document.page_count,
        keywords=_distinct(keywords)[: _SAMPLES.keywords],
        summary=shortened(known.summary or _first_words(sample)),
    )


def own_title(title: str) -> str:
    """The title that a file gives itself; empty if it is only what a program writes where nobody gave one."""
    words = " ".join(title.split())
    return "" if _NO_TITLE.fullmatch(words) else words


def _distinct(words: list[str]) -> list[str]:
    """Each word once, as it is written first."""
    found: dict[str, str] = {}
    for word in words:
        found.setdefault(word.lower(), shortened(word, 60))
    return list(found.values())


def _first_words(elements: list[Element]) -> str:
    for kinds in ((Text,), (List, Code, Table), (Element,)):
        words = " ".join(plain(element)[:500] for element in elements if isinstance(element, kinds))
        if words.strip():
            return words
    return ""


def texts_of(page: Page) -> list[tuple[int, str]]:
    """What the index holds of a page: the plain text of each element, with its number."""
    found = [(number, plain(element)) for number, element in enumerate(page.elements)]
    return [(number, text) for number, text in found if text.strip()]


def unreadable_page(problem: Unreadable) -> Page:
    """The one page of a file that cannot be read."""
    facts = {"error_code": problem.code}
    return Page("This file cannot be read", [Text(f"This file cannot be read: {problem.reason}", metadata=facts)])


# --- pages as JSON


def page_to_json(page: Page) -> dict[str, Any]:
    return {"title": page.title, "elements": [element_to_json(element) for element in page.elements]}


def element_to_json(element: Element) -> dict[str, Any]:
    values = {item.name: getattr(element, item.name) for item in fields(element)}
    return {
        "category": element.category,
        **{name: value for name, value in values.items() if value not in (None, "", {}, ())},
    }


def page_from_json(value: dict[str, Any]) -> Page:
    return Page(value["title"], [element_from_json(facts) for facts in value["elements"]])


def element_from_json(facts: dict[str, Any]) -> Element:
    category = facts["category"]
    given = {name: value for name, value in facts.items() if name != "category"}
    return ELEMENT_TYPES[category](**_DEFAULTS.get(category, {}) | given)


#: Fields without a default that were left out because they are empty.
_DEFAULTS: Final[dict[str, dict[str, Any]]] = {
    category: {
        item.name: "" for item in fields(kind) if item.name in ("text", "title", "latex", "url", "description", "kind")
    }
    for category, kind in ELEMENT_TYPES.items()
}
