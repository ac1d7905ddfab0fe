"""What is of use in an MCP server's list of resources, taken out a few at a time and within bounds.

mcp makes models of a whole page at once. A page may have a hundred thousand resources, most of them of no use here. So
`Pages` takes the items out of an answer before mcp sees it, and `ResourceList` looks through them in slices. The
server's config decides what is shown, what is shared, and what agents cannot read.
"""

import itertools
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

import msgspec
from mcp_types import Resource
from pydantic import ValidationError

from a2c_smcp.computer.mcp_clients.item_lists import ItemList
from a2c_smcp.computer.utils.pool import slices
from a2c_smcp.utils.dpe_uri import is_dpe_uri
from a2c_smcp.utils.window_uri import is_window_uri

__all__ = [
    "DOCUMENTS",
    "MAX_DOCUMENTS",
    "MAX_WINDOWS",
    "PAGED",
    "WINDOWS",
    "ListedDocument",
    "ListedResource",
    "Pages",
    "ResourceList",
    "Share",
]

#: What agents may read of a server, as its config says.
Share: TypeAlias = Literal["all", "shown", "none"]

#: How many windows and documents of one server are looked at.
MAX_WINDOWS: Final = 10_000
MAX_DOCUMENTS: Final = 100_000

WINDOWS: Final = "windows"
DOCUMENTS: Final = "documents"
_MOST: Final[Mapping[str, int]] = {WINDOWS: MAX_WINDOWS, DOCUMENTS: MAX_DOCUMENTS}

#: How many resources of one server are looked at in all: it may list resources without end.
_LOOKED_AT: Final = 250_000

_PAGE: Final = "a2c-smcp/page"
#: Where the items of an answer stand, by the method of its request.
PAGED: Final[Mapping[str, str]] = {
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}


class Pages:
    """The items of pages, which mcp does not see. Only the last four pages are kept: the callers of older ones have
    given up.
    """

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._waiting: dict[int, list[Any]] = {}

    def take_out(self, method: str, result: dict[str, Any]) -> dict[str, Any]:
        """An answer without its resources, templates or prompts. A number in `_meta` stands for them: `of` returns
        them. Answers to other methods come back as they are.
        """
        key = PAGED.get(method, "")
        items = result.get(key)
        if not isinstance(items, list):
            return result
        number = next(self._numbers)
        self._waiting[number] = items
        self._waiting.pop(number - 4, None)
        meta = result.get("_meta")
        return {**result, key: [], "_meta": {**(meta if isinstance(meta, dict) else {}), _PAGE: number}}

    def of(self, meta: Mapping[str, Any] | None) -> list[Any]:
        """The items of the answer that has this `_meta`."""
        return self._waiting.pop((meta or {}).get(_PAGE, 0), [])


class ListedDocument(msgspec.Struct, frozen=True, gc=False):
    """What a list says of a document. Not a model: the garbage collector would look at each of a hundred thousand."""

    uri: str
    name: str
    description: str | None = None


ListedResource: TypeAlias = Resource | ListedDocument


class ResourceList:
    """A server's resources, page by page. Items over the bounds and invalid items are only counted.

    `shown` has the kinds of resources that are shown to agents. With `share`, more or less of the list is shared.
    """

    def __init__(self, share: Share = "shown", shown: Collection[str] = (WINDOWS, DOCUMENTS)) -> None:
        self._share = share
        self._shown = frozenset(() if share == "none" else shown)
        self.resources: list[ListedResource] = []
        """The windows and documents that are shown."""
        self.shared = ItemList("resources")
        """What agents are told of: windows that are shown, or every resource. The Finder tells of documents."""
        self.others: set[int] = set()
        """The hashes of other URIs, up to 10,000: they tell whether the server lists a URI."""
        self.unshown: Counter[str] = Counter()
        """How many windows and documents are not shown, by kind."""
        self._found: Counter[str] = Counter()
        self._invalid = self._looked_at = 0

    async def add(self, page: Sequence[Any]) -> None:
        self._looked_at += len(page)
        async for items in slices(page):
            for item in items:
                self._add(item)

    def _add(self, item: Any) -> None:
        uri = item.get("uri") if isinstance(item, dict) else None
        if not isinstance(uri, str):
            self._invalid += 1
            return
        kind = WINDOWS if is_window_uri(uri) else DOCUMENTS if is_dpe_uri(uri) else None
        if self._share == "all" or (kind is WINDOWS and kind in self._shown):
            self.shared.put(item)
        if kind is None or kind not in self._shown:
            if kind is not None:
                self.unshown[kind] += 1
            if len(self.others) < 10_000:
                self.others.add(hash(uri))
            return
        self._found[kind] += 1
        if self._found[kind] > _MOST[kind]:
            return
        resource = _window(item) if kind is WINDOWS else _document(item)
        if resource is None:
            self._invalid += 1
        else:
            self.resources.append(resource)

    @property
    def is_full(self) -> bool:
        """Whether more pages would change nothing, or enough were looked at."""
        if self._share == "all" and self.shared.is_full:
            return True
        return self._looked_at > _LOOKED_AT or all(self._found[kind] > most for kind, most in _MOST.items())

    @property
    def ignored(self) -> str | None:
        """What is ignored, in words."""
        over = [
            f"{self._found[kind] - most} {kind} over the first {most}"
            for kind, most in _MOST.items()
            if self._found[kind] > most
        ]
        invalid = [f"{self._invalid} items that are not valid MCP resources"] if self._invalid else []
        shared = [self.shared.ignored] if self._share == "all" and self.shared.ignored else []
        return " and ".join([*over, *invalid, *shared]) or None


def _window(item: Mapping[str, Any]) -> Resource | None:
    try:
        return Resource.model_validate(item, by_name=False)
    except ValidationError:
        return None


def _document(item: Mapping[str, Any]) -> ListedDocument | None:
    name, description = item.get("name"), item.get("description")
    if not isinstance(name, str) or not isinstance(description, str | None):
        return None
    return ListedDocument(item["uri"], name, description)
