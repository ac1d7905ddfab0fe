"""The windows and documents in an MCP server's list of resources, taken out a few at a time and within bounds.

mcp makes models of a whole page at once. A page may have a hundred thousand resources, most of them of no use here. So
`Pages` takes the resources out of an answer before mcp sees it, and `ResourceList` looks through them in slices.
"""

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec
from mcp_types import Resource
from pydantic import ValidationError

from a2c_smcp.computer.utils.pool import slices
from a2c_smcp.utils.dpe_uri import is_dpe_uri
from a2c_smcp.utils.window_uri import is_window_uri

__all__ = ["MAX_DOCUMENTS", "MAX_WINDOWS", "ListedDocument", "ListedResource", "Pages", "ResourceList"]

#: How many windows and documents of one server are looked at.
MAX_WINDOWS: Final = 10_000
MAX_DOCUMENTS: Final = 100_000

_WINDOWS: Final = "windows"
_DOCUMENTS: Final = "documents"
_MOST: Final[Mapping[str, int]] = {_WINDOWS: MAX_WINDOWS, _DOCUMENTS: MAX_DOCUMENTS}

_PAGE: Final = "a2c-smcp/page"


class Pages:
    """The resources of pages, which mcp does not see. Only the last four pages are kept: the callers of older ones
    have given up.
    """

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._waiting: dict[int, list[Any]] = {}

    def take_out(self, result: Mapping[str, Any]) -> Mapping[str, Any]:
        """An answer to `resources/list` without its resources. A number in `_meta` stands for them: `of` returns
        them.
        """
        resources = result.get("resources")
        if not isinstance(resources, list):
            return result
        number = next(self._numbers)
        self._waiting[number] = resources
        self._waiting.pop(number - 4, None)
        meta = result.get("_meta")
        return {**result, "resources": [], "_meta": {**(meta if isinstance(meta, dict) else {}), _PAGE: number}}

    def of(self, meta: Mapping[str, Any] | None) -> list[Any]:
        """The resources of the answer that has this `_meta`."""
        return self._waiting.pop((meta or {}).get(_PAGE, 0), [])


class ListedDocument(msgspec.Struct, frozen=True, gc=False):
    """What a list says of a document. Not a model: the garbage collector would look at each of a hundred thousand."""

    uri: str
    name: str
    description: str | None = None


ListedResource: TypeAlias = Resource | ListedDocument


class ResourceList:
    """A server's windows and documents, page by page. Items over the bounds and invalid items are only counted."""

    def __init__(self) -> None:
        self.resources: list[ListedResource] = []
        self.others: set[int] = set()
        """The hashes of other URIs, up to 10,000: they tell whether the server lists a URI."""
        self._found: Counter[str] = Counter()
        self._invalid = 0

    async def add(self, page: Sequence[Any]) -> None:
        async for items in slices(page):
            for item in items:
                self._add(item)

    def _add(self, item: Any) -> None:
        uri = item.get("uri") if isinstance(item, dict) else None
        if not isinstance(uri, str):
            self._invalid += 1
            return
        kind = _WINDOWS if is_window_uri(uri) else _DOCUMENTS if is_dpe_uri(uri) else None
        if kind is None:
            if len(self.others) < 10_000:
                self.others.add(hash(uri))
            return
        self._found[kind] += 1
        if self._found[kind] > _MOST[kind]:
            return
        resource = _window(item) if kind is _WINDOWS else _document(item)
        if resource is None:
            self._invalid += 1
        else:
            self.resources.append(resource)

    @property
    def is_full(self) -> bool:
        """Whether more pages would change nothing."""
        return all(self._found[kind] > most for kind, most in _MOST.items())

    @property
    def ignored(self) -> str | None:
        """What is ignored, in words."""
        over = [
            f"{self._found[kind] - most} {kind} over the first {most}"
            for kind, most in _MOST.items()
            if self._found[kind] > most
        ]
        invalid = [f"{self._invalid} items that are not valid MCP resources"] if self._invalid else []
        return " and ".join([*over, *invalid]) or None


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
